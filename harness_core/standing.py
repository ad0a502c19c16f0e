"""Where one call of the open batch stands, on its way to a result.  Pure; react.py has the words for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness_core import results
from harness_core.events import HookRuled, Run, ToolCallEnd
from harness_core.hitl import Approve, HITLTask, edited, fingerprint
from harness_core.permissions.judge import Judgement, agrees, judge, last_look, misfit, people_for, refusal
from harness_core.session import CallState, Trace
from harness_core.steps import Cleared, Policy
from harness_core.types import Args, same


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one open call stands. Exactly one of look, task, cleared and end is set; none means waiting.

    said: what the gate said, if it was asked.
    """

    state: CallState
    look: Args | None = None
    task: HITLTask | None = None
    cleared: Cleared | None = None
    end: ToolCallEnd | None = None
    said: Judgement | None = None

    @property
    def rulings(self) -> tuple[HookRuled, ...]:
        """What hooks ruled on it, to go on record with what comes of it."""
        return self.said.rulings if self.said else ()


def standing_of(
    state: CallState, trace: Trace, run: Run, policy: Policy, now: float, *, looks: bool = True
) -> Standing:
    """Where an open call stands now. now: seconds since the epoch. looks: whether its tool can look at the world where
    it has not; if not, it is judged without.
    """
    call = state.call
    tool = policy.gate.tools.get(call.name)
    if _is_lost(state):
        return _lost(state, trace, run, policy, now)
    if state.submitted:
        return _decided(state, trace, policy)
    if state.waiting:
        return Standing(state)
    if tool is None:
        return Standing(state, end=results.no_such_tool(call, policy.gate.tools))
    if problem := call.problem or misfit(tool, call.args):
        return Standing(state, end=results.unusable(call, problem))
    if asking_is_over(trace):
        verdict = last_look(policy.gate, trace, call.given(state.judged), state.inspection)
    else:
        verdict = judge(policy.gate, trace, call, state.inspection)
    if verdict.args is not call.args and (problem := misfit(tool, verdict.args)):
        return Standing(state, end=results.unusable(call, problem), said=verdict)
    found = state.inspection(verdict.args)
    # What is denied as it stands stays so, and a look may tell others of it: of a host's name, whoever resolves it.
    if looks and tool.inspects and found is None and verdict.effect != "deny":
        return Standing(state, look=verdict.args)
    if found and found.problem:
        return Standing(state, end=results.unusable(call, found.problem), said=verdict)
    return _judged(state, verdict, trace, run, policy, now)


def asking_is_over(trace: Trace) -> bool:
    """Whether a call of the batch has started: from then on calls run as they were judged before, or are refused."""
    return any(c.started for c in trace.batch)


def _judged(state: CallState, verdict: Judgement, trace: Trace, run: Run, policy: Policy, now: float) -> Standing:
    call = state.call
    if verdict.effect == "deny":
        return Standing(state, end=results.denied(call, verdict.reason), said=verdict)
    shown = call.given(verdict.args)
    if run.rejected and shown.effect in run.rejected:
        return Standing(state, end=results.rejected_again(call, run.rejected[shown.effect]), said=verdict)
    if verdict.effect == "allow":
        return Standing(state, cleared=Cleared(call, verdict.args, rulings=verdict.rulings), said=verdict)
    if not policy.can_ask:
        return Standing(state, end=results.nobody_to_ask(call, verdict.reason), said=verdict)
    task = _task(state, verdict.args, verdict.reason, run, policy, now)
    asked = replace(task, may_always=verdict.may_always, people=verdict.people)
    return Standing(state, task=asked, said=verdict)


def _decided(state: CallState, trace: Trace, policy: Policy) -> Standing:
    """A decided call never asks again. A stored reject or skip stands; an approval, unless a deny came after it."""
    call, submitted = state.call, state.submitted
    assert submitted is not None
    if end := decided_end(state):
        return Standing(state, end=end)
    shown = state.task.args if state.task else call.args
    args = edited(shown, submitted.decision) if isinstance(submitted.decision, Approve) else last_args(state, shown)
    if call.name not in policy.gate.tools:
        return Standing(state, end=results.no_such_tool(call, policy.gate.tools))
    if denied := refusal(policy.gate, trace, call.given(args), state.inspection):
        return _refused(state, denied)
    return Standing(state, cleared=Cleared(call, args, note_on(state, args)))


def _refused(state: CallState, denied: Judgement) -> Standing:
    end = results.denied(state.call, denied.reason)
    if state.started:  # to be run again, and it may have happened the first time
        end = results.unknown(state.call, f"it was started once, and may not be run again: {denied.reason}")
    return Standing(state, end=end, said=denied)


def decided_end(state: CallState) -> ToolCallEnd | None:
    """The result that a decision gives the call without running it, if it does."""
    if state.submitted is None:
        return None
    kind = state.task.kind if state.task else "approve"
    return results.decided_end(state.call, state.submitted, kind, note_on(state, last_args(state, state.call.args)))


def _lost(state: CallState, trace: Trace, run: Run, policy: Policy, now: float) -> Standing:
    """A repeatable call is repeated; any other is put to a person; where nobody can be asked, the model is told."""
    if state.waiting:
        return Standing(state)
    call = state.call
    args = last_args(state, call.args)
    tool = policy.gate.tools.get(call.name)
    if tool and agrees(tool.repeatable, args):
        if denied := refusal(policy.gate, trace, call.given(args), state.inspection):
            return _refused(state, denied)
        return Standing(state, cleared=Cleared(call, args, note_on(state, args)))
    if not policy.can_ask:
        return Standing(state, end=results.unknown(call))
    reason = "it was started, and the process ended before anybody saw what came of it; it may still be running"
    wanted = people_for(policy.gate, trace, call.given(args), state.inspection)
    people = max(wanted, state.task.people if state.task else 1)
    return Standing(state, task=replace(_task(state, args, reason, run, policy, now), kind="unknown", people=people))


def _is_lost(state: CallState) -> bool:
    """Started, no end, and nobody has decided since: what came of it is not known."""
    if state.started is None or state.end is not None:
        return False
    return state.submitted is None or (state.submitted.seq or 0) < (state.started.seq or 0)


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


def note_on(state: CallState, args: Args) -> str:
    """What tells the model that a person changed the arguments that it was first asked about; "" if nobody did."""
    if not state.tasks or state.tasks[0].kind != "approve" or same(state.tasks[0].args, args):
        return ""
    by = state.submitted.by if state.submitted and isinstance(state.submitted.decision, Approve) else ""
    return results.edited_note(by, args)


def last_args(state: CallState, shown: Args) -> Args:
    """The arguments that the tool got, or those that were shown where it has not been started."""
    return state.started.effective if state.started else shown
