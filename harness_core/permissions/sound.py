"""Whether a rule can ever match.  One that cannot is a mistake of whoever wrote it: a deny that was never there."""

from __future__ import annotations

import re
from typing import Final

from harness_core.permissions import urls
from harness_core.permissions.book import names
from harness_core.permissions.grammar import missing
from harness_core.permissions.paths import has_wildcard, protected, unescaped, unusual
from harness_core.permissions.patterns import exact_parts, exact_text, words_of
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.shell import read
from harness_core.permissions.spelling import base_name
from harness_core.permissions.subjects import KINDS, Kind, Twice, unambiguous
from harness_core.permissions.text import disguised, invisible
from harness_core.types import canonical

_TOOL: Final = re.compile(r"[A-Za-z0-9_*-]{1,64}")
_NO_PROGRAM: Final = re.compile(r"""[\s$^(){}\[\]:;|&<>'"!]""")
_SIGNS: Final = (":", "[", "[[")  # programs of the shell's own; what only groups or turns round others is none
_QUOTED: Final = re.compile(r"""(['"]).*\1""", re.S)
_CHOICE: Final = re.compile(r"\{[^{}]*,[^{}]*\}")
_VARIABLE: Final = re.compile(r"\$\{?[A-Z_]")
_WILD: Final = "\0*"  # how `words_of` writes a wildcard


def fault_of(rule: PermissionRule) -> str:
    """Why a rule can never match a call, or hardly what its writer meant; "" if it can. Never raises."""
    if not _TOOL.fullmatch(rule.tool):
        return "`tool` must be the name of a tool, in which * may stand for any letters"
    other = next((tool for tool in KINDS if tool == rule.tool.casefold() and tool != rule.tool), None)
    if other and rule.effect == "allow":
        return f"allow rules are case-sensitive, and the tool is called {other}"
    if rule.pattern is None:
        return ""
    if not rule.pattern.strip():
        return "the pattern is empty: leave it out to mean any arguments"
    try:
        faults = [_pattern(rule, kind) for kind in _kinds(rule)]
    except Exception as error:  # what cannot be read cannot match
        return f"the pattern cannot be read ({type(error).__name__})"
    return "" if "" in faults else faults[0]


def _kinds(rule: PermissionRule) -> list[Kind]:
    """The kinds of subject that a rule's pattern may meet; the one of its own tool first."""
    found: list[Kind] = [kind for tool, kind in KINDS.items() if names(rule, tool)]
    return list(dict.fromkeys(found if found and "*" not in rule.tool else [*found, "other"]))


def _pattern(rule: PermissionRule, kind: Kind) -> str:
    pattern, allow = rule.pattern or "", rule.effect == "allow"
    if kind != "other" and (fault := invisible(pattern)):
        return fault.replace("the text", "the pattern")
    if kind == "bash":
        return _allowed_command(pattern) if allow else _command(pattern) or _program(pattern)
    if kind == "path":
        return _path(pattern) or (_allowed_path(pattern) if allow else "")
    if kind == "url":
        return _allowed_url(pattern) if allow else _url(pattern)
    return _json(pattern, allow=allow)


# -- commands ----------------------------------------------------------------------------------------------------------


def _allowed_command(pattern: str) -> str:
    text = exact_text(pattern)
    if text is None:
        return _command(pattern) or _words(pattern)
    if fault := disguised(text):
        return fault
    if not missing() and not read(text).parses:
        return "the pattern is no command that can be read"
    if text != text.strip(" \t\n") and exact_parts(pattern) is None:
        return "the pattern begins or ends with a blank"
    return ""


def _words(pattern: str) -> str:
    first, *_ = words_of(pattern).words or (_WILD,)
    if _WILD in first:
        return "an allow rule names its program: only the words after it may have a *"
    return "a variable is set in front: only an exact pattern can allow that" if "=" in first else ""


def _command(pattern: str) -> str:
    """What is wrong with words that are compared with one command at a time."""
    if _unclosed(pattern):
        return "a quote is not closed"
    if missing():
        return ""
    reading = read(pattern)
    if len(reading.commands) > 1:
        return "the pattern has several commands, and each is compared by itself: make a rule for each"
    if reading.commands and reading.commands[0].redirects:
        return "the pattern holds a redirect, which is no word of a command"
    return ""


def _program(pattern: str) -> str:
    """What is wrong with the program of a pattern that denies or asks."""
    first, *_ = words_of(pattern).words or (_WILD,)
    name = base_name(first.replace(_WILD, "*"))
    if "=" in first and "/" not in first.partition("=")[0]:
        return "a variable is set in front: leave it out, what is denied is so behind any"
    return f"`{name}` is no name of a program" if _NO_PROGRAM.search(name) and name not in _SIGNS else ""


def _unclosed(pattern: str) -> bool:
    quote = ""
    for char in re.sub(r"\\[*\\]", "", pattern):
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
    return bool(quote)


# -- paths -------------------------------------------------------------------------------------------------------------


def _path(pattern: str) -> str:
    if _QUOTED.fullmatch(pattern):
        return "the quotes are taken for a part of the path: leave them out"
    if _CHOICE.search(pattern):
        return "braces mean themselves here: make a rule for each of the paths"
    if _VARIABLE.match(pattern):
        return "no variable is known here: write the path, with ~/ for the home folder"
    if pattern.startswith("~") and not pattern.startswith("~/") and pattern != "~":
        return "the pattern begins with ~ and a user's name"
    return ""


def _allowed_path(pattern: str) -> str:
    if pattern.endswith("/"):
        return "the pattern names a folder: end it with /** to mean all files below"
    if not has_wildcard(pattern):
        return unusual(unescaped(pattern)).replace("the path", "the pattern")
    segments = pattern.split("/")
    if ".." in segments:
        return "the pattern holds .. beside a wildcard"
    if not pattern.startswith(("/", "~/")) and any(protected(s) for s in segments if not has_wildcard(s)):
        return "files that can change what programs do later need a pattern without wildcards"
    return ""


# -- URLs --------------------------------------------------------------------------------------------------------------


def _allowed_url(pattern: str) -> str:
    try:
        if "://" in pattern:
            return _allowed_address(pattern)
        host = urls.canonical_host(pattern.removeprefix("*."))
    except urls.BadUrl as bad:
        return f"{bad}: write a host, *.host, https://host/path/* or a whole URL"
    if pattern.startswith("*.") and ("." not in host or urls.address_of(host) is not None):
        return "*. needs a host of at least two labels"
    return "a private host needs its scheme, as in http://localhost:3000/*" if urls.local(host) else ""


def _allowed_address(pattern: str) -> str:
    prefix = pattern.endswith("/*")
    url = urls.canonical_url(pattern[:-1] if prefix else pattern)
    if "*" in (pattern[:-1] if prefix else pattern.partition("?")[0]) or (prefix and url.query):
        return "in a URL, * stands at the end alone, after a /"
    return ""


def _url(pattern: str) -> str:
    """A host stands for all below it, a URL for every spelling of it; a star stands only where it means something."""
    scheme, mark, rest = pattern.rpartition("://")
    if mark and scheme.casefold() not in ("http", "https"):
        return "only http and https are fetched"
    authority, path = re.match(r"([^/?#]*)(.*)", rest if mark else pattern, re.S).groups()  # type: ignore[union-attr]
    if path and not mark and path.strip("/*"):
        return "a path needs the whole URL with its scheme, as in https://host/path/*"
    if "*" in path.partition("?")[0].rstrip("*"):
        return "in a URL, * stands at the end alone"
    if "#" in path:
        return "what stands behind # is never sent"
    host = authority.rpartition("@")[2].casefold().removeprefix("*.")
    if host.count(":") > 1 and "[" not in host:
        host = f"[{host}]"
    try:
        urls.canonical_host(re.sub(r"(\]|^[^:]*):[0-9]*$", r"\1", host))
    except urls.BadUrl as bad:
        return f"{bad}: write a host, or a URL with its scheme"
    return ""


# -- all other tools ---------------------------------------------------------------------------------------------------


def _json(pattern: str, *, allow: bool) -> str:
    try:
        value = unambiguous(pattern)
        if isinstance(value, dict):
            canonical(value)
            return ""
    except Twice as twice:
        return f"the pattern has {twice}"
    except ValueError:
        value = None
    if allow or pattern.lstrip().startswith("{"):
        return "the pattern of this tool is the JSON of all its arguments, without wildcards"
    return "the pattern of this tool has no wildcards" if "*" in pattern else ""
