"""May a command run unasked: only if every part of it is known to read, and only inside the workspace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from harness_core.permissions.flags import Given, Program, Refused, given
from harness_core.permissions.git import ABOVE
from harness_core.permissions.lookups import folders, needs
from harness_core.permissions.paths import World, absolute, aims_at_secret, may_reach_secret, secret, within
from harness_core.permissions.programs import ALLOW_NEGATION, ALLOW_OUTSIDE_READS, EXACT, OWN, known
from harness_core.permissions.shell import Command, Reading, Redirect, read
from harness_core.permissions.words import Word, quoted

# Options whose value chooses, among many files, those that are read.
_CHOOSING: Final = frozenset({"--include", "-g", "--glob", "--iglob"})
_PATHSPEC: Final = re.compile(r":\((?:(?:top|icase|literal|glob|exclude)(?:,(?!\))|(?=\))))*\)", re.I)
_VALUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_NAME: Final = re.compile(r"[a-z][a-z0-9_.+-]*|\[|:")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a command may run unasked; if not, why, and which part of it is the reason."""

    effect: Literal["allow", "ask"]
    reason: str = ""
    part: str = ""


def classify(command: str, world: World) -> Verdict:
    """Judge a command by itself, without rules. Never raises; any fault asks."""
    try:
        return judged(read(command), world, lambda part, folders: False)
    except Exception as error:  # a fault of the gate must not become a permission
        return Verdict("ask", f"the command could not be judged ({type(error).__name__})")


def judged(
    reading: Reading,
    world: World,
    allowed: Callable[[Command, Sequence[str]], bool],
    fault: str = "is not known to be read-only:",
) -> Verdict:
    """Judge each part. allowed: whether something else than this table lets a part run from these folders. fault: what
    is then said of the first part that neither lets run, where there are several.
    """
    if reading.problem:
        return unread(reading)
    places = folders(reading, world)
    for place, part in enumerate(reading.commands):
        try:
            for redirect in part.redirects:
                _redirected(redirect, places[place], world)
            if not allowed(part, places[place]):
                look(part, places[place], world, first=place == 0)
        except Refused as refused:
            where = f"the part {quoted(part.source)} {fault} " if len(reading.commands) > 1 else ""
            return Verdict("ask", f"{where}{refused}", part.source)
    return _really(reading, world)


def unread(reading: Reading) -> Verdict:
    """Why a command that cannot be read asks, and in which part of it that lies."""
    where = f"the part {quoted(reading.part)}: " if reading.part else ""
    return Verdict("ask", where + reading.problem, reading.part)


def _really(reading: Reading, world: World) -> Verdict:
    """What the paths are in truth, all symlinks followed."""
    if world.paths is None:
        return Verdict("allow")
    asked = needs(reading, world)
    if asked.paths and len(world.paths) < len(asked.paths):
        return Verdict("ask", "where its paths lead was not looked up")
    for path in world.paths:
        if not within(path, world.workspace):
            return Verdict("ask", f"a symlink leads to {path}, outside the workspace")
        if secret(path[len(world.workspace) :]):
            return Verdict("ask", f"a symlink leads to {path}, which may hold secrets")
    return Verdict("allow")


# -- one part ----------------------------------------------------------------------------------------------------------


def look(part: Command, places: Sequence[str], world: World, *, first: bool = True) -> None:
    """Whether this part is in the tables. Raises Refused."""
    name, words = part.words[0].text, part.words[1:]
    if part.negated and not ALLOW_NEGATION:
        raise Refused("it is negated")
    if not _NAME.fullmatch(name):
        raise Refused("the program is not one of those that are known")
    _inside((word for word in words if word.glob), places, world)
    if name == "cd":
        return _cd(words, world, first=first)
    if part.argv in EXACT:
        return None
    if name in OWN:
        return _paths(OWN[name](words), places, world, names=name in ("find", "test", "["))
    what = known(name)
    if what is None:
        raise Refused(f"{name} is not one of the programs that are known to only read")
    if name == "git":
        return _git(what, words, places, world)
    return _listed(what, name, words, places, world)


def _cd(words: Sequence[Word], world: World, *, first: bool) -> None:
    if not first or len(words) != 1 or words[0].glob or words[0].text.startswith("-"):
        raise Refused("cd is only known as the first part, with one literal folder")
    _path(words[0], (world.workspace,), world, names=False)


def _listed(what: Program, name: str, words: Sequence[Word], places: Sequence[str], world: World) -> None:
    verb, what, rest = verb_of(what, name, words)
    options = given(what, verb, rest)
    if what.check:
        what.check(options)
    if what.most is not None and (len(options.operands) > what.most or any(o.glob for o in options.operands)):
        raise Refused(f"a further name may be written by {name}")
    if what.operands == "none" and options.operands:
        raise Refused(f"{verb} takes no names here")
    _paths(operand_paths(what, options), places, world, names=what.names)
    _inside(options.doubtful, places, world)
    for option, value in options.options:
        if option in _CHOOSING and value and not value.text.startswith("!") and aims_at_secret(value.text):
            raise Refused(f"`{value.text}` chooses files that may hold secrets")


def operand_paths(what: Program, options: Given) -> list[Word]:
    """Those of the words that are paths, by the program's record."""
    values = [value for option, value in options.options if value and option in what.path_values]
    if what.operands in ("text", "none"):
        return values
    skip = 1 if what.operands == "pattern" and not options.has(*what.patterns) else 0
    return [*options.operands[skip:], *values]


def verb_of(what: Program, name: str, words: Sequence[Word]) -> tuple[str, Program, Sequence[Word]]:
    """The verb's record and the words behind it, for a program that has verbs. Raises Refused."""
    if what.verbs is None:
        return name, what, words
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        option = words[at].text.partition("=")[0]
        kind = what.options.get(f"-{option[1:]}" if not option.startswith("--") else option)
        if kind is None:
            raise Refused(f"the option {option} of {name} is not known to be harmless")
        if kind != "plain":
            _plain_value(words, at, name)
        elif "=" in words[at].text:
            raise Refused(f"the option {option} of {name} takes no value")
        at += 1 if kind == "plain" or "=" in words[at].text else 2
    for length in (3, 2, 1):
        named = words[at : at + length]
        verb = " ".join(word.text for word in named)
        if len(named) == length and verb in what.verbs and not any(word.glob for word in named):
            return f"{name} {verb}", what.verbs[verb], words[at + length :]
    raise Refused(f"this verb of {name} is not known to be read-only")


def _plain_value(words: Sequence[Word], at: int, name: str) -> None:
    """What an option before the verb is given: a namespace, a region, a project."""
    value = words[at].text.partition("=")[2] or (words[at + 1].text if at + 1 < len(words) else "")
    if not _VALUE.fullmatch(value):
        raise Refused(f"`{value}` is no plain value of {words[at].text} of {name}")


def _git(what: Program, words: Sequence[Word], places: Sequence[str], world: World) -> None:
    if world.git_runs == ABOVE:
        raise Refused("the repository begins above the workspace, so git shows what lies outside")
    if world.git_runs:
        raise Refused(f"the repository's own git settings would run {world.git_runs}")
    if any(place != world.workspace for place in places):
        raise Refused("git in another folder may be another repository")
    if any(word.glob and word.text.startswith("-") for word in words):
        raise Refused("a glob may become another option of git")
    verb, what, rest = verb_of(what, "git", words)
    options = given(what, verb, rest)
    if what.check:
        what.check(options)
    if (what.most is not None and len(options.operands) > what.most) or (what.operands == "none" and options.operands):
        raise Refused(f"{verb} with these names may change something")
    ranges = [Word(value.text.partition(":")[2]) for option, value in options.options if option == "-L" and value]
    _inside(options.doubtful, places, world)
    for word in (*operand_paths(what, options), *(word for word in ranges if word.text)):
        _pathspec(word, places, world)


def _pathspec(word: Word, places: Sequence[str], world: World) -> None:
    """A revision, a path, `REV:path` or a pathspec with magic."""
    spec = word.text.rpartition(":")[2] if ":" in word.text else ""
    if word.text.startswith(":("):
        magic = _PATHSPEC.match(word.text)
        if magic is None:
            raise Refused(f"the magic of the pathspec {word.text} is not known to be harmless")
        spec = word.text[magic.end() :]
    for text in (word.text, spec.lstrip("/!^")):
        if text:
            _path(Word(text, glob=word.glob, pattern=word.pattern), places, world, names=True)
        if re.search(r"[*?\[]", text) and aims_at_secret(text):  # git has globs of its own, in quotes too
            raise Refused(f"`{word.text}` may reach secrets")


# -- paths and redirects -----------------------------------------------------------------------------------------------


def _paths(words: Iterable[Word], places: Sequence[str], world: World, *, names: bool) -> None:
    for word in words:
        _path(word, places, world, names=names)


def _inside(words: Iterable[Word], places: Sequence[str], world: World) -> None:
    for word in words:
        if not ALLOW_OUTSIDE_READS and any(
            not within(absolute(word.text, folder), world.workspace) for folder in places
        ):
            raise Refused(f"the path {word.text} lies outside the workspace")


def _path(word: Word, places: Sequence[str], world: World, *, names: bool) -> None:
    if word.text == "-":
        return
    if fault := path_fault(word, places, world, names=names):
        raise Refused(fault)


def path_fault(word: Word, places: Sequence[str], world: World, *, names: bool = False) -> str:
    """Why a word, taken for a path, is not read unasked; "" if it may be. names: no contents are shown."""
    if word.glob and ".." in word.text.split("/"):
        return f"the path {word.text} cannot be followed"
    for folder in places:
        path = absolute(word.text, folder)
        if not within(path, world.workspace):
            return "" if ALLOW_OUTSIDE_READS else f"the path {word.text} lies outside the workspace"
        if secret(path[len(world.workspace) :]):
            return f"the path {word.text} may hold secrets"
    if word.glob and not names and may_reach_secret(word.pattern):
        return f"`{word.text}` may reach secrets"
    return ""


def harmless_redirect(redirect: Redirect) -> bool:
    """`>/dev/null`, `2>&1` and their like: nothing is written or read."""
    target = redirect.target
    if redirect.operator in (">", ">>", "&>", "&>>"):
        return redirect.fd in ("", "1", "2") and target.text == "/dev/null" and target.bare
    return redirect.operator == ">&" and redirect.fd in ("", "1", "2") and target.bare and target.text in ("1", "2")


def _redirected(redirect: Redirect, places: Sequence[str], world: World) -> None:
    if harmless_redirect(redirect):
        return
    target = redirect.target
    if redirect.operator != "<" or redirect.fd not in ("", "0"):
        raise Refused(f"it writes to {target.text}" if ">" in redirect.operator else "it is fed in another way")
    if target.glob:
        raise Refused("a glob says what it is fed with")
    _path(target, places, world, names=False)
