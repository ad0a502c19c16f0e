"""What a secret looks like by itself, and how much of a text one word may hide.  Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

MASK: Final = "•••"
SHORTEST_SECRET: Final = 6  # characters; shorter values would blot out ordinary words

# Characters that a mask may hide of what somebody approves. Keys have fewer, but for signed tokens that carry claims.
LONGEST_KEY: Final = 256
LONGEST_TOKEN: Final = 2_048

# Prefixes that nothing else has: found anywhere, even glued to other text. The group is what stays visible.
_DISTINCT: Final = (
    r"(xox[a-z]-)(?>(?:[\w%+/=-]|\.(?=xox[a-z]-)){6,})",
    r"(xoxe\.xox[a-z]-)[\w%+/=-]{6,}+",
    r"(xapp-)[\w%+/=-]{6,}+",
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[\w/%-]++",
    r"(gh[pousr]_)[A-Za-z0-9]{20,}+",
    r"(github_pat_)\w{20,}+",
    r"(glpat-)[\w-]{16,}+",
    r"(sk-ant-)[\w-]{8,}+",
    r"(GOCSPX-)[\w-]{20,}+",
    r"([srp]k_(?:live|test)_)[A-Za-z0-9]{10,}+",
)

# Prefixes that could end another word: only at the start of one.
_AT_START: Final = (
    r"(sk-(?:proj-|or-|svcacct-)?)(?=[\w-]{0,60}?\d)[\w-]{16,}+",
    r"((?:AKIA|ASIA|ABIA|ACCA))[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"(AIza)[\w-]{30,}+",
    r"(ya29\.)[\w.-]{20,}+",
    r"(whsec_)[\w+/=]{16,}+",
    r"(npm_)[A-Za-z0-9]{30,}+",
    r"(pypi-)[\w-]{40,}+",
    r"(hf_)[A-Za-z0-9]{30,}+",
    r"(gsk_)[A-Za-z0-9]{30,}+",
    r"(SG\.)[\w-]{16,}+\.[\w-]{16,}+",
    r"(?<![\w-])(eyJ)[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+",  # a JSON Web Token
    r"(eyJ)[\w-]{8,1024}+\.[\w-]{8,}+\.[\w-]*+",  # behind a dash: in a long run of them each is read
)

SIGNED: Final = frozenset({"eyJ", "ya29."})  # prefixes of tokens that carry claims

# A word starts after anything but a letter or digit, and after an escape that ends in one: \n, \u0022, %3D.
_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
DISTINCT_TOKEN: Final = re.compile("|".join(_DISTINCT), re.ASCII)
STARTING_TOKEN: Final = re.compile(_START + "(?:" + "|".join(_AT_START) + ")", re.ASCII)
BEARER: Final = re.compile(r"(?i)(?<![a-z0-9])(bearer[ \t]{1,4})(?=[\w.~+/=-]{0,60}?\d)[\w.~+/=-]{16,}+", re.ASCII)

# scheme://user:password@host. What is masked already is no part of it; a variable or a command is structure and stays.
URL_PASSWORD: Final = re.compile(r"(://[^\s/@:?#\"'<>•]*+:)(?![$`])([^\s/?#\"'<>`$•]*)(?=@)")

# Line breaks, escaped ones, a diff's margin.
_LINE: Final = r"(?>(?:(?:[\r\n \t]|\\[rn])(?:[+|>]|-(?!-)|-(?=-----END))?)+)"
PEM: Final = re.compile(
    r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----)"
    rf"(?>(?:{_LINE}(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]*+)*)"
    rf"(?>(?:{_LINE}[A-Za-z0-9+/=]{{16,}}+)+)"
    rf"(?>(?:{_LINE}[A-Za-z0-9+/=]{{1,15}}+(?={_LINE}-----END))?)"
)

_STRUCTURE: Final = re.compile(r"[\s;|&<>(){}\[\]$`\"'\\#!*?~^]")
SEVERAL: Final = re.compile(r"[\s;|&<>(){}$`\"'\\]")  # more than a word, to a shell; of the rest passwords are made

# What names a file or an address is no secret where somebody approves: a shell may run it.
_PLACE: Final = re.compile(
    r"(?:~|\.{1,2})?/.*|[a-z][a-z0-9+.-]*://.*|[a-z0-9_.-]+(?:/[a-z0-9_.-]+)+/?"
    r"|[\w.-]+\.(?:sh|bash|zsh|py|pl|rb|js|mjs|ts|php|lua|ps1|bat|cmd|exe|jar)",
    re.ASCII | re.DOTALL,
)

_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2})+", re.ASCII)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+|[A-Za-z0-9_-]+", re.ASCII)
# Of shorter ones too many are drawn by lot and can be read all the same.
_TEXT: Final = re.compile(rb"[\t\n\r -~]{8,}")
_LONG_TEXT: Final = re.compile(rb"[\t\n\r -~]{12,}")
_PACKED: Final = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")  # gzip, bzip2, xz, zstd, zip

_RANDOM: Final = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{20,}", re.DOTALL)  # as base64 is, slashes and all


def too_much(word: str) -> bool:
    """Whether a hidden word is no secret alone, or could be a file as well."""
    return carries_more(word, signed=word.startswith("eyJ")) or _PLACE.fullmatch(word) is not None


def carries_more(word: str, *, signed: bool = False) -> bool:
    """Whether a hidden word is longer than any secret, or a text in another writing: keys are drawn by lot, and read as
    nothing. signed: it may be as long as any token that carries claims, which are a text.
    """
    return len(word) > LONGEST_TOKEN if signed else len(word) > LONGEST_KEY or _written_otherwise(word)


def _written_otherwise(word: str) -> bool:
    if "%" in word and re.search(r"\s", unquote(word)):  # the password of an address is quoted so, but has no blank
        return True
    pieces = {word.rstrip("="), *re.split(r"[-_.:,=]", word)}  # what stands before it may be a vendor's prefix
    return any(_reads(decoded) for piece in pieces for decoded in _decoded(piece))


def _decoded(word: str) -> Iterator[bytes]:
    """What a word may stand for, in the writings that every machine can undo, from its first characters on."""
    if _HEX.fullmatch(word):
        yield bytes.fromhex(word)
    if _BASE64.fullmatch(word):
        other = b"-_" if re.search("[-_]", word) else None
        for part in (word[start:] for start in range(4)):
            whole = part[:-1] if len(part) % 4 == 1 else part
            yield base64.b64decode(whole + "=" * (-len(whole) % 4), altchars=other)


def _reads(decoded: bytes) -> bool:
    """Whether it is a text, or holds a long one, or is packed. Of a thousand random words one or two are, too."""
    return bool(_TEXT.fullmatch(decoded) or _LONG_TEXT.search(decoded)) or decoded.startswith(_PACKED)


def names_a_place(word: str) -> bool:
    """Whether a word names a file or an address, and does not look as if it were drawn by lot."""
    return _PLACE.fullmatch(word) is not None and _RANDOM.match(word) is None and not SEVERAL.search(word)


def word_end(text: str, start: int, end: int) -> int:
    """Where the first word of a span ends: at a blank, or at anything that means something to a shell."""
    structure = _STRUCTURE.search(text, start, end)
    return structure.start() if structure else end
