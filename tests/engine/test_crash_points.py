"""A process may die at any store call, or inside a tool: nothing is lost, and no write happens twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

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
from harness_core.permissions.rule import PermissionRule
from harness_core.react import MAX_TAKEOVERS
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.engine.mortal import World
from tests.engine.test_resume import paired

SCRIPT = (
    [call("look", n=1)],
    [call("log", n=2)],
    [call("look", n=3), call("change", n=4), call("change", n=5)],
    "all done",
)
CALLS = 5


class Batches(World):
    """A tool that may be repeated, one that a rule allows, and a batch of which two calls wait for people."""

    def __init__(self, kind: str, folder: Path) -> None:
        tools = [
            RecordingTool("look", read_only=True, repeatable=True),
            RecordingTool("log"),
            RecordingTool("change"),
        ]
        super().__init__(kind, folder, ScriptedModel(*SCRIPT), tools, rules=[PermissionRule.allow("log")])

    async def check(self, where: Any) -> list[str]:
        """Go on in a fresh process, to the end, and look at what happened. Returns the tools of unknown outcome."""
        end = await self.live()
        facts = await self.store.read("s")
        runs = self.runs()
        ends = Counter(e.call_uuid for e in facts if isinstance(e, ToolCallEnd))
        asked = [t.fingerprint for e in facts if isinstance(e, HITLPending) for t in e.tasks]
        decided = [e.fingerprint for e in facts if isinstance(e, HITLSubmitted)]
        proposed = [c.call_uuid for e in facts if isinstance(e, ReasonEnd) for c in e.calls]
        unknown = [t for e in facts if isinstance(e, HITLPending) for t in e.tasks if t.kind == "unknown"]

        assert (end.status, end.answer) == ("completed", "all done"), where
        assert [e.text for e in facts if isinstance(e, Prompted)] == ["hi"], where
        assert len({e.run_id for e in facts if isinstance(e, RunStart)}) == 1, where
        assert sum(isinstance(e, RunEnd) for e in facts) == 1, where
        assert max(runs[w] for w in ("log2", "change4", "change5")) <= 1, (where, runs)
        assert sum(runs[w] == 0 for w in ("log2", "change4", "change5")) <= len(unknown), (where, runs)
        assert ends == Counter(proposed), where
        assert len(proposed) == CALLS, where
        assert sorted(asked) == sorted(decided), where
        assert len(set(decided)) == len(decided), where
        assert len({t.call_uuid for t in unknown}) == len(unknown), where
        assert all(paired(r) for r in self.model.requests), where
        assert not await self.store.unfinished(self.bench.clock.now()), where
        await self.bench.drop()
        await self.store.close()
        return [t.tool_name for t in unknown]


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stride(kind: str) -> int:
    """Of how many store calls one is tried: a database on disk is slow."""
    return 1 if kind == "memory" else 7


@pytest.fixture
def make(kind: str, tmp_path: Path) -> Callable[[], Batches]:
    number = count()
    return lambda: Batches(kind, tmp_path / str(next(number)))


@pytest.mark.parametrize("performed", [False, True], ids=["before", "after"])
async def test_a_process_may_die_at_any_store_call(make: Callable[[], Batches], stride: int, performed: bool) -> None:
    points = 0
    for at in count(1, stride):
        world = make()
        if not await world.die_at(at, performed):
            await world.store.close()
            break
        points += 1
        await world.check(at)

    assert points * stride > 30


async def test_a_process_may_die_again_while_it_recovers(make: Callable[[], Batches], stride: int) -> None:
    dice = random.Random(7)
    for _ in range(60 // stride):
        world = make()
        deaths = [(dice.randint(1, 60), dice.random() < 0.5) for _ in range(2)]
        for at, performed in deaths:
            await world.die_at(at, performed)
        if not [e for e in await world.store.read("s") if isinstance(e, RunEnd)]:
            await world.check(deaths)
        else:
            await world.store.close()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("tool", ["look", "log", "change"])
async def test_a_process_may_die_inside_a_tool(make: Callable[[], Batches], tool: str, moment: str) -> None:
    world = make()
    await world.die_in(tool, moment)

    assert await world.check((tool, moment)) == ([] if tool == "look" else [tool])


async def test_a_run_that_kills_whoever_takes_it_is_given_up_after_three_takeovers(
    make: Callable[[], Batches],
) -> None:
    world = make()
    for _ in range(8):
        await world.die_after(lambda _, fact: isinstance(fact, RunStart))
    facts = await world.store.read("s")
    end = [e for e in facts if isinstance(e, RunEnd)]
    starts = sum(isinstance(e, RunStart) for e in facts)

    assert [e.status for e in end] == ["failed"]
    assert "given up" in end[0].answer
    assert starts == 1 + MAX_TAKEOVERS
    assert not [e for e in facts if isinstance(e, ToolCallStart)]
    await world.store.close()
