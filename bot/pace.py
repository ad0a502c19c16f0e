"""Who may call Slack next: one queue per channel, cards before answers before progress, no faster than Slack allows."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from enum import IntEnum
from itertools import count
from typing import Final

BURST: Final = 5  # posts at once in one channel; Slack allows "short bursts" over one a second (docs: chat.postMessage)
PER_SECOND: Final = 1.0


class Urgency(IntEnum):
    """What goes first."""

    CARD = 0
    PRIVATE = 1
    ANSWER = 2
    PROGRESS = 3


class Pace:
    """A bucket of BURST tokens that fills by PER_SECOND, and a queue for it. now: monotonic seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._tokens = float(BURST)
        self._at = now()
        self._closed_until = 0.0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._timer: asyncio.TimerHandle | None = None

    def turn(self, urgency: Urgency) -> asyncio.Future[None]:
        """Ask for a turn: done when it has come. Whoever cancels it has given up."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (urgency, next(self._order), future))
        self._let_in()
        return future

    def hold(self, seconds: float) -> None:
        """Slack asked for a pause."""
        self._closed_until = max(self._closed_until, self._now() + seconds)
        self._let_in()

    def _let_in(self) -> None:
        now = self._now()
        self._tokens = min(float(BURST), self._tokens + (now - self._at) * PER_SECOND)
        self._at = now
        while self._waiting and self._tokens >= 1 and now >= self._closed_until:
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():  # its caller has not given up
                self._tokens -= 1
                future.set_result(None)
        if self._waiting and self._timer is None:
            wait = max(self._closed_until - now, (1 - self._tokens) / PER_SECOND, 0.01)
            self._timer = asyncio.get_running_loop().call_later(wait, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._let_in()
