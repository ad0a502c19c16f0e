"""Programs that run what they are given: shells, and those that put something in front of a command."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Final

from harness_core.permissions.text import listed

SHELLS: Final = listed("sh bash dash zsh ksh mksh ash fish csh tcsh rbash busybox-sh")

# How many operands come before the inner command, and which short options take a value. Where an option is not
# known, both readings are followed: a deny rule must not miss the inner command.
_BEFORE: Final[Mapping[str, tuple[int, str]]] = {
    "sudo": (0, "ugpCDhrtTUcR"), "doas": (0, "uCa"), "env": (0, "uC"), "nohup": (0, ""), "nice": (0, "n"),
    "ionice": (0, "cnpPu"), "timeout": (1, "ks"), "gtimeout": (1, "ks"), "time": (0, "fo"), "command": (0, ""),
    "builtin": (0, ""), "exec": (0, "a"), "xargs": (0, "aEdIiLlnPs"), "gxargs": (0, "aEdIiLlnPs"),
    "stdbuf": (0, "ioe"), "setsid": (0, ""), "flock": (1, "wE"), "chroot": (1, ""), "strace": (0, "aeoOpPsSuUEbIX"),
    "ltrace": (0, "aeoplnsuADFS"), "unshare": (0, "SGRw"), "nsenter": (0, "tSG"), "taskset": (1, "c"),
    "chrt": (1, "TPD"),
    "parallel": (0, "jaNnLISD"), "systemd-run": (0, "pHMtuE"), "pkexec": (0, ""), "run0": (0, ""), "setarch": (1, ""),
    "linux64": (0, ""), "linux32": (0, ""), "prlimit": (0, ""), "firejail": (0, ""), "bwrap": (0, ""),
    "xvfb-run": (0, "efnps"), "dbus-run-session": (0, ""), "catchsegv": (0, ""), "unbuffer": (0, ""), "rlwrap": (0, ""),
    "chronic": (0, ""), "ts": (0, ""), "entr": (0, ""), "caffeinate": (0, "tw"), "arch": (0, ""), "eatmydata": (0, ""),
    "fakeroot": (0, "lsib"), "proot": (0, "rbw"), "torsocks": (0, ""), "proxychains": (0, "f"), "setpriv": (0, ""),
    "capsh": (0, ""), "runcon": (1, ""), "valgrind": (0, ""), "perf": (1, ""), "gdb": (0, ""), "busybox": (0, ""),
    "toybox": (0, ""), "coproc": (0, ""), "ssh-agent": (0, "at"), "watch": (0, "n"), "script": (0, "cOIBTmoE"),
    "direnv": (2, ""), "mise": (1, ""), "poetry": (1, ""), "uv": (1, ""), "npx": (0, "pc"), "bunx": (0, ""),
    "pnpm": (1, ""), "yarn": (1, ""), "bundle": (1, ""), "pipenv": (1, ""), "hatch": (1, ""), "rye": (1, ""),
    "ld.so": (0, ""), "ld-linux-x86-64.so.2": (0, ""), "cgexec": (0, "g"), "numactl": (0, "CNml"), "docker": (2, ""),
    # Words of the shell's grammar, where the parser took them for programs.
    "!": (0, ""), "if": (0, ""), "then": (0, ""), "else": (0, ""), "elif": (0, ""), "while": (0, ""), "until": (0, ""),
    "do": (0, ""), "{": (0, ""), "(": (0, ""),
}  # fmt: skip

# Builtins that change what later commands mean.
STATEFUL: Final = listed(
    "alias unalias hash enable trap source . eval exec set shopt unset export declare typeset readonly local cd pushd "
    "popd ulimit umask bind complete mapfile readarray read builtin"
)


def runs_another(name: str) -> bool:
    """Whether a program (by its base name) runs what it is given."""
    return name in _BEFORE or name in SHELLS or name in ("eval", "su", "runuser", "sg", "ssh", "trap", "find-exec")


def starts(argv: Sequence[str | None]) -> list[int]:
    """Where the inner command of a wrapper may begin, as places in argv; [] if it is no wrapper."""
    name = posixpath.basename(argv[0] or "")
    if name not in _BEFORE:
        return []
    operands, valued = _BEFORE[name]
    found: set[int] = set()
    pending, seen = [(1, operands)], set[tuple[int, int]]()
    while pending:
        at, left = pending.pop()
        if at >= len(argv) or (at, left) in seen:
            continue
        seen.add((at, left))
        word = argv[at]
        if word is not None and word.startswith(("-", "+")) and word != "-":
            pending.append((at + 1, left))
            if _may_take_value(word, valued):
                pending.append((at + 2, left))
        elif name in ("env", "sudo", "doas") and word is not None and "=" in word:
            pending.append((at + 1, left))
        elif left:
            pending.append((at + 1, left - 1))
        else:
            found.add(at)
    if name == "coproc" and len(argv) > 2:
        found.add(2)
    return sorted(found)


def _may_take_value(option: str, valued: str) -> bool:
    if option.startswith("--"):
        return "=" not in option and len(option) > 2
    return option[-1] in valued
