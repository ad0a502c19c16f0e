"""What a rule for URLs matches: an allow rule strictly, a deny or ask rule in any spelling."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from typing import Final
from urllib.parse import unquote

from harness_core.permissions.urls import (
    LONGEST_HOST,
    BadUrl,
    Url,
    address_of,
    canonical_host,
    canonical_url,
    local,
    wrapped,
)

_MOST_ENCODED: Final = 4  # times that a path is decoded; servers do it once, and some proxies again
_BEFORE_HOST: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]+|(?:https?|wss?|ftp):", re.I)  # at the beginning
_UNSEEN: Final = re.compile(r"[\x00-\x20\x7f]")


def allows(pattern: str | None, url: Url) -> bool:
    """Whether an allow pattern matches: host, `*.host`, a prefix ending in `/*`, or a URL; None for any public one."""
    try:
        if pattern is None:
            return not local(url.host)
        if "://" in pattern:
            return _url_pattern(pattern, url)
        return url.plain and not local(url.host) and _host_pattern(pattern, url.host)
    except BadUrl:
        return False


def _host_pattern(pattern: str, host: str) -> bool:
    if not pattern.startswith("*."):
        return "*" not in pattern and canonical_host(pattern) == host
    parent = canonical_host(pattern[2:])
    return "." in parent and address_of(parent) is None and host.endswith("." + parent)


def _url_pattern(pattern: str, url: Url) -> bool:
    if not pattern.endswith("/*"):
        return "*" not in pattern.partition("?")[0] and canonical_url(pattern) == url
    if "*" in pattern[:-1] or "?" in pattern:
        return False
    wanted = canonical_url(pattern[:-1])
    same = (wanted.scheme, wanted.host, wanted.port) == (url.scheme, url.host, url.port)
    return same and url.path.startswith(wanted.path)


def denies(pattern: str | None, text: str, addresses: tuple[str, ...] = ()) -> bool:
    """Whether a deny or ask pattern matches, in any spelling: a host with all below it, or a URL, or what begins so.

    Scheme, port and user name never make a difference; a name matches all below it, an address whatever wraps it.
    """
    if pattern is None or pattern == "":
        return True
    pattern = pattern.removeprefix("*:")  # any scheme
    named = re.split(r"[/?#\\]", _behind_scheme(pattern), maxsplit=1)[0]
    path = _loose_path(pattern.rstrip("*"))
    hosts = {*_loose_hosts(text), *map(_loose_host, addresses)}
    whole = path == "/" and "?" not in pattern
    if not any(_meant(named, host, below=whole) for host in hosts):
        return False
    if whole:
        return True
    found = _loose_path(text)
    if pattern.endswith("*"):
        return any(one.startswith(path) or one + "/" == path for one in {found, _loose_path(text, literal=True)})
    return found.rstrip("/") == path.rstrip("/")


def _meant(named: str, host: str, *, below: bool) -> bool:
    """Whether a host of a pattern means this one. below: what lies below it counts as well."""
    wanted = _loose_host(named.removeprefix("*."))
    if "*" not in wanted:
        return host == wanted or ((below or named.startswith("*.")) and _below(host, wanted))
    # No rule should be written so; but whoever wrote it meant to deny.
    stars = r"(?:.*\.)?" + ".*".join(map(re.escape, wanted.split("*")))
    return bool(re.fullmatch(stars, host, re.S))


def _below(host: str, wanted: str) -> bool:
    return host == wanted or (host.endswith("." + wanted) and address_of(wanted) is None)


def _behind_scheme(text: str) -> str:
    """What stands behind the scheme of almost anything, as browsers read it: any slashes, or none, may come before."""
    plain = re.sub(r"[\t\r\n]", "", text).strip()
    match = _BEFORE_HOST.match(plain)
    return plain[match.end() :] if match else plain


def _loose_path(text: str, *, literal: bool = False) -> str:
    """The path and query of almost anything, as the most obliging server reads them; literal: dots left in place."""
    text = _behind_scheme(text)
    rest = re.split(r"[/?#\\]", text, maxsplit=1)
    behind = text[len(text) - len(rest[1]) - 1 :] if len(rest) > 1 else ""
    for _ in range(_MOST_ENCODED):
        plain = unquote(behind, errors="replace")
        if plain == behind:
            break
        behind = plain
    path, mark, query = behind.partition("#")[0].replace("\\", "/").casefold().partition("?")
    segments: list[str] = []
    for segment in (one.partition(";")[0] for one in path.split("/")):
        if segment == ".." and not literal:
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    end = "/" if segments and not path.rpartition("/")[2].partition(";")[0] else ""
    return "/" + "/".join(segments) + end + (mark + query if query else "")


def _loose_hosts(text: str) -> set[str]:
    """The hosts of almost anything: a backslash ends the host for browsers, and is a part of the user for others."""
    behind = _behind_scheme(text)
    return {_loose_host(behind), _loose_host(re.split(r"[/?#]", behind, maxsplit=1)[0].rpartition("@")[2])}


def _loose_host(text: str) -> str:
    """The host at the beginning, for matching that widens; addresses by their value, without what wraps them."""
    authority = re.split(r"[/?#\\]", text, maxsplit=1)[0]
    host = _UNSEEN.sub("", unquote(authority.rpartition("@")[2])).casefold()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") < 2:
        host = host.partition(":")[0]
    host = unicodedata.normalize("NFKC", host).replace("\u3002", ".").rstrip(".")
    if not host.isascii() and len(host) <= LONGEST_HOST:
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            return host
    return _numeric(host) or host


def _base(number: str) -> int:
    return 16 if number.startswith("0x") else 8 if number.startswith("0") and number != "0" else 10


def _numeric(host: str) -> str:
    """An IPv4 address in any spelling that C libraries take, or "" if it is none."""
    parts = host.split(".")
    try:
        numbers = [int(part, _base(part)) for part in parts]
        *high, low = numbers
        if len(numbers) > 4 or any(n > 255 for n in high) or low >= 256 ** (5 - len(numbers)):
            return ""
        value = sum(n << (24 - 8 * place) for place, n in enumerate(high)) + low
        return str(ipaddress.IPv4Address(value))
    except ValueError:
        return _unwrapped(host)


def _unwrapped(host: str) -> str:
    """An IPv6 address in one spelling, or the IPv4 address that it stands for; "" if it is neither."""
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return ""
    low = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if int(address) >> 32 == 0 and int(address) > 1 else None
    return str(wrapped(address) or low or address)
