"""What a program may run that is told so in its words: behind an option, in a piece of code, or as a command.

No list of programs that run others is ever whole. So every program counts as one that may, but for those that are known
to take their words as data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final

from harness_core.permissions import patterns
from harness_core.permissions.embedded import AWKS, SEDS
from harness_core.permissions.everywhere import commands_in
from harness_core.permissions.options import risky
from harness_core.permissions.patterns import Line
from harness_core.permissions.programs import OWN, PROGRAMS
from harness_core.permissions.spelling import base_name
from harness_core.permissions.text import listed
from harness_core.permissions.verbs import Argv
from harness_core.permissions.wrappers import RUNNERS, SHELLS, running, starts

MOST_PLACES: Final = 1_000  # at which a command may begin; more than anybody reviews
_WINDOW: Final = 12  # words from each place on that a rule can see

# Programs to which every word is data, beside those that only read.
_DATA: Final = listed(
    "cp mv rm mkdir rmdir touch ln chmod chown chgrp dd tee truncate shred install mktemp mkfifo cd pushd popd exit "
    "return break continue shift set unset export declare typeset local readonly read wait kill pkill killall sleep "
    "umask ulimit getopts let dirs jobs fg bg disown times logger wall write mail tput clear stty unzip gunzip gzip "
    "bzip2 xz zstd cpio patch pwd history [[ (( eval trap . source alias hash enable case esac for select in fi done"
)
# Programs to which every word is data, but for options that are known.
_OPTIONS: Final = listed(
    "git tar rsync zip curl wget man less more bat split scp rg sort openssl vim vi nvim view ex emacs nano"
)
_READ: Final = (frozenset(PROGRAMS) | frozenset(OWN)) - listed("git sed awk gawk mawk rg sort tar command")
_AWK_RUNS: Final = re.compile(r"[|@]|system|getline|/inet|^-[fEie]|^--")
_SED_RUNS: Final = re.compile(r"(?:^|[;{}\n!,~$/|#0-9])[^\S\n]*[0-9gIpM]{0,20}e", re.I)  # `e`, or the flag of that name
_GROUPS: Final = listed(
    "run run-script network volume image container compose system builder buildx context config secret service"
)
_PLAIN: Final = re.compile(r"[\w./@%][\w./@%+-]*")
_BETWEEN: Final = re.compile(r"[\s;|&(){}<>`$!,\[\]]+")
_QUOTES: Final = re.compile(r"['\"\\]")
_GLUED: Final = re.compile(r"-[A-Za-z0-9]")
_WITHIN: Final = re.compile(r"[\s;|&(){}<>`$!,\[\]=:]+")


def carries(pattern: str, command: str) -> str:
    """The program that may run what this pattern of a deny or ask rule speaks of; "" if there is none."""
    wanted = patterns.words_of(pattern).words
    if not wanted:
        return ""
    name = base_name(wanted[0]).casefold()
    found = _carried(command)
    if "\0" not in name:
        return next((by for by, line in found.get(name, ()) if patterns.strikes(pattern, line) != "no"), "")
    return next((by for all_ in found.values() for by, line in all_ if patterns.strikes(pattern, line) != "no"), "")


def programs(command: str) -> AbstractSet[str]:
    """The base names, casefolded, of all programs that may be run."""
    return _carried(command).keys()


def too_many(command: str) -> bool:
    """Whether there are more places at which a command may begin than are looked at."""
    return sum(map(len, _carried(command).values())) >= MOST_PLACES


def forget() -> None:
    """Forget what was found."""
    _carried.cache_clear()


@lru_cache(maxsize=16)  # several rules look at one command
def _carried(command: str) -> dict[str, list[tuple[str, Line]]]:
    """What may be run, by the name of its program: who may run it, and the words."""
    found: dict[str, list[tuple[str, Line]]] = {}
    every = commands_in(command)
    left = MOST_PLACES
    for argv in (*every.commands, *every.told):
        by = base_name(argv[0]) if argv else ""
        for inner in _begun(_told(by, argv)) if by else ():
            found.setdefault(base_name(inner[0]).casefold(), []).append((by, Line(inner)))
            left -= 1
            if left <= 0:
                return found
    return found


def _told(name: str, argv: Argv) -> Sequence[str | None]:
    """The words of a program that are not known to be data, or read as commands of their own."""
    words = argv[1:]
    if not words or name in _DATA or name in _READ:
        return ()
    if name in _OPTIONS:
        return words if risky(name, [word or "" for word in words]) else ()
    if name in AWKS:
        return [word for word in words if word and _AWK_RUNS.search(word)]
    if name in SEDS:
        return [word for word in words if word and _SED_RUNS.search(word) and not _PLAIN.fullmatch(word)]
    if name in SHELLS:
        code = next((at for at, word in enumerate(words) if word and re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word)), -2)
        return [word for at, word in enumerate(words) if at != code + 1]
    places = starts(argv)
    if len(places) == 1:
        return argv[1 : places[0]]
    if name in RUNNERS and not running(argv) and words[0] and not words[0].startswith("-"):
        return words[2 if words[0] in _GROUPS else 1 :]
    return words


def _begun(words: Sequence[str | None]) -> Iterator[Argv]:
    """Where a command may begin in these words, and in pieces of them; the words from there on."""
    for at, word in enumerate(words):
        if not word:
            continue
        behind = tuple(words[at + 1 : at + _WINDOW])
        if _PLAIN.fullmatch(word):
            yield (word, *behind)
            continue
        for tokens in _readings(word):
            for place in range(len(tokens)):
                yield (*tokens[place : place + _WINDOW], *behind)[:_WINDOW]


def _readings(word: str) -> set[tuple[str, ...]]:
    """What a word may be taken apart into, whatever quotes mean to whoever reads it."""
    found: set[tuple[str, ...]] = set()
    for plain in {_QUOTES.sub("", word), _QUOTES.sub(" ", word)} if _QUOTES.search(word) else (word,):
        for between in (_BETWEEN, _WITHIN):
            tokens = tuple(token for token in between.split(plain) if token)
            found.add(tokens)
            if tokens and _GLUED.match(tokens[0]):  # the value is glued to a letter
                found.add((tokens[0][2:], *tokens[1:]) if tokens[0][2:] else tokens[1:])
    return found
