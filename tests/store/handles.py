"""Several stores on the same data."""

from __future__ import annotations

from harness_core.codec import Codec
from harness_core.store.memory import MemoryStore
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock

Store = MemoryStore | SQLiteStore


class Handles:
    """Stores on the same data, each as another process would have it; all are closed after the test."""

    def __init__(self, first: Store, clock: FakeClock) -> None:
        self.first = first
        self.clock = clock
        self._opened: list[Store] = [first]

    def another(self, codec: Codec | None = None) -> Store:
        self._opened.append(self.first.reopen(codec))
        return self._opened[-1]

    async def close(self) -> None:
        for store in self._opened:
            await store.close()
