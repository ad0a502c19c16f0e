"""A session, frozen: what was said, what waits, what goes on, as a value.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from harness_core.events import (
    NO_USAGE,
    HITLDecided,
    HITLSubmitted,
    HITLVoted,
    Inspected,
    Prompted,
    Run,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.frozen import shallow
from harness_core.hitl import HITLTask
from harness_core.permissions.rule import PermissionRule
from harness_core.types import Args, Inspection, Message, RunStatus, ToolCall, Usage, canonical, digest

MOST_FILES: Final = 20  # files of one message that the model is told of; ours
FILE_NAME: Final = 100  # characters of a name; ours


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was put to people, and what became of it. inspected: what the tool saw for edited arguments.

    votes: the approvals so far, where several are wanted.
    """

    task: HITLTask
    submitted: HITLSubmitted | None = None
    decided: HITLDecided | None = None
    end: ToolCallEnd | None = None
    inspected: tuple[Inspected, ...] = ()
    votes: tuple[HITLVoted, ...] = ()

    @property
    def waiting(self) -> bool:
        """Nobody has answered."""
        return self.submitted is None and self.end is None


@dataclass(frozen=True, slots=True)
class CallState:
    """One call of the open batch, and all that happened to it. tasks: every question that was asked about it.

    asked: the questions of the sub-agent that works on it, and of those that work for that one. rewritten: the
    arguments that hooks gave it when its batch was judged, if any did. votes: on the newest question.
    """

    call: ToolCall
    inspections: Mapping[str, Inspection] = field(default_factory=dict)
    tasks: tuple[HITLTask, ...] = ()
    submitted: HITLSubmitted | None = None
    decided: HITLDecided | None = None
    started: ToolCallStart | None = None
    end: ToolCallEnd | None = None
    asked: tuple[Asked, ...] = ()
    rewritten: Args | None = None
    votes: tuple[HITLVoted, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "inspections", shallow(self.inspections))

    @property
    def judged(self) -> Args:
        """The arguments with which it was let run, where no person decided about it."""
        return self.call.args if self.rewritten is None else self.rewritten

    @property
    def child(self) -> str:
        """The journal of the sub-agent that works on it, or ""."""
        return self.started.child if self.started else ""

    @property
    def questions(self) -> tuple[Asked, ...]:
        """The newest question about this call, and all of the sub-agent that works on it."""
        own = (Asked(self.task, self.submitted, self.decided, self.end, votes=self.votes),) if self.task else ()
        return (*own, *self.asked)

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
    """A session, frozen. messages: what model requests have held. inbox: prompts that none has held yet; heard: the
    seqs of those that hooks have ruled on. notes: what hooks have told the model, and no request has held yet.

    batch: the calls of the last model message while any of them is open. answer: of the last run. goal: where in
    messages the prompt is that the last run began with, None if no request has held it yet. usage: of all model
    requests of the session; unpriced: of those whose cost nobody told. runs: how many there were, the one that goes on
    included. now: the moment of the question that a hook is asked, seconds since the epoch; 0 where nobody asks.
    settled: the last batch, once all of it has its results (a compression forgets it). status: how the last run ended,
    "" while one goes on.
    """

    session_id: str = ""
    seq: int = 0
    messages: tuple[Message, ...] = ()
    inbox: tuple[Prompted, ...] = ()
    run: Run | None = None
    batch: tuple[CallState, ...] = ()
    rules: tuple[PermissionRule, ...] = ()
    answer: str = ""
    usage: Usage = NO_USAGE
    goal: int | None = None
    unpriced: Usage = NO_USAGE
    notes: tuple[str, ...] = ()
    heard: tuple[int, ...] = ()
    runs: int = 0
    now: float = 0.0
    settled: tuple[CallState, ...] = ()
    status: RunStatus | Literal[""] = ""

    @property
    def pending(self) -> tuple[HITLTask, ...]:
        """The tasks that wait for a person, in model order; those of sub-agents, too."""
        return tuple(one.task for one in self.waiting)

    @property
    def waiting(self) -> tuple[Asked, ...]:
        """Those tasks, with the approvals that they have so far."""
        return tuple(one for c in self.batch for one in c.questions if one.waiting)

    @property
    def context(self) -> tuple[Message, ...]:
        """What the next model request holds."""
        return (*self.messages, *self.coming)

    @property
    def coming(self) -> tuple[Message, ...]:
        """What no model request has held yet."""
        return (*map(told, self.notes), *map(heard, self.inbox))

    @property
    def succeeded(self) -> frozenset[str]:
        """The tools that have worked in this run."""
        return frozenset(self.run.succeeded) if self.run else frozenset()

    def of(self, call_uuid: str) -> CallState | None:
        """The open batch's call with that id."""
        return next((c for c in self.batch if c.call.call_uuid == call_uuid), None)


def works_in(state: CallState, session_id: str) -> bool:
    """Whether this journal is that of the sub-agent that works on the call, or of one that works for it."""
    return bool(state.child) and f"{session_id}/".startswith(f"{state.child}/")


def told(note: str) -> Message:
    """What a hook tells the model, as the model hears it."""
    return Message("user", note)


def heard(prompt: Prompted) -> Message:
    """A prompt as the model hears it. Providers refuse an empty message, and a picture may come without a word."""
    said = [text for text in (prompt.text, prompt.note) if text.strip()]
    return Message("user", "\n".join(said) or "(no text)")


def note_of(files: Sequence[str]) -> str:
    """What the model is told of files that came with a prompt: their names, in quotes that no name can close, on one
    line that none can end. "" for no files.
    """
    if not files:
        return ""
    shown = ("".join(c if c.isprintable() else "·" for c in name[:FILE_NAME]).replace('"', "'") for name in files)
    more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
    named = ", ".join(f'"{name or "no name"}"' for name in [*shown][:MOST_FILES]) + more
    return f"(files: {named} — not readable here)"
