"""Whatever a model says and wherever a process dies: a compressed session stays valid, and no call is made twice."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.compression.strategies import default_strategy
from harness_core.errors import HarnessError, ModelError
from harness_core.events import ContextCompressed, ContextSize, ReasonEnd, RunEnd, ToolCallEnd
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.ports import ModelRequest
from harness_core.session import fold
from harness_core.store.leases import EXPIRY
from harness_core.store.memory import MemoryStore
from harness_core.testing import FakeClock, RecordingTool, ScriptedModel, call
from harness_core.types import ToolResult
from tests.engine.harness import Bench, only, request
from tests.engine.test_resume import paired
from tests.store.faulty import Crash, CrashingStore

Step = list[int]  # sizes of the results of one batch, in words


class Walker(ScriptedModel):
    """Calls a tool as it was told to, batch after batch, and has summaries and refusals of its own."""

    def __init__(self, steps: list[Step], summary: Any, window: int) -> None:
        super().__init__(then=self._say)
        self.left, self.summary, self.window, self.ids = list(steps), summary, window, count(1)

    def _say(self, sent: ModelRequest) -> Any:
        if sent.system.startswith("You shorten"):
            return self.summary
        if sum(len(message.content) for message in sent.messages) > self.window:
            return ModelError("overflow", "too long")
        if not self.left:
            return "done"
        return [call("log", n=next(self.ids), words=words) for words in self.left.pop(0)]


def log() -> RecordingTool:
    return RecordingTool("log", read_only=True, result=lambda args: ToolResult("word " * args["words"] + "end"))


STEPS = st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=4), min_size=4, max_size=12)
SUMMARIES = st.sampled_from(["in short", "", "word " * 3_000, ModelError("server"), ModelError("overflow")])


@settings(max_examples=40, deadline=None)
@given(STEPS, SUMMARIES, st.sampled_from([10**9, 8_000, 3_000]), st.sampled_from([None, 2_000]), st.booleans())
def test_whatever_a_model_does_its_compressed_session_stays_valid(
    steps: list[Step], summary: Any, window: int, length: int | None, restarted: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_any_session(Path(folder), Walker(steps, summary, window), length, restarted))


async def _any_session(folder: Path, model: Walker, length: int | None, restarted: bool) -> None:
    bench, tool = Bench(folder, MemoryStore(), FakeClock(auto=True)), log()
    compression = ContextCompressionInterceptor(10, strategy=default_strategy())
    options: dict[str, Any] = {"compression_interceptor": compression, "context_length": length}
    engine = bench.engine(model, [tool], **options)
    events = await request(engine, "the goal")
    if restarted:
        await bench.drop()
        engine = bench.engine(model, [tool], **options)
    events += await request(engine, "and then")
    facts, opened = await bench.store.read("s"), await bench.store.open("s")
    trace = await engine.trace("s")
    await bench.drop()

    assert [e.status for e in events if isinstance(e, RunEnd)][-1] in ("completed", "failed")
    assert trace == fold(facts) == fold(opened)
    assert trace.batch == ()
    assert all(paired(sent) for sent in model.requests)
    assert max(Counter(args["n"] for args in tool.runs).values(), default=0) <= 1
    proposed = [c.call_uuid for e in facts if isinstance(e, ReasonEnd) for c in e.calls]
    assert Counter(e.call_uuid for e in facts if isinstance(e, ToolCallEnd)) == Counter(proposed)
    threshold = compression.limits.threshold(length)
    last = [e for e in facts if isinstance(e, ContextCompressed)]
    assert all(e.tokens <= threshold for e in last if e.fits)
    assert all((e.tokens or 0) <= threshold for e in events if isinstance(e, ContextSize))


@pytest.mark.parametrize("performed", [False, True], ids=["before", "after"])
async def test_a_process_that_dies_at_any_store_call_of_a_compressed_run_does_nothing_twice(
    tmp_path: Path, performed: bool
) -> None:
    at, crashed = 0, True
    while crashed:
        at += 1
        crashed = await _die_at(tmp_path / str(at), at, performed)
    assert at > 30


async def _die_at(folder: Path, at: int, performed: bool) -> bool:
    clock, tool = FakeClock(auto=True), log()
    bench = Bench(folder, MemoryStore(clock=clock), clock)
    model = Walker([[1]] * 8, "in short", 10**9)
    options: dict[str, Any] = {
        "compression_interceptor": ContextCompressionInterceptor(10, strategy=default_strategy())
    }
    store: Any = bench.store
    crashing = CrashingStore(store, at, performed=performed)
    with suppress(Crash, HarnessError):
        await _asked(bench.engine(model, [tool], store=crashing, **options))
    await bench.drop()
    if crashing.crashed:
        clock.advance(EXPIRY + 1)
        bench.store = store.reopen()
    model.left = [[1]] * (8 - len(tool.runs))

    engine = bench.engine(model, [tool], **options)
    events = await _asked(engine)
    while (await engine.trace("s")).pending:  # the call in flight is of unknown outcome
        for task in (await engine.trace("s")).pending:
            await _happened(engine, task)
        events = await request(engine)

    facts = await bench.store.read("s")
    assert only(events[-1:], RunEnd).status == "completed"
    assert max(Counter(args["n"] for args in tool.runs).values()) == 1
    assert any(isinstance(fact, ContextCompressed) for fact in facts)
    assert await engine.trace("s") == fold(facts) == fold(await bench.store.open("s"))
    assert all(paired(sent) for sent in model.requests)
    await bench.drop()
    return crashing.crashed


async def _asked(engine: Any) -> list[Any]:
    return [event async for event in engine.stream("s", "the goal", by="U1", key="k")]


async def _happened(engine: Any, task: Any) -> None:

    await HITL.submit(await engine.session("s"), task, HITLDecision.happened("it did"), by="U2")
