"""What people did in Slack, in our own words, and where they come from.  Pure; `inbound` makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.ids import Action, Identity, TaskRef, Thread
from harness_core.hitl import Decision


@dataclass(frozen=True, slots=True)
class Origin:
    """Who did it and where, as the payload tells.

    thread_ts, message_ts: "" where there is none. team and shared_outside are hints for the authoriser. trigger_id
    opens a modal within three seconds; response_url takes five private answers within half an hour.
    """

    user: str
    channel: str = ""
    thread_ts: str = ""
    message_ts: str = ""
    team: str = ""
    shared_outside: bool = False
    trigger_id: str = ""
    response_url: str = ""

    def session_id(self, us: Identity) -> str:
        """The session of the thread that it stands in, or begins."""
        return Thread(us.home, self.channel, self.thread_ts or self.message_ts).session_id


@dataclass(frozen=True, slots=True)
class File:
    """A file that was sent along: only its name is known, the content must be asked for."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """Somebody said something.

    key: the same for every delivery of this message, and for its twin as a mention. sent_at: seconds since the epoch.
    addressed: the bot is meant for sure; if not, it is a reply in some thread, and counts only if we know the thread
    and its requester wrote it.
    """

    key: str
    session_id: str
    text: str
    origin: Origin
    sent_at: float
    addressed: bool
    direct: bool = False
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """How far an *always allow* goes. channel: not in this thread alone. prefixes: the name of the prefix rules that
    the form showed, "" for exactly the call.
    """

    channel: bool = False
    prefixes: str = ""


@dataclass(frozen=True, slots=True)
class Decide:
    """Somebody decided a task. via: "button", "modal" or "word". block_id: of the row of buttons that was clicked."""

    session_id: str
    task: TaskRef
    decision: Decision
    origin: Origin
    via: str
    block_id: str = ""
    key: str = ""
    reach: Reach = Reach()


@dataclass(frozen=True, slots=True)
class Edit:
    """Somebody submitted the form that edits a call. values: what Slack says stands in its fields, not read yet,
    because the tool's schema is needed for that.
    """

    session_id: str
    task: TaskRef
    values: Mapping[str, Any]
    origin: Origin


@dataclass(frozen=True, slots=True)
class OpenModal:
    """Somebody wants to say more before they decide, or to see more."""

    session_id: str
    task: TaskRef
    action: Action
    origin: Origin
    block_id: str = ""


@dataclass(frozen=True, slots=True)
class Amend:
    """A message was edited (text) or deleted (None). key: that of the Prompt it was."""

    key: str
    session_id: str
    text: str | None
    origin: Origin


@dataclass(frozen=True, slots=True)
class Removed:
    """A message of ours was deleted."""

    session_id: str
    ts: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Somebody wants the run of this session to stop."""

    session_id: str
    origin: Origin
    key: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """Somebody asks how things stand in this session: `!status`, or a bare mention."""

    session_id: str
    origin: Origin
    key: str = ""


@dataclass(frozen=True, slots=True)
class Why:
    """Somebody asks why calls of this session asked, were refused or ran: `!why`."""

    session_id: str
    origin: Origin
    key: str = ""


@dataclass(frozen=True, slots=True)
class Configure:
    """A slash command: its first word in lower case ("help" if there is none), and the rest as typed."""

    verb: str
    rest: str
    origin: Origin
    key: str


@dataclass(frozen=True, slots=True)
class Ignore:
    """Not for us. tell: what the person at `origin` must be told in private, where silence would mislead."""

    why: str
    tell: str = ""
    origin: Origin | None = None


Inbound = Prompt | Decide | Edit | OpenModal | Amend | Removed | Stop | Status | Why | Configure | Ignore
