"""What is: a session as the sum of its facts.  Pure; folding is linear, and a Trace never changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from harness_core import results
from harness_core.events import (
    RECENT,
    ContextCompressed,
    Done,
    Event,
    HITLDecided,
    HITLPending,
    HITLSubmitted,
    HookRuled,
    Inspected,
    Ledger,
    ModelFailed,
    PromptAmended,
    Prompted,
    ReasonEnd,
    RuleChanged,
    Run,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import HITLTask
from harness_core.permissions.rule import PermissionRule
from harness_core.types import Args, Inspection, Message, ToolCall, Usage, canonical, digest, effect

MOST_FILES: Final = 20  # files of one message that the model is told of; ours
FILE_NAME: Final = 100  # characters of a name; ours


@dataclass(frozen=True, slots=True)
class CallState:
    """One call of the open batch, and all that happened to it. tasks: every question that was asked about it."""

    call: ToolCall
    inspections: Mapping[str, Inspection] = field(default_factory=dict)
    tasks: tuple[HITLTask, ...] = ()
    submitted: HITLSubmitted | None = None
    decided: HITLDecided | None = None
    started: ToolCallStart | None = None
    end: ToolCallEnd | None = None

    @property
    def task(self) -> HITLTask | None:
        """The newest question about this call."""
        return self.tasks[-1] if self.tasks else None

    @property
    def waiting(self) -> bool:
        """A person is asked, and nobody has answered."""
        return bool(self.tasks) and self.submitted is None and self.end is None

    def inspection(self, args: Args) -> Inspection | None:
        """What the tool saw for these arguments, if it has looked."""
        return self.inspections.get(digest(canonical(args)))


@dataclass(frozen=True, slots=True)
class Trace:
    """A session, frozen. messages: what model requests have held. inbox: prompts that none has held yet.

    batch: the calls of the last model message while any of them is open. answer: of the last run. goal: where in
    messages the prompt is that the last run began with, None if no request has held it yet. usage: of all model
    requests of the session; unpriced: of those whose cost nobody told.
    """

    session_id: str = ""
    seq: int = 0
    messages: tuple[Message, ...] = ()
    inbox: tuple[Prompted, ...] = ()
    run: Run | None = None
    batch: tuple[CallState, ...] = ()
    rules: tuple[PermissionRule, ...] = ()
    answer: str = ""
    usage: Usage = Usage()  # noqa: RUF009 (frozen)
    goal: int | None = None
    unpriced: Usage = Usage()  # noqa: RUF009 (frozen)

    @property
    def pending(self) -> tuple[HITLTask, ...]:
        """The questions that wait for a person, in model order."""
        return tuple(c.task for c in self.batch if c.waiting and c.task)

    @property
    def context(self) -> tuple[Message, ...]:
        """What the next model request holds."""
        return self.messages + tuple(heard(p) for p in self.inbox)

    def of(self, call_uuid: str) -> CallState | None:
        """The open batch's call with that id."""
        return next((c for c in self.batch if c.call.call_uuid == call_uuid), None)


def heard(prompt: Prompted) -> Message:
    """A prompt as the model hears it. Providers refuse an empty message, and a picture may come without a word."""
    said = [prompt.text] if prompt.text.strip() else []
    if prompt.files:
        said.append(f"(files: {_named(prompt.files)} — not readable here)")
    return Message("user", "\n".join(said) or "(no text)")


def _named(files: Sequence[str]) -> str:
    """Names of files in quotes that no name can close, on one line that none can end."""
    shown = ("".join(c if c.isprintable() else "·" for c in name[:FILE_NAME]).replace('"', "'") for name in files)
    more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
    return ", ".join(f'"{name or "no name"}"' for name in [*shown][:MOST_FILES]) + more


def fold(events: Iterable[Event]) -> Trace:
    """The session that these facts, in order, add up to."""
    folder = Folder()
    for event in events:
        folder.add(event)
    return folder.trace()


class Folder:
    """Adds facts up one by one. Lists inside, so that a long history stays linear; `trace()` hands out a copy."""

    def __init__(self) -> None:
        self._session_id = ""
        self._seq = 0
        self._messages: list[Message] = []
        self._inbox: list[Prompted] = []
        self._run: Run | None = None
        self._batch: dict[str, CallState] = {}
        self._rules: dict[str, PermissionRule] = {}
        self._answer = ""
        self._usage = Usage()
        self._unpriced = Usage()
        self._goal: int | None = None

    def trace(self) -> Trace:
        """The sum so far."""
        return Trace(
            session_id=self._session_id,
            seq=self._seq,
            messages=tuple(self._messages),
            inbox=tuple(self._inbox),
            run=self._run,
            batch=tuple(self._batch.values()),
            rules=tuple(self._rules.values()),
            answer=self._answer,
            usage=self._usage,
            goal=self._goal,
            unpriced=self._unpriced,
        )

    def ledger(self) -> Ledger:
        """The sum so far, but for the messages. Only while no batch is open."""
        rules = tuple(self._rules.values())
        return Ledger(tuple(self._inbox), self._run, rules, self._answer, self._usage, self._unpriced)

    def add(self, event: Event) -> None:
        """Take in the next fact."""
        self._session_id = event.session_id or self._session_id
        self._seq = event.seq or self._seq
        if self._run and self._run.takeovers and not isinstance(event, RunStart):
            self._run = replace(self._run, takeovers=0)
        match event:
            case Prompted():
                self._prompted(event)
            case PromptAmended():
                self._amended(event)
            case RunStart():
                self._run_started(event)
            case ReasonEnd():
                self._reasoned(event)
            case ModelFailed() if self._run:
                failures = (*self._run.failures, event)
                self._run = replace(self._run, failures=failures, upto=max(self._run.upto, event.upto))
            case HookRuled() if self._run:
                ruled = f"{event.hook} {event.verdict}"
                counts = {**self._run.ruled, ruled: self._run.ruled.get(ruled, 0) + 1}
                self._run = replace(self._run, ruled=counts)
            case Inspected(call_uuid=uuid):
                self._call(uuid, lambda c: replace(c, inspections={**c.inspections, event.args_digest: event.found}))
            case HITLPending():
                self._suspended(event)
            case HITLSubmitted():
                self._submitted(event)
            case HITLDecided(call_id=uuid):
                self._call(uuid, lambda c: replace(c, decided=event))
            case ToolCallStart(call=call):
                self._call(call.call_uuid, lambda c: replace(c, started=event))
            case ToolCallEnd():
                self._ended(event)
            case RuleChanged(change="added", rule=rule):
                self._rules[rule.id] = rule
            case RuleChanged(change="removed", rule=rule):
                self._rules.pop(rule.id, None)
            case StopRequested() if self._run and event.run_id == self._run.run_id and not self._run.stop:
                self._run = replace(self._run, stop=event)
            case RunEnd():
                self._run_ended(event)
            case ContextCompressed():
                self._compressed(event)

    # -- prompts -------------------------------------------------------------------------------------------------------

    def _prompted(self, event: Prompted) -> None:
        self._inbox.append(event)
        self._inbox.sort(key=lambda p: (p.sent_at, p.seq or 0))
        if self._run:
            self._run = replace(self._run, rejected={}, recent=(), heard=self._run.steps)

    def _amended(self, event: PromptAmended) -> None:
        if event.text is None:
            self._inbox = [p for p in self._inbox if p.ref != event.ref]
        else:
            self._inbox = [replace(p, text=event.text) if p.ref == event.ref else p for p in self._inbox]

    def _deliver(self, upto: int) -> None:
        held = [p for p in self._inbox if (p.seq or 0) <= upto]
        self._inbox = [p for p in self._inbox if (p.seq or 0) > upto]
        if held and self._goal is None:
            self._goal = len(self._messages)
        self._messages.extend(heard(p) for p in held)

    # -- the run -------------------------------------------------------------------------------------------------------

    def _run_started(self, event: RunStart) -> None:
        run = self._run
        if run is None:
            self._run = Run(event.run_id, event.requested_by, event.attempt, self._seq, event.at)
            self._goal = None
        elif run.suspended:
            self._run = replace(run, suspended=False, attempt=event.attempt)
        else:
            self._run = replace(run, takeovers=run.takeovers + 1, attempt=event.attempt)

    def _reasoned(self, event: ReasonEnd) -> None:
        if self._run is None:
            return
        self._deliver(event.upto)
        upto = max(self._run.upto, event.upto)
        self._run = replace(self._run, steps=self._run.steps + 1, failures=(), last=event, upto=upto)
        self._spent(event.usage)
        self._batch = {call.call_uuid: CallState(call) for call in event.calls}
        if not event.calls and event.text.strip():
            self._messages.append(Message("assistant", event.text))

    def _spent(self, usage: Usage) -> None:
        unpriced = usage if usage.cost is None else Usage()
        self._usage, self._unpriced = added(self._usage, usage), added(self._unpriced, unpriced)
        if run := self._run:
            self._run = replace(run, usage=added(run.usage, usage), unpriced=added(run.unpriced, unpriced))

    def _run_ended(self, event: RunEnd) -> None:
        run = self._run
        if run is None:
            return
        for state in list(self._batch.values()):  # every call has a result, whatever ended the run
            if state.end is None:
                call = state.call
                self._ended(results.unknown(call) if state.started else results.not_run(call, "the run ended before"))
        # What this run was asked, it was asked, even if no model ever answered: it must not begin the next run.
        self._deliver(max(run.began, run.upto))
        if event.status == "stopped" and run.stop:
            self._inbox = [p for p in self._inbox if (p.seq or 0) > (run.stop.seq or 0)]
        self._answer = event.answer
        self._run = None

    # -- the batch -----------------------------------------------------------------------------------------------------

    def _call(self, call_uuid: str, change: Callable[[CallState], CallState]) -> None:
        if call_uuid in self._batch:
            self._batch[call_uuid] = change(self._batch[call_uuid])

    def _suspended(self, event: HITLPending) -> None:
        for task in event.tasks:
            self._call(
                task.call_uuid,
                lambda c, task=task: replace(c, tasks=(*c.tasks, task), submitted=None, decided=None),  # type: ignore[misc]
            )
        if self._run:
            self._run = replace(self._run, suspended=True)

    def _submitted(self, event: HITLSubmitted) -> None:
        for uuid, state in self._batch.items():
            if state.task and state.task.fingerprint == event.fingerprint and state.submitted is None:
                self._batch[uuid] = replace(state, submitted=event)

    def _ended(self, event: ToolCallEnd) -> None:
        self._call(event.call_uuid, lambda c: replace(c, end=event))
        state = self._batch.get(event.call_uuid)
        if state and state.submitted and state.task and event.outcome == "rejected" and self._run:
            by, shown = state.submitted.by, effect(state.call.name, state.task.args)
            rejected = {**self._run.rejected, state.call.effect: by, shown: by}
            self._run = replace(self._run, rejected=rejected)
        if self._batch and all(c.end for c in self._batch.values()):
            self._settle()

    def _settle(self) -> None:
        last = self._run.last if self._run else None
        calls = tuple(c.call for c in self._batch.values())
        self._messages.append(Message("assistant", last.text if last else "", calls))
        for state in self._batch.values():
            content = state.end.content if state.end else ""
            self._messages.append(Message("tool", content or "(no output)", call_uuid=state.call.call_uuid))
        if self._run:
            self._run = _with_batch(self._run, self._batch.values())
        self._batch = {}

    # -- the context ---------------------------------------------------------------------------------------------------

    def _compressed(self, event: ContextCompressed) -> None:
        """Begin anew with what it carries, whether or not the facts before were read: both must come to the same."""
        ledger = event.ledger
        self._messages, self._goal = list(event.messages), event.goal
        self._inbox, self._batch = list(ledger.inbox), {}
        self._rules = {rule.id: rule for rule in ledger.rules}
        self._answer, self._usage, self._unpriced = ledger.answer, ledger.usage, ledger.unpriced
        self._run = ledger.run and replace(
            ledger.run, takeovers=0, compressed=self._seq, futile=0 if event.fits else ledger.run.futile + 1
        )
        self._spent(event.usage)


def _with_batch(run: Run, batch: Iterable[CallState]) -> Run:
    """The run after a batch whose calls all have a result."""
    states = [state for state in batch if state.end]
    done = tuple(_done(state.call, state.end, run.steps) for state in states if state.end)
    calls, paths = dict(run.calls), dict(run.paths)
    for state in states:
        if state.started:
            calls[state.call.name] = calls.get(state.call.name, 0) + 1
        for path in _worked_on(state):
            paths[path] = tuple(dict.fromkeys((*paths.get(path, ()), state.call.name)))
    succeeded = {**run.succeeded, **{d.tool: run.steps for d in done if d.outcome == "ok"}}
    return replace(run, recent=(*run.recent, *done)[-RECENT:], calls=calls, succeeded=succeeded, paths=paths)


def _worked_on(state: CallState) -> tuple[str, ...]:
    """The real paths of a call that ran and succeeded, as far as its tool has looked."""
    if state.started is None or state.end is None or state.end.outcome != "ok":
        return ()
    found = state.inspection(state.started.effective)
    return found.paths if found else ()


def _done(call: ToolCall, end: ToolCallEnd, step: int) -> Done:
    return Done(call.name, digest(call.effect)[:16], digest(end.content)[:16], end.outcome, step)


def added(a: Usage, b: Usage) -> Usage:
    """The sum of two usages. A cost that nobody told is not taken for 0."""
    cost = None if a.cost is None and b.cost is None else (a.cost or 0.0) + (b.cost or 0.0)
    return Usage(
        a.input_tokens + b.input_tokens, a.output_tokens + b.output_tokens, a.cached_tokens + b.cached_tokens, cost
    )
