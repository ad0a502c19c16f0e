"""Whatever models propose and people decide: histories stay valid, and nothing runs that nobody allowed."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.errors import ModelError
from harness_core.events import ToolCallEnd
from harness_core.ports import ModelReply, ProposedCall
from harness_core.session import fold
from harness_core.store.memory import MemoryStore
from harness_core.testing import FakeClock, RecordingTool, ScriptedModel
from harness_core.types import ToolResult
from tests.engine.anyone import do_anything, every_run_ended_once, nothing_ran_unallowed, proposed
from tests.engine.harness import Bench
from tests.engine.test_resume import paired

ARGUMENTS = st.sampled_from(['{"n":1}', '{"n":2}', "{}", "", "[]", '{"n":', '{"n":"\\ud800"}'])
CALLS = st.builds(
    ProposedCall,
    st.sampled_from(["look", "note", "change", "change", "fails", "missing", ""]),
    ARGUMENTS,
    st.sampled_from(["", "x"]),
)
REPLIES = st.builds(
    ModelReply,
    st.sampled_from(["", " ", "text", "\ud800"]),
    st.lists(CALLS, max_size=3).map(tuple),
    finish_reason=st.sampled_from(["stop", "stop", "length"]),
) | st.builds(ModelError, st.sampled_from(["server", "auth"]))


def tools() -> list[RecordingTool]:
    return [
        RecordingTool("look", read_only=True, repeatable=True, result=""),
        RecordingTool("note", read_only=True, result=lambda args: ToolResult("went wrong", "error")),
        RecordingTool("change"),
        RecordingTool("fails", read_only=True, fails=RuntimeError("boom")),
    ]


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_whatever_happens_in_a_session_it_stays_valid_and_nothing_runs_unallowed(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_any_session(data, Path(folder)))


async def _any_session(data: st.DataObject, folder: Path) -> None:
    bench = Bench(folder, MemoryStore(), FakeClock(auto=True))
    model = ScriptedModel(*data.draw(st.lists(REPLIES, min_size=1, max_size=4)), then="done")
    engine = await do_anything(data, bench, lambda: bench.engine(model, tools(), max_steps=4, expiries={}), 7)
    facts = await bench.store.read("s")
    trace = await engine.trace("s")
    await bench.drop()

    assert trace.run is None
    assert trace == fold(facts)
    assert all(paired(sent) for sent in model.requests)
    assert Counter(e.call_uuid for e in facts if isinstance(e, ToolCallEnd)) == Counter(proposed(facts))
    assert every_run_ended_once(facts)
    nothing_ran_unallowed(facts)
