"""Any server that speaks OpenAI's chat-completions protocol, as a ChatModel.

One request, one stream, no retries: the engine retries by the facts on record. What goes out and what comes back is
thought out in `chat_request`, `chat_reply` and `chat_errors`; here is the wire alone.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import urlsplit

from httpx2 import ConnectTimeout, PoolTimeout
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI, AsyncStream, Timeout

from harness_core.errors import ConfigError, ModelError
from harness_core.models import chat_request
from harness_core.models.chat_errors import Asked, complaint
from harness_core.models.chat_reply import CUT, Part, Price, ReplyBuilder
from harness_core.ports import ModelReply, ModelRequest, TextDelta
from harness_core.types import Deadline

__all__ = ["OpenAIModel", "Price", "openai_model"]

OPENAI_HOST: Final = "api.openai.com"
OPENAI: Final = f"https://{OPENAI_HOST}/v1"
NO_KEY: Final = "none"  # a server that asks for no key ignores it; the library insists on one
CONNECT_TIMEOUT: Final = 10.0  # seconds; a server that is there answers sooner, whatever the model then takes
LARGEST_REPLY: Final = 10_000_000  # bytes of a reply that comes in one piece


class OpenAIModel:
    """A model behind an OpenAI-compatible server. Safe for many requests at once; `aclose` when done.

    name: as the server knows it. base_url: up to and with /v1; OpenAI itself if None. api_key: None for a server that
    asks for none. prices: by model name, for servers that do not tell what a request cost. client: a ready one instead
    (Azure, a proxy of your own), which stays yours to close. monotonic: the clock that deadlines are measured on.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        prices: Mapping[str, Price] | None = None,
        client: AsyncOpenAI | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._price = (prices or {}).get(name)
        self._monotonic = monotonic
        self._own = client is None
        if client is None:
            client = AsyncOpenAI(api_key=api_key or NO_KEY, base_url=base_url or OPENAI)
        self._client = client
        self._asked = Asked(name, str(client.base_url), client.api_key)

    async def aclose(self) -> None:
        """Close the connections, unless the client was given."""
        if self._own:
            await self._client.close()

    async def stream(self, request: ModelRequest, deadline: Deadline) -> AsyncIterator[TextDelta | ModelReply]:
        """Yield deltas, then one ModelReply. Raises ModelError, whose message is for the person who must act."""
        reply: ReplyBuilder | None = None
        tools = frozenset(spec.name for spec in request.tools)
        async with aclosing(self._chunks(chat_request.body(self.name, request), deadline)) as chunks:
            async for part, chunk in chunks:
                reply = reply or ReplyBuilder(tools, part)
                if text := reply.add(chunk):
                    yield TextDelta(text)
        if reply is None:
            raise self._asked.no_reply()
        if text := reply.rest():
            yield TextDelta(text)
        yield reply.whole(self._price)

    async def _chunks(self, body: dict[str, Any], deadline: Deadline) -> AsyncGenerator[tuple[Part, object], None]:
        """The chunks of the stream, or the one message of a server that does not stream."""
        answered = False
        try:
            async with await self._open(body, deadline) as stream:
                answered = True
                kind = stream.response.headers.get("content-type", "").lower()
                if "json" in kind or "html" in kind:
                    yield "message", await self._message(stream, deadline)
                    return
                while (chunk := await self._next(stream, deadline)) is not None:
                    yield "delta", chunk
        except (APIError, TimeoutError, ValueError, RecursionError) as error:
            # Not chained: what the library quotes of the server is neither cleaned nor masked.
            raise self._failure(error, answered) from None

    async def _open(self, body: dict[str, Any], deadline: Deadline) -> AsyncStream[object]:
        left = self._left(deadline)
        timeout = Timeout(left, connect=CONNECT_TIMEOUT)
        async with asyncio.timeout(left):
            # Chunks stay the JSON that they are: the library's classes would only hide what is wrong with it.
            return await self._client.post(
                "/chat/completions",
                body=body,
                cast_to=object,
                options={"timeout": timeout, "max_retries": 0},  # the engine retries, by the facts on record
                stream=True,
                stream_cls=AsyncStream[object],
            )

    async def _next(self, stream: AsyncStream[object], deadline: Deadline) -> object | None:
        # Not left to the client's time-out: a server that sends comments to keep the connection would never meet it.
        async with asyncio.timeout(self._left(deadline)):
            return await anext(stream, None)

    async def _message(self, stream: AsyncStream[object], deadline: Deadline) -> object:
        raw = bytearray()
        async with asyncio.timeout(self._left(deadline)):
            async for piece in stream.response.aiter_bytes():
                raw += piece
                if len(raw) > LARGEST_REPLY:
                    raise self._asked.no_reply()
        text = raw.decode("utf-8", "replace")
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            raise self._asked.no_reply(text) from None
        if isinstance(message, Mapping) and message.get("error"):
            raise self._asked.refused(complaint(0, message))
        if not isinstance(message, Mapping) or not message.get("choices"):
            raise self._asked.no_reply(text)
        return message

    def _left(self, deadline: Deadline) -> float:
        return deadline.left(self._monotonic())

    def _failure(self, error: Exception, answered: bool) -> ModelError:
        match error:
            case APITimeoutError() if any(isinstance(e, ConnectTimeout | PoolTimeout) for e in _chain(error)):
                return self._asked.unreachable("it does not answer. Check OPENAI_BASE_URL and the network.")
            case APITimeoutError() | TimeoutError():
                return self._asked.timed_out()
            case APIConnectionError() if answered:
                return ModelError("bad_reply", CUT)
            case APIConnectionError():
                return self._asked.unreachable(_why(error))
            case APIStatusError(status_code=status, body=body, response=response):
                return self._asked.refused(complaint(status, body, response.headers))
            case APIError(body=body, message=message):
                return self._asked.refused(complaint(0, body if body else message))
        return self._asked.no_reply()


def openai_model(name: str, base_url: str = "", api_key: str = "") -> OpenAIModel:
    """A model from settings as people write them. Raises ConfigError, naming all that needs correcting."""
    name, base_url, api_key = name.strip(), base_url.strip().rstrip("/"), api_key.strip()
    wrong = [*_wrong_name(name), *_wrong_address(base_url), *_wrong_key(api_key, base_url)]
    if wrong:
        raise ConfigError("The model's settings need correcting:\n" + "\n".join(f"- {line}" for line in wrong))
    return OpenAIModel(name, base_url=base_url or None, api_key=api_key or None)


def _wrong_name(name: str) -> Iterator[str]:
    if not name:
        yield "HARNESS_MODEL is missing: the name of a model that the server knows."
    elif not name.isprintable():
        yield "HARNESS_MODEL holds characters that are in no name."


def _wrong_address(base_url: str) -> Iterator[str]:
    """The address is not repeated: it may hold a password."""
    if not base_url:
        return
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or not base_url.isascii() or not base_url.isprintable() or " " in base_url:
        yield "OPENAI_BASE_URL must be an address such as https://example.com/v1."
    elif parts.username or parts.password or parts.query or parts.fragment:
        yield "OPENAI_BASE_URL must be a plain address: no name, password, ? or # in it. A key goes in OPENAI_API_KEY."
    elif parts.path.endswith("/chat/completions"):
        yield "OPENAI_BASE_URL must be the part before /chat/completions, which usually ends in /v1."


def _wrong_key(api_key: str, base_url: str) -> Iterator[str]:
    if not api_key:
        if not base_url or OPENAI_HOST in base_url:
            yield "OPENAI_API_KEY is missing. For a server other than OpenAI, set OPENAI_BASE_URL."
    elif not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        yield "OPENAI_API_KEY holds blanks or characters that are in no key: was it copied whole, and nothing else?"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _why(error: Exception) -> str:
    """Why there is no connection, by the first cause that tells."""
    for cause in _chain(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return (
                    f"its certificate is not trusted ({cause.verify_message}). This machine's trusted certificates "
                    "(the package ca-certificates) may be missing, or the server's own may have to be added."
                )
            case ssl.SSLError():
                return f"the TLS connection failed ({cause.reason}). Is it https:// that this server speaks?"
            case socket.gaierror():
                return "there is no server of that name. Check OPENAI_BASE_URL and the network."
            case ConnectionRefusedError():
                return "nothing listens there. Is the server running, and is OPENAI_BASE_URL right?"
    return "the connection failed. Is the server running, and is OPENAI_BASE_URL right?"
