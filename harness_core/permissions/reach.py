"""How far a wildcard allow rule reaches: never to options that run programs or write, secrets, or inner commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from harness_core.permissions.checks import awk, sed
from harness_core.permissions.flags import Given, Refused
from harness_core.permissions.lookups import pieces
from harness_core.permissions.options import risky, takes_value
from harness_core.permissions.paths import World, protected
from harness_core.permissions.programs import OWN, PROGRAMS
from harness_core.permissions.readonly import look, path_fault
from harness_core.permissions.shell import Command, read
from harness_core.permissions.spelling import base_name
from harness_core.permissions.text import listed
from harness_core.permissions.urls import BadUrl, canonical_url, local
from harness_core.permissions.words import Word, quoted
from harness_core.permissions.wrappers import RUNNERS, SHELLS, STATEFUL, running, runs_another, starts

_URL: Final = re.compile(r"(https?|ssh|git|s3)://", re.I)
_SED_SUBSTITUTE: Final = re.compile(
    r"\s*(?:\d+(?:,(?:\d+|\$))?)?\s*s([/|#,:!])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gIip0-9]*\s*",
    re.S,
)

_WRITERS: Final = listed(
    "cp mv ln install rsync touch mkdir tee dd truncate chmod chown sed patch shred rm rmdir unzip"
)
_BETWEEN: Final = re.compile(r"[=:,;@]")  # paths in one word: `src=/a,dst=/b`, `@file`
_BLANK: Final = re.compile(r"\s")
_CLIENTS: Final = listed("curl wget")
_AWK_WORDS: Final = listed(
    "if while for switch print printf return in length substr index split sub gsub gensub match sprintf sin cos atan2 "
    "exp log sqrt int rand srand tolower toupper strftime systime mktime asort asorti patsplit and or xor lshift rshift"
)
_AWK_VARIABLES: Final = listed("BEGIN END NR NF FNR FS OFS RS ORS RSTART RLENGTH RT SUBSEP OFMT CONVFMT FILENAME")

Decide = Callable[[Command, Sequence[str]], bool]


def beyond(part: Command, places: Sequence[int], folders: Sequence[str], world: World, decide: Decide) -> str:
    """Why a wildcard rule does not cover this part; "" if it does.

    places: the words that wildcards stand for. decide: whether an inner command is allowed by itself.
    """
    name = part.words[0].text
    base = base_name(name)
    if base in STATEFUL - {"cd", "eval", "exec"}:
        return f"{base} changes what later commands mean"
    if running(part.argv):
        return _runner(part, folders, decide)
    wraps = runs_another(base) and (base not in RUNNERS or bool(starts(part.argv)))
    if wraps and (fault := _inner(part, folders, decide)):
        return fault
    for place in places if base in SHELLS or not wraps else ():
        text = part.words[place].text
        if fault := _word(part.words[place], folders, world) or _contacted(base, part.argv, place):
            return fault
        if base in _WRITERS and any(protected(piece) for piece in pieces(text)):
            return f"{quoted(text)} can change what programs do later"
    return _options(base, part, folders, world)


def _word(word: Word, folders: Sequence[str], world: World) -> str:
    if word.text.casefold().startswith(("ext::", "fd::", "file:")) or ("::" in word.text and "ext::" in word.text):
        return f"`{word.text}` may run a program"
    listed_paths = _BETWEEN.split(word.text) if not _BLANK.search(word.text) else []
    for piece in dict.fromkeys((*pieces(word.text), *filter(None, listed_paths))):
        if _URL.match(word.text) and piece != word.text:
            continue
        if fault := path_fault(Word(piece), folders, world):
            return fault
    return ""


def _contacted(name: str, argv: Sequence[str], place: int) -> str:
    """Why a network client is not let loose on an address; a rule for the client means the public internet."""
    named = argv[place].removeprefix("--url=")
    if name not in _CLIENTS or named.startswith("-"):
        return ""
    if "://" not in named and takes_value(name, argv[place - 1]):
        return ""
    try:
        url = canonical_url(named if "://" in named else f"http://{named}")
    except BadUrl as bad:
        return f"{quoted(named)}: {bad}"
    return f"{url.host} is a private address" if local(url.host) else ""


def _options(name: str, part: Command, folders: Sequence[str], world: World) -> str:
    words = part.words[1:]
    try:
        if name == "sed":
            _sed(part, folders, world)
        elif name in ("awk", "gawk", "mawk"):
            _awk(words)
        elif (name in PROGRAMS or name in OWN) and name not in ("git", "tar", "cd"):
            look(part, folders, world)
    except Refused as refused:
        return str(refused)
    return risky(name, part.argv[1:])


def _sed(part: Command, folders: Sequence[str], world: World) -> None:
    """Substitutions to standard output, and whatever runs unasked anyway."""
    scripts = [w for w in part.words[1:] if not w.text.startswith("-")][:1]
    if scripts and _SED_SUBSTITUTE.fullmatch(scripts[0].text):
        stand_in = tuple(Word("p") if word is scripts[0] else word for word in part.words)
        sed(Given(operands=(Word("p"),)))
        look(replace(part, words=stand_in), folders, world)
        return
    look(part, folders, world)


def _awk(words: Sequence[Word]) -> None:
    scripts = [word for word in words if not word.text.startswith("-")]
    if any(word.text.startswith("-") and not re.fullmatch(r"-F.?|-v", word.text) for word in words):
        raise Refused("an option of awk may run a program or write")
    try:
        awk(Given(operands=tuple(scripts)))
    except Refused:
        if any(not _harmless_awk(word.text) for word in scripts):
            raise


def _harmless_awk(text: str) -> bool:
    """Whether this is a program that only computes and prints, or a file: it calls and names nothing else of awk's."""
    if re.search(r"[|>@&]|\bfunction\b|\bfunc\b|\bgetline\b|/inet", text):
        return False
    called = set(re.findall(r"([A-Za-z_]\w*)\s*\(", text)) - _AWK_WORDS
    special = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", text)) - _AWK_VARIABLES
    return not called and not special


# -- inner commands ----------------------------------------------------------------------------------------------------

# Options that change nothing about what the inner command is; a number after `:` is how many words they take.
_HARMLESS: Final[Mapping[str, Mapping[str, int]]] = {
    "timeout": {"-k": 1, "-s": 1, "--foreground": 0, "--preserve-status": 0, "-v": 0, "--verbose": 0},
    "nice": {"-n": 1}, "ionice": {"-c": 1, "-n": 1}, "nohup": {}, "time": {"-p": 0}, "env": {}, "setsid": {"-w": 0},
    "stdbuf": {"-oL": 0, "-o0": 0, "-eL": 0, "-e0": 0, "-iL": 0, "-i0": 0}, "command": {}, "sudo": {"-n": 0},
    "doas": {"-n": 0}, "busybox": {}, "toybox": {},
}  # fmt: skip


def _inner(part: Command, folders: Sequence[str], decide: Decide) -> str:
    """The inner command of a wrapper must be allowed itself."""
    name = part.words[0].text
    refusal = f"what {name} runs is not allowed by itself"
    if name in SHELLS:
        return _shell(part, folders, refusal, decide)
    if name not in _HARMLESS:
        return refusal
    at = 1
    while at < len(part.words) and part.words[at].text.startswith("-"):
        option = part.words[at].text
        if option.startswith("--") and "=" in option and name == "timeout":
            at += 1
        elif option in _HARMLESS[name]:
            at += 1 + _HARMLESS[name][option]
        else:
            return refusal
    at += 1 if name == "timeout" else 0
    words = part.words[at:]
    if not words or not words[0].bare or "=" in words[0].text:
        return refusal
    return "" if decide(_alone(part, words), folders) else refusal


def _runner(part: Command, folders: Sequence[str], decide: Decide) -> str:
    """What a verb runs must be allowed itself, and stand right behind the verb."""
    name, verb, words = part.words[0].text, part.words[1].text, part.words[2:]
    behind = RUNNERS.get(name, {}).get(verb, (1, ""))[0] == 0
    plain = words and words[0].bare and not words[0].text.startswith("-")
    if behind and plain and decide(_alone(part, words), folders):
        return ""
    return f"what {name} runs is not allowed by itself"


def _alone(part: Command, words: tuple[Word, ...]) -> Command:
    """The inner command as one that stands by itself."""
    return replace(part, words=words, redirects=(), source=" ".join(word.text for word in words))


def _shell(part: Command, folders: Sequence[str], refusal: str, decide: Decide) -> str:
    words = part.words[1:]
    if words and not words[0].text.startswith("-"):
        # A script file is what a rule for a shell means; without a folder or an ending it may be any program in PATH.
        return "" if "/" in words[0].text or "." in words[0].text else refusal
    if len(words) != 2 or words[0].text not in ("-c", "-ec", "-euc", "-eu"):
        return refusal
    reading = read(words[1].text)
    if reading.problem or any(inner.redirects for inner in reading.commands):
        return refusal
    return "" if all(decide(inner, folders) for inner in reading.commands) else refusal
