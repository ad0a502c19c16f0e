"""Whatever models propose and people do while agents hand work on: journals agree, and nothing runs unallowed."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.agents import Agent
from harness_core.errors import ModelError
from harness_core.events import Event, HITLPending, HITLSubmitted, ReasonEnd, RunEnd, RunStart, ToolCallEnd
from harness_core.ports import ProposedCall
from harness_core.session import fold
from harness_core.store.memory import MemoryStore
from harness_core.testing import FakeClock, RecordingTool, call
from tests.engine.anyone import do_anything, every_run_ended_once, nothing_ran_unallowed, proposed
from tests.engine.harness import Bench
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


def tools() -> list[RecordingTool]:
    return [
        RecordingTool("look", read_only=True, repeatable=True),
        RecordingTool("change"),
        RecordingTool("fails", read_only=True, fails=RuntimeError("boom")),
    ]


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_whatever_happens_with_sub_agents_the_session_stays_valid_and_nothing_runs_unallowed(
    data: st.DataObject,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_any_session(data, Path(folder)))


async def _any_session(data: st.DataObject, folder: Path) -> None:
    bench = Bench(folder, MemoryStore(), FakeClock(auto=True))
    model = Cast(
        data.draw(scripts(HIRES)), boss=data.draw(scripts([*HIRES, *CHANGES])), worker=data.draw(scripts(CHANGES))
    )
    options: dict[str, Any] = {"max_steps": 4, "agents": AGENTS, "stop_loop_interceptor": None}
    told: list[Event] = []
    bench.store.changed(lambda _, facts: told.extend(facts))
    engine = await do_anything(data, bench, lambda: bench.engine(model, tools(), **options), 8)
    journals = {name: await bench.store.read(name) for name in await bench.store.sessions()}
    traces = {name: await engine.trace(name) for name in journals}
    await engine.start()
    await engine.idle()
    await bench.drop()

    for name, facts in journals.items():
        calls = Counter(proposed(facts))
        ends = Counter(e.call_uuid for e in facts if isinstance(e, ToolCallEnd) and e.call_uuid in calls)
        assert (traces[name].run, traces[name].pending) == (None, ()), name
        assert traces[name] == fold(facts)
        assert ends == calls, name
        assert every_run_ended_once(facts), name
        assert name == "s" or len({e.run_id for e in facts if isinstance(e, RunStart)}) <= 1
    assert all(paired(sent) for script in (model.main, *model.agents.values()) for sent in script.requests)
    assert not await bench.store.unfinished(1e12)
    _one_truth(journals)
    nothing_ran_unallowed(told)
    _who_ends_it_all_ends_it(told)


def _who_ends_it_all_ends_it(told: list[Event]) -> None:
    """Of these facts, in the order in which they came about: after a reject that ends the run no model is asked, and
    the session's run ends rejected, unless somebody stopped it.
    """
    over = False
    for event in told:
        if isinstance(event, HITLSubmitted) and getattr(event.decision, "end", None) and event.session_id == "s":
            over = True
        if isinstance(event, RunEnd) and event.session_id == "s":
            assert event.status in ("rejected", "stopped") or not over, event
            over = False
        assert not (over and isinstance(event, ReasonEnd)), event


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
