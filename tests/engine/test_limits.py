"""Limits end a run well: in time, and say which limit it was and what was found; the prefix is stable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from harness_core.errors import ConfigError, ModelError
from harness_core.events import HITLPending, ReasonEnd, RunEnd, RunStart, ToolCallEnd
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision
from harness_core.hooks import Deny
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ModelReply, ModelRequest, ProposedCall, TextDelta
from harness_core.session import Trace, fold
from harness_core.testing import FakeClock, RecordingTool, ScriptedModel, call
from harness_core.types import Args, Deadline, Inspection, ToolCall
from tests.engine.harness import Bench, only, request
from tests.engine.test_resume import paired


def slow(clock: FakeClock, seconds: float, **how: Any) -> RecordingTool:
    """A tool that takes so long by the clock of the engine."""

    def works(args: Any) -> str:
        clock.advance(seconds)
        return "done"

    return RecordingTool("slow", read_only=True, result=works, timeout=1_000.0, **how)


class Noting:
    """A model that notes how long each request might have taken at most."""

    name = "noting"

    def __init__(self, clock: FakeClock, *replies: Any) -> None:
        self.clock, self.script, self.left = clock, ScriptedModel(*replies), list[float]()

    async def stream(self, request: ModelRequest, deadline: Deadline) -> AsyncIterator[TextDelta | ModelReply]:
        self.left.append(round(deadline.at - self.clock.monotonic(), 2))
        async for piece in self.script.stream(request, deadline):
            yield piece


# -- time --------------------------------------------------------------------------------------------------------------


async def test_a_run_whose_time_is_over_has_one_last_message_and_leaves_its_calls_undone(bench: Bench) -> None:
    tool = slow(bench.clock, 95.0)
    model = ScriptedModel([call("slow", n=1), call("slow", n=2)], ["It was 3.", call("slow", n=3)])
    engine = bench.engine(model, [tool], max_seconds=100.0)

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, end.limit) == ("limited", "seconds")
    assert end.answer == "Stopped at the limit of 100 seconds.\n\nSo far: It was 3."
    assert len(tool.runs) == 1
    assert [e.outcome for e in await bench.store.read("s") if isinstance(e, ToolCallEnd)] == [
        "ok",
        "not_run",
        "not_run",
    ]
    assert all(paired(asked) for asked in model.requests)


async def test_a_run_whose_time_is_used_up_altogether_ends_without_asking_the_model_again(bench: Bench) -> None:
    model = ScriptedModel(["I look.", call("slow")])
    engine = bench.engine(model, [slow(bench.clock, 101.0)], max_seconds=100.0)

    end = only(await request(engine, "hi"), RunEnd)

    assert len(model.requests) == 1
    assert end.answer == "Stopped at the limit of 100 seconds.\n\nSo far: I look."


async def test_what_a_run_waits_for_people_is_not_charged_to_it(bench: Bench) -> None:
    gated = RecordingTool("change")
    engine = bench.engine(ScriptedModel([call("change")], "done"), [gated], max_seconds=100.0)
    await request(engine, "hi")
    (task,) = await HITL.get_pending_tasks(await engine.session("s"))
    bench.clock.advance(100_000.0)
    await HITL.submit(await engine.session("s"), task, HITLDecision.approve(), by="U2")

    assert only(await request(engine), RunEnd).status == "completed"
    assert len(gated.runs) == 1


async def test_nor_is_the_time_in_which_nobody_worked_on_it(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel("done"), max_seconds=100.0)
    await engine.prompt("s", "hi", wake=False)
    await bench.store.append("s", RunStart("r", at=bench.clock.now()))
    bench.clock.advance(100_000.0)

    assert only(await request(engine), RunEnd).status == "completed"
    run = fold([e for e in await bench.store.read("s") if not isinstance(e, RunEnd)]).run
    assert run is not None
    assert (run.paused, run.elapsed(bench.clock.now())) == (100_000.0, 0.0)


async def test_the_time_that_is_left_goes_down_to_model_tools_and_what_they_look_at(bench: Bench) -> None:
    seen: list[float] = []
    tool = slow(bench.clock, 70.0, inspect=lambda args: Inspection())
    model = Noting(bench.clock, [call("slow", n=1)], [call("slow", n=2)], "done")
    engine = bench.engine(model, [tool], max_seconds=200.0, model_timeout=150.0)

    await request(engine, "hi")
    seen = [round(c.deadline.at, 2) for c in tool.contexts]

    kept = 20.0  # a tenth of it, for the last message
    assert model.left == [150.0, 200.0 - kept - 70.0, 200.0 - kept - 140.0]
    assert seen == [200.0 - kept, 200.0 - kept], "an absolute moment, the same for both"


async def test_nothing_is_ever_given_no_time_at_all(bench: Bench) -> None:
    model = Noting(bench.clock, [call("slow")], "so far")
    engine = bench.engine(model, [slow(bench.clock, 99.999)], max_seconds=100.0)

    await request(engine, "hi")

    assert len(model.left) == 2
    assert all(left >= 0.05 for left in model.left)


async def test_a_wait_between_attempts_does_not_outlast_the_run(bench: Bench) -> None:
    bench.clock.auto = True
    model = ScriptedModel(then=ModelError("rate_limited", "slow down", retry_after=30.0))
    engine = bench.engine(model, max_seconds=20.0, model_retries=10)

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, end.limit) == ("limited", "seconds")
    assert bench.clock.monotonic() <= 20.5


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_no_time_is_a_fault_of_configuration(bench: Bench, seconds: float) -> None:
    with pytest.raises(ConfigError, match="max_seconds"):
        bench.engine(ScriptedModel("done"), max_seconds=seconds)


# -- the last message --------------------------------------------------------------------------------------------------


async def test_a_last_message_that_fails_ends_the_run_with_what_was_said_before(bench: Bench) -> None:
    model = ScriptedModel(["Half of it is done.", call("slow")], ModelError("server", "busy"))
    engine = bench.engine(model, [slow(bench.clock, 1.0)], max_steps=1)

    end = only(await request(engine, "hi"), RunEnd)

    assert len(model.requests) == 2
    assert end.answer == "Stopped at the limit of 1 steps.\n\nSo far: Half of it is done."


async def test_the_last_message_has_room_however_much_the_last_calls_brought(bench: Bench) -> None:
    def say(asked: ModelRequest) -> Any:
        if sum(len(message.content) for message in asked.messages) > 16_000:
            return ModelError("overflow", "too long")
        return "It was 3." if len(model.requests) > 1 else [call("look", n=n) for n in range(4)]

    model = ScriptedModel(then=say)
    tool = RecordingTool("look", read_only=True, result="word " * 1_400)
    engine = bench.engine(model, [tool], max_steps=1, context_length=4_000)

    end = only(await request(engine, "look around"), RunEnd)

    assert (end.status, end.limit) == ("limited", "steps")
    assert end.answer.endswith("So far: It was 3.")
    assert "one last message" in model.requests[-1].messages[-1].content
    assert paired(model.requests[-1])


async def test_a_limit_that_is_reached_while_a_model_refuses_what_cannot_be_shortened_is_the_limit_that_is_told(
    bench: Bench,
) -> None:
    def say(asked: ModelRequest) -> ModelError:
        bench.clock.advance(95.0)
        return ModelError("overflow", "too long")

    engine = bench.engine(ScriptedModel(then=say), max_seconds=100.0)

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, end.limit) == ("limited", "seconds")


async def test_a_process_that_ends_before_the_last_message_asks_for_it_when_it_is_back(bench: Bench) -> None:
    gate = asyncio.Event()
    model = ScriptedModel([call("slow")], "It was 3.")
    engine = bench.engine(model, [slow(bench.clock, 1.0)], max_steps=1)
    model.hold = gate
    running = asyncio.create_task(request(engine, "hi"))
    await model.asked.reach()
    gate.set()
    model.hold = asyncio.Event()
    await model.asked.reach(2)
    await bench.drop()
    await asyncio.gather(running, return_exceptions=True)
    model.hold = None

    again = bench.engine(model, [slow(bench.clock, 1.0)], max_steps=1)

    assert only(await request(again), RunEnd).answer.endswith("So far: It was 3.")
    assert [e.limit for e in await bench.store.read("s") if isinstance(e, ReasonEnd)] == ["", "steps"]


# -- the prefix --------------------------------------------------------------------------------------------------------


async def test_the_prefix_is_the_same_to_the_byte_whatever_is_refused_changed_or_switched_off(bench: Bench) -> None:
    class NoMore:
        name = "no_more"

        def before_tool(self, trace: Trace, made: ToolCall) -> Deny | None:
            return Deny("Enough of that.") if made.name == "look" and trace.succeeded else None

    def reconfigure(engine: Any) -> None:
        engine.add_permission_rule(PermissionRule.deny("write"))
        engine.set_compression_threshold(50)
        engine.set_hitl_enabled(False)

    def between(asked: ModelRequest) -> list[ProposedCall]:
        reconfigure(engine)
        return [call("look", n=2), call("change")]

    model = ScriptedModel(
        [call("look", n=1)], between, [call("write", n=1), call("nothing")], [call("look", n=3)], "end"
    )
    tools = [RecordingTool(name, read_only=name == "look") for name in ("look", "change", "write")]
    engine = bench.engine(model, tools, interceptors=[NoMore()], max_steps=4)

    end = only(await request(engine, "hi"), RunEnd)

    assert end.status == "limited", "the last message has it, too"
    assert len(model.requests) == 5
    assert len({(asked.system, repr(asked.tools)).__repr__().encode() for asked in model.requests}) == 1
    assert len({id(asked.tools) for asked in model.requests}) == 1
    ends = [e.outcome for e in await bench.store.read("s") if isinstance(e, ToolCallEnd)]
    assert ends == ["ok", "denied", "denied", "denied", "error", "denied"]
    for earlier, later in zip(model.requests, model.requests[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages, "and so is all that was sent before"
    assert not [e for e in await bench.store.read("s") if isinstance(e, HITLPending)]


async def test_where_no_time_is_left_and_the_model_said_nothing_the_answer_tells_what_worked(bench: Bench) -> None:
    def slow(args: Args) -> str:
        bench.clock.advance(40)
        return "ok"

    change = RecordingTool("change", result=slow)
    model = ScriptedModel([call("look"), *(call("change", n=n) for n in range(5))], "never")
    look = RecordingTool("look", read_only=True)
    engine = bench.engine(model, [look, change], max_seconds=100, rules=[PermissionRule.allow("change")])

    end = only(await request(engine, "go"), RunEnd)

    assert (end.status, end.limit, len(change.runs)) == ("limited", "seconds", 3)
    assert end.answer.endswith("What worked: look, change (3 times).")
