"""A server that speaks the chat-completions protocol on loopback, with the faults that real ones have.

It is as strict about a conversation as the strictest of them, and answers what it is told to, reply by reply; the last
one stays. `async with FakeOpenAI(text("Hello")) as server:` and ask `server.base_url`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from aiohttp import web

from harness_core.testing import Milestones, Waitable

KEY: Final = "sk-test-4f9dK2mQ8sVw1xYz"
MODEL: Final = "fake-1"
USAGE: Final = {"prompt_tokens": 120, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 100}}

Json = Mapping[str, Any]
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


# -- replies -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stream:
    """A streamed reply. pieces: chunks as JSON, or text sent as it is.

    done: whether `[DONE]` closes it. cut: the connection is dropped instead. until: held open, after the pieces.
    """

    pieces: Sequence[Json | str] = ()
    done: bool = True
    cut: bool = False
    until: Waitable | None = None
    content_type: str = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer in one piece: an error, a web page, or a message that is not streamed."""

    status: int = 200
    body: object = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer until let go."""

    until: Waitable


Reply = Stream | Whole | Silence
Answer = Reply | Callable[[Json], Reply]


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk of a stream."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": MODEL, "choices": [choice], **more}


def usage(**more: Any) -> dict[str, Any]:
    """The last chunk, which has the usage and no choice."""
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": {**USAGE, **more}}


def text(*pieces: str, finish: str = "stop") -> Stream:
    """A reply in words."""
    return Stream([chunk({"role": "assistant"}), *(chunk({"content": p}) for p in pieces), chunk({}, finish), usage()])


def deltas(*tool_calls: Json | Sequence[Json], finish: str | None = "tool_calls", said: str = "") -> Stream:
    """A reply with pieces of tool calls exactly as given, one chunk each (or several in one)."""
    lists = [list(t) if isinstance(t, Sequence) else [t] for t in tool_calls]
    words = [chunk({"content": said})] if said else []
    return Stream([*words, *(chunk({"tool_calls": calls}) for calls in lists), chunk({}, finish), usage()])


def piece(
    index: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    """A piece of a tool call; what is None is left out."""
    function = {"name": name, "arguments": arguments}
    given = {"index": index, "id": id, "function": {k: v for k, v in function.items() if v is not None} or None}
    return {k: v for k, v in given.items() if v is not None}


def tool(name: str, arguments: str = "{}", id: str = "call_1", index: int = 0) -> Stream:
    """A reply with one well-formed call, its arguments in two pieces."""
    half = len(arguments) // 2
    return deltas(
        piece(index, id, name, ""), piece(index, arguments=arguments[:half]), piece(index, arguments=arguments[half:])
    )


def refusal(status: int, message: str, code: str | None = None, **headers: str) -> Whole:
    """An error in OpenAI's shape. Headers are named with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Whole(status, {"error": {"message": message, "type": "error", "code": code}}, named)


def cut(reply: Stream, after: int) -> Stream:
    """The reply, with the connection dropped after so many pieces."""
    return replace(reply, pieces=reply.pieces[:after], cut=True)


# -- the server --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in."""

    raw: bytes
    body: Any
    headers: Mapping[str, str]


class FakeOpenAI:
    """The server. requests: all that came; left: counts clients that went away before the end of a reply."""

    def __init__(self, *answers: Answer, key: str = KEY, models: Sequence[str] = (MODEL,)) -> None:
        self.requests: list[Received] = []
        self.came, self.left = Milestones(), Milestones()
        self._answers = list(answers)
        self._key, self._models = key, models

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=50_000_000)
        app.router.add_post("/v1/chat/completions", self._completions)
        # Without cancellation a client's going away is seen only by the next write, and a held reply writes nothing.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def origin(self) -> str:
        """Where the server stands."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL would be."""
        return f"{self.origin}/v1"

    def bodies(self) -> list[Any]:
        """The bodies of all requests."""
        return [r.body for r in self.requests]

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw)
        self.requests.append(Received(raw, body, dict(request.headers)))
        self.came.add()
        try:
            return await self._send(request, self._reply(request, body))
        except (asyncio.CancelledError, ConnectionError):
            self.left.add()
            raise

    def _reply(self, request: web.Request, body: Json) -> Reply:
        if request.headers.get("Authorization") != f"Bearer {self._key}":
            # Like OpenAI, it says part of the key that it was given.
            given = request.headers.get("Authorization", "")[7:]
            return refusal(401, f"Incorrect API key provided: {given}. Find yours in the settings.", "invalid_api_key")
        if body["model"] not in self._models:
            return refusal(404, f"The model `{body['model']}` does not exist.", "model_not_found")
        if wrong := complaint(body):
            return refusal(400, wrong, "invalid_value")
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return answer(body) if callable(answer) else answer

    async def _send(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        match reply:
            case Silence(until=until):
                await until.wait()
                return web.Response()
            case Whole(status=status, body=body, headers=headers, content_type=kind):
                said = body if isinstance(body, str) else json.dumps(body)
                return web.Response(status=status, text=said, headers=dict(headers), content_type=kind)
        response = web.StreamResponse(headers={"Content-Type": reply.content_type})
        await response.prepare(request)
        for part in reply.pieces:
            data = part if isinstance(part, str) else f"data: {json.dumps(part)}\n\n"
            await response.write(data.encode("utf-8", "surrogatepass"))
        if reply.until:
            await reply.until.wait()
        if reply.cut:
            assert request.transport is not None
            request.transport.close()
            return response
        if reply.done:
            await response.write(b"data: [DONE]\n\n")
        return response


# -- what strict providers refuse --------------------------------------------------------------------------------------


def complaint(body: Json) -> str:
    """What is wrong with a request, "" if nothing is."""
    if not (body.get("stream") is True and body.get("stream_options") == {"include_usage": True}):
        return "This server streams, and tells the usage."
    return next((wrong for wrong in _complaints(body.get("messages") or []) if wrong), "")


def _complaints(messages: Sequence[Json]) -> list[str]:
    wrong = [] if messages else ["[] is too short - 'messages'"]
    open_ids: list[str] = []
    seen: set[str] = set()
    for n, message in enumerate(messages):
        role, content, calls = message["role"], message.get("content"), message.get("tool_calls")
        if role == "tool":
            if message["tool_call_id"] not in open_ids:
                wrong.append(f"messages[{n}] with role 'tool' must answer a preceding message with 'tool_calls'.")
            else:
                open_ids.remove(message["tool_call_id"])
        elif open_ids:
            wrong.append(f"messages[{n}]: these tool_call_ids had no response: {open_ids}")
        if not calls and not (isinstance(content, str) and content.strip()):
            wrong.append(f"messages[{n}].content must not be empty.")
        if calls is not None and not calls:
            wrong.append(f"messages[{n}].tool_calls is too short.")
        for call in calls or []:
            wrong += _wrong_call(call, seen)
            seen.add(call["id"])
            open_ids.append(call["id"])
    return wrong + ([f"these tool_call_ids had no response: {open_ids}"] if open_ids else [])


def _wrong_call(call: Json, seen: set[str]) -> list[str]:
    wrong = []
    if call["id"] in seen or not 0 < len(call["id"]) <= 40:
        wrong.append(f"Bad or duplicate tool_call id {call['id']!r}.")
    if not _NAME.fullmatch(call["function"]["name"]):
        wrong.append(f"Bad function name {call['function']['name']!r}.")
    try:
        good = isinstance(json.loads(call["function"]["arguments"]), dict)
    except ValueError:
        good = False
    return wrong if good else [*wrong, "function.arguments must be a JSON object."]
