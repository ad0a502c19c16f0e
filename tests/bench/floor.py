"""The lower bound: the same rows in the same transactions through one connection thread, written by hand.

No framework: nothing is decided, validated, judged, folded or shown. What the harness wrote for one session is
recorded once; the floor then writes it again, as a program would that knew it all beforehand.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from harness_core.codec import Codec
from harness_core.events import Event

from .work import Harness

T = TypeVar("T")
Fact = tuple[str, dict[str, Any]]  # kind, body
Transaction = list[Fact]

INSERT = "insert into facts (session_id, seq, at, run_id, key, kind, body) values (?, ?, 0, 'r', ?, ?, ?)"
COUNT = (
    "insert into sessions (session_id, last_seq) values (?, ?) "
    "on conflict (session_id) do update set last_seq = excluded.last_seq"
)
TAKE = (
    "insert into leases (session_id, owner, fence) values (?, 'floor', 1) "
    "on conflict (session_id) do update set owner = excluded.owner, fence = fence + 1"
)


@dataclass
class Record:
    """What the harness appended for one session, transaction by transaction, in the two halves of the cycle."""

    suspend: list[Transaction]
    resume: list[Transaction]

    @classmethod
    async def of(cls, path: Path) -> Record:
        """Run one cycle in a new file and note it."""
        codec, halves = Codec(), cls([], [])
        half = halves.suspend

        def note(_: str, events: tuple[Event, ...]) -> None:
            half.append([(kind, json.loads(body)) for kind, body in map(codec.encode, events)])

        harness = Harness(path)
        harness.store.changed(note)
        await harness.suspend("recorded")
        half = halves.resume
        await harness.resume("recorded")
        await harness.close()
        return halves


class Floor:
    """The cycle by hand, in a file whose tables the harness has made."""

    def __init__(self, path: Path, record: Record) -> None:
        self._path, self._record = path, record
        self._thread = ThreadPoolExecutor(1)
        self._conn: sqlite3.Connection | None = None

    async def suspend(self, session_id: str) -> None:
        """Write what leads to the question: the prompt, then the run under a lease."""
        await self._half(session_id, self._record.suspend)

    async def resume(self, session_id: str) -> None:
        """Write what follows the click: the decision, then the run under a lease."""
        await self._half(session_id, self._record.resume)

    async def _half(self, session_id: str, transactions: Sequence[Transaction]) -> None:
        first, *rest = transactions
        seq = await self._do(lambda conn: self._last(conn, session_id))
        seq = await self._append(session_id, seq, first)
        await self._do(lambda conn: self._take(conn, session_id))
        rows = await self._do(lambda conn: self._read(conn, session_id))
        messages = [json.loads(body) for (body,) in rows]
        for transaction in rest:
            messages += [body for _, body in transaction]
            seq = await self._append(session_id, seq, transaction)
        await self._do(lambda conn: self._release(conn, session_id, seq))

    async def _append(self, session_id: str, seq: int, facts: Transaction) -> int:
        rows = [(session_id, n, _key(kind, n), kind, json.dumps(b)) for n, (kind, b) in enumerate(facts, seq + 1)]

        def write(conn: sqlite3.Connection) -> None:
            conn.execute("begin immediate")
            conn.execute(COUNT, (session_id, rows[-1][1]))
            conn.executemany(INSERT, rows)
            conn.execute("commit")

        await self._do(write)
        return rows[-1][1]

    @staticmethod
    def _last(conn: sqlite3.Connection, session_id: str) -> int:
        row = conn.execute("select last_seq from sessions where session_id = ?", (session_id,)).fetchone()
        return row[0] if row else 0

    @staticmethod
    def _read(conn: sqlite3.Connection, session_id: str) -> list[tuple[str]]:
        return conn.execute("select body from facts where session_id = ? order by seq", (session_id,)).fetchall()

    @staticmethod
    def _take(conn: sqlite3.Connection, session_id: str) -> None:
        conn.execute("begin immediate")
        conn.execute("insert or replace into processes values ('floor', 0)")
        conn.execute(TAKE, (session_id,))
        conn.execute("commit")

    @staticmethod
    def _release(conn: sqlite3.Connection, session_id: str, seq: int) -> None:
        conn.execute("begin immediate")
        conn.execute("update leases set owner = null where session_id = ?", (session_id,))
        conn.execute("update sessions set rested_seq = ? where session_id = ?", (seq, session_id))
        conn.execute("commit")

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._connected()))

    def _connected(self) -> sqlite3.Connection:
        if self._conn is None:
            self._conn = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._conn.execute("pragma journal_mode = wal")
            self._conn.execute("pragma synchronous = full")
        return self._conn

    async def close(self) -> None:
        """Drop everything."""
        await self._do(lambda conn: conn.close())
        self._thread.shutdown()


def _key(kind: str, seq: int) -> str | None:
    return f"key{seq}" if kind == "HITLSubmitted" else None
