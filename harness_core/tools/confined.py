"""Files inside the workspace, reached so that nothing leads out of it.

A path is first resolved with all its symlinks, and must come out inside. What is then opened is that resolved path,
folder by folder from the workspace's own, following no symlink: one that appears in between leads to an error, not out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from harness_core.errors import ToolFailed
from harness_core.permissions.paths import within
from harness_core.tools.clip import short

LARGEST_FILE: Final = 10_000_000  # bytes that are read, shown or edited; larger ones are for bash

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO put there must not hang us

T = TypeVar("T")

# -- where a path leads ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """A resolved path: the workspace's real folder, the names below it, and what the model called it."""

    root: str
    names: tuple[str, ...]
    called: str

    @property
    def relative(self) -> str:
        return "/".join(self.names) or "."


def resolved(workspace: Path, path: str) -> tuple[str, str]:
    """(the real workspace, the real path), all symlinks followed, the target's own too."""
    root = os.path.realpath(workspace)
    return root, os.path.realpath(os.path.join(root, path))


def inside(workspace: Path, path: str) -> Place:
    """Where a path leads. Raises ToolFailed if that is outside the workspace."""
    root, real = resolved(workspace, path)
    if not within(real, root):
        raise ToolFailed(f"{short(path)} is outside the workspace. Only files inside it can be used.")
    return Place(root, tuple(real[len(root) :].strip("/").split("/")) if real != root else (), path)


@contextlib.contextmanager
def folder(place: Place, names: tuple[str, ...], make: bool = False) -> Iterator[int]:
    """The descriptor of a folder below the workspace, reached without following any symlink."""
    fd = os.open(place.root, _FOLDER)
    try:
        for name in names:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=fd)
            below = os.open(name, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def existing(place: Place) -> os.stat_result | None:
    """What is there now; None if nothing is. Raises ToolFailed for all but a regular file."""
    if not place.names:
        raise ToolFailed(f"{short(place.called)} is a folder, not a file.")
    try:
        with folder(place, place.names[:-1]) as fd:
            found = os.stat(place.names[-1], dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _regular(found, place)
    return found


def _regular(found: os.stat_result, place: Place) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailed(f"{short(place.called)} is a folder, not a file.")
    if stat.S_ISLNK(found.st_mode):
        raise ToolFailed(f"{short(place.called)} has just become a symlink, or points to itself. Look again.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailed(f"{short(place.called)} is not a regular file (a device, a pipe or a socket).")


# -- reading and writing -----------------------------------------------------------------------------------------------


def contents(place: Place) -> bytes | None:
    """The bytes of a regular file; None if there is none. Raises ToolFailed if it is too large."""
    if existing(place) is None:
        return None
    with folder(place, place.names[:-1]) as fd:
        opened = os.open(place.names[-1], _FILE, dir_fd=fd)
    with open(opened, "rb") as file:
        _regular(os.fstat(opened), place)
        data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            size = max(os.fstat(opened).st_size, len(data))
            raise ToolFailed(
                f"{short(place.called)} is too large ({size:,} bytes; at most {LARGEST_FILE:,})."
                " Use bash to read it in pieces (head, tail, sed -n)."
            )
    return data


def replace(place: Place, data: bytes) -> None:
    """Put a file in place at once: written beside it, forced to disk, renamed. Mode and owner stay."""
    before = existing(place)
    *folders, name = place.names
    temporary = f".{secrets.token_hex(8)}.tmp"
    with folder(place, tuple(folders), make=True) as fd:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        opened = os.open(temporary, flags, 0o666, dir_fd=fd)
        try:
            with open(opened, "wb") as file:
                if before is not None:
                    _like(before, opened)
                file.write(data)
                file.flush()
                os.fsync(opened)
            os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
        except BaseException:
            os.unlink(temporary, dir_fd=fd)
            raise
        os.fsync(fd)


def _like(before: os.stat_result, opened: int) -> None:
    with contextlib.suppress(PermissionError):  # only root may give files away
        os.fchown(opened, before.st_uid, before.st_gid)
    os.fchmod(opened, before.st_mode & 0o777)


async def in_thread(work: Callable[[], T]) -> T:
    """Do it in a thread, to its end even if we are cancelled: half-known writes are worse than a late stop."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # seen: the cancellation is what our caller hears of
        raise
    except OSError as error:
        raise ToolFailed(f"The file system refused: {error.strerror or error}.") from error
