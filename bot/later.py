"""Wakes sessions at a time to come: when something can be drawn at last, or when Slack may take what it refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from harness_core.ports import Clock

RETRY: Final = 3.0  # seconds until another look, after Slack failed or while another process renders
LONGEST_RETRY: Final = 600.0  # seconds; each refusal doubles the time until the next look, up to this


class Later:
    """One time per session, the earliest that was asked for. Times are seconds since the epoch.

    wake: called with the session's id when its time has come.
    """

    def __init__(self, clock: Clock, wake: Callable[[str], None]) -> None:
        self._clock, self._wake = clock, wake
        self._waits: dict[str, tuple[float, asyncio.Task[None]]] = {}
        self._refusals: dict[str, int] = {}  # by session: how often in a row Slack refused some message of it

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._waits

    @property
    def tasks(self) -> Sequence[asyncio.Task[None]]:
        """All that wait; whoever cancels them has nobody woken any more."""
        return [task for _, task in self._waits.values()]

    def look(self, session_id: str, at: float) -> None:
        """Wake the session at this time, unless it is woken before."""
        if known := self._waits.get(session_id):
            if known[0] <= at:
                return
            known[1].cancel()
        task = asyncio.create_task(self._wake_at(session_id, at), name=f"show later {session_id}")
        self._waits[session_id] = at, task

    def refused(self, session_id: str) -> None:
        """Slack refused a message: wake the session to try again, later each time in a row."""
        times = self._refusals[session_id] = self._refusals.get(session_id, 0) + 1
        self.look(session_id, self._clock.now() + min(RETRY * 2.0**times, LONGEST_RETRY))

    def taken(self, session_id: str) -> None:
        """Slack took all messages of the session."""
        self._refusals.pop(session_id, None)

    def drop(self, session_id: str) -> None:
        """The session is being looked at now, and what can wait is asked anew."""
        if known := self._waits.pop(session_id, None):
            known[1].cancel()

    async def _wake_at(self, session_id: str, at: float) -> None:
        await self._clock.sleep(at - self._clock.now())
        del self._waits[session_id]
        self._wake(session_id)
