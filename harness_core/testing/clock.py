"""A clock that a test moves, and milestones that a test can wait for."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

NOON: Final = 1_767_614_400.0  # Monday, 5 January 2026, 12:00 UTC, in seconds since the epoch


class Waitable(Protocol):
    """What holds a stand-in open until a test lets go: an asyncio.Event, say."""

    async def wait(self) -> Any:
        """Return when the stand-in may go on."""


class Milestones:
    """A number that only grows, and that a test can wait for."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def add(self) -> None:
        """One more; whoever waits for this number goes on."""
        self.count += 1
        for count, future in self._waiting:
            if count <= self.count and not future.done():
                future.set_result(None)
        self._waiting = [(count, future) for count, future in self._waiting if not future.done()]

    async def reach(self, count: int = 1) -> None:
        """Wait until the number is `count` or more."""
        if self.count < count:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((count, future))
            await future


class FakeClock:
    """A Clock that a test moves. With auto=True a sleep moves it at once, and nobody ever waits.

    `naps` counts the sleeps that began, so that a test can wait for one before it advances.
    """

    def __init__(self, now: float = NOON, *, auto: bool = False) -> None:
        self.auto = auto
        self.naps = Milestones()
        self._now = now
        self._passed = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._now + self._passed

    def monotonic(self) -> float:
        """Seconds since this clock was made."""
        return self._passed

    @property
    def sleeping(self) -> int:
        """How many sleep at this moment."""
        return sum(1 for _, future in self._sleepers if not future.done())

    def advance(self, seconds: float) -> None:
        """Move the time and wake whoever is due. One who sleeps again does so from the new time on."""
        if seconds < 0:
            raise ValueError("Time does not go back.")
        self._passed += seconds
        for due, future in sorted(self._sleepers, key=lambda sleeper: sleeper[0]):
            if due <= self._passed and not future.done():
                future.set_result(None)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been advanced by so many seconds."""
        due = self._passed + max(seconds, 0.0)
        self.naps.add()
        if self.auto:
            self.advance(max(seconds, 0.0))
        if due <= self._passed:
            await asyncio.sleep(0)  # as the real one does: others get a turn, so that a loop of sleeps can be cancelled
            return
        sleeper = (due, asyncio.get_running_loop().create_future())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1]
        finally:
            self._sleepers.remove(sleeper)
