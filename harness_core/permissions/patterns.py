"""What a rule's pattern for commands says: exact text, or words with stars.  Allow narrows, deny widens."""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from harness_core.permissions.shell import Command, read
from harness_core.permissions.spelling import Glob, base_name
from harness_core.permissions.verbs import Argv

Match = Literal["yes", "maybe", "no"]

_STAR = "\0*"  # a wildcard, told from a literal star while a pattern is taken apart


def escaped(command: str) -> str:
    """The pattern that matches exactly this command text."""
    return command.replace("\\", "\\\\").replace("*", "\\*")


@lru_cache(maxsize=1024)
def exact_text(pattern: str) -> str | None:
    """The text that a pattern without wildcards stands for; None if it has one."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and pattern[at + 1 : at + 2] in ("*", "\\"):
            at += 1
            char = pattern[at]
        elif char == "*":
            return None
        out.append(char)
        at += 1
    return "".join(out)


@dataclass(frozen=True, slots=True)
class Words:
    """A pattern in words. Each is a text in which `\\0*` stands for a star; more: further words may follow."""

    words: tuple[str, ...]
    more: bool


@lru_cache(maxsize=1024)
def words_of(pattern: str) -> Words:
    """Take a pattern apart at its blanks, as a shell would: quotes hold words together, `\\*` is a star itself."""
    words: list[str] = []
    word: list[str] | None = None
    quote = ""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and pattern[at + 1 : at + 2] in ("*", "\\"):
            word = [*(word or []), pattern[at + 1]]
            at += 1
        elif quote:
            if char == quote:
                quote = ""
            else:
                word = [*(word or []), char]
        elif char in "'\"":
            quote, word = char, word or []
        elif char in " \t\n":
            if word is not None:
                words.append("".join(word))
            word = None
        else:
            word = [*(word or []), _STAR if char == "*" else char]
        at += 1
    if word is not None:
        words.append("".join(word))
    more = bool(words) and words[-1] == _STAR
    return Words(tuple(words[:-1] if more else words), more)


@lru_cache(maxsize=1024)
def exact_parts(pattern: str) -> Command | None:
    """The one plain command that an exact pattern stands for; None if it is none."""
    text = exact_text(pattern)
    if text is None:
        return None
    reading = read(text)
    one = reading.commands[0] if len(reading.commands) == 1 and not reading.problem else None
    return one if one and not one.redirects and not one.negated else None


@lru_cache(maxsize=1024)
def allowed_program(pattern: str) -> str | None:
    """The one program of which an allow pattern can speak; None if it can of none, or of any."""
    if exact_text(pattern) is not None:
        one = exact_parts(pattern)
        return one.words[0].text if one else None
    words = words_of(pattern).words
    return words[0] if words and _STAR not in words[0] else None


@lru_cache(maxsize=1024)
def denied_program(pattern: str) -> str | None:
    """The base name, in lower case, of the one program of which a deny or ask pattern speaks; None if it may be any."""
    words = words_of(pattern).words
    if not words or _STAR in words[0]:
        return None
    name = base_name(words[0])
    return name.lower() if name.isascii() else None


# -- allow -------------------------------------------------------------------------------------------------------------


def same_argv(pattern: str, part: Command) -> bool:
    """Whether a part is exactly the command of an exact pattern, quoting aside."""
    one = exact_parts(pattern)
    if one is None or len(one.words) != len(part.words):
        return False
    return all(a.text == b.text and a.pattern == b.pattern for a, b in zip(one.words, part.words, strict=True))


def covered(pattern: str, part: Command) -> list[int] | None:
    """The places of the words of a part that wildcards stand for; None if the pattern does not match the part.

    The program is always named; a star in a word stays in it, a star for a word is one that is no option.
    """
    what = words_of(pattern)
    if not what.words or _STAR in what.words[0] or any(word.glob for word in part.words):
        return None
    if len(part.words) < len(what.words) or (not what.more and len(part.words) > len(what.words)):
        return None
    places = list(range(len(what.words), len(part.words)))
    for place, wanted in enumerate(what.words):
        text = part.words[place].text
        if _STAR not in wanted:
            if text != wanted:
                return None
            continue
        if (wanted.startswith(_STAR) and text.startswith("-")) or not _expression(wanted).fullmatch(text):
            return None
        if wanted == _STAR and not text:
            return None
        places.append(place)
    return sorted(places)


@lru_cache(maxsize=1024)
def _expression(wanted: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(piece) for piece in wanted.split(_STAR)), re.S | flags)


# -- deny and ask ------------------------------------------------------------------------------------------------------


class Line:
    """A command of which many patterns ask whether it has their words. places: where each word stands; under None
    those that are only known when it runs.
    """

    def __init__(self, argv: Argv) -> None:
        self.argv = argv

    def where(self, wanted: str, first: int) -> Iterator[int]:
        """The places from the first on at which a word of a pattern may be."""
        if _STAR in wanted:
            return iter(range(first, len(self.argv)))
        return (at for at in (*self.places.get(wanted, ()), *self.places.get(None, ())) if at >= first)

    @cached_property
    def places(self) -> Mapping[str | None, Sequence[int]]:
        found = defaultdict[str | None, list[int]](list)
        for at, word in enumerate(self.argv):
            found[None if isinstance(word, Glob) else word].append(at)
        return found


def strikes(pattern: str, line: Line) -> Match:
    """Whether a deny or ask pattern matches a command as a prefix; maybe, if a word is only known when it runs."""
    wanted, argv = words_of(pattern).words, line.argv
    if not wanted:
        return "yes"
    if len(wanted) > 1 and _STAR not in wanted[1] and (len(argv) < 2 or _differs(wanted[1], argv[1])):
        return "no"  # which is so for most commands, and quickly seen
    if None not in line.places and not _literal(pattern) <= line.places.keys():
        return "no"
    first = _program(wanted[0], argv[0])
    return "no" if first == "no" else _least(first, _rest(wanted[1:], line))


@lru_cache(maxsize=1024)
def _literal(pattern: str) -> frozenset[str]:
    """The words of a pattern behind the program that stand for themselves."""
    return frozenset(word for word in words_of(pattern).words[1:] if _STAR not in word)


def _differs(wanted: str, word: str | None) -> bool:
    return word is not None and word != wanted and not isinstance(word, Glob)


def _program(wanted: str, word: str | None) -> Match:
    if word is None:
        return "maybe"
    name = _expression(wanted if _STAR in wanted else base_name(wanted), re.I)
    if name.fullmatch(word) or name.fullmatch(base_name(word)):
        return "yes"
    return _by_glob(wanted, word)


def _rest(wanted: Sequence[str], line: Line) -> Match:
    """A star for a word stands for any number of them here; a word that is not known may be several."""
    reached: dict[int, Match] = {1: "yes"}  # the places behind the words that match
    anywhere = hidden = False
    for word in wanted:
        if word == _STAR:
            anywhere = True
            continue
        if anywhere:
            sure = min((at for at, how in reached.items() if how == "yes"), default=len(line.argv))
            reached = {at: "yes" if at >= sure else "maybe" for at in line.where(word, min(reached))}
        following: dict[int, Match] = {}
        for at, how in reached.items():
            if at >= len(line.argv):
                continue
            given = line.argv[at]
            if given is None:
                hidden = True
                continue
            one: Match = "yes" if _expression(word).fullmatch(given) else _by_glob(word, given)
            if one != "no":
                following[at + 1] = _least(how, one)
        if not following:
            return "maybe" if hidden else "no"
        reached, anywhere = following, False
    return "yes" if "yes" in reached.values() else "maybe"


def _by_glob(wanted: str, word: str) -> Match:
    if not isinstance(word, Glob):
        return "no"
    return "maybe" if fnmatch.fnmatchcase(wanted.replace(_STAR, "x"), base_name(word)) else "no"


def _least(one: Match, other: Match) -> Match:
    return "no" if "no" in (one, other) else "maybe" if "maybe" in (one, other) else "yes"
