"""What a program is told to run: by options, by git's configuration, or in code that an interpreter is given."""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import Final

from harness_core.permissions.embedded import AWKS, SEDS, computes
from harness_core.permissions.gathered import CALLS, FED, MOST_INNER, Gathered
from harness_core.permissions.verbs import Argv, verbs
from harness_core.permissions.wrappers import INTERPRETERS, unnumbered

# Keys of git's configuration whose value is run.
_RUNS_KEY: Final = re.compile(
    r"alias\.|pager|editor|command|askpass|helper|cmd|program|external|textconv|clean|smudge|process|driver|fsmonitor"
    r"|hook|proxy|browser|path|uploadpack|receivepack|!",
    re.I,
)
_LETTERS: Final = re.compile(r"-[A-Za-z]+")
_GIVEN: Final = re.compile(
    r"-[A-Za-z]*[ceEmrpV]|--(?:eval|print|command|version|help|run)(?:=.*)?|-[hv]|-[EceRm].+", re.S
)


class Orders(Gathered):
    """Finds commands in what programs are told."""

    def _git(self, argv: Argv) -> list[Argv]:
        """git without its global options, and what its options run."""
        if argv in self.verbs:
            return []
        for place, word in enumerate(argv):
            if word is None or "=" not in word:
                continue
            key, _, value = word.partition("=")
            if value[:1] == "!" or (argv[place - 1] == "-c" and _RUNS_KEY.search(key)):
                self._add(value.removeprefix("!"))
                self._add(f"git {value}" if key.casefold().startswith("alias.") else "")
        found: list[Argv] = [("git", *argv[at:]) for at in islice(verbs(argv), MOST_INNER)]
        self.verbs.update(found)
        for option, behind in pairwise(found[0] if found else ()):  # the first holds all that the others do
            if option in ("-x", "--exec") and behind:
                self._add(behind)
        for inner in list(found):
            words = [word for word in inner[2:] if word] if inner[1] == "config" else []
            if any(_RUNS_KEY.search(word) for word in words):
                for word in words:
                    self._add(word.removeprefix("!"))
                    self._add(f"git {word}")
            if inner[1:3] in (("bisect", "run"), ("submodule", "foreach")):
                rest = inner[3:]
                while rest and rest[0] and rest[0][0] == "-":
                    rest = rest[1:]
                found.append(rest)
                self._add(" ".join(word for word in rest if word))
        return [inner for inner in found if inner != argv]

    def _option_string(self, argv: Argv, options: tuple[str, ...], behind: str = "") -> None:
        """Read the values of these options. behind: what the program puts behind them."""
        letters = {option[1] for option in options if len(option) == 2}
        for place, word in enumerate(argv):
            if not word or word[0] != "-":
                continue
            exact = word in options or (word[-1] in letters and _LETTERS.fullmatch(word))
            if exact and place + 1 < len(argv):
                self._value(argv[place + 1], behind)
            if word[1:2] == "-":
                option, given, value = word.partition("=")
                if given and option in options:
                    self._value(value, behind)
            elif glued := next((word[at + 1 :] for at, letter in enumerate(word) if letter in letters), ""):
                self._value(glued.lstrip("="), behind)  # `env -iS'…'`

    def _value(self, text: str | None, behind: str = "") -> None:
        if text is None:
            self._hides("it is given a command that is only known when it runs")
        else:
            self._add(text + behind)

    def _programs(self, name: str, argv: Argv) -> None:
        """Strings that a one-line program hands to a shell, and programs that are only known when they run."""
        base = unnumbered(name)
        if base in INTERPRETERS:
            self._interpreter(argv)
        elif base in AWKS:
            words = [
                w for at, w in enumerate(argv[1:]) if (w or "")[:1] != "-" and argv[at] not in ("-v", "-F", "--assign")
            ]
            if words[:1] == [None]:
                self._hides("awk is given a program that is only known when it runs")
        elif base not in SEDS and base not in ("vim", "less"):
            return
        if computes(base, argv[1:]):
            self._hides(f"{base} runs what is only known when it runs")
        for word in argv[1:]:
            for _, inner in CALLS.findall(word or ""):
                self._add(inner)
            for inner in re.findall(r"`([^`]*)`", word or "") if base in ("perl", "ruby", "php") else ():
                self._add(inner)

    def _interpreter(self, argv: Argv) -> None:
        for place, word in enumerate(argv[1:], 1):
            if word is not None and word != "-" and word.startswith("-"):
                if _GIVEN.fullmatch(word):
                    if argv[place + 1 : place + 2] == (None,):
                        self._hides("an interpreter is given a program that is only known when it runs")
                    return
                continue
            if place > 1 and argv[place - 1] in ("-W", "-X", "-I", "-Q", "-r", "--require", "--import"):
                continue
            if word == "run" and place == 1:
                continue
            if word is None or not FED.fullmatch(word):
                self._script(word)
                return
            break
        self._hides("an interpreter runs what it is fed with")
