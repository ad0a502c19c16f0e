"""What one command runs beside itself."""

from __future__ import annotations

import re
from bisect import bisect
from typing import Final

from harness_core.permissions.embedded import COMMAND_OPTIONS, TOLD, embedded, written
from harness_core.permissions.gathered import (
    LONGEST_OPTION,
    MOST_CHARACTERS,
    MOST_INNER,
    RUNS_VALUE,
    WINDOW,
    plain_file,
)
from harness_core.permissions.shells import Shells
from harness_core.permissions.spelling import Glob, base_name, escapes
from harness_core.permissions.text import listed
from harness_core.permissions.verbs import Argv, without_options
from harness_core.permissions.wrappers import SHELLS, opens_shell, starts, unadorned

_RUNS_NEXT: Final = re.compile(
    r"--(?:[a-z]+-)*(?:command|exec|prog|program|action|pager|pre|cmd|pack|wrapper|editor|shell|run|filter|rsh|extcmd"
    r"|call)"
)
_LETTERS_C: Final = re.compile(r"-[A-Za-z]*c|--command")
_EVALUATED: Final = listed("eval trap ssh watch parallel tmux concurrently")


class Inner(Shells):
    """Follows programs that run others."""

    def _run(self, argv: Argv) -> None:
        if argv in self.done:
            return
        self.done.add(argv)
        for place, word in enumerate(argv[1:], 1):
            if not word or ("=" not in word and word[:2] != "--") or len(word) > MOST_CHARACTERS:
                continue
            option, given, value = word.partition("=")
            if len(option) > LONGEST_OPTION:
                continue
            if given and RUNS_VALUE.fullmatch(option):
                self._add(value.removeprefix("exec="))
            elif word[:2] == "--" and place + 1 < len(argv) and _RUNS_NEXT.fullmatch(word):
                self._add(argv[place + 1] or "")
        pending = [argv]
        seen: set[Argv] = set()
        while pending:
            current = pending.pop()
            if not current or current in seen:
                continue
            self.follow -= len(current) if seen else 0
            if len(seen) >= MOST_INNER or self.follow < 0:
                self._too_deep(argv)
                return
            seen.add(current)
            self.commands.append(current)
            self.commands.extend(without_options(current))
            first = current[0]
            if first is None or isinstance(first, Glob):
                self._hides("the program's name is only known when it runs")
                continue
            if "/" in first:
                self.scripts.add(plain_file(first))
            pending.extend(self._inner(base_name(first), current))

    def _too_deep(self, argv: Argv) -> None:
        """From here on every place in it counts as the beginning of a command, and every text in it as its words."""
        self._hides("there are too many commands within commands")
        self.commands.extend(argv[at : at + WINDOW] for at in range(len(argv)))
        for word in argv:
            if word and " " in word:
                self._scan(word)

    def _inner(self, name: str, argv: Argv) -> list[Argv]:
        """The commands that this one runs; strings that it evaluates are put aside for reading."""
        if opens_shell(argv):
            self._fed()
        if name in ("find", "fd", "fdfind"):
            return self._repeated("{}", self._actions(argv))
        if name == "git":
            return self._git(argv)
        if name.startswith("git-"):
            return [("git", name[4:], *argv[1:])]
        if name == "capsh":
            place = next((at for at, word in enumerate(argv) if word in ("--", "==")), 0)
            return [("bash", *argv[place + 1 :])] if place else []
        if name in ("nix", "nix-shell"):
            return self._nix(argv)
        self._given(name, argv)
        self._language(name, argv)
        return self._started(name, argv)

    def _nix(self, argv: Argv) -> list[Argv]:
        self._option_string(argv, ("--run", "--command"))
        places = [at for at, word in enumerate(argv) if word in ("-c", "--command")]
        for at in places:
            self._add((argv[at + 1 : at + 2] or ("",))[0] or "")
        return [argv[at + 1 :] for at in places[-MOST_INNER - 2 :]]  # the last are looked at first

    def _given(self, name: str, argv: Argv) -> None:
        """What a program evaluates of its own words."""
        if name in SHELLS:
            self._shell(argv)
        elif name in _EVALUATED:
            self._evaluated(name, argv)
        elif name in (".", "source"):
            self._fed("a file is run as if it were written here")
        elif name in ("alias", "hash", "enable"):
            self._hides("a program is given another name")
            for word in argv[1:]:
                if word and "=" in word:
                    self._add(word.partition("=")[2])
        elif name in ("su", "runuser", "newgrp", "at", "batch"):
            self._login(name, argv)
        elif name in ("crontab", "make"):
            self._table(name, argv)
        elif name in ("echo", "printf"):
            text = " ".join(word for word in argv[1:] if word)
            self.strings.extend((text, escapes(text)) if "\\" in text else (text,))
        elif name in COMMAND_OPTIONS:
            self._option_string(argv, COMMAND_OPTIONS[name], " host command" if name == "rsync" else "")
            if name == "script" and not any(_LETTERS_C.match(word or "") for word in argv[1:]):
                self._fed()
        elif name == "env":
            self._option_string(argv, ("-S", "--split-string"))
        elif name in ("sudo", "doas"):
            self._elevated(argv)
        else:
            self._programs(name, argv)

    def _language(self, name: str, argv: Argv) -> None:
        """What a program is told in a language of its own: files that it writes, commands that it runs."""
        if name in TOLD:
            self.tells.add(name)
        self.written.update(map(plain_file, written(name, argv[1:])))
        for text in embedded(name, argv[1:]):
            self._add(text)

    def _started(self, name: str, argv: Argv) -> list[Argv]:
        """The commands that a program starts with words of its own."""
        if name == "command" and len(argv) > 1 and argv[1] and re.fullmatch(r"-p?[vV]+", argv[1]):
            return []  # it only says what the name means
        places = starts(argv, MOST_INNER + 1)
        self.commands.extend(unadorned(argv, places))
        inner = [argv[start:] for start in places]
        for first in (one[0] for one in inner):
            if first and " " in first:
                self._add(first)
        return self._repeated(_replaced(argv), inner) if name in ("xargs", "gxargs", "parallel") else inner

    def _actions(self, argv: Argv) -> list[Argv]:
        found = []
        ends = [place for place, word in enumerate(argv) if word in (";", "+")] + [len(argv)]
        for place, word in enumerate(argv):
            if word in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch") or (
                word and argv[0] != "find" and re.fullmatch(r"-[A-Za-z]*[xX]", word)
            ):
                found.append(argv[place + 1 : ends[bisect(ends, place)]])
                if len(found) > MOST_INNER:  # more of them are not told apart
                    break
        return found


def _replaced(argv: Argv) -> str:
    """What xargs replaces in the words of its command; a text that is in none of them if nothing is."""
    for place, word in enumerate(argv[1:], 1):
        if word in ("-I", "--replace") and place + 1 < len(argv):
            return argv[place + 1] or "{}"
        if word and (word[:2] in ("-I", "-i") or word.startswith("--replace=")):
            return word.partition("=")[2] if word[1] == "-" else word[2:] or "{}"
    return "{}" if argv[0] == "parallel" else "\0"
