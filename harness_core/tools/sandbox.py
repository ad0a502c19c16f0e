"""The box that a command runs in: bubblewrap, where it is installed and works.

Inside, the workspace can be written, /tmp and /run are empty and its own, and everything else can only be read, or not
even that. There is no network unless it was allowed, no process of the host to be seen, and no way to gain rights.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from harness_core.tools.environment import program_path
from harness_core.tools.process import Argv

Mode = Literal["auto", "off", "required"]

PROBE_SECONDS: Final = 30.0  # generous: a busy machine must not seem to be one without a box
SCRATCH: Final = ("/tmp", "/run")  # /run holds the sockets of the host's services
RESOLVER: Final = "/etc/resolv.conf"  # often a link into /run

_ALWAYS: Final = (
    "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
    "--cap-drop", "ALL", "--new-session", "--die-with-parent",
    "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Boundary:
    """What stands between a command and the machine. program: bubblewrap, "" for nothing; then `missing` says why.

    refuses: nothing may run without it.
    """

    program: str = ""
    missing: str = ""
    refuses: bool = False

    def __str__(self) -> str:
        if self.program:
            return "bash runs in a sandbox (bubblewrap), which can write the workspace alone"
        if self.refuses:
            return f"bash refuses to run: a sandbox is required, and {self.missing}"
        return f"bash runs without a sandbox ({self.missing}): an approved command can do all that the bot's user can"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Whether commands are boxed (`auto`: where it works; `required`: or they do not run), and what is hidden then.

    hidden: files and folders that no command may even read, such as the bot's own data and tokens. A workspace inside
    such a folder stays visible, and one around it does not show it.
    """

    mode: Mode = "auto"
    hidden: tuple[Path, ...] = ()

    async def boundary(self, path: str | None = None) -> Boundary:
        """What is in force. path: the folders in which programs are sought, by default those of this process."""
        if self.mode == "off":
            return Boundary(missing="it is switched off")
        program = shutil.which("bwrap", path=path or program_path(os.environ))
        if program is None:
            return Boundary(missing="bubblewrap is not installed", refuses=self.mode == "required")
        if why := await asyncio.to_thread(_fails, program):
            return Boundary(missing=f"bubblewrap does not work here: {why}", refuses=self.mode == "required")
        return Boundary(program)

    def argv(self, program: str, argv: Argv, workspace: Path, *, path: str, network: bool) -> Callable[[int], Argv]:
        """What to start, for the pipe that bubblewrap tells its first process by; argv: what runs inside."""
        hidden = [os.path.realpath(one) for one in self.hidden]
        shown = [*path.split(os.pathsep), *([os.path.realpath(RESOLVER)] if network else [])]
        box = boxed(
            os.path.realpath(workspace),
            folders=[one for one in hidden if os.path.isdir(one)],
            files=[one for one in hidden if os.path.isfile(one)],
            shown=[one for one in shown if os.path.exists(one)],
            network=network,
        )
        return lambda pipe: [program, *box, "--info-fd", str(pipe), "--", *argv]


WHERE_IT_WORKS: Final = Sandbox()


def boxed(
    workspace: str,
    *,
    folders: Iterable[str] = (),
    files: Iterable[str] = (),
    shown: Iterable[str] = (),
    network: bool = False,
) -> Sequence[str]:
    """Bubblewrap's options for a box around a workspace. All paths are real and exist.

    folders, files: hidden. shown: readable though they are in a folder that the box has anew.
    """
    mounts = [
        *((one, ("--tmpfs", one)) for one in (*SCRATCH, *folders)),
        *((one, ("--ro-bind", "/dev/null", one)) for one in files),
        *((one, ("--ro-bind", one, one)) for one in shown if _in_scratch(one)),
        (workspace, ("--bind", workspace, workspace)),
    ]
    # The outer first: what is mounted later lies on top.
    mounts.sort(key=lambda mount: mount[0].rstrip("/").count("/"))
    return [
        *_ALWAYS,
        # Many of its files are the kernel's, and root may write them without any right; others need /proc for boxes
        # of their own, such as a browser's.
        *(("--remount-ro", "/proc") if os.geteuid() == 0 else ()),
        *(() if network else ("--unshare-net",)),
        *(word for _, words in mounts for word in words),
        *(word for one in folders if one != workspace for word in ("--remount-ro", one)),
        *("--chdir", workspace),
    ]


def _in_scratch(path: str) -> bool:
    return path.startswith(tuple(f"{one}/" for one in SCRATCH))


@cache
def _fails(program: str) -> str:
    """Why this bubblewrap cannot make a box here, "" if it can: it was really tried, once."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [program, *boxed(os.path.realpath(folder)), "--", "/bin/sh", "-c", ": > written"]
        try:
            done = subprocess.run(
                argv, env={}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_SECONDS
            )
        except (OSError, subprocess.SubprocessError) as error:
            return type(error).__name__
        if done.returncode == 0 and (Path(folder) / "written").exists():
            return ""
        return " ".join(done.stderr.split())[:200] or f"exit code {done.returncode}"
