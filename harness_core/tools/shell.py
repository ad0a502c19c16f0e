"""Run one shell command: a fresh bash, a clean environment, an end that nothing outlives.

A verdict "this only reads" is true only for the shell that runs it here: no start-up files, no terminal, no input, and
nothing in the environment that could run a program or carry a secret. The text that was judged is the text that runs.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import glob
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator

from harness_core.errors import ToolFailed
from harness_core.permissions.git import GIT_RUNS
from harness_core.permissions.paths import World
from harness_core.permissions.readonly import needs
from harness_core.permissions.shell import read
from harness_core.ports import ToolContext
from harness_core.tools.clip import HeadTail
from harness_core.tools.spec import NOTHING, tool
from harness_core.types import Args, Inspection, ToolResult

BASH_SECONDS: Final = 120.0  # of one command, or less if the deadline is nearer
ENGINE_SECONDS: Final = 5.0  # that the engine waits longer, so that it is the tool that says what was killed
OUTPUT_CHARS: Final = 30_000  # of one result; head and tail are kept
HOME: Final = os.path.realpath(os.path.expanduser("~"))
MATCHES: Final = 1_000  # of one glob that are looked at; a command that names more asks anyway
CHUNK: Final = 65_536  # bytes read at once: a Linux pipe holds no more
DRAIN: Final = 0.25  # seconds to read on after the shell ended, while something it left behind keeps the pipe open
GRACE: Final = 0.5  # seconds between the request to end and the kill
LAST_LOOKS: Final = 16  # reads at the end: what escaped the group may write for ever
LOOK_AGAIN: Final = 0.02  # seconds between two looks whether a process group is gone

# All that a command gets of the host's environment. A list of what is good: one of what is bad is never complete.
KEPT: Final = (
    "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE",
    "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME",
)  # fmt: skip
# A repository's own configuration can run programs for verbs that only read; these two ways are shut.
SET: Final = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": "4",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": "/dev/null",
    # Submodules have a configuration of their own, which nobody has looked at.
    "GIT_CONFIG_KEY_2": "diff.ignoreSubmodules",
    "GIT_CONFIG_VALUE_2": "all",
    "GIT_CONFIG_KEY_3": "submodule.recurse",
    "GIT_CONFIG_VALUE_3": "false",
}
USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_environment(host: Mapping[str, str], workspace: Path) -> dict[str, str]:
    """What a command sees of the host's environment: KEPT, SET, and a PATH that leads nowhere near the workspace."""
    root = os.path.realpath(workspace)
    folders = host.get("PATH", USUAL_PATH).split(os.pathsep)
    path = [f for f in folders if os.path.isabs(f) and not _within(root, os.path.realpath(f))]
    return {k: host[k] for k in KEPT if k in host} | SET | {"PATH": os.pathsep.join(path) or USUAL_PATH}


def _within(root: str, path: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _one_string(command: str) -> str:
    if "\0" in command:
        raise ValueError("a command cannot hold a NUL character")
    if not command.strip():
        raise ValueError("the command is empty")
    return command


async def _look(args: Args, context: ToolContext) -> Inspection:
    """Where the paths of a command really lead, and what the repository's own configuration would run."""
    return await asyncio.to_thread(_seen, str(args["command"]), context.workspace)


def _seen(command: str, workspace: Path) -> Inspection:
    root = os.path.realpath(workspace)
    wanted = needs(read(command), World(root, HOME))
    matched = [path for pattern in wanted.globs for path in sorted(glob.glob(pattern, include_hidden=False))[:MATCHES]]
    paths = tuple(os.path.realpath(path) for path in (*wanted.paths, *matched))
    return Inspection(paths=paths, git_runs=_git_runs(root) if wanted.git else "")


def _git_runs(root: str) -> str:
    """The first key of the repository's own configuration that runs a program, or "". What cannot be read counts."""
    program = shutil.which("git", path=clean_environment(os.environ, Path(root))["PATH"])
    if program is None:
        return ""
    argv = [program, "config", "--local", "--includes", "--name-only", "--get-regexp", GIT_RUNS]
    try:
        done = subprocess.run(
            argv, cwd=root, env=clean_environment(os.environ, Path(root)), capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"unreadable ({type(error).__name__})"
    # 1: nothing found; 128: no repository here, so there is no configuration of one.
    found = done.stdout.split()
    return found[0] if found else "" if done.returncode in (0, 1, 128) else "unreadable"


@tool(subject="command", timeout=BASH_SECONDS + ENGINE_SECONDS, inspect=_look)
async def bash(command: Annotated[str, AfterValidator(_one_string)], context: ToolContext) -> ToolResult:
    """Run a command with bash in the workspace folder and return its output and exit code.

    Each call is a fresh shell: no working directory, variable or background process outlives it. There is no terminal
    and no input. Standard output and error come merged; very long output loses its middle.
    command: the command line, as bash reads it
    """
    seconds = context.deadline.left(context.clock.monotonic(), own=BASH_SECONDS)
    with _Output() as output:
        shell = _start(command, context.workspace, output)
        try:
            in_time = await shell.ends_within(seconds)
            if in_time:
                await output.ends_within(DRAIN)
        finally:
            await shell.kill_group()
        note = "" if in_time else f"[killed: it took longer than {seconds:g} seconds]"
        return _report(output.text(), shell.exit_code, note)


def _report(output: str, code: int, note: str) -> ToolResult:
    lines = [output.removesuffix("\n") or NOTHING, *filter(None, [note]), f"exit code {code}"]
    return ToolResult("\n".join(lines), "ok" if code == 0 and not note else "error")


def _start(command: str, workspace: Path, output: _Output) -> _Shell:
    environment = clean_environment(os.environ, workspace)
    program = shutil.which("bash", path=environment["PATH"])
    if program is None:
        raise ToolFailed("There is no bash on this machine.")
    # `--`, so that a command that begins with a dash is a command too. Bytes, so that no locale encodes them anew.
    argv: list[str | bytes] = [program, "--noprofile", "--norc", "-c", "--", command.encode("utf-8")]
    try:
        process = subprocess.Popen(
            argv,
            cwd=workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output.write_end,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolFailed(f"The command could not be started: {error.strerror}.") from error
    return _Shell(process)


class _Shell:
    """A running bash, leader of a process group that holds all that it started (unless that made a new session)."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        # A thread waits for it: for asyncio a subprocess is only over when its pipes are, and a background child may
        # keep a pipe open for ever.
        threading.Thread(target=self._wait, name=f"bash {process.pid}", daemon=True).start()

    def _wait(self) -> None:
        self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._ended.set)

    @property
    def exit_code(self) -> int:
        """As a shell reports it: 128 and the number of the signal for a killed one."""
        code = self._process.returncode
        return 128 - code if code < 0 else code

    async def ends_within(self, seconds: float) -> bool:
        """Wait for the shell itself."""
        return await _within_seconds(self._ended, seconds)

    async def kill_group(self) -> None:
        """End the shell and what it left behind: ask, wait a little, kill. Killed even if cancelled meanwhile."""
        try:
            patience = self._loop.time() + GRACE
            alive = self._signal(signal.SIGTERM)
            while alive and self._loop.time() < patience:
                await asyncio.sleep(LOOK_AGAIN)
                alive = self._signal(0)
        finally:
            self._signal(signal.SIGKILL)
        await self._ended.wait()

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; False if nobody is left who could get it."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


class _Output:
    """Standard output and error of one command, merged in order by being one pipe, in bounded memory."""

    def __init__(self) -> None:
        self._kept = HeadTail(OUTPUT_CHARS)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop.add_reader(self._read_end, self._read)

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_write_end()
        self._loop.remove_reader(self._read_end)
        os.close(self._read_end)

    def _read(self) -> bool:
        """Take what is there; False if there is nothing now."""
        try:
            data = os.read(self._read_end, CHUNK)
        except BlockingIOError:
            return False
        self._kept.add(self._decoder.decode(data, final=not data))
        if not data:
            self._loop.remove_reader(self._read_end)
            self._ended.set()
        return bool(data)

    def _close_write_end(self) -> None:
        # The child has its own copy; while ours is open the pipe never ends.
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    async def ends_within(self, seconds: float) -> bool:
        """Wait until nobody can write any more."""
        self._close_write_end()
        return await _within_seconds(self._ended, seconds)

    def text(self) -> str:
        """All that was kept, with what is still in the pipe."""
        for _ in range(LAST_LOOKS):
            if self._ended.is_set() or not self._read():
                break
        return self._kept.text()


async def _within_seconds(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
