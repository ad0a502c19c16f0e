"""Reads journals out of an SQLite file, and cannot change it; works while others write to it.  Blocking."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from sqlite_utils import Database

from harness_core.codec import Codec
from harness_core.errors import StoreError
from harness_core.events import Event
from harness_core.journal_ids import is_session
from harness_core.store.base import FACTS_ONLY
from harness_core.store.migrations import refuse_newer
from harness_core.store.rows import StoredRow, decode, storable
from harness_core.store.sqlite_disk import LOCK_WAIT, READ, in_words

_LISTED: Final = """
    select session_id, last_seq,
        (select at from facts where facts.session_id = sessions.session_id and seq = 1),
        (select at from facts where facts.session_id = sessions.session_id and seq = sessions.last_seq)
    from sessions where last_seq > 0
"""


@dataclass(frozen=True, slots=True)
class Listed:
    """A session in short. began, newest: when its first and its newest fact were stored, in seconds since the epoch."""

    session_id: str
    facts: int
    began: float
    newest: float


class JournalReader:
    """The journals in a store's file. Raises StoreError for a file that is not there, is none of ours, or is damaged,
    NewerFormat for one that a newer version changed.
    """

    def __init__(self, path: Path, codec: Codec | None = None) -> None:
        self._path, self._codec = path, codec or FACTS_ONLY
        if not path.is_file():
            raise StoreError(f"There is no {path}: nothing was recorded there yet.")
        with self._told():
            # A file that was closed cleanly has no log beside it, and a reader may have to make one.
            self._conn = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=LOCK_WAIT, isolation_level=None
            )
            try:
                self._conn.execute("pragma query_only = on")
                if not refuse_newer(Database(self._conn, execute_plugins=False)):
                    raise StoreError(f"{path} is no database of the harness.")
            except BaseException:
                self._conn.close()
                raise

    def sessions(self) -> Sequence[Listed]:
        """All sessions, the one that was written to last first."""
        found = [Listed(*row) for row in self._all(_LISTED) if is_session(row[0])]
        return sorted(found, key=lambda one: (-one.newest, one.session_id))

    def read(self, journal: str) -> tuple[Event, ...]:
        """All facts of a journal, in order; none for one that there is not."""
        rows = (StoredRow(*row) for row in self._all(READ, storable(journal), 0))
        return decode(self._codec, journal, rows)

    def close(self) -> None:
        """Close the file."""
        self._conn.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _all(self, sql: str, *values: Any) -> list[Any]:
        with self._told(), closing(self._conn.execute(sql, values)) as cursor:
            return cursor.fetchall()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise in_words(error, self._path) from error
