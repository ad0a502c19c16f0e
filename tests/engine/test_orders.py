"""The exact order of events of every kind of request."""

from __future__ import annotations

from harness_core.errors import ModelError
from harness_core.events import (
    HITLDecided,
    HITLPending,
    Prompted,
    ReasonEnd,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision
from harness_core.steps import Expiry
from harness_core.testing import Attempts, RecordingTool, ScriptedModel, call
from harness_core.types import ToolCall
from tests.engine.harness import Bench, names, only, request, stored

REASON = ["ContextSize", "ReasonStart", "ReasonDelta", "ReasonEnd"]
QUIET = ["ContextSize", "ReasonStart", "ReasonEnd"]
ONE_CALL = ["ActionStart", "ToolCallStart", "ToolCallEnd", "ActionEnd"]


def read() -> RecordingTool:
    return RecordingTool("look", read_only=True, repeatable=True)


def write(**more: object) -> RecordingTool:
    return RecordingTool("change", **more)  # type: ignore[arg-type]


async def test_a_request_without_tools(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel("Hello there"))

    events = await request(engine, "hi")

    assert names(events) == ["RunStart", *REASON, "RunEnd"]
    assert only(events, RunEnd).status == "completed"
    assert only(events, RunEnd).answer == "Hello there"
    assert await stored(bench.store) == ["Prompted", "RunStart", "ReasonEnd", "RunEnd"]
    assert all(e.session_id == "s" and e.run_id == events[0].run_id and e.at for e in events)


async def test_a_request_with_tools_asks_the_model_again_after_each_batch(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel([call("look", n=1)], [call("look", n=2), call("look", n=3)], "done"), [read()])

    events = await request(engine, "hi")

    two = ["ActionStart", "ToolCallStart", "ToolCallStart", "ToolCallEnd", "ToolCallEnd", "ActionEnd"]
    assert names(events) == ["RunStart", *QUIET, *ONE_CALL, *QUIET, *two, *REASON, "RunEnd"]


async def test_calls_that_may_not_be_repeated_run_one_after_the_other(bench: Bench) -> None:
    tool = RecordingTool("note", read_only=True, repeatable=False)
    engine = bench.engine(ScriptedModel([call("note", n=2), call("note", n=3)], "done"), [tool])

    events = await request(engine, "hi")

    pair = ["ToolCallStart", "ToolCallEnd"]
    assert names(events) == ["RunStart", *QUIET, "ActionStart", *pair, *pair, "ActionEnd", *REASON, "RunEnd"]


async def test_a_sensitive_call_suspends_before_any_action(bench: Bench) -> None:
    look, change = read(), write()
    engine = bench.engine(ScriptedModel([call("look"), call("change", a=1)], "done"), [look, change])

    events = await request(engine, "hi")

    assert names(events) == ["RunStart", *QUIET, "HITLPending", "RunEnd"]
    assert only(events, RunEnd).status == "pending"
    assert [t.tool_name for t in only(events, HITLPending).tasks] == ["change"]
    assert look.runs == change.runs == []
    assert await stored(bench.store) == ["Prompted", "RunStart", "ReasonEnd", "HITLPending"]


async def test_an_approved_call_resumes_the_same_run_with_an_empty_prompt(bench: Bench) -> None:
    change = write()
    model = ScriptedModel([call("change", a=1)], "done")
    engine = bench.engine(model, [change])
    before = await request(engine, "hi")
    session = await engine.session("s")
    await HITL.approve(session, only(before, HITLPending).tasks[0], by="U2")

    events = await request(engine)

    assert names(events) == ["RunStart", "HITLDecided", *ONE_CALL, *REASON, "RunEnd"]
    assert only(events, RunStart).resumed
    assert only(events, RunStart).run_id == only(before, RunStart).run_id
    assert only(events, RunStart).attempt == 1
    assert change.runs == [{"a": 1}]
    assert [m.role for m in model.requests[-1].messages] == ["user", "assistant", "tool"]


async def test_a_single_reject_ends_the_run_with_the_comment(bench: Bench) -> None:
    change, model = write(), ScriptedModel([call("change", a=1)], "never")
    engine = bench.engine(model, [change])
    await request(engine, "hi")
    session = await engine.session("s")
    await HITL.submit(session, (await HITL.get_pending_tasks(session))[0], HITLDecision.reject("too much"), by="U2")

    events = await request(engine)

    assert names(events) == ["RunStart", "HITLDecided", "RunEnd"]
    assert (only(events, RunEnd).status, only(events, RunEnd).answer) == ("rejected", "too much")
    assert (await stored(bench.store))[-3:] == ["HITLDecided", "ToolCallEnd", "RunEnd"]
    assert change.runs == []
    assert len(model.requests) == 1


async def test_an_empty_prompt_with_undecided_tasks_asks_no_model_and_stores_nothing(bench: Bench) -> None:
    model = ScriptedModel([call("change", a=1), call("change", a=2)], "done")
    engine = bench.engine(model, [write()])
    tasks = only(await request(engine, "hi"), HITLPending).tasks
    await HITL.approve(await engine.session("s"), tasks[0], by="U2")
    before = await stored(bench.store)

    for _ in range(3):
        events = await request(engine)

        assert names(events) == ["RunStart", "HITLPending", "RunEnd"]
        assert only(events, RunStart).resumed
        assert only(events, RunEnd).status == "pending"
        assert only(events, HITLPending).tasks == tasks[1:]
    assert await stored(bench.store) == before
    assert len(model.requests) == 1


async def test_a_prompt_while_suspended_is_stored_and_waits(bench: Bench) -> None:
    model = ScriptedModel([call("change", a=1)], "done")
    engine = bench.engine(model, [write()])
    tasks = only(await request(engine, "hi"), HITLPending).tasks

    events = await request(engine, "and hurry", by="U3")

    assert names(events) == ["RunStart", "HITLPending", "RunEnd"]
    assert only(events, HITLPending).tasks == tasks
    assert (await stored(bench.store))[-2:] == ["HITLPending", "Prompted"]
    await HITL.approve(await engine.session("s"), tasks[0])
    assert names(await request(engine)) == ["RunStart", "HITLDecided", *ONE_CALL, *REASON, "RunEnd"]
    assert [m.content for m in model.requests[-1].messages if m.role == "user"] == ["hi", "and hurry"]
    assert model.requests[-1].messages[-1].content == "and hurry"


async def test_an_empty_prompt_with_nothing_to_do_repeats_the_last_answer(bench: Bench) -> None:
    model = ScriptedModel("Hello there")
    engine = bench.engine(model)
    empty = await request(engine)
    await request(engine, "hi")
    before = await stored(bench.store)

    events = await request(engine)

    assert names(empty) == names(events) == ["RunStart", "RunEnd"]
    assert only(empty, RunEnd).answer == ""
    assert (only(events, RunEnd).status, only(events, RunEnd).answer) == ("completed", "Hello there")
    assert await stored(bench.store) == before
    assert len(model.requests) == 1


async def test_after_a_crash_only_what_is_missing_happens(bench: Bench) -> None:
    model, look = ScriptedModel("done"), read()
    run = "r1"
    await bench.store.append("s", [Prompted("hi", "U1"), RunStart(run), ReasonEnd("", upto=2, run_id=run)])
    c = ToolCall("c1", "look", {})
    await bench.store.append("t", [Prompted("hi", "U1"), RunStart(run), ReasonEnd("", (c,), upto=2, run_id=run)])

    finished = await request(bench.engine(model, [look]))
    acted = await request(bench.engine(ScriptedModel("no", "done"), [look]), session_id="t")

    assert names(finished) == ["RunStart", "RunEnd"]
    assert names(acted) == ["RunStart", *ONE_CALL, *REASON, "RunEnd"]
    assert (only(acted, RunStart).resumed, only(acted, RunStart).attempt, acted[0].run_id) == (True, 2, run)
    assert look.runs == [{}]


async def test_an_unknown_outcome_is_put_to_a_person_and_later_siblings_wait(bench: Bench) -> None:
    calls = (ToolCall("c1", "change", {"a": 1}), ToolCall("c2", "look", {}))
    facts = [Prompted("hi", "U1"), RunStart("r1"), ReasonEnd("", calls, upto=2), ToolCallStart(calls[0])]
    await bench.store.append("s", facts)
    look, change = read(), write()
    engine = bench.engine(ScriptedModel("no", "done"), [look, change])

    events = await request(engine)

    assert names(events) == ["RunStart", "HITLPending", "RunEnd"]
    assert only(events, RunEnd).status == "pending"
    assert [t.kind for t in only(events, HITLPending).tasks] == ["unknown"]
    assert look.runs == change.runs == []

    await HITL.submit(await engine.session("s"), "c1", HITLDecision.happened("it is 1 now"), by="U2")
    events = await request(engine)

    pair = ["ToolCallStart", "ToolCallEnd"]
    assert names(events) == ["RunStart", "HITLDecided", "ActionStart", *pair, *pair, "ActionEnd", *REASON, "RunEnd"]
    assert change.runs == []
    assert look.runs == [{}]


async def test_a_stop_of_a_suspended_run_gives_every_call_a_result(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel([call("change", a=1), call("look")], "no"), [write(), read()])
    await request(engine, "hi")
    await request(engine, "queued")
    trace = await engine.trace("s")
    assert trace.run
    await bench.store.append("s", StopRequested(trace.run.run_id, "U2"))

    events = await request(engine)

    assert names(events) == ["RunStart", "ToolCallEnd", "ToolCallEnd", "RunEnd"]
    assert [e.outcome for e in events if isinstance(e, ToolCallEnd)] == ["not_run", "not_run"]
    assert only(events, RunEnd).status == "stopped"
    assert (await stored(bench.store))[-4:] == ["StopRequested", "ToolCallEnd", "ToolCallEnd", "RunEnd"]
    assert (await engine.trace("s")).inbox == ()


async def test_an_expiry_that_halts_ends_the_run(bench: Bench) -> None:
    expiries = {"change": Expiry(60, "halt")}
    model = ScriptedModel([call("change", a=1), call("look")], "no")
    engine = bench.engine(model, [write(), read()], expiries=expiries)
    await request(engine, "hi")
    bench.clock.advance(61)

    events = await request(engine)
    await engine.idle()

    shown = [e.outcome for e in events if isinstance(e, ToolCallEnd)]
    assert shown in ([], ["expired", "not_run"])  # [] if the alarm was quicker than this request
    facts = await bench.store.read("s")
    assert [e.outcome for e in facts if isinstance(e, ToolCallEnd)] == ["expired", "not_run"]
    assert only(facts, RunEnd).status == "stopped"


async def test_an_expiry_that_tells_lets_the_model_go_on(bench: Bench) -> None:
    model = ScriptedModel([call("change", a=1)], "I did nothing")
    engine = bench.engine(model, [write()], expiries={"change": Expiry(60)})
    await request(engine, "hi")
    bench.clock.advance(61)
    await engine.idle()

    await request(engine)

    assert (await engine.trace("s")).answer == "I did nothing"
    assert "expired" in model.requests[-1].messages[-1].content
    assert "nobody rejected it" in model.requests[-1].messages[-1].content


async def test_the_step_limit_ends_the_run_and_says_so(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel(then=[call("look")]), [read()], max_steps=2)

    events = await request(engine, "hi")

    assert names(events) == ["RunStart", *QUIET, *ONE_CALL, *QUIET, *ONE_CALL, *QUIET, "ToolCallEnd", "RunEnd"]
    end = only(events, RunEnd)
    assert (end.status, end.limit, end.abnormal) == ("limited", "steps", True)
    assert "2 steps" in end.answer


async def test_a_model_that_fails_is_asked_again_and_the_deltas_of_the_first_attempt_are_void(bench: Bench) -> None:
    bench.clock.auto = True
    engine = bench.engine(ScriptedModel(Attempts(ModelError("server"), ModelError("rate_limited"), "done")))

    events = await request(engine, "hi")

    assert names(events) == ["RunStart", *["ContextSize", "ReasonStart"] * 2, *REASON, "RunEnd"]
    assert [e.attempt for e in events if type(e).__name__ == "ReasonStart"] == [1, 2, 3]
    assert only(events, RunEnd).answer == "done"


async def test_a_model_that_cannot_answer_fails_the_run_once_and_its_prompt_begins_no_other(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel(ModelError("auth", "wrong key"), "later"))

    events = await request(engine, "hi")

    assert names(events) == ["RunStart", "ContextSize", "ReasonStart", "RunEnd"]
    assert only(events, RunEnd).status == "failed"
    assert "wrong key" in only(events, RunEnd).answer
    assert (await stored(bench.store)).count("RunStart") == 1


async def test_a_skip_goes_on_and_says_what_was_skipped(bench: Bench) -> None:
    change = write()
    model = ScriptedModel([call("change", a=1), call("change", a=2)], "done")
    engine = bench.engine(model, [change])
    tasks = only(await request(engine, "hi"), HITLPending).tasks
    session = await engine.session("s")
    await HITL.skip(session, tasks[0], "I made it 1", by="U2", done=True)
    await HITL.skip(session, tasks[1], by="U2")

    events = await request(engine)

    pair = ["ToolCallStart", "ToolCallEnd"]
    decided = ["HITLDecided", "HITLDecided"]
    assert names(events) == ["RunStart", *decided, "ActionStart", *pair, *pair, "ActionEnd", *REASON, "RunEnd"]
    assert [e.seq for e in events if isinstance(e, ToolCallStart)] == [None, None]
    assert all(e.is_skipped for e in events if isinstance(e, HITLDecided))
    done, left_out = (m.content for m in model.requests[-1].messages[-2:])
    assert "Done by hand by U2" in done
    assert "I made it 1" in done
    assert "Left out by U2" in left_out
    assert change.runs == []
