"""What a URL points to: its one spelling, and whether that is the public internet."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from harness_core.permissions.text import invisible

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LONGEST_URL: Final = 8_192  # characters; what most servers take
LONGEST_HOST: Final = 1_000  # characters of a name of 253 at most, with what its ASCII form drops
_PORTS: Final = {"https": 443, "http": 80}
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[/?#].*|)", re.S)
_AUTHORITY: Final = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[1-9][0-9]{0,4}))?")
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
        inner = wrapped(address)
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


def wrapped(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for, if it does."""
    if any(address in net for net in _NAT64):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def local(host: str) -> bool:
    """Whether a canonical host is not one of the public internet: by its address, or by its name."""
    address = address_of(host)
    if address is not None:
        return private(address)
    labels = host.split(".")
    return len(labels) == 1 or labels[-1] in _LOCAL
