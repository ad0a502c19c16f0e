"""A process may die at any store call while a sub-agent works or waits: the same one goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from harness_core.agents import Agent
from harness_core.events import (
    HITLPending,
    HITLSubmitted,
    Prompted,
    ReasonEnd,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import Decision, HITLDecision, HITLTask
from harness_core.permissions.rule import PermissionRule
from harness_core.react import MAX_TAKEOVERS
from harness_core.testing import RecordingTool, call
from tests.engine.mortal import World
from tests.engine.test_resume import paired
from tests.engine.test_subagents import Cast


@pytest.fixture(autouse=True)
async def quiet() -> None:
    """Nobody waits for the task of a process that died; told so while it is collected, Python 3.11 may lose count."""
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)


AGENTS = (
    Agent("boss", "Hires.", "You are the boss.", ("task", "change")),
    Agent("worker", "Works.", "You are the worker."),
)
DEPTHS = {
    "one deep": {
        "main": [call("task", agent="worker", prompt="do it"), "all done"],
        "worker": [[call("log", n=1)], [call("change", n=2), call("change", n=3)], "changed"],
    },
    "two deep": {
        "main": [call("task", agent="boss", prompt="do it"), "all done"],
        "boss": [[call("change", n=4)], call("task", agent="worker", prompt="do it"), "it did"],
        "worker": [[call("change", n=2)], "changed"],
    },
}


class Company(World):
    """Agents that hand work on, and change things where people allow it.

    ends: how every run ends, and the answer of the session's.
    """

    ends = ("completed", "all done")

    def __init__(self, kind: str, folder: Path, script: dict[str, Any]) -> None:
        tools = [RecordingTool("log"), RecordingTool("change")]
        super().__init__(kind, folder, Cast(**script), tools, rules=[PermissionRule.allow("log")], agents=AGENTS)

    async def check(self, where: Any) -> None:
        """Go on in a fresh process, to the end, and look at what happened."""
        end = await self.live()
        journals = ["s", *await self.store.sessions("s/")]
        facts = {name: await self.store.read(name) for name in journals}
        runs = self.runs()
        session = facts["s"]
        tasks = [t for e in session if isinstance(e, HITLPending) for t in e.tasks]
        asked = [t.fingerprint for t in tasks]
        decided = [e.fingerprint for e in session if isinstance(e, HITLSubmitted)]

        assert end.answer == self.ends[1], where
        assert max(runs.values(), default=0) <= 1, (where, runs)
        assert set(decided) <= set(asked), where
        assert len(set(decided)) == len(decided), where
        closed = {e.call_uuid for e in session if isinstance(e, ToolCallEnd)}
        undecided = {t.call_uuid for t in tasks if t.fingerprint not in decided}
        assert undecided <= (closed if self.ends[0] == "rejected" else set()), where
        assert len(set(asked)) == len(asked), where
        assert await self._one_child_per_call(facts), where
        for name, journal in facts.items():
            proposed = {c.call_uuid for e in journal if isinstance(e, ReasonEnd) for c in e.calls}
            ends = Counter(e.call_uuid for e in journal if isinstance(e, ToolCallEnd) and e.call_uuid in proposed)
            assert ends == Counter(proposed), (where, name)
            assert sum(isinstance(e, Prompted) for e in journal) == 1, (where, name)
            assert len({e.run_id for e in journal if isinstance(e, RunStart)}) == 1, (where, name)
            assert [e.status for e in journal if isinstance(e, RunEnd)] == [self.ends[0]], (where, name)
            below = [e.fingerprint for e in journal if isinstance(e, HITLSubmitted)]
            assert set(below) <= set(decided), (where, name)
        assert all(paired(r) for model in (self.model.main, *self.model.agents.values()) for r in model.requests)
        before = [await self.store.last_seq(name) for name in journals]
        await self.bench.drop()
        async with self.bench.engine(self.model, [*self.tools.values()], store=self.store, agents=AGENTS) as engine:
            await engine.idle()  # what the dead one left open is laid down, and nothing of it is run
        assert [await self.store.last_seq(name) for name in journals] == before, where
        assert not await self.store.unfinished(self.bench.clock.now() + 1e6), where
        await self.bench.drop()
        await self.store.close()

    async def _one_child_per_call(self, facts: dict[str, Any]) -> bool:
        started = [e.child for journal in facts.values() for e in journal if isinstance(e, ToolCallStart) and e.child]
        return sorted(started) == sorted(name for name in facts if name != "s")


@pytest.mark.parametrize("performed", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("depth", [*DEPTHS])
@pytest.mark.parametrize(("kind", "stride"), [("memory", 2), ("sqlite", 11)])
async def test_a_process_may_die_at_any_store_call(
    tmp_path: Path, kind: str, stride: int, depth: str, performed: bool
) -> None:
    points = 0
    for at in count(1 + performed, stride):  # between them, all of them
        world = Company(kind, tmp_path / str(at), DEPTHS[depth])
        if not await world.die_at(at, performed):
            await world.store.close()
            break
        points += 1
        await world.check(at)

    assert points * stride > 50


class Ended(Company):
    """Somebody rejects the second change, and ends it all by that."""

    ends = ("rejected", "not on a Friday")

    def decision(self, task: HITLTask) -> Decision:
        reject = task.kind != "unknown" and task.args["n"] == 2
        return HITLDecision.reject("not on a Friday", end=True) if reject else super().decision(task)


@pytest.mark.parametrize("performed", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("depth", [*DEPTHS])
async def test_a_rejection_that_ends_it_all_does_so_wherever_a_process_dies(
    tmp_path: Path, depth: str, performed: bool
) -> None:
    points = 0
    for at in count(1):
        world = Ended("memory", tmp_path, DEPTHS[depth])
        if not await world.die_at(at, performed):
            await world.store.close()
            break
        points += 1
        await world.check(at)

        assert [r["n"] for r in world.tools["change"].runs] in ([], [4]), at
        for model in (world.model.main, *world.model.agents.values()):  # nobody was asked about a result of it
            assert not any("Friday" in m.content for r in model.requests for m in r.messages), at

    assert points > 40


async def test_a_sub_agent_that_kills_whoever_takes_it_is_given_up_and_the_session_goes_on(tmp_path: Path) -> None:
    world = Company("memory", tmp_path, DEPTHS["one deep"])
    for _ in range(2 + MAX_TAKEOVERS):
        await world.die_after(lambda session_id, fact: "/" in session_id and isinstance(fact, RunStart))

    end = await world.live()

    (journal,) = await world.store.sessions("s/")
    (given_up,) = [e for e in await world.store.read(journal) if isinstance(e, RunEnd)]
    (result,) = [e for e in await world.store.read("s") if isinstance(e, ToolCallEnd)]
    assert (given_up.status, result.outcome, end.answer) == ("failed", "error", "all done")
    assert "given up" in result.content
