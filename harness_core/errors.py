"""The errors of the harness, named by who must act.  The docstring of a class is its default message."""

from __future__ import annotations

from typing import Final, Literal

MOST_SHOWN: Final = 60  # characters of what somebody wrote, in an error; ours


class HarnessError(Exception):
    """Something in the harness failed."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class ConfigError(HarnessError):
    """The configuration cannot be used as it is. Correct it and start again."""


class StoreError(HarnessError):
    """The journal could not be read or written. Look at the disk and at the database file."""


class NewerFormat(StoreError):
    """This journal was written by a newer version of the harness. Upgrade before you open it."""


class LeaseLost(StoreError):
    """Another process has taken this session over; nothing more may be written from here."""


ModelErrorKind = Literal[
    "auth", "unknown_model", "unreachable", "rate_limited", "overflow", "server", "bad_reply", "timeout", "refused"
]

# Another attempt can cure these; the others need a person, or a shorter context.
PASSING_MODEL_ERRORS: frozenset[ModelErrorKind] = frozenset(
    {"unreachable", "rate_limited", "server", "bad_reply", "timeout"}
)


class ModelError(HarnessError):
    """The model did not answer.

    kind: what failed, and so who must act: auth, unknown_model, unreachable, rate_limited, overflow (the request is too
    long, so the context is compressed), server, bad_reply, timeout or refused. Another attempt can cure unreachable,
    rate_limited, server, bad_reply and timeout. retry_after: seconds that the server asked us to wait, if it did.
    """

    def __init__(self, kind: ModelErrorKind, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message or f"The model did not answer ({kind}).")
        self.kind = kind
        self.retry_after = retry_after


class ToolFailed(HarnessError):
    """The tool could not do it. Its message is the result that the model reads."""


class DecisionRefused(HarnessError):
    """This decision cannot be taken."""


class UnknownTask(DecisionRefused):
    """No task of this session has that id."""


class AlreadyVoted(DecisionRefused):
    """This person has approved it already. A rule wants several people to, and waits for the others."""


class AlreadyDecided(DecisionRefused):
    """Someone has decided already."""


class TaskExpired(DecisionRefused):
    """Nobody decided in time: this task has expired."""


class AmbiguousTask(DecisionRefused):
    """More than one task fits. Name the one that you mean by its id."""


class NotApplicable(DecisionRefused):
    """A task of this kind does not take that decision."""


class InvalidArguments(DecisionRefused):
    """The edited arguments do not fit the tool. The task stays open."""


class DeniedByPolicy(DecisionRefused):
    """A rule denies the edited call, and no click can approve it. The task stays open."""


def shown(text: str) -> str:
    """What somebody wrote, for a line of an error: printable, and MOST_SHOWN characters at most."""
    line = "".join(char if char.isprintable() else "�" for char in text)
    return line if len(line) <= MOST_SHOWN else line[: MOST_SHOWN - 1] + "…"


def in_words(error: BaseException) -> str:
    """The class of an error and its message. Somebody else's may fail to say even that, or leave instead."""
    try:
        message = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        message = "it cannot say what is wrong"
    return f"{type(error).__name__}: {message}".rstrip(": ")
