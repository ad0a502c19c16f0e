"""Tools whose result is the answer, in a running engine: after a restart, after a person's yes, and for sub-agents."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from harness_core.errors import HarnessError
from harness_core.events import HITLPending, RunEnd, ToolCallEnd, ToolCallStart
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision
from harness_core.hooks import Rewrite, Stop
from harness_core.permissions.rule import PermissionRule
from harness_core.replay import replay
from harness_core.session import Trace
from harness_core.store.leases import EXPIRY
from harness_core.store.memory import MemoryStore
from harness_core.testing import FakeClock, RecordingTool, ScriptedModel, call
from harness_core.tools.spec import tool
from harness_core.types import ToolCall, ToolResult
from tests.engine.harness import Bench, names, only, request
from tests.engine.test_subagents import HAND_OVER, WORKER, Cast
from tests.store.faulty import Crash, CrashingStore


def show(**more: Any) -> RecordingTool:
    more.setdefault("result", lambda args: f"{args.get('n', 42)}")
    return RecordingTool("show", read_only=True, return_direct=True, **more)


async def test_the_result_is_the_answer_and_is_said_once(bench: Bench) -> None:
    model = ScriptedModel([call("show", n=1), call("show", n=2)], "never")
    engine = bench.engine(model, [show()])

    events = await request(engine, "go")

    assert " ".join(names(events)) == (
        "RunStart ContextSize ReasonStart ReasonEnd ActionStart ToolCallStart ToolCallEnd ToolCallStart ToolCallEnd "
        "ActionEnd RunEnd"
    )
    assert (only(events, RunEnd).status, only(events, RunEnd).answer) == ("completed", "1\n2")
    assert len(model.requests) == 1


async def test_the_history_holds_the_call_and_its_result_for_the_next_run(bench: Bench) -> None:
    model = ScriptedModel(call("show"), "it was 42")
    engine = bench.engine(model, [show()])
    await request(engine, "go")

    end = only(await request(engine, "what was it?"), RunEnd)

    assert end.answer == "it was 42"
    assert [m.role for m in model.requests[1].messages] == ["user", "assistant", "tool", "user"]


async def test_a_function_declares_it(bench: Bench) -> None:
    @tool(read_only=True, return_direct=True)
    async def report(n: int) -> str:
        """Write the report."""
        return "x" * n

    engine = bench.engine(ScriptedModel(call("report", n=3), call("report", n=0), "empty"), [report])

    assert only(await request(engine, "go"), RunEnd).answer == "xxx"
    assert only(await request(engine, "and without any"), RunEnd).answer == "empty"


async def test_a_failure_goes_to_the_model(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel(call("show"), "it failed"), [show(fails="no paper")])

    assert only(await request(engine, "go"), RunEnd).answer == "it failed"


@pytest.mark.parametrize("brought", ["", "  ", ToolResult("")])
async def test_nothing_is_no_answer(bench: Bench, brought: Any) -> None:
    engine = bench.engine(ScriptedModel(call("show"), "it was empty"), [show(result=brought)])

    assert only(await request(engine, "go"), RunEnd).answer == "it was empty"


class Louder:
    def after_tool(self, trace: Trace, made: ToolCall, result: ToolCallEnd) -> Rewrite:
        return Rewrite(f"{result.content}!" if result.content == "42" else "")


async def test_what_a_hook_makes_of_the_result_is_answered(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel(call("show"), call("show", n=1), "gone"), [show()], interceptors=[Louder()])

    assert only(await request(engine, "go"), RunEnd).answer == "42!"
    assert only(await request(engine, "again"), RunEnd).answer == "gone"


async def test_people_are_asked_first(bench: Bench) -> None:
    asks, model = RecordingTool("show", result="42", return_direct=True), ScriptedModel(call("show", n=1), "never")
    engine = bench.engine(model, [asks])
    session = await engine.session("s")

    (task,) = only(await request(engine, "go"), HITLPending).tasks
    await HITL.submit(session, task, HITLDecision.approve(modified_args={"n": 2}), by="U2")
    end = only(await request(engine), RunEnd)

    assert (end.status, end.answer, asks.runs, len(model.requests)) == ("completed", "42", [{"n": 2}], 1)


async def test_what_a_person_rejects_or_leaves_out_goes_to_the_model(bench: Bench) -> None:
    asks, model = RecordingTool("show", return_direct=True), ScriptedModel([call("show", n=1), call("show", n=2)], "so")
    engine = bench.engine(model, [asks])
    session = await engine.session("s")
    first, second = only(await request(engine, "go"), HITLPending).tasks
    await HITL.approve(session, first, by="U2")
    await HITL.skip(session, second, by="U2")

    assert only(await request(engine), RunEnd).answer == "so"


async def test_a_sub_agent_s_direct_result_is_its_answer_and_the_session_goes_on(bench: Bench) -> None:
    model = Cast([HAND_OVER, lambda r: f"worker said: {r.messages[-1].content}"], worker=[call("show"), "never"])
    engine = bench.engine(model, [show()], agents=[WORKER])

    assert only(await request(engine, "go"), RunEnd).answer == "worker said: 42"


class Feedback:
    """Ends the run abnormally once its tool has asked back."""

    name = "feedback"

    def before_model(self, trace: Trace) -> Stop | None:
        asked = trace.run and trace.run.succeeded.get("ask_back") == trace.run.steps
        return Stop(trace.messages[-1].content) if asked else None


async def test_a_hook_ends_the_run_abnormally_with_the_result_of_a_tool(bench: Bench) -> None:
    model = ScriptedModel(call("ask_back"), "never")
    ask_back = RecordingTool("ask_back", read_only=True, result="Which of the two?")
    engine = bench.engine(model, [ask_back], interceptors=[Feedback()])

    end = only(await request(engine, "go"), RunEnd)

    assert (end.status, end.abnormal, end.answer, len(model.requests)) == ("stopped", True, "Which of the two?", 1)


@pytest.mark.parametrize("performed", [False, True], ids=["before", "after"])
async def test_a_process_may_die_at_any_store_call_and_the_answer_is_the_same(tmp_path: Path, performed: bool) -> None:
    points = 0
    for at in count(1):
        clock = FakeClock()
        store, model = MemoryStore(clock=clock, heartbeat=False), ScriptedModel(call("show", n=1), "never")
        bench, rules = Bench(tmp_path, store, clock), [PermissionRule.allow("show")]
        dying = CrashingStore(store, at, performed=performed)
        with suppress(Crash, HarnessError):
            await _asked(bench.engine(model, [show(repeatable=True)], store=dying, rules=rules))
        await bench.drop()
        if not dying.crashed:
            break
        points += 1
        clock.advance(EXPIRY + 1)
        ended = any(isinstance(e, ToolCallEnd) for e in await store.read("s"))
        heir = store.reopen()
        tools = [] if ended else [show(repeatable=True)]  # what the tool declared is on record with its result
        await _asked(bench.engine(model, tools, store=heir, rules=rules))

        facts = await heir.read("s")
        assert [(e.status, e.answer) for e in facts if isinstance(e, RunEnd)] == [("completed", "1")], at
        assert len([e for e in facts if isinstance(e, ToolCallStart)]) <= 2, at
        await bench.drop()
    assert points > 8


async def _asked(engine: Any) -> None:
    session = await engine.session("s")
    async for _ in engine.stream(session, "go", key="k"):
        pass


async def test_under_the_same_policy_every_verdict_is_the_recorded_one(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel(call("show"), call("show"), "so"), [show()])
    await request(engine, "go")
    await request(engine, "again")

    said = replay(await bench.store.read("s"), await engine.policy("s"))

    assert [r for r in said if r.differs or r.diverges] == []
    bare = bench.engine(ScriptedModel())
    told = replay(await bench.store.read("s"), await bare.policy("s"))
    assert [r for r in told if r.point == "run"] == []
