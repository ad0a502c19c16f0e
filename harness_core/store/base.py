"""What every store does the same way, whatever its disk: envelope and codec, who is told, what this process holds."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol, TypeVar

from harness_core.clock import SystemClock
from harness_core.codec import Codec, stamp
from harness_core.errors import StoreError
from harness_core.events import Event
from harness_core.ports import Clock, Lease, Unsubscribe
from harness_core.store.leases import Beats, HeldLease, Rest
from harness_core.store.rows import Row, StoredRow, addressed, decode, encode, repeats_a_key, storable

T = TypeVar("T")
Told = Callable[[str, tuple[Event, ...]], None]

FACTS_ONLY: Final = Codec()
log = logging.getLogger(__name__)


class Disk(Protocol):
    """Where rows and leases lie. Each verb is one transaction: all of it, or nothing.

    owner: a process, as long as it lives. now: seconds since the epoch. Verbs raise StoreError when the disk fails.
    """

    def append(
        self, session_id: str, rows: Sequence[Row], after: int | None, holder: tuple[str, int] | None
    ) -> int | None:
        """Append all, and return the seq of the first; None if refused. holder: owner and fence, or LeaseLost."""

    def read(self, session_id: str, after: int) -> Sequence[StoredRow]:
        """The rows with a greater seq, in order."""

    def open(self, session_id: str) -> Sequence[StoredRow]:
        """The rows from the last fact of the kind OPENS on, or all."""

    def last_seq(self, session_id: str) -> int:
        """The seq of the last row, or 0."""

    def sessions(self, prefix: str) -> Sequence[str]:
        """The ids of all journals that begin with prefix, sorted."""

    def find(self, kind: str, prefix: str) -> Sequence[tuple[str, StoredRow]]:
        """(journal, row) of all rows of a kind in journals whose ids begin with prefix, in order."""

    def take(self, session_id: str, owner: str, now: float, beat: bool) -> int:
        """Take the lease and return its new fence, or 0 if another live owner has it. beat: write a heartbeat too."""

    def release(self, session_id: str, owner: str, fence: int, rest: Rest | None) -> None:
        """Let go and write the rest down; nothing happens if the lease is not this one any more."""

    def beat(self, owner: str, now: float) -> None:
        """Write the owner's heartbeat."""

    def leave(self, owner: str, now: float) -> None:
        """Let go of everything that the owner holds."""

    def unfinished(self, owner: str, now: float, clock: float) -> Sequence[str]:
        """Sessions that do not rest at `now` and that no other live owner holds at `clock`, oldest first."""


class BaseStore:
    """A SessionStore over a Disk; see ports.SessionStore for the verbs.

    A subclass says in `_submit` where and when the disk does its work: in the order of submission, and never twice at
    once. What was submitted is done even if the caller is cancelled, so a cancelled append may have happened.
    """

    def __init__(self, codec: Codec | None = None, clock: Clock | None = None) -> None:
        self.owner = uuid.uuid4().hex
        self._codec = codec or FACTS_ONLY
        self._clock = clock or SystemClock()
        self._beats = Beats()
        self._held: set[str] = set()
        self._told: dict[object, Told] = {}
        self._closed = False

    def _submit(self, verb: Callable[[Disk], T]) -> asyncio.Future[T]:
        raise NotImplementedError

    async def _done(self, job: asyncio.Future[T]) -> T:
        """What the disk brings. A disk that may hang has its own bound of time here, and raises StoreError."""
        return await asyncio.shield(job)

    async def _ask(self, verb: Callable[[Disk], T]) -> T:
        return await self._done(self._submit(verb))

    # -- facts ---------------------------------------------------------------------------------------------------------

    async def append(
        self,
        session_id: str,
        events: Event | Sequence[Event],
        *,
        key: str | None = None,
        after: int | None = None,
        fence: int | None = None,
    ) -> tuple[Event, ...]:
        """Append all of these facts, or none; see ports.SessionStore. Copies are returned, the given ones stay."""
        facts = addressed(storable(session_id), events, key, self._clock.now())
        rows = [encode(self._codec, fact) for fact in facts]
        if not rows or repeats_a_key(rows):
            return ()
        holder = None if fence is None else (self.owner, fence)

        def write(disk: Disk) -> tuple[Event, ...]:
            first = disk.append(session_id, rows, after, holder)
            return () if first is None else placed(facts, first)

        job = self._submit(write)
        job.add_done_callback(lambda done: self._tell(session_id, done))
        return await self._done(job)

    async def read(self, session_id: str, after: int = 0) -> Sequence[Event]:
        """The facts with a seq greater than `after`, in order."""
        storable(session_id)
        return decode(self._codec, session_id, await self._ask(lambda disk: disk.read(session_id, after)))

    async def open(self, session_id: str) -> Sequence[Event]:
        """The facts that the present state needs: from the last ContextCompressed on, or all."""
        storable(session_id)
        return decode(self._codec, session_id, await self._ask(lambda disk: disk.open(session_id)))

    async def last_seq(self, session_id: str) -> int:
        """The seq of the last fact, 0 for an unknown session."""
        storable(session_id)
        return await self._ask(lambda disk: disk.last_seq(session_id))

    async def sessions(self, prefix: str = "") -> Sequence[str]:
        """The ids of all journals that begin with prefix, sorted."""
        storable(prefix)
        return await self._ask(lambda disk: disk.sessions(prefix))

    async def find(self, kind: str, prefix: str = "") -> Sequence[Event]:
        """All facts of a kind, in the journals whose ids begin with prefix."""
        found = await self._ask(lambda disk: disk.find(storable(kind), storable(prefix)))
        return tuple(event for session_id, row in found for event in decode(self._codec, session_id, (row,)))

    # -- who is told ---------------------------------------------------------------------------------------------------

    def changed(self, told: Told) -> Unsubscribe:
        """Call `told(session_id, facts)` on the event loop after each append made through this store."""
        token = object()  # the same function may be told twice
        self._told[token] = told

        def forget() -> None:
            self._told.pop(token, None)

        return forget

    def _tell(self, session_id: str, job: asyncio.Future[tuple[Event, ...]]) -> None:
        # A callback of the job, not a line after it: the append of a cancelled caller has happened all the same.
        if job.cancelled() or job.exception() or not (facts := job.result()):
            return
        for told in tuple(self._told.values()):
            try:
                told(session_id, facts)
            except Exception:
                log.exception("Somebody who was told of new facts in %r failed.", session_id)

    # -- leases --------------------------------------------------------------------------------------------------------

    def lease(self, session_id: str) -> AbstractAsyncContextManager[Lease | None]:
        """Hold the session while inside; None if somebody else does (in this process or another)."""
        return HeldLease(self, storable(session_id), self._beats, self._clock)

    async def unfinished(self, now: float) -> Sequence[str]:
        """Sessions that do not rest and that nobody holds, the one that waits longest first."""
        clock = self._clock.now()
        ids = await self._ask(lambda disk: disk.unfinished(self.owner, now, clock))
        return tuple(session_id for session_id in ids if session_id not in self._held)

    async def enter(self, lease: HeldLease) -> bool:
        """Take the session for this lease; False if somebody else holds it."""
        if lease.session_id in self._held:
            return False
        self._held.add(lease.session_id)  # before the first await, so that two tasks never both ask the disk
        taken = False
        try:
            taken = await self._ask(lambda disk: self._take(disk, lease))
        except (asyncio.CancelledError, StoreError):
            await self.leave(lease)  # the disk may take it all the same; jobs keep their order, so this one lets go
            raise
        finally:
            if not taken:
                self._held.discard(lease.session_id)
        return taken

    def _take(self, disk: Disk, lease: HeldLease) -> bool:
        began = self._clock.monotonic()
        beat = self._beats.due(began)
        lease.fence = disk.take(lease.session_id, self.owner, self._clock.now(), beat)
        if not lease.fence:
            return False
        if beat:
            self._beats.note(began, self._clock.monotonic())
        lease.life = self._beats.life
        return True

    async def leave(self, lease: HeldLease) -> None:
        """Let the session go. Never raises StoreError: what could not be released can still be taken by this process,
        and its rest is not written, so that the session counts as unfinished.
        """
        lease.life = 0
        self._held.discard(lease.session_id)
        if self._closed:  # closing has let go of everything
            return
        try:
            await self._ask(lambda disk: self._release(disk, lease))
        except StoreError:
            log.warning("The session %r could not be released.", lease.session_id, exc_info=True)

    def _release(self, disk: Disk, lease: HeldLease) -> None:
        if lease.fence:
            disk.release(lease.session_id, self.owner, lease.fence, lease.resting)

    async def beat(self) -> None:
        """Write this process's heartbeat now. Only for stores made with heartbeat=False: tests beat by hand."""
        await self._ask(self._beat)

    def _beat(self, disk: Disk) -> None:
        began = self._clock.monotonic()
        disk.beat(self.owner, self._clock.now())
        self._beats.note(began, self._clock.monotonic())


def placed(facts: Sequence[Event], first: int) -> tuple[Event, ...]:
    """The facts with their places in the journal, from `first` on."""
    for seq, fact in enumerate(facts, first):
        stamp(fact, seq=seq)  # copies of our own, which nobody else has seen yet
    return tuple(facts)
