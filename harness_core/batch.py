"""What the open batch does next, from where its calls stand.  Pure; react.py explains the order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

from harness_core import results
from harness_core.delegate import at_work, child_step, handed_over, over
from harness_core.events import RELEASE, Event, HITLDecided, HITLSubmitted, HookRuled, Run, ToolCallEnd
from harness_core.hitl import Approve, Expired, HITLTask, Reject, edited
from harness_core.permissions.judge import agrees, judge, refusal
from harness_core.session import CallState, Trace
from harness_core.standing import Standing, asking_is_over, decided_end, last_args, note_on, standing_of
from harness_core.steps import (
    Act,
    Apply,
    Close,
    Delegate,
    End,
    Expiry,
    Look,
    Policy,
    Rest,
    Settle,
    Step,
    Suspend,
)
from harness_core.types import same

NO_EXPIRY: Final = Expiry(math.inf)


def batch_step(trace: Trace, run: Run, policy: Policy, now: float) -> Step:
    """The first that applies of what react.py lists."""
    if working := at_work(trace):
        return child_step(working, trace, policy, now, note_on(working, last_args(working, working.call.args)))
    open_calls = [c for c in trace.batch if c.end is None]
    standings = [standing_of(c, trace, run, policy, now) for c in open_calls]
    if looks := tuple((s.state.call, s.look) for s in standings if s.look is not None):
        return Look(looks)
    waiting = [c for c in open_calls if c.waiting and c.task]
    if facts := next(filter(None, (settled(c, trace, policy, now) for c in waiting)), ()):
        return Settle(tuple(facts))
    if tasks := tuple(s.task for s in standings if s.task):
        return Suspend(tasks, tuple(r for s in standings if s.task for r in s.rulings))
    if waiting:
        return Rest(min((c.task.expires_at for c in waiting if c.task and c.task.expires_at is not None), default=None))
    if undone := [c for c in open_calls if c.submitted and not c.decided]:
        return _applied(undone)
    return _next_call(standings, trace, policy)


def ended_by_decision(trace: Trace, policy: Policy) -> Step | None:
    """A reject that ends the run, or an expiry that halts it. Either stands over whatever the other calls came to. What
    was decided so about a sub-agent's call ends the runs that it works in, too, once it has come to its own end.
    """
    for state in trace.batch:
        if state.end or not state.submitted or not state.task:
            continue
        if ending := _ending(state.task, state.submitted, policy, alone=_only_question(trace)):
            if ending[0].status == "rejected" and not state.decided:
                return _applied([state])
            return _ended(ending, trace, _own(state))
    working = at_work(trace)
    if working and over(working, policy):
        for one in working.asked:
            if one.submitted and (ending := _ending(one.task, one.submitted, policy)):
                return _ended(ending, trace)
    return None


def _ending(task: HITLTask, submitted: HITLSubmitted, policy: Policy, *, alone: bool = False) -> tuple[End, str] | None:
    """The end that this decision brings, and why all that is open is left; None if the run goes on.

    alone: no other call of the batch was put to people. Then a reject ends the run unless the person chose otherwise:
    the seed's rule.
    """
    match submitted.decision:
        case Expired() if _expiry(policy, task.tool_name).then == "halt":
            text = f"Nobody decided about {task.tool_name} in time, so the run was halted."
            return End("stopped", text, "expiry"), "the run was halted"
        case Reject(comment=comment, end=end) if alone if end is None else end:
            why = f"{results.who(submitted.by)} rejected another call and ended the run"
            return End("rejected", results.rejection(comment, submitted.by), quiet=True), why
    return None


def _ended(ending: tuple[End, str], trace: Trace, own: Mapping[str, ToolCallEnd] | None = None) -> End:
    end, why = ending
    return replace(end, ends=left_open(trace, why, own))


def _only_question(trace: Trace) -> bool:
    return sum(1 for state in trace.batch if state.tasks) == 1


def _own(state: CallState) -> Mapping[str, ToolCallEnd]:
    end = decided_end(state)
    return {state.call.call_uuid: end} if end else {}


def _expiry(policy: Policy, tool: str) -> Expiry:
    return policy.expiries.get(tool, NO_EXPIRY)


def expired(task: HITLTask, now: float) -> bool:
    """Whether the task's time is over."""
    return task.expires_at is not None and now >= task.expires_at


def settled(state: CallState, trace: Trace, policy: Policy, now: float) -> Sequence[Event]:
    """What the clock or a changed rule does to a waiting call, judged as it was shown: expiry, refusal, release."""
    task = state.task
    assert task is not None
    if expired(task, now):
        return (expiry_of(task),)
    if task.kind != "approve" or task.tool_name not in policy.gate.tools:
        return ()
    shown = state.call.given(task.args)
    if denied := refusal(policy.gate, trace, shown, state.inspection):
        return (*denied.rulings, results.denied(state.call, denied.reason))
    verdict = judge(policy.gate, trace, shown, state.inspection)
    if verdict.effect != "allow" or not same(verdict.args, task.args):
        return ()
    by = f"rule {verdict.rule.id}" if verdict.rule else "policy"
    approve = Approve(comment=f"Released: {verdict.reason}")
    return (HITLSubmitted(task.fingerprint, approve, by, RELEASE, key=task.fingerprint),)


def expiry_of(task: HITLTask) -> HITLSubmitted:
    """The fact that nobody decided in time."""
    return HITLSubmitted(task.fingerprint, Expired(), "clock", "expired", key=task.fingerprint)


def _applied(states: Iterable[CallState]) -> Apply:
    facts, approvals = [], []
    for state in states:
        submitted, task = state.submitted, state.task
        assert submitted is not None
        assert task is not None
        decision = submitted.decision
        approved = edited(task.args, decision) if isinstance(decision, Approve) else task.args
        comment = getattr(decision, "comment", None) or getattr(decision, "result", None) or ""
        facts.append(
            HITLDecided(
                call_id=state.call.call_uuid,
                tool_name=state.call.name,
                decision=decision,
                by=submitted.by,
                comment=comment,
                proposed=state.call.args,
                approved=approved,
                effective=approved,
            )
        )
        if isinstance(decision, Approve) and decision.always_allow:
            approvals.append((state.call.name, approved))
    return Apply(tuple(facts), tuple(approvals))


def _next_call(standings: Sequence[Standing], trace: Trace, policy: Policy) -> Act | Close | Delegate:
    # What will not run is answered first: once a call has started, asking is over, and what is refused now must not
    # find the door open because a rule went, or a person spoke, meanwhile.
    for standing in standings:
        if standing.end:
            return Close(standing.state.call, standing.end, standing.rulings)
    rulings: tuple[HookRuled, ...] = ()
    if not asking_is_over(trace):  # what hooks ruled on any of the batch counts from here on, so it goes on record
        rulings = tuple(r for s in standings if s.cleared for r in s.cleared.rulings)
        standings = [replace(s, cleared=s.cleared and replace(s.cleared, rulings=())) for s in standings]
    first = standings[0]
    together = [s.cleared for s in takewhile(lambda s: _together(s, policy), standings) if s.cleared]
    assert first.cleared is not None
    if first.cleared.call.name == policy.delegate:
        return handed_over(first.cleared, trace, policy, rulings)
    return Act(tuple(together) or (first.cleared,), rulings)


def _together(standing: Standing, policy: Policy) -> bool:
    cleared = standing.cleared
    return cleared is not None and agrees(policy.gate.tools[cleared.call.name].repeatable, cleared.args)


def left_open(trace: Trace, why: str, but: Mapping[str, ToolCallEnd] | None = None) -> tuple[ToolCallEnd, ...]:
    """Results for all calls that have none: what ran unseen is unknown, the rest was not run."""
    given = but or {}
    return tuple(given.get(c.call.call_uuid) or _left(c, why) for c in trace.batch if c.end is None)


def _left(state: CallState, why: str) -> ToolCallEnd:
    if state.child:
        return results.child_left(state.call, why)
    return results.unknown(state.call, f"{why} while it ran") if state.started else results.not_run(state.call, why)
