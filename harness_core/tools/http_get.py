"""One GET, from addresses that were looked at, of a bounded body, with nothing that tells who asks."""

from __future__ import annotations

import socket
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from harness_core.errors import ToolFailed
from harness_core.tools.clip import short
from harness_core.tools.web_text import media_type

WEB_BYTES: Final = 2_000_000  # of a body that are read, packed and unpacked
USER_AGENT: Final = "harness-bot webfetch"

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Page:
    """One response: where a redirect leads, or the body. whole: all of the body is there."""

    url: URL
    status: int
    kind: str = ""
    charset: str = ""
    body: bytes = b""
    whole: bool = True
    leads_to: str = ""


@asynccontextmanager
async def session_to(url: URL, addresses: tuple[str, ...]) -> AsyncIterator[aiohttp.ClientSession]:
    """A client without memory or credentials, that can reach these addresses alone. No proxy: it would resolve anew."""
    pinned = _Pinned(url.raw_host or "", addresses)
    connector = aiohttp.TCPConnector(
        resolver=pinned, use_dns_cache=False, socket_factory=pinned.connect, force_close=True
    )
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,  # it unpacks without a bound
        trust_env=False,
        timeout=aiohttp.ClientTimeout(),  # ours covers all of it
        headers={
            "User-Agent": USER_AGENT,
            "Accept": "text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.8, */*;q=0.1",
            "Accept-Encoding": "gzip, deflate",
        },
    ) as session:
        yield session


async def get(session: aiohttp.ClientSession, url: URL) -> Page:
    """What one address answers; a redirect is told and not followed."""
    async with session.get(url, allow_redirects=False) as response:
        location = response.headers.get("Location", "")
        if response.status in _REDIRECTS and location:
            return Page(url, response.status, leads_to=location)
        kind, charset = media_type(response.headers.get("Content-Type", ""))
        body, whole = await _body(response)
        return Page(url, response.status, kind, charset, body, whole)


async def _body(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """(the unpacked body up to WEB_BYTES, whether that is all). What a few bytes unpack to is bounded too."""
    unpack = _unpacker(response.headers.get("Content-Encoding", "").strip().lower())
    body = bytearray()
    received = 0
    async for piece in response.content.iter_any():
        received += len(piece)
        body += unpack(piece, WEB_BYTES + 1 - len(body))
        if len(body) > WEB_BYTES or received > WEB_BYTES:
            return bytes(body[:WEB_BYTES]), False
    return bytes(body), True


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    if encoding in ("", "identity"):
        return lambda piece, room: piece[:room]
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ToolFailed(f"The server packed its answer as {short(encoding)}, which was not asked for.")
    stream = zlib.decompressobj(zlib.MAX_WBITS | 32)  # 32: gzip or zlib, whichever it is
    return stream.decompress


class _Pinned(AbstractResolver):
    """Knows one host, and for it the addresses that were looked at."""

    def __init__(self, host: str, addresses: tuple[str, ...]) -> None:
        self._host = host
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """What aiohttp asks before it connects."""
        if host.removesuffix(".") != self._host.removesuffix("."):
            raise OSError(f"{host} was not looked at")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    def connect(self, info: aiohttp.AddrInfoType) -> socket.socket:
        """The socket for one connection; none to an address that was not looked at, whoever asks for it."""
        family, kind, proto, _, address = info
        if address[0] not in self._addresses:
            raise OSError(f"{address[0]} was not looked at")
        return socket.socket(family, kind, proto)

    async def close(self) -> None:
        """Nothing is held."""
