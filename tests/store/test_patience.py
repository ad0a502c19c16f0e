"""A disk that hangs is told to whoever waits for it, and what was asked of it is done when it answers again."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_core.errors import StoreError
from harness_core.events import Event, Prompted
from harness_core.store.patience import BETWEEN, PATIENCE, Patience
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock
from tests.conftest import PATIENCE as LONG


class Disk:
    """A disk of which a test says since when it has been busy with one job."""

    def __init__(self) -> None:
        self.clock, self.since = FakeClock(), 0.0
        self.patience = Patience("disk.db", lambda: self.since, self.clock)
        self.job: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def waiting(self) -> asyncio.Task[str]:
        task = asyncio.create_task(self.patience.wait(self.job))
        await self.clock.naps.reach(1)
        return task


async def passes(clock: FakeClock, seconds: float) -> None:
    """Time passes, and whoever waited for it does something."""
    clock.advance(seconds)
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_answer_in_time_is_the_answer():
    disk = Disk()
    task = await disk.waiting()
    await passes(disk.clock, PATIENCE - 1)
    disk.job.set_result("here")

    assert await task == "here"


async def test_a_fault_of_the_disk_is_the_fault():
    disk = Disk()
    task = await disk.waiting()
    disk.job.set_exception(StoreError("full"))

    with pytest.raises(StoreError, match="full"):
        await task


async def test_one_job_that_takes_too_long_is_an_error_for_all_who_wait_and_may_still_be_done():
    disk = Disk()
    task, other = await disk.waiting(), asyncio.create_task(disk.patience.wait(asyncio.Future()))
    await passes(disk.clock, PATIENCE)

    for one in (task, other):
        with pytest.raises(StoreError, match=r"disk.db has not answered for 60 seconds: the disk hangs"):
            await one
    disk.job.set_result("late")  # nobody minds


async def test_a_queue_that_moves_is_waited_for():
    disk = Disk()
    task = await disk.waiting()
    for began in (50.0, 100.0, 150.0):
        await passes(disk.clock, 50.0)
        disk.since = began
    assert not task.done()

    await passes(disk.clock, 60.0)
    assert task.done()
    assert isinstance(task.exception(), StoreError)


async def test_between_two_jobs_it_is_looked_again_soon():
    disk = Disk()
    disk.since = None  # type: ignore[assignment]
    task = await disk.waiting()
    disk.since = 0.0
    await passes(disk.clock, BETWEEN)
    await passes(disk.clock, PATIENCE - BETWEEN)

    assert isinstance(task.exception(), StoreError)


async def test_who_is_cancelled_waits_no_more_and_the_job_goes_on():
    disk = Disk()
    task = await disk.waiting()
    task.cancel()
    await asyncio.wait([task])

    assert not disk.job.cancelled()


# -- in a file ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journals.db"


@pytest.fixture
def other(path: Path) -> Iterator[sqlite3.Connection]:
    """Another process, which can keep the file locked."""
    conn = sqlite3.connect(path, isolation_level=None)
    yield conn
    conn.close()


async def hung(clock: FakeClock, call: Awaitable[Any]) -> BaseException | None:
    """What a call comes to on a disk that hangs."""
    task = asyncio.ensure_future(_error_of(call))
    while not task.done():
        await passes(clock, PATIENCE)
    return await task


async def answers(store: SQLiteStore) -> None:
    """Wait until the disk answers again."""
    while isinstance(await asyncio.wait_for(_error_of(store.last_seq("s")), LONG), StoreError):
        pass  # SQLite looks at a lock now and then


async def _error_of(call: Awaitable[Any]) -> BaseException | None:
    (came,) = await asyncio.gather(call, return_exceptions=True)
    return came if isinstance(came, BaseException) else None


async def test_a_fact_that_the_disk_kept_waiting_is_told_when_it_is_there(path: Path, other: sqlite3.Connection):
    clock, told = FakeClock(), list[Event]()
    store = SQLiteStore(path, clock=clock, heartbeat=False)
    await store.last_seq("s")
    store.changed(lambda _, facts: told.extend(facts))
    other.execute("begin immediate")

    error = await hung(clock, store.append("s", Prompted("hi"), key="k"))
    again = await hung(clock, store.last_seq("s"))  # it waits behind the first, and needs no other minute
    other.execute("rollback")
    await answers(store)

    assert "the disk hangs" in str(error)
    assert "the disk hangs" in str(again)
    assert await store.append("s", Prompted("hi"), key="k") == ()  # it happened
    assert [fact.text for fact in told if isinstance(fact, Prompted)] == ["hi"]
    await store.close()


async def test_a_file_is_opened_however_long_that_takes(path: Path, other: sqlite3.Connection):
    clock = FakeClock()
    store = SQLiteStore(path, clock=clock, heartbeat=False)
    other.execute("begin exclusive")
    opened = asyncio.create_task(store.last_seq("s"))
    await clock.naps.reach(1)
    for _ in range(3):
        await passes(clock, PATIENCE)
    assert not opened.done()
    other.execute("rollback")

    assert await opened == 0
    await store.close()


async def test_a_lease_that_comes_too_late_is_let_go(path: Path, other: sqlite3.Connection):
    clock = FakeClock()
    store = SQLiteStore(path, clock=clock, heartbeat=False)
    await store.last_seq("s")
    other.execute("begin immediate")

    error = await hung(clock, store.lease("s").__aenter__())
    other.execute("rollback")
    await answers(store)

    assert "the disk hangs" in str(error)
    heir = store.reopen()
    async with heir.lease("s") as lease:
        assert lease is not None
    await store.close()
    await heir.close()


async def test_closing_does_not_wait_for_ever(path: Path, other: sqlite3.Connection, caplog: pytest.LogCaptureFixture):
    clock = FakeClock()
    store = SQLiteStore(path, clock=clock, heartbeat=False)
    await store.last_seq("s")
    other.execute("begin immediate")

    with caplog.at_level(logging.WARNING):
        assert await hung(clock, store.close()) is None
    other.execute("rollback")

    assert "has not answered for 60 seconds" in caplog.text
