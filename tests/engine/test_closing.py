"""Closing an engine: nothing new begins, what runs may end, and what is killed is put to a person."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_core.engine import HarnessEngine
from harness_core.errors import HarnessError, StoreError
from harness_core.events import ReasonEnd, ToolCallEnd, ToolCallStart
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.conftest import PATIENCE
from tests.engine.harness import Bench, request

LONG = 600.0  # seconds, of which nothing is waited for: the gate opens first


async def running(bench: Bench, calls: Any, gate: asyncio.Event, **options: Any) -> tuple[HarnessEngine, RecordingTool]:
    """An engine whose tool has begun and waits for the gate."""
    tool = RecordingTool("look", read_only=lambda args: True, hold=gate)
    engine = bench.engine(ScriptedModel(calls, "done"), [tool], **options)
    await engine.prompt("s", "hi", by="U1")
    await tool.started.reach(1)
    return engine, tool


def of(facts: Any, kind: type) -> int:
    return sum(isinstance(fact, kind) for fact in facts)


async def test_a_tool_that_runs_may_end_and_neither_the_next_call_nor_the_model_begins(bench: Bench) -> None:
    gate = asyncio.Event()
    engine, tool = await running(bench, [call("look", n=1), call("look", n=2)], gate, parallel=1)

    closing = asyncio.create_task(engine.close(LONG))
    await asyncio.sleep(0)
    gate.set()
    await closing

    facts = await bench.store.read("s")
    assert [fact.outcome for fact in facts if isinstance(fact, ToolCallEnd)] == ["ok"]
    assert (of(facts, ToolCallStart), of(facts, ReasonEnd), len(tool.runs)) == (1, 1, 1)

    again = bench.engine(ScriptedModel("asked before", "done"), [tool])
    await request(again)
    assert [args["n"] for args in tool.runs] == [1, 2]


@pytest.mark.parametrize("grace", [0.0, 0.01])
async def test_a_tool_that_does_not_end_in_time_is_killed(bench: Bench, grace: float) -> None:
    engine, tool = await running(bench, call("look", n=1), asyncio.Event())

    await engine.close(grace)

    assert tool.killed == 1
    assert of(await bench.store.read("s"), ToolCallEnd) == 0


async def test_a_model_that_thinks_and_a_session_that_rests_keep_nobody_waiting(bench: Bench) -> None:
    model = ScriptedModel("done", hold=asyncio.Event())
    engine = bench.engine(model, [])
    watching = asyncio.create_task(request(engine, "hi"))
    await model.asked.reach(1)

    async with asyncio.timeout(PATIENCE):
        await engine.close(LONG)

    with pytest.raises(HarnessError, match="The session goes on later"):
        await watching


async def test_an_engine_closes_the_store_that_it_made_itself_and_no_other(bench: Bench) -> None:
    async with HarnessEngine(bench.folder / "ws", bench.folder, model=ScriptedModel("done")) as own:
        await request(own, "hi")
    async with bench.engine(ScriptedModel("done")) as given:
        await request(given, "hi")

    assert of(await given.store.read("s"), ReasonEnd) == 1
    with pytest.raises(StoreError):
        await own.store.read("s")
