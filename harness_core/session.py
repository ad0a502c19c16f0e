"""What is: a session as the sum of its facts.  Pure; folding is linear, and a Trace never changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

from harness_core import results
from harness_core.events import (
    ContextCompressed,
    Event,
    HITLDecided,
    HITLPending,
    HITLSubmitted,
    HITLVoted,
    HookRuled,
    Inspected,
    Ledger,
    ModelFailed,
    PolicyInForce,
    PromptAmended,
    Prompted,
    PromptHeard,
    ReasonEnd,
    RuleChanged,
    Run,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.frozen import shallow
from harness_core.inbox import Inbox
from harness_core.open_batch import OpenBatch
from harness_core.tally import added as added
from harness_core.tally import notes_of, unpriced, with_batch, with_ruling, worked
from harness_core.trace import Asked as Asked
from harness_core.trace import CallState as CallState
from harness_core.trace import Trace as Trace
from harness_core.trace import heard as heard
from harness_core.trace import told
from harness_core.types import Message, RunStatus, Usage, readable


def fold(events: Iterable[Event]) -> Trace:
    """The session that these facts, in order, add up to."""
    folder = Folder()
    for event in events:
        folder.add(event)
    return folder.trace()


def after(trace: Trace, facts: Iterable[Event]) -> Trace:
    """The session that a trace and further facts add up to."""
    folder = Folder(trace)
    for fact in facts:
        folder.add(fact)
    return folder.trace(trace.now)


class Folder:
    """Adds facts up one by one. What it has handed out never changes; inside are lists, and a run that is changed in
    place until somebody sees it, so that a long history stays linear.
    """

    def __init__(self, so_far: Trace = Trace()) -> None:  # noqa: B008 (frozen)
        self._session_id = so_far.session_id
        self._seq = so_far.seq
        self._messages = [*so_far.messages]
        self._inbox = Inbox(so_far.inbox, so_far.heard)
        self._run = so_far.run
        self._seen = so_far.run  # the run that was handed out last
        self._said = so_far.messages  # the messages that were handed out last
        self._batch = OpenBatch(so_far.batch)
        self._rules = dict.fromkeys(so_far.rules)
        self._answer = so_far.answer
        self._usage = so_far.usage
        self._unpriced = so_far.unpriced
        self._goal = so_far.goal
        self._notes = [*so_far.notes]
        self._runs = so_far.runs
        self._at = 0.0  # of the fact before
        self._settled = so_far.settled
        self._status: RunStatus | Literal[""] = so_far.status

    def trace(self, now: float = 0.0) -> Trace:
        """The sum so far. now: see Trace."""
        self._seen = self._run
        if len(self._said) != len(self._messages):  # they only grow, but for a compression
            self._said = tuple(self._messages)
        return Trace(
            session_id=self._session_id,
            seq=self._seq,
            messages=self._said,
            inbox=tuple(self._inbox.prompts),
            run=self._run,
            batch=self._batch.states,
            rules=tuple(self._rules),
            answer=self._answer,
            usage=self._usage,
            goal=self._goal,
            unpriced=self._unpriced,
            notes=tuple(self._notes),
            heard=self._inbox.heard,
            runs=self._runs,
            now=now,
            settled=self._settled,
            status=self._status,
        )

    def ledger(self) -> Ledger:
        """The sum so far, but for the messages. Only while no batch is open."""
        self._seen = self._run
        edited = self._inbox.edited(self._run.read_upto) if self._run else ()
        return Ledger(
            inbox=tuple(self._inbox.prompts),
            run=self._run,
            rules=tuple(self._rules),
            answer=self._answer,
            usage=self._usage,
            unpriced=self._unpriced,
            notes=tuple(self._notes),
            heard=self._inbox.heard,
            runs=self._runs,
            status=self._status,
            edited=tuple(sorted(edited)),
        )

    def add(self, event: Event) -> None:
        """Take in the next fact."""
        self._session_id = event.session_id or self._session_id
        self._seq = event.seq or self._seq
        if self._run and self._run.takeovers and not isinstance(event, RunStart | PolicyInForce):
            self._change(takeovers=0)
        match event:
            case Prompted():
                self._prompted(event)
            case PromptAmended():
                self._inbox.amend(event, self._seq)
            case PromptHeard():
                self._inbox.hear(event.prompt, event.text)
            case RunStart():
                self._run_started(event)
            case ReasonEnd():
                self._reasoned(event)
            case ModelFailed() if self._run:
                failures = (*self._run.failures, event)
                self._change(failures=failures, upto=max(self._run.upto, event.upto))
            case HookRuled():
                self._ruled(event)
            case Inspected():
                self._batch.inspected(event)
            case HITLPending():
                self._suspended(event)
            case HITLVoted():
                self._batch.voted(event)
            case HITLSubmitted():
                self._batch.submitted(event)
            case HITLDecided():
                self._batch.decided(event)
            case ToolCallStart():
                self._batch.started(event)
            case ToolCallEnd():
                self._ended(event)
            case RuleChanged(change="added", rule=rule):
                self._rules[rule] = None
            case RuleChanged(change="removed", rule=rule):
                self._rules.pop(rule, None)
            case PolicyInForce(digest=digest) if self._run:
                self._change(policy=digest)
            case StopRequested() if self._run and event.run_id == self._run.run_id and not self._run.stop:
                self._change(stop=event)
            case RunEnd():
                self._run_ended(event)
            case ContextCompressed():
                self._compressed(event)
        self._at = event.at

    def _change(self, **changes: Any) -> None:
        """Change the run that goes on: in place while nobody has seen it, since copies were half the cost of a fold."""
        if self._run and self._run is self._seen:
            self._run = replace(self._run, **changes)
            return
        for name, value in changes.items():
            object.__setattr__(self._run, name, shallow(value))

    # -- the run -------------------------------------------------------------------------------------------------------

    def _prompted(self, event: Prompted) -> None:
        self._inbox.add(event)
        if self._run:
            self._change(rejected={}, recent=(), refused={}, heard=self._run.steps)

    def _read(self, prompts: Sequence[Prompted]) -> None:
        if prompts and self._goal is None:
            self._goal = len(self._messages)
        self._messages.extend(map(heard, prompts))

    def _run_started(self, event: RunStart) -> None:
        run = self._run
        if run is None:
            self._run = Run(
                event.run_id,
                event.requested_by,
                event.attempt,
                self._seq,
                event.at,
                policy=event.policy_digest,
                rejected=event.rejected,
                spent=event.spent,
                outside=event.outside,
                outside_unpriced=event.outside_unpriced,
            )
            self._goal, self._status = None, ""
            self._runs += 1
            return
        # What it waited for people is not charged to it, nor is the time in which its process was gone.
        paused = run.paused + max(0.0, event.at - (run.paused_at if run.suspended else self._at))
        takeovers = run.takeovers + (not run.suspended)
        policy = event.policy_digest or run.policy
        self._change(suspended=False, takeovers=takeovers, attempt=event.attempt, paused=paused, policy=policy)

    def _reasoned(self, event: ReasonEnd) -> None:
        if self._run is None:
            return
        self._messages.extend(map(told, self._notes))
        self._notes = []
        self._read(self._inbox.deliver(event.upto))
        upto = max(self._run.upto, event.upto)
        self._change(steps=self._run.steps + 1, failures=(), last=event, upto=upto, direct="")
        self._spent(event.usage)
        self._batch, self._settled = OpenBatch(map(CallState, event.calls)), ()
        if not event.calls and event.text.strip():
            self._messages.append(Message("assistant", event.text))

    def _spent(self, usage: Usage, untold: Usage | None = None) -> None:
        """Count a usage. untold: the part of it whose cost nobody told, where that is not plain to see."""
        untold = unpriced(usage) if untold is None else untold
        self._usage, self._unpriced = added(self._usage, usage), added(self._unpriced, untold)
        if run := self._run:
            self._change(usage=added(run.usage, usage), unpriced=added(run.unpriced, untold))

    def _run_ended(self, event: RunEnd) -> None:
        run = self._run
        if run is None:
            return
        for state in self._batch.states:  # every call has a result, whatever ended the run
            if state.end is None:
                call, unseen = state.call, results.child_left if state.child else results.unknown
                self._ended(unseen(call) if state.started else results.not_run(call, "the run ended before"))
        self._read(self._inbox.leave(run.read_upto))
        if event.status == "stopped" and run.stop:
            self._inbox.withdraw(run.stop.seq or 0)
        self._answer, self._status = event.answer, event.status
        self._notes = []  # nobody is left to read them
        self._run = None

    # -- the batch -----------------------------------------------------------------------------------------------------

    def _suspended(self, event: HITLPending) -> None:
        self._batch.suspended(event)
        if self._run and not self._run.suspended:
            self._change(suspended=True, paused_at=event.at)

    def _ended(self, event: ToolCallEnd) -> None:
        self._batch.ended(event)
        # What a person rejected is refused again in this run.
        rejected = self._batch.rejections(event.call_uuid) if event.outcome == "rejected" else {}
        if rejected and self._run:
            self._change(rejected={**self._run.rejected, **rejected})
        state = self._batch.of(event.call_uuid)
        if state is None:
            return
        self._spent(event.usage, event.unpriced)
        if self._run and event.outcome == "ok":
            self._change(**worked(self._run, state.call, event.at))
        if self._batch.settled:
            self._settle()

    def _settle(self) -> None:
        last = self._run.last if self._run else None
        states = self._batch.states
        calls = tuple(state.call for state in states)
        self._messages.append(Message("assistant", last.text if last else "", calls))
        for state in states:
            said = state.end.content if state.end else ""
            self._messages.append(Message("tool", readable(said), call_uuid=state.call.call_uuid))
        if self._run:
            self._change(**with_batch(self._run, states))
        self._batch, self._settled = OpenBatch(), states

    # -- the context ---------------------------------------------------------------------------------------------------

    def _compressed(self, event: ContextCompressed) -> None:
        """Begin anew with what it carries, whether or not the facts before were read: both must come to the same."""
        ledger = event.ledger
        self._messages, self._said, self._goal = list(event.messages), event.messages, event.goal
        self._inbox = Inbox.carried(ledger, self._seq)
        self._batch, self._settled = OpenBatch(), ()
        self._rules = dict.fromkeys(ledger.rules)
        self._answer, self._status = ledger.answer, ledger.status
        self._usage, self._unpriced = ledger.usage, ledger.unpriced
        self._notes, self._runs = list(ledger.notes), ledger.runs
        self._run = ledger.run and replace(
            ledger.run, takeovers=0, compressed=self._seq, futile=0 if event.fits else ledger.run.futile + 1
        )
        self._spent(event.usage)

    # -- what hooks ruled ----------------------------------------------------------------------------------------------

    def _ruled(self, event: HookRuled) -> None:
        payload = event.payload
        self._notes += notes_of((event,))
        if event.verdict == "Stop" and "prompt" in payload:
            self._blocked(payload["prompt"])
        if event.verdict == "Rewrite" and event.point == "before_tool":
            self._batch.rewritten(event.call_uuid, payload["args"])
        if self._run:
            self._change(**with_ruling(self._run, event, self._batch.of(event.call_uuid)))

    def _blocked(self, prompt: int) -> None:
        """No model is to read it. What was said after it no hook has ruled on: the run that ends now was not asked."""
        later = self._inbox.block(prompt)
        if self._run and later:
            self._change(began=min(self._run.began, *((p.seq or 0) - 1 for p in later)))
