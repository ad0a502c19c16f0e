"""Journals in memory, for tests and for trying things out.  Kept as JSON, so that no codec fault can hide."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from harness_core.codec import Codec
from harness_core.errors import LeaseLost, StoreError
from harness_core.journal_ids import is_session
from harness_core.ports import Clock
from harness_core.store.base import BaseStore, Disk
from harness_core.store.leases import Rest, alive
from harness_core.store.rows import Row, StoredRow, opens_at

T = TypeVar("T")


class Journal:
    """One session's rows, and how far it rests."""

    def __init__(self) -> None:
        self.rows: list[StoredRow] = []
        self.keys: set[str] = set()
        self.opens_at = 1
        self.rest = Rest(0, None)

    def waits_since(self, now: float) -> float | None:
        """Since when something is to be done (seconds since the epoch), None if the session rests."""
        if len(self.rows) > self.rest.seq:
            return self.rows[self.rest.seq].at
        return self.rest.until if self.rest.until is not None and self.rest.until <= now else None


class MemoryDisk:
    """What several stores can share, as several processes share a file. See base.Disk for the verbs."""

    def __init__(self) -> None:
        self.beating: set[str] = set()  # owners that live as long as they do not say otherwise
        self._journals: dict[str, Journal] = {}
        self._leases: dict[str, tuple[str | None, int]] = {}
        self._beats: dict[str, float] = {}

    def append(
        self, session_id: str, rows: Sequence[Row], after: int | None, holder: tuple[str, int] | None
    ) -> int | None:
        if holder is not None and self._leases.get(session_id) != holder:
            raise LeaseLost()
        journal = self._journals.get(session_id) or Journal()
        last = len(journal.rows)
        if (after is not None and after != last) or any(row.key in journal.keys for row in rows):
            return None
        self._journals[session_id] = journal
        journal.rows += [StoredRow(seq, *row) for seq, row in enumerate(rows, last + 1)]
        journal.keys |= {row.key for row in rows if row.key is not None}
        journal.opens_at = opens_at(rows, last + 1) or journal.opens_at
        return last + 1

    def read(self, session_id: str, after: int) -> Sequence[StoredRow]:
        journal = self._journals.get(session_id)
        return journal.rows[max(after, 0) :] if journal else ()

    def open(self, session_id: str) -> Sequence[StoredRow]:
        journal = self._journals.get(session_id)
        return journal.rows[journal.opens_at - 1 :] if journal else ()

    def last_seq(self, session_id: str) -> int:
        journal = self._journals.get(session_id)
        return len(journal.rows) if journal else 0

    def sessions(self, prefix: str) -> Sequence[str]:
        return tuple(sorted(session_id for session_id in self._journals if session_id.startswith(prefix)))

    def find(self, kind: str, prefix: str) -> Sequence[tuple[str, StoredRow]]:
        return [(name, row) for name in self.sessions(prefix) for row in self._journals[name].rows if row.kind == kind]

    def take(self, session_id: str, owner: str, now: float, beat: bool) -> int:
        holder, fence = self._leases.get(session_id, (None, 0))
        if holder != owner and self._alive(holder, now):
            return 0
        if beat:
            self.beat(owner, now)
        self._leases[session_id] = (owner, fence + 1)
        return fence + 1

    def release(self, session_id: str, owner: str, fence: int, rest: Rest | None) -> None:
        if self._leases.get(session_id) != (owner, fence):
            return
        self._leases[session_id] = (None, fence)
        if rest and (journal := self._journals.get(session_id)):
            journal.rest = Rest(min(rest.seq, len(journal.rows)), rest.until)

    def beat(self, owner: str, now: float) -> None:
        self._beats[owner] = now

    def leave(self, owner: str, now: float) -> None:
        self.beating.discard(owner)
        self._beats.pop(owner, None)
        for session_id, (holder, fence) in self._leases.items():
            if holder == owner:
                self._leases[session_id] = (None, fence)

    def unfinished(self, owner: str, now: float, clock: float) -> Sequence[str]:
        found = []
        for session_id, journal in self._journals.items():
            holder, _ = self._leases.get(session_id, (None, 0))
            since = journal.waits_since(now)
            if since is not None and is_session(session_id) and (holder == owner or not self._alive(holder, clock)):
                found.append((since, session_id))
        return tuple(session_id for _, session_id in sorted(found))

    def _alive(self, owner: str | None, now: float) -> bool:
        return owner in self.beating or (owner in self._beats and alive(self._beats[owner], now))


class MemoryStore(BaseStore):
    """A SessionStore in memory.

    heartbeat=True: this handle counts as alive until it is closed or `stall()` is called. False: only `beat()`, and
    taking a lease, say that it lives, so that a test decides by its clock when it is taken over.
    """

    def __init__(
        self,
        codec: Codec | None = None,
        clock: Clock | None = None,
        *,
        heartbeat: bool = True,
        disk: MemoryDisk | None = None,
    ) -> None:
        super().__init__(codec, clock)
        self._disk = disk or MemoryDisk()
        self._heartbeat = heartbeat
        if heartbeat:
            self._disk.beating.add(self.owner)
            self._beats.note(math.inf, math.inf)

    def reopen(self, codec: Codec | None = None) -> MemoryStore:
        """Another handle on the same data, as another process (of another version, with its codec) would have it."""
        return MemoryStore(codec or self._codec, self._clock, heartbeat=self._heartbeat, disk=self._disk)

    def stall(self) -> None:
        """Stop the heartbeat, as if the process had died or hung: its leases expire from now on."""
        self._beats.stop(self._clock.monotonic())
        if self.owner in self._disk.beating:
            self._disk.beating.discard(self.owner)
            self._disk.beat(self.owner, self._clock.now())

    async def close(self) -> None:
        """Let go of every lease. The data stays with the other handles."""
        if not self._closed:
            await self._submit(lambda disk: disk.leave(self.owner, self._clock.now()))
            self._closed = True
            self._beats.stop(-math.inf)

    def _submit(self, verb: Callable[[Disk], T]) -> asyncio.Future[T]:
        if self._closed:
            raise StoreError("This store is closed.")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        # Never at once: whoever asks a real disk lets others go first, and a test should see what they can do.
        loop.call_soon(self._perform, verb, future)
        return future

    def _perform(self, verb: Callable[[Disk], T], future: asyncio.Future[T]) -> None:
        if future.cancelled():
            return
        try:
            future.set_result(verb(self._disk))
        except Exception as error:
            future.set_exception(error)
