"""Finds every command in a text, at any depth, for rules that deny or ask. Here doubt widens: what only may run counts.

The strict reading stops at the first odd construct; this one never stops. What it cannot know is None, and said.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, Final

from harness_core.permissions.embedded import COMMAND_OPTIONS, TOLD, computes, embedded, written
from harness_core.permissions.grammar import parse
from harness_core.permissions.spelling import Glob, braced, closed, escapes, loose
from harness_core.permissions.text import listed
from harness_core.permissions.verbs import verbs, without_options
from harness_core.permissions.wrappers import (
    INTERPRETERS,
    SHELLS,
    opens_shell,
    running,
    runs_another,
    starts,
    unnumbered,
)

Argv = tuple[str | None, ...]

MOST_CHARACTERS: Final = 50_000  # of texts within texts that are read; beyond, the rest counts as unknown
MOST_INNER: Final = 20  # programs in front of one command, each of which runs the next
_LONGEST_OPTION: Final = 64
_WINDOW: Final = 12  # words of a raw scan that a rule can see from each place

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
_RUNS_VALUE: Final = re.compile(
    r"--?[a-z-]*(?:command|exec|prog|action|pager|pre|cmd|pack|wrapper|editor|shell|run|call)[a-z-]*"
    # variables that name a program: GIT_PAGER, LESSOPEN, RSYNC_RSH …
    r"|[A-Z_]*(?:PAGER|EDITOR|VISUAL|COMMAND|CMD|SSH|RSH|SHELL|ASKPASS|BROWSER|LESSOPEN|LESSCLOSE|DIFF|EXEC|PROXY"
    r"|PROGRAM|BASH_ENV)[A-Z_]*|ENV|PS4"
)
_RUNS_NEXT: Final = re.compile(
    r"--(?:[a-z]+-)*(?:command|exec|prog|program|action|pager|pre|cmd|pack|wrapper|editor|shell|run|filter|rsh|extcmd"
    r"|call)"
)
# Keys of git's configuration whose value is run.
_RUNS_KEY: Final = re.compile(
    r"alias\.|pager|editor|command|askpass|helper|cmd|program|external|textconv|clean|smudge|process|driver|fsmonitor"
    r"|hook|proxy|browser|path|uploadpack|receivepack|!",
    re.I,
)
_FED: Final = re.compile(r"-|/dev/(?:stdin|fd/\d+)|/proc/(?:self|thread-self|\d+)/fd/\d+")  # what a program is fed with
_LETTERS: Final = re.compile(r"-[A-Za-z]+")
_CALLS: Final = re.compile(r"(?:system|popen|exec\w*|run|call|spawn\w*|shell)\s*\(?\s*\[?\s*(['\"])(.*?)\1", re.S)
_TIMES: Final = re.compile(r"(?m)^\s*(?:@[a-z]+|(?:[\d*/,A-Za-z-]+[ \t]+){4}[\d*/,A-Za-z-]+)[ \t]+")  # of a crontab
_LETTERS_C: Final = re.compile(r"-[A-Za-z]*c|--command")
_TABLE: Final = re.compile(r"-[A-Za-z]*f|--(?:make)?file=")
_SOURCE: Final = re.compile(r"\d+|:::\+?|::::\+?")  # of arguments for `parallel`, where its command should stand
_REDIRECTS: Final = ("<", ">", b"<", b">")
_IN_BACKTICKS: Final = re.compile(r"\\([$`\\])")
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)\+?=")
_EXPANDED: Final = re.compile(r"[$`]|[<>]\(")
_SHELL_VALUE: Final = re.compile(r"[-+][A-Za-z]*[oO][A-Za-z]*|--(?:rcfile|init-file)")  # `-euo pipefail`
_EVALUATED: Final = listed("eval trap ssh watch parallel tmux concurrently")
_GIVEN: Final = re.compile(
    r"-[A-Za-z]*[ceEmrpV]|--(?:eval|print|command|version|help|run)(?:=.*)?|-[hv]|-[EceRm].+", re.S
)


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


def raw_scan(text: str) -> Iterator[Argv]:
    """The words of a text that cannot be parsed, from each place on. Quotes and backslashes are dropped."""
    for plain in {re.sub(r"['\"\\]", "", text), re.sub(r"['\"\\,]", " ", text)}:
        words = re.findall(r"[^\s;|&(){}<>`$]+", plain)
        for at in range(len(words)):
            yield tuple(words[at : at + _WINDOW])


class _Search:
    def __init__(self) -> None:
        self.commands: list[Argv] = []
        self.opaque = ""
        self.told: list[Argv] = []
        self.verbs: set[Argv] = set()  # of git, without options before them
        self.texts: list[str] = []
        self.seen: set[str] = set()
        self.done: set[Argv] = set()
        self.budget = MOST_CHARACTERS
        self.source: str | bytes = b""
        self.strings: list[str] = []  # quoted words, which a shell may be fed with
        self.shell = False  # a shell reads its input
        self.timed = False  # a table of times does, in which commands stand behind five words
        self.tells: set[str] = set()  # programs that are told what to do in a language of their own
        self.written: set[str] = set()  # files
        self.scripts: set[str] = set()  # files that are run
        self.plain: set[str] = set()  # the texts of commands that were read

    def all(self, text: str) -> None:
        self._add(text)
        while self.texts:
            self._text(self.texts.pop())
            if not self.texts:
                self._feed()
        self.told.extend((name, *self.strings) for name in sorted(self.tells) if self.strings)

    def _feed(self) -> None:
        """What is written out in quotes and here-documents, to those who may run it."""
        if self.scripts & self.written:
            self._fed("it runs a file that it writes")
        if self.shell:
            self.shell = False
            for string in self.strings:
                self._add(string)
                for _, inner in _CALLS.findall(string):
                    self._add(inner)
                if self.timed:
                    self._add(_TIMES.sub("", string))
        for name in self.tells:
            for text in embedded(name, self.strings):
                self._add(text)

    def _add(self, text: str) -> None:
        for variant in (text, text.replace("\\\n", "")):
            if variant.strip() and variant not in self.seen:
                self.budget -= len(variant)
                if self.budget < 0 and self.seen:
                    self._hides("there are too many commands within commands")
                    if self.budget > -MOST_CHARACTERS:
                        self.commands.extend(raw_scan(variant))
                    return
                self.seen.add(variant)
                self.texts.append(variant)

    def _hides(self, why: str) -> None:
        self.opaque = self.opaque or why

    def _text(self, text: str) -> None:
        source = text.encode("utf-8", "replace")
        self.source = text if text.isascii() else source  # the parser counts bytes
        root = parse(source)
        if root is None or root.has_error:
            self._hides("the command cannot be parsed")
            self.commands.extend(raw_scan(text))
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
        if len(name) <= _LONGEST_OPTION and _RUNS_VALUE.fullmatch(name):
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
            self.written.add(_file(loose(self._plain(target))))

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
        if "{" not in text:
            return [self._word(node, kind)]
        words = braced(text)
        if words is None or len(words) == 1:
            return [self._word(node, kind) if words else None]
        return [None if _EXPANDED.search(word) else loose(word) for word in words]

    # -- one command ---------------------------------------------------------------------------------------------------

    def _keyword(self, node: Any) -> None:
        self.commands.append(tuple(self._plain(node).split()[:_WINDOW]))

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
            if values := [self._plain(c).partition("=")[2] for c in node.children if c.type == "variable_assignment"]:
                self.told.append((argv[0], *map(loose, values)))

    def _argv(self, node: Any) -> list[str | None]:
        argv: list[str | None] = []
        end = -1
        for child in node.children:
            kind = child.type
            if kind not in _ARGUMENTS and kind != "command_name":
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
        if found is None or _RUNS_VALUE.fullmatch(found[1]):
            return None
        return found[0]

    def _run(self, argv: Argv) -> None:
        if argv in self.done:
            return
        self.done.add(argv)
        for place, word in enumerate(argv[1:], 1):
            if not word or ("=" not in word and word[:2] != "--") or len(word) > MOST_CHARACTERS:
                continue
            option, given, value = word.partition("=")
            if len(option) > _LONGEST_OPTION:
                continue
            if given and _RUNS_VALUE.fullmatch(option):
                self._add(value.removeprefix("exec="))
            elif word[:2] == "--" and place + 1 < len(argv) and _RUNS_NEXT.fullmatch(word):
                self._add(argv[place + 1] or "")
        pending = [argv]
        seen: set[Argv] = set()
        while pending:
            current = pending.pop()
            if not current or current in seen:
                continue
            if len(seen) >= MOST_INNER:  # from here on, every place in it counts as the beginning of a command
                self._hides("there are too many commands within commands")
                self.commands.extend(argv[at : at + _WINDOW] for at in range(len(argv)))
                return
            seen.add(current)
            self.commands.append(current)
            self.commands.extend(without_options(current))
            first = current[0]
            if first is None or isinstance(first, Glob):
                self._hides("the program's name is only known when it runs")
                continue
            if "/" in first:
                self.scripts.add(_file(first))
            pending.extend(self._inner(first.rpartition("/")[2], current))

    def _inner(self, name: str, argv: Argv) -> list[Argv]:
        """The commands that this one runs; strings that it evaluates are put aside for reading."""
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
        elif name in ("find", "fd", "fdfind"):
            return self._repeated("{}", self._actions(argv))
        elif name == "git":
            return self._git(argv)
        elif name in ("su", "runuser", "newgrp", "at", "batch"):
            self._login(name, argv)
        elif name in ("crontab", "make"):
            self._table(name, argv)
        elif name in ("echo", "printf"):
            text = " ".join(word for word in argv[1:] if word)
            self.strings.extend((text, escapes(text)) if "\\" in text else (text,))
        elif name == "capsh":
            return [("bash", *argv[at + 1 :]) for at, word in enumerate(argv) if word in ("--", "==")][:1]
        elif name.startswith("git-"):
            return [("git", name[4:], *argv[1:])]
        elif name in COMMAND_OPTIONS:
            self._option_string(argv, COMMAND_OPTIONS[name], " host command" if name == "rsync" else "")
            if name == "script" and not any(_LETTERS_C.match(word or "") for word in argv[1:]):
                self._fed()
        elif name in ("nix", "nix-shell"):
            self._option_string(argv, ("--run", "--command"))
            places = [at for at, word in enumerate(argv) if word in ("-c", "--command")]
            for at in places:
                self._add((argv[at + 1 : at + 2] or ("",))[0] or "")
            if opens_shell(argv):
                self._fed()
            return [argv[at + 1 :] for at in places[-MOST_INNER - 2 :]]  # the last are looked at first
        elif name == "env":
            self._option_string(argv, ("-S", "--split-string"))
        elif name in ("sudo", "doas"):
            self._elevated(argv)
        else:
            self._programs(name, argv)
        if name in TOLD:
            self.tells.add(name)
        self.written.update(map(_file, written(name, argv[1:])))
        for text in embedded(name, argv[1:]):
            self._add(text)
        if opens_shell(argv):
            self._fed()
        if name == "command" and len(argv) > 1 and argv[1] and re.fullmatch(r"-p?[vV]+", argv[1]):
            return []  # it only says what the name means
        inner = [argv[start:] for start in starts(argv)[: MOST_INNER + 1]]
        for first in (one[0] for one in inner):
            if first and " " in first:
                self._add(first)
        return self._repeated(_replaced(argv), inner) if name in ("xargs", "gxargs", "parallel") else inner

    def _fed(self, why: str = "a shell runs what it is fed with") -> None:
        self.shell = True
        self._hides(why)

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
            if not takes and (reads or (word is not None and _FED.fullmatch(word))):
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

    def _script(self, word: str | None) -> None:
        if word is None:
            self._hides("which script is run is only known when it runs")
        else:
            self.scripts.add(_file(word))

    def _table(self, name: str, argv: Argv) -> None:
        """Programs that read from a file, or from what they are fed with, which commands there are."""
        words = [word for word in argv[1:] if word not in ("-f", "--file", "--makefile", "-u", "--")]
        self.scripts.update(_file(word) for word in words if word)
        files = [_TABLE.sub("", word or "") for word in words]
        if name == "crontab" and not any(word in ("-l", "-r", "-e") for word in words):
            self.timed = True
            if not any(file and not _FED.fullmatch(file) for file in files[-1:]):
                self._fed("what is to run later is only known from what it is fed with")
        # The parser loses the dash in `make -f - <<END`.
        elif any(_FED.fullmatch(file) for file in files) or argv[-1] in ("-f", "--file", "--makefile"):
            self._fed("what is to run is only known from what it is fed with")

    def _login(self, name: str, argv: Argv) -> None:
        """Programs that start a shell, which reads what it is fed with unless it is given a command."""
        self._option_string(argv, ("-c", "--command", "--session-command"))
        if name in ("at", "batch"):
            told = any(word in ("-l", "-r", "-d", "-c", "-f") for word in argv)
            self.scripts.update(_file(file) for option, file in pairwise(argv) if option == "-f" and file)
        else:
            told = any(word and word.startswith(("-c", "--command", "--session-command")) for word in argv[1:])
            told = told or (name == "runuser" and any(word and word.startswith(("-u", "--user")) for word in argv[1:]))
        if not told:
            self._fed()

    def _elevated(self, argv: Argv) -> None:
        places = starts(argv)
        options = argv[1 : places[0]] if places else argv[1:]
        if any(w and (w in ("--shell", "--login") or re.fullmatch(r"-[A-Za-z]*[si]", w)) for w in options):
            if not places:
                self._fed()
            for place in places:
                self._add(" ".join(word for word in argv[place:] if word))

    def _repeated(self, mark: str, inner: list[Argv]) -> list[Argv]:
        """Commands that are run with words from elsewhere: a shell must not find its program there."""
        for one in inner:
            name = (one[0] or "").rpartition("/")[2] if one else ""
            if name in SHELLS and any(word and mark in word for word in one):
                self._hides("a shell is given a command that is only known when it runs")
            elif one and (mark in (one[0] or "") or (len(one) == 1 and runs_another(name))):
                self._hides("the program's name is only known when it runs")
        return inner

    def _evaluated(self, name: str, argv: Argv) -> None:
        words = argv[1:]
        if name == "tmux":
            words = tuple(word for at in running(argv) for word in argv[at + 1 :] if not word or word[0] != "-")
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
        elif base in ("awk", "gawk", "mawk"):
            words = [
                w for at, w in enumerate(argv[1:]) if (w or "")[:1] != "-" and argv[at] not in ("-v", "-F", "--assign")
            ]
            if words[:1] == [None]:
                self._hides("awk is given a program that is only known when it runs")
        elif base not in ("sed", "vim", "less"):
            return
        if computes(base, argv[1:]):
            self._hides(f"{base} runs what is only known when it runs")
        for word in argv[1:]:
            for _, inner in _CALLS.findall(word or ""):
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
            if word is None or not _FED.fullmatch(word):
                self._script(word)
                return
            break
        self._hides("an interpreter runs what it is fed with")


def _file(path: str) -> str:
    return path.removeprefix("./")


def _replaced(argv: Argv) -> str:
    """What xargs replaces in the words of its command; a text that is in none of them if nothing is."""
    for place, word in enumerate(argv[1:], 1):
        if word in ("-I", "--replace") and place + 1 < len(argv):
            return argv[place + 1] or "{}"
        if word and (word[:2] in ("-I", "-i") or word.startswith("--replace=")):
            return word.partition("=")[2] if word[1] == "-" else word[2:] or "{}"
    return "{}" if argv[0] == "parallel" else "\0"
