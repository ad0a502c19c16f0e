"""Whatever models propose and people decide: histories stay valid, and nothing runs that nobody allowed."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.errors import DecisionRefused, ModelError
from harness_core.events import (
    Event,
    HITLSubmitted,
    ReasonEnd,
    RuleChanged,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.handle import HITL
from harness_core.hitl import Approve, HITLDecision, Rerun
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ModelReply, ProposedCall
from harness_core.session import fold
from harness_core.store.memory import MemoryStore
from harness_core.testing import FakeClock, RecordingTool, ScriptedModel
from harness_core.types import ToolResult
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
DECISIONS = st.sampled_from(
    [
        HITLDecision.approve(),
        HITLDecision.approve(True),
        HITLDecision.approve(modified_args={"n": 3}),
        HITLDecision.approve(modified_args={}, replace_args=True),
        HITLDecision.reject("no"),
        HITLDecision.reject(end=True),
        HITLDecision.reject(end=False),
        HITLDecision.skip(done=True),
        HITLDecision.rerun(),
        HITLDecision.happened("it did"),
    ]
)
MOVES = st.sampled_from(
    ["decide", "decide", "decide", "prompt", "resume", "stop", "restart", "allow", "deny", "undeny"]
)
DENY = PermissionRule.deny("change")


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
    store, clock = MemoryStore(), FakeClock(auto=True)
    bench = Bench(folder, store, clock)
    model = ScriptedModel(*data.draw(st.lists(REPLIES, min_size=1, max_size=4)), then="done")
    options = {"max_steps": 4, "expiries": {}}
    engine = bench.engine(model, tools(), **options)
    prompts = 0
    for move in ["prompt", *data.draw(st.lists(MOVES, max_size=7))]:
        session = await engine.session("s")
        match move:
            case "prompt":
                prompts += 1
                await _drain(engine, f"prompt {prompts}")
            case "resume":
                await _drain(engine)
            case "stop":
                await engine.stop(session, by="U9")
            case "restart":
                await bench.drop()
                engine = bench.engine(model, tools(), **options)
            case "allow":
                await engine.change_rule(session, PermissionRule.exactly("change", {"n": 1}))
            case "deny" | "undeny":
                await engine.change_rule(session, DENY, add=move == "deny")
            case _:
                for task in await HITL.get_pending_tasks(session):
                    with suppress(DecisionRefused):
                        await HITL.submit(session, task, data.draw(DECISIONS), by="U2")
        await engine.idle()
    await engine.stop("s", by="U9")
    await engine.idle()
    facts = await store.read("s")
    trace = await engine.trace("s")
    await bench.drop()

    assert trace.run is None
    assert trace == fold(facts)
    assert all(paired(sent) for sent in model.requests)
    assert Counter(e.call_uuid for e in facts if isinstance(e, ToolCallEnd)) == Counter(_proposed(facts))
    assert sum(isinstance(e, RunEnd) for e in facts) == len({e.run_id for e in facts if isinstance(e, RunStart)})
    _nothing_ran_unallowed(facts)


async def _drain(engine: Any, prompt: str = "") -> None:
    events = [event async for event in engine.stream(await engine.session("s"), prompt, by="U1")]
    assert isinstance(events[0], RunStart)
    assert [type(e) for e in events].count(RunEnd) == 1
    assert isinstance(events[-1], RunEnd)


def _proposed(facts: Any) -> list[str]:
    return [call.call_uuid for e in facts if isinstance(e, ReasonEnd) for call in e.calls]


def _nothing_ran_unallowed(facts: Any) -> None:
    approved: set[str] = set()
    asked: dict[str, str] = {}
    rules: set[PermissionRule] = set()
    starts: Counter[str] = Counter()
    event: Event
    for event in facts:
        for task in getattr(event, "tasks", ()):
            asked[task.fingerprint] = task.call_uuid
        if isinstance(event, HITLSubmitted) and isinstance(event.decision, Approve | Rerun):
            approved.add(asked[event.fingerprint])
        if isinstance(event, RuleChanged):
            (rules.add if event.change == "added" else rules.discard)(event.rule)
        if isinstance(event, ToolCallStart) and event.call.name == "change":
            starts[event.call.call_uuid] += 1
            allowed = PermissionRule.exactly("change", event.effective) in rules
            assert event.call.call_uuid in approved or allowed, event
            assert DENY not in rules, event
    assert all(count == 1 for count in starts.values())
