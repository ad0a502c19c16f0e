"""The bot's own facts, beside the harness's: settings people changed, and what was posted where.

Settings live in the journal `config:workspace`; what was posted for a session in `show:<session>`. Like all stored
shapes these are a contract for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness_core.codec import Codec
from harness_core.events import FACTS, Event
from harness_core.permissions.rule import PermissionRule

WORKSPACE: Final = "config:workspace"


@dataclass(frozen=True, slots=True)
class AdminClaimed(Event):
    """The first administrator, by the one-time code. key: `claim`, so there is only one."""

    by: str


@dataclass(frozen=True, slots=True)
class ClaimTried(Event):
    """Somebody sent a code to become the first administrator. key: the command's trigger id."""

    by: str


@dataclass(frozen=True, slots=True)
class ChannelSwitched(Event):
    """A channel was switched on or off. key: the command's trigger id."""

    channel: str
    on: bool
    by: str


@dataclass(frozen=True, slots=True)
class ApproverChanged(Event):
    """Somebody (or `requester`) became an approver, or is none any more."""

    who: str
    on: bool
    by: str


@dataclass(frozen=True, slots=True)
class SensitiveChanged(Event):
    """A tool was marked sensitive, or no longer. channel: "" for the whole workspace."""

    tool: str
    on: bool
    by: str
    channel: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalsSwitched(Event):
    """Approvals were switched off, why, and until when (seconds since the epoch); or on again."""

    on: bool
    by: str
    channel: str = ""
    why: str = ""
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class NetworkSwitched(Event):
    """Commands that run in a sandbox may reach the network from this channel's threads, or no longer."""

    channel: str
    on: bool
    by: str


@dataclass(frozen=True, slots=True)
class Paused(Event):
    """Everything was paused, or goes on."""

    on: bool
    by: str


@dataclass(frozen=True, slots=True)
class StandingRuleAdded(Event):
    """A rule of a channel ("" for the whole workspace). until: seconds since the epoch, None for good.

    card: the fingerprint of the task whose form made it, "" for a command. It replaces the same rule in that place;
    one that denies or asks holds no shorter than before.
    """

    rule: PermissionRule
    by: str
    channel: str = ""
    why: str = ""
    until: float | None = None
    card: str = ""


@dataclass(frozen=True, slots=True)
class StandingRuleRevoked(Event):
    """A rule of a channel ("" for the whole workspace) was taken back. rule_id: its id, or its whole fingerprint."""

    rule_id: str
    by: str
    channel: str = ""


@dataclass(frozen=True, slots=True)
class PostIntended(Event):
    """A message is about to be posted. Stored first, so that after a crash it is sought before it is posted again."""

    post: str
    digest: str


@dataclass(frozen=True, slots=True)
class Posted(Event):
    """A message stands in the thread, drawn for the revision-th time, with this digest. core: the digest of what it
    says apart from the count of others beside it.
    """

    post: str
    digest: str
    ts: str
    revision: int = 0
    core: str = ""


@dataclass(frozen=True, slots=True)
class PostGone(Event):
    """A message does not stand in the thread: somebody deleted it, or (ts "") it was sought and is not there."""

    post: str
    ts: str = ""


@dataclass(frozen=True, slots=True)
class Reacted(Event):
    """The reaction that the bot put on a message last; "" where it took one away."""

    ts: str
    name: str


@dataclass(frozen=True, slots=True)
class StatusTold(Event):
    """The status of the thread that Slack was told last, or is about to be told: processing, suspended or active."""

    status: str


@dataclass(frozen=True, slots=True)
class Rendered(Event):
    """Everything up to this fact of the session has been shown for good."""

    upto: int


def show(session_id: str) -> str:
    """The journal of what was posted for a session."""
    return f"show:{session_id}"


BOT_FACTS: Final = (
    AdminClaimed,
    ClaimTried,
    ChannelSwitched,
    ApproverChanged,
    SensitiveChanged,
    ApprovalsSwitched,
    NetworkSwitched,
    Paused,
    StandingRuleAdded,
    StandingRuleRevoked,
    PostIntended,
    Posted,
    PostGone,
    Reacted,
    StatusTold,
    Rendered,
)
CODEC: Final = Codec((*FACTS, *BOT_FACTS))
