"""Who is told of what happens: observers, and callbacks of an *always allow*.  Their faults are logged, and no more."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from harness_core.background import Background, ends_us, in_time
from harness_core.events import Event
from harness_core.interceptors.hitl import OnApproved
from harness_core.policies import POLICIES
from harness_core.ports import SessionStore, Unsubscribe
from harness_core.types import Args

log = logging.getLogger(__name__)

CALLBACK: Final = 15.0  # seconds that a callback of an *always allow* may take

Observer = Callable[[Event], Awaitable[None] | None]


def subscribed(observer: Observer, store: SessionStore, background: Background) -> Unsubscribe:
    """Tell an observer of what is stored from now on, one fact after the other, until the subscription is ended."""
    queue: asyncio.Queue[Event] = asyncio.Queue()

    def put(journal: str, events: tuple[Event, ...]) -> None:
        for event in () if journal == POLICIES else events:
            queue.put_nowait(event)

    forget = store.changed(put)
    task = background.spawn(_observe(queue, observer))

    def unsubscribe() -> None:
        forget()
        task.cancel()

    return unsubscribe


async def _observe(queue: asyncio.Queue[Event], observer: Observer) -> None:
    while True:
        event = await queue.get()
        try:
            done = observer(event)
            if inspect.isawaitable(done):
                await done
        except BaseException as error:
            if ends_us(error):
                raise
            log.exception("an observer failed on %s", type(event).__name__)


async def tell_approved(callbacks: Iterable[OnApproved], tool: str, args: Args, seconds: float = CALLBACK) -> None:
    """Tell everybody who asked to be told of an *always allow*, one after the other. seconds: what each may take."""
    for callback in callbacks:
        try:
            await in_time(_told(callback, tool, args, seconds), seconds)  # the run waits for it
        except TimeoutError:
            log.error("an on_approved callback for %s will not end, and is left behind", tool)


async def _told(callback: OnApproved, tool: str, args: Args, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            done = callback(tool, args)
            if inspect.isawaitable(done):
                await done
    except BaseException as error:
        if ends_us(error):
            raise
        log.exception("an on_approved callback failed for %s", tool)
