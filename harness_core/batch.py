"""Where each call of the open batch stands, and what the batch does next.  Pure; react.py explains the order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from harness_core import results
from harness_core.delegate import at_work, child_step, handed_over, over
from harness_core.events import Event, HITLDecided, HITLSubmitted, HookRuled, Run, ToolCallEnd
from harness_core.hitl import Approve, Expired, HITLTask, Reject, edited, fingerprint
from harness_core.permissions.judge import Judgement, judge, last_look, refusal, says
from harness_core.session import CallState, Trace
from harness_core.steps import (
    Act,
    Apply,
    Cleared,
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
from harness_core.types import Args, same


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where one open call stands. Exactly one of the fields beside `state` and `rulings` is set; none means waiting."""

    state: CallState
    look: Args | None = None
    task: HITLTask | None = None
    cleared: Cleared | None = None
    end: ToolCallEnd | None = None
    rulings: tuple[HookRuled, ...] = ()


def batch_step(trace: Trace, run: Run, policy: Policy, now: float) -> Step:
    if working := at_work(trace):
        return child_step(working, trace, policy, now, _note(working, _last_args(working, working.call.args)))
    open_calls = [c for c in trace.batch if c.end is None]
    standings = [_standing(c, trace, run, policy, now) for c in open_calls]
    if looks := tuple((s.state.call, s.look) for s in standings if s.look is not None):
        return Look(looks)
    waiting = [c for c in open_calls if c.waiting and c.task]
    if facts := tuple(f for c in waiting for f in _settled(c, trace, policy, now)):
        return Settle(facts)
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
    end = _decided_end(state)
    return {state.call.call_uuid: end} if end else {}


def _decided_end(state: CallState) -> ToolCallEnd | None:
    """The result that a decision gives the call without running it, if it does."""
    if state.submitted is None:
        return None
    kind = state.task.kind if state.task else "approve"
    return results.decided_end(state.call, state.submitted, kind, _note(state, _last_args(state, state.call.args)))


def _standing(state: CallState, trace: Trace, run: Run, policy: Policy, now: float) -> _Standing:
    call = state.call
    tool = policy.gate.tools.get(call.name)
    if lost(state):
        return _lost(state, trace, run, policy, now)
    if state.submitted:
        return _decided(state, trace, policy)
    if state.waiting:
        return _Standing(state)
    if tool is None:
        return _Standing(state, end=results.no_such_tool(call, policy.gate.tools))
    if problem := call.problem or says(tool.check, call.args, results.UNCHECKED):
        return _Standing(state, end=results.unusable(call, problem))
    if _asking_is_over(trace):
        verdict = last_look(policy.gate, trace, replace(call, args=state.judged), state.inspection)
    else:
        verdict = judge(policy.gate, trace, call, state.inspection)
    if problem := says(tool.check, verdict.args, results.UNCHECKED):
        return _Standing(state, end=results.unusable(call, problem), rulings=verdict.rulings)
    found = state.inspection(verdict.args)
    if tool.inspects and found is None:
        return _Standing(state, look=verdict.args)
    if found and found.problem:
        return _Standing(state, end=results.unusable(call, found.problem))
    return _judged(state, verdict, trace, run, policy, now)


def _asking_is_over(trace: Trace) -> bool:
    """Whether a call of the batch has started: from then on calls run as they were judged before, or are refused."""
    return any(c.started for c in trace.batch)


def _judged(state: CallState, verdict: Judgement, trace: Trace, run: Run, policy: Policy, now: float) -> _Standing:
    call = state.call
    if verdict.effect == "deny":
        return _Standing(state, end=results.denied(call, verdict.reason), rulings=verdict.rulings)
    shown = replace(call, args=verdict.args)
    rejected = {**policy.rejected, **run.rejected}
    if shown.effect in rejected:
        return _Standing(state, end=results.rejected_again(call, rejected[shown.effect]), rulings=verdict.rulings)
    if verdict.effect == "allow":
        return _Standing(state, cleared=Cleared(call, verdict.args, rulings=verdict.rulings))
    if not policy.can_ask:
        return _Standing(state, end=results.nobody_to_ask(call, verdict.reason), rulings=verdict.rulings)
    task = _task(state, verdict.args, verdict.reason, run, policy, now)
    return _Standing(state, task=replace(task, may_always=verdict.may_always), rulings=verdict.rulings)


def _decided(state: CallState, trace: Trace, policy: Policy) -> _Standing:
    """A decided call never asks again. A stored reject or skip stands; an approval, unless a deny came after it."""
    call, submitted = state.call, state.submitted
    assert submitted is not None
    if end := _decided_end(state):
        return _Standing(state, end=end)
    shown = state.task.args if state.task else call.args
    args = edited(shown, submitted.decision) if isinstance(submitted.decision, Approve) else _last_args(state, shown)
    if call.name not in policy.gate.tools:
        return _Standing(state, end=results.no_such_tool(call, policy.gate.tools))
    if denied := refusal(policy.gate, trace, replace(call, args=args), state.inspection):
        end = results.denied(call, denied.reason)
        if state.started:  # to be run again, and it may have happened the first time
            end = results.unknown(call, f"it was started once, and may not be run again: {denied.reason}")
        return _Standing(state, end=end, rulings=denied.rulings)
    return _Standing(state, cleared=Cleared(call, args, _note(state, args)))


def _note(state: CallState, args: Args) -> str:
    """What tells the model that a person changed the arguments that it was first asked about; "" if nobody did."""
    if not state.tasks or state.tasks[0].kind != "approve" or same(state.tasks[0].args, args):
        return ""
    by = state.submitted.by if state.submitted and isinstance(state.submitted.decision, Approve) else ""
    return results.edited_note(by, args)


def _last_args(state: CallState, shown: Args) -> Args:
    return state.started.effective if state.started else shown


def _lost(state: CallState, trace: Trace, run: Run, policy: Policy, now: float) -> _Standing:
    """A repeatable call is repeated; any other is put to a person; where nobody can be asked, the model is told."""
    if state.waiting:
        return _Standing(state)
    call = state.call
    args = _last_args(state, call.args)
    tool = policy.gate.tools.get(call.name)
    if tool and says(tool.repeatable, args, False):
        if denied := refusal(policy.gate, trace, replace(call, args=args), state.inspection):
            return _Standing(state, end=results.denied(call, denied.reason), rulings=denied.rulings)
        return _Standing(state, cleared=Cleared(call, args, _note(state, args)))
    if not policy.can_ask:
        return _Standing(state, end=results.unknown(call))
    reason = "it was started, and the process ended before anybody saw what came of it; it may still be running"
    return _Standing(state, task=replace(_task(state, args, reason, run, policy, now), kind="unknown"))


def _task(state: CallState, args: Args, reason: str, run: Run, policy: Policy, now: float) -> HITLTask:
    call = state.call
    found = state.inspection(args)
    expiry = policy.expiries.get(call.name)
    return HITLTask(
        call_uuid=call.call_uuid,
        tool_name=call.name,
        args=args,
        comment=reason,
        run_id=run.run_id,
        fingerprint=fingerprint(run.run_id, call.call_uuid, len(state.tasks), call.name, args),
        requested_by=run.requested_by,
        agent=policy.agent,
        preview=found.preview if found else "",
        preview_kind=found.preview_kind if found else "text",
        covers=found.covers if found else (),
        expires_at=now + expiry.seconds if expiry else None,
    )


def _expiry(policy: Policy, tool: str) -> Expiry:
    return policy.expiries.get(tool, Expiry(0.0))


def expired(task: HITLTask, now: float) -> bool:
    """Whether the task's time is over."""
    return task.expires_at is not None and now >= task.expires_at


def _settled(state: CallState, trace: Trace, policy: Policy, now: float) -> Sequence[Event]:
    """What the clock or a changed rule does to a waiting call, judged as it was shown: expiry, refusal, release."""
    task = state.task
    assert task is not None
    if expired(task, now):
        return (expiry_of(task),)
    if task.kind != "approve" or task.tool_name not in policy.gate.tools:
        return ()
    shown = replace(state.call, args=task.args)
    if denied := refusal(policy.gate, trace, shown, state.inspection):
        return (*denied.rulings, results.denied(state.call, denied.reason))
    verdict = judge(policy.gate, trace, shown, state.inspection)
    if verdict.effect != "allow" or not same(verdict.args, task.args):
        return ()
    by = f"rule {verdict.rule.id}" if verdict.rule else "policy"
    approve = Approve(comment=f"Released: {verdict.reason}")
    return (HITLSubmitted(task.fingerprint, approve, by, "release", key=task.fingerprint),)


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


def _next_call(standings: Sequence[_Standing], trace: Trace, policy: Policy) -> Act | Close | Delegate:
    # What will not run is answered first: once a call has started, asking is over, and what is refused now must not
    # find the door open because a rule went, or a person spoke, meanwhile.
    for standing in standings:
        if standing.end:
            return Close(standing.state.call, standing.end, standing.rulings)
    rulings: tuple[HookRuled, ...] = ()
    if not _asking_is_over(trace):  # what hooks ruled on any of the batch counts from here on, so it goes on record
        rulings = tuple(r for s in standings if s.cleared for r in s.cleared.rulings)
        standings = [replace(s, cleared=s.cleared and replace(s.cleared, rulings=())) for s in standings]
    first = standings[0]
    together = [s.cleared for s in takewhile(lambda s: _together(s, policy), standings) if s.cleared]
    assert first.cleared is not None
    if first.cleared.call.name == policy.delegate:
        return handed_over(first.cleared, trace, policy, rulings)
    return Act(tuple(together) or (first.cleared,), rulings)


def _together(standing: _Standing, policy: Policy) -> bool:
    cleared = standing.cleared
    return cleared is not None and says(policy.gate.tools[cleared.call.name].repeatable, cleared.args, False)


def left_open(trace: Trace, why: str, but: Mapping[str, ToolCallEnd] | None = None) -> tuple[ToolCallEnd, ...]:
    """Results for all calls that have none: what ran unseen is unknown, the rest was not run."""
    given = but or {}
    return tuple(given.get(c.call.call_uuid) or _left(c, why) for c in trace.batch if c.end is None)


def _left(state: CallState, why: str) -> ToolCallEnd:
    if state.child:
        return results.child_left(state.call, why)
    return results.unknown(state.call, f"{why} while it ran") if state.started else results.not_run(state.call, why)


def lost(state: CallState) -> bool:
    """Started, no end, and nobody has decided since: what came of it is not known."""
    if state.started is None or state.end is not None:
        return False
    return state.submitted is None or (state.submitted.seq or 0) < (state.started.seq or 0)
