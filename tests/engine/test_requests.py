"""Prompts, stops and streams: what joins a run, what ends it, and who sees what."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_core.errors import ConfigError, HarnessError, LeaseLost
from harness_core.events import (
    Event,
    HITLPending,
    Prompted,
    ReasonDelta,
    ReasonEnd,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.handle import HITL
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ModelReply, ModelRequest
from harness_core.serving import SWEEP
from harness_core.store.memory import MemoryStore
from harness_core.testing import Milestones, RecordingTool, ScriptedModel, call
from harness_core.types import Inspection
from tests.conftest import PATIENCE
from tests.engine.harness import Bench, Late, names, only, prompted, request, stored
from tests.engine.test_resume import paired

ALLOW = PermissionRule.allow("change")


def change(**more: Any) -> RecordingTool:
    return RecordingTool("change", **more)


def free(**more: Any) -> RecordingTool:
    return RecordingTool("free", read_only=True, **more)


def heard(sent: ModelRequest) -> list[str]:
    return [m.content for m in sent.messages if m.role == "user"]


# -- prompts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["", "a/b", "config:workspace", "show:s", "a\0b", None, 7])
async def test_nothing_is_said_to_what_cannot_be_a_session(bench: Bench, named: Any) -> None:
    engine = bench.engine(ScriptedModel("one"))

    for said in (
        engine.session(named),
        engine.prompt(named, "hi"),
        engine.amend(named, "key", "hi"),
        engine.stop(named),
        engine.change_rule(named, ALLOW),
        anext(engine.stream(named, "hi")),
    ):
        with pytest.raises(ConfigError, match="cannot be the id of a session"):
            await said
    assert await bench.store.sessions() == ()


async def test_prompts_without_a_key_are_not_amended_all_at_once(bench: Bench) -> None:
    engine = bench.engine(model := ScriptedModel("one"))
    await engine.prompt("s", "hi", wake=False)

    with pytest.raises(ConfigError, match="given a key"):
        await engine.amend("s", "", None)
    await request(engine)

    assert heard(model.requests[0]) == ["hi"]


async def test_two_prompts_at_once_are_both_answered_in_one_valid_history(bench: Bench) -> None:
    model = ScriptedModel("one", "two", "three")
    engine = bench.engine(model)

    ends = [only(e, RunEnd) for e in await asyncio.gather(request(engine, "a"), request(engine, "b", by="U2"))]

    assert [e.status for e in ends] == ["completed", "completed"]
    assert sorted(heard(model.requests[-1])) == ["a", "b"]
    assert all(paired(r) for r in model.requests)


async def test_prompts_that_come_while_a_tool_runs_join_after_its_result_in_the_order_they_were_sent(
    bench: Bench,
) -> None:
    gate = asyncio.Event()
    tool, model = free(hold=gate), ScriptedModel([call("free")], "done")
    engine = bench.engine(model, [tool])
    stream = asyncio.create_task(request(engine, "hi"))
    await tool.started.reach()
    await engine.prompt("s", "second", by="U2", sent_at=bench.clock.now() + 2)
    await engine.prompt("s", "first", by="U3", sent_at=bench.clock.now() + 1)
    gate.set()

    await stream

    assert [(m.role, m.content) for m in model.requests[-1].messages[2:]] == [
        ("tool", "done"),
        ("user", "first"),
        ("user", "second"),
    ]
    assert (await stored(bench.store)).count("RunStart") == 1


async def test_a_prompt_that_comes_while_the_model_answers_is_answered_before_the_run_ends(bench: Bench) -> None:
    gate = asyncio.Event()
    model = ScriptedModel("one", "two", hold=gate)
    engine = bench.engine(model)
    first = asyncio.create_task(request(engine, "hi"))
    await model.asked.reach()
    second = asyncio.create_task(request(engine, "and?", by="U2"))
    await prompted(bench.store, "and?")
    gate.set()

    assert only(await first, RunEnd).answer == only(await second, RunEnd).answer == "two"
    assert heard(model.requests[-1]) == ["hi", "and?"]


async def test_a_prompt_that_somebody_saw_but_the_model_did_not_is_not_taken_for_answered(bench: Bench) -> None:
    gate = asyncio.Event()
    model = ScriptedModel("one", "two", hold=gate)
    engine = bench.engine(model)
    stream = asyncio.create_task(request(engine, "hi"))
    await model.asked.reach()
    await engine.prompt("s", "and?", by="U2")
    assert [p.text for p in (await engine.trace("s")).inbox] == ["hi", "and?"]
    gate.set()
    await stream
    await engine.idle()

    assert heard(model.requests[-1]) == ["hi", "and?"]


async def test_the_requester_is_who_began_the_run_not_who_joined_it(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel([call("change")], [call("change", n=2)], "done"), [change()])
    await request(engine, "hi", by="U1")
    await request(engine, "me too", by="U2")
    session = await engine.session("s")
    await HITL.approve(session, (await HITL.get_pending_tasks(session))[0])
    await request(engine)

    assert [t.requested_by for t in await HITL.get_pending_tasks(session)] == ["U1"]


async def test_a_prompt_delivered_twice_is_heard_once(bench: Bench) -> None:
    model = ScriptedModel("one", "two")
    engine = bench.engine(model)
    await engine.prompt("s", "hi", key="k")
    assert await engine.prompt("s", "hi", key="k") is None
    await engine.idle()

    assert heard(model.requests[-1]) == ["hi"]
    assert len(model.requests) == 1


async def test_a_queued_prompt_is_heard_as_amended_and_not_at_all_if_withdrawn(bench: Bench) -> None:
    gate = asyncio.Event()
    tool, model = free(hold=gate), ScriptedModel([call("free")], "done")
    engine = bench.engine(model, [tool])
    stream = asyncio.create_task(request(engine, "hi"))
    await tool.started.reach()
    for key in ("1", "2"):
        await engine.prompt("s", f"prompt {key}", key=key)
    await engine.amend("s", "1", "prompt one")
    await engine.amend("s", "2", None)
    gate.set()

    await stream

    assert heard(model.requests[-1]) == ["hi", "prompt one"]


async def test_a_prompt_withdrawn_before_it_was_read_asks_no_model(bench: Bench) -> None:
    model = ScriptedModel("no")
    engine = bench.engine(model)
    facts = [Prompted("oops", ref="k"), RunStart("r")]
    await bench.store.append("s", facts)
    await engine.amend("s", "k", None)

    assert only(await request(engine), RunEnd).status == "stopped"
    assert model.requests == []
    assert (await engine.trace("s")).run is None


async def test_a_prompt_without_words_is_no_empty_message(bench: Bench) -> None:
    model = ScriptedModel("a picture", "what?")
    engine = bench.engine(model)
    await engine.prompt("s", "", files=["cat.png"])
    await engine.idle()
    await request(engine, " \n ")

    assert all(paired(r) for r in model.requests)
    assert heard(model.requests[-1]) == ['(files: "cat.png" — not readable here)', "(no text)"]


async def test_after_a_limit_the_queued_prompt_begins_the_next_run(bench: Bench) -> None:
    gate = asyncio.Event()
    tool, model = free(hold=gate), ScriptedModel([call("free")], "so far", "second run")
    engine = bench.engine(model, [tool], max_steps=1)
    first = asyncio.create_task(request(engine, "hi"))
    await tool.started.reach()
    second = asyncio.create_task(request(engine, "more", by="U2"))
    await prompted(bench.store, "more")
    gate.set()

    assert only(await first, RunEnd).status == "limited"
    end = only(await second, RunEnd)
    assert (end.status, end.answer) == ("completed", "second run")
    starts = [e.requested_by for e in await bench.store.read("s") if isinstance(e, RunStart)]
    assert starts == ["U1", "U2"]


@pytest.mark.parametrize("name", ["max_steps", "model_retries", "parallel"])
async def test_an_option_with_which_nothing_would_ever_be_done_is_refused(bench: Bench, name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        bench.engine(ScriptedModel("x"), **{name: 0})


# -- stops -------------------------------------------------------------------------------------------------------------


async def test_a_stop_while_a_tool_runs_kills_it_and_leaves_its_outcome_unknown_without_a_task(bench: Bench) -> None:
    tool, model = free(hold=asyncio.Event()), ScriptedModel([call("free"), call("free", n=2)], "no")
    engine = bench.engine(model, [tool])
    stream = asyncio.create_task(request(engine, "hi"))
    await tool.started.reach()

    assert await engine.stop("s", by="Ann")
    events = await stream

    assert tool.killed == 1
    assert [e.outcome for e in events if isinstance(e, ToolCallEnd)] == ["unknown", "not_run"]
    assert only(events, RunEnd).status == "stopped"
    assert "Ann" in only(events, RunEnd).answer
    assert not [e for e in await bench.store.read("s") if isinstance(e, HITLPending)]
    assert len(model.requests) == 1


async def test_a_stop_while_the_model_answers_cuts_it_off(bench: Bench) -> None:
    model = ScriptedModel("a long answer", hold=asyncio.Event())
    engine = bench.engine(model)
    stream = asyncio.create_task(request(engine, "hi"))
    await model.asked.reach()
    await engine.stop("s", by="Ann")

    assert only(await stream, RunEnd).status == "stopped"
    assert model.cancelled == 1
    assert "ReasonEnd" not in await stored(bench.store)


async def test_a_stop_while_a_failed_model_is_given_time_does_not_wait_for_it(bench: Bench) -> None:
    from harness_core.errors import ModelError

    engine = bench.engine(ScriptedModel(ModelError("rate_limited", retry_after=30)))
    stream = asyncio.create_task(request(engine, "hi"))
    await bench.clock.naps.reach(1)
    await engine.stop("s", by="Ann")

    assert only(await stream, RunEnd).status == "stopped"


async def test_a_stop_while_suspended_closes_the_task_and_withdraws_what_was_queued(bench: Bench) -> None:
    gated = change()
    engine = bench.engine(ScriptedModel([call("change")], "no"), [gated])
    await request(engine, "hi")
    await engine.prompt("s", "queued", by="U3", key="k")
    session = await engine.session("s")
    (task,) = await HITL.get_pending_tasks(session)

    await engine.stop("s", by="Ann")
    await engine.idle()

    assert await HITL.get_pending_tasks(session) == ()
    end = only(await bench.store.read("s"), RunEnd)
    assert (end.status, end.withdrawn) == ("stopped", ("k",))
    with pytest.raises(HarnessError):
        await HITL.approve(session, task)
    await request(engine)
    assert gated.runs == []


async def test_there_is_nothing_to_stop_in_a_session_that_rests(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel("done"))

    assert not await engine.stop("s")
    await request(engine, "hi")
    assert not await engine.stop("s")
    assert "StopRequested" not in await stored(bench.store)


async def test_a_stop_meant_for_an_earlier_run_kills_nothing_of_the_next(bench: Bench) -> None:
    gate = asyncio.Event()
    tool = free(hold=gate)
    engine = bench.engine(ScriptedModel("one", [call("free")], "two"), [tool])
    earlier = only(await request(engine, "hi"), RunStart).run_id
    stream = asyncio.create_task(request(engine, "again"))
    await tool.started.reach()
    await bench.store.append("s", StopRequested(earlier, "U9"))
    for _ in range(5):
        await asyncio.sleep(0)
    gate.set()

    events = await stream

    assert tool.killed == 0
    assert [e.outcome for e in events if isinstance(e, ToolCallEnd)] == ["ok"]
    assert only(events, RunEnd).answer == "two"


async def test_a_stop_that_comes_as_the_run_ends_hits_the_run_that_follows(bench: Bench) -> None:
    """Whoever says stop means what goes on now, also if the run that they saw has just given way to the next."""
    tool = free(hold=asyncio.Event())
    engine = bench.engine(ScriptedModel("one", [call("free")], "two"), [tool])
    stopper = bench.engine(ScriptedModel("x"), store=(late := Late(bench.store)))
    await bench.store.append("s", [Prompted("hi"), RunStart("r"), ReasonEnd("one", upto=2)])
    streams: list[asyncio.Task[Any]] = []

    async def next_run() -> None:
        await request(engine)
        streams.append(asyncio.create_task(request(engine, "again")))
        await tool.started.reach()

    late.before_append = next_run

    assert await stopper.stop("s", by="Ann")

    await engine._serving.sweep()  # as it does every few seconds: the stop came from another engine
    assert only(await streams[0], RunEnd).status == "stopped"
    assert tool.killed == 1


# -- wake-ups ----------------------------------------------------------------------------------------------------------


async def test_a_click_between_the_last_look_and_the_release_of_the_lease_is_acted_on(bench: Bench) -> None:
    gated = change()
    late = Late(bench.store)
    engine = bench.engine(ScriptedModel([call("change")], "done"), [gated], store=late)
    clicker = bench.engine(ScriptedModel("x"), [gated])

    async def click() -> None:
        session = await clicker.session("s")
        (task,) = await HITL.get_pending_tasks(session)
        await HITL.approve(session, task, by="U2")
        clicker.wake(session)  # which finds the lease taken, and leaves it to its holder
        await clicker.idle()

    late.before_release = click

    await request(engine, "hi")
    await engine.idle()

    assert len(gated.runs) == 1
    assert (await engine.trace("s")).answer == "done"


async def test_a_prompt_between_the_last_look_and_the_release_is_answered(bench: Bench) -> None:
    late = Late(bench.store)
    model = ScriptedModel("one", "two")
    engine = bench.engine(model, store=late)
    elsewhere = bench.engine(ScriptedModel("x"))

    async def ask() -> None:
        await elsewhere.prompt("s", "and?")
        await elsewhere.idle()

    late.before_release = ask
    await request(engine, "hi")
    await engine.idle()

    assert heard(model.requests[-1]) == ["hi", "and?"]


async def test_what_nobody_was_told_of_is_found_by_the_sweep(bench: Bench) -> None:
    await bench.store.append("s", Prompted("hi"))
    model = ScriptedModel("done", "again")
    engine = bench.engine(model)
    await engine.start()
    await engine.idle()
    await bench.store.append("s", Prompted("more"))

    await bench.clock.naps.reach(1)
    bench.clock.advance(SWEEP)
    await model.asked.reach(2)
    await engine.idle()

    assert (await engine.trace("s")).answer == "again"


async def test_a_stop_from_another_process_is_seen_at_the_next_sweep(bench: Bench) -> None:
    tool = free(hold=asyncio.Event())
    engine = bench.engine(ScriptedModel([call("free")], "no"), [tool])
    await engine.start()
    await bench.clock.naps.reach(1)
    stream = asyncio.create_task(request(engine, "hi"))
    await tool.started.reach()
    other = bench.engine(ScriptedModel("x"), store=bench.store.reopen())  # type: ignore[attr-defined]
    await other.stop("s", by="Ann")
    bench.clock.advance(SWEEP)

    assert only(await stream, RunEnd).status == "stopped"
    assert tool.killed == 1
    await other.close()
    await other.store.close()


# -- streams -----------------------------------------------------------------------------------------------------------


async def test_an_abandoned_stream_does_not_stop_the_run(bench: Bench) -> None:
    gate = asyncio.Event()
    tool = free(hold=gate)
    engine = bench.engine(ScriptedModel([call("free")], "done"), [tool])
    stream = engine.stream(await engine.session("s"), "hi")
    async for event in stream:
        if isinstance(event, ToolCallStart):
            break
    await stream.aclose()  # type: ignore[attr-defined]
    gate.set()
    await engine.idle()

    assert (await engine.trace("s")).answer == "done"


async def test_a_slow_stream_does_not_slow_the_run_and_misses_nothing(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel([call("free")], "done"), [free()])
    stream = engine.stream(await engine.session("s"), "hi")
    seen: list[Event] = [await anext(stream)]
    await engine.idle()
    assert (await engine.trace("s")).run is None

    seen += [event async for event in stream]

    assert names(seen) == names(await request(bench.engine(ScriptedModel([call("free")], "done"), [free()]), "hi", "t"))


async def test_a_request_ends_with_exactly_one_run_end_also_when_it_joins_late(bench: Bench) -> None:
    gate = asyncio.Event()
    tool = free(hold=gate)
    engine = bench.engine(ScriptedModel([call("free")], "done"), [tool])
    first = asyncio.create_task(request(engine, "hi"))
    await tool.started.reach()
    late = asyncio.create_task(request(engine))
    await asyncio.sleep(0)
    gate.set()

    for events in await asyncio.gather(first, late):
        assert isinstance(events[0], RunStart)
        assert isinstance(events[-1], RunEnd)
        assert [type(e) for e in events].count(RunEnd) == [type(e) for e in events].count(RunStart) == 1


async def test_a_stream_does_not_hang_when_the_engine_closes(bench: Bench) -> None:
    model = ScriptedModel("hi", hold=asyncio.Event())
    engine = bench.engine(model)
    stream = asyncio.create_task(request(engine, "hi"))
    await model.asked.reach()
    await engine.close()

    with pytest.raises(HarnessError, match="closed"):
        await asyncio.wait_for(stream, PATIENCE)


@pytest.mark.parametrize("ending", ["completed", "limited", "failed"])
async def test_a_stream_that_joins_a_run_of_another_engine_follows_it_to_its_end(bench: Bench, ending: str) -> None:
    from harness_core.errors import ModelError

    gate = asyncio.Event()
    last: Any = ModelError("auth", "wrong key") if ending == "failed" else "done"
    tool = free(hold=gate)
    worker = bench.engine(ScriptedModel([call("free")], last), [tool], max_steps=1 if ending == "limited" else 9)
    joiner = bench.engine(ScriptedModel("x", then="x"), store=bench.store.reopen())  # type: ignore[attr-defined]
    work = asyncio.create_task(request(worker, "hi"))
    await tool.started.reach()
    joined = asyncio.create_task(request(joiner, "me too", by="U2", key="joined"))
    await prompted(bench.store, "me too")
    if ending == "limited":
        await worker.amend("s", "joined", None)  # otherwise the prompt would begin a run of its own
    gate.set()
    await work

    end = only(await asyncio.wait_for(joined, PATIENCE), RunEnd)

    assert end.status == ending
    await joiner.close()
    await joiner.store.close()


@pytest.mark.parametrize("held", [True, False])
async def test_a_run_that_ended_before_anybody_could_follow_it_is_shown_as_it_ended(bench: Bench, held: bool) -> None:
    """The prompt is stored, another engine answers it, and only then does this one look, and find the session held."""
    joiner = bench.engine(ScriptedModel("x", then="x"), store=(late := Late(bench.store.reopen())))  # type: ignore[attr-defined]
    worker = bench.engine(ScriptedModel([call("free")]), [free()], max_steps=1)

    async def answer_and_hold_on() -> None:
        await request(worker)
        if held:
            await holding.__aenter__()

    holding = bench.store.lease("s")
    late.before_lease = answer_and_hold_on

    end = only(await asyncio.wait_for(request(joiner, "hi"), PATIENCE), RunEnd)

    assert end.status == "limited"
    if held:
        await holding.__aexit__(None, None, None)
    await joiner.close()
    await joiner.store.close()


async def test_two_engines_that_work_on_one_session_answer_each_prompt_once(bench: Bench) -> None:
    models = [ScriptedModel("a", "b", "c", "d") for _ in range(2)]
    tool = free()
    engines = [bench.engine(m, [tool], store=bench.store.reopen()) for m in models]  # type: ignore[attr-defined]
    streams = [request(e, f"{n}") for n in range(2) for e in engines]

    ends = [only(e, RunEnd).status for e in await asyncio.wait_for(asyncio.gather(*streams), PATIENCE)]

    assert ends == ["completed"] * 4
    facts = await bench.store.read("s")
    assert sum(isinstance(e, RunStart) for e in facts) == sum(isinstance(e, RunEnd) for e in facts)
    prompts = [e.seq or 0 for e in facts if isinstance(e, Prompted)]
    assert max(prompts) <= max(e.upto for e in facts if isinstance(e, ReasonEnd))  # no stream ended too early
    for engine in engines:
        await engine.close()
        await engine.store.close()


async def test_deltas_come_as_they_are_said(bench: Bench) -> None:
    gate = asyncio.Event()
    engine = bench.engine(ScriptedModel("first second", hold=gate))
    seen = []
    async for event in engine.stream(await engine.session("s"), "hi"):
        if isinstance(event, ReasonDelta):
            seen.append(event.text)
            gate.set()

    assert seen == ["first ", "second"]


async def test_a_model_that_says_nothing_completes_with_nothing_and_the_next_request_can_be_sent(bench: Bench) -> None:
    model = ScriptedModel(ModelReply(), then="yes?")
    engine = bench.engine(model)

    assert only(await request(engine, "hi"), RunEnd).answer == ""
    await request(engine, "hello?")

    assert all(paired(r) for r in model.requests)


async def test_an_observer_is_told_of_facts_in_order_and_its_faults_are_in_nobodys_way(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    told = Milestones()

    async def observe(event: Event) -> None:
        seen.append(type(event).__name__)
        told.add()
        raise RuntimeError("boom")

    engine = bench.engine(ScriptedModel("done"))
    engine.subscribe(observe)
    await request(engine, "hi")
    await told.reach(4)

    assert seen == ["Prompted", "RunStart", "ReasonEnd", "RunEnd"]
    assert "observer failed" in caplog.text


async def test_a_plain_function_observes_too(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    told = Milestones()
    engine = bench.engine(ScriptedModel("done"))
    engine.subscribe(lambda event: told.add())
    await request(engine, "hi")
    await told.reach(4)

    assert "observer failed" not in caplog.text


# -- leases ------------------------------------------------------------------------------------------------------------


async def test_who_stalls_is_taken_over_its_tool_is_killed_and_its_append_refused(bench: Bench) -> None:
    store = MemoryStore(clock=bench.clock)
    tool, again = change(hold=asyncio.Event()), change()
    stalled = bench.engine(ScriptedModel([call("change")], "no"), [tool], store=store, rules=[ALLOW])
    heir = bench.engine(ScriptedModel("no", "done"), [again], store=store.reopen(), rules=[ALLOW])
    stream = asyncio.create_task(request(stalled, "hi"))
    await tool.started.reach()
    store.stall()
    bench.clock.advance(10)

    taken = await request(heir)

    (asked,) = only(taken, HITLPending).tasks
    assert (asked.kind, again.runs) == ("unknown", [])
    events = await asyncio.wait_for(stream, PATIENCE)  # which follows the session, as it is the other's now
    assert tool.killed == 1
    assert only(events, RunEnd).status == "pending"
    assert [e for e in await store.read("s") if isinstance(e, ToolCallEnd)] == []
    with pytest.raises(LeaseLost):
        await store.append("s", ToolCallEnd("c", "late"), fence=1)


async def test_what_a_stalled_owner_still_hears_from_the_model_is_not_recorded(bench: Bench) -> None:
    store, gate = MemoryStore(clock=bench.clock), asyncio.Event()
    model = ScriptedModel("too late", hold=gate)
    stalled = bench.engine(model, store=store)
    heir = bench.engine(ScriptedModel("in time"), store=store.reopen())
    stream = asyncio.create_task(request(stalled, "hi"))
    await model.asked.reach()
    store.stall()
    bench.clock.advance(10)
    await request(heir)
    gate.set()

    assert only(await asyncio.wait_for(stream, PATIENCE), RunEnd).answer == "in time"
    assert [e.text for e in await store.read("s") if isinstance(e, ReasonEnd)] == ["in time"]


async def test_a_tool_does_not_start_on_a_lease_that_others_may_have_taken(bench: Bench) -> None:
    store = MemoryStore(clock=bench.clock)
    looks = 0

    def look_and_hang(args: Any) -> Inspection:
        nonlocal looks
        looks += 1
        if looks == 2:  # just before it runs, the machine sleeps for a while
            store.stall()
            bench.clock.advance(10)
        return Inspection("the same")

    tool = change(inspect=look_and_hang)
    engine = bench.engine(ScriptedModel([call("change")], "done"), [tool], store=store, rules=[ALLOW])

    assert only(await asyncio.wait_for(request(engine, "hi"), PATIENCE), RunEnd).answer == "done"

    assert len(tool.runs) == 1
    facts = [e for e in await store.read("s") if isinstance(e, RunStart | ToolCallStart)]
    assert [type(e) for e in facts] == [RunStart, RunStart, ToolCallStart]  # it took the session again first
