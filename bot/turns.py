"""Whose turn it is to post: a session keeps its place in the queue while it looks at what changed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bot.pace import Urgency

Turn = Callable[[str, Urgency], asyncio.Future[None]]


class Turns:
    """One place per session, in the queue of its channel. turn: asks for a turn in a channel."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._places: dict[str, tuple[Urgency, asyncio.Future[None]]] = {}
        self._changes: dict[str, asyncio.Future[None]] = {}

    async def taken(self, session_id: str, channel: str, urgency: Urgency, *, changed: bool) -> bool:
        """Wait for a turn. False if the session changes before it comes, or has changed already; its place is kept."""
        known = self._places.get(session_id)
        if known is None or known[0] != urgency:
            self.leave(session_id)
            known = self._places[session_id] = urgency, self._turn(channel, urgency)
        place = known[1]
        if not place.done() and not changed:
            change = self._changes[session_id] = asyncio.get_running_loop().create_future()
            try:
                await asyncio.wait({place, change}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                del self._changes[session_id]
        if place.done():
            del self._places[session_id]
        return place.done()

    def changed(self, session_id: str) -> None:
        """The session changed: whoever waits for its turn looks again first."""
        change = self._changes.get(session_id)
        if change and not change.done():
            change.set_result(None)

    def leave(self, session_id: str) -> None:
        """Nothing is posted after all."""
        if known := self._places.pop(session_id, None):
            known[1].cancel()
