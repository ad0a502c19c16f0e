"""A process may die at any store call, or inside a tool: nothing is lost, and no write happens twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from harness_core.errors import AlreadyDecided, HarnessError
from harness_core.events import (
    Event,
    HITLPending,
    HITLSubmitted,
    Prompted,
    ReasonEnd,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision
from harness_core.permissions.rule import PermissionRule
from harness_core.react import MAX_TAKEOVERS
from harness_core.store.leases import EXPIRY
from harness_core.store.memory import MemoryStore
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock, RecordingTool, ScriptedModel, call
from tests.engine.harness import Bench
from tests.engine.test_resume import paired
from tests.store.faulty import Crash, CrashingStore

SCRIPT = (
    [call("look", n=1)],
    [call("log", n=2)],
    [call("look", n=3), call("change", n=4), call("change", n=5)],
    "all done",
)
CALLS = 5


class World:
    """What outlives a process: the journal, and what tools did. Each `engine` is a process of its own."""

    def __init__(self, folder: Path, store: Any, clock: FakeClock) -> None:
        self.bench = Bench(folder, store, clock)
        self.store = store
        self.model = ScriptedModel(*SCRIPT)
        look = RecordingTool("look", read_only=True, repeatable=True)
        self.tools = {"look": look, "log": RecordingTool("log"), "change": RecordingTool("change")}

    async def live(self, store: Any) -> RunEnd:
        """Work in this process as people would, until the run is over. Raises if the process dies."""
        rules = [PermissionRule.allow("log")]
        engine = self.bench.engine(self.model, [*self.tools.values()], store=store, rules=rules)
        session, prompt = await engine.session("s"), "hi"
        for _ in range(10):
            end: Event | None = None
            async for event in engine.stream(session, prompt, by="U1", key="k"):
                end = event
            assert isinstance(end, RunEnd)
            if end.status != "pending":
                return end
            prompt = ""
            for task in await HITL.get_pending_tasks(session):
                unknown = task.kind == "unknown"
                decision = HITLDecision.happened("it did") if unknown else HITLDecision.approve()
                with suppress(AlreadyDecided):
                    await HITL.submit(session, task, decision, by="U2")
        raise AssertionError("it never came to an end")

    async def die_at(self, at: int, performed: bool) -> bool:
        """Live until the n-th store call kills the process. False if it got to its end before."""
        store = CrashingStore(self.store, at, performed=performed)
        with suppress(Crash, HarnessError):
            await self.live(store)
        await self._forget()
        return store.crashed

    async def die_in(self, tool: str, moment: str) -> None:
        """Live until a tool kills the process, before or after it did its work."""
        victim = self.tools[tool]
        run = victim.run

        async def fatal(args: Any, context: Any) -> Any:
            if moment == "after":
                await run(args, context)
            raise Crash(f"{moment} {tool}")

        victim.run = fatal  # type: ignore[method-assign]
        store = CrashingStore(self.store)
        with suppress(Crash, HarnessError):
            await self.live(store)
        store.crashed = True
        self.store.stall()
        victim.run = run  # type: ignore[method-assign]
        await self._forget()

    async def _forget(self) -> None:
        await self.bench.drop()
        self.bench.clock.advance(EXPIRY + 1)
        self.store = self.store.reopen()

    async def check(self, where: Any) -> list[str]:
        """Go on in a fresh process, to the end, and look at what happened. Returns the tools of unknown outcome."""
        end = await self.live(self.store)
        facts = await self.store.read("s")
        runs = Counter(f"{t.spec.name}{r['n']}" for t in self.tools.values() for r in t.runs)
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


Make = Callable[[], World]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    number = count()

    def world() -> World:
        clock, folder = FakeClock(), tmp_path / str(next(number))
        folder.mkdir()
        if request.param == "memory":
            return World(folder, MemoryStore(clock=clock, heartbeat=False), clock)
        return World(folder, SQLiteStore(folder / "h.db", clock=clock, heartbeat=False), clock)

    world.stride = 1 if request.param == "memory" else 7  # type: ignore[attr-defined]
    return world


@pytest.mark.parametrize("performed", [False, True], ids=["before", "after"])
async def test_a_process_may_die_at_any_store_call(make: Make, performed: bool) -> None:
    points = 0
    for at in count(1, make.stride):  # type: ignore[attr-defined]
        world = make()
        if not await world.die_at(at, performed):
            await world.store.close()
            break
        points += 1
        await world.check(at)

    assert points * make.stride > 30  # type: ignore[attr-defined]


async def test_a_process_may_die_again_while_it_recovers(make: Make) -> None:
    dice = random.Random(7)
    for _ in range(60 // make.stride):  # type: ignore[attr-defined]
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
async def test_a_process_may_die_inside_a_tool(make: Make, tool: str, moment: str) -> None:
    world = make()
    await world.die_in(tool, moment)

    assert await world.check((tool, moment)) == ([] if tool == "look" else [tool])


async def test_a_run_that_kills_whoever_takes_it_is_given_up_after_three_takeovers(make: Make) -> None:
    world = make()
    for _ in range(8):
        store = CrashingStore(world.store)
        append = store.append

        async def fatal(session_id: str, events: Any, **how: Any) -> Any:
            result = await append(session_id, events, **how)  # noqa: B023
            if isinstance(events, list | tuple) and isinstance(events[0], RunStart):
                store.die("after RunStart")  # noqa: B023
            return result

        store.append = fatal  # type: ignore[method-assign]
        with suppress(Crash, HarnessError):
            await world.live(store)
        await world._forget()
    facts = await world.store.read("s")
    end = [e for e in facts if isinstance(e, RunEnd)]
    starts = sum(isinstance(e, RunStart) for e in facts)

    assert [e.status for e in end] == ["failed"]
    assert "given up" in end[0].answer
    assert starts == 1 + MAX_TAKEOVERS
    assert not [e for e in facts if isinstance(e, ToolCallStart)]
    await world.store.close()
