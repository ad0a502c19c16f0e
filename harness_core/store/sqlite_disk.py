"""Rows and leases in one SQLite file: the statements, each verb one transaction.  Blocking; one thread at a time."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal, cast

from sqlite_utils import Database

from harness_core.errors import LeaseLost, StoreError
from harness_core.journal_ids import NO_SESSIONS
from harness_core.store.leases import EXPIRY, Rest, alive
from harness_core.store.migrations import LISTED, migrate
from harness_core.store.rows import Row, StoredRow, opens_at

LOCK_WAIT: Final = 30.0  # seconds to wait for another process's transaction; ours take milliseconds
FORGOTTEN: Final = 3600.0  # seconds without a heartbeat after which the row of a dead process is swept away

# An upsert, because the row of a process that hung for long may have been swept away.
BEAT: Final = (
    "insert into processes (owner, beat_at) values (?, ?) on conflict (owner) do update set beat_at = excluded.beat_at"
)
_APPEND: Final = "insert into facts (session_id, seq, at, run_id, key, kind, body) values (?, ?, ?, ?, ?, ?, ?)"
_COUNT: Final = """
    insert into sessions (session_id, last_seq, opens_at) values (?, ?, coalesce(?, 1))
    on conflict (session_id) do update set last_seq = excluded.last_seq, opens_at = coalesce(?, opens_at)
"""
READ: Final = "select seq, at, run_id, key, kind, body from facts where session_id = ? and seq > ? order by seq"
_OPEN: Final = """
    select seq, at, run_id, key, kind, body from facts
    where session_id = ?1 and seq >= (select opens_at from sessions where session_id = ?1) order by seq
"""
# Sorted by journal, so that those with the same beginning stand together; see `sessions`.
_FIND: Final = """
    select session_id, seq, at, run_id, key, kind, body from facts
    where kind = {kind} and session_id >= ?2 order by session_id, seq
"""
_HOLDER: Final = """
    select fence, owner, beat_at from leases left join processes using (owner) where session_id = ?
"""
_TAKE: Final = """
    insert into leases (session_id, owner, fence) values (?, ?, ?)
    on conflict (session_id) do update set owner = excluded.owner, fence = excluded.fence
"""
_RELEASE: Final = "update leases set owner = null where session_id = ? and owner = ? and fence = ?"
_REST: Final = "update sessions set rested_seq = min(?, last_seq), rest_until = ? where session_id = ?"
# A scan: 7 ms for 100,000 journals. An index on what is unfinished would cost every append a page.
_UNFINISHED: Final = f"""
    select sessions.session_id from sessions
    left join leases on leases.session_id = sessions.session_id
    left join processes using (owner)
    left join facts on facts.session_id = sessions.session_id and facts.seq = sessions.rested_seq + 1
    where (last_seq > rested_seq or rest_until <= :now)
      and {" and ".join(f"sessions.session_id not glob '{prefix}*'" for prefix in NO_SESSIONS)}
      and (owner is null or owner = :owner or abs(:clock - beat_at) > {EXPIRY})
    order by coalesce(facts.at, rest_until), sessions.session_id
"""


class SQLiteDisk:
    """One connection to the file. See base.Disk for the verbs; the errors are sqlite3's, and `in_words` says them."""

    def __init__(self, path: Path) -> None:
        # What people said and decided is in it: a new file is for its owner alone, from the first byte on.
        with suppress(OSError):  # what stands in the way of it, the connection finds too, and says as the others
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._conn = sqlite3.connect(path, timeout=LOCK_WAIT, isolation_level=None, check_same_thread=False)
        try:
            _use_wal(self._conn)
            self._conn.execute("pragma synchronous = full")  # for the migrations; each transaction says its own
            # No plugins: whatever else is installed has no business in this connection.
            self._db = Database(self._conn, execute_plugins=False)
            migrate(self._db)
            self._conn.execute("pragma foreign_keys = on")
            self._path, self._file = path, os.stat(path).st_ino
        except BaseException:
            self._conn.close()
            raise

    def append(
        self, session_id: str, rows: Sequence[Row], after: int | None, holder: tuple[str, int] | None
    ) -> int | None:
        self._still_there()
        with self._writing("full"):
            if holder is not None and self._holder(session_id) != holder:
                raise LeaseLost()
            last = self.last_seq(session_id)
            if (after is not None and after != last) or any(self._taken(session_id, row.key) for row in rows):
                return None
            opens = opens_at(rows, last + 1)
            self._db.execute(_COUNT, (session_id, last + len(rows), opens, opens))
            placed = [(session_id, seq, *row) for seq, row in enumerate(rows, last + 1)]
            self._conn.executemany(_APPEND, placed)
        return last + 1

    def read(self, session_id: str, after: int) -> Sequence[StoredRow]:
        return cast(list[StoredRow], self._all(READ, session_id, after))

    def open(self, session_id: str) -> Sequence[StoredRow]:
        return cast(list[StoredRow], self._all(_OPEN, session_id))

    def last_seq(self, session_id: str) -> int:
        rows = self._all("select last_seq from sessions where session_id = ?", session_id)
        return int(rows[0][0]) if rows else 0

    def sessions(self, prefix: str) -> Sequence[str]:
        # Sorted, they stand together. (LIKE would ignore the case, and substr stops at a NUL.)
        sql = "select session_id from sessions where session_id >= ? order by session_id"
        with closing(self._db.execute(sql, (prefix,))) as cursor:
            return tuple(session_id for (session_id,) in takewhile(lambda row: row[0].startswith(prefix), cursor))

    def find(self, kind: str, prefix: str) -> Sequence[tuple[str, StoredRow]]:
        # The kind stands in the statement where there is an index of it: SQLite cannot match a parameter with one.
        known = f"'{kind}'" if kind in LISTED else "?1"
        with closing(self._db.execute(_FIND.format(kind=known), (kind, prefix))) as cursor:
            rows = takewhile(lambda row: row[0].startswith(prefix), cursor)
            return [(session_id, StoredRow(*row)) for session_id, *row in rows]

    def take(self, session_id: str, owner: str, now: float, beat: bool) -> int:
        with self._writing("normal"):
            rows = self._all(_HOLDER, session_id)
            fence, holder, beat_at = rows[0] if rows else (0, None, 0.0)
            if holder not in (None, owner) and alive(beat_at, now):
                return 0
            if beat:
                self._db.execute(BEAT, (owner, now))
            self._db.execute(_TAKE, (session_id, owner, fence + 1))
        return int(fence) + 1

    def release(self, session_id: str, owner: str, fence: int, rest: Rest | None) -> None:
        with self._writing("normal"):
            released = self._db.execute(_RELEASE, (session_id, owner, fence)).rowcount
            if released and rest:
                self._db.execute(_REST, (*rest, session_id))

    def beat(self, owner: str, now: float) -> None:
        with self._writing("normal"):
            self._db.execute(BEAT, (owner, now))

    def leave(self, owner: str, now: float) -> None:
        with self._writing("normal"):  # the foreign key lets go of the leases
            self._db.execute("delete from processes where owner = ? or beat_at < ?", (owner, now - FORGOTTEN))

    def unfinished(self, owner: str, now: float, clock: float) -> Sequence[str]:
        rows = self._db.execute(_UNFINISHED, {"owner": owner, "now": now, "clock": clock}).fetchall()
        return tuple(session_id for (session_id,) in rows)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _still_there(self) -> None:
        """SQLite writes on into a file that was deleted or replaced, and all of it is lost with the connection."""
        try:
            there = os.stat(self._path).st_ino == self._file
        except FileNotFoundError:
            there = False
        if not there:
            raise StoreError(f"{self._path} was deleted or replaced while it was open. Stop, put it back, start again.")

    def _holder(self, session_id: str) -> tuple[str | None, int] | None:
        rows = self._all("select owner, fence from leases where session_id = ?", session_id)
        return rows[0] if rows else None

    def _taken(self, session_id: str, key: str | None) -> bool:
        sql = "select 1 from facts where session_id = ? and key = ?"
        return key is not None and bool(self._all(sql, session_id, key))

    def _all(self, sql: str, *values: Any) -> list[Any]:
        # Always drained: an open cursor holds a snapshot, and then the next claim fails at once with "locked".
        return self._db.execute(sql, values).fetchall()

    @contextmanager
    def _writing(self, synchronous: Literal["full", "normal"]) -> Iterator[None]:
        """One transaction that has the write lock from its first statement on.

        full: what was acknowledged survives a power cut. normal: it survives the death of the process, and is on the
        disk with the next full one. That is enough for leases and rests: a power cut ends all who share the file, and
        a session whose rest was lost is looked at once more.
        """
        self._conn.execute(f"pragma synchronous = {synchronous}")
        self._db.execute("begin immediate")
        try:
            yield
            self._db.execute("commit")
        finally:
            if self._conn.in_transaction:  # something failed
                with suppress(sqlite3.Error):  # on a full disk SQLite may have rolled back already
                    self._db.execute("rollback")


def _use_wal(conn: sqlite3.Connection) -> None:
    # When several processes open a new file at once, all but one are told "locked" here, without the wait that they
    # asked for. The mode stays with the file, so this is so once in its life.
    give_up = time.monotonic() + LOCK_WAIT
    while True:
        try:
            conn.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


_WORDS: Final = {
    "SQLITE_FULL": "The disk is full: nothing was written to {path}. Make room.",
    "SQLITE_BUSY": "Another process kept {path} locked for too long. Look for one that hangs.",
    "SQLITE_CANTOPEN": "{path} cannot be opened. See that its folder exists and may be written.",
    "SQLITE_READONLY": "{path} may not be written. Look at its permissions.",
    "SQLITE_NOTADB": "{path} is no SQLite database, or damaged. It was left as it is; restore it from a backup.",
    "SQLITE_CORRUPT": "{path} is damaged. It was left as it is; restore it from a backup.",
}


def in_words(error: sqlite3.Error, path: Path) -> StoreError:
    """What SQLite's error means for whoever must act."""
    name = getattr(error, "sqlite_errorname", "") or ""
    for code, words in _WORDS.items():
        if name == code or name.startswith(f"{code}_"):  # extended codes: SQLITE_CORRUPT_INDEX, ...
            return StoreError(f"{words.format(path=path)} ({error})")
    return StoreError(f"{path} could not be read or written: {error}.")
