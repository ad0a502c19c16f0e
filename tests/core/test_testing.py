"""The stand-ins behave as the ports say, and never need a sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from harness_core.errors import ModelError, ToolFailed
from harness_core.events import ModelFailed, Prompted, ReasonDelta, RunEnd, RunStart, ToolCallStart
from harness_core.hitl import HITLDecision
from harness_core.ports import ChatModel, Clock, ModelReply, ModelRequest, ProposedCall, TextDelta, Tool
from harness_core.session import fold
from harness_core.testing import (
    NOON,
    Attempts,
    FakeClock,
    RecordingTool,
    ScriptedModel,
    call,
    ended,
    history,
    ledger_runs,
    misfit,
    pending,
    reasoned,
    submitted,
    task,
    tool_call,
    tool_context,
)
from harness_core.types import NO_DEADLINE, Inspection, Message, ToolResult

HERE = tool_context(Path())
LS = tool_call("bash", command="ls", uuid="c1")
PATHS = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": ["integer", "null"]}},
    "required": ["path"],
}


def asked(answers: int = 0) -> ModelRequest:
    said = [Message("user", "go"), *(Message("assistant", f"answer {n}") for n in range(answers))]
    return ModelRequest("be kind", said)


async def answer(model: ChatModel, answers: int = 0) -> ModelReply:
    *deltas, reply = [piece async for piece in model.stream(asked(answers), NO_DEADLINE)]
    assert isinstance(reply, ModelReply)
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == reply.text
    return reply


async def begun(doing: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    started = asyncio.create_task(doing)
    await asyncio.sleep(0)
    return started


# -- the clock ---------------------------------------------------------------------------------------------------------


async def test_a_sleeper_wakes_when_the_clock_has_passed_it_and_not_before():
    clock: Clock = (fake := FakeClock())
    sleeper = await begun(clock.sleep(10))

    fake.advance(9.5)
    await asyncio.sleep(0)
    assert (sleeper.done(), fake.sleeping) == (False, 1)

    fake.advance(0.5)
    await sleeper
    assert (fake.now(), fake.monotonic(), fake.sleeping) == (NOON + 10, 10.0, 0)


async def test_sleepers_wake_in_the_order_of_their_times():
    clock, woken = FakeClock(), []

    async def nap(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    naps = [asyncio.create_task(nap(seconds)) for seconds in (3, 1, 2)]
    await clock.naps.reach(3)
    clock.advance(5)
    await asyncio.gather(*naps)

    assert woken == [1, 2, 3]


async def test_a_cancelled_sleeper_is_forgotten():
    clock = FakeClock()
    sleeper = await begun(clock.sleep(1))
    sleeper.cancel()

    with pytest.raises(asyncio.CancelledError):
        await sleeper

    assert clock.sleeping == 0
    clock.advance(2)


async def test_an_automatic_clock_moves_by_itself():
    clock = FakeClock(auto=True)
    await clock.sleep(3600)
    await clock.sleep(0)
    assert clock.now() == NOON + 3600


def test_time_does_not_go_back():
    with pytest.raises(ValueError, match="does not go back"):
        FakeClock().advance(-1)


# -- the model ---------------------------------------------------------------------------------------------------------


async def test_the_reply_belongs_to_the_place_in_the_conversation_so_a_restart_changes_nothing():
    script = ("first", call("bash", command="ls"), "third")
    assert (await answer(ScriptedModel(*script), 2)).text == "third"
    assert (await answer(ScriptedModel(*script), 1)).calls == (ProposedCall("bash", {"command": "ls"}),)
    assert (await answer(ScriptedModel(*script), 0)).text == "first"


async def test_a_reply_may_hold_a_text_and_calls_or_be_a_function_of_the_request():
    model = ScriptedModel(["Two: ", call("a"), call("b", id="x")], lambda request: request.messages[-1].content)

    both, echoed = await answer(model, 0), await answer(model, 1)

    assert (both.text, [c.name for c in both.calls], both.finish_reason) == ("Two: ", ["a", "b"], "tool_calls")
    assert (echoed.text, echoed.finish_reason) == ("answer 0", "stop")
    assert [len(r.messages) for r in model.requests] == [1, 2]


async def test_text_comes_in_two_pieces():
    pieces = [piece async for piece in ScriptedModel("hello").stream(asked(), NO_DEADLINE)]
    assert pieces[:-1] == [TextDelta("hel"), TextDelta("lo")]


async def test_attempts_answer_the_same_question_one_after_the_other():
    model = ScriptedModel(Attempts(ModelError("rate_limited"), ModelError("server"), "at last"))
    for kind in ("rate_limited", "server"):
        with pytest.raises(ModelError) as failed:
            await answer(model)
        assert failed.value.kind == kind
    assert [(await answer(model)).text for _ in range(2)] == ["at last", "at last"]


async def test_past_its_end_a_script_fails_or_says_what_it_was_given_to_say():
    with pytest.raises(ModelError, match="the script is over"):
        await answer(ScriptedModel("one"), 1)
    assert (await answer(ScriptedModel("one", then="more"), 7)).text == "more"


async def test_a_held_model_can_be_cancelled_in_the_middle_of_its_answer():
    model = ScriptedModel("a long answer", hold=asyncio.Event())
    answering = asyncio.create_task(answer(model))
    await model.asked.reach()
    await asyncio.sleep(0)
    answering.cancel()

    with pytest.raises(asyncio.CancelledError):
        await answering

    assert model.cancelled == 1


async def test_a_held_model_goes_on_when_it_is_let_go():
    gate = asyncio.Event()
    answering = await begun(answer(ScriptedModel("go on", hold=gate)))
    assert not answering.done()
    gate.set()
    assert (await answering).text == "go on"


# -- tools -------------------------------------------------------------------------------------------------------------


async def test_a_recording_tool_is_a_tool_and_remembers_what_it_ran_with():
    tool = RecordingTool("send", result=lambda args: f"sent {args['to']}")
    assert isinstance(tool, Tool)
    assert await tool.run({"to": "U1"}, HERE) == ToolResult("sent U1")
    assert (tool.runs, tool.started.count, tool.contexts) == ([{"to": "U1"}], 1, [HERE])


async def test_a_recording_tool_says_of_itself_what_it_was_told():
    tool = RecordingTool(
        "send",
        read_only=True,
        repeatable=lambda args: args["to"] == "U1",
        subject="to",
        inspect=lambda args: Inspection(preview=f"to {args['to']}"),
    )
    assert (tool.read_only({}), tool.repeatable({"to": "U1"}), tool.repeatable({"to": "U2"})) == (True, True, False)
    assert (tool.subject({"to": "U1"}), RecordingTool("x").subject({"b": 1, "a": 2})) == ("U1", '{"a":2,"b":1}')
    assert (tool.inspects, RecordingTool("x").inspects) == (True, False)
    assert (await tool.inspect({"to": "U1"}, HERE)).preview == "to U1"


async def test_a_failing_tool_has_run_all_the_same():
    tool = RecordingTool("send", fails="no such person")
    with pytest.raises(ToolFailed, match="no such person"):
        await tool.run({}, HERE)
    with pytest.raises(OSError, match="disk"):
        await RecordingTool("send", fails=OSError("disk")).run({}, HERE)
    assert len(tool.runs) == 1


async def test_a_held_tool_notes_that_it_was_killed():
    tool = RecordingTool("send", hold=asyncio.Event())
    running = asyncio.create_task(tool.run({}, HERE))
    await tool.started.reach()
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running

    assert (tool.killed, len(tool.runs)) == (1, 1)


async def test_a_ledger_counts_the_runs_of_every_process(tmp_path):
    ledger = tmp_path / "runs"
    assert ledger_runs(ledger) == []
    for to in ("U1", "U2"):
        await RecordingTool("send", ledger=ledger).run({"to": to}, HERE)
    assert ledger_runs(ledger) == [{"to": "U1"}, {"to": "U2"}]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"path": "a"}, ""),
        ({"path": "a", "lines": 3}, ""),
        ({"path": "a", "lines": None}, ""),
        ({}, "Missing: path."),
        ({"path": "a", "mode": 1}, "Unknown: mode."),
        ({"path": 3}, "Of the wrong type: path."),
        ({"path": "a", "lines": True}, "Of the wrong type: lines."),
    ],
)
def test_arguments_are_checked_against_the_top_of_the_schema(args, problem):
    assert misfit(PATHS, args) == problem
    assert RecordingTool("read", schema=PATHS).check(args) == problem


def test_a_tool_without_a_schema_takes_anything():
    assert RecordingTool("any").check({"what": ["ever"]}) == ""


# -- histories ---------------------------------------------------------------------------------------------------------


def test_a_history_is_stamped_as_a_store_would():
    prompt = Prompted("list it", "U1")

    facts = history(
        prompt, RunStart("r"), reasoned("I look.", LS), ended(LS, "a b"), RunEnd("completed"), session_id="T"
    )

    assert [f.seq for f in facts] == [1, 2, 3, 4, 5]
    assert {f.session_id for f in facts} == {"T"}
    assert [f.at for f in facts] == [NOON + n for n in range(1, 6)]
    assert [f.run_id for f in facts] == ["", "r", "r", "r", "r"]
    assert prompt.seq is None


def test_a_history_folds_into_the_conversation_it_tells():
    trace = fold(history(Prompted("list it"), RunStart("r"), reasoned("I look.", LS), ended(LS, "a b")))
    assert trace.messages == (
        Message("user", "list it"),
        Message("assistant", "I look.", (LS,)),
        Message("tool", "a b", call_uuid="c1"),
    )
    assert trace.run is not None
    assert trace.run.run_id == "r"


def test_a_prompt_beyond_upto_is_still_in_the_inbox():
    trace = fold(history(Prompted("one"), RunStart("r"), Prompted("two"), reasoned("Hello.", upto=2)))
    assert [p.text for p in trace.inbox] == ["two"]


def test_a_failed_model_request_has_held_what_came_before_it():
    *_, failed = history(Prompted("one"), RunStart("r"), ModelFailed("server", 1, 1))
    assert isinstance(failed, ModelFailed)
    assert failed.upto == 2


def test_a_decision_finds_the_question_it_answers():
    waiting = history(Prompted("list it"), RunStart("r"), reasoned(LS), pending(LS))
    assert fold(waiting).pending == (task(LS),)
    decided = fold((*waiting, submitted(LS, HITLDecision.approve())))
    assert decided.pending == ()
    assert fold((*waiting, submitted(task(LS, ask_count=1), HITLDecision.approve()))).pending == (task(LS),)


def test_passing_events_are_no_history():
    with pytest.raises(ValueError, match="ReasonDelta"):
        history(Prompted("x"), ReasonDelta("y"))


def test_facts_that_say_more_keep_what_they_say():
    fact = ToolCallStart(LS, {"command": "ls -l"}, at=7.0, run_id="other")
    (stored,) = history(fact)
    assert (stored.at, stored.run_id) == (7.0, "other")
