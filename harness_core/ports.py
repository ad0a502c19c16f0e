"""What the engine needs from outside: a model, tools, a store, a clock.  Protocols only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from harness_core.events import NO_USAGE, Event
from harness_core.types import Args, Deadline, Inspection, Message, ToolResult, Usage


class Clock(Protocol):
    """Time as the engine sees it, so that tests can hold it still."""

    def now(self) -> float:
        """Seconds since the epoch, for facts and expiries."""

    def monotonic(self) -> float:
        """Seconds that only ever grow, for deadlines and leases."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


# -- the model ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. schema: JSON Schema of the arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to the model. system and tools are byte-identical on every request of a run."""

    system: str
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer, as it arrives."""

    text: str


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """A tool call as the provider sent it, before anything was checked. arguments: JSON text, or an object."""

    name: str
    arguments: str | Args
    id: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The whole message, always the last thing that a model's stream yields."""

    text: str = ""
    calls: tuple[ProposedCall, ...] = ()
    usage: Usage = NO_USAGE
    finish_reason: str = ""


class ChatModel(Protocol):
    """A model that can call tools. Failures are ModelError, and say who must act."""

    name: str

    def stream(self, request: ModelRequest, deadline: Deadline) -> AsyncIterator[TextDelta | ModelReply]:
        """Yield deltas, then exactly one ModelReply."""


class TokenCounter(Protocol):
    """Counts the tokens of texts."""

    @property
    def name(self) -> str:
        """What it counts with, for people."""

    def count(self, text: str) -> int:
        """Tokens of a text; quick for one that was prepared."""

    async def prepare(self, texts: Iterable[str]) -> None:
        """Have these texts counted, without holding up the event loop."""


# -- tools -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where and until when a tool works. workspace: the session's folder. deadline: monotonic, see clock."""

    session_id: str
    call_uuid: str
    workspace: Path
    deadline: Deadline
    clock: Clock


@runtime_checkable
class Tool(Protocol):
    """Something the agent can do. `spec` and the pure methods describe a call; `inspect` and `run` touch the world.

    A tool may also have `return_direct = True`: its result is the answer. Where every call of a model message is to
    such a tool, and each ended well with a result that is not blank, the run ends with those results, and the model is
    not asked again.
    """

    @property
    def spec(self) -> ToolSpec:
        """Name, description and schema, as the model sees them."""

    @property
    def inspects(self) -> bool:
        """Whether `inspect` looks at anything; if not, it is never called."""

    @property
    def timeout(self) -> float:
        """Seconds that one run may take at most."""

    def check(self, args: Args) -> str:
        """Why these arguments do not fit the schema, in words for the model; "" if they do. Nothing is coerced."""

    def read_only(self, args: Args) -> bool:
        """The call only reads inside the workspace, so it runs unasked."""

    def repeatable(self, args: Args) -> bool:
        """The call may run again after a crash."""

    def subject(self, args: Args) -> str:
        """What permission rules match: a command, a path, an address, or the canonical arguments."""

    async def inspect(self, args: Args, context: ToolContext) -> Inspection:
        """Look at what judging and the card need from the world, changing nothing. Asked again before `run`."""

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Do it. ToolFailed becomes an error result. Cancelled, it must end all that it started before it returns."""


# -- the store ---------------------------------------------------------------------------------------------------------


class Lease(Protocol):
    """The right to write to a session, until released or lost. fence grows with every holder."""

    session_id: str
    fence: int

    def valid(self) -> bool:
        """Whether nobody else can have taken over yet, by this machine's monotonic time."""

    async def rest(self, seq: int, until: float | None = None) -> None:
        """Note that nothing is to be done up to fact `seq`, or until this time (seconds since the epoch)."""


Unsubscribe = Callable[[], None]


class SessionStore(Protocol):
    """Journals of facts, one per session, and who may write to them.

    A journal whose id begins with `config:` or `show:` is no session: it never counts as unfinished.

    Each call ends within a time that the store sets, or raises StoreError; what was asked for may be done all the same.
    A run's deadline does not shorten it, since without its store a run can do nothing, not even end.
    """

    async def append(
        self,
        session_id: str,
        events: Event | Sequence[Event],
        *,
        key: str | None = None,
        after: int | None = None,
        fence: int | None = None,
    ) -> tuple[Event, ...]:
        """Append all of these facts, or none, durably. Returns them with seq, or () if refused.

        Refused: a key (an event's own, or `key` for the first one) is taken in this session, or `after` is not the
        last seq any more. Raises LeaseLost if `fence` is outdated, StoreError if the disk fails.
        """

    async def read(self, session_id: str, after: int = 0) -> Sequence[Event]:
        """The facts with a seq greater than `after`, in order."""

    async def open(self, session_id: str) -> Sequence[Event]:
        """The facts that the present state needs: from the last ContextCompressed on, or all."""

    async def last_seq(self, session_id: str) -> int:
        """The seq of the last fact, 0 for an unknown session."""

    def lease(self, session_id: str) -> AbstractAsyncContextManager[Lease | None]:
        """Hold the session while inside; None if somebody else does (in this process or another)."""

    async def unfinished(self, now: float) -> Sequence[str]:
        """Sessions that do not rest (facts beyond their last rest, or a rest that is over) and that nobody holds."""

    async def sessions(self, prefix: str = "") -> Sequence[str]:
        """The ids of all journals that begin with prefix."""

    async def find(self, kind: str, prefix: str = "") -> Sequence[Event]:
        """All facts of a kind, in the journals whose ids begin with prefix; by journal, then in order."""

    def changed(self, told: Callable[[str, tuple[Event, ...]], None]) -> Unsubscribe:
        """Call `told(session_id, facts)` on the event loop after each append made through this store."""

    async def close(self) -> None:
        """Release everything."""
