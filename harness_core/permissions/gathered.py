"""What was found so far of the commands that a text may run, and what is still to be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from harness_core.permissions.embedded import embedded
from harness_core.permissions.verbs import Argv

MOST_CHARACTERS: Final = 50_000  # of texts within texts that are read; beyond, the rest counts as unknown
# Texts are read again where they may mean several things, each of them at most this often, and these are for free.
AGAIN: Final = 3
FREE: Final = 5_000
FOR_A_TEXT: Final = 20  # characters that are counted for it, however short it is
FOLLOWED: Final = 1_000  # words of commands that others run, and one more for so many characters of the text:
FOR_A_WORD: Final = 3
MOST_INNER: Final = 20  # programs in front of one command, each of which runs the next
LONGEST_OPTION: Final = 64
WINDOW: Final = 12  # words of a raw scan that a rule can see from each place
RUNS_VALUE: Final = re.compile(
    r"--?[a-z-]*(?:command|exec|prog|action|pager|pre|cmd|pack|wrapper|editor|shell|run|call)[a-z-]*"
    # variables that name a program: GIT_PAGER, LESSOPEN, RSYNC_RSH …
    r"|[A-Z_]*(?:PAGER|EDITOR|VISUAL|COMMAND|CMD|SSH|RSH|SHELL|ASKPASS|BROWSER|LESSOPEN|LESSCLOSE|DIFF|EXEC|PROXY"
    r"|PROGRAM|BASH_ENV)[A-Z_]*|ENV|PS4"
)
FED: Final = re.compile(r"-|/dev/(?:stdin|fd/\d+)|/proc/(?:self|thread-self|\d+)/fd/\d+")  # what a program is fed with
CALLS: Final = re.compile(
    r"(?:system|popen|exec\w{0,40}|run|call|spawn\w{0,40}|shell)\s*+\(?\s*+\[?\s*+(['\"])(.*?)\1", re.S
)
_TIMES: Final = re.compile(r"(?m)^\s*(?:@[a-z]+|(?:[\d*/,A-Za-z-]+[ \t]+){4}[\d*/,A-Za-z-]+)[ \t]+")  # of a crontab


def raw_scan(text: str) -> Iterator[Argv]:
    """The words of a text that cannot be parsed, from each place on. Quotes and backslashes are dropped."""
    for plain in dict.fromkeys((re.sub(r"['\"\\]", "", text), re.sub(r"['\"\\,]", " ", text))):
        words = re.findall(r"[^\s;|&(){}<>`$]+", plain)
        for at in range(len(words)):
            yield tuple(words[at : at + WINDOW])


def plain_file(path: str) -> str:
    """A file in one spelling, to see whether two places name the same."""
    return path.removeprefix("./")


class Gathered:
    """The commands of a text while it is read."""

    def __init__(self) -> None:
        self.commands: list[Argv] = []
        self.opaque = ""
        self.told: list[Argv] = []
        self.verbs: set[Argv] = set()  # of git, without options before them
        self.texts: list[str] = []
        self.seen: set[str] = set()
        self.done: set[Argv] = set()
        self.budget = MOST_CHARACTERS  # characters that may still be read
        self.braces = MOST_CHARACTERS  # characters of words in braces, and of what they make, that may still be read
        self.follow = FOLLOWED  # words of inner commands that may still be looked at
        self.scanned: list[str] = []  # texts of which the words were taken as they are
        self.source: str | bytes = b""
        self.strings: list[str] = []  # quoted words, which a shell may be fed with
        self.shell = False  # a shell reads its input
        self.timed = False  # a table of times does, in which commands stand behind five words
        self.tells: set[str] = set()  # programs that are told what to do in a language of their own
        self.written: set[str] = set()  # files
        self.scripts: set[str] = set()  # files that are run
        self.plain: set[str] = set()  # the texts of commands that were read

    def _feed(self) -> None:
        """What is written out in quotes and here-documents, to those who may run it."""
        if self.scripts & self.written:
            self._fed("it runs a file that it writes")
        if self.shell:
            self.shell = False
            for string in self.strings:
                self._add(string)
                for _, inner in CALLS.findall(string):
                    self._add(inner)
                if self.timed:
                    self._add(_TIMES.sub("", string))
        for name in self.tells:
            for text in embedded(name, self.strings):
                self._add(text)

    def _begin(self, text: str) -> None:
        """Read this text, and what is found in it as far as is fair for its length."""
        self.budget = min(MOST_CHARACTERS, AGAIN * len(text) + FREE)
        self.follow = FOLLOWED + len(text) // FOR_A_WORD
        self._add(text)

    def _add(self, text: str) -> None:
        if text in self.seen:
            return
        for variant in (text, text.replace("\\\n", "")) if "\\\n" in text else (text,):
            if variant in self.seen or not variant.strip():
                continue
            self.budget -= len(variant) + FOR_A_TEXT
            if self.budget < 0 and self.seen:
                self._hides("there are too many commands within commands")
                self._scan(variant)
                return
            self.seen.add(variant)
            self.texts.append(variant)

    def _scan(self, text: str) -> None:
        """The words of a text that is not read, unless they stand so in one that was scanned already."""
        if self.budget > -MOST_CHARACTERS and not any(f" {text}" in f" {known}" for known in self.scanned):
            self.scanned.append(text)
            self.commands.extend(raw_scan(text))

    def _hides(self, why: str) -> None:
        self.opaque = self.opaque or why

    def _fed(self, why: str = "a shell runs what it is fed with") -> None:
        self.shell = True
        self._hides(why)

    def _script(self, word: str | None) -> None:
        if word is None:
            self._hides("which script is run is only known when it runs")
        else:
            self.scripts.add(plain_file(word))
