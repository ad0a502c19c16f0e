"""Journals in one SQLite file, shared by any number of processes of one machine."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from harness_core.codec import Codec
from harness_core.errors import StoreError
from harness_core.ports import Clock
from harness_core.store.base import BaseStore, Disk
from harness_core.store.heartbeat import Heartbeat
from harness_core.store.leases import HeldLease
from harness_core.store.patience import Patience
from harness_core.store.sqlite_disk import SQLiteDisk, in_words
from harness_core.store.worker import Worker

T = TypeVar("T")
log = logging.getLogger(__name__)


class SQLiteStore(BaseStore):
    """A SessionStore in an SQLite file.

    Making one touches nothing: the file is opened, and its tables are made or migrated, by the first verb or by
    `open_file`. A damaged file raises StoreError, one of a newer version NewerFormat; both stay as they are.

    heartbeat=False: no thread; only `beat()`, and taking a lease, say that this process lives.
    """

    def __init__(
        self, path: str | Path, codec: Codec | None = None, clock: Clock | None = None, *, heartbeat: bool = True
    ) -> None:
        super().__init__(codec, clock)
        self.path = Path(path)
        self._disk: SQLiteDisk | None = None
        self._heartbeat = Heartbeat(self.path, self.owner, self._beats, self._clock) if heartbeat else None
        # One thread owns the connection: SQLite has one writer anyway, and so every verb is done in order of asking.
        self._worker = Worker("sqlite", self._clock)
        self._patience = Patience(str(self.path), self._busy_since, self._clock)

    @classmethod
    async def open_file(
        cls, path: str | Path, codec: Codec | None = None, clock: Clock | None = None, *, heartbeat: bool = True
    ) -> SQLiteStore:
        """A store whose file was opened, so that a bad one is told at start-up and not by the first message."""
        store = cls(path, codec, clock, heartbeat=heartbeat)
        try:
            await store.last_seq("")
        except BaseException:
            await store.close()
            raise
        return store

    def reopen(self, codec: Codec | None = None) -> SQLiteStore:
        """Another handle on the same file, as another process (of another version, with its codec) would have it."""
        return SQLiteStore(self.path, codec or self._codec, self._clock, heartbeat=self._heartbeat is not None)

    def stall(self) -> None:
        """Stop the heartbeat, as if the process had died or hung: its leases expire from now on."""
        self._beats.stop(self._clock.monotonic())
        if self._heartbeat:
            self._heartbeat.stop()

    async def close(self) -> None:
        """Let go of every lease, stop the heartbeat and close the file. Verbs asked for before are still done."""
        if self._closed:
            return
        self._closed = True
        self._beats.stop(-math.inf)
        if self._heartbeat:
            self._heartbeat.stop()
        shut = self._worker.submit(self._shut)
        self._worker.end()
        try:
            await self._done(shut)
        except StoreError as error:
            log.warning("Left as it is: %s", error)
        finally:
            await self._patience.end()

    def _shut(self) -> None:
        if self._heartbeat:
            self._heartbeat.join()
        if self._disk is None:
            return
        try:
            self._disk.leave(self.owner, self._clock.now())
        except sqlite3.Error as error:
            log.warning("Leases were left to expire: %s", in_words(error, self.path))
        finally:
            self._disk.close()

    def _submit(self, verb: Callable[[Disk], T]) -> asyncio.Future[T]:
        if self._closed:
            raise StoreError("This store is closed.")
        return self._worker.submit(lambda: self._perform(verb))

    async def _done(self, job: asyncio.Future[T]) -> T:
        return await self._patience.wait(job)

    def _busy_since(self) -> float | None:
        # To bring an old file up to date takes as long as it takes, and must not be given up halfway at each start.
        return self._worker.since if self._disk else None

    def _perform(self, verb: Callable[[Disk], T]) -> T:
        try:
            if self._disk is None:
                disk = SQLiteDisk(self.path)
                self._worker.since = self._clock.monotonic()
                self._disk = disk
            self._keep_alive(self._disk)
            return verb(self._disk)
        except sqlite3.Error as error:
            raise in_words(error, self.path) from error

    def _keep_alive(self, disk: Disk) -> None:
        """Beat if the heartbeat's own thread has had no turn for a second: while we write it may get none at all."""
        if self._heartbeat and self._heartbeat.beating and self._beats.due(self._clock.monotonic()):
            with suppress(sqlite3.Error):  # that thread tries again, and says what is wrong
                self._beat(disk)

    def _take(self, disk: Disk, lease: HeldLease) -> bool:
        taken = super()._take(disk, lease)
        if taken and self._heartbeat:
            self._heartbeat.start()  # with the first lease, which brought the first beat itself
        return taken
