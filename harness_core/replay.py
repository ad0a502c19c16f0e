"""A recorded session under another policy: the same facts, asked again.  Pure; no model is asked and no tool runs.

The facts are added up as they were stored, since only what was stored before a hook was asked can it have seen.
Wherever the engine had to decide, the policy in hand is asked with the trace of that moment: what the model said comes
from the recording, what tools saw of the world from what they stored, and the time is that of the facts. Each verdict
is compared with what the recording has in its place.

A verdict that differs need not change the course: a call that a person approved as it was would also have run unasked.
Where the course differs the session would have gone another way, so what comes after is *conditional*: it holds only if
the model had said the same all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from harness_core.batch import settled
from harness_core.compression.plan import Plan
from harness_core.compression.room import Context
from harness_core.ending import LIMITS, SECONDS, closing, limit_reached, ruled_by_limits
from harness_core.events import (
    ContextCompressed,
    Event,
    HITLPending,
    HookRuled,
    ModelFailed,
    PromptAmended,
    Prompted,
    PromptHeard,
    ReasonEnd,
    RuleChanged,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hooks import run_point
from harness_core.interceptors.compression import ContextCompressionInterceptor, Measure
from harness_core.journal_ids import depth_of
from harness_core.permissions.rule import PermissionRule
from harness_core.react import next_step
from harness_core.recording import GATE as GATE
from harness_core.recording import NOTHING, RUN, Append, Recording, appends, said_by
from harness_core.recording import Ruling as Ruling
from harness_core.recording import with_rules_of as with_rules_of
from harness_core.session import Folder, Trace
from harness_core.standing import Standing, asking_is_over, standing_of
from harness_core.steps import Begin, Close, Compress, End, Hear, Policy, Reason, Step
from harness_core.tally import telling_nothing
from harness_core.types import ToolCall
from harness_core.verdicts import FAILED, Point

E = TypeVar("E", bound=Event)

_OF_CALLS: Final[tuple[Point, ...]] = ("before_tool", "permission_request")
# Hooks at this point are not asked again: what they were asked about is not on record.
_NOT_REPLAYED: Final[tuple[Point, ...]] = ("before_compress",)
# What people may do while a model is asked.
_BY_PEOPLE: Final = (Prompted, PromptAmended, RuleChanged, StopRequested)


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
    """Those on calls as a whole: one for each, and one more where a call was let through and then refused, or not."""
    return tuple(ruling for ruling in rulings if ruling.point == GATE)


class _Replay:
    """One pass over the facts, with what it must remember beside the trace."""

    def __init__(self, facts: Sequence[Event], policy: Policy, since: int) -> None:
        self.facts, self.given, self.since = facts, policy, since
        self.policy = policy  # with the rules of the session around this one
        self.around: dict[PermissionRule, None] = {}  # rules
        self.recording = Recording(facts)
        self.judged: set[str] = set()  # calls of which it was told what the gate says
        self.denied: set[str] = set()  # those that this policy would never let run
        self.heard: set[int] = set()  # prompts that hooks were asked about
        self.later: set[int] = set()  # those about which they are not asked before the next run, one being blocked
        self.before: dict[int, Trace] = {}  # by its last fact: what was before people said more

    # -- append by append ----------------------------------------------------------------------------------------------

    def rulings(self) -> Iterator[Ruling]:
        """All of them, those on one append together."""
        folder, at = Folder(), self.facts[0].at if self.facts else 0.0
        for append in appends(self.facts):
            if isinstance(append.first, RuleChanged) and append.first.seq is None:
                self._rule_around(append.first)
                continue
            if (append.first.seq or 0) >= self.since:
                yield from self._asked(append, folder, at)
            if not isinstance(append.first, _BY_PEOPLE):
                self.before.clear()
            for fact in append.facts:
                folder.add(fact)
            at = append.facts[-1].at
        if self.facts:
            yield from self._never_judged(folder.trace(at), self.facts[-1])
        yield from self._left_over()

    def _rule_around(self, fact: RuleChanged) -> None:
        """A rule of the session that this sub-agent works in holds for it, or does no more."""
        self.around.pop(fact.rule, None)
        if fact.change == "added":
            self.around[fact.rule] = None
        gate = self.given.gate
        self.policy = replace(self.given, gate=replace(gate, rules=(*gate.rules, *self.around)))

    def _asked(self, append: Append, folder: Folder, at: float) -> Iterator[Ruling]:
        """What is asked about facts that were stored together. at: of the fact before."""
        fact, outcome = append.first, append.outcome
        match outcome:
            case Prompted() | PromptAmended() | RuleChanged() | StopRequested():
                trace = folder.trace(at)
                self.before[trace.seq] = trace
                if isinstance(outcome, PromptAmended):
                    self.heard -= {f.seq or 0 for f in self.facts if isinstance(f, Prompted) and f.ref == outcome.ref}
            case ReasonEnd() | ModelFailed() | ContextCompressed():
                # A model was asked: right after the last fact that this rests on, whatever people said meanwhile.
                rests_on = (trace for seq, trace in self.before.items() if seq >= append.upto > 0)
                yield from self._step(next(rests_on, None) or folder.trace(at), append)
                if not isinstance(outcome, ModelFailed):
                    point: Point = "after_model" if isinstance(outcome, ReasonEnd) else "after_compress"
                    yield from self._hooks(point, folder.trace(outcome.at), fact, _bare(outcome))
            case RunStart(resumed=False) | PromptHeard():
                yield from self._step(folder.trace(outcome.at), append)
            case RunEnd():
                trace = folder.trace(outcome.at)
                yield from self._cut_off(trace, append) if trace.batch else self._step(trace, append)
            case HITLPending(tasks=tasks):
                calls = {task.call_uuid for task in tasks if task.kind == "approve" and not task.session}
                yield from self._judged(folder.trace(outcome.at), fact, calls)
            case ToolCallStart():
                yield from self._started(folder.trace(outcome.at), append, outcome)
            case ToolCallEnd():
                yield from self._results(folder.trace(outcome.at), append, outcome)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _step(self, trace: Trace, append: Append) -> Iterator[Ruling]:
        """What the policy would have had the run do where the recording begins it, asks the model, or ends it."""
        fact, outcome = append.first, append.outcome
        if trace.run is None:
            self.later.clear()
        step = self._next(trace, outcome)
        if isinstance(step, Begin | Hear):
            told = [f for f in step.facts if isinstance(f, HookRuled)]
            self.heard |= {f.prompt for f in step.facts if isinstance(f, PromptHeard)}
            if any(ruling.verdict == "Stop" for ruling in told):
                self.later |= {prompt.seq or 0 for prompt in trace.inbox}
            yield from self._compared(trace, fact, told, run_id=fact.run_id)
        if isinstance(outcome, PromptHeard) and not _blocks(step):
            return  # there it only notes what hooks ruled on prompts, and the next step is another
        if isinstance(step, Hear):
            step = self._next(trace, outcome)
        if isinstance(step, Reason | Compress | Close | End):
            yield from self._compared(trace, fact, _on_record(step, outcome))
        if isinstance(outcome, RunEnd):
            end, rulings = self._closing(trace, append, step)
            yield from self._compared(trace, fact, rulings)
            step = replace(step, status=end.status, answer=end.answer) if isinstance(step, End) else step
        if other := _another_course(step, outcome):
            verdict, hook, why = other
            yield self._ruling(fact, trace, RUN, hook, verdict, why, recorded=_course(outcome), diverges=True)

    def _next(self, trace: Trace, outcome: Event) -> Step:
        """What the policy would have had the run do, hooks having been asked what this replay has asked them."""
        policy = self.policy
        if policy.compression and policy.measure is None:
            policy = replace(policy, compression=_AsRecorded(outcome), measure=Measure(len))
        known = (self.heard | self.later).difference(trace.heard)
        if told := [prompt.seq for prompt in trace.inbox if prompt.seq in known]:
            trace = replace(trace, heard=(*trace.heard, *told))
        return next_step(trace, policy, trace.now)

    def _cut_off(self, trace: Trace, append: Append) -> Iterator[Ruling]:
        """The end of a run that leaves calls open: people and the clock are no policy, unless its time is over."""
        yield from self._never_judged(trace, append.first)
        yield from self._out_of_time(trace, append)
        _, rulings = self._closing(trace, append)
        yield from self._compared(trace, append.first, rulings)

    def _closing(self, trace: Trace, append: Append, step: Step | None = None) -> tuple[RunEnd, Sequence[HookRuled]]:
        """The end of a run as the step has it, or as it is on record, and what hooks rule on it."""
        end = append.outcome
        assert isinstance(end, RunEnd)
        made = step if isinstance(step, End) else End(end.status, end.answer, end.limit)
        stored = [_bare(fact) for fact in append.facts[:-1]]
        ends = tuple(fact for fact in stored if isinstance(fact, ToolCallEnd))
        told = tuple(fact for fact in stored if isinstance(fact, HookRuled) and fact.point != "run_end")
        made = replace(made, ends=ends, rulings=told, withdrawn=end.withdrawn)
        return closing(made, trace, self.policy.gate.hooks)

    def _out_of_time(self, trace: Trace, append: Append) -> Iterator[Ruling]:
        """That the time of a run is over while calls are open, where the recording says so."""
        run, first = trace.run, append.first
        if run and not trace.pending and _at_limit(append):
            limit = limit_reached(run, self.policy, first.at)
            if limit and limit.limit == SECONDS:
                yield from self._compared(trace, first, (ruled_by_limits(limit, run, trace),))

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _started(self, trace: Trace, append: Append, start: ToolCallStart) -> Iterator[Ruling]:
        """Calls that begin. With the first of its batch, asking is over for all that are still open."""
        calls = {fact.call.call_uuid for fact in append.facts if isinstance(fact, ToolCallStart)}
        if not asking_is_over(trace):
            calls |= {state.call.call_uuid for state in trace.batch}
        yield from self._judged(trace, append.first, calls, recorded="allow")
        if start.child:
            yield from self._hooks("subagent_start", trace, append.first, start.call.given(start.effective))

    def _results(self, trace: Trace, append: Append, end: ToolCallEnd) -> Iterator[Ruling]:
        """Results: of tools, of an agent, or without anything having been run."""
        state, run = trace.of(end.call_uuid), trace.run
        if append.brought:
            for fact in append.facts:
                if isinstance(fact, ToolCallEnd):
                    yield from self._after("after_tool", trace, append.first, fact)
        elif state is None or run is None:
            return  # of a sub-agent's call, which was judged there
        elif run.stop or run.halted or _at_limit(append):
            yield from self._never_judged(trace, append.first)
            yield from self._out_of_time(trace, append)
        elif state.child:
            yield from self._after("after_tool", trace, append.first, end)
            yield from self._after("subagent_end", trace, append.first, end)
        elif state.waiting:
            if depth_of(trace.session_id):
                return  # decided in the session that it works in
            facts = settled(state, trace, self.policy, trace.now)
            yield from self._compared(trace, append.first, [f for f in facts if isinstance(f, HookRuled)], state.call)
        else:
            recorded = "deny" if end.outcome == "denied" else ""
            yield from self._judged(trace, append.first, {end.call_uuid}, recorded=recorded)

    def _never_judged(self, trace: Trace, fact: Event) -> Iterator[Ruling]:
        """What becomes of the calls that nobody came to decide."""
        yield from self._judged(trace, fact, {state.call.call_uuid for state in trace.batch} - self.judged)

    def _judged(self, trace: Trace, fact: Event, calls: Collection[str], *, recorded: str = "") -> Iterator[Ruling]:
        """What becomes of these calls of the open batch. recorded: what the gate said of them here, in so far as they
        were judged before, or were refused later.
        """
        run = trace.run
        if run is None or (run.last and run.last.limit):
            return  # the last message of a run at its limit: its calls are carried out by nobody
        for state in trace.batch:
            if state.end is None and state.call.call_uuid in calls:
                standing = standing_of(state, trace, run, self.policy, trace.now, looks=False)
                yield from self._compared(trace, fact, standing.rulings, state.call)
                if verdict := _verdict(standing):
                    yield from self._gate(trace, fact, standing, verdict, recorded)

    def _gate(self, trace: Trace, fact: Event, standing: Standing, verdict: str, recorded: str) -> Iterator[Ruling]:
        """What the gate says of a call; of one that was judged before only, that it is refused by now, or is not."""
        uuid = standing.state.call.call_uuid
        known = self.recording.calls[uuid]
        if uuid not in self.judged:
            refused_later = recorded == "allow" and known.verdict in ("deny", "error")
            said = recorded if refused_later else known.verdict
            diverges = verdict != said if refused_later else not known.same_course(verdict)
        elif uuid in self.denied or verdict == recorded or "deny" not in (verdict, recorded):
            return
        else:
            said, diverges = recorded, True
        self.judged.add(uuid)
        if verdict in ("deny", "error"):
            self.denied.add(uuid)
        by, why, shown = _speaker(self.policy, standing)
        yield self._ruling(fact, trace, GATE, by, verdict, why, call=shown, recorded=said, diverges=diverges)

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def _after(self, point: Point, trace: Trace, fact: Event, end: ToolCallEnd) -> Iterator[Ruling]:
        """What hooks rule on a result; but what it was before one of them rewrote it is not on record."""
        state = trace.of(end.call_uuid)
        if state and state.started and not (point == "after_tool" and end.call_uuid in self.recording.rewritten):
            call = state.call.given(state.started.effective)
            yield from self._hooks(point, trace, fact, call, _bare(end))

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
            if fact.point == "after_tool" and fact.call_uuid in self.recording.rewritten:
                continue
            if fact.call_uuid and fact.call_uuid not in self.recording.proposed:
                continue  # of a sub-agent's call, which was judged there
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


class _AsRecorded(ContextCompressionInterceptor):
    """Shortens a context where the recording does, since how large it was is not on record."""

    def __init__(self, outcome: Event) -> None:
        super().__init__()
        self._outcome = outcome

    def context(self, trace: Trace, measure: Measure) -> Context:
        return Context(trace.messages, measure.size, measure.count)

    def plan(self, context: Context, forced: int = 0) -> Plan | None:
        fact = self._outcome
        return Plan(fact.kept_from, 0, 0, 0, forced=forced) if isinstance(fact, ContextCompressed) else None


_BY_POLICY: Final = ("completed", "limited", "failed")  # ends of a run that are no person's doing


def _blocks(step: Step) -> bool:
    """Whether this is the end that a hook wants which blocks a prompt."""
    return isinstance(step, End) and any("prompt" in ruling.payload for ruling in step.rulings)


def _on_record(step: Reason | Compress | Close | End, outcome: Event) -> list[HookRuled]:
    """The rulings of a step, as far as they would have been stored with what it came to."""
    rulings = [ruling for ruling in step.rulings if ruling.point not in _NOT_REPLAYED]
    match outcome:
        case ModelFailed() if not getattr(step, "limit", ""):  # what hooks tell the model is told with the next attempt
            return [*telling_nothing(rulings)]
        case RunEnd() if outcome.status not in _BY_POLICY and not isinstance(step, End):
            return []
        case RunEnd(limit=limit) if limit and not isinstance(step, End) and getattr(step, "limit", "") == limit:
            # The recording is of a time when limits had no ruling and no last message.
            return [ruling for ruling in rulings if ruling.hook != LIMITS]
        case ContextCompressed():
            return [*telling_nothing(rulings)]
        case _:
            return rulings


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


def _at_limit(append: Append) -> bool:
    """Whether this comes of a limit."""
    return isinstance(append.first, HookRuled) and append.first.hook == LIMITS


def _bare(fact: E) -> E:
    """The fact as hooks were asked about it, before it was stored."""
    return replace(fact, session_id="", run_id="", at=0.0, seq=None)


def _verdict(standing: Standing) -> str:
    """What becomes of a call that stands so, "" if nothing is said of that."""
    if standing.end:
        by_people = standing.state.submitted and not standing.said
        return "" if by_people else said_by(standing.end)
    return "ask" if standing.task else "allow" if standing.cleared else ""


def _speaker(policy: Policy, standing: Standing) -> tuple[str, str, ToolCall]:
    """Who decided where a call stands (the rule, the hook that denied or asked, the tool's strategy, or the default),
    why, and the call as it was decided on.
    """
    call, said = standing.state.call, standing.said
    told = standing.end.content.removeprefix("Denied: ") if standing.end else ""
    if said is None:
        return _unnamed(policy, call), told, call
    why = said.reason if said.effect == _verdict(standing) else told
    spoke = [ruling.hook for ruling in said.rulings if ruling.verdict.casefold() == said.effect]
    by = f"rule {said.rule}" if said.rule else spoke[0] if spoke else _unnamed(policy, call)
    return by, why, call.given(said.args)


def _unnamed(policy: Policy, call: ToolCall) -> str:
    return "strategy" if call.name in policy.gate.strategies else "default"
