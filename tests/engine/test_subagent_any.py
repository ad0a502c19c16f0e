"""Whatever models propose and people do while agents hand work on: journals agree, and nothing runs unallowed."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.agents import Agent
from harness_core.errors import DecisionRefused, ModelError
from harness_core.events import Event, HITLPending, HITLSubmitted, ReasonEnd, RunEnd, RunStart, ToolCallEnd
from harness_core.handle import HITL
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ProposedCall
from harness_core.session import fold
from harness_core.store.memory import MemoryStore
from harness_core.testing import FakeClock, RecordingTool, call
from tests.engine.harness import Bench
from tests.engine.test_any_run import DECISIONS
from tests.engine.test_resume import paired
from tests.engine.test_subagents import Cast

AGENTS = (
    Agent("boss", "Hires.", "You are the boss.", ("task", "change", "look"), max_steps=3),
    Agent("worker", "Works.", "You are the worker."),
)
CHANGES = [call("change", n=1), call("change", n=2)]
HIRES = [call("task", agent="worker", prompt="a"), call("task", agent="boss", prompt="b")]
CALLS = st.sampled_from([*CHANGES, *HIRES, call("look"), call("fails"), call("task", agent="nobody", prompt="c")])
REPLIES = st.lists(CALLS, min_size=1, max_size=3) | st.sampled_from(["text", "", ModelError("auth")])


def scripts(first: list[ProposedCall]) -> st.SearchStrategy[list[Any]]:
    """What a model says: most often what the test is about, and then anything."""
    begins = st.lists(st.sampled_from(first), min_size=1, max_size=2)
    return st.builds(lambda said, more: [said, *more], begins | begins | REPLIES, st.lists(REPLIES, max_size=2))


MOVES = st.sampled_from(
    ["decide", "decide", "decide", "prompt", "resume", "stop", "restart", "allow", "deny", "undeny"]
)
DENY = PermissionRule.deny("change")


def tools() -> list[RecordingTool]:
    return [
        RecordingTool("look", read_only=True, repeatable=True),
        RecordingTool("change"),
        RecordingTool("fails", read_only=True, fails=RuntimeError("boom")),
    ]


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_whatever_happens_with_sub_agents_the_session_stays_valid(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_any_session(data, Path(folder)))


async def _any_session(data: st.DataObject, folder: Path) -> None:
    store = MemoryStore()
    bench = Bench(folder, store, FakeClock(auto=True))
    model = Cast(
        data.draw(scripts(HIRES)), boss=data.draw(scripts([*HIRES, *CHANGES])), worker=data.draw(scripts(CHANGES))
    )
    options: dict[str, Any] = {"max_steps": 4, "agents": AGENTS, "stop_loop_interceptor": None}
    engine = bench.engine(model, tools(), **options)
    prompts = 0
    for move in ["prompt", *data.draw(st.lists(MOVES, max_size=8))]:
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
    journals = {name: await store.read(name) for name in await store.sessions()}
    traces = {name: await engine.trace(name) for name in journals}
    await engine.start()
    await engine.idle()
    await bench.drop()

    for name, facts in journals.items():
        proposed = Counter(c.call_uuid for e in facts if isinstance(e, ReasonEnd) for c in e.calls)
        ends = Counter(e.call_uuid for e in facts if isinstance(e, ToolCallEnd) and e.call_uuid in proposed)
        assert (traces[name].run, traces[name].pending) == (None, ()), name
        assert traces[name] == fold(facts)
        assert ends == proposed, name
        assert sum(isinstance(e, RunEnd) for e in facts) == len({e.run_id for e in facts if isinstance(e, RunStart)})
        assert name == "s" or len({e.run_id for e in facts if isinstance(e, RunStart)}) <= 1
    assert all(paired(sent) for script in (model.main, *model.agents.values()) for sent in script.requests)
    assert not await store.unfinished(1e12)
    _one_truth(journals)


async def _drain(engine: Any, prompt: str = "") -> None:
    events = [event async for event in engine.stream(await engine.session("s"), prompt, by="U1")]
    assert isinstance(events[0], RunStart)
    assert [type(e) for e in events].count(RunEnd) == 1


def _one_truth(journals: dict[str, Any]) -> None:
    """What was asked below was asked in the session; what was decided below was decided there, and alike."""

    def asked(facts: Any) -> set[str]:
        return {task.fingerprint for e in facts if isinstance(e, HITLPending) for task in e.tasks}

    def decided(facts: Any) -> dict[str, Any]:
        return {e.fingerprint: e.decision for e in facts if isinstance(e, HITLSubmitted)}

    session: list[Event] = journals["s"]
    for name, facts in journals.items():
        assert asked(facts) <= asked(session), name
        assert decided(facts).items() <= decided(session).items(), name
