"""The real clock."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Time as this machine tells it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
