"""Reading a store's file without changing it, while others write to it or nobody does."""

# ruff: noqa: ASYNC240 (a test may wait for its files)

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from harness_core.errors import NewerFormat, StoreError
from harness_core.events import Prompted, RunStart
from harness_core.store.reading import JournalReader
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journals.db"


async def test_it_reads_what_is_written_while_it_reads(path: Path):
    clock = FakeClock()
    store = await SQLiteStore.open_file(path, clock=clock)
    first = await store.append("old", Prompted("a"))
    await store.append("config:workspace", Prompted("no session"))
    clock.advance(5)
    await store.append("new", [Prompted("b"), RunStart("r")])

    with JournalReader(path) as reader:
        assert [one.session_id for one in reader.sessions()] == ["new", "old"]
        assert reader.read("old") == first
        assert reader.read("nobody") == ()
        clock.advance(5)
        later = await store.append("old", Prompted("c"))
        assert reader.read("old") == (*first, *later)
        newest = reader.sessions()[0]
        assert (newest.session_id, newest.facts, newest.newest - newest.began) == ("old", 2, 10.0)
    await store.close()


async def test_it_reads_a_file_that_nobody_has_open_and_changes_nothing(path: Path):
    store = await SQLiteStore.open_file(path)
    await store.append("s", Prompted("a"))
    await store.close()
    before = path.read_bytes()

    with JournalReader(path) as reader:
        assert len(reader.read("s")) == 1

    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [None, b"", b"no database" * 100])
def test_a_file_that_is_none_of_ours_is_told_and_left_alone(path: Path, content: bytes | None):
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(StoreError, match=path.name):
        JournalReader(path)

    assert path.exists() == (content is not None)
    assert content is None or path.read_bytes() == content


async def test_a_file_of_a_newer_version_is_refused(path: Path):
    await (await SQLiteStore.open_file(path)).close()
    with sqlite3.connect(path) as conn:
        conn.execute("update _sqlite_migrations set name = '999_future' where name = '001_journals'")
    conn.close()

    with pytest.raises(NewerFormat):
        JournalReader(path)
