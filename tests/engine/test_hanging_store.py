"""A store that hangs: requests end with an error, and the run with its end on record once the store answers."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from harness_core.errors import StoreError
from harness_core.events import RunEnd, ToolCallEnd
from harness_core.store.patience import PATIENCE
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock, RecordingTool, ScriptedModel, call
from tests.engine.harness import Bench, Late, only, request, stored
from tests.store.test_patience import answers


@pytest.mark.parametrize(
    ("seconds", "status"), [(1.0, "completed"), (95.0, "limited")], ids=["with time left", "at the end of its time"]
)
async def test_a_run_goes_on_or_ends_when_its_store_answers_again(tmp_path: Path, seconds: float, status: str) -> None:
    clock = FakeClock()
    store = SQLiteStore(tmp_path / "h.db", clock=clock)
    late, ended = Late(store), asyncio.Event()
    bench, other = Bench(tmp_path, late, clock), sqlite3.connect(tmp_path / "h.db", isolation_level=None)

    async def tell() -> None:
        ended.set()

    def works(_: Any) -> str:
        clock.advance(seconds)
        late.before_append = tell
        other.execute("begin immediate")  # another process, which hangs with the file locked
        return "it is 0"

    look = RecordingTool("look", read_only=True, result=works, timeout=1000.0)
    engine = bench.engine(ScriptedModel(call("look"), "it was 0"), [look], max_seconds=100.0)
    asked = asyncio.create_task(request(engine, "go"))
    await ended.wait()
    while not asked.done():
        clock.advance(PATIENCE)
        await asyncio.sleep(0)

    with pytest.raises(StoreError, match="the disk hangs"):
        await asked
    other.execute("rollback")
    other.close()
    await answers(store)
    events = await request(engine)

    assert only(events, RunEnd).status == status
    assert only(await store.read("s"), RunEnd).status == status
    assert [e.content for e in await store.read("s") if isinstance(e, ToolCallEnd)] == ["it is 0"]
    assert (await stored(store)).count("ToolCallStart") == len(look.runs) == 1
    await bench.drop()
    await store.close()
