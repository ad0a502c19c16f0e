"""A recorded session under another policy: the same facts, asked again.  Pure; no model is asked and no tool runs.

The facts are added up one by one, as they were. Wherever the engine had to decide, the policy in hand is asked with the
trace of that moment: what the model said comes from the recording, and what tools saw of the world from what they
stored. Each verdict is compared with what the recording has in its place.

A verdict that differs need not change the course: a call that a person approved as it was would also have run unasked.
Where the course differs the session would have gone another way, so what comes after is *conditional*: it holds only if
the model had said the same all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile
from typing import Any, Final

from harness_core.ending import LIMITS, SECONDS, closing, limit_reached, ruled_by_limits
from harness_core.events import (
    ContextCompressed,
    Event,
    HookRuled,
    Inspected,
    ModelFailed,
    PromptAmended,
    Prompted,
    PromptHeard,
    ReasonEnd,
    RuleChanged,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import Happened
from harness_core.hooks import run_point
from harness_core.permissions.judge import Judgement, judge, misfit, refusal
from harness_core.react import next_step
from harness_core.recording import GATE as GATE
from harness_core.recording import NOTHING, OUTCOMES, RUN, Recording
from harness_core.recording import Ruling as Ruling
from harness_core.recording import with_rules_of as with_rules_of
from harness_core.session import CallState, Folder, Trace
from harness_core.steps import Begin, Close, Compress, End, Hear, Policy, Reason, Step
from harness_core.tally import telling_nothing
from harness_core.types import ToolCall
from harness_core.verdicts import FAILED, Point

# What may stand between a model's message and the verdicts on its calls.
_NOT_JUDGED_YET: Final = (Inspected, Prompted, PromptAmended, RuleChanged, RunStart)
# Rulings of these points are stored before what the step came to, so the step was decided before the first of them.
_OF_STEPS: Final[tuple[Point, ...]] = ("user_prompt", "before_stop", "model_error", "before_model")
_OF_PROMPTS: Final[tuple[Point, ...]] = ("session_start", "user_prompt")
_OF_CALLS: Final[tuple[Point, ...]] = ("before_tool", "permission_request")
# Hooks at these points are not asked again: what they were asked about is not on record.
_NOT_REPLAYED: Final[tuple[Point, ...]] = ("before_compress", "subagent_start", "subagent_end")


def replay(facts: Sequence[Event], policy: Policy, since: int = 0) -> tuple[Ruling, ...]:
    """Every verdict of this policy on the recorded facts of one session, in order.

    facts: all of them, or those from a ContextCompressed on; of a sub-agent's session, see with_rules_of. since: the
    first fact that is asked about.
    """
    rulings = sorted(_Replay(facts, policy, since).rulings(), key=lambda ruling: ruling.seq)
    diverged = next((ruling.seq for ruling in rulings if ruling.diverges), None)
    if diverged is None:
        return tuple(rulings)
    return tuple(replace(one, conditional=True) if one.seq > diverged else one for one in rulings)


def verdicts(rulings: Iterable[Ruling]) -> tuple[Ruling, ...]:
    """Those on calls as a whole: one for each, and one more where a call was refused that had been let through."""
    return tuple(ruling for ruling in rulings if ruling.point == GATE)


class _Replay:
    """One pass over the facts, with what it must remember beside the trace."""

    def __init__(self, facts: Sequence[Event], policy: Policy, since: int) -> None:
        self.facts, self.policy, self.since = facts, policy, since
        self.recording = Recording(facts)
        self.denied: set[str] = set()  # calls that this policy would never let run
        self.heard: set[int] = set()  # prompts that hooks were asked about
        self.ruled = -1  # the place of the last ruling that was stored with what it led to, and is no step of its own
        self.before: Trace | None = None  # as it was before rulings that stand before the result that they are about
        self.later: set[int] = set()  # those about which they are not asked before the next run, one being blocked

    # -- fact by fact --------------------------------------------------------------------------------------------------

    def rulings(self) -> Iterator[Ruling]:
        """All of them, those of one fact together."""
        folder = Folder()
        judging = decided = False
        for place, fact in enumerate(self.facts):
            if isinstance(fact, ContextCompressed) or (isinstance(fact, RunStart) and not fact.resumed):
                self.ruled = self._ruled_with(place)
            if (fact.seq or 0) >= self.since:
                if judging and not _not_judged_yet(fact):
                    judging = False
                    yield from self._batch(_at(folder, fact), fact)
                begins = not isinstance(fact, HookRuled)
                if not decided and _comes_of_a_step(fact) and (begins or place > self.ruled):
                    trace = _at(folder, fact)
                    decided = not trace.batch
                    hears = not begins and isinstance(self.facts[last := self._ruled_with(place)], PromptHeard)
                    self.ruled = last if hears else self.ruled
                    outcome = self.recording.outcome(place)
                    yield from self._step(trace, fact, outcome, self._decided_at(place, outcome), hears=hears)
                if _on_an_agent(fact):
                    self.before = self.before or _at(folder, fact)
                yield from self._about(folder, fact, place)
                self.before = self.before if _on_an_agent(fact) else None
                judging = judging or (isinstance(fact, ReasonEnd) and bool(fact.calls))
                decided = decided and not isinstance(fact, OUTCOMES) and place != self.ruled
            if isinstance(fact, PromptAmended):
                self.heard -= {f.seq or 0 for f in self.facts if isinstance(f, Prompted) and f.ref == fact.ref}
            if not (isinstance(fact, HookRuled) and fact.point == "run_end"):  # ruled on the run as it was before
                folder.add(fact)
        if judging:
            yield from self._batch(_at(folder, self.facts[-1]), self.facts[-1])
        yield from self._left_over()

    def _ruled_with(self, place: int) -> int:
        """The place of the last ruling that was stored with the fact here: on prompts, or what a compression led to."""
        here, rest = self.facts[place], self.recording.since(place + 1)
        belongs = _on_a_step if isinstance(here, ContextCompressed) else _on_a_prompt
        return place + sum(1 for _ in takewhile(lambda fact: belongs(fact) and fact.at == here.at, rest))

    def _decided_at(self, place: int, outcome: Event) -> float:
        """When it was decided what came to the fact at this place: what a model answered was asked for before, right
        after the fact before.
        """
        slow = isinstance(outcome, ReasonEnd | ModelFailed | ContextCompressed)
        return self.facts[place - 1 if slow and place else place].at

    def _step(self, trace: Trace, fact: Event, outcome: Event, now: float, *, hears: bool = False) -> Iterator[Ruling]:
        """What the policy would have had the run do where the recording begins it, asks the model, or ends it. hears:
        there it only notes what hooks ruled on prompts, and the next step is another.
        """
        if trace.batch:  # it goes on with its calls, unless its time is over; people and the clock are no policy
            limit = limit_reached(trace.run, self.policy, fact.at) if trace.run and not trace.pending else None
            if limit and trace.run and limit.limit == SECONDS and isinstance(fact, HookRuled):
                yield from self._compared(trace, fact, (ruled_by_limits(limit, trace.run),))
            return
        if trace.run is None:
            self.later.clear()
        trace = self._told(trace)
        step = self._next(trace, now, outcome)
        if isinstance(step, Begin) and not step.facts:
            self.ruled = -1  # what was ruled right after it was ruled on its own, of a run that went on
        if isinstance(step, Begin | Hear):
            told = [f for f in step.facts if isinstance(f, HookRuled)]
            self.heard |= {f.prompt for f in step.facts if isinstance(f, PromptHeard)}
            if any(ruling.verdict == "Stop" for ruling in told):
                self.later |= {prompt.seq or 0 for prompt in trace.inbox}
            yield from self._compared(trace, fact, told, run_id=fact.run_id)
        if hears and not _blocks(step):
            return
        if isinstance(step, Hear):
            step = self._next(self._told(trace), now, outcome)
        if isinstance(step, Reason | Compress | Close | End):
            yield from self._compared(trace, fact, _on_record(step, outcome))
        if isinstance(step, End):
            end, _ = closing(step, trace, self.policy.gate.hooks)
            step = replace(step, status=end.status, answer=end.answer)
        if other := _another_course(step, outcome):
            verdict, hook, why = other
            yield self._ruling(fact, trace, RUN, hook, verdict, why, recorded=_course(outcome), diverges=True)

    def _told(self, trace: Trace) -> Trace:
        """The trace after what hooks were asked about in this replay."""
        told = (*self.heard, *self.later)
        return replace(trace, heard=(*trace.heard, *told)) if told else trace

    def _next(self, trace: Trace, now: float, outcome: Event) -> Step:
        """What the policy would have had the run do. That a context which a model refused as too long could be made
        shorter is known from the recording where the policy measures none.
        """
        run, policy = trace.run, self.policy
        if run and run.failures and isinstance(outcome, ContextCompressed) and policy.compression:
            shortened = replace(run, compressed=outcome.seq or 0) if policy.measure is None else run
            trace = replace(trace, run=shortened)
        return next_step(trace, policy, now)

    def _about(self, folder: Folder, fact: Event, place: int) -> Iterator[Ruling]:
        """What is asked about the fact itself, before it is stored."""
        match fact:
            case ReasonEnd():
                yield from self._hooks("after_model", _at(folder, fact), fact, fact)
            case ContextCompressed():
                yield from self._hooks("after_compress", _at(folder, fact), fact, fact)
            case RunEnd():
                yield from self._hooks("run_end", _at(folder, fact), fact, fact)
            case ToolCallStart(call=call):
                yield from self._started(_at(folder, fact), fact, call.given(fact.effective))
            case ToolCallEnd(call_uuid=uuid, outcome="ok" | "error"):
                trace = _at(folder, fact)
                if (state := trace.of(uuid)) and state.started and self._brought(state, trace, place):
                    call, trace = state.call.given(state.started.effective), self.before or trace
                    yield from self._hooks("after_tool", trace, fact, call, fact)

    def _brought(self, state: CallState, trace: Trace, place: int) -> bool:
        """Whether a tool, or an agent that came to its end, brought the result here of a call that was started: no
        person who knew it, and no end of the whole run.
        """
        if state.submitted and isinstance(state.submitted.decision, Happened):
            return False
        if not state.child:
            return True
        rest = dropwhile(lambda fact: isinstance(fact, ToolCallEnd | HookRuled), self.recording.since(place))
        ended = isinstance(following := next(rest, None), RunEnd) and following.at == self.facts[place].at
        over = ended or (trace.run is not None and bool(trace.run.stop or trace.run.halted))
        return not over

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _batch(self, trace: Trace, fact: Event) -> Iterator[Ruling]:
        if trace.run and trace.run.last and trace.run.last.limit:
            return  # the last message of a run at its limit: its calls are carried out by nobody
        for state in trace.batch:
            recorded = self.recording.calls[state.call.call_uuid]
            verdict, said = _judged(self.policy, trace, state)
            if verdict in ("deny", "error"):
                self.denied.add(state.call.call_uuid)
            by, shown = _speaker(self.policy, said, state.call), state.call.given(said.args)
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
        self,
        trace: Trace,
        fact: Event,
        rulings: Iterable[HookRuled],
        call: ToolCall | None = None,
        run_id: str = "",
    ) -> Iterator[Ruling]:
        """Rulings of hooks beside those on record. On calls it is the gate's verdict that makes a difference."""
        for ruling in rulings:
            recorded = self.recording.take(replace(ruling, run_id=run_id or (trace.run.run_id if trace.run else "")))
            if recorded == NOTHING and call and not self.recording.calls[call.call_uuid].verdict:
                recorded = ""  # the call was never decided
            differs = recorded != ruling.verdict and ruling.verdict != "Observe" and ruling.point not in _OF_CALLS
            yield self._ruling(
                fact, trace, ruling.point, ruling.hook, ruling.verdict, ruling.reason, call=call, recorded=recorded,
                diverges=differs, suggests=ruling.suggests or "",
            )  # fmt: skip

    def _left_over(self) -> Iterator[Ruling]:
        """What hooks ruled in the recording, and would not under this policy."""
        for fact in self.recording.left_over():
            if fact.point in _NOT_REPLAYED or fact.verdict in ("Observe", FAILED) or (fact.seq or 0) < self.since:
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


_BY_POLICY: Final = ("completed", "limited", "failed")  # ends of a run that are no person's doing


def _comes_of_a_step(fact: Event) -> bool:
    """Whether this is the first that is stored of a step: its outcome, or a ruling that was stored before that."""
    if isinstance(fact, RunStart):
        return not fact.resumed
    return isinstance(fact, OUTCOMES) or (isinstance(fact, HookRuled) and fact.point in _OF_STEPS)


def _on_a_prompt(fact: Event) -> bool:
    return isinstance(fact, PromptHeard) or (isinstance(fact, HookRuled) and fact.point in _OF_PROMPTS)


def _not_judged_yet(fact: Event) -> bool:
    on_the_message = isinstance(fact, HookRuled) and fact.point == "after_model"
    return on_the_message or isinstance(fact, _NOT_JUDGED_YET)


def _on_an_agent(fact: Event) -> bool:
    """Whether it may be a ruling on what an agent brought, which is stored before that."""
    return isinstance(fact, HookRuled) and fact.point in ("after_tool", "subagent_end")


def _on_a_step(fact: Event) -> bool:
    return isinstance(fact, HookRuled) and fact.point not in _OF_PROMPTS


def _blocks(step: Step) -> bool:
    """Whether this is the end that a hook wants which blocks a prompt."""
    return isinstance(step, End) and any("prompt" in ruling.payload for ruling in step.rulings)


def _on_record(step: Reason | Compress | Close | End, outcome: Event) -> list[HookRuled]:
    """The rulings of a step, as far as they would have been stored with what it came to."""
    match outcome:
        case ModelFailed() if not getattr(step, "limit", ""):  # what hooks tell the model is told with the next attempt
            return [*telling_nothing(step.rulings)]
        case RunEnd() if outcome.status not in _BY_POLICY and not isinstance(step, End):
            return []
        case RunEnd(limit=limit) if limit and getattr(step, "limit", "") == limit:
            # The recording is of a time when limits had no ruling and no last message.
            return [ruling for ruling in step.rulings if ruling.hook != LIMITS]
        case ContextCompressed():
            return [*telling_nothing(step.rulings)]
        case _:
            return list(step.rulings)


def _course(outcome: Event) -> str:
    """What the recorded run did."""
    if isinstance(outcome, RunEnd):
        return f"end {outcome.status}"
    return "" if isinstance(outcome, RunStart | HookRuled) else "go on"


def _another_course(step: Step, outcome: Event) -> tuple[str, str, str] | None:
    """(verdict, who, why) where the run would have ended in place of going on, otherwise than it did, or not at all."""
    recorded = _course(outcome)
    if isinstance(step, End):
        mine = f"end {step.status}"
        return None if recorded in ("", mine) else (mine, step.limit or step.status, step.answer)
    goes_on = isinstance(step, Reason | Compress) and not getattr(step, "limit", "")
    if goes_on and isinstance(outcome, RunEnd) and outcome.status in _BY_POLICY:
        return "go on", outcome.limit or outcome.status, "the run would have gone on; nothing more of it is recorded"
    return None


def _at(folder: Folder, fact: Event) -> Trace:
    """The trace before this fact, at its time."""
    return folder.trace(fact.at)


def _judged(policy: Policy, trace: Trace, state: CallState) -> tuple[str, Judgement]:
    """What becomes of a call before anything of its batch runs, and why."""
    call, gate = state.call, policy.gate
    tool = gate.tools.get(call.name)
    if tool is None:
        return "error", Judgement("deny", call.args, f"There is no tool {call.name}.")
    if problem := call.problem or misfit(tool, call.args):
        return "error", Judgement("deny", call.args, problem)
    said = judge(gate, trace, call, state.inspection)
    if said.args is not call.args and (problem := misfit(tool, said.args)):
        return "error", replace(said, reason=problem)
    found = state.inspection(said.args)
    if found and found.problem:
        return "error", replace(said, reason=found.problem)
    if said.effect == "deny":
        return "deny", said
    if trace.run and trace.run.rejected and call.given(said.args).effect in trace.run.rejected:
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
