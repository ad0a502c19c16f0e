"""How a word is spelled, read leniently: quotes, escapes and ANSI codes, without asking whether each is honest."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final


class Glob(str):
    """A word that bash may replace by the names of files."""

    __slots__ = ()


_SPELLED: Final = re.compile(r"['\"\\$`]")
_GLOB: Final = re.compile(r"[*?\[]")
_PIECE: Final = re.compile(r"\$'((?:[^'\\]|\\.)*)'|\$?\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|\\(.)|([^'\"\\$*?\[]+|.)", re.S)
_ANSI: Final = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.S
)
_ESCAPED: Final = re.compile(r"\\([\"\\$`])")  # in double quotes
_PARENTHESIS: Final = re.compile(r"[()]")
MOST_BRACED: Final = 64  # words that braces make of one
MOST_CHARACTERS: Final = 20_000  # of all of them, and of what they come from
_BRACES: Final = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_NOT_BRACES: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|\$\{[^}]*\}", re.S)
_NAMED: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


def base_name(word: str | None) -> str:
    """What a program is called, wherever it lies; "" for a word that nobody knows."""
    return (word or "").rpartition("/")[2]


def escapes(text: str) -> str:
    """What `printf` and `echo -e` make of a text with escapes."""
    return _ANSI.sub(_unescaped, text)


def loose(text: str) -> str:
    """A word as bash sees it, without asking whether every escape is honest."""
    if not _SPELLED.search(text):
        return Glob(text) if _GLOB.search(text) and text != "[" else text
    out = []
    pieces = _PIECE.findall(text)
    for ansi, double, single, escaped, other in pieces:
        if double:
            out.append(_ESCAPED.sub(r"\1", double) if "\\" in double else double)
        else:
            out.append(_ANSI.sub(_unescaped, ansi) if ansi else single or escaped or other)
    word = "".join(out)
    return Glob(word) if any(other and other in "*?[" for *_, other in pieces) else word


def braced(text: str) -> list[str] | None:
    """The words that braces make of one, each still with its quotes; None where that is not plain to see."""
    if "," not in text and ".." not in text:  # so that no braces make words of it
        return [text]
    found, pending, left = list[str](), [text], MOST_CHARACTERS
    while pending:
        word = pending.pop()
        left -= len(word)
        plain = _NOT_BRACES.sub(lambda quoted: "\0" * len(quoted[0]), word)
        group = _BRACES.search(plain)
        if group is None:
            found.append(word)
            continue
        if ".." in group[0] and "," not in group[0]:
            return None
        if len(found) + len(pending) > MOST_BRACED or left < 0:
            return None
        commas = [group.start() + at for at, char in enumerate(group[0]) if char == ","]
        ends = [group.start(), *commas, group.end() - 1]
        before, behind = word[: group.start()], word[group.end() :]
        pending += [before + word[one + 1 : other] + behind for one, other in reversed([*pairwise(ends)])]
    return found


def _unescaped(match: re.Match[str]) -> str:
    two, four, eight, octal, control, other = match.groups()
    if code := two or four or eight:
        number = int(code, 16)
        return chr(number) if number < 0x110000 else ""
    if octal:
        return chr(int(octal, 8) & 0xFF)
    return "" if control else _NAMED.get(other, other)


def closed(text: str, start: int) -> str:
    """What stands in the parentheses that were opened before `start`, quotes aside."""
    depth = 1
    for found in _PARENTHESIS.finditer(text, start):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return text[start : found.start()]
    return text[start:]
