"""A recorded session under another policy: the same facts, asked again.  Pure; no model is asked and no tool runs.

The facts are added up one by one, as they were. Wherever the engine had to decide, the policy in hand is asked with the
trace of that moment: what the model said comes from the recording, and what tools saw of the world from what they
stored. Each verdict is compared with what the recording has in its place.

A verdict that differs need not change the course: a call that a person approved as it was would also have run unasked.
Where the course differs the session would have gone another way, so what comes after is *conditional*: it holds only if
the model had said the same all the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeGuard

from harness_core.ending import LIMITS, limit_reached
from harness_core.events import (
    ContextCompressed,
    Event,
    HITLPending,
    HITLSubmitted,
    HookRuled,
    Inspected,
    ModelFailed,
    PromptAmended,
    Prompted,
    ReasonEnd,
    RuleChanged,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import Approve, HITLTask
from harness_core.hooks import run_point
from harness_core.permissions.judge import Judgement, judge, refusal, says
from harness_core.react import next_step
from harness_core.results import UNCHECKED
from harness_core.session import CallState, Folder, Trace
from harness_core.steps import End, Policy, Reason, Step
from harness_core.types import ToolCall
from harness_core.verdicts import Point

GATE: Final = "gate"  # the point at which rules, strategies and the default speak
LIMIT: Final = "limit"  # the point at which a run's own limits speak
NOTHING: Final = "nothing"
_GOES_ON: Final = "the run would have gone on; nothing more of it is recorded"

# What may stand between a model's message and the verdicts on its calls.
_NOT_JUDGED_YET: Final = (Inspected, Prompted, PromptAmended, RuleChanged, RunStart)
_BEFORE_A_REQUEST: Final[tuple[Point, ...]] = ("session_start", "user_prompt", "before_model")
_OF_CALLS: Final[tuple[Point, ...]] = ("before_tool", "permission_request")
# Hooks at these points are not asked again: what they were asked about is not on record.
_NOT_REPLAYED: Final[tuple[Point, ...]] = ("before_compress", "subagent_start", "subagent_end")


@dataclass(frozen=True, slots=True)
class Ruling:
    """One verdict. seq: the fact that it came to, or would have come before.

    point: a hook point, GATE or LIMIT. hook: who ruled: a hook's name, `rule …`, `strategy` or `default`. verdict: of a
    hook its kind; of the gate allow, ask, deny, or error for a call that cannot work. recorded: what the recording has
    in its place, "" where it was never decided. differs: the verdict is another one; diverges: and so is the course.
    suggests: the tool that the hook tells the model to call.
    """

    seq: int
    at: float
    run_id: str
    step: int
    point: str
    hook: str
    verdict: str
    reason: str = ""
    call: ToolCall | None = None
    recorded: str = ""
    diverges: bool = False
    conditional: bool = False
    suggests: str = ""

    @property
    def differs(self) -> bool:
        """Whether the recording has another verdict here."""
        return bool(self.recorded) and self.recorded != self.verdict


def replay(facts: Sequence[Event], policy: Policy, since: int = 0) -> tuple[Ruling, ...]:
    """Every verdict of this policy on the recorded facts of one session, in order.

    facts: all of them, or those from a ContextCompressed on. since: the first fact that is asked about.
    """
    rulings = sorted(_Replay(facts, policy, since).rulings(), key=lambda ruling: ruling.seq)
    diverged = next((ruling.seq for ruling in rulings if ruling.diverges), None)
    if diverged is None:
        return tuple(rulings)
    return tuple(replace(one, conditional=True) if one.seq > diverged else one for one in rulings)


def verdicts(rulings: Iterable[Ruling]) -> tuple[Ruling, ...]:
    """Those on calls as a whole: one for each, and one more where a call was refused that had been let through."""
    return tuple(ruling for ruling in rulings if ruling.point == GATE)


@dataclass
class _Recorded:
    """What became of one call."""

    task: HITLTask | None = None
    submitted: HITLSubmitted | None = None
    started: ToolCallStart | None = None
    end: ToolCallEnd | None = None

    @property
    def verdict(self) -> str:
        """What the gate said, as far as the facts tell: "" for a call that nobody came to judge."""
        if self.task:
            return "ask"
        if self.started:
            return "allow"
        outcome = self.end.outcome if self.end else ""
        return {"denied": "deny", "error": "error", "rejected": "deny"}.get(outcome, "")

    def same_course(self, verdict: str) -> bool:
        """Whether the session would have gone on as it did, had the gate said this."""
        if not self.verdict or verdict == self.verdict:
            return True
        decision = self.submitted.decision if self.submitted else None
        unchanged = isinstance(decision, Approve) and decision.modified_args is None
        return verdict == "allow" and unchanged


@dataclass
class _Replay:
    facts: Sequence[Event]
    policy: Policy
    since: int = 0
    calls: dict[str, _Recorded] = field(default_factory=lambda: defaultdict(_Recorded))
    ruled: dict[tuple[str, int, str, str, str], list[HookRuled]] = field(default_factory=lambda: defaultdict(list))
    denied: set[str] = field(default_factory=set)  # calls that this policy would never let run

    def __post_init__(self) -> None:
        for fact in self.facts:
            self._index(fact)

    def _index(self, fact: Event) -> None:
        match fact:
            case HITLPending(tasks=tasks):
                for task in tasks:
                    if task.kind == "approve":
                        self.calls[task.call_uuid].task = self.calls[task.call_uuid].task or task
            case HITLSubmitted(fingerprint=shown):
                for call in self.calls.values():
                    if call.task and call.task.fingerprint == shown:
                        call.submitted = call.submitted or fact
            case ToolCallStart(call=started):
                self.calls[started.call_uuid].started = self.calls[started.call_uuid].started or fact
            case ToolCallEnd(call_uuid=uuid):
                self.calls[uuid].end = fact
            case HookRuled():
                self.ruled[_key(fact)].append(fact)

    # -- fact by fact --------------------------------------------------------------------------------------------------

    def rulings(self) -> Iterator[Ruling]:
        """All of them, those of one fact together."""
        folder, sessions = Folder(), 0
        judging = asked = False
        for fact in self.facts:
            if (fact.seq or 0) < self.since:
                sessions += isinstance(fact, RunStart) and not fact.resumed
                folder.add(fact)
                continue
            if judging and not isinstance(fact, _NOT_JUDGED_YET):
                judging = False
                yield from self._batch(_at(folder, fact), fact)
            if not asked and _asks(fact):
                asked = True
                yield from self._request(_at(folder, fact), fact, first=sessions == 1)
            yield from self._about(folder, fact)
            sessions += isinstance(fact, RunStart) and not fact.resumed
            judging = judging or (isinstance(fact, ReasonEnd) and bool(fact.calls))
            asked = asked and not isinstance(fact, ReasonEnd | ModelFailed | RunEnd)
            folder.add(fact)
        if judging and self.facts:
            yield from self._batch(_at(folder, self.facts[-1]), self.facts[-1])
        yield from self._left_over()

    def _request(self, trace: Trace, fact: Event, *, first: bool) -> Iterator[Ruling]:
        """Before the model is asked: what hooks say of prompts and of the request, and whether a limit is reached."""
        if first and trace.inbox:
            yield from self._hooks("session_start", trace, fact, trace.inbox[0])
        for prompt in (p for p in trace.inbox if p.seq not in trace.heard):
            yield from self._hooks("user_prompt", trace, fact, prompt)
        yield from self._hooks("before_model", trace, fact)
        step = next_step(trace, self.policy, fact.at)
        if _ends(step) and trace.run and isinstance(fact, ReasonEnd | ModelFailed) and not fact.limit:
            limit = step.limit or (step.status if isinstance(step, End) else "")
            answer = step.answer if isinstance(step, End) else step.rulings[-1].payload["answer"]
            yield self._ruling(fact, trace, LIMIT, limit, "End", answer, diverges=True)

    def _about(self, folder: Folder, fact: Event) -> Iterator[Ruling]:
        """What is asked about the fact itself, before it is stored."""
        match fact:
            case ReasonEnd():
                yield from self._hooks("after_model", _at(folder, fact), fact, fact)
            case ModelFailed():
                yield from self._hooks("model_error", _at(folder, fact), fact, fact)
            case ContextCompressed():
                yield from self._hooks("after_compress", _at(folder, fact), fact, fact)
            case ToolCallStart(call=call):
                yield from self._started(_at(folder, fact), fact, replace(call, args=fact.effective))
            case ToolCallEnd(call_uuid=uuid):
                trace = _at(folder, fact)
                if state := trace.of(uuid):
                    yield from self._hooks("after_tool", trace, fact, state.call, fact)
            case HookRuled(hook=hook, payload=payload) if hook == LIMITS:
                yield from self._limited(_at(folder, fact), fact, str(payload.get("limit", "")))
            case RunEnd():
                yield from self._ended(_at(folder, fact), fact)

    def _ended(self, trace: Trace, fact: RunEnd) -> Iterator[Ruling]:
        if fact.status == "completed" and trace.run:
            yield from self._hooks("before_stop", trace, fact, fact.answer)
        elif fact.status == "limited" and not _ends(next_step(trace, self.policy, fact.at)):
            yield self._ruling(fact, trace, LIMIT, fact.limit, "go on", _GOES_ON, recorded="End", diverges=True)
        yield from self._hooks("run_end", trace, fact, fact)

    def _limited(self, trace: Trace, fact: HookRuled, limit: str) -> Iterator[Ruling]:
        if trace.run and limit_reached(trace.run, self.policy, fact.at) is None:
            yield self._ruling(fact, trace, LIMIT, limit, "go on", _GOES_ON, recorded="End", diverges=True)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _batch(self, trace: Trace, fact: Event) -> Iterator[Ruling]:
        for state in trace.batch:
            recorded = self.calls[state.call.call_uuid]
            verdict, said = _judged(self.policy, trace, state)
            if verdict in ("deny", "error"):
                self.denied.add(state.call.call_uuid)
            by, shown = _speaker(self.policy, said, state.call), replace(state.call, args=said.args)
            yield from self._compared(trace, fact, said.rulings, state.call)
            yield self._ruling(
                fact, trace, GATE, by, verdict, said.reason, call=shown, recorded=recorded.verdict,
                diverges=not recorded.same_course(verdict),
            )  # fmt: skip

    def _started(self, trace: Trace, fact: ToolCallStart, call: ToolCall) -> Iterator[Ruling]:
        """A call that is about to run: now only a refusal counts, of what it became, or after what came before it."""
        state = trace.of(call.call_uuid)
        if state is None or call.call_uuid in self.denied:
            return
        if said := refusal(self.policy.gate, trace, call, state.inspection):
            by = _speaker(self.policy, said, call)
            yield self._ruling(fact, trace, GATE, by, "deny", said.reason, call=call, recorded="allow", diverges=True)

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def _hooks(self, point: Point, trace: Trace, fact: Event, *about: Any) -> Iterator[Ruling]:
        yield from self._compared(trace, fact, run_point(point, self.policy.gate.hooks, trace, *about).rulings)

    def _compared(
        self, trace: Trace, fact: Event, rulings: Iterable[HookRuled], call: ToolCall | None = None
    ) -> Iterator[Ruling]:
        """Rulings of hooks beside those on record. On calls it is the gate's verdict that makes a difference."""
        for ruling in rulings:
            same = self.ruled[_key(replace(ruling, run_id=trace.run.run_id if trace.run else ""))]
            recorded = same.pop(0).verdict if same else NOTHING
            differs = recorded != ruling.verdict and ruling.verdict != "Observe" and ruling.point not in _OF_CALLS
            yield self._ruling(
                fact, trace, ruling.point, ruling.hook, ruling.verdict, ruling.reason, call=call, recorded=recorded,
                diverges=differs, suggests=ruling.suggests or "",
            )  # fmt: skip

    def _left_over(self) -> Iterator[Ruling]:
        """What hooks ruled in the recording, and would not under this policy."""
        for fact in (fact for same in self.ruled.values() for fact in same):
            if (
                fact.point in _NOT_REPLAYED
                or fact.hook == LIMITS
                or fact.verdict == "Observe"
                or (fact.seq or 0) < self.since
            ):
                continue
            yield Ruling(
                fact.seq or 0, fact.at, fact.run_id, fact.step, fact.point, fact.hook, NOTHING,
                "under this policy the hook would not have ruled here", recorded=fact.verdict,
                diverges=fact.point not in _OF_CALLS,
            )  # fmt: skip

    @staticmethod
    def _ruling(fact: Event, trace: Trace, point: str, hook: str, verdict: str, reason: str, **more: Any) -> Ruling:
        run = trace.run
        return Ruling(
            fact.seq or 0, fact.at, run.run_id if run else "", run.steps if run else 0, point, hook, verdict, reason,
            **more,
        )  # fmt: skip


def _asks(fact: Event) -> bool:
    """Whether the engine was about to ask the model when this was stored."""
    return isinstance(fact, ReasonEnd | ModelFailed) or (
        isinstance(fact, HookRuled) and fact.point in _BEFORE_A_REQUEST
    )


def _at(folder: Folder, fact: Event) -> Trace:
    """The trace before this fact, as hooks were shown it."""
    return replace(folder.trace(), now=fact.at)


def _ends(step: Step) -> TypeGuard[End | Reason]:
    """Whether this is the end, or the last message before it."""
    return isinstance(step, End) or (isinstance(step, Reason) and bool(step.limit))


def _key(ruling: HookRuled) -> tuple[str, int, str, str, str]:
    return ruling.run_id, ruling.step, ruling.point, ruling.hook, ruling.call_uuid


def _judged(policy: Policy, trace: Trace, state: CallState) -> tuple[str, Judgement]:
    """What becomes of a call before anything of its batch runs, and why."""
    call, gate = state.call, policy.gate
    tool = gate.tools.get(call.name)
    if tool is None:
        return "error", Judgement("deny", call.args, f"There is no tool {call.name}.")
    if problem := call.problem or says(tool.check, call.args, UNCHECKED):
        return "error", Judgement("deny", call.args, problem)
    said = judge(gate, trace, call, state.inspection)
    if problem := says(tool.check, said.args, UNCHECKED):
        return "error", replace(said, reason=problem)
    found = state.inspection(said.args)
    if found and found.problem:
        return "error", replace(said, reason=found.problem)
    if said.effect == "deny":
        return "deny", said
    if trace.run and replace(call, args=said.args).effect in trace.run.rejected:
        return "deny", replace(said, reason="a person rejected the same call in this run")
    if said.effect == "ask" and not policy.can_ask:
        return "deny", replace(said, reason=f"nobody can be asked: {said.reason}")
    return said.effect, said


def _speaker(policy: Policy, said: Judgement, call: ToolCall) -> str:
    """Who decided: the rule, the hook that denied or asked, the tool's strategy, or the default."""
    if said.rule:
        return f"rule {said.rule}"
    spoke = [ruling.hook for ruling in said.rulings if ruling.verdict.casefold() == said.effect]
    if spoke:
        return spoke[0]
    return "strategy" if call.name in policy.gate.strategies else "default"
