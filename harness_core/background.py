"""Work that goes on beside the sessions, and waiting that a stop cuts short."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any, Final, TypeVar

from harness_core.errors import LeaseLost
from harness_core.ports import Lease

T = TypeVar("T")

LEAVE: Final = 5.0  # seconds that something cancelled has to end
LEASE_CHECK: Final = 0.5  # seconds between two looks at whether the lease still holds, while something runs


class Interrupted(Exception):
    """A stop was requested while something ran."""


def ends_us(error: BaseException) -> bool:
    """Whether this is to end whoever meets it: somebody is at the keyboard, our own task was cancelled, or it is put
    away because no event loop runs it any more. Any other exit or cancellation is a fault of the work that raised it.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return True
    cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    return cancelled or isinstance(error, KeyboardInterrupt)


class Background:
    """Tasks that nobody waits for; kept, so that they are not collected while they run, and ended together."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin the work. Raises RuntimeError where no event loop runs."""
        try:
            task = asyncio.get_running_loop().create_task(work)
        except RuntimeError:
            work.close()
            raise
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def tasks(self) -> tuple[asyncio.Task[None], ...]:
        """Those that run."""
        return tuple(self._tasks)


async def interruptibly(work: Coroutine[Any, Any, T], stopping: asyncio.Future[None], lease: Lease) -> T:
    """Wait for the work, a stop, or the loss of the lease, whichever comes first; the work never outlives this.

    Raises Interrupted for a stop, LeaseLost for the loss.
    """
    task = asyncio.ensure_future(work)
    either: set[asyncio.Future[Any]] = {task, stopping}
    try:
        # The heartbeat is another thread's work, so there is nothing to be told by: look now and then.
        while not (task.done() or stopping.done()) and lease.valid():
            await asyncio.wait(either, timeout=LEASE_CHECK, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Interrupted if lease.valid() else LeaseLost
    finally:
        if not task.done():
            await put_down({task})


async def in_time(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """What the work comes to. It keeps a time-out of so many seconds itself, and lets no exit out, which would end the
    event loop. Raises TimeoutError for work that will not end though its time is over; it is left behind.
    """
    task = asyncio.ensure_future(work)
    try:
        await ended({task}, seconds)
    except asyncio.CancelledError:
        await put_down({task})
        raise
    if task.done():
        return task.result()
    task.cancel()
    raise TimeoutError


async def ended(tasks: Collection[asyncio.Future[Any]], seconds: float) -> None:
    """Wait for these, which keep a time-out of so many seconds themselves; but for none that will not end then."""
    await asyncio.wait(tasks, timeout=seconds + LEAVE)


async def put_down(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Cancel these, and wait until they have ended. One that will not is left behind, and not waited for."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=LEAVE)
