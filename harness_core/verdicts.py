"""The words of hooks: where they are asked, what they may rule there, and what it means if one fails.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness_core.errors import HarnessError

RuleClass = Literal["safety", "termination", "budget", "repetition", "drift"]
Point = Literal[
    "session_start",
    "user_prompt",
    "before_model",
    "model_error",
    "after_model",
    "permission_request",
    "before_tool",
    "after_tool",
    "before_stop",
    "run_end",
    "before_compress",
    "after_compress",
    "subagent_start",
    "subagent_end",
]

# Who speaks first: what must never happen, then whether it is over, then what it costs, then style.
RULE_CLASSES: Final[tuple[RuleClass, ...]] = ("safety", "termination", "budget", "repetition", "drift")


@dataclass(frozen=True, slots=True)
class Observe:
    """Put a note on record. It changes nothing, and is accepted at every point."""

    note: str

    @property
    def reason(self) -> str:
        """The note."""
        return self.note


@dataclass(frozen=True, slots=True)
class Ask:
    """Put the call to a person."""

    reason: str


@dataclass(frozen=True, slots=True)
class Deny:
    """Refuse the call. reason: for the model, why, and what to do instead. escape_key, suggests: see HookReject."""

    reason: str
    escape_key: str | None = None
    suggests: str | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Change what is at hand: the call's arguments before anybody is asked, the text of a result or of a prompt, or
    the plan of a compression.
    """

    to: Any
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Inject:
    """Tell the model something, with the next request. suggests: the tool that the text tells it to call."""

    text: str
    reason: str = ""
    suggests: str | None = None


@dataclass(frozen=True, slots=True)
class Continue:
    """Do not end yet: tell the model this, and ask it again. suggests: see Inject."""

    text: str
    reason: str = ""
    suggests: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run with this answer. limit: which limit was reached; the run is `limited` then, and the model gets one
    last turn to say what it has found. Without one it is `stopped`, at once.
    """

    answer: str
    limit: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Compress:
    """Shorten the context before the model is asked (again)."""

    reason: str = ""


Verdict = Observe | Ask | Deny | Rewrite | Inject | Continue | Stop | Compress


class HookReject(HarnessError):
    """A hook refuses the call. May be returned or raised; msg_to_model says why, and what to do next.

    escape_key: what the refusal is about, if it is a guess: after some refused batches for the same key the hook is
    overruled. suggests: the tool that the text tells the model to call.
    """

    def __init__(self, msg_to_model: str, escape_key: str | None = None, suggests: str | None = None) -> None:
        super().__init__(msg_to_model)
        self.msg_to_model = msg_to_model
        self.escape_key = escape_key
        self.suggests = suggests


# What each point accepts beside Observe; anything else is a failure of the hook, never silently dropped.
ACCEPTS: Final[Mapping[Point, tuple[type, ...]]] = {
    "session_start": (),
    "user_prompt": (Rewrite, Stop),
    "before_model": (Inject, Compress, Stop),
    "model_error": (Compress, Stop),
    "after_model": (Inject, Stop),
    "permission_request": (Ask, Deny, Rewrite),
    "before_tool": (Ask, Deny, Rewrite),
    "after_tool": (Rewrite, Inject),
    "before_stop": (Continue,),
    "run_end": (),
    "before_compress": (Rewrite,),
    "after_compress": (),
    "subagent_start": (),
    "subagent_end": (),
}

# What a failing hook comes to. closed: the call asks; of class safety it is denied. open: nothing, but a warning and
# the record; of class safety the run is stopped.
FAILS: Final[Mapping[Point, Literal["open", "closed"]]] = {
    point: "closed" if point in ("permission_request", "before_tool") else "open" for point in ACCEPTS
}

# What a record says of a ruling that is no verdict of the hook: it failed and was passed over, or it refused so often
# that it was overruled.
FAILED: Final = "Failed"
ESCAPED: Final = "Escaped"
