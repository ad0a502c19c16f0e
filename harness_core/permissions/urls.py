"""What a URL points to, and what a rule for URLs matches."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from harness_core.permissions.text import invisible

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LONGEST_URL: Final = 8_192  # characters; what most servers take
LONGEST_HOST: Final = 1_000  # characters of a name of 253 at most, with what its ASCII form drops
_MOST_ENCODED: Final = 4  # times that a path is decoded; servers do it once, and some proxies again
_PORTS: Final = {"https": 443, "http": 80}
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[/?#].*|)", re.S)
_AUTHORITY: Final = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[1-9][0-9]{0,4}))?")
_BEFORE_HOST: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]+|(?:https?|wss?|ftp):", re.I)  # at the beginning
_UNSEEN: Final = re.compile(r"[\x00-\x20\x7f]")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_LOCAL: Final = ("local", "internal", "localhost", "localdomain", "lan", "home", "corp", "intranet", "arpa", "onion")
_SHARED: Final = tuple(
    ipaddress.ip_network(net)
    for net in (
        *("100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4"),
        *("fec0::/10", "3fff::/20", "5f00::/16"),  # the last two: RFC 9637 and RFC 9602, newer than some Pythons
    )
)
_NAT64: Final = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))


class BadUrl(ValueError):
    """This URL cannot be judged by its looks. The message is for a reviewer."""


@dataclass(frozen=True, slots=True)
class Url:
    """A URL in one spelling. port is always there; path begins with /; query has its ?, if there is one."""

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""

    @property
    def plain(self) -> bool:
        """Whether it is https on its usual port."""
        return self.scheme == "https" and self.port == _PORTS["https"]


def canonical_url(text: str) -> Url:
    """The one spelling of a URL. Raises BadUrl for what different programs may read in different ways."""
    if not isinstance(text, str) or not text:
        raise BadUrl("there is no URL")
    if len(text) > LONGEST_URL:
        raise BadUrl(f"the URL is longer than {LONGEST_URL:,} characters")
    if fault := invisible(text):
        raise BadUrl(fault)
    if re.search(r"[\s\\]", text):
        raise BadUrl("the URL holds a blank or a backslash")
    match = _URL.fullmatch(text)
    if match is None:
        raise BadUrl("this is no URL with a scheme and a host")
    scheme = match["scheme"].lower()
    if scheme not in _PORTS:
        raise BadUrl(f"only http and https are fetched, not {scheme}")
    host, port = _host_and_port(match["authority"], _PORTS[scheme])
    path, query = _path(match["rest"])
    return Url(scheme, host, port, path, query)


def _host_and_port(authority: str, usual: int) -> tuple[str, int]:
    if "@" in authority:
        raise BadUrl("the URL holds a user name")
    if "%" in authority:
        raise BadUrl("the host holds a percent sign")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise BadUrl("the host or the port is not plain")
    port = int(match["port"]) if match["port"] else usual
    if port > 65535:
        raise BadUrl("there is no such port")
    return canonical_host(match["host"]), port


def canonical_host(text: str) -> str:
    """A host in one spelling: lower case, without a last dot, international names as xn--. Raises BadUrl."""
    if text.startswith("["):
        try:
            return f"[{ipaddress.IPv6Address(text[1:-1])}]"
        except ValueError:
            raise BadUrl("this is no IPv6 address") from None
    name = text.lower().removesuffix(".")
    if not name.isascii():
        name = _idna(name)
    labels = name.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels) or len(name) > 253:
        raise BadUrl("the host is not a plain name")
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):
        return _ipv4(name)
    return name


def _idna(name: str) -> str:
    # The codec would map other dots, circled and full-width letters to plain ones, so they are refused before it.
    if not all(char.isascii() or (char.isalpha() and char.isprintable()) for char in name):
        raise BadUrl("the host holds characters that look like others")
    try:
        encoded = name.encode("idna")
        if encoded.decode("idna") != name:
            raise BadUrl("the host holds characters that look like others")
        return encoded.decode("ascii")
    except UnicodeError:
        raise BadUrl("the host is no international name") from None


def _ipv4(name: str) -> str:
    try:
        address = ipaddress.IPv4Address(name)
    except ValueError:
        raise BadUrl("an address in an odd spelling") from None
    return str(address)


def _path(rest: str) -> tuple[str, str]:
    rest = rest.partition("#")[0]
    path, mark, query = rest.partition("?")
    path = path or "/"
    lowered = path.casefold()
    if re.search(r"%(25)*(2f|5c|00)|%25(25)*2e", lowered):
        raise BadUrl("the path holds an encoded slash, backslash or dot")
    segments = lowered.replace("%2e", ".").split("/")
    if "." in segments or ".." in segments:
        raise BadUrl("the path holds dots that are taken away")
    if ";" in path and ".." in path:
        raise BadUrl("the path holds parameters with dots")
    return path, mark + query


# -- addresses ---------------------------------------------------------------------------------------------------------


def address_of(host: str) -> Address | None:
    """The address that a canonical host is; None for a name."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def private(address: Address) -> bool:
    """Whether an address is not one of the public internet, also where it is wrapped in another."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or _nat64(address)
        if inner is not None and private(inner):
            return True
        if address.teredo is not None or int(address) >> 32 == 0 or address.ipv4_mapped is not None:
            return True
    if any(address.version == net.version and address in net for net in _SHARED):
        return True
    return (
        not address.is_global
        or address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )


def _nat64(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if any(address in net for net in _NAT64):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def local(host: str) -> bool:
    """Whether a canonical host is not one of the public internet: by its address, or by its name."""
    address = address_of(host)
    if address is not None:
        return private(address)
    labels = host.split(".")
    return len(labels) == 1 or labels[-1] in _LOCAL


# -- patterns ----------------------------------------------------------------------------------------------------------


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
    end = "/" if path.endswith("/") and segments else ""
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
    return str(address.ipv4_mapped or address.sixtofour or _nat64(address) or low or address)
