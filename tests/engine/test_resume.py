"""Suspension and resumption lose nothing, repeat nothing, and keep every call with its result."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_core.errors import ModelError, StoreError
from harness_core.events import HITLPending, HITLSubmitted, ReasonEnd, RunEnd, RunStart, ToolCallEnd
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision, HITLTask
from harness_core.ports import ModelReply, ModelRequest, ProposedCall
from harness_core.testing import Attempts, RecordingTool, ScriptedModel, call
from harness_core.types import Inspection, ToolResult, Usage
from tests.engine.harness import Bench, only, request


def look() -> RecordingTool:
    return RecordingTool("look", read_only=True, repeatable=True, result=lambda args: f"saw {args}")


def change(**more: Any) -> RecordingTool:
    return RecordingTool("change", result=lambda args: f"changed {args}", **more)


async def pending(engine: Any, session_id: str = "s") -> tuple[HITLTask, ...]:
    return await HITL.get_pending_tasks(await engine.session(session_id))


async def approve_all(engine: Any, session_id: str = "s", by: str = "U2") -> None:
    for task in await pending(engine, session_id):
        await HITL.approve(await engine.session(session_id), task, by=by)


def paired(sent: ModelRequest) -> bool:
    """Every call is followed at once by exactly its results, in order; nothing is empty, no id repeats."""
    messages, ids = list(sent.messages), set()
    while messages:
        message = messages.pop(0)
        if message.role == "tool" or not (message.content.strip() or message.calls):
            return False
        for made in message.calls:
            if made.call_uuid in ids or not messages or messages[0].call_uuid != made.call_uuid:
                return False
            ids.add(made.call_uuid)
            if messages.pop(0).role != "tool":
                return False
    return bool(sent.messages)


async def test_what_ran_free_beside_a_gated_call_is_sent_once_with_it(bench: Bench) -> None:
    model, free, gated = ScriptedModel([call("look", n=1), call("change", n=2)], "done"), look(), change()
    engine = bench.engine(model, [free, gated])
    await request(engine, "hi")
    await approve_all(engine)

    await request(engine)

    assert [m.content for m in model.requests[-1].messages[-2:]] == ["saw {'n': 1}", "changed {'n': 2}"]
    assert (free.runs, gated.runs) == ([{"n": 1}], [{"n": 2}])
    assert paired(model.requests[-1])


async def test_a_history_survives_restarts_between_pause_decision_end_and_next_question(bench: Bench) -> None:
    model, gated = ScriptedModel([call("change", n=1)], "done", "and that"), change()
    await request(bench.engine(model, [gated]), "hi")
    await bench.drop()
    await approve_all(bench.engine(model, [gated]))
    await bench.drop()
    await request(bench.engine(model, [gated]))
    await bench.drop()

    end = only(await request(bench.engine(model, [gated]), "next"), RunEnd)

    assert end.answer == "and that"
    assert [m.role for m in model.requests[-1].messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert all(paired(r) for r in model.requests)
    assert gated.runs == [{"n": 1}]


async def test_a_resumed_run_keeps_its_id_on_every_event(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel([call("change")], "done"), [change()])
    before = await request(engine, "hi")
    await approve_all(engine)

    after = await request(bench.engine(ScriptedModel("no", "done"), [change()]))

    assert {e.run_id for e in [*before, *after]} == {before[0].run_id}


async def test_an_id_that_the_model_uses_again_is_another_question(bench: Bench) -> None:
    model, gated = ScriptedModel([call("change", id="c1", n=1)], [call("change", id="c1", n=2)], "done"), change()
    engine = bench.engine(model, [gated])
    await request(engine, "hi")
    first = await pending(engine)
    await approve_all(engine)

    assert only(await request(engine), RunEnd).status == "pending"

    second = await pending(engine)
    assert first[0].fingerprint != second[0].fingerprint
    assert gated.runs == [{"n": 1}]


@pytest.mark.parametrize("ids", [("x", "x", "x"), ("", "", ""), ("x", "", "x")])
async def test_calls_of_one_message_are_told_apart_whatever_ids_they_came_with(
    bench: Bench, ids: tuple[str, ...]
) -> None:
    proposed = [ProposedCall("change", {"n": n}, i) for n, i in enumerate(ids)]
    model, gated = ScriptedModel(ModelReply("", tuple(proposed)), "done"), change()
    engine = bench.engine(model, [gated])
    await request(engine, "hi")
    tasks = await pending(engine)
    assert len({t.call_uuid for t in tasks}) == len({t.fingerprint for t in tasks}) == 3
    await HITL.submit_all(
        await engine.session("s"),
        {
            tasks[0].call_uuid: HITLDecision.approve(),
            tasks[1].call_uuid: HITLDecision.approve(modified_args={"n": 9}),
            tasks[2].call_uuid: HITLDecision.reject("not that one"),
        },
        by="U2",
    )

    await request(engine)

    first, second, third = (m.content for m in model.requests[-1].messages[-3:])
    assert first == "changed {'n': 0}"
    assert "changed {'n': 9}" in second
    assert "not that one" in third
    assert gated.runs == [{"n": 0}, {"n": 9}]


async def test_a_finished_approval_is_used_up(bench: Bench) -> None:
    model, gated = ScriptedModel([call("change")], "done", "a", "b"), change()
    engine = bench.engine(model, [gated])
    await request(engine, "hi")
    await approve_all(engine)
    await request(engine)

    for text in ("one", "two"):
        await request(engine, text)
        await request(engine)

    assert len(gated.runs) == 1


async def test_a_model_failure_after_the_tool_does_not_run_the_tool_again(bench: Bench) -> None:
    bench.clock.auto = True
    model, gated = ScriptedModel([call("change")], Attempts(ModelError("server"), "done")), change()
    engine = bench.engine(model, [gated])
    await request(engine, "hi")
    await approve_all(engine)

    assert only(await request(engine), RunEnd).answer == "done"
    assert len(gated.runs) == 1


async def test_three_pauses_in_one_turn_run_everything_once(bench: Bench) -> None:
    script = [[call("look", n=n), call("change", n=n)] for n in (1, 2, 3)]
    model, free, gated = ScriptedModel(*script, "done"), look(), change()
    await request(bench.engine(model, [free, gated]), "hi")
    for _ in range(3):
        await bench.drop()
        engine = bench.engine(model, [free, gated])
        await approve_all(engine)
        events = await request(engine)

    assert only(events, RunEnd).answer == "done"
    assert [r["n"] for r in free.runs] == [r["n"] for r in gated.runs] == [1, 2, 3]
    assert all(paired(r) for r in model.requests)
    assert sum(len(m.calls) for m in model.requests[-1].messages) == 6


async def test_the_model_is_not_asked_again_about_a_pending_turn(bench: Bench) -> None:
    model, gated = ScriptedModel(Attempts([call("change", n=1)], [call("change", n=2)]), "done"), change()
    engine = bench.engine(model, [gated])
    shown = only(await request(engine, "hi"), HITLPending).tasks[0].args
    for _ in range(3):
        await request(engine)
    await approve_all(engine)
    await request(engine)

    assert gated.runs == [shown]
    assert len(model.requests) == 2


async def test_two_sessions_that_wait_at_once_do_not_mix_up_their_decisions(bench: Bench) -> None:
    model, gated = ScriptedModel([call("change", n=1)], "done"), change()
    engine = bench.engine(model, [gated])
    await asyncio.gather(request(engine, "hi", "s"), request(engine, "hi", "t"))
    await HITL.reject(await engine.session("s"), (await pending(engine, "s"))[0], "no", by="U2")
    await approve_all(engine, "t")

    ends = [only(e, RunEnd).status for e in await asyncio.gather(request(engine, "", "s"), request(engine, "", "t"))]

    assert ends == ["rejected", "completed"]
    assert len(gated.runs) == 1


async def test_a_click_while_another_request_streams_is_acted_on_once(bench: Bench) -> None:
    gate = asyncio.Event()
    model, gated = ScriptedModel([call("change")], "done"), change(hold=gate)
    engine = bench.engine(model, [gated])
    await request(engine, "hi")
    await approve_all(engine)
    streams = [asyncio.create_task(request(engine)) for _ in range(3)]
    await gated.started.reach()
    gate.set()

    ends = [only(events, RunEnd).status for events in await asyncio.gather(*streams)]

    assert ends == ["completed"] * 3
    assert len(gated.runs) == 1


class Slow:
    """A store whose every append takes many turns of the loop."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def append(self, *args: Any, **how: Any) -> Any:
        for _ in range(50):
            await asyncio.sleep(0)
        return await self.inner.append(*args, **how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


async def test_a_task_that_is_shown_can_be_decided_at_once_however_slow_the_store(bench: Bench) -> None:
    gated = change()
    engine = bench.engine(ScriptedModel([call("change")], "done"), [gated], store=Slow(bench.store))
    session = await engine.session("s")

    async for event in engine.stream(session, "hi"):
        if isinstance(event, HITLPending):
            await HITL.approve(session, event.tasks[0], by="U2")

    await request(engine)
    assert len(gated.runs) == 1


@pytest.mark.parametrize("value", [0, "", False, None, [], {}])
async def test_a_falsy_answer_is_an_answer(bench: Bench, value: Any) -> None:
    gated = change()
    engine = bench.engine(ScriptedModel([call("change", n=1)], "done"), [gated])
    await request(engine, "hi")
    edit = HITLDecision.approve(modified_args={"n": value})
    await HITL.submit(await engine.session("s"), (await pending(engine))[0], edit, by="U2")

    await request(engine)

    assert gated.runs == [{"n": value}]


async def test_an_edit_to_no_arguments_at_all_is_an_edit(bench: Bench) -> None:
    gated = change()
    engine = bench.engine(ScriptedModel([call("change", n=1)], "done"), [gated])
    await request(engine, "hi")
    edit = HITLDecision.approve(modified_args={}, replace_args=True)
    await HITL.submit(await engine.session("s"), (await pending(engine))[0], edit, by="U2")

    await request(engine)

    assert gated.runs == [{}]


@pytest.mark.parametrize("arguments", ["{", "[]", "null", "NaN", '{"a":1}{"b":2}', '{"a": NaN}', '"x"', "{'a': 1}"])
async def test_arguments_that_are_no_object_run_nothing_and_leave_a_history_that_can_be_sent(
    bench: Bench, arguments: str
) -> None:
    model = ScriptedModel(ModelReply("", (ProposedCall("change", arguments, "x"),)), "sorry")
    gated = change()
    engine = bench.engine(model, [gated])

    events = await request(engine, "hi")

    assert only(events, ToolCallEnd).outcome == "error"
    assert only(events, RunEnd).answer == "sorry"
    assert gated.runs == []
    assert paired(model.requests[-1])
    assert model.requests[-1].messages[1].calls[0].args == {}


@pytest.mark.parametrize("levels", [60, 70, 190, 240, 900, 100_000])
async def test_arguments_nested_without_end_do_not_make_the_session_unreadable(bench: Bench, levels: int) -> None:
    deep = ProposedCall("look", '{"a":' * levels + "1" + "}" * levels)
    engine = bench.engine(ScriptedModel(ModelReply("", (deep,)), "done"), [look()])

    events = await request(engine, "hi")

    assert only(events, ToolCallEnd).outcome == ("ok" if levels < 64 else "error")
    await bench.drop()
    assert only(await request(bench.engine(ScriptedModel("x"))), RunEnd).answer == "done"


async def test_a_call_without_a_required_field_shows_no_card(bench: Bench) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    gated = change(schema=schema)
    engine = bench.engine(ScriptedModel([call("change")], "sorry"), [gated])

    events = await request(engine, "hi")

    assert not [e for e in events if isinstance(e, HITLPending)]
    assert "path" in only(events, ToolCallEnd).content
    assert gated.runs == []


async def test_calls_count_whatever_the_model_says_about_how_it_finished(bench: Bench) -> None:
    free = look()
    reply = ModelReply("", (ProposedCall("look", {}),), finish_reason="stop")
    engine = bench.engine(ScriptedModel(reply, "done"), [free])

    await request(engine, "hi")

    assert free.runs == [{}]


async def test_a_call_cut_off_by_the_length_limit_is_not_run(bench: Bench) -> None:
    free = look()
    reply = ModelReply("", (ProposedCall("look", {}),), finish_reason="length")
    engine = bench.engine(ScriptedModel(reply, "done"), [free])

    events = await request(engine, "hi")

    assert only(events, ToolCallEnd).outcome == "error"
    assert free.runs == []


async def test_a_single_reject_in_a_batch_of_one_and_of_three_leaves_the_same_state_if_the_reviewer_said_go_on(
    bench: Bench,
) -> None:
    states = []
    for session_id, count in (("s", 1), ("t", 3)):
        script = ScriptedModel([call("change", n=n) for n in range(count)], "done")
        engine = bench.engine(script, [change()])
        await request(engine, "hi", session_id)
        for task in await pending(engine, session_id):
            decision = HITLDecision.reject("no", end=False)
            await HITL.submit(await engine.session(session_id), task, decision, by="U2")
        states.append(only(await request(engine, "", session_id), RunEnd).status)

    assert states == ["completed", "completed"]


async def test_a_rejected_call_is_refused_by_the_executor_and_its_free_sibling_runs(bench: Bench) -> None:
    model, free, gated = ScriptedModel([call("look"), call("change")], "done"), look(), change()
    engine = bench.engine(model, [free, gated])
    await request(engine, "hi")
    await HITL.submit(
        await engine.session("s"), (await pending(engine))[0], HITLDecision.reject("no", end=False), by="U2"
    )

    await request(engine)

    assert (len(free.runs), gated.runs) == (1, [])
    assert len([m for m in model.requests[-1].messages if m.role == "tool"]) == 2


async def test_the_same_effect_rejected_once_is_refused_without_a_card_until_a_person_speaks(bench: Bench) -> None:
    again = [call("change", b=2, a=1)]
    model, gated = ScriptedModel([call("change", a=1, b=2)], again, "gave up", again, "done"), change()
    engine = bench.engine(model, [gated])
    await request(engine, "hi")
    await HITL.submit(
        await engine.session("s"), (await pending(engine))[0], HITLDecision.reject("never", end=False), by="Ann"
    )

    events = await request(engine)

    assert only(events, RunEnd).answer == "gave up"
    assert "Ann has rejected exactly this before" in model.requests[2].messages[-1].content
    assert only(await request(engine, "do it after all"), RunEnd).status == "pending"
    assert gated.runs == []


async def test_a_reject_text_reaches_the_model_word_for_word_after_a_restart(bench: Bench) -> None:
    text = 'Use "prod"? No — ask <@U9> first; 不要。'
    model, gated = ScriptedModel([call("change")], "ok"), change()
    engine = bench.engine(model, [gated])
    await request(engine, "hi")
    await HITL.submit(
        await engine.session("s"), (await pending(engine))[0], HITLDecision.reject(text, end=False), by="U2"
    )
    await bench.drop()

    await request(bench.engine(model, [gated]))

    assert text in model.requests[-1].messages[-1].content


async def test_a_limit_answers_every_call_of_the_message_that_it_ends_with(bench: Bench) -> None:
    model = ScriptedModel([call("look", n=n) for n in range(3)], [call("look", n=4)], "more")
    engine = bench.engine(model, [look()], max_steps=1)

    assert only(await request(engine, "hi"), RunEnd).status == "limited"

    await request(engine, "next")
    assert paired(model.requests[-1])
    assert len([m for m in model.requests[-1].messages if m.role == "tool"]) == 4


async def test_what_json_cannot_hold_is_refused_at_the_door_and_the_task_stays_open(bench: Bench) -> None:
    from datetime import date
    from decimal import Decimal

    from harness_core.errors import InvalidArguments

    gated = change()
    engine = bench.engine(ScriptedModel([call("change", n=1)], "done"), [gated])
    await request(engine, "hi")
    (task,) = await pending(engine)
    for value in (date(2026, 1, 5), Decimal("1"), b"x", {1}, float("nan"), "\ud800", {1: {2}}):
        edit = HITLDecision.approve(modified_args={"n": value})
        with pytest.raises(InvalidArguments):
            await HITL.submit(await engine.session("s"), task, edit, by="U2")
    for junk in ("text", 5, [1]):
        with pytest.raises(InvalidArguments):
            await HITL.submit(await engine.session("s"), task, HITLDecision.approve(modified_args=junk), by="U2")  # type: ignore[arg-type]

    assert await pending(engine) == (task,)


async def test_a_model_that_brings_what_cannot_be_stored_fails_a_call_not_the_session(bench: Bench) -> None:
    from datetime import date

    model = ScriptedModel(ModelReply("\ud800", (ProposedCall("look", {"at": date(2026, 1, 5)}),)), "done")
    engine = bench.engine(model, [look()])

    events = await request(engine, "hi")

    assert only(events, ToolCallEnd).outcome == "error"
    assert only(events, RunEnd).status == "completed"


UNUSABLE: list[Any] = [
    ModelReply(None),  # type: ignore[arg-type]
    ModelReply("x", None),  # type: ignore[arg-type]
    ModelReply("x", (), None),  # type: ignore[arg-type]
    ModelReply("x", (), Usage(cost=float("nan"))),
    ModelReply("x", (), Usage("many")),  # type: ignore[arg-type]
    ModelReply("x", (), finish_reason=None),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("reply", UNUSABLE)
async def test_a_message_that_cannot_be_stored_is_a_failure_of_the_model_and_not_asked_for_for_ever(
    bench: Bench, reply: ModelReply
) -> None:
    bench.clock.auto = True
    model = ScriptedModel(reply)

    end = only(await request(bench.engine(model), "hi"), RunEnd)

    assert end.status == "failed"
    assert len(model.requests) == 3


ODD: list[Any] = [
    None,
    "text",
    Inspection(preview=None),  # type: ignore[arg-type]
    Inspection(paths=["/a"]),  # type: ignore[arg-type]
    Inspection(paths=(1,)),  # type: ignore[arg-type]
    Inspection(outside="yes"),  # type: ignore[arg-type]
    Inspection(digests=[b"x"]),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("found", ODD)
async def test_a_tool_that_cannot_say_what_it_sees_gets_an_error_and_the_run_goes_on(bench: Bench, found: Any) -> None:
    tool = change(inspect=lambda args: found)

    events = await request(bench.engine(ScriptedModel([call("change")], "done"), [tool]), "hi")

    assert only(events, RunEnd).status in ("completed", "pending")
    assert tool.runs == []


async def test_a_tool_that_changes_its_arguments_in_place_changes_no_history(bench: Bench) -> None:
    class Greedy(RecordingTool):
        async def run(self, args: Any, context: Any) -> ToolResult:
            result = await super().run(args, context)
            args.clear()
            return result

    tool, model = Greedy("look", read_only=True), ScriptedModel([call("look", n=1)], "done")
    await request(bench.engine(model, [tool]), "hi")

    assert model.requests[-1].messages[1].calls[0].args == {"n": 1}


async def test_a_tool_that_brings_no_result_or_hostile_text_gives_the_model_one_all_the_same(bench: Bench) -> None:
    results: list[Any] = [None, 5, ToolResult(None), ToolResult("x", "fine"), "\ud800 text", "", "x" * 100_000]  # type: ignore[arg-type]
    for n, brought in enumerate(results):
        tool = RecordingTool("look", read_only=True, result=lambda args, b=brought: b)  # type: ignore[misc]
        model = ScriptedModel([call("look")], "done")
        engine = bench.engine(model, [tool])

        assert only(await request(engine, "hi", f"s{n}"), RunEnd).status == "completed"
        assert paired(model.requests[-1])


async def test_a_store_that_fails_tells_whoever_watches(bench: Bench) -> None:
    class Full(Slow):
        async def append(self, session_id: str, events: Any, **how: Any) -> Any:
            if isinstance(events, tuple | list) and any(isinstance(e, ReasonEnd) for e in events):
                raise StoreError("the disk is full")
            return await self.inner.append(session_id, events, **how)

    engine = bench.engine(ScriptedModel("hello"), store=Full(bench.store))

    with pytest.raises(StoreError, match="disk is full"):
        await request(engine, "hi")

    await bench.drop()
    events = await request(bench.engine(ScriptedModel("hello")))
    assert only(events, RunStart).resumed
    assert only(events, RunEnd).answer == "hello"


async def test_every_decision_is_stored_with_who_and_whence(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel([call("change")], "done"), [change()])
    await request(engine, "hi")
    (task,) = await pending(engine)
    await HITL.submit(await engine.session("s"), task, HITLDecision.approve(comment="fine"), by="U7", via="button")

    (fact,) = [e for e in await bench.store.read("s") if isinstance(e, HITLSubmitted)]

    assert (fact.by, fact.via, fact.key, fact.run_id) == ("U7", "button", task.fingerprint, task.run_id)
