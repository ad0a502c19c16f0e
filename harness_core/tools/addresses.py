"""Which addresses may be fetched: plain ones of the web, and of these the public ones.  Pure."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Network, ip_address, ip_network
from typing import Final

from yarl import URL

URL_CHARS: Final = 2_000

# Written out, since what `ipaddress` takes for private differs between Python's patch releases.
_NOT_PUBLIC: Final = tuple(
    (ip_network(network), what)
    for network, what in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a provider's customers"),
        ("127.0.0.0/8", "this machine"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "reserved for examples"),
        ("192.31.196.0/24", "reserved"),
        ("192.52.193.0/24", "reserved"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("192.175.48.0/24", "reserved"),
        ("198.18.0.0/15", "reserved for benchmarks"),
        ("198.51.100.0/24", "reserved for examples"),
        ("203.0.113.0/24", "reserved for examples"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::1/128", "this machine"),
        ("64:ff9b:1::/48", "a translation to a local network"),
        ("100::/64", "reserved"),
        ("2001::/23", "reserved"),  # Teredo among them, which leads to IPv4
        ("2001:db8::/32", "reserved for examples"),
        ("3fff::/20", "reserved for examples"),
        ("5f00::/16", "reserved"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)
_GLOBAL_V6: Final = IPv6Network("2000::/3")  # all that is handed out to anybody
# IPv6 addresses that lead to an IPv4 one, and how many bits stand after that.
_CARRIERS: Final = (
    (IPv6Network("::/96"), 0),
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
)


def not_public(address: str) -> str:
    """Why an address does not belong to the public internet, "" if it does. What is no plain address is not public."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return "no address"
    for network, what in _NOT_PUBLIC:
        if parsed in network:
            return what
    if isinstance(parsed, IPv4Address):
        return "" if parsed.is_global else "reserved"
    for network, after in _CARRIERS:
        if parsed in network:
            return not_public(str(IPv4Address(int(parsed) >> after & 0xFFFFFFFF)))
    return "" if parsed in _GLOBAL_V6 and parsed.is_global and parsed.scope_id is None else "reserved"


def fetchable(text: str) -> str:
    """The address of a page, unchanged. Raises ValueError, in words for the model, for all but a plain one."""
    if len(text) > URL_CHARS:
        raise ValueError(f"the address is longer than {URL_CHARS:,} characters")
    if not text.isprintable() or any(c.isspace() or c == "\\" for c in text):
        raise ValueError("the address holds blanks, backslashes or characters that do not print")
    try:
        url = URL(text)
        host = url.raw_host or ""
    except ValueError as error:
        raise ValueError("this is no address of the web") from error
    if url.scheme not in ("http", "https") or not host or not url.port:
        raise ValueError("the address must begin with http:// or https:// and name a host")
    if url.raw_user is not None or url.raw_password is not None:
        raise ValueError("an address with a user name or password is not fetched")
    if _written(text).lower() not in (host, url.host) or _disguised(host):
        raise ValueError("the host is written in an unusual way; write it plainly")
    return text


def _written(text: str) -> str:
    """The host as it is written, whatever a parser makes of it."""
    authority = re.split("[/?#]", text.partition("://")[2], maxsplit=1)[0]
    return re.sub(r":\d*$", "", authority).strip("[]")


def _disguised(host: str) -> bool:
    """Whether a host is no plain name: an address with a zone, or a number that stands for an address."""
    if "%" in host:
        return True
    last = host.removesuffix(".").rpartition(".")[2]
    if not (last.isdecimal() or last.lower().startswith("0x")):
        return False
    try:
        return str(IPv4Address(host)) != host
    except ValueError:
        return True
