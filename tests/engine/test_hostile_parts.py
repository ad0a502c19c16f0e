"""Tools, models and hooks of one's own that raise what nobody should: it is their fault alone, and the run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from harness_core.background import ends_us
from harness_core.errors import ModelError
from harness_core.events import Event, HookRuled, ModelFailed, RunEnd, ToolCallEnd
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision
from harness_core.hooks import Ask, run_point
from harness_core.observers import tell_approved
from harness_core.ports import ModelReply, ModelRequest, TextDelta, ToolContext
from harness_core.session import Trace
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.tools.spec import tool
from harness_core.types import Args, Deadline, Inspection, ToolCall, ToolResult
from tests.conftest import PATIENCE
from tests.engine.harness import Bench, only, request


class Speechless(Exception):
    """An error that fails to say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Leaving(Exception):
    """An error that ends the process when it is asked what it is."""

    def __str__(self) -> str:
        raise SystemExit(3)


FAULTS: list[Any] = [
    Speechless(),
    Leaving(),
    SystemExit(3),
    GeneratorExit(),
    asyncio.CancelledError(),
    BaseExceptionGroup("all", [SystemExit(3)]),
]


class Failing(RecordingTool):
    """A tool that raises this when it runs, or when it looks."""

    def __init__(self, runs: BaseException | None = None, looks: BaseException | None = None) -> None:
        super().__init__("own", read_only=True, inspect=lambda _: Inspection())
        self.raises, self.looks = runs, looks

    async def run(self, args: Args, context: Any) -> ToolResult:
        if self.raises:
            raise self.raises
        return await super().run(args, context)

    async def inspect(self, args: Args, context: Any) -> Inspection:
        if self.looks:
            raise self.looks
        return await super().inspect(args, context)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("moment", ["runs", "looks"])
async def test_whatever_a_tool_raises_is_an_error_result(bench: Bench, fault: BaseException, moment: str) -> None:
    tool = Failing(**{moment: fault})

    events = await request(bench.engine(ScriptedModel(call("own"), "done"), [tool]), "do it")

    end = only(events, ToolCallEnd)
    assert end.outcome == "error"
    assert type(fault).__name__ in end.content
    assert only(events, RunEnd).status == "completed"


@pytest.mark.parametrize("said", [None, 7, "\ud800", ["no"]])
async def test_a_tool_that_checks_arguments_and_says_nothing_readable_is_not_run(bench: Bench, said: Any) -> None:
    tool = RecordingTool("own", read_only=True)
    tool.check = lambda args: said  # type: ignore[method-assign]

    events = await request(bench.engine(ScriptedModel(call("own"), "done"), [tool]), "do it")

    assert only(events, ToolCallEnd).outcome == "error"
    assert only(events, RunEnd).status == "completed"
    assert tool.runs == []


async def test_a_result_of_a_text_class_of_its_own_is_text(bench: Bench) -> None:
    class Odd(str):
        def encode(self, *how: Any) -> bytes:
            raise RuntimeError("no bytes")

    tool = RecordingTool("own", read_only=True, result=ToolResult(Odd("seen")))

    events = await request(bench.engine(ScriptedModel(call("own"), "done"), [tool]), "do it")

    assert only(events, ToolCallEnd).content == "seen"


async def clings(*given: Any) -> Any:
    """Goes on when it is told to end; twice, so that whoever ends the event loop can."""
    for _ in range(3):
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What will not end is left behind soon."""
    monkeypatch.setattr("harness_core.background.LEAVE", 0.05)


@pytest.mark.usefixtures("hasty")
async def test_a_tool_that_will_not_end_when_its_time_is_over_is_left_behind(bench: Bench) -> None:
    stubborn = tool(read_only=True, name="stubborn", timeout=0.01, description="Never ends.")(clings_to)

    events = await request(bench.engine(ScriptedModel(call("stubborn"), "done"), [stubborn]), "do it")

    end = only(events, ToolCallEnd)
    assert end.outcome == "unknown"
    assert "may still be running" in end.content
    assert only(events, RunEnd).answer == "done"


@pytest.mark.usefixtures("hasty")
async def test_a_look_that_will_not_end_is_a_problem_of_its_call(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness_core.tooling.INSPECT_TIMEOUT", 0.01)
    stubborn = tool(read_only=True, name="stubborn", inspect=clings, description="Never looks up.")(clings_to)

    events = await request(bench.engine(ScriptedModel(call("stubborn"), "done"), [stubborn]), "do it")

    assert "it took too long" in only(events, ToolCallEnd).content


@pytest.mark.parametrize("slow_at", [1, 2])  # when the call is judged, and just before it runs
async def test_a_stop_does_not_wait_for_a_look(bench: Bench, monkeypatch: pytest.MonkeyPatch, slow_at: int) -> None:
    monkeypatch.setattr("harness_core.tooling.INSPECT_TIMEOUT", 2 * PATIENCE)
    looking = asyncio.Event()
    looks = 0

    async def look_long(args: Args, context: ToolContext) -> Inspection:
        nonlocal looks
        looks += 1
        if looks == slow_at:
            looking.set()
            await asyncio.Event().wait()
        return Inspection()

    slow = tool(read_only=True, name="slow", inspect=look_long, description="Looks for long.")(clings_to)
    engine = bench.engine(ScriptedModel(call("slow"), "done"), [slow])
    going = asyncio.create_task(request(engine, "do it"))
    await looking.wait()
    await engine.stop("s", by="U1")

    events = await asyncio.wait_for(going, PATIENCE)

    assert only(events, ToolCallEnd).outcome == "not_run"
    assert only(events, RunEnd).status == "stopped"


@pytest.mark.usefixtures("hasty")
async def test_a_model_that_will_not_end_when_its_time_is_over_is_left_behind(bench: Bench) -> None:
    class Model:
        name = "own"

        async def stream(self, request: ModelRequest, deadline: Deadline) -> AsyncIterator[TextDelta | ModelReply]:
            await clings()
            yield ModelReply("late")

    events = await request(bench.engine(Model(), model_retries=1, model_timeout=0.01), "do it")

    (failed,) = [fact for fact in await bench.store.read("s") if isinstance(fact, ModelFailed)]
    assert failed.kind == "timeout"
    assert only(events, RunEnd).status == "failed"


async def clings_to() -> str:
    await clings()
    return "late"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
async def test_whatever_a_model_raises_is_a_failed_request(bench: Bench, fault: BaseException) -> None:
    class Model:
        name = "own"

        async def stream(self, request: ModelRequest, deadline: Deadline) -> AsyncIterator[TextDelta | ModelReply]:
            yield TextDelta("I ")
            raise fault

    bench.clock.auto = True
    events = await request(bench.engine(Model(), model_retries=1), "do it")

    (failed,) = [fact for fact in await bench.store.read("s") if isinstance(fact, ModelFailed)]
    assert failed.kind == "server"
    assert type(fault).__name__ in failed.message
    assert only(events, RunEnd).status == "failed"


async def test_a_model_error_that_cannot_say_what_it_is_is_a_failed_request(bench: Bench) -> None:
    class Mute(ModelError):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    bench.clock.auto = True
    events = await request(bench.engine(ScriptedModel(then=Mute("auth")), model_retries=1), "do it")

    assert only(events, RunEnd).status == "failed"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_whatever_a_hook_raises_is_its_failure(fault: BaseException) -> None:
    class Hook:
        name = "own"

        def before_tool(self, trace: Trace, call: ToolCall) -> None:
            raise fault

    ruled = run_point("before_tool", [Hook()], Trace(), ToolCall("c1", "own", {}))

    assert isinstance(ruled.verdict, Ask)
    (record,) = ruled.rulings
    assert isinstance(record, HookRuled)
    assert type(fault).__name__ in record.payload["failed"]


@pytest.mark.usefixtures("hasty")
async def test_a_callback_of_an_always_allow_that_hangs_or_leaves_holds_up_nobody() -> None:
    told: list[str] = []

    async def hang(tool: str, args: Args) -> None:
        await asyncio.Event().wait()

    def leave(tool: str, args: Args) -> None:
        raise SystemExit(3)

    async def tell(tool: str, args: Args) -> None:
        told.append(tool)

    await tell_approved([hang, clings, leave, tell], "own", {}, seconds=0.01)

    assert told == ["own"]


def test_whoever_is_put_away_with_its_event_loop_ends_and_blames_nobody() -> None:
    assert ends_us(GeneratorExit())


async def test_an_exit_while_we_run_is_a_fault_of_whoever_raised_it() -> None:
    assert not ends_us(GeneratorExit())


async def test_an_observer_that_leaves_is_told_of_the_next_fact_all_the_same(bench: Bench) -> None:
    told: list[str] = []

    async def leave(event: Event) -> None:
        told.append(type(event).__name__)
        raise SystemExit(3)

    engine = bench.engine(ScriptedModel("done"))
    engine.subscribe(leave)
    await request(engine, "hi")
    await engine.idle()

    assert told[-1] == "RunEnd"


class Vandal:
    """A hook that changes in place whatever it is shown, wherever it can. done: what it could change."""

    name = "vandal"

    def __init__(self) -> None:
        self.done: list[str] = []

    def before_model(self, trace: Trace) -> None:
        self._spoil(trace, "trace")

    def before_tool(self, trace: Trace, call: ToolCall) -> None:
        self._spoil(trace, "trace")
        self._spoil(call, "call")

    def _spoil(self, thing: Any, name: str) -> None:
        if is_dataclass(thing):
            for field in fields(thing):
                self._spoil(getattr(thing, field.name), f"{name}.{field.name}")
        elif isinstance(thing, dict | list | tuple):
            for part in thing.values() if isinstance(thing, dict) else thing:
                self._spoil(part, name)
            if not isinstance(thing, tuple):
                with suppress(TypeError):
                    thing.clear()
                    self.done.append(name)


async def test_a_hook_can_change_nothing_of_what_it_is_shown(bench: Bench) -> None:
    hook, change = Vandal(), RecordingTool("change")
    look = RecordingTool("look", read_only=True, inspect=lambda _: Inspection(paths=("/a",)))
    calls = [call("look"), call("change", n=1), call("change", n=2)]

    async def decided(*decisions: Any) -> None:
        engine = bench.engine(ScriptedModel(calls, call("change", n=2), "done"), [look, change], interceptors=[hook])
        session = await engine.session("s")
        await request(engine, "" if decisions else "hi")
        for task, decision in zip(await HITL.get_pending_tasks(session), decisions, strict=False):
            await HITL.submit(session, task, decision, by="U2")
        if decisions:
            await request(engine)
        await bench.drop()

    await decided()
    await decided(HITLDecision.approve(modified_args={"n": {"of": [3]}}), HITLDecision.reject("no", end=False))

    assert hook.done == []
    assert change.runs == [{"n": {"of": [3]}}]
