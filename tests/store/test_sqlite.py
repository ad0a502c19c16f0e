"""What only a file can do: survive, be damaged, be full, be shared by processes."""

# ruff: noqa: ASYNC240 (a test may wait for its files)

from __future__ import annotations

import asyncio
import logging
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness_core.errors import NewerFormat, StoreError
from harness_core.events import Prompted, ToolCallEnd
from harness_core.store.heartbeat import Heartbeat
from harness_core.store.leases import Beats, alive
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock
from tests.conftest import PATIENCE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journals.db"


async def test_making_a_store_touches_nothing(path: Path):
    store = SQLiteStore(path)
    await store.close()

    assert not path.exists()


async def test_everything_is_there_after_the_file_was_closed(path: Path):
    store = await SQLiteStore.open_file(path)
    stored = await store.append("s", [Prompted("a"), ToolCallEnd("c", "done")], key="k")
    async with store.lease("s") as lease:
        assert lease is not None
        await lease.rest(2)
    await store.close()

    store = await SQLiteStore.open_file(path)
    assert tuple(await store.read("s")) == stored
    assert await store.append("s", Prompted("again"), key="k") == ()
    assert list(await store.unfinished(0.0)) == []
    async with store.lease("s") as next_lease:
        assert next_lease is not None
        assert next_lease.fence == lease.fence + 1
    await store.close()


async def test_a_file_is_left_without_companions_when_it_is_closed(path: Path):
    store = SQLiteStore(path)
    await store.append("s", Prompted("a"))
    async with store.lease("s"):
        pass
    await store.close()

    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_many_processes_may_open_a_new_file_at_once(path: Path):
    stores = [SQLiteStore(path, heartbeat=False) for _ in range(8)]

    await asyncio.gather(*(store.append("s", Prompted("a")) for store in stores))

    assert [fact.seq for fact in await stores[0].read("s")] == list(range(1, 9))
    for store in stores:
        await store.close()


# -- files that are not as they should be ------------------------------------------------------------------------------


async def test_a_file_that_is_no_database_is_refused_and_kept(path: Path):
    path.write_bytes(b"Dear diary, " * 1000)

    with pytest.raises(StoreError, match="damaged"):
        await SQLiteStore.open_file(path)

    assert path.read_bytes() == b"Dear diary, " * 1000


async def test_a_damaged_page_is_told_when_it_is_read(path: Path):
    store = await SQLiteStore.open_file(path)
    for n in range(200):
        await store.append("s", Prompted(f"{n}" * 100))
    await store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)

    store = SQLiteStore(path)
    with pytest.raises(StoreError, match="damaged"):
        await store.read("s")
    await store.close()

    assert path.read_bytes() == content


async def test_a_file_of_a_newer_version_is_refused_and_kept(path: Path):
    store = await SQLiteStore.open_file(path)
    await store.close()
    conn = sqlite3.connect(path)
    conn.execute("insert into _sqlite_migrations values (99, 'harness_core.store', '999_future', 'one day')")
    conn.commit()
    conn.close()
    before = path.read_bytes()

    with pytest.raises(NewerFormat, match="999_future"):
        await SQLiteStore.open_file(path)

    assert path.read_bytes() == before


async def test_a_folder_that_is_missing_is_told(tmp_path: Path):
    with pytest.raises(StoreError, match="folder"):
        await SQLiteStore.open_file(tmp_path / "missing" / "journals.db")


@pytest.mark.parametrize("put_back", [False, True], ids=["deleted", "replaced"])
async def test_a_file_that_vanished_is_told_instead_of_writing_where_nobody_will_read(path: Path, put_back: bool):
    store = SQLiteStore(path)
    await store.append("s", Prompted("kept"))
    path.rename(path.with_name("moved.db"))
    if put_back:
        path.write_bytes(b"")

    with pytest.raises(StoreError, match="deleted or replaced"):
        await store.append("s", Prompted("lost"))
    await store.close()


async def test_a_full_disk_is_told_and_loses_nothing_that_was_acknowledged(path: Path):
    store = await SQLiteStore.open_file(path, heartbeat=False)
    await store.append("s", Prompted("a"))
    pages = await store._submit(lambda disk: disk._conn.execute("pragma page_count").fetchone()[0])
    await store._submit(lambda disk: disk._conn.execute(f"pragma max_page_count = {pages}").fetchall())

    with pytest.raises(StoreError, match="disk is full"):
        await store.append("s", [Prompted("b"), Prompted("x" * 100_000)])

    assert [fact.seq for fact in await store.read("s")] == [1]
    await store._submit(lambda disk: disk._conn.execute("pragma max_page_count = 100000").fetchall())
    assert await store.append("s", Prompted("b"), after=1)
    await store.close()


async def test_a_release_that_the_disk_refuses_leaves_the_session_to_this_process(path: Path):
    store = await SQLiteStore.open_file(path, heartbeat=False)
    await store.append("s", Prompted("a"))
    async with store.lease("s") as lease:
        assert lease is not None
        await lease.rest(1)
        await store._submit(lambda disk: disk._conn.execute("pragma query_only = on").fetchall())
    await store._submit(lambda disk: disk._conn.execute("pragma query_only = off").fetchall())

    assert list(await store.unfinished(0.0)) == ["s"]
    async with store.lease("s") as again:
        assert again is not None
    await store.close()


# -- cost --------------------------------------------------------------------------------------------------------------


async def test_an_append_writes_as_much_in_a_long_session_as_in_a_short_one(path: Path):
    store = await SQLiteStore.open_file(path, heartbeat=False)
    await store.append("long", [Prompted("x" * 100)] * 3000)

    async def written(session_id: str) -> int:
        await store._submit(lambda disk: disk._conn.execute("pragma wal_checkpoint(truncate)").fetchall())
        for _ in range(50):
            await store.append(session_id, Prompted("x" * 100))
        return path.with_name(f"{path.name}-wal").stat().st_size

    await written("short")
    assert await written("long") < 1.2 * await written("short")
    await store.close()


# -- the heartbeat -----------------------------------------------------------------------------------------------------


async def test_the_heartbeat_begins_with_the_first_lease_and_ends_with_the_store(path: Path):
    def beating() -> bool:
        return any(thread.name == "sqlite-heartbeat" for thread in threading.enumerate())

    store = SQLiteStore(path)
    await store.append("s", Prompted("a"))
    assert not beating()
    async with store.lease("s") as lease:
        assert lease is not None
        assert lease.valid()
        assert beating()
    await store.close()
    assert not beating()


async def test_a_writer_that_leaves_the_heartbeat_no_turn_keeps_its_leases_alive_itself(path: Path):
    clock = FakeClock()
    store = SQLiteStore(path, clock=clock)
    async with store.lease("s") as lease:
        assert lease is not None
        for _ in range(5):  # the clock stands still but for this, so the heartbeat's own thread has no reason to beat
            clock.advance(2.0)
            assert await store.append("s", Prompted("a"), fence=lease.fence)
            assert lease.valid()
    await store.close()


async def test_a_stalled_process_does_not_beat_by_writing(path: Path):
    clock = FakeClock()
    store = SQLiteStore(path, clock=clock)
    async with store.lease("s") as lease:
        assert lease is not None
        store.stall()
        clock.advance(2.0)
        await store.append("t", Prompted("a"))
        clock.advance(2.0)
        assert not lease.valid()
    await store.close()


class Counted(Beats):
    """Lets a test wait for a beat."""

    def __init__(self) -> None:
        super().__init__()
        self.noted = threading.Event()

    def note(self, began: float, ended: float) -> None:
        super().note(began, ended)
        self.noted.set()


def beats_in(path: Path) -> list[float]:
    conn = sqlite3.connect(path)
    rows = conn.execute("select beat_at from processes").fetchall()
    conn.close()
    return [beat_at for (beat_at,) in rows]


async def test_the_heartbeat_writes_the_time_by_itself(path: Path):
    await (await SQLiteStore.open_file(path)).close()
    clock, beats = FakeClock(), Counted()
    heartbeat = Heartbeat(path, "me", beats, clock, every=0.001)

    heartbeat.start()
    assert await asyncio.to_thread(beats.noted.wait, PATIENCE)
    heartbeat.stop()
    heartbeat.join()

    assert beats_in(path) == [clock.now()]
    assert beats.fresh(clock.monotonic())


async def test_a_heartbeat_that_cannot_be_written_is_logged_and_tried_again(
    path: Path, caplog: pytest.LogCaptureFixture
):
    await (await SQLiteStore.open_file(path)).close()
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("begin immediate")
    beats, failed = Counted(), threading.Event()
    listener = logging.Handler()
    listener.emit = lambda record: failed.set()  # type: ignore[method-assign]
    logging.getLogger("harness_core.store.heartbeat").addHandler(listener)
    heartbeat = Heartbeat(path, "me", beats, FakeClock(), every=0.001)

    heartbeat.start()
    assert await asyncio.to_thread(failed.wait, PATIENCE)
    assert not beats.noted.is_set()
    blocker.execute("rollback")
    assert await asyncio.to_thread(beats.noted.wait, PATIENCE)

    heartbeat.stop()
    heartbeat.join()
    logging.getLogger("harness_core.store.heartbeat").removeHandler(listener)
    blocker.close()
    assert "heartbeat could not be written" in caplog.text


class Overtaken(Beats):
    """The writer beats right after the heartbeat's thread has seen that a beat is due. asked: how often it looked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.looked_again = threading.Event()

    def due(self, now: float) -> bool:
        due = super().due(now)
        self.note(now, now)
        self.asked += 1
        if self.asked > 1:
            self.looked_again.set()
        return due


async def test_a_heartbeat_that_the_writer_wrote_meanwhile_has_not_failed(path: Path, caplog: pytest.LogCaptureFixture):
    await (await SQLiteStore.open_file(path)).close()
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("begin immediate")
    beats = Overtaken()
    heartbeat = Heartbeat(path, "me", beats, FakeClock(), every=0.001)

    heartbeat.start()
    assert await asyncio.to_thread(beats.looked_again.wait, PATIENCE)
    heartbeat.stop()
    heartbeat.join()

    writer.close()
    assert caplog.text == ""


def test_a_heartbeat_from_a_future_that_the_clock_left_is_none():
    assert alive(100.0, 103.0)
    assert not alive(100.0, 103.1)
    assert not alive(4000.0, 100.0)


async def test_the_row_of_a_process_that_died_long_ago_is_swept_away(path: Path):
    clock = FakeClock()
    dead, living = (SQLiteStore(path, clock=clock, heartbeat=False) for _ in range(2))
    async with dead.lease("s"):
        clock.advance(4000.0)
        await living.beat()
        await living.close()

    witness = sqlite3.connect(path)
    assert witness.execute("select count(*) from processes").fetchone() == (0,)
    assert witness.execute("select session_id, owner, fence from leases").fetchall() == [("s", None, 1)]
    witness.close()
    await dead.close()


# -- real processes ----------------------------------------------------------------------------------------------------


def child(path: Path, writer: str) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("child.py")
    return subprocess.Popen([sys.executable, script, path, writer], stdout=subprocess.PIPE, text=True)


def acknowledged(process: subprocess.Popen[str], at_least: int) -> int:
    """Kill the process after so many lines, and return the last seq that it was promised."""
    assert process.stdout is not None
    seqs = [int(process.stdout.readline()) for _ in range(at_least)]
    process.kill()
    seqs += [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    process.wait()
    process.stdout.close()
    return seqs[-1]


@pytest.mark.real_kill
async def test_what_killed_processes_were_acknowledged_is_on_the_disk(path: Path):
    for round_ in range(3):
        children = [child(path, f"{round_}{name}") for name in "ab"]
        promised = [await asyncio.to_thread(acknowledged, process, 30 + 20 * round_) for process in children]

        store = await SQLiteStore.open_file(path)
        for name, seq in zip("ab", promised, strict=True):
            facts = await store.read(f"{round_}{name}")
            assert len(facts) >= seq
            assert [fact.seq for fact in facts] == list(range(1, len(facts) + 1))
            assert len(facts) % 2 == 0  # each append wrote two facts, or none
            assert facts[-1].text.endswith("two")
        await store.close()


@pytest.mark.real_kill
async def test_the_session_of_a_killed_process_is_taken_over_when_its_heartbeat_is_old(path: Path):
    process = child(path, "s")
    await asyncio.to_thread(acknowledged, process, 3)
    last_beat = beats_in(path)[0]

    soon = SQLiteStore(path, clock=FakeClock(last_beat + 2.9), heartbeat=False)
    async with soon.lease("s") as lease:
        assert lease is None
    later = SQLiteStore(path, clock=FakeClock(last_beat + 3.1), heartbeat=False)
    async with later.lease("s") as lease:
        assert lease is not None
        assert lease.fence == 2
    await soon.close()
    await later.close()
