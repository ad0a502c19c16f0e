"""A process and all that it starts: what they print, and an end that nothing of it outlives.

There are two kinds. A *bare* process leads a process group, and a watcher beside it kills that group should we die,
even by a signal that nobody can catch. A *boxed* one is bubblewrap, which ends with us, and its namespace with it.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from harness_core.errors import ToolFailed
from harness_core.tools.clip import HeadTail

CHUNK: Final = 65_536  # bytes read at once: a Linux pipe holds no more
GRACE: Final = 0.5  # seconds between the request to end and the kill, and that a box has to go when it was killed
LAST_LOOKS: Final = 16  # reads at the end: what escaped the group may write for ever
LOOK_AGAIN: Final = 0.02  # seconds between two looks whether a process group is gone

# Reads the group to watch, then waits for the end of what it reads: that comes when we kill it, or when we are no more.
_WATCH: Final = 'read -r group && { read -r _; kill -KILL -- "-$group"; }'

Argv = Sequence[str | bytes]


class Output:
    """Standard output and error of one process, merged in order by being one pipe, in bounded memory."""

    def __init__(self, chars: int) -> None:
        self._kept = HeadTail(chars)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop.add_reader(self._read_end, self._read)

    def __enter__(self) -> Output:
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


class Process:
    """A running process and all that it started. The kinds below differ in what holds that together."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        # A thread waits for it: for asyncio a subprocess is only over when its pipes are, and a background child may
        # keep a pipe open for ever.
        threading.Thread(target=self._wait, name=f"process {process.pid}", daemon=True).start()

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
        """Wait for the process itself."""
        return await _within_seconds(self._ended, seconds)

    async def kill(self) -> None:
        """End the process and what it left behind: ask, wait a little, kill. Killed even if cancelled meanwhile."""
        try:
            patience = self._loop.time() + GRACE
            alive = self._signal(signal.SIGTERM)
            while alive and self._loop.time() < patience:
                await asyncio.sleep(LOOK_AGAIN)
                alive = self._signal(0)
        finally:
            self._signal(signal.SIGKILL)
        await self._ended.wait()
        await self._left()

    def _signal(self, number: int) -> bool:
        """Send a signal to all of it; False if nobody is left who could get it."""
        raise NotImplementedError

    async def _left(self) -> None:
        """Wait for what was killed, beside the process itself."""


class Bare(Process):
    """Leader of a process group that holds all that it started, unless that made a session of its own."""

    def __init__(self, process: subprocess.Popen[bytes], watcher: subprocess.Popen[bytes]) -> None:
        self._watcher = watcher
        super().__init__(process)

    @classmethod
    def start(cls, argv: Argv, bash: str, workspace: Path, environment: Mapping[str, str], output: Output) -> Self:
        """Start a process; `bash` runs the watcher, which is there first. Raises ToolFailed."""
        watcher = _popen([bash, "--noprofile", "--norc", "-c", _WATCH], Path("/"), {}, stdin=subprocess.PIPE)
        try:
            process = _popen(argv, workspace, environment, stdout=output.write_end)
        except BaseException:
            _dismissed(watcher)
            raise
        with contextlib.suppress(BrokenPipeError):  # somebody killed it already
            os.write(watcher.stdin.fileno(), b"%d\n" % process.pid)  # type: ignore[union-attr]
        return cls(process, watcher)

    def _signal(self, number: int) -> bool:
        alive = _sent(os.killpg, self._process.pid, number)
        if number == signal.SIGKILL:
            _dismissed(self._watcher)
        return alive


class Boxed(Process):
    """Bubblewrap, and the process namespace that it made: it goes with the first process in it."""

    _first = 0  # process id of that one

    def __init__(self, process: subprocess.Popen[bytes], told: int) -> None:
        self._told = told
        super().__init__(process)

    @classmethod
    def start(
        cls, argv: Callable[[int], Argv], workspace: Path, environment: Mapping[str, str], output: Output
    ) -> Self:
        """Start bubblewrap. argv: made for the pipe that it tells its first process by. Raises ToolFailed."""
        told, tells = os.pipe()
        try:
            process = _popen(argv(tells), workspace, environment, stdout=output.write_end, pass_fds=(tells,))
        except BaseException:
            os.close(told)
            raise
        finally:
            os.close(tells)
        return cls(process, told)

    def _wait(self) -> None:
        with open(self._told, "rb") as told, contextlib.suppress(ValueError, LookupError):
            self._first = int(json.loads(told.read())["child-pid"])  # nothing, if bubblewrap could not make the box
        super()._wait()

    def _signal(self, number: int) -> bool:
        if self._process.returncode is not None:
            return False  # the kernel is ending the namespace; its number may be somebody else's already
        inside = self._first and _sent(os.killpg, self._first, number)
        return bool(inside) if number != signal.SIGKILL and self._first else _sent(os.killpg, self._process.pid, number)

    async def _left(self) -> None:
        try:
            first = os.pidfd_open(self._first)
        except OSError:
            return  # it is gone
        gone = asyncio.Event()
        self._loop.add_reader(first, gone.set)
        try:
            await _within_seconds(gone, GRACE)
        finally:
            self._loop.remove_reader(first)
            os.close(first)


def _popen(
    argv: Argv,
    folder: Path,
    environment: Mapping[str, str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """A process in a session of its own, so without a terminal."""
    try:
        return subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except OSError as error:
        raise ToolFailed(f"The command could not be started: {error.strerror}.") from error


def _dismissed(watcher: subprocess.Popen[bytes]) -> None:
    """End a watcher before the end of its pipe tells it anything, and leave no zombie."""
    watcher.kill()
    watcher.wait()
    if watcher.stdin:
        watcher.stdin.close()


def _sent(send: Callable[[int, int], None], to: int, number: int) -> bool:
    try:
        send(to, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _within_seconds(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
