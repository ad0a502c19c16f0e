"""Reads a command strictly: simple commands with their decoded words, or the first reason why that cannot be done.

The tree of the parser is a whitelist: a node that is not listed here ends the reading. Words are scanned again by hand
(`words.py`), and must end where the tree says; gaps between leaves hold blanks alone. So a mistake of the grammar
makes a command ask instead of running it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from harness_core.permissions import grammar
from harness_core.permissions.grammar import MISSING, parse
from harness_core.permissions.text import dash_like, disguised
from harness_core.permissions.words import Unclear, Word, scan

MOST_WORDS: Final = 1_000  # of a whole command; nobody reviews more
DEEPEST: Final = 400  # levels of the tree; a chain of && is one level per part

_STRUCTURE: Final = frozenset({"program", "list", "pipeline", "redirected_statement"})
_WORDS: Final = frozenset({"command_name", "word", "number", "string", "raw_string", "concatenation"})
_OPERATORS: Final = frozenset({"&&", "||", ";", "|"})
# What bash itself refuses where a command begins, though the grammar lets it pass.
_OUT_OF_PLACE: Final = frozenset({";;", ";&", ";;&"})
_ENDINGS: Final = frozenset({"then", "do", "done", "fi", "else", "elif", "esac", "}"})
# For the reason: what a reviewer calls the constructs that are met most often.
_NAMES: Final = {
    "command_substitution": "`$(…)` runs another command",
    "process_substitution": "`<(…)` runs another command",
    "expansion": "a variable is only known when it runs",
    "simple_expansion": "a variable is only known when it runs",
    "arithmetic_expansion": "`$((…))` is computed",
    "ansi_c_string": "`$'…'` spells a word in another way",
    "translated_string": '`$"…"` spells a word in another way',
    "variable_assignment": "a variable is set",
    "variable_assignments": "a variable is set",
    "declaration_command": "a variable is declared",
    "unset_command": "a variable is unset",
    "heredoc_redirect": "a here-document feeds it",
    "herestring_redirect": "a here-string feeds it",
    "subshell": "parentheses make a subshell",
    "compound_statement": "a group of commands",
    "function_definition": "a function is defined",
    "for_statement": "a loop",
    "c_style_for_statement": "a loop",
    "while_statement": "a loop",
    "if_statement": "a conditional",
    "case_statement": "a conditional",
    "brace_expression": "braces expand to several words",
    "&": "`&` runs something in the background",
    "|&": "`|&` is not one of the plain operators",
    ";;": "`;;` stands alone",
}
_BLANKS: Final = re.compile(r"[ \t]*")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[.*\])?\+?=", re.S)


@dataclass(frozen=True, slots=True)
class Redirect:
    """`2>file`: fd "2" (or ""), operator ">", and where to."""

    fd: str
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: its words (the first is the program), redirects, text, and the operator before it.

    joined: "" for the first, else && || ; | (a newline counts as ;).
    """

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    source: str = ""
    joined: str = ""
    negated: bool = False

    @property
    def argv(self) -> tuple[str, ...]:
        """The words as the program gets them, globs aside."""
        return tuple(word.text for word in self.words)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a command consists of, or the first problem in words for a reviewer, and the part that has it.

    parses: the grammar finds no fault in it, and nothing about the text is disguised (whatever the constructs are).
    """

    commands: tuple[Command, ...] = ()
    problem: str = ""
    part: str = ""
    parses: bool = True


def read(command: str) -> Reading:
    """Read a command. Never raises: what cannot be read has a problem."""
    if not isinstance(command, str):
        return Reading(problem="the command is not a text", parses=False)
    return _read(command)


@lru_cache(maxsize=64)  # rules, the read-only table and what is to be looked up all ask about one command
def _read(command: str) -> Reading:
    if fault := disguised(command):
        return Reading(problem=fault, parses=False)
    try:
        source = command.encode("utf-8")
        root = parse(source)
        if grammar.missing():
            return Reading(problem=MISSING, parses=False)
        if root is None:
            return Reading(problem="the command has more parts than anybody reviews", parses=False)
        if root.has_error:
            return Reading(problem="the command cannot be parsed", parses=False)
        return _Walk(source.decode("latin-1")).read(root)
    except RecursionError:
        return Reading(problem="the command is nested too deeply", parses=False)
    except Exception as error:  # a fault of the reader must not become a permission
        return Reading(problem=f"the command cannot be read ({type(error).__name__})", parses=False)


def forget() -> None:
    """Forget what was read, for measuring and for tests that take the parser away."""
    _read.cache_clear()
    grammar.forget()


class Unparsed(Unclear):
    """The parser and the text do not agree, so that nothing is known of it."""


class _Found:
    """A simple command while it is put together."""

    def __init__(self, start: int, joined: str) -> None:
        self.start, self.end, self.joined = start, start, joined
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []
        self.negated = False


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0  # everything before this is accounted for
        self.between = ""  # operators and newlines since the last command
        self.negate = False
        self.words = 0
        self.found: list[_Found] = []

    def read(self, root: Any) -> Reading:
        try:
            self._structure(root)
            if self.text[self.at :].strip(" \t\n"):
                raise Unparsed("something is left over that cannot be parsed")
            if not self.found:
                raise Unparsed("there is no command in it")
        except Unclear as unclear:
            part = self._text(self.found[-1].start, len(self.text)) if self.found else self._text(0, len(self.text))
            named = "" if part == self._text(0, len(self.text)) else part.strip(" \t\n")
            return Reading(problem=str(unclear), part=named, parses=not isinstance(unclear, Unparsed))
        return Reading(tuple(self._command(found) for found in self.found))

    def _text(self, start: int, end: int) -> str:
        return self.text[start:end].encode("latin-1").decode("utf-8", "replace")

    def _command(self, found: _Found) -> Command:
        source = self._text(found.start, found.end).strip(" \t\n")
        return Command(tuple(found.words), tuple(found.redirects), source, found.joined, found.negated)

    # -- the tree ------------------------------------------------------------------------------------------------------

    def _structure(self, root: Any) -> None:
        pending: list[tuple[Any, int]] = [(root, 0)]
        while pending:
            node, depth = pending.pop()
            kind = node.type
            if depth > DEEPEST:
                raise Unclear("the command is nested too deeply")
            if kind in _STRUCTURE:
                pending.extend((child, depth + 1) for child in reversed(node.children))
            elif kind == "negated_command":
                self._negated(node, pending, depth)
            elif kind == "command":
                self._simple(node)
            elif kind == "test_command":
                self._bracket(node)
            elif kind == "file_redirect":
                self._redirect(node)
            elif kind == "comment":
                self._comment(node)
            elif kind in _OPERATORS:
                self._operator(node)
            elif kind in _OUT_OF_PLACE:
                raise Unparsed(_named(node))
            else:
                raise Unclear(_named(node))

    def _negated(self, node: Any, pending: list[tuple[Any, int]], depth: int) -> None:
        bang, *rest = node.children
        if bang.type != "!" or any(child.type == "negated_command" for child in rest):
            raise Unclear(_named(node))
        self._skip(bang.start_byte)
        if self.found and not self._separated():
            raise Unclear("`!` stands where no command begins")
        self.at = bang.end_byte
        self.negate = True
        pending.extend((child, depth + 1) for child in reversed(rest))

    def _skip(self, start: int) -> None:
        """Account for the gap up to `start`: blanks, or newlines where a command may end."""
        gap = self.text[self.at : start]
        if gap.strip(" \t\n"):
            raise Unparsed("something stands there that cannot be parsed")
        if "\n" in gap:
            self.between += "\n"
        self.at = start

    def _separated(self) -> bool:
        return bool(self.between)

    def _operator(self, node: Any) -> None:
        self._skip(node.start_byte)
        if not self.found or self.between.strip("\n"):
            raise Unclear(f"`{node.type}` stands where no command ends")
        if "\n" in self.between:
            raise Unclear(f"`{node.type}` begins a line")
        self.between += node.type
        self.at = node.end_byte

    def _comment(self, node: Any) -> None:
        before = self.text[node.start_byte - 1 : node.start_byte]
        text = self.text[node.start_byte : node.end_byte]
        if not text.startswith("#") or "\n" in text or (before and before not in " \t\n;|&"):
            raise Unclear("a comment cannot be told from a word")
        self._skip(node.start_byte)
        rest = self.text[node.end_byte :]
        if rest and not rest.startswith("\n"):
            raise Unclear("a comment does not end with its line")
        self.at = node.end_byte

    def _begin(self, start: int) -> _Found:
        self._skip(start)
        if self.found and not self._separated():
            raise Unparsed("two commands are not separated")
        operator = self.between.replace("\n", "") or (";" if self.between else "")
        self.found.append(_Found(start, operator if self.found else ""))
        self.found[-1].negated, self.negate, self.between = self.negate, False, ""
        return self.found[-1]

    def _simple(self, node: Any) -> None:
        children = node.children
        if not children:
            raise Unparsed("an empty command")
        found = self._begin(node.start_byte)
        for child in children:
            if child.type in _WORDS:
                self._word(child)
            elif child.type == "file_redirect":
                self._redirect(child)
            else:
                raise Unclear(_named(child))
        if not found.words:
            raise Unparsed("there is no program")
        name = found.words[0]
        if name.bare and name.text in _ENDINGS:
            raise Unparsed(f"`{name.text}` stands where nothing was begun")
        if not name.bare or name.glob:
            raise Unclear("the program's name is not written plainly")
        if _ASSIGNMENT.match(name.text):
            raise Unclear("a variable is set")

    def _bracket(self, node: Any) -> None:
        """`[ … ]` is the program test with words like any other; the grammar's idea of it is not used."""
        found = self._begin(node.start_byte)
        text, end = self.text, node.end_byte
        if text.startswith("[[", self.at) or text[self.at + 1 : self.at + 2] not in (" ", "\t"):
            raise Unclear("`[[ … ]]` is evaluated by the shell")
        found.words.append(Word("["))
        self.at += 1
        while self.at < end:
            word, self.at = scan(text, _BLANKS.match(text, self.at, end).end())  # type: ignore[union-attr]
            self._add(found, word)
        if self.at != end or found.words[-1].text != "]" or not found.words[-1].bare:
            raise Unclear("`[` has no end")
        found.end = end

    # -- leaves --------------------------------------------------------------------------------------------------------

    def _adjoins(self, start: int) -> None:
        """A further word or redirect of the same command: blanks before it, and no newline."""
        gap = self.text[self.at : start]
        if gap.strip(" \t"):
            raise Unparsed("something stands there that cannot be parsed")
        if self.between:
            raise Unclear("a command goes on behind an operator")
        self.at = start

    def _word(self, node: Any) -> None:
        found = self.found[-1]
        if found.words and self.at == node.start_byte:
            raise Unclear("two words touch")
        self._adjoins(node.start_byte)
        self._add(found, self._scanned(node))
        found.end = self.at

    def _add(self, found: _Found, word: Word) -> None:
        self.words += 1
        if self.words > MOST_WORDS:
            raise Unclear(f"the command has more than {MOST_WORDS:,} words")
        found.words.append(word)

    def _scanned(self, node: Any) -> Word:
        word, end = scan(self.text, node.start_byte)
        if end != node.end_byte:
            raise Unclear("a word cannot be told from its neighbour")
        if dash_like(word.text):
            raise Unclear("a word begins with a character that looks like a dash")
        self.at = end
        return word

    def _redirect(self, node: Any) -> None:
        if not self.found:
            raise Unclear("a redirect without a command")
        self._adjoins(node.start_byte)
        fd = ""
        children = list(node.children)
        if children and children[0].type == "file_descriptor":
            fd = self.text[children[0].start_byte : children[0].end_byte]
            self.at = children[0].end_byte
            children = children[1:]
        if len(children) < 2 or children[1].type not in _WORDS:
            raise Unclear(_named(children[0]) if len(children) == 1 else "a redirect that is not plain")
        operator, target, *further = children
        if operator.start_byte != self.at or (fd and not fd.isdigit()):
            raise Unclear("a redirect that is not plain")
        self.at = operator.end_byte
        self._adjoins(target.start_byte)
        word = self._scanned(target)
        self.found[-1].redirects.append(Redirect(fd, operator.type, word))
        self.found[-1].end = self.at
        for argument in further:  # to the grammar they belong to the redirect, to bash they are the program's
            if argument.type not in _WORDS or not self.found[-1].words or self.found[-1].words[0].text == "[":
                raise Unclear("a redirect that is not plain")
            self._word(argument)


def _named(node: Any) -> str:
    return _NAMES.get(
        node.type, f"it uses {node.type.replace('_', ' ')}" if node.is_named else f"it uses `{node.type}`"
    )
