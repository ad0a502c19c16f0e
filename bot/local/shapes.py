"""The few shapes that every part of the workspace shares: a refusal, an answer to a person, a noted call, a fault."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

JSON: TypeAlias = dict[str, Any]


class SlackError(Exception):
    """Slack refuses a call.  `code` is Slack's own word; `extra` goes into the answer beside it."""

    def __init__(self, code: str, messages: list[str] | None = None, **extra: Any) -> None:
        super().__init__(code if not messages else f"{code}: {'; '.join(messages)}")
        self.code = code
        self.extra: JSON = dict(extra)
        if messages:
            self.extra["response_metadata"] = {"messages": messages}


class PersonCannot(Exception):
    """A person cannot do this in Slack: no such button, not in the channel, no open view.  `force` gets past it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of something a person did that waits for the app."""

    ok: bool
    error: str = ""  # what the person sees: operation_timeout, dispatch_failed, required, ...
    envelope_id: str = ""
    payload: JSON | None = None  # what the app sent along with its acknowledgement
    errors: dict[str, str] = field(default_factory=dict)  # by block_id, shown in a modal


@dataclass(frozen=True, slots=True)
class Call:
    """One Web API call, as it was answered.  Tokens are not kept."""

    method: str
    arguments: JSON
    at: float
    connection: str  # the peer's address: one per TCP connection
    ok: bool
    error: str
    seconds: float
    reply: JSON


@dataclass(slots=True)
class Fault:
    """What shall go wrong with the next calls of a method; see `LocalWorkspace.fail`."""

    error: str | None
    http_status: int | None
    retry_after: float | None
    times: int
    after_effect: bool
    only: JSON = field(default_factory=dict)

    def meets(self, arguments: JSON) -> bool:
        """Whether it is a call with these arguments that shall go wrong."""
        return self.only.items() <= arguments.items()

    @property
    def cuts(self) -> bool:
        """Neither an error nor a status to give: the connection is cut instead."""
        return self.error is None and self.http_status is None and self.retry_after is None
