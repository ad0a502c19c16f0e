"""One thread that does blocking work in the order of asking."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from harness_core.ports import Clock

T = TypeVar("T")

_Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class Worker:
    """Does what it is asked for even if the asker is cancelled. The thread begins with the first job.

    since: when the job at hand began, by the monotonic clock, in seconds; None while there is none.

    An executor of one thread would do as well, at twice the cost: this is most of what a short append costs beside the
    disk.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        self.since: float | None = None
        self._clock = clock
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        # A daemon, so that a store that nobody closed does not keep the process alive.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def submit(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Do this after all that was asked for before; the future belongs to the running event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self._thread.ident is None:
            self._thread.start()
        self._jobs.put((work, loop, future))
        return future

    def end(self) -> None:
        """End the thread once it has done what it was asked for."""
        self._jobs.put(None)

    def _work(self) -> None:
        while job := self._jobs.get():
            work, loop, future = job
            result, error = None, None
            self.since = self._clock.monotonic()
            try:
                result = work()
            except BaseException as raised:  # whatever it is, it is the asker's, and the thread goes on
                error = raised
            self.since = None
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_deliver, future, result, error)
            del job, work, loop, future, result, error  # else they would live until the next job


def _deliver(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
