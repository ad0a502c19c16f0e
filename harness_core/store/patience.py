"""How long a caller waits for a disk that does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar

from harness_core.errors import StoreError
from harness_core.ports import Clock

T = TypeVar("T")

PATIENCE: Final = 60.0  # seconds; twice what SQLite waits for another process's lock, so that this is told first
BETWEEN: Final = 1.0  # seconds until the next look where one job was over and the next had not begun


class Patience:
    """Gives callers an error once the disk has been busy with one and the same job for too long. That job cannot be
    ended: it is done when the disk answers again, and what was asked for after it, too.

    since: when the job at hand began, by the monotonic clock; None while there is none. whose: the disk, for people.
    A queue that moves is waited for as long as it takes. One timer serves all who wait, because a timer for each call
    would cost more than the call.
    """

    def __init__(self, whose: str, since: Callable[[], float | None], clock: Clock, seconds: float = PATIENCE) -> None:
        self._whose, self._since, self._clock, self._seconds = whose, since, clock, seconds
        self._answers: set[asyncio.Future[Any]] = set()
        self._watch: asyncio.Task[None] | None = None

    async def wait(self, job: asyncio.Future[T]) -> T:
        """What the job brings. Raises StoreError if the disk hangs; the job may still be done."""
        answer: asyncio.Future[T] = job.get_loop().create_future()
        self._answers.add(answer)
        job.add_done_callback(lambda done: _answered(answer, done))
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watched(), name="disk")
        try:
            return await answer
        finally:
            self._answers.discard(answer)

    async def end(self) -> None:
        """Nobody waits any more, and nothing of this is left running."""
        if self._watch and not self._watch.done():
            self._watch.cancel()
            await asyncio.wait({self._watch})

    async def _watched(self) -> None:
        while self._answers:
            since = self._since()
            left = BETWEEN if since is None else since + self._seconds - self._clock.monotonic()
            if left > 0:
                await self._clock.sleep(left)
                continue
            for answer in self._answers:
                if not answer.done():
                    answer.set_exception(StoreError(_HANGS.format(whose=self._whose, seconds=self._seconds)))
            self._answers.clear()


_HANGS: Final = (
    "{whose} has not answered for {seconds:.0f} seconds: the disk hangs. What was asked of it may still be done."
)


def _answered(answer: asyncio.Future[T], job: asyncio.Future[T]) -> None:
    error = None if job.cancelled() else job.exception()  # asked for in any case, or asyncio says that nobody did
    if answer.done():
        return
    if job.cancelled():
        answer.cancel()
    elif error:
        answer.set_exception(error)
    else:
        answer.set_result(job.result())
