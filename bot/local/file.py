"""The workspace's file: documents by kind and id in SQLite, held in memory and written through."""

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, MutableMapping
from pathlib import Path

from bot.local.changes import Changes
from bot.local.shapes import JSON


class File:
    """Keeps documents.  In: a path, or ":memory:".  `flush` makes everything since the last flush durable at once.

    BlockingIOError if another process keeps this file."""

    def __init__(self, path: Path | str) -> None:
        self._lock: int | None = None
        if str(path) != ":memory:":
            Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(f"{path}.lock")
            # Tokens are in it: only its owner may read it, from the first byte on.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        try:
            self._db = self._opened(path)
        except BaseException:
            self._unlock()
            raise
        self._dirty: dict[tuple[str, str], JSON | None] = {}
        self.changes = Changes()

    def _opened(self, path: Path | str) -> sqlite3.Connection:
        db = sqlite3.connect(path, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            # NORMAL leaves out the fsync per commit: a killed process loses nothing, only a lost machine does.
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("CREATE TABLE IF NOT EXISTS item (kind TEXT, id TEXT, body TEXT, PRIMARY KEY (kind, id))")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def read(self, kind: str) -> dict[str, JSON]:
        """Every stored document of one kind, by id, in the order of ids."""
        rows = self._db.execute("SELECT id, body FROM item WHERE kind = ? ORDER BY id", (kind,))
        return {row[0]: json.loads(row[1]) for row in rows}

    def mark(self, kind: str, key: str, document: JSON | None) -> None:
        """Remember that a document changed (None: is gone); written by the next flush."""
        self._dirty[kind, key] = document
        self.changes.note(kind, key)

    def flush(self) -> None:
        """Write all marked documents in one transaction."""
        if not self._dirty:
            return
        puts = [(kind, key, json.dumps(doc)) for (kind, key), doc in self._dirty.items() if doc is not None]
        drops = [key for key, doc in self._dirty.items() if doc is None]
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT OR REPLACE INTO item VALUES (?, ?, ?)", puts)
        self._db.executemany("DELETE FROM item WHERE kind = ? AND id = ?", drops)
        self._db.execute("COMMIT")
        self._dirty.clear()

    def close(self) -> None:
        self.flush()
        self._db.close()
        self._unlock()


def _locked(path: str) -> int:
    """The descriptor of a lock that ends with this process.  BlockingIOError while another has it.

    What is read is held in memory, so a second process on the same file would write over what the first one wrote."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class Shelf(MutableMapping[str, JSON]):
    """The documents of one kind as a dictionary.  Whoever changes a document in place calls `touch`."""

    def __init__(self, file: File, kind: str) -> None:
        self._file, self._kind = file, kind
        self._items = file.read(kind)

    def __getitem__(self, key: str) -> JSON:
        return self._items[key]

    def __setitem__(self, key: str, document: JSON) -> None:
        self._items[key] = document
        self._file.mark(self._kind, key, document)

    def __delitem__(self, key: str) -> None:
        del self._items[key]
        self._file.mark(self._kind, key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def touch(self, key: str) -> None:
        self._file.mark(self._kind, key, self._items[key])
