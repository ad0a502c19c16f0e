"""A bounded walk through a folder of the workspace: in a fixed order, into no symlink, to an end in any case."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

from harness_core.errors import ToolFailed
from harness_core.ports import ToolContext
from harness_core.tools.clip import short
from harness_core.tools.confined import Place, folder, in_thread
from harness_core.tools.patterns import PathPattern, State

SEARCH_SECONDS: Final = 10.0  # of one search, or less if the deadline is nearer
ENTRIES: Final = 200_000  # files and folders that one search looks at
SEARCH_BYTES: Final = 100_000_000  # that one search reads
DEPTH: Final = 60  # folders below the first

Kind = Literal["file", "folder", "link", "other"]
T = TypeVar("T")


class Spent(Exception):
    """A search has used up what it may. The message says of what, and what to do."""


class Budget:
    """What one search may still spend; every method raises Spent when that is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._entries = ENTRIES
        self._bytes = SEARCH_BYTES
        self._stopped = False
        self.skipped = 0  # folders and files that could not be read, or lie too deep

    def stop(self) -> None:
        """End the search at its next step; called from another thread."""
        self._stopped = True

    def step(self) -> None:
        """A moment passes."""
        if self._stopped or time.monotonic() > self._until:
            raise Spent(f"stopped after {self._seconds:g} seconds; search a smaller folder")

    def entry(self) -> None:
        """A file or folder is looked at."""
        self.step()
        self._entries -= 1
        if self._entries < 0:
            raise Spent(f"stopped after {ENTRIES:,} files and folders; search a smaller folder")

    def read(self, size: int) -> None:
        """So many bytes were read."""
        self.step()
        self._bytes -= size
        if self._bytes < 0:
            raise Spent(f"stopped after {SEARCH_BYTES:,} bytes; search a smaller folder, or fewer files")


async def search(context: ToolContext, work: Callable[[Budget], T]) -> T:
    """Do it in a thread. Cancelled, it returns once the thread has noticed and ended."""
    budget = Budget(context.deadline.left(context.clock.monotonic(), own=SEARCH_SECONDS))
    task = asyncio.ensure_future(in_thread(lambda: work(budget)))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        budget.stop()
        await asyncio.wait([task])
        task.exception()  # seen: the cancellation is what our caller hears of
        raise


@dataclass(frozen=True, slots=True)
class Found:
    """A match: the names below the workspace that lead to it."""

    place: Place
    kind: Kind

    @property
    def shown(self) -> str:
        """Its path in the workspace, in one line whatever it holds."""
        path = self.place.relative
        return path if path.isprintable() else ascii(path)


def walk(top: Place, pattern: PathPattern, budget: Budget) -> Iterator[Found]:
    """All below the folder that matches, by path, part by part. Raises Spent, and ToolFailed if there is no folder."""
    try:
        entries = _entries(top, budget)
    except FileNotFoundError:
        raise ToolFailed(f"{short(top.called)} does not exist.") from None
    except NotADirectoryError:
        raise ToolFailed(f"{short(top.called)} is not a folder.") from None
    # What is still to come in each folder on the way down.
    stack: list[tuple[Place, State, Iterator[tuple[str, Kind]]]] = [(top, pattern.start(), iter(entries))]
    while stack:
        here, state, rest = stack[-1]
        name, kind = next(rest, ("", "other"))
        if not name:
            stack.pop()
            continue
        below = pattern.after(state, name)
        if not below:
            continue
        found = Found(replace(here, names=(*here.names, name)), kind)
        if pattern.matched(below):
            yield found
        if kind == "folder":
            stack.append((found.place, below, iter(_below(found.place, len(stack), budget))))


def _below(place: Place, depth: int, budget: Budget) -> list[tuple[str, Kind]]:
    try:
        if depth <= DEPTH:
            return _entries(place, budget)
    except OSError:  # not ours to read, or gone, or just become a symlink: the search goes on without it
        pass
    budget.skipped += 1
    return []


def _entries(place: Place, budget: Budget) -> list[tuple[str, Kind]]:
    entries = []
    with folder(place, place.names) as fd, os.scandir(fd) as scanned:
        for entry in scanned:
            budget.entry()
            entries.append((entry.name, _kind(entry)))
    return sorted(entries)


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
