"""One word of a command as bash will see it, or why that cannot be said.

The scanner finds the end of the word on its own: the parser's opinion must agree with it. It works on text in which
every character stands for one byte, as the parser's offsets do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Runs of characters that mean themselves to bash wherever they stand in a word, the first place excepted.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+@%^:=,-]+")
_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_./+@%^:=,-]+(?=[ \t\n;|&]|\Z)")
_GLOB_WORD: Final = re.compile(r"[A-Za-z0-9_./+@%^:=*?\[\]-]+(?=[ \t\n;|&]|\Z)")
_SPECIAL: Final = re.compile(r"([*?\[])")
_ENDS: Final = " \t\n;|&"
_GLOB: Final = "*?["
_AFTER_BACKSLASH: Final = "();!"  # what find and test need; other escapes only serve to hide a word
_IN_DOUBLE_QUOTES: Final = '"\\$`'
# The one use of braces that is common and no expansion: HEAD@{1}, @{u}, v1^{commit}.
_GIT_BRACES: Final = re.compile(r"(?<=[@^])\{[A-Za-z0-9/_:-]*\}")
_END: Final = re.compile(r"[ \t\n;|&]")


class Unclear(Exception):
    """What bash makes of this word cannot be said. The message is for a reviewer."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word after quote removal. glob: bash may replace it by file names; pattern: then the pattern, literals escaped.

    leading: the glob is its first character, so a file name may come out as an option. bare: written without quotes.
    """

    text: str
    bare: bool = True
    glob: bool = False
    leading: bool = False
    pattern: str = ""


def scan(text: str, start: int) -> tuple[Word, int]:
    """The word that begins at `start`, and where it ends: always further on. Raises Unclear, also where none begins."""
    if start >= len(text) or text[start] in _ENDS:
        raise Unclear("an operator stands where a word is expected")
    plain = _PLAIN_WORD.match(text, start)
    if plain and "," not in plain[0]:
        return Word(plain[0]), plain.end()
    globbed = _GLOB_WORD.match(text, start)
    if globbed and _SPECIAL.search(globbed[0]):
        return Word(globbed[0], True, True, globbed[0][0] in _GLOB, globbed[0]), globbed.end()
    return _Scanner(text, start).word()


class _Scanner:
    def __init__(self, text: str, start: int) -> None:
        self.text, self.start, self.at = text, start, start
        self.out: list[str] = []
        self.pattern: list[str] = []
        self.glob = self.leading = False
        self.open_brace = self.listed = False
        self.comma = -1

    def word(self) -> tuple[Word, int]:
        text = self.text
        if text[self.start] == "#":
            raise Unclear("a comment stands where a word is expected")
        while self.at < len(text) and text[self.at] not in _ENDS:
            before = self.at
            self._step(text[before])
            if self.at <= before:  # whatever a step makes of a character, it goes on or the reading ends
                raise Unclear("a word comes to no end")
        decoded = "".join(self.out)
        bare = decoded == text[self.start : self.at]
        pattern = _utf8("".join(self.pattern)) if self.glob else ""
        return Word(_utf8(decoded), bare, self.glob, self.leading, pattern), self.at

    def _step(self, char: str) -> None:
        if char == "'":
            self._single()
        elif char == '"':
            self._double()
        elif char == "\\":
            self._escape()
        elif char == "$":
            raise Unclear(_dollar(self.text, self.at))
        elif char == "`":
            raise Unclear(f"{quoted(self.text[self.at :])} runs another command")
        elif char in "<>":
            raise Unclear("a redirect touches a word")
        elif char in "()":
            raise Unclear("parentheses make a subshell, a function or a pattern")
        elif char == "~" and self._expands_tilde():
            raise Unclear("~ stands for a home folder")
        elif char in _GLOB:
            self._globbing(char)
        elif char == "{" and (braces := _GIT_BRACES.match(self.text, self.at)) and not self._comma_follows():
            self._literal(braces[0])
            self.at = braces.end()
        else:
            self._brace(char)

    def _brace(self, char: str) -> None:
        run = _PLAIN.match(self.text, self.at) if char not in ",." else None
        if run and not self.open_brace:
            self._literal(run[0])
            self.at = run.end()
            return
        if char == "{":
            self.open_brace = True
        elif self.open_brace and (char == "," or self.text.startswith("..", self.at)):
            self.listed = True
        elif char == "}" and self.listed:
            raise Unclear("braces expand to several words")
        self._literal(char)
        self.at += 1

    def _comma_follows(self) -> bool:
        """With a comma further on, the braces may be an expansion: `a{1}..x,y}` is two words to bash."""
        if self.comma < self.at:  # looked for once per comma: a word may have thousands of braces
            found = self.text.find(",", self.at)
            inside = found >= 0 and not _END.search(self.text, self.at, found)
            self.comma = found if inside else len(self.text)
        return self.comma < len(self.text)

    def _literal(self, text: str) -> None:
        self.out.append(text)
        self.pattern.append(literal(text))

    def _globbing(self, char: str) -> None:
        self.glob = True
        self.leading = self.leading or self.at == self.start
        self.out.append(char)
        self.pattern.append(char)
        self.at += 1

    def _expands_tilde(self) -> bool:
        return self.at == self.start or self.text[self.at - 1] in "=:"

    def _single(self) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unclear("a quote is not closed")
        self._literal(self.text[self.at + 1 : end])
        self.at = end + 1

    def _double(self) -> None:
        text, at, part = self.text, self.at + 1, []
        while at < len(text) and text[at] != '"':
            char = text[at]
            if char == "$" and text[at + 1 : at + 2] not in ('"', " "):  # before those it stands for itself
                raise Unclear(_dollar(text, at))
            if char == "`":
                raise Unclear(f"{quoted(text[at:])} runs another command")
            if char == "\\" and at + 1 < len(text) and text[at + 1] in _IN_DOUBLE_QUOTES:
                at += 1
                char = text[at]
            part.append(char)
            at += 1
        if at >= len(text):
            raise Unclear("a quote is not closed")
        self._literal("".join(part))
        self.at = at + 1

    def _escape(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if not following or following not in _AFTER_BACKSLASH:
            raise Unclear("a backslash outside quotes hides what a word is")
        self._literal(following)
        self.at += 2


def _dollar(text: str, at: int) -> str:
    if text.startswith(("$(", "$(("), at):
        return "`$((…))` is computed" if text.startswith("$((", at) else "`$(…)` runs another command"
    if text.startswith(("$'", '$"'), at):
        return "`$'…'` spells a word in another way"
    return f"{quoted(re.match(r'[$]([{][^}]*[}]?|[A-Za-z0-9_]*|.)', text[at:], re.S)[0])} is only known when it runs"  # type: ignore[index]


def quoted(text: str, most: int = 60) -> str:
    """A piece of a command for a reason: one line, not too long."""
    line = text.strip().split("\n")[0]
    return f"`{line if len(line) <= most else line[: most - 1] + '…'}`"


def literal(text: str) -> str:
    """The text as a pattern that matches nothing else."""
    return _SPECIAL.sub(r"[\1]", text) if _SPECIAL.search(text) else text


def _utf8(text: str) -> str:
    return text if text.isascii() else text.encode("latin-1").decode("utf-8")
