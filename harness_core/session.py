"""What is: a session as the sum of its facts.  Pure; folding is linear, and a Trace never changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

from harness_core import results
from harness_core.events import (
    ContextCompressed,
    Event,
    HITLDecided,
    HITLPending,
    HITLSubmitted,
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
from harness_core.tally import added as added
from harness_core.tally import notes_of, with_batch, with_ruling, worked
from harness_core.trace import Asked as Asked
from harness_core.trace import CallState as CallState
from harness_core.trace import Trace as Trace
from harness_core.trace import heard as heard
from harness_core.trace import told, works_in
from harness_core.types import Message, RunStatus, Usage, effect, readable


def fold(events: Iterable[Event]) -> Trace:
    """The session that these facts, in order, add up to."""
    folder = Folder()
    for event in events:
        folder.add(event)
    return folder.trace()


def _as_sent(prompt: Prompted) -> tuple[float, int]:
    """The order in which people wrote."""
    return prompt.sent_at, prompt.seq or 0


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
        self._inbox = [*so_far.inbox]
        self._run = so_far.run
        self._seen = so_far.run  # the run that was handed out last
        self._said = so_far.messages  # the messages that were handed out last
        self._batch = {state.call.call_uuid: state for state in so_far.batch}
        self._rules = {rule.id: rule for rule in so_far.rules}
        self._answer = so_far.answer
        self._usage = so_far.usage
        self._unpriced = so_far.unpriced
        self._goal = so_far.goal
        self._notes = [*so_far.notes]
        self._heard = so_far.heard
        self._edits: list[tuple[int, Prompted]] = []  # (the edit, the prompt before it), since hooks were last asked
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
            inbox=tuple(self._inbox),
            run=self._run,
            batch=tuple(self._batch.values()),
            rules=tuple(self._rules.values()),
            answer=self._answer,
            usage=self._usage,
            goal=self._goal,
            unpriced=self._unpriced,
            notes=tuple(self._notes),
            heard=self._heard,
            runs=self._runs,
            now=now,
            settled=self._settled,
            status=self._status,
        )

    def ledger(self) -> Ledger:
        """The sum so far, but for the messages. Only while no batch is open."""
        self._seen = self._run
        return Ledger(
            tuple(self._inbox),
            self._run,
            tuple(self._rules.values()),
            self._answer,
            self._usage,
            self._unpriced,
            tuple(self._notes),
            self._heard,
            self._runs,
            self._status,
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
                self._amended(event)
            case PromptHeard():
                self._ruled_on(event)
            case RunStart():
                self._run_started(event)
            case ReasonEnd():
                self._reasoned(event)
            case ModelFailed() if self._run:
                failures = (*self._run.failures, event)
                self._change(failures=failures, upto=max(self._run.upto, event.upto))
            case HookRuled():
                self._ruled(event)
            case Inspected(call_uuid=uuid):
                self._call(uuid, lambda c: replace(c, inspections={**c.inspections, event.args_digest: event.found}))
                self._of_child(uuid, lambda one: replace(one, inspected=(*one.inspected, event)))
            case HITLPending():
                self._suspended(event)
            case HITLSubmitted():
                self._submitted(event)
            case HITLDecided(call_id=uuid):
                self._call(uuid, lambda c: replace(c, decided=event))
                self._of_child(uuid, lambda one: replace(one, decided=event))
            case ToolCallStart(call=call):
                self._call(call.call_uuid, lambda c: replace(c, started=event))
            case ToolCallEnd():
                self._ended(event)
            case RuleChanged(change="added", rule=rule):
                self._rules[rule.id] = rule
            case RuleChanged(change="removed", rule=rule):
                self._rules.pop(rule.id, None)
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
            object.__setattr__(self._run, name, value)

    # -- prompts -------------------------------------------------------------------------------------------------------

    def _prompted(self, event: Prompted) -> None:
        self._inbox.append(event)
        self._inbox.sort(key=_as_sent)
        if self._run:
            self._change(rejected={}, recent=(), refused={}, heard=self._run.steps)

    def _amended(self, event: PromptAmended) -> None:
        amended = {p.seq: p for p in self._inbox if p.ref == event.ref}
        self._edits += [(self._seq, p) for p in amended.values()]
        self._heard = tuple(seq for seq in self._heard if seq not in amended)
        if event.text is None:
            self._inbox = [p for p in self._inbox if p.ref != event.ref]
        else:
            self._inbox = [replace(p, text=event.text) if p.ref == event.ref else p for p in self._inbox]

    def _ruled_on(self, event: PromptHeard) -> None:
        self._inbox = [replace(p, text=event.text) if p.seq == event.prompt else p for p in self._inbox]
        self._heard = (*self._heard, event.prompt)
        self._edits = [(at, before) for at, before in self._edits if before.seq != event.prompt]

    def _deliver(self, upto: int) -> None:
        """Take over what a request held that was built from these facts: what was edited or withdrawn while the model
        had it already is in the history as the model read it.
        """
        if not (self._inbox or self._heard or self._edits):
            return
        read = {before.seq: before for at, before in reversed(self._edits) if (before.seq or 0) <= upto < at}
        current = {p.seq: p for p in self._inbox if (p.seq or 0) <= upto}
        held = sorted((current | read).values(), key=_as_sent)
        self._forget(upto)
        if held and self._goal is None:
            self._goal = len(self._messages)
        self._messages.extend(heard(p) for p in held)

    def _forget(self, upto: int) -> None:
        self._inbox = [p for p in self._inbox if (p.seq or 0) > upto]
        self._heard = tuple(seq for seq in self._heard if seq > upto)
        self._edits = [(at, before) for at, before in self._edits if (before.seq or 0) > upto]

    # -- the run -------------------------------------------------------------------------------------------------------

    def _run_started(self, event: RunStart) -> None:
        run = self._run
        if run is None:
            self._run = Run(
                event.run_id, event.requested_by, event.attempt, self._seq, event.at, policy=event.policy_digest
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
        self._deliver(event.upto)
        upto = max(self._run.upto, event.upto)
        self._change(steps=self._run.steps + 1, failures=(), last=event, upto=upto, direct="")
        self._spent(event.usage)
        self._batch, self._settled = {call.call_uuid: CallState(call) for call in event.calls}, ()
        if not event.calls and event.text.strip():
            self._messages.append(Message("assistant", event.text))

    def _spent(self, usage: Usage, unpriced: Usage | None = None) -> None:
        if unpriced is None:
            unpriced = usage if usage.cost is None else Usage()
        self._usage, self._unpriced = added(self._usage, usage), added(self._unpriced, unpriced)
        if run := self._run:
            self._change(usage=added(run.usage, usage), unpriced=added(run.unpriced, unpriced))

    def _run_ended(self, event: RunEnd) -> None:
        run = self._run
        if run is None:
            return
        for state in list(self._batch.values()):  # every call has a result, whatever ended the run
            if state.end is None:
                call, unseen = state.call, results.child_left if state.child else results.unknown
                self._ended(unseen(call) if state.started else results.not_run(call, "the run ended before"))
        self._leave(max(run.began, run.upto))
        if event.status == "stopped" and run.stop:
            self._inbox = [p for p in self._inbox if (p.seq or 0) > (run.stop.seq or 0)]
        self._answer, self._status = event.answer, event.status
        self._notes = []  # nobody is left to read them
        self._run = None

    def _leave(self, upto: int) -> None:
        """What this run was asked, it was asked, even if no model ever answered: it must not begin the next run. But
        what somebody has edited since is a new question, which no model has read and no hook has seen.
        """
        edited = {before.seq for at, before in self._edits if at > upto}
        kept = [p for p in self._inbox if p.seq in edited]
        self._inbox = [p for p in self._inbox if p.seq not in edited]
        self._edits = []
        self._deliver(upto)
        self._inbox = sorted((*self._inbox, *kept), key=_as_sent)

    # -- the batch -----------------------------------------------------------------------------------------------------

    def _call(self, call_uuid: str, change: Callable[[CallState], CallState]) -> None:
        if call_uuid in self._batch:
            self._batch[call_uuid] = change(self._batch[call_uuid])

    def _of_child(self, call_uuid: str, change: Callable[[Asked], Asked]) -> None:
        """Change the newest question about a sub-agent's call, if it is that."""
        for uuid, state in self._batch.items():
            places = [n for n, one in enumerate(state.asked) if one.task.call_uuid == call_uuid]
            if places:
                asked = [*state.asked]
                asked[places[-1]] = change(asked[places[-1]])
                self._batch[uuid] = replace(state, asked=tuple(asked))

    def _suspended(self, event: HITLPending) -> None:
        for task in event.tasks:
            if task.session:
                owners = [c.call.call_uuid for c in self._batch.values() if works_in(c, task.session)]
                for uuid in owners:
                    self._call(uuid, lambda c, task=task: replace(c, asked=(*c.asked, Asked(task))))  # type: ignore[misc]
                continue
            self._call(
                task.call_uuid,
                lambda c, task=task: replace(c, tasks=(*c.tasks, task), submitted=None, decided=None),  # type: ignore[misc]
            )
        if self._run and not self._run.suspended:
            self._change(suspended=True, paused_at=event.at)

    def _submitted(self, event: HITLSubmitted) -> None:
        for uuid, state in self._batch.items():
            if state.task and state.task.fingerprint == event.fingerprint and state.submitted is None:
                self._batch[uuid] = replace(state, submitted=event)
            for one in state.asked:
                if one.task.fingerprint == event.fingerprint and one.submitted is None:
                    self._of_child(one.task.call_uuid, lambda one: replace(one, submitted=event))

    def _ended(self, event: ToolCallEnd) -> None:
        self._of_child(event.call_uuid, lambda one: replace(one, end=event))
        if event.outcome == "rejected":
            self._rejected(event.call_uuid)
        if event.call_uuid not in self._batch:
            return
        self._call(event.call_uuid, lambda c: replace(c, end=event))
        self._spent(event.usage, event.unpriced)
        state = self._batch.get(event.call_uuid)
        if state and self._run and event.outcome == "ok":
            self._run = worked(self._run, state.call, event.at)
        if self._batch and all(c.end for c in self._batch.values()):
            self._settle()

    def _rejected(self, call_uuid: str) -> None:
        """What a person rejected is refused again in this run, also where a sub-agent had asked for it."""
        rejected: dict[str, str] = {}
        for state in self._batch.values():
            for one in state.questions:
                if one.submitted and one.task.call_uuid == call_uuid:
                    rejected[effect(one.task.tool_name, one.task.args)] = one.submitted.by
                    if state.call.call_uuid == call_uuid:
                        rejected[state.call.effect] = one.submitted.by
        if rejected and self._run:
            self._change(rejected={**self._run.rejected, **rejected})

    def _settle(self) -> None:
        last = self._run.last if self._run else None
        calls = tuple(c.call for c in self._batch.values())
        self._messages.append(Message("assistant", last.text if last else "", calls))
        for state in self._batch.values():
            said = state.end.content if state.end else ""
            self._messages.append(Message("tool", readable(said), call_uuid=state.call.call_uuid))
        if self._run:
            self._run = with_batch(self._run, self._batch.values())
        self._batch, self._settled = {}, tuple(self._batch.values())

    # -- the context ---------------------------------------------------------------------------------------------------

    def _compressed(self, event: ContextCompressed) -> None:
        """Begin anew with what it carries, whether or not the facts before were read: both must come to the same."""
        ledger = event.ledger
        self._messages, self._said, self._goal = list(event.messages), event.messages, event.goal
        self._inbox, self._batch, self._settled = list(ledger.inbox), {}, ()
        self._rules = {rule.id: rule for rule in ledger.rules}
        self._answer, self._status = ledger.answer, ledger.status
        self._usage, self._unpriced = ledger.usage, ledger.unpriced
        self._edits = []  # no request was built from the facts before
        self._notes, self._heard, self._runs = list(ledger.notes), ledger.heard, ledger.runs
        self._run = ledger.run and replace(
            ledger.run, takeovers=0, compressed=self._seq, futile=0 if event.fits else ledger.run.futile + 1
        )
        self._spent(event.usage)

    # -- what hooks ruled ----------------------------------------------------------------------------------------------

    def _ruled(self, event: HookRuled) -> None:
        payload = event.payload
        self._notes += notes_of((event,))
        if event.verdict == "Stop" and "prompt" in payload:  # it was blocked: no model is to read it
            self._inbox = [p for p in self._inbox if p.seq != payload["prompt"]]
        if event.verdict == "Rewrite" and event.point == "before_tool":
            self._call(event.call_uuid, lambda c: replace(c, rewritten=payload["args"]))
        if self._run:
            self._run = with_ruling(self._run, event, self._batch.get(event.call_uuid))
