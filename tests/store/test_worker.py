from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from harness_core.store.worker import Worker
from harness_core.testing import FakeClock


@pytest.fixture
def worker():
    worker = Worker("test", FakeClock())
    yield worker
    worker.end()


async def test_work_is_done_in_the_order_of_asking(worker: Worker):
    done: list[int] = []

    await asyncio.gather(*(worker.submit(lambda n=n: done.append(n)) for n in range(50)))

    assert done == list(range(50))


async def test_what_a_cancelled_caller_asked_for_is_done_all_the_same(worker: Worker):
    gate, done = threading.Event(), []
    held = worker.submit(gate.wait)
    cancelled = worker.submit(lambda: done.append("it"))
    cancelled.cancel()
    gate.set()

    await held
    await worker.submit(int)

    assert done == ["it"]


async def test_a_fault_is_the_askers_and_the_thread_goes_on(worker: Worker):
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await worker.submit(fail)

    assert await worker.submit(lambda: 1) == 1


async def test_the_thread_outlives_an_event_loop_that_was_closed_meanwhile(worker: Worker):
    gate = threading.Event()

    async def ask_and_go() -> None:
        worker.submit(gate.wait)

    await asyncio.to_thread(_in_a_loop_of_its_own, ask_and_go)
    gate.set()

    assert await worker.submit(lambda: 1) == 1


async def test_what_was_asked_for_before_the_end_is_done(worker: Worker):
    last = worker.submit(lambda: "done")
    worker.end()

    assert await last == "done"


def _in_a_loop_of_its_own(work: Callable[[], object]) -> None:
    asyncio.run(work())  # type: ignore[arg-type]
