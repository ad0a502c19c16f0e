"""The values that everything else is about: calls, results, messages, usage, deadlines.  No time, no I/O."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator

from harness_core.frozen import freeze, frozen

Outcome = Literal["ok", "error", "denied", "rejected", "skipped", "expired", "unknown", "not_run"]
RunStatus = Literal["completed", "pending", "rejected", "limited", "stopped", "failed"]
Args = Annotated[Mapping[str, Any], AfterValidator(frozen)]

NO_OUTPUT: Final = "(no output)"  # stands for a blank result: some providers refuse one
ABSENT: Final = "absent"  # the digest of a file that is not there

# What is stored is read back strictly: a field that this version does not know is an error, never dropped.
STRICT: Final[Any] = {"extra": "forbid", "strict": True}

# Some HTTP clients read a time-out of 0 as "wait for ever", so the least that is ever handed out is this. Seconds.
LEAST_TIMEOUT: Final = 0.05

# pydantic: its JSON parser refuses about 200 levels, and arguments stand some levels deep in a fact.
DEEPEST_ARGS: Final = 64


def canonical(args: Args) -> str:
    """Arguments as canonical JSON: sorted keys, UTF-8, no spaces, numbers as the model wrote them.

    Raises TypeError or ValueError for what JSON cannot hold (a date, a set, NaN), or what is nested too deeply to be
    read back: it is refused, not guessed at.
    """
    if _deeper(args, DEEPEST_ARGS):
        raise ValueError(f"nested more than {DEEPEST_ARGS} levels deep")
    return json.dumps(args, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _deeper(value: object, levels: int) -> bool:
    """Whether objects and arrays are nested in each other for more than so many levels."""
    if isinstance(value, str):  # most values, and it is slow to find out that one is no Mapping
        return False
    if isinstance(value, Mapping):
        return levels == 0 or any(_deeper(inner, levels - 1) for inner in value.values())
    if isinstance(value, list | tuple):
        return levels == 0 or any(_deeper(inner, levels - 1) for inner in value)
    return False


def same(one: Args, other: Args) -> bool:
    """Whether two sets of arguments are the same JSON; to Python 1, 1.0 and True are equal."""
    return canonical(one) == canonical(other)


def digest(text: str) -> str:
    """SHA-256 of a text, in hex. A lone surrogate is hashed as its escape, so that hostile text cannot raise."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model asked for.

    call_uuid: ours, unique in the session; also the id that the model sees in the history.
    args: the arguments as the model proposed them. problem: why they cannot be used ("" if they can).
    provider_id, raw: what the provider sent, kept for the record only.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    call_uuid: str
    name: str
    args: Args
    problem: str = ""
    provider_id: str = ""
    raw: str = ""

    def __post_init__(self) -> None:
        freeze(self, "args")

    @property
    def effect(self) -> str:
        """What the call would do: tool and canonical arguments. Two calls with the same effect are alike."""
        return effect(self.name, self.args)

    def given(self, args: Args) -> ToolCall:
        """The call with these arguments; itself if they are its own."""
        return self if args is self.args else replace(self, args=args)


def effect(tool: str, args: Args) -> str:
    """The identity of what a call does: the tool and its canonical arguments."""
    return f"{tool} {canonical(args)}"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool brought: the text that the model reads, and whether it worked."""

    content: str
    outcome: Outcome = "ok"


def readable(said: str) -> str:
    """The text of a result as it is stored and read: never blank."""
    return said if said.strip() else NO_OUTPUT


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a tool saw of the world before it was asked to run; judging and the card rest on it.

    preview: for people (a diff, say), preview_kind how to show it. paths: the real paths that it would touch.
    digests: of the files that the preview rests on. outside: something lies outside the workspace.
    covers: the arguments that the preview tells in full. git_runs: a key of the repository's own configuration that
    runs a program. problem: the call cannot work, and why; nobody is asked then.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    preview: str = ""
    preview_kind: Literal["text", "diff"] = "text"
    paths: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    outside: bool = False
    problem: str = ""
    covers: tuple[str, ...] = ()
    git_runs: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the context, as every provider understands it. summary: it stands for messages left out."""

    __pydantic_config__: ClassVar[Any] = STRICT
    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_uuid: str = ""
    summary: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model request, and its cost in US dollars where the provider tells."""

    __pydantic_config__: ClassVar[Any] = STRICT
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock, in seconds, by which an outbound call must be done."""

    at: float = math.inf

    def left(self, now: float, own: float = math.inf) -> float:
        """Seconds that a call may take: the smaller of its own time-out and the time left, never 0 or negative."""
        return max(min(own, self.at - now), LEAST_TIMEOUT)


NO_DEADLINE: Final = Deadline()
