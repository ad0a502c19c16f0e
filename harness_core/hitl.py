"""What is put to a person, what they may answer, and what the answer does to the call.  Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeGuard

from pydantic import Field

from harness_core.frozen import freeze
from harness_core.types import STRICT, Args, canonical, digest

TaskKind = Literal["approve", "unknown"]


def fingerprint(run_id: str, call_uuid: str, ask_count: int, tool: str, args: Args) -> str:
    """The identity of one question: SHA-256 over run, call, ask count, tool and canonical arguments, in hex.

    A decision counts only for the fingerprint that was shown. People see the first six digits.
    """
    return digest(canonical({"run": run_id, "call": call_uuid, "ask": ask_count, "tool": tool, "args": args}))


@dataclass(frozen=True, slots=True)
class HITLTask:
    """One call that waits for a person.

    args: a snapshot, as shown. comment: why it asks. kind: "approve", or "unknown" for a call that was started and
    whose end nobody saw. expires_at: seconds since the epoch, None for never.
    covers: the arguments that the preview tells in full.
    may_always: whether an allow rule would let the same call through (not so when a rule or a hook asked).
    agent: who made the call. session: the journal of the sub-agent that made it; "" in that journal itself, and for
    calls of the session's own agent. people: how many must approve it.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    call_uuid: str
    tool_name: str
    args: Args
    comment: str
    kind: TaskKind = "approve"
    run_id: str = ""
    fingerprint: str = ""
    requested_by: str = ""
    agent: str = ""
    preview: str = ""
    preview_kind: Literal["text", "diff"] = "text"
    expires_at: float | None = None
    may_always: bool = False
    covers: tuple[str, ...] = ()
    session: str = ""
    people: int = 1

    def __post_init__(self) -> None:
        freeze(self, "args")

    @property
    def short_id(self) -> str:
        """The six hex digits that people see and type."""
        return self.fingerprint[:6]


@dataclass(frozen=True, slots=True)
class Approve:
    """Run it, with these arguments changed if any are given. An empty mapping is an edit, None is none."""

    __pydantic_config__: ClassVar[Any] = STRICT
    always_allow: bool = False
    modified_args: Mapping[str, Any] | None = None
    replace_args: bool = False
    comment: str | None = None
    action: Literal["approve"] = "approve"

    def __post_init__(self) -> None:
        freeze(self, "modified_args")


@dataclass(frozen=True, slots=True)
class Reject:
    """Do not run it. end: None is the seed's rule, True ends the run, False lets the model go on."""

    __pydantic_config__: ClassVar[Any] = STRICT
    comment: str | None = None
    end: bool | None = None
    action: Literal["reject"] = "reject"


@dataclass(frozen=True, slots=True)
class Skip:
    """Do not run it and go on. done: a person did it, as against left it out."""

    __pydantic_config__: ClassVar[Any] = STRICT
    comment: str | None = None
    done: bool = False
    action: Literal["skip"] = "skip"


@dataclass(frozen=True, slots=True)
class Rerun:
    """Run the call of unknown outcome again."""

    __pydantic_config__: ClassVar[Any] = STRICT
    action: Literal["rerun"] = "rerun"


@dataclass(frozen=True, slots=True)
class Happened:
    """The call of unknown outcome did happen; this came of it."""

    __pydantic_config__: ClassVar[Any] = STRICT
    result: str = ""
    action: Literal["happened"] = "happened"


@dataclass(frozen=True, slots=True)
class Expired:
    """Nobody decided in time. Never taken by a person."""

    __pydantic_config__: ClassVar[Any] = STRICT
    action: Literal["expired"] = "expired"


Decision = Approve | Reject | Skip | Rerun | Happened | Expired
StoredDecision = Annotated[Decision, Field(discriminator="action")]

_TAKEN_BY: Mapping[TaskKind, tuple[type, ...]] = {
    "approve": (Approve, Reject, Skip),
    "unknown": (Rerun, Happened, Skip, Reject),
}


def fits(kind: TaskKind, decision: Decision) -> bool:
    """Whether a task of this kind takes such a decision from a person."""
    return isinstance(decision, _TAKEN_BY[kind])


def lets_run(decision: Decision) -> TypeGuard[Approve | Rerun]:
    """Whether the call runs by this decision: what a rule may want several people for."""
    return isinstance(decision, Approve | Rerun)


def edited(args: Args, decision: Approve) -> Args:
    """The arguments that an approval approves: the shown ones, merged with or replaced by the edit."""
    if decision.modified_args is None:
        return args
    return dict(decision.modified_args) if decision.replace_args else {**args, **decision.modified_args}


class HITLDecision:
    """The answers a person can give, by name.

    For a task of kind "approve": approve, reject, skip; of kind "unknown": rerun, happened, skip, reject.
    """

    @staticmethod
    def approve(
        always_allow: bool = False,
        *,
        modified_args: Mapping[str, Any] | None = None,
        replace_args: bool = False,
        comment: str | None = None,
    ) -> Approve:
        """Run the call; modified_args merge over the shown ones by key, or replace them with replace_args."""
        return Approve(always_allow, modified_args, replace_args, comment)

    @staticmethod
    def reject(comment: str | None = None, end: bool | None = None) -> Reject:
        """Do not run the call. end=None: a batch with one task ends the run, with several the run goes on."""
        return Reject(comment, end)

    @staticmethod
    def skip(comment: str | None = None, *, done: bool = False) -> Skip:
        """Go on without the call; done=True says that a person did it, and the comment what came of it."""
        return Skip(comment, done)

    @staticmethod
    def rerun() -> Rerun:
        """Run the call of unknown outcome again."""
        return Rerun()

    @staticmethod
    def happened(result: str = "") -> Happened:
        """The call of unknown outcome happened; result is what the model is told."""
        return Happened(result)
