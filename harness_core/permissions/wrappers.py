"""Programs that run what they are given: shells, and those that put something in front of a command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final

from harness_core.permissions.spelling import base_name
from harness_core.permissions.text import listed
from harness_core.permissions.verbs import Argv, verbs

SHELLS: Final = listed("sh bash dash zsh ksh mksh ash fish csh tcsh rbash busybox-sh")
# By their names without a version; each runs a program that it reads from its input.
INTERPRETERS: Final = listed(
    "python pypy perl ruby node nodejs deno bun php lua luajit Rscript tclsh guile irb ghci pwsh osascript expect "
    "ts-node tsx"
)

_VERSION: Final = re.compile(r"[0-9][0-9.]*$")

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
    "capsh": (0, ""), "runcon": (1, ""), "valgrind": (0, ""), "perf": (1, "eoprCIFGcmtjk"), "gdb": (0, ""),
    "busybox": (0, ""), "toybox": (0, ""),
    "coproc": (0, ""), "ssh-agent": (0, "at"), "watch": (0, "n"), "script": (0, "cOIBTmoE"),
    "npx": (0, "pc"), "bunx": (0, ""), "uvx": (0, "p"), "gosu": (1, ""), "su-exec": (1, ""), "setuidgid": (1, ""),
    "chpst": (0, "ubUenmdofcrtlL/"), "runuser": (0, "ugGsw"), "screen": (0, "ScsTtehp"), "systemd-cat": (0, "tp"),
    "tini": (0, "pe"), "dumb-init": (0, "r"), "systemd-inhibit": (0, ""), "choom": (0, "np"),
    "ld.so": (0, ""), "ld-linux-x86-64.so.2": (0, ""), "cgexec": (0, "g"), "numactl": (0, "CNml"),
    "faketime": (1, "f"), "cpulimit": (0, "lpe"), "i386": (0, ""), "x86_64": (0, ""), "sshpass": (0, "pfdP"),
    "torify": (0, ""), "tsocks": (0, ""), "proxychains4": (0, "f"), "s6-setuidgid": (1, ""),
    "softlimit": (0, "acdfmnoprst"), "envdir": (1, ""), "dotenv": (0, "fqe"), "cross-env": (0, ""), "ifne": (0, ""),
    "mispipe": (1, ""), "nq": (0, ""), "heaptrack": (0, "o"), "kcov": (1, ""), "daemonize": (0, "acelopuE"),
    "authbind": (0, ""), "aa-exec": (0, "pn"), "seunshare": (0, "tTZh"), "schroot": (0, "cdus"),
    "gksudo": (0, "ug"), "gksu": (0, "ug"), "kdesudo": (0, "uc"), "kdesu": (0, "uc"), "logsave": (1, ""),
    "abduco": (1, "ne"), "dtach": (1, "e"), "flatpak-spawn": (0, ""), "mosh": (1, ""), "lxc-attach": (0, "nsPef"),
    "watchexec": (0, "ewfidsno"), "reflex": (0, "rRgGdt"), "hyperfine": (0, "wmMrNspcLDnSIu"), "sg": (1, "c"),
    "wsl": (0, "du"), "pexec": (0, "rRneo"), "start-stop-daemon": (0, "xapucnNrPIs"), "nsjail": (0, ""),
    "rootlesskit": (0, ""), "taskpolicy": (0, "bdt"), "sem": (0, "j"), "retry": (0, "td"), "cronic": (0, ""),
    "gtime": (0, "fo"), "with-contenv": (0, ""), "winpty": (0, ""), "xterm": (0, ""),
    # Words of the shell's grammar, where the parser took them for programs.
    "!": (0, ""), "if": (0, ""), "then": (0, ""), "else": (0, ""), "elif": (0, ""), "while": (0, ""), "until": (0, ""),
    "do": (0, ""), "{": (0, ""), "(": (0, ""),
}  # fmt: skip

_CONTAINER: Final = {"exec": (1, "uwe"), "run": (1, "aceuwvplmh")}
_PANE: Final = (0, "cFnsteExyl")

# Programs with verbs that run any program: by verb, the same as above. npm's own `run` names a script of the project,
# and is none of them.
RUNNERS: Final[Mapping[str, Mapping[str, tuple[int, str]]]] = {
    "uv": {"run": (0, "pmw")}, "poetry": {"run": (0, "")}, "pipenv": {"run": (0, "")}, "hatch": {"run": (0, "")},
    "rye": {"run": (0, "")}, "pdm": {"run": (0, "")}, "pipx": {"run": (0, "")}, "pixi": {"run": (0, "e")},
    "mise": {"exec": (0, "c"), "x": (0, "c")}, "asdf": {"exec": (0, "")}, "pyenv": {"exec": (0, "")},
    "rbenv": {"exec": (0, "")}, "volta": {"run": (0, "")}, "rustup": {"run": (1, "")}, "direnv": {"exec": (1, "")},
    "bundle": {"exec": (0, "")}, "pnpm": {"exec": (0, ""), "dlx": (0, "")}, "yarn": {"exec": (0, ""), "dlx": (0, "p")},
    "npm": {"exec": (0, "pw"), "x": (0, "pw"), "explore": (1, "")}, "bun": {"x": (0, ""), "exec": (0, "")},
    "conda": {"run": (0, "np")}, "mamba": {"run": (0, "np")}, "micromamba": {"run": (0, "np")},
    "nix": {"run": (1, ""), "shell": (1, ""), "develop": (1, "")},
    "docker": _CONTAINER, "podman": _CONTAINER, "nerdctl": _CONTAINER, "docker-compose": _CONTAINER,
    "podman-compose": _CONTAINER, "lxc": {"exec": (1, "")}, "incus": {"exec": (1, "")},
    "kubectl": {"exec": (1, "cnf"), "run": (1, "n"), "debug": (1, "cn")}, "oc": {"exec": (1, "cnf"), "rsh": (1, "c")},
    "guix": {"shell": (0, ""), "environment": (0, "")}, "fnm": {"exec": (0, "")}, "nvm": {"exec": (1, "")},
    "crictl": {"exec": (1, "")}, "machinectl": {"shell": (1, "")}, "multipass": {"exec": (1, "d")},
    "limactl": {"shell": (1, "")}, "toolbox": {"run": (0, "cdr")}, "distrobox": {"enter": (1, "n")},
    "heroku": {"run": (0, "ars")}, "railway": {"run": (0, "se")}, "chamber": {"exec": (1, "")},
    "sops": {"exec-env": (1, ""), "exec-file": (1, "")}, "teller": {"run": (0, "")}, "infisical": {"run": (0, "")},
    "ddev": {"exec": (0, "sd")}, "zellij": {"run": (0, "ndhwxy")}, "rr": {"record": (0, "")},
    "foreman": {"run": (0, "")}, "honcho": {"run": (0, "")},
    "dotenv": {"run": (0, "")},
    "doppler": {"run": (0, "pc")}, "op": {"run": (0, "")}, "aws-vault": {"exec": (1, "")},
    "tmux": dict.fromkeys(
        ("new", "new-session", "neww", "new-window", "splitw", "split-window", "respawnp", "respawn-pane", "respawnw",
         "respawn-window", "run", "run-shell", "if", "if-shell", "pipe-pane", "pipep", "popup", "display-popup",
         "send", "send-keys"), _PANE),
}  # fmt: skip
# Where without a command a shell is started, which runs what it is fed with.
_OPEN_SHELL: Final = listed("chroot unshare nsenter fakeroot proot firejail schroot nix-shell lxc-attach")
_OPEN_SHELL_VERBS: Final[Mapping[str, frozenset[str]]] = {
    "oc": listed("rsh"), "distrobox": listed("enter"), "toolbox": listed("enter"), "poetry": listed("shell"),
    "pipenv": listed("shell"), "machinectl": listed("shell"), "multipass": listed("shell"), "limactl": listed("shell"),
    "guix": listed("shell"), "nix": listed("shell develop"), "vagrant": listed("ssh"), "adb": listed("shell"),
}  # fmt: skip
# Where an option that takes a value always does, and never in another way.
_GETOPT: Final = listed("sudo doas env timeout gtimeout nice runuser docker podman nerdctl kubectl oc conda mamba")
_MOST_VALUES: Final[Mapping[str, int]] = {"bwrap": 2}  # of one long option; others take one

# Builtins that change what later commands mean.
STATEFUL: Final = listed(
    "alias unalias hash enable trap source . eval exec set shopt unset export declare typeset readonly local cd pushd "
    "popd ulimit umask bind complete mapfile readarray read builtin"
)


def unnumbered(name: str) -> str:
    """The name of a program without its version: `python3.12` is python."""
    return _VERSION.sub("", name)


def runs_another(name: str) -> bool:
    """Whether a program (by its base name) runs what it is given."""
    return name in SHELLS or name in RUNNERS or name in _BEFORE or name in ("eval", "su", "sg", "ssh", "trap")


def running(argv: Sequence[str | None]) -> list[int]:
    """The places of verbs that run any program; [] if there is none."""
    known = RUNNERS.get(base_name(argv[0]))
    return [at for at in verbs(argv) if argv[at] in known] if known else []


def starts(argv: Sequence[str | None], most: int | None = None) -> list[int]:
    """Where the inner command of a wrapper may begin, as places in argv, or the first of them; [] if it is none."""
    name = base_name(argv[0])
    found: list[int] = []
    if name in _BEFORE:
        found += islice(_behind(name, argv, [1], *_BEFORE[name]), most)
        if name == "coproc" and len(argv) > 2:
            found.append(2)
    alike: dict[tuple[int, str], list[int]] = {}  # looked at together: there may be hundreds of verbs
    for at in running(argv):
        alike.setdefault(RUNNERS[name][argv[at] or ""], []).append(at + 1)
    for how, places in alike.items():
        found += islice(_behind(name, argv, places, *how), most)
    return sorted({*found})[:most]


def unadorned(argv: Sequence[str | None], places: Iterable[int]) -> Iterator[Argv]:
    """A wrapper without its options and assignments, with the commands that begin at these places."""
    if how := _BEFORE.get(base_name(argv[0])):
        yield from ((argv[0], *argv[max(1, at - how[0]) :]) for at in places)


def opens_shell(argv: Sequence[str | None]) -> bool:
    """Whether a program starts a shell that runs what it is fed with, since it is given no command."""
    name = base_name(argv[0])
    if name in _OPEN_SHELL:
        given = any(word in ("-c", "--command", "--run") for word in argv)
        return not given and not any(re.search(r"[^\d]", argv[at] or "x") for at in starts(argv))
    verb = _OPEN_SHELL_VERBS.get(name)
    at = next((at for at, word in enumerate(argv) if word in verb), 0) if verb else 0
    return at > 0 and not starts(argv) and not any(word in ("-c", "--command", "--run") for word in argv[at:])


def _behind(name: str, argv: Sequence[str | None], first: Iterable[int], operands: int, valued: str) -> Iterator[int]:
    """Where the inner command may begin behind options from one of `first` on and that many operands, in order."""
    values, assigns = _MOST_VALUES.get(name, 1), name in ("env", "sudo", "doas", "cross-env")
    pending = [(at, operands) for at in first]
    heapify(pending)
    done = (0, 0)
    while pending:
        state = heappop(pending)
        if state == done:
            continue
        at, left = done = state
        if at >= len(argv):
            return
        word = argv[at]
        if word == "-":  # `env -` is an option, to others it may be an operand
            heappush(pending, (at + 1, left))
            heappush(pending, (at + 1, max(left - 1, 0)))
        elif word is not None and word.startswith(("-", "+")):
            if len(word) == 2 and word[1] in valued and name in _GETOPT:
                heappush(pending, (at + 2, left))
                continue
            heappush(pending, (at + 1, left))
            if _may_take_value(word, valued):
                for value in range(1, values + 1):
                    heappush(pending, (at + 1 + value, left))
        elif assigns and word is not None and "=" in word:
            heappush(pending, (at + 1, left))
        elif left:
            heappush(pending, (at + 1, left - 1))
        else:
            yield at


def _may_take_value(option: str, valued: str) -> bool:
    if option.startswith("--"):
        return "=" not in option and len(option) > 2
    return option[-1] in valued
