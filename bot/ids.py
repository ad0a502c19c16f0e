"""Who we are to Slack, and the names that we write into its payloads and read back.  Pure.

Whatever comes back is checked again: a name that we cannot have written is None, never guessed at.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

from bot import limits

# What a person can do with a card, as action_id of its buttons.
Action = Literal["approve", "review", "reject", "skip", "always", "edit", "view", "rerun", "happened"]
ACTIONS: Final[frozenset[str]] = frozenset(get_args(Action))

# What a modal decides when it is submitted, as callback_id of the view.
Form = Literal["review", "review_rerun", "reject", "skip", "always", "happened", "edit"]
FORMS: Final[frozenset[str]] = frozenset(get_args(Form))
ONLY_READ: Final = "loading"  # of a modal that decides nothing

# Inputs of those modals: block_id and action_id are the same word.
COMMENT: Final = "comment"
CHOICE: Final = "choice"
WHERE: Final = "where"
WHAT: Final = "what"

PERSON: Final = "[UW][A-Z0-9]{2,20}"  # the id of a member, as a regular expression
SLACK_ITSELF: Final = frozenset({"USLACK", "USLACKBOT"})  # says that it is no bot
SHORT_ID: Final = 6  # hex digits of a fingerprint that people see and type
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{64}")
_TYPED_ID: Final = re.compile(r"#?([0-9a-f]{6,64})", re.IGNORECASE)
_CALL: Final = re.compile(r"[!-{}~]{1,100}")
_SLACK_ID: Final = re.compile(r"[A-Za-z0-9]{1,40}")
_TS: Final = re.compile(r"[0-9]{1,12}\.[0-9]{1,10}", re.ASCII)
_SESSION: Final = re.compile(r"slack:([A-Za-z0-9]{1,40}):([A-Za-z0-9]{1,40}):([0-9]{1,12}\.[0-9]{1,10})", re.ASCII)
_PREFIXES: Final = re.compile(r"prefixes:([0-9a-f]{16})")
_BLOCK: Final = re.compile(r"task:([0-9a-f]{16}):([0-9]{1,9})(?::more)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Identity:
    """Our installation, from auth.test when the bot starts: workspace, organisation, app, and the bot's own names.

    org_wide: the app is installed for the whole organisation, so that its workspaces share one token.
    """

    team_id: str
    enterprise_id: str = ""
    app_id: str = ""
    bot_user_id: str = ""
    bot_id: str = ""
    org_wide: bool = False

    @property
    def home(self) -> str:
        """What our keys begin with. Never the team of a payload: that one varies in shared channels and within an
        organisation, even between a card and the click on it, and the same thread must stay the same session.
        """
        return self.enterprise_id if self.org_wide and self.enterprise_id else self.team_id


@dataclass(frozen=True, slots=True)
class Thread:
    """Where a session lives in Slack: the channel, and the ts of the message that its thread hangs from."""

    home: str
    channel: str
    ts: str

    @property
    def session_id(self) -> str:
        """The id of its journal. `thread_of` reads it back."""
        return f"slack:{self.home}:{self.channel}:{self.ts}"


def threads_of(home: str, channel: str = "") -> str:
    """What the ids of all sessions of a home begin with, or of those in one channel; of their sub-agents, too."""
    return f"slack:{home}:{channel}:" if channel else f"slack:{home}:"


def thread_of(session_id: str) -> Thread | None:
    """The thread of a session, or None for a session that is not Slack's."""
    found = _SESSION.fullmatch(session_id)
    return Thread(*found.groups()) if found else None


def claim_key(home: str, channel: str, ts: str) -> str:
    """What makes a message one, however often and in whatever shape it is delivered."""
    return f"{home}:{channel}:{ts}"


@dataclass(frozen=True, slots=True)
class TaskRef:
    """A task as somebody points at it: a button with its whole fingerprint, a typed word with the beginning of it."""

    fingerprint: str
    call_uuid: str = ""

    @property
    def exact(self) -> bool:
        """The whole fingerprint is known, so it is that question and no other."""
        return len(self.fingerprint) == 64

    def value(self) -> str:
        """The value of a button. It holds no arguments: those come from our own record."""
        return f"{self.call_uuid}|{self.fingerprint}"


def ref_of(value: str) -> TaskRef | None:
    """The task that a button's value names."""
    call, bar, fingerprint = value.rpartition("|")
    if bar and _CALL.fullmatch(call) and _FINGERPRINT.fullmatch(fingerprint):
        return TaskRef(fingerprint, call)
    return None


def typed_ref(word: str) -> TaskRef | None:
    """The task that a typed id names: six hex digits or more, with or without `#`."""
    found = _TYPED_ID.fullmatch(word)
    return TaskRef(found[1].lower()) if found else None


def block_id(fingerprint: str, revision: int, *, more: bool = False) -> str:
    """The block_id by which a card can be found again in its thread. more: the second row of buttons."""
    return f"task:{fingerprint[:16]}:{revision}" + (":more" if more else "")


def card_named(block: str) -> tuple[str, int] | None:
    """(beginning of the fingerprint, revision) that a block_id of ours names."""
    found = _BLOCK.fullmatch(block)
    return (found[1], int(found[2])) if found else None


def metadata(session_id: str, ref: TaskRef) -> str:
    """The private_metadata of a modal: which task of which session it decides."""
    return json.dumps({"session": session_id, "call": ref.call_uuid, "task": ref.fingerprint})


def metadata_of(text: str) -> tuple[Thread, TaskRef] | None:
    """What a modal's private_metadata names."""
    if len(text) > limits.PRIVATE_METADATA:
        return None
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match read:
        case {"session": str(session), "call": str(call), "task": str(task)}:
            thread, ref = thread_of(session), ref_of(f"{call}|{task}")
            return (thread, ref) if thread and ref else None
    return None


def prefixes_choice(name: str) -> str:
    """The value of the choice that stands for prefix rules. name: hex digits that stand for exactly these rules."""
    return f"prefixes:{name}"


def prefixes_of(value: str) -> str:
    """The name in such a value, "" for another choice."""
    found = _PREFIXES.fullmatch(value)
    return found[1] if found else ""


def is_slack_id(text: str) -> bool:
    """Whether this can be the id of a person, a channel or a workspace. Keys are built of them, so it must be."""
    return _SLACK_ID.fullmatch(text) is not None


def is_ts(text: str) -> bool:
    """Whether this is the ts of a message: seconds and a fraction, as text."""
    return _TS.fullmatch(text) is not None


def addressable(channel: str, user: str, ts: str) -> bool:
    """Whether these are somebody, and a message that can be answered."""
    return is_slack_id(channel) and is_slack_id(user) and is_ts(ts)


def action_of(text: str) -> Action | None:
    """The button that an action_id names."""
    return cast(Action, text) if text in ACTIONS else None


def form_of(text: str) -> Form | None:
    """The modal that a callback_id names."""
    return cast(Form, text) if text in FORMS else None
