"""A model that says what a script says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness_core.errors import ModelError
from harness_core.ports import ModelReply, ModelRequest, ProposedCall, TextDelta
from harness_core.testing.clock import Milestones, Waitable
from harness_core.types import Deadline, Usage


@dataclass(frozen=True, init=False)
class Attempts:
    """Replies to one and the same question, asked again: the first, the second, ... the last one stays."""

    replies: tuple[Reply, ...]

    def __init__(self, first: Reply, *more: Reply) -> None:
        object.__setattr__(self, "replies", (first, *more))


Part = str | ProposedCall
Reply = Part | ModelReply | Sequence[Part] | Exception | Attempts | Callable[[ModelRequest], "Reply"]


def call(name: str, /, *, id: str = "", **arguments: Any) -> ProposedCall:
    """A tool call as a model proposes it: call("write", path="a", content="b")."""
    return ProposedCall(name, arguments, id)


class ScriptedModel:
    """A ChatModel that says what the script says.

    Reply number i answers the request that holds i assistant messages, so the same script goes on after a restart; but
    a compressed context holds fewer, and a summary is asked for, too: give `then=` a function there. A reply is a text,
    a call, a list of both, a ModelReply, an exception to raise, a function of the request that returns one of these, or
    Attempts. Past the end it answers `then`, or fails with a ModelError of the kind "server".
    hold: after its first delta the model waits for it. requests: all that was asked. asked: the same as milestones.
    cancelled: how many answers were cut off.
    """

    def __init__(
        self, *replies: Reply, name: str = "scripted", then: Reply | None = None, hold: Waitable | None = None
    ) -> None:
        self.name = name
        self.hold = hold
        self.requests: list[ModelRequest] = []
        self.asked = Milestones()
        self.cancelled = 0
        self._replies = replies
        self._then: Reply = ModelError("server", "the script is over") if then is None else then

    async def stream(self, request: ModelRequest, deadline: Deadline) -> AsyncIterator[TextDelta | ModelReply]:
        """Two text deltas if there is text for two, then the reply. Raises what the script says."""
        position = _position(request)
        attempt = sum(1 for earlier in self.requests if _position(earlier) == position)
        self.requests.append(request)
        self.asked.add()
        reply = _settled(self._scripted(position), request, attempt)
        half = (len(reply.text) + 1) // 2
        try:
            if reply.text:
                yield TextDelta(reply.text[:half])
            if self.hold is not None:
                await self.hold.wait()
            if reply.text[half:]:
                yield TextDelta(reply.text[half:])
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled += 1
            raise
        yield reply

    def _scripted(self, position: int) -> Reply:
        return self._replies[position] if position < len(self._replies) else self._then


def _position(request: ModelRequest) -> int:
    return sum(1 for message in request.messages if message.role == "assistant")


def _settled(reply: Reply, request: ModelRequest, attempt: int) -> ModelReply:
    """The reply in its plain form. Raises it, if it is an exception."""
    match reply:
        case ModelReply():
            return reply
        case str() | ProposedCall():
            return _settled([reply], request, attempt)
        case Exception():
            raise reply
        case Attempts():
            return _settled(reply.replies[min(attempt, len(reply.replies) - 1)], request, attempt)
        case Sequence():
            text = "".join(part for part in reply if isinstance(part, str))
            calls = tuple(part for part in reply if isinstance(part, ProposedCall))
            return ModelReply(text, calls, Usage(100, 10), "tool_calls" if calls else "stop")
        case _:
            return _settled(reply(request), request, attempt)
