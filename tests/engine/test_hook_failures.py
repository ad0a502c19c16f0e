"""What a hook that fails comes to, at every point: one that watches over safety fails closed, and each is on record."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, get_args

import pytest

from harness_core.agents import Agent
from harness_core.errors import ModelError
from harness_core.events import Event, HookRuled, RunEnd
from harness_core.handle import HITL
from harness_core.hooks import Compress, Point
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.session import Trace
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.verdicts import FAILS
from tests.engine.harness import Bench, request
from tests.engine.test_subagents import Cast

POINTS: Sequence[Point] = get_args(Point)
CLOSED = [point for point in POINTS if FAILS[point] == "closed"]
OPEN = [point for point in POINTS if FAILS[point] == "open"]
WORKER = Agent("worker", "Does the work.", "You are the worker.")


class Tidy:
    """Has the context shortened once, so that there is a compression to be asked about."""

    name = "tidy"

    def before_model(self, trace: Trace) -> Compress | None:
        return Compress("tidy") if trace.run and trace.run.steps == 9 else None


class Breaks:
    """Fails at one point."""

    name = "breaks"

    def __init__(self, point: Point, rule_class: str) -> None:
        self.rule_class = rule_class
        setattr(self, point, self._fails)

    def _fails(self, trace: Trace, about: Any = None, result: Any = None) -> None:
        raise RuntimeError("boom")


class Tour:
    """A session in which every point comes up: a request fails, an agent works, a person is asked, it gets shorter."""

    def __init__(self, bench: Bench, *hooks: Any) -> None:
        looks = [call("look", n=n) for n in range(8)]
        replies = iter([ModelError("server", "busy"), call("task", agent="worker", prompt="do it"), *looks])
        last = iter([call("change"), "done"])
        self.bench, bench.clock.auto = bench, True
        self.change, self.look = RecordingTool("change"), RecordingTool("look", read_only=True)
        model = Cast([], worker=["ok"])
        model.main = ScriptedModel(then=lambda _: next(replies, None) or next(last, "nothing more"))
        self.engine = bench.engine(
            model,
            [self.change, self.look],
            agents=[WORKER],
            interceptors=[Tidy(), *hooks],
            stop_loop_interceptor=None,
            compression_interceptor=ContextCompressionInterceptor(100),
        )

    async def end(self) -> RunEnd:
        """How its run ends, everything that asks being approved."""
        events: list[Event] = await request(self.engine, "hi")
        session = await self.engine.session("s")
        while tasks := await HITL.get_pending_tasks(session):
            for task in tasks:
                await HITL.approve(session, task, by="U2")
            events = await request(self.engine)
        end = events[-1]
        assert isinstance(end, RunEnd)
        return end

    async def verdicts(self, hook: str = "breaks") -> list[tuple[str, str]]:
        """(point, verdict) of each ruling on record, of the agent's session too."""
        names = await self.bench.store.sessions("s")
        facts = [fact for name in names for fact in await self.bench.store.read(name)]
        return [(e.point, e.verdict) for e in facts if isinstance(e, HookRuled) and e.hook == hook]


@pytest.mark.parametrize("point", OPEN)
async def test_one_that_may_be_missed_is_passed_over_with_a_warning_and_a_record(
    bench: Bench, point: Point, caplog: pytest.LogCaptureFixture
) -> None:
    tour = Tour(bench, Breaks(point, "drift"))

    with caplog.at_level(logging.WARNING):
        end = await tour.end()

    assert (end.status, end.answer) == ("completed", "done")
    assert set(await tour.verdicts()) == {(point, "Failed")}
    assert f"at {point}: the hook breaks failed (RuntimeError: boom)" in caplog.text


@pytest.mark.parametrize("point", CLOSED)
async def test_one_that_is_asked_about_a_call_has_it_put_to_a_person(bench: Bench, point: Point) -> None:
    tour = Tour(bench, Breaks(point, "drift"))

    assert (await tour.end()).status == "completed"

    assert set(await tour.verdicts()) == {(point, "Ask")}
    assert len(tour.change.runs) == 1


@pytest.mark.parametrize("point", OPEN)
async def test_one_of_class_safety_stops_the_run(bench: Bench, point: Point) -> None:
    tour = Tour(bench, Breaks(point, "safety"))

    end = await tour.end()

    assert (end.status, end.answer) == ("stopped", "Stopped for safety: the hook breaks failed (RuntimeError: boom).")
    assert (point, "Stop") in await tour.verdicts()


@pytest.mark.parametrize("point", CLOSED)
async def test_one_of_class_safety_that_is_asked_about_a_call_refuses_it(bench: Bench, point: Point) -> None:
    tour = Tour(bench, Breaks(point, "safety"))

    assert (await tour.end()).status == "completed"

    assert set(await tour.verdicts()) == {(point, "Deny")}
    assert tour.change.runs == []


async def test_a_run_that_ended_badly_anyway_keeps_its_own_reason(bench: Bench) -> None:
    look = RecordingTool("look", read_only=True)
    engine = bench.engine(
        ScriptedModel(call("look"), "half of it"), [look], interceptors=[Breaks("run_end", "safety")], max_steps=1
    )

    end = (await request(engine, "hi"))[-1]

    assert isinstance(end, RunEnd)
    assert (end.status, end.limit) == ("limited", "steps")
    assert "half of it" in end.answer
