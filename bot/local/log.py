"""What happened in the workspace, in order: calls, envelopes, and what people saw.  For tests and debugging."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from bot.local.shapes import JSON

KEPT: Final = 50_000  # entries; ours, so that a long load run does not fill the memory


class Log:
    """Notes facts and wakes whoever waits for a change."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.entries: deque[JSON] = deque(maxlen=KEPT)
        self.next = 0  # the number of the next entry; they are counted on when old ones are dropped, or all are
        self._clock = clock
        self._change = asyncio.Event()

    def note(self, kind: str, **facts: object) -> None:
        """Add an entry.  In: its kind (call, sent, ack, retry, gave_up, saw, ...) and the facts."""
        self.entries.append({"at": self._clock(), "kind": kind, **facts})
        self.next += 1
        self.changed()

    def since(self, number: int) -> list[JSON]:
        """The entries from this number on, as far as they are kept."""
        new = self.next - max(number, 0)
        return list(self.entries)[-new:] if new > 0 else []

    def saw(self, user: str, what: str, **facts: object) -> None:
        """A person was shown something that is no message: an error on a button, a refused command."""
        self.note("saw", user=user, what=what, **facts)

    def changed(self) -> None:
        self._change.set()
        # A fresh event per change: whoever looked and found nothing cannot miss the next one.
        self._change = asyncio.Event()

    @property
    def change(self) -> asyncio.Event:
        """Is set at the next change."""
        return self._change
