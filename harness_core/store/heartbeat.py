"""The heartbeat of one process in an SQLite file: a thread and a connection of its own."""

from __future__ import annotations

import logging
import sqlite3
import threading
from pathlib import Path

from harness_core.ports import Clock
from harness_core.store.leases import BEAT_EVERY, Beats
from harness_core.store.sqlite_disk import BEAT

log = logging.getLogger(__name__)


class Heartbeat:
    """Says every second that this process lives, whatever the event loop and the writer are busy with.

    Except when the writer is busy writing: then it is the writer who says so (see SQLiteStore), because two connections
    that want the same lock do not take turns, and a heartbeat that never gets it would cost all leases.
    """

    def __init__(self, path: Path, owner: str, beats: Beats, clock: Clock, every: float = BEAT_EVERY) -> None:
        self._path = path
        self._owner = owner
        self._beats = beats
        self._clock = clock
        self._every = every  # seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sqlite-heartbeat", daemon=True)

    @property
    def beating(self) -> bool:
        """Whether it has begun and was not stopped."""
        return self._thread.ident is not None and not self._stopping.is_set()

    def start(self) -> None:
        """Begin to beat. The second start does nothing."""
        if not self._thread.is_alive() and not self._stopping.is_set():
            self._thread.start()

    def stop(self) -> None:
        """Stop beating; returns at once."""
        self._stopping.set()

    def join(self) -> None:
        """Wait until the thread has ended, which takes a second at most."""
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        conn: sqlite3.Connection | None = None
        while not self._stopping.wait(self._every):
            if not self._beats.due(self._clock.monotonic()):
                continue
            try:
                conn = conn or self._connect()
                began = self._clock.monotonic()
                conn.execute(BEAT, (self._owner, self._clock.now()))
                self._beats.note(began, self._clock.monotonic())
            except sqlite3.Error as error:  # tried again in a second; until it works the leases expire, as they should
                # A busy writer holds the lock nearly always, but then it has beaten while this waited.
                if self._beats.due(self._clock.monotonic()):
                    log.warning("The heartbeat could not be written to %s: %s", self._path, error)
        if conn:
            conn.close()

    def _connect(self) -> sqlite3.Connection:
        conn = sqlite3.connect(self._path, timeout=self._every, isolation_level=None)
        # It must not hold the lock while a disk syncs: a beat lost in a power cut is no loss, and checkpoints are the
        # writer's work.
        conn.execute("pragma synchronous = normal")
        conn.execute("pragma wal_autocheckpoint = 0")
        return conn
