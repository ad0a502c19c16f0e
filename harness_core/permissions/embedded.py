"""Commands that stand in the own language of a program: an editor's `!`, awk's pipes, a client's `\\!`.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from harness_core.permissions.text import listed

_REST: Final = r"\s*(.+)"  # of the line
_STRING: Final = r'"((?:[^"\\]|\\.)*+)"'
_UNCLOSED: Final = r'"(?:[^"\\]|\\.)*+\\?\Z'  # taken at once: no string begins in it
_STRINGS: Final = re.compile(rf"{_STRING}|{_UNCLOSED}")
AWKS: Final = listed("awk gawk mawk nawk")
SEDS: Final = listed("sed gsed")
_EDITORS: Final = listed("vim vi nvim view ex gvim vimdiff ed red less more man nano emacs")
_LANGUAGES: Final[Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(_EDITORS, re.compile(r"!" + _REST)),
    **dict.fromkeys(AWKS, re.compile(rf"\|&?\s*{_STRING}|{_STRING}\s*\||{_UNCLOSED}")),
    **dict.fromkeys(SEDS, re.compile(r"(?:^|[;{}\n!,~$/\d\s])e\s+(.+)")),
    **dict.fromkeys(listed("psql mysql mariadb"), re.compile(r"\\!\s*(.+)|(?:^|[;\n])[^\S\n]*+system\s+(.+)", re.I)),
    **dict.fromkeys(listed("sqlite3 duckdb"), re.compile(r"(?:^|\n)[^\S\n]*+\.(?:shell|system)\s+(.+)")),
    **dict.fromkeys(listed("gdb lldb"), re.compile(r"(?:^|\s)(?:(?:shell|make)\s+|!\s*)(.+)")),
    **dict.fromkeys(listed("ftp sftp lftp telnet bc dc"), re.compile(r"!" + _REST)),
    "m4": re.compile(r"syscmd\(([^)]*)"),
    "expect": re.compile(r"(?:spawn|exec|system)\s+(.+)"),
    "ssh": re.compile(r"(?:Proxy|Local|Remote|KnownHosts)Command[=\s]\s*(.+)", re.I),
    "make": re.compile(r"\$\(shell\s+([^)]*)|[;\n\t][^\S\n\t]*+(.+)"),
    "socat": re.compile(r"(?:EXEC|SYSTEM|SHELL):([^,]*)", re.I),
}  # fmt: skip
# Where awk, its texts aside, runs something else than a text; and where sed runs the line that it holds.
_AWK_COMPUTES: Final = re.compile(
    r"""system\s*\((?!\s*""\s*\))|print(?:(?!print)[^;}\n|]|\|\|)*\|&?(?!\|)(?!\s*""\s*(?:[;}\n)]|\Z))|(?<![|"\s])\s*\|&?\s*getline"""
)
_SED_COMPUTES: Final = re.compile(
    r"(?:^|[;{}\n!,~$/\d\s])e\s*(?:[;}\n]|\Z)|s(.)(?:(?!\1)[^\\]|\\.)*\1(?:(?!\1)[^\\]|\\.)*\1[\dgiIpmMw]*e", re.S
)
# Programs that are told in a language of their own, and read it from their input too.
TOLD: Final = frozenset(_LANGUAGES) - AWKS - SEDS - listed("ssh less more man make")
# Options whose value is a command, as a text, for programs in which the same letters would mean something else.
COMMAND_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        listed("script sg flock npx npm mapfile readarray complete compgen vagrant"),
        ("-c", "--command", "-C", "--call"),
    ),
    **dict.fromkeys(listed("docker podman nerdctl"), ("--entrypoint",)),
    "entr": ("-s",), "tar": ("-I", "-F"), "rsync": ("-e",), "nc": ("-e", "-c"), "ncat": ("-e", "-c"),
    "bpftrace": ("-c",), "fly": ("-C",), "flyctl": ("-C",), "zip": ("-TT",), "xterm": ("-e",), "scp": ("-S",),
}  # fmt: skip


# Where programs put what they are fed with; `>` aside.
_WRITES: Final[Mapping[str, frozenset[str]]] = {
    "curl": listed("-o --output"), "wget": listed("-O --output-document"), "openssl": listed("-out"),
    "gpg": listed("-o --output"), "gpg2": listed("-o --output"), "uudecode": listed("-o"),
    "sort": listed("-o --output"),
}  # fmt: skip


_CLUSTER: Final = re.compile(r"-[A-Za-z]+")  # `curl -so file`


def written(name: str, words: Sequence[str | None]) -> Iterator[str]:
    """The files in which a program, by its base name, leaves what it is fed with."""
    if name in ("tee", "sponge", "dd"):
        yield from (word.removeprefix("of=") for word in words if word and word[0] != "-")
    options = _WRITES.get(name)
    if options is None:
        return
    for option, value in pairwise((*words, None)):
        if option in options and value:
            yield value
        elif option and "=" in option and option.partition("=")[0] in options:
            yield option.partition("=")[2]
        elif option and value and _CLUSTER.fullmatch(option) and f"-{option[-1]}" in options:
            yield value


def embedded(name: str, words: Sequence[str | None]) -> Iterator[str]:
    """What these words tell a program, by its base name, to run."""
    language = _LANGUAGES.get(name)
    if language is None:
        return
    for word in words:
        for match in language.finditer(word or ""):
            yield from (text.strip("'\" \t") for text in match.groups() if text)


# Characters of a script of sed that is looked through, which takes the square of it; longer ones may run anything.
LONGEST_SCRIPT: Final = 1_000


def _emptied(string: re.Match[str]) -> str:
    return string[0] if string[1] is None else '""'


def computes(name: str, words: Sequence[str | None]) -> bool:
    """Whether one of these words is a program of awk or sed, by the base name, that runs what it reads or makes."""
    code = [word for word in words if word and word[:1] != "-"]
    if name in AWKS:
        return any(_AWK_COMPUTES.search(_STRINGS.sub(_emptied, word)) for word in code)
    if name not in SEDS:
        return False
    # Without an option that names it, the script is the first word.
    named = any(word and re.match(r"-[a-zA-Z]*[ef]|--(?:expression|file)", word) for word in words)
    scripts = filter(None, words) if named else code[:1]
    return any(len(script) > LONGEST_SCRIPT or _SED_COMPUTES.search(script) for script in scripts)
