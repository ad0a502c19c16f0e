"""What a program may be given so that it only reads: exact options, and which words are paths.

An option that is not listed asks, and so does an abbreviation of a listed one: a list of bad options is never complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from harness_core.permissions.words import Word

Operands = Literal["paths", "text", "pattern", "none"]
Kind = Literal["plain", "valued", "optional", "pair"]

_LETTERS: Final = re.compile(r"([A-Za-z0-9.@])(::?)?")
_KINDS: Final[Mapping[str, Kind]] = {"": "plain", ":": "valued", "::": "optional", ":2": "pair"}
_TAKES: Final[Mapping[Kind, int]] = {"valued": 1, "pair": 2}  # words behind a long option


class Refused(Exception):
    """This part is not known to be read-only. The message is for a reviewer."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a program was given: (option, value or None) in order, operands, and values that may be operands too.

    doubtful: a program that reads its options in another way takes these for operands, so they are checked as such.
    """

    options: tuple[tuple[str, Word | None], ...] = ()
    operands: tuple[Word, ...] = ()
    doubtful: tuple[Word, ...] = ()

    def has(self, *names: str) -> bool:
        """Whether one of these options is given."""
        return any(option in names for option, _ in self.options)


Check = Callable[[Given], None]


@dataclass(frozen=True, slots=True)
class Program:
    """One program, or one verb of a program. Made by `program`.

    options: by exact name, with what follows. operands: what the other words are ("pattern": the first is one, unless
    an option of `patterns` is given; the rest are paths). most: operands at most. glob: a file name that looks like an
    option can do no harm. digits: `-5` is an option. names: it shows names and numbers, no contents.
    path_values: options whose value is a path. apart: a value is the next word, never the rest of the letters: they are
    options themselves. first: options stand before all names, and what begins with - behind one is a name.
    check: raises Refused for what the table cannot say.
    verbs: what its first operands may be, longest first, each with its own record; before them only `options`.
    """

    options: Mapping[str, Kind] = field(default_factory=dict)
    operands: Operands = "paths"
    most: int | None = None
    glob: bool = False
    digits: bool = False
    names: bool = False
    patterns: frozenset[str] = frozenset()
    path_values: frozenset[str] = frozenset()
    apart: bool = False
    first: bool = False
    check: Check | None = None
    verbs: Mapping[str, Program] | None = None


def program(
    short: str = "",
    long: str = "",
    operands: Operands = "paths",
    *,
    most: int | None = None,
    glob: bool = False,
    digits: bool = False,
    names: bool = False,
    patterns: str = "",
    path_values: str = "",
    apart: bool = False,
    first: bool = False,
    check: Check | None = None,
    verbs: Mapping[str, Program] | None = None,
) -> Program:
    """A record from getopt's notation: letters in `short`, words in `long`; `:` a value follows, `::` perhaps, `:2` two
    (words alone)."""
    options = {f"-{letter}": _KINDS[suffix] for letter, suffix in _LETTERS.findall(short)}
    for name in long.split():
        bare = name.partition(":")[0]
        options[f"--{bare}"] = _KINDS[name[len(bare) :]]
    return Program(
        options, operands, most, glob, digits, names,
        frozenset(patterns.split()), frozenset(path_values.split()), apart, first, check, verbs,
    )  # fmt: skip


def given(what: Program, name: str, words: Sequence[Word]) -> Given:
    """Take the words behind the program apart. Raises Refused for an option that is not listed."""
    return _Reader(what, name, words).read()


class _Reader:
    def __init__(self, what: Program, name: str, words: Sequence[Word]) -> None:
        self.what, self.name, self.words, self.at = what, name, words, 0
        self.options: list[tuple[str, Word | None]] = []
        self.operands: list[Word] = []
        self.doubtful: list[Word] = []

    def read(self) -> Given:
        words = self.words
        while self.at < len(words):
            word = words[self.at]
            self.at += 1
            if self.what.first and word.text.startswith("-") and (self.operands or word.text == "--"):
                raise Refused(f"`{word.text}` here is read in another way by {self.name}")
            if word.text == "--":
                self.operands.extend(words[self.at :])
                break
            if word.text.startswith("--"):
                self._long(word)
            elif word.text.startswith("-") and word.text != "-":
                self._short(word)
            else:
                self._operand(word)
        return Given(tuple(self.options), tuple(self.operands), tuple(self.doubtful))

    def _operand(self, word: Word) -> None:
        if word.leading and not self.what.glob:
            raise Refused(f"`{word.text}` may become an option of {self.name}")
        self.operands.append(word)

    def _kind(self, option: str) -> Kind:
        kind = self.what.options.get(option)
        if kind is None:
            raise Refused(f"the option {option} of {self.name} is not known to be harmless")
        return kind

    def _long(self, word: Word) -> None:
        option, equals, value = word.text.partition("=")
        kind = self._kind(option)
        if word.glob and (kind == "plain" or not equals or option in self.what.path_values):
            raise Refused(f"`{word.text}` may become another option of {self.name}")
        if kind in ("plain", "pair") and equals:
            raise Refused(f"the option {option} of {self.name} takes no value")
        if kind in _TAKES and not equals:
            values = [self._next(option) for _ in range(_TAKES[kind])]
            self.options += [(option, value) for value in values]
            self.doubtful += values
        else:
            self.options.append((option, Word(value) if equals else None))

    def _short(self, word: Word) -> None:
        text = word.text
        if word.glob:
            raise Refused(f"`{text}` may become another option of {self.name}")
        if self.what.digits and text[1:].isdecimal():
            return
        for place, letter in enumerate(text[1:], 2):
            option = f"-{letter}"
            kind, rest = self._kind(option), text[place:]
            if kind == "plain":
                self.options.append((option, None))
                continue
            if rest and self.what.apart and not rest.isdecimal():
                raise Refused(f"what follows {option} in one word may be more options of {self.name}")
            if rest or kind == "optional":
                self.options.append((option, Word(rest) if rest else None))
            else:
                value = self._next(option)
                self.options.append((option, value))
                if len(value.text) > 1 and option not in self.what.patterns:
                    self.doubtful.append(value)
            return

    def _next(self, option: str) -> Word:
        if self.at >= len(self.words):
            raise Refused(f"the option {option} of {self.name} has no value")
        word = self.words[self.at]
        if word.glob:
            raise Refused(f"`{word.text}` may become several words, one of them an option of {self.name}")
        if self.what.apart and word.text.startswith("-"):
            raise Refused(f"`{word.text}` may be another option of {self.name}")
        self.at += 1
        return word
