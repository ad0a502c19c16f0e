"""What a run does about a call that a sub-agent works on.  Pure.

A sub-agent is a session within a session: its journal is `<session>/<call_uuid>`, folded and decided by the same two
functions. The engine asks from the inside out: first what the sub-agent would do next, then, with that in hand, what
the session does. So the session's step is one of these, the first that applies:

    Close     the sub-agent is at its end, or its journal is gone: the call has its result
    Tell      what was decided here about its calls is handed down to it, and so is a stop
    Suspend   it asks people: its questions are copied into the session, where people see and decide them
    Report    its calls that people were asked about were decided or have results: the session's record says so, too
    Settle    a rule or the clock would decide about its calls: decided here, as everything is, and then handed down
    Rest      it rests, so the session does
    Within    it does its own next step

Every question is decided in the session's journal and nowhere else, so that the first decision wins there once and for
all; a copy says where its call is. Each of these facts is missing on one side until it is copied, and then it is not:
a process may die between any two, and whoever goes on sees what is missing.

What ends a run goes down first: the calls of a sub-agent end, then its run, then the call that it worked on. So it is
where a person ends it all by deciding on a sub-agent's call: the decision is handed down, the runs end from the inside
out, and no model is asked on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from harness_core import results
from harness_core.events import NO_USAGE, Event, HITLDecided, HookRuled, Run, StopRequested, ToolCallEnd, ToolCallStart
from harness_core.hooks import run_point
from harness_core.journal_ids import journal_of
from harness_core.session import Asked, CallState, Trace, added
from harness_core.steps import (
    Child,
    Cleared,
    Close,
    Delegate,
    End,
    Outset,
    Policy,
    Report,
    Rest,
    Settle,
    Step,
    Suspend,
    Tell,
    Within,
)
from harness_core.types import ToolCall

GONE = "its journal is gone"


def hired(facts: Iterable[Event], call_uuid: str) -> object:
    """The name of the agent that this call was handed to, None if it was not. facts: of the session of the call."""
    starts = (fact for fact in facts if isinstance(fact, ToolCallStart) and fact.call.call_uuid == call_uuid)
    return next((start.effective.get("agent") for start in starts if start.child), None)


def at_work(trace: Trace) -> CallState | None:
    """The call that a sub-agent works on now; there is one at a time."""
    return next((c for c in trace.batch if c.child and c.end is None), None)


def handed_over(cleared: Cleared, trace: Trace, policy: Policy, rulings: tuple[HookRuled, ...] = ()) -> Delegate:
    """The step that hands a call over which may run. rulings: on its batch, to go on record with it."""
    call = cleared.call.given(cleared.args)
    ruled = run_point("subagent_start", policy.gate.hooks, trace, call)
    return Delegate(cleared, journal_of(trace.session_id, call.call_uuid), (*rulings, *cleared.rulings, *ruled.rulings))


def outset_in(session: Trace, now: float) -> Outset:
    """With what the run of a sub-agent begins that works in this session."""
    run = session.run
    if run is None:
        return Outset()
    outside, unpriced = added(run.outside, session.usage), added(run.outside_unpriced, session.unpriced)
    return Outset((*run.spent, run.elapsed(now)), run.rejected, outside, unpriced)


def child_step(state: CallState, trace: Trace, policy: Policy, now: float, note: str = "") -> Step:
    """What to do about the call that a sub-agent works on. note: what tells the model of edited arguments."""
    child = _child_of(state, policy)
    if problem := child.problem:
        return _unseen(state) or _closed(state, results.given_up(state.call, problem), trace, policy, now)
    if copied := _passed_on(state, child.trace):
        return copied
    if over(state, policy):
        return _closed(state, _result(state, child.trace, note), trace, policy, now)
    if isinstance(child.step, Settle | Rest):
        return child.step
    return Within(state.child, child.step)


def over(state: CallState, policy: Policy) -> bool:
    """Whether the sub-agent that works on this call has come to its end, or cannot go on."""
    child = _child_of(state, policy)
    return bool(child.problem) or (bool(child.trace.status) and not child.trace.inbox)


def _child_of(state: CallState, policy: Policy) -> Child:
    """The sub-agent that works on this call, with the problem that its journal is gone where that is so."""
    child = policy.children.get(state.child, Child(Trace(), Rest()))
    return child if child.problem or child.trace.seq else replace(child, problem=GONE)


def down_first(step: Step, trace: Trace, policy: Policy) -> Step:
    """The step, unless it would end a run, or the call, whose sub-agent has not ended."""
    state = at_work(trace)
    if state is None or not (isinstance(step, End) or (isinstance(step, Close) and step.call == state.call)):
        return step
    child = _child_of(state, policy)
    if child.problem:
        return _unseen(state) or step
    if run := child.trace.run:
        by = trace.run.stop.by if trace.run and trace.run.stop else ""
        return Within(state.child, child.step) if run.stop else Tell(state.child, (StopRequested(run.run_id, by),))
    reports = _passed_on(state, child.trace)
    return reports if isinstance(reports, Report) else _with_result(step, state, child.trace)


def needs_no_start(step: Step, run: Run) -> bool:
    """Whether a step about a sub-agent goes on record without a word that the run goes on: it only passes on what was
    decided, or closes.
    """
    if isinstance(step, Within):
        return isinstance(step.step, End | Settle) or needs_no_start(step.step, run)
    if isinstance(step, Report):
        return not any(isinstance(fact, HITLDecided) for fact in step.facts)
    if isinstance(step, Tell):  # but a limit that stops it must still be reached when somebody works on the run again
        return bool(run.stop) or not any(isinstance(fact, StopRequested) for fact in step.facts)
    return False


# -- up and down -------------------------------------------------------------------------------------------------------


def _passed_on(state: CallState, child: Trace) -> Tell | Suspend | Report | None:
    """What one side knows and the other does not, if there is any."""
    theirs = {one.task.fingerprint: one for one in _questions(child)}
    pairs = [(one, theirs[one.task.fingerprint]) for one in state.asked if one.task.fingerprint in theirs]
    if down := tuple(fact for ours, its in pairs for fact in _down(ours, its)):
        return Tell(state.child, down)
    known = {one.task.fingerprint for one in state.asked}
    waiting = [one.task for one in theirs.values() if one.waiting and one.task.fingerprint not in known]
    if waiting:
        return Suspend(tuple(replace(task, session=task.session or state.child) for task in waiting))
    if up := tuple(fact for ours, its in pairs for fact in _up(ours, its)):
        return Report(up)
    return None


def _questions(child: Trace) -> Sequence[Asked]:
    return [one for state in (*child.settled, *child.batch) for one in state.questions]


def _down(ours: Asked, its: Asked) -> Iterable[Event]:
    if its.end:
        return
    if ours.end:
        yield _copy(ours.end)
    elif ours.submitted and not its.submitted:
        yield _copy(ours.submitted)
        yield from map(_copy, ours.inspected)


def _up(ours: Asked, its: Asked) -> Iterable[Event]:
    if its.decided and not ours.decided:
        yield _copy(its.decided)
    if its.end and not ours.end:
        yield replace(its.end, usage=NO_USAGE, unpriced=NO_USAGE, seq=None, session_id="", run_id="")


def _copy(fact: Event) -> Event:
    """The fact for another journal: it gets its own envelope there, and keeps its key."""
    return replace(fact, seq=None, session_id="", run_id="")


# -- the result --------------------------------------------------------------------------------------------------------


def _closed(state: CallState, end: ToolCallEnd, trace: Trace, policy: Policy, now: float) -> Close:
    started = state.started.at if state.started else now
    end = replace(end, seconds=round(max(now - started, 0.0), 3))
    call = state.call.given(state.started.effective) if state.started else state.call
    ruled = run_point("after_tool", policy.gate.hooks, trace, call, end)
    over = run_point("subagent_end", policy.gate.hooks, trace, call, ruled.value)
    return Close(state.call, ruled.value, (*ruled.rulings, *over.rulings))


def _result(state: CallState, child: Trace, note: str = "") -> ToolCallEnd:
    assert child.status
    name = str(state.started.effective.get("agent", "")) if state.started else ""
    end = results.answered(state.call, name, child.status, child.answer)
    return replace(end, content=note + end.content, usage=child.usage, unpriced=child.unpriced)


def _unseen(state: CallState) -> Report | None:
    """What is said of a sub-agent's calls that people were asked about, where nobody can look any more."""
    ends = []
    for one in {one.task.call_uuid: one for one in state.asked}.values():  # the newest question about each
        call = ToolCall(one.task.call_uuid, one.task.tool_name, one.task.args)
        begun = one.submitted or one.task.kind == "unknown"
        if one.end is None:
            ends.append(results.unknown(call, GONE) if begun else results.not_run(call, GONE))
    return Report(tuple(ends)) if ends else None


def _with_result(step: End | Close, state: CallState, child: Trace) -> End | Close:
    """With what the sub-agent came to, and what it used."""
    if not child.status:
        return step
    result = _result(state, child)
    if isinstance(step, Close):
        return replace(step, end=replace(step.end, usage=result.usage, unpriced=result.unpriced))
    return replace(step, ends=tuple(result if one.call_uuid == result.call_uuid else one for one in step.ends))
