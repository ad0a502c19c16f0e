"""Whatever happens in a session and its sub-agents: under the same policy a replay says what was recorded."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.delegate import hired
from harness_core.engine import HarnessEngine
from harness_core.events import ContextCompressed, Event, HookRuled, RunEnd
from harness_core.journal_ids import depth_of
from harness_core.replay import replay, with_rules_of
from harness_core.steps import Policy
from harness_core.testing import FakeClock
from tests.engine.anyone import do_anything
from tests.engine.harness import Bench
from tests.engine.test_subagent_any import AGENTS, CHANGES, HIRES, scripts, tools
from tests.engine.test_subagents import Cast


class Ticking(FakeClock):
    """A clock that never says the same twice."""

    def now(self) -> float:
        self.advance(0.001)
        return super().now()


class Slow:
    """A model that takes its time."""

    name = "slow"

    def __init__(self, model: Any, clock: FakeClock, seconds: float) -> None:
        self.model, self.clock, self.seconds = model, clock, seconds

    def stream(self, asked: Any, deadline: Any) -> Any:
        self.clock.advance(self.seconds)
        return self.model.stream(asked, deadline)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_under_the_same_policy_no_session_parts_from_its_recording(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_any_session(data, Path(folder)))


async def _any_session(data: st.DataObject, folder: Path) -> None:
    bench = Bench(folder, clock=Ticking(auto=True))
    said = {"boss": data.draw(scripts([*HIRES, *CHANGES])), "worker": data.draw(scripts(CHANGES))}
    model = Slow(Cast(data.draw(scripts(HIRES)), **said), bench.clock, data.draw(st.sampled_from([0.5, 5.0, 30.0])))
    options: dict[str, Any] = {"max_steps": 4, "agents": AGENTS, "max_seconds": 100.0}
    engine = await do_anything(data, bench, lambda: bench.engine(model, tools(), **options), 8)
    journals = {name: await bench.store.read(name) for name in await bench.store.sessions("s")}
    await bench.drop()

    for name in journals:
        policy = await policy_of(engine, journals, name)
        for facts in (whole(journals, name), [*map(older, whole(journals, name))]):
            assert [r for r in replay(facts, policy) if r.differs or r.diverges] == [], name


def older(fact: Event) -> Event:
    """The fact as in a journal that does not tell what hooks had seen: only its moment says what it was stored with."""
    return replace(fact, upto=0) if isinstance(fact, HookRuled | ContextCompressed | RunEnd) else fact


def whole(journals: Mapping[str, Sequence[Event]], name: str) -> Sequence[Event]:
    """The facts of a journal, with the rules of those around it."""
    outer = name.rpartition("/")[0]
    return with_rules_of(whole(journals, outer), journals[name]) if outer else journals[name]


async def policy_of(engine: HarnessEngine, journals: Mapping[str, Sequence[Event]], name: str) -> Policy:
    """The engine's policy for a journal, without rules of the session: those are facts."""
    outer, _, call_uuid = name.rpartition("/")
    if not outer:
        return await engine.policy(name)
    agent = engine._subagents.named(hired(journals[outer], call_uuid))
    assert agent
    return engine._subagents.policy(await policy_of(engine, journals, outer), (), agent, depth_of(name))
