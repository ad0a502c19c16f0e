"""Finds every command in a text, at any depth, for rules that deny or ask. Here doubt widens: what only may run counts.

The strict reading stops at the first odd construct; this one never stops. What it cannot know is None, and said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from harness_core.permissions.gathered import (
    AGAIN,
    LONGEST_OPTION,
    RUNS_VALUE,
    WINDOW,
    plain_file,
    raw_scan,
)
from harness_core.permissions.grammar import parse
from harness_core.permissions.inner import Inner
from harness_core.permissions.spelling import braced, closed, loose
from harness_core.permissions.text import listed
from harness_core.permissions.verbs import Argv

_ARGUMENTS: Final = listed(
    "word number string raw_string ansi_c_string translated_string concatenation expansion simple_expansion "
    "command_substitution process_substitution arithmetic_expansion brace_expression regex extglob_pattern"
)
MOST_SUBSTITUTIONS: Final = 20  # in one quoted text
_EXPANDS: Final = re.compile(r"[$`<>{]")  # without one of these nothing in a word is unknown
_MEANS_ITSELF: Final = re.compile(r"[^'\"\\$`*?\[<>{]*")
# A command of which the grammar makes the words between its blanks: nothing is set in front, and nothing is compared.
_PLAIN_COMMAND: Final = re.compile(r"(?![^ \t]*=)[A-Za-z0-9_./:@%+,=!^~ \t-]+")
_COMPARES: Final = re.compile(r"=[=~]")
_SIGNS: Final = ("==", "=~")  # of `[[ … ]]`, which the grammar takes for no words wherever they stand alone
_QUOTED: Final = listed("string raw_string ansi_c_string translated_string")  # in which braces mean themselves
_ONE_PIECE: Final = listed("word number raw_string")
_UNKNOWN: Final = listed(
    "expansion simple_expansion command_substitution process_substitution arithmetic_expansion brace_expression "
    "variable_name special_variable_name"
)
# Leaves in which the grammar may have overlooked a substitution.
_LEAVES: Final = listed("string_content heredoc_content heredoc_body word regex extglob_pattern ERROR string expansion")
# Builtins that evaluate a quoted string as arithmetic, as a variable's name or as a command.
_EVALUATE: Final = re.compile(
    r"(?<![\w.-])(?:let|test|printf|read|unset|declare|typeset|local|export|readonly|wait|mapfile|readarray|compgen"
    r"|complete|trap|PS4|PROMPT_COMMAND|BASH_ENV|ENV)(?![\w.-])|\[|@[PEA]\}|\$\(\(|\$\["
)
_REDIRECTS: Final = ("<", ">", b"<", b">")
_IN_BACKTICKS: Final = re.compile(r"\\([$`\\])")
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)\+?=")
_EXPANDED: Final = re.compile(r"[$`]|[<>]\(")


@dataclass(frozen=True, slots=True)
class Found:
    """The commands of a text, None for a word that is only known when it runs. opaque: what hides commands, or "".

    told: programs, each with the values of variables that are set for it alone.
    """

    commands: tuple[Argv, ...]
    opaque: str = ""
    told: tuple[Argv, ...] = ()


@lru_cache(maxsize=16)  # several rules look at one command
def commands_in(text: str) -> Found:
    """Every command that this text may run. Never raises."""
    search = _Search()
    try:
        search.all(text)
    except Exception as error:  # what was found counts; that there may be more is said
        search.opaque = search.opaque or f"the command could not be read to the end ({type(error).__name__})"
        search.commands.extend(raw_scan(text))
    return Found(tuple(dict.fromkeys(search.commands)), search.opaque, tuple(search.told))


class _Search(Inner):
    def all(self, text: str) -> None:
        self._begin(text)
        while self.texts:
            self._text(self.texts.pop())
            if not self.texts:
                self._feed()
        self.told.extend((name, *self.strings) for name in sorted(self.tells) if self.strings)

    def _text(self, text: str) -> None:
        source = text.encode("utf-8", "replace")
        self.source = text if text.isascii() else source  # the parser counts bytes
        root = parse(source)
        if root is None or root.has_error:
            self._hides("the command cannot be parsed")
            self.commands.extend(raw_scan(text))
            self.budget -= (AGAIN - 1) * len(text)  # the parser takes several times as long for a fault
        if root is None:
            return
        raw_too, leaves = bool(_EVALUATE.search(text)), not root.has_error and ("`" in text or "$" in text)
        pending = [root]
        while pending:
            node = pending.pop()
            kind = node.type
            if kind == "word" or kind == "number":
                if leaves and kind == "word":
                    self._leaf(node)
                continue
            if kind == "command":
                if not root.has_error and self._plain_command(node):
                    continue
                self._command(node)
            elif kind == "redirected_statement":
                self._redirected(node)
            elif kind in ("declaration_command", "unset_command", "test_command"):
                self._keyword(node)
            elif kind == "raw_string":
                self._raw(node, raw_too)
            elif kind == "heredoc_redirect":
                self._heredoc(node)
            elif kind == "heredoc_body":
                self.strings.append(self._plain(node))
            elif kind == "herestring_redirect":
                self.strings.append(loose(self._plain(node).removeprefix("<<<").strip()))
            elif kind == "variable_assignment":
                self._assignment(node)
            elif kind == "file_redirect":
                self._redirect(node)
            elif kind == "expansion":
                self._expansion(node)
            children = node.children if kind != "raw_string" else ()
            # A text with a fault was scanned as a whole already.
            if leaves and kind in _LEAVES and not (children and kind in ("string", "expansion")):
                self._leaf(node)
            pending.extend(children)

    def _assignment(self, node: Any) -> None:
        name, _, value = self._plain(node).partition("=")
        if name.startswith("BASH_CMDS"):
            self._hides("a program is given another name")
        if len(name) <= LONGEST_OPTION and RUNS_VALUE.fullmatch(name):
            self._add(loose(value))

    def _expansion(self, node: Any) -> None:
        text = self._plain(node)
        if text.endswith("@P}"):
            self._hides("a text is expanded as a prompt, which runs what is in it")
        if "`" in text:  # of which the grammar may have made words
            self._leaf_text(text)

    def _redirect(self, node: Any) -> None:
        target = node.child_by_field_name("destination")
        if target is not None and ">" in self._plain(node):
            self.written.add(plain_file(loose(self._plain(target))))

    def _heredoc(self, node: Any) -> None:
        """Its end must be its beginning in the real text too: the parser sees one letter for all that is not ASCII."""
        marks = [loose(self._plain(c)).strip() for c in node.children if c.type in ("heredoc_start", "heredoc_end")]
        if len(marks) != 2 or marks[0] != marks[1]:
            self._hides("where a here-document ends cannot be said")
            self.commands.extend(raw_scan(self._plain(node)))

    def _leaf(self, node: Any) -> None:
        text = self._plain(node)
        if "`" in text:
            for inner in re.findall(r"`([^`]*)(?:`|\Z)", text, re.S):
                self._add(inner.replace("\\", ""))
                self._add(_IN_BACKTICKS.sub(r"\1", inner))
        if "$" in text:
            self._substitutions(text.replace("\\\n", ""))

    def _raw(self, node: Any, evaluated: bool) -> None:
        text = self._plain(node)[1:-1]
        if " " in text or "\n" in text or "\t" in text:
            self.strings.append(text)
        if evaluated and ("$(" in text or "`" in text):
            self._leaf_text(text)

    def _leaf_text(self, text: str) -> None:
        for inner in re.findall(r"`([^`]*)(?:`|\Z)", text, re.S):
            self._add(inner)
        self._substitutions(text)

    def _substitutions(self, text: str) -> None:
        for count, match in enumerate(re.finditer(r"\$\(", text)):
            if count == MOST_SUBSTITUTIONS:
                self._hides("a text holds more substitutions than are looked at")
                return
            inner = closed(text, match.end())
            self._add(inner)
            if match.end() + len(inner) == len(text):  # it is not closed, so that all others are in it
                return

    def _plain(self, node: Any) -> str:
        part = self.source[node.start_byte : node.end_byte]
        return part if isinstance(part, str) else part.decode("utf-8", "replace")

    def _word(self, node: Any, kind: str) -> str | None:
        """The word after quote removal; None if a part of it is only known when it runs."""
        text = self._plain(node)
        if _MEANS_ITSELF.fullmatch(text):
            return text
        if kind in _ONE_PIECE or not _EXPANDS.search(text):
            return loose(text)
        pending = [node]
        while pending:
            inner = pending.pop()
            if inner.type in _UNKNOWN:
                return None
            pending.extend(inner.children)
        return loose(text)

    def _words(self, node: Any, kind: str) -> list[str | None]:
        """The words that braces make of one."""
        text = self._plain(node)
        if "{" not in text or kind in _QUOTED:
            return [self._word(node, kind)]
        words = self._expanded(text)
        if words is None or len(words) == 1:
            return [self._word(node, kind) if words else None]
        return [None if _EXPANDED.search(word) else loose(word) for word in words]

    def _expanded(self, text: str) -> list[str] | None:
        """The words that braces make of one, as far as is fair for the length of all; None if that is not known."""
        self.braces -= len(text)
        words = braced(text) if self.braces >= 0 else None
        self.braces -= sum(map(len, words)) if words else 0
        return words

    def _keyword(self, node: Any) -> None:
        self.commands.append(tuple(self._plain(node).split()[:WINDOW]))

    def _redirected(self, node: Any) -> None:
        """Words behind a redirect belong to the program; the grammar counts them to the redirect."""
        body = node.child_by_field_name("body")
        while body is not None and body.type in ("list", "pipeline", "negated_command") and body.children:
            body = body.children[-1]
        words = [
            word
            for redirect in node.children
            if redirect.type in ("file_redirect", "herestring_redirect", "heredoc_redirect")
            for child in [c for c in redirect.children if c.type in _ARGUMENTS][1 if redirect.type[0] == "f" else 0 :]
            for word in self._words(child, child.type)
        ]
        if words and body is not None and body.type == "command":
            self._command(body, words)

    def _plain_command(self, node: Any) -> bool:
        """Whether blanks are all there is to tell the words of a command apart; then it is read without its nodes."""
        text = self._plain(node)
        if not _PLAIN_COMMAND.fullmatch(text) or _COMPARES.search(text) or self._is_descriptor(node):
            return False
        if text not in self.plain:
            self.plain.add(text)
            self._run(tuple(text.split()))
        return True

    def _command(self, node: Any, further: Sequence[str | None] = ()) -> None:
        text = self._plain(node)
        if text in self.plain and not further:
            return
        self.plain.add(text)
        argv = self._argv(node)
        if argv:
            self._run((*argv, *further))
            if any(child.type in _SIGNS for child in node.children):
                self._run((*self._argv(node, signs=True), *further))
            if values := [self._plain(c).partition("=")[2] for c in node.children if c.type == "variable_assignment"]:
                self.told.append((argv[0], *map(loose, values)))

    def _argv(self, node: Any, signs: bool = False) -> list[str | None]:
        """The words of a command. signs: also those that are none to the grammar."""
        argv: list[str | None] = []
        end = -1
        for child in node.children:
            kind = child.type
            if kind not in _ARGUMENTS and kind != "command_name" and not (signs and kind in _SIGNS):
                continue
            if kind == "number" and self._is_descriptor(child):
                continue
            # bash puts the name of a pipe there
            words: list[str | None] = ["/dev/fd/63"] if kind == "process_substitution" else self._words(child, kind)
            if child.start_byte == end:  # the grammar took one word for two
                words = [None]
                argv.pop()
            if words == [None] and argv and argv[0] in ("env", "sudo", "doas"):
                words = [self._set_before(child)]
            if kind == "string" and words[0] and " " in words[0]:
                self.strings.append(words[0])
            argv.extend(words)
            end = child.end_byte
        return argv

    def _is_descriptor(self, node: Any) -> bool:
        """Whether a number belongs to a redirect behind it, as in `0<file`; the grammar counts it to the words."""
        return self.source[node.end_byte : node.end_byte + 1] in _REDIRECTS

    def _set_before(self, node: Any) -> str | None:
        """The name in `env NAME="$VALUE"`, where the value is only known when it runs; None for any other word."""
        found = _ASSIGNED.match(self._plain(node))
        if found is None or RUNS_VALUE.fullmatch(found[1]):
            return None
        return found[0]
