"""What a shell runs, and whatever starts one: words that it evaluates, and what it is fed with."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from harness_core.permissions.gathered import FED, MOST_INNER, plain_file
from harness_core.permissions.orders import Orders
from harness_core.permissions.spelling import base_name
from harness_core.permissions.verbs import Argv
from harness_core.permissions.wrappers import SHELLS, running, runs_another, starts

_TABLE: Final = re.compile(r"-[A-Za-z]*f|--(?:make)?file=")
_SOURCE: Final = re.compile(r"\d+|:::\+?|::::\+?")  # of arguments for `parallel`, where its command should stand
_SHELL_VALUE: Final = re.compile(r"[-+][A-Za-z]*[oO][A-Za-z]*|--(?:rcfile|init-file)")  # `-euo pipefail`


class Shells(Orders):
    """Finds commands in what shells are given."""

    def _shell(self, argv: Argv) -> None:
        takes = reads = ended = False
        for place, word in enumerate(argv[1:], 1):
            if word in ("-", "--") and not ended:
                ended = True
                continue
            if word in ("--version", "--help") and place == 1:
                return
            if word is not None and not ended and word.startswith(("-", "+")):
                takes = takes or (word[1:2] != "-" and "c" in word[1:])
                reads = reads or (word[1:2] != "-" and "s" in word[1:])
                continue
            if place > 1 and _SHELL_VALUE.fullmatch(argv[place - 1] or ""):
                continue
            if not takes and (reads or (word is not None and FED.fullmatch(word))):
                break
            if not takes:
                self._script(word)
                return
            if word is None:
                self._hides("a shell is given a command that is only known when it runs")
            else:
                self._add(word)
            return
        self._fed()

    def _table(self, name: str, argv: Argv) -> None:
        """Programs that read from a file, or from what they are fed with, which commands there are."""
        words = [word for word in argv[1:] if word not in ("-f", "--file", "--makefile", "-u", "--")]
        self.scripts.update(plain_file(word) for word in words if word)
        files = [_TABLE.sub("", word or "") for word in words]
        if name == "crontab" and not any(word in ("-l", "-r", "-e") for word in words):
            self.timed = True
            if not any(file and not FED.fullmatch(file) for file in files[-1:]):
                self._fed("what is to run later is only known from what it is fed with")
        # The parser loses the dash in `make -f - <<END`.
        elif any(FED.fullmatch(file) for file in files) or argv[-1] in ("-f", "--file", "--makefile"):
            self._fed("what is to run is only known from what it is fed with")

    def _login(self, name: str, argv: Argv) -> None:
        """Programs that start a shell, which reads what it is fed with unless it is given a command."""
        self._option_string(argv, ("-c", "--command", "--session-command"))
        if name in ("at", "batch"):
            told = any(word in ("-l", "-r", "-d", "-c", "-f") for word in argv)
            self.scripts.update(plain_file(file) for option, file in pairwise(argv) if option == "-f" and file)
        else:
            told = any(word and word.startswith(("-c", "--command", "--session-command")) for word in argv[1:])
            told = told or (name == "runuser" and any(word and word.startswith(("-u", "--user")) for word in argv[1:]))
        if not told:
            self._fed()

    def _elevated(self, argv: Argv) -> None:
        places = starts(argv, MOST_INNER + 1)
        options = argv[1 : places[0]] if places else argv[1:]
        if any(w and (w in ("--shell", "--login") or re.fullmatch(r"-[A-Za-z]*[si]", w)) for w in options):
            if not places:
                self._fed()
            for place in places:
                self._add(" ".join(word for word in argv[place:] if word))

    def _repeated(self, mark: str, inner: list[Argv]) -> list[Argv]:
        """Commands that are run with words from elsewhere: a shell must not find its program there."""
        for one in inner:
            name = base_name(one[0]) if one else ""
            if name in SHELLS and any(word and mark in word for word in one):
                self._hides("a shell is given a command that is only known when it runs")
            elif one and (mark in (one[0] or "") or (len(one) == 1 and runs_another(name))):
                self._hides("the program's name is only known when it runs")
        return inner

    def _evaluated(self, name: str, argv: Argv) -> None:
        words = argv[1:]
        if name == "tmux":
            places = running(argv)
            for place in places[1 : MOST_INNER + 1]:
                self._add(" ".join(word for word in argv[place + 1 :] if word and word[0] != "-"))
            words = tuple(w for w in argv[places[0] + 1 :] if not w or w[0] != "-") if places else ()
        elif name in ("eval", "trap"):
            words = words[1:] if words[:1] == ("--",) else words
            words = words[:1] if name == "trap" else words
        else:
            while words and (words[0] is None or words[0].startswith("-")):
                words = words[1:]
            words = words[1:] if name == "ssh" else words
        if None in words:
            self._hides(f"{name} is given a command that is only known when it runs")
        if name == "ssh" and not words:
            self._fed()
        if name == "parallel" and all(_SOURCE.fullmatch(argv[at] or "x") for at in starts(argv)):
            self._fed("its commands are only known from what it is fed with")
        self._add(" ".join([word for word in words if word is not None]))
        for word in dict.fromkeys(words) if name != "eval" else ():
            if word:
                self._add(word)
