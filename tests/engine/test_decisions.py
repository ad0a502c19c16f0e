"""Deciding: what is refused and how, edits, always allow, rules that change meanwhile, expiry."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_core.engine import HarnessEngine
from harness_core.errors import (
    AlreadyDecided,
    AmbiguousTask,
    DecisionRefused,
    DeniedByPolicy,
    InvalidArguments,
    NotApplicable,
    TaskExpired,
    UnknownTask,
)
from harness_core.events import (
    HITLDecided,
    HITLPending,
    HITLSubmitted,
    Prompted,
    ReasonEnd,
    RuleChanged,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.handle import HITL, AgentSession
from harness_core.hitl import Approve, Expired, HITLDecision, HITLTask
from harness_core.hooks import Ask, Rewrite
from harness_core.interceptors.hitl import HITLInterceptor
from harness_core.permissions.rule import PermissionRule
from harness_core.steps import Expiry
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.types import Inspection, ToolCall
from tests.conftest import PATIENCE
from tests.engine.harness import Bench, Late, only, request, stored

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def change(**more: Any) -> RecordingTool:
    return RecordingTool("change", **more)


async def asked(
    bench: Bench, *calls: Any, tool: RecordingTool | None = None, **options: Any
) -> tuple[HarnessEngine, AgentSession, tuple[HITLTask, ...], RecordingTool]:
    """A session that waits for a decision on these calls."""
    gated = tool or change()
    engine = bench.engine(ScriptedModel(list(calls or [call("change", n=1)]), "done"), [gated], **options)
    await request(engine, "hi")
    session = await engine.session("s")
    return engine, session, await HITL.get_pending_tasks(session), gated


# -- refusals ----------------------------------------------------------------------------------------------------------


async def test_what_is_no_task_of_this_session_is_unknown(bench: Bench) -> None:
    engine, session, (task,), _ = await asked(bench)
    await request(engine, "hi", "t")
    other = await engine.session("t")
    (foreign,) = await HITL.get_pending_tasks(other)

    for which in ("", "nope", foreign, foreign.fingerprint, task.fingerprint[:6]):
        with pytest.raises(UnknownTask):
            await HITL.approve(session, which)
    assert await HITL.get_pending_tasks(other) == (foreign,)


async def test_the_second_decision_is_refused_even_long_after_the_run(bench: Bench) -> None:
    engine, session, (task,), gated = await asked(bench)
    await HITL.approve(session, task, by="U2")
    with pytest.raises(AlreadyDecided):
        await HITL.reject(session, task, by="U3")
    await request(engine)
    for which in (task, task.fingerprint, task.call_uuid):
        with pytest.raises(AlreadyDecided):
            await HITL.reject(session, which, by="U3")

    assert gated.runs == [{"n": 1}]


async def test_a_decision_that_a_task_does_not_take_is_refused(bench: Bench) -> None:
    _, session, (task,), _ = await asked(bench)
    junk: Any = "approve"

    for decision in (HITLDecision.rerun(), HITLDecision.happened("x"), Expired(), junk, None):
        with pytest.raises(NotApplicable):
            await HITL.submit(session, task, decision)  # type: ignore[arg-type]
    assert await HITL.get_pending_tasks(session) == (task,)


async def test_a_call_of_unknown_outcome_cannot_be_approved(bench: Bench) -> None:
    made = ToolCall("c1", "change", {})
    await bench.store.append("s", [Prompted("hi"), RunStart("r"), ReasonEnd("", (made,), upto=2), ToolCallStart(made)])
    engine = bench.engine(ScriptedModel("no", "done"), [change()])
    await request(engine)
    session = await engine.session("s")

    with pytest.raises(NotApplicable):
        await HITL.approve(session, "c1")
    assert [t.kind for t in await HITL.get_pending_tasks(session)] == ["unknown"]


async def test_a_tool_name_that_fits_two_tasks_is_no_name_of_one(bench: Bench) -> None:
    _, session, tasks, _ = await asked(bench, call("change", n=1), call("change", n=2))

    with pytest.raises(AmbiguousTask):
        await HITL.get_pending_task_by_tool_name(session, "change")
    assert await HITL.get_pending_task_by_tool_name(session, "other") is None
    assert await HITL.get_pending_task(session) == tasks[0]
    assert await HITL.get_pending_task_by_call_uuid(session, tasks[1].call_uuid) == tasks[1]


async def test_several_decisions_are_taken_all_or_none(bench: Bench) -> None:
    _, session, (one, two), _ = await asked(bench, call("change", n=1), call("change", n=2))
    before = await stored(bench.store)

    for bad in ({"nope": HITLDecision.approve()}, {two.call_uuid: HITLDecision.rerun()}):
        with pytest.raises(DecisionRefused):
            await HITL.submit_all(session, {one.call_uuid: HITLDecision.approve(), **bad}, by="U2")

    assert await stored(bench.store) == before
    assert await HITL.get_pending_tasks(session) == (one, two)


async def test_one_task_under_two_names_is_not_decided_twice(bench: Bench) -> None:
    _, session, (task,), _ = await asked(bench)
    both = {task.call_uuid: HITLDecision.approve(), task.fingerprint: HITLDecision.reject()}

    with pytest.raises(AmbiguousTask):
        await asyncio.wait_for(HITL.submit_all(session, both, by="U2"), PATIENCE)


@pytest.mark.parametrize("others", ["same engine", "another engine"])
async def test_of_two_decisions_at_once_one_wins_and_there_is_one_execution(bench: Bench, others: str) -> None:
    engine, session, (task,), gated = await asked(bench)
    second = engine if others == "same engine" else bench.engine(ScriptedModel("x", "done"), [gated])
    also = await second.session("s")

    outcomes = await asyncio.gather(
        HITL.approve(session, task, by="U2"),
        HITL.reject(also, task, by="U3"),
        *(HITL.approve(also, task, by=f"U{n}") for n in range(4, 9)),
        return_exceptions=True,
    )

    assert sorted(type(o).__name__ for o in outcomes) == ["AlreadyDecided"] * 6 + ["NoneType"]
    await asyncio.gather(request(engine), request(second))
    assert len([e for e in await bench.store.read("s") if isinstance(e, HITLSubmitted)]) == 1
    assert len(gated.runs) == (outcomes[1] is not None)


async def test_a_decision_is_taken_though_others_append_without_telling_this_process(bench: Bench) -> None:
    """Another process's facts are not told here; looking at a state that is behind for ever would never end."""
    gate = asyncio.Event()
    engine, session, (task,), gated = await asked(bench, tool=change(hold=gate))
    await HITL.approve(session, task, by="U2")
    stream = asyncio.create_task(request(engine))
    await gated.started.reach()
    elsewhere = bench.store.reopen()  # type: ignore[attr-defined]
    await elsewhere.append("s", Prompted("meanwhile", "U9"))

    with pytest.raises(AlreadyDecided):
        await asyncio.wait_for(HITL.reject(session, task), PATIENCE)
    assert await asyncio.wait_for(engine.stop("s", by="U2"), PATIENCE)

    await stream
    await elsewhere.close()


async def test_a_decision_does_not_land_on_a_task_that_was_closed_a_moment_before(bench: Bench) -> None:
    engine, session, (task,), gated = await asked(bench)
    late = Late(bench.store)
    clicker = await bench.engine(ScriptedModel("x"), [gated], store=late).session("s")

    async def stop() -> None:
        await engine.stop(session, by="Ann")
        await engine.idle()

    late.before_append = stop

    with pytest.raises(AlreadyDecided):
        await HITL.approve(clicker, task, by="U2")
    assert "HITLSubmitted" not in await stored(bench.store)


# -- edits -------------------------------------------------------------------------------------------------------------


async def test_edited_arguments_are_checked_before_they_are_stored_and_the_task_stays_open(bench: Bench) -> None:
    engine, session, (task,), gated = await asked(bench, tool=change(schema=NUMBER))
    before = await stored(bench.store)

    for wrong in ({"n": "x"}, {"n": 1, "extra": 2}, {"n": None}):
        with pytest.raises(InvalidArguments):
            await HITL.submit(session, task, HITLDecision.approve(modified_args=wrong), by="U2")
    with pytest.raises(InvalidArguments):
        await HITL.submit(session, task, HITLDecision.approve(modified_args={}, replace_args=True), by="U2")

    assert await stored(bench.store) == before
    await HITL.submit(session, task, HITLDecision.approve(modified_args={"n": 2}), by="U2")
    await request(engine)
    assert gated.runs == [{"n": 2}]


async def test_an_edit_to_what_a_rule_denies_is_refused_and_a_deny_added_later_still_wins(bench: Bench) -> None:
    engine, session, (task,), gated = await asked(
        bench, tool=change(subject="n"), rules=[PermissionRule.deny("change", '{"n":66}')]
    )
    with pytest.raises(DeniedByPolicy):
        await HITL.submit(session, task, HITLDecision.approve(modified_args={"n": 66}), by="U2")
    await HITL.submit(session, task, HITLDecision.approve(modified_args={"n": 67}), by="U2")
    engine.add_permission_rule(PermissionRule.deny("change", '{"n":67}'))

    events = await request(engine)

    assert gated.runs == []
    facts = await bench.store.read("s")
    assert [e.outcome for e in facts if isinstance(e, ToolCallEnd)] == ["denied"]
    assert only(events, RunEnd).answer == "done"


async def test_an_edit_is_judged_as_it_was_made_and_not_as_a_hook_would_rewrite_it(bench: Bench) -> None:
    class Clamp:
        def before_tool(self, trace: Any, made: ToolCall) -> Rewrite | None:
            return Rewrite({"n": 50}) if made.args["n"] > 50 else None

    deny = PermissionRule.deny("change", '{"n":66}')
    _, session, (task,), _ = await asked(bench, tool=change(subject="n"), rules=[deny], interceptors=[Clamp()])

    with pytest.raises(DeniedByPolicy):
        await HITL.submit(session, task, HITLDecision.approve(modified_args={"n": 66}), by="U2")


async def test_an_edited_call_is_looked_at_when_it_is_edited_and_compared_before_it_runs(bench: Bench) -> None:
    world = {"a": "old", "b": "old"}
    tool = change(inspect=lambda args: Inspection(world[args["path"]], problem="" if args["path"] != "c" else "none"))
    world["c"] = ""
    for name, expected in (("s", "ok"), ("t", "not_run")):
        engine = bench.engine(ScriptedModel([call("change", path="a")], "done"), [tool])
        task = only(await request(engine, "hi", name), HITLPending).tasks[0]
        session = await engine.session(name)
        with pytest.raises(InvalidArguments, match="none"):
            await HITL.submit(session, task, HITLDecision.approve(modified_args={"path": "c"}), by="U2")
        await HITL.submit(session, task, HITLDecision.approve(modified_args={"path": "b"}), by="U2")
        world["b"] = "old" if expected == "ok" else "new"

        assert only(await request(engine, "", name), ToolCallEnd).outcome == expected


async def test_an_unchanged_edit_is_a_plain_approval(bench: Bench) -> None:
    model = ScriptedModel([call("change", n=1, m={"a": [1]})], "done")
    engine = bench.engine(model, [change(result="ok")])
    await request(engine, "hi")
    session = await engine.session("s")
    (task,) = await HITL.get_pending_tasks(session)
    same = HITLDecision.approve(modified_args={"m": {"a": [1]}, "n": 1}, replace_args=True)
    await HITL.submit(session, task, same, by="U2")

    decided = only(await request(engine), HITLDecided)

    assert decided.decision == Approve()
    assert model.requests[-1].messages[-1].content == "ok"


@pytest.mark.parametrize("value", [True, 1.0])
async def test_one_and_true_and_one_point_nought_are_different_arguments(bench: Bench, value: Any) -> None:
    engine, session, (task,), gated = await asked(bench)
    await HITL.submit(session, task, HITLDecision.approve(modified_args={"n": value}), by="U2")

    ended = only(await request(engine), ToolCallEnd)

    assert type(gated.runs[0]["n"]) is type(value)
    assert "changed the arguments" in ended.content


async def test_the_journal_keeps_proposed_shown_approved_and_effective_arguments_and_the_model_reads_the_last(
    bench: Bench,
) -> None:
    class Clamp:
        def before_tool(self, trace: Any, made: ToolCall) -> Rewrite | None:
            return Rewrite({"n": 50}) if made.args["n"] > 50 else None

    model, gated = ScriptedModel([call("change", n=100)], "done"), change()
    engine = bench.engine(model, [gated], interceptors=[Clamp()])
    shown = only(await request(engine, "hi"), HITLPending).tasks[0]
    await HITL.submit(await engine.session("s"), shown, HITLDecision.approve(modified_args={"n": 99}), by="Ann")

    decided = only(await request(engine), HITLDecided)

    started = only(await bench.store.read("s"), ToolCallStart)
    assert (decided.proposed, shown.args, decided.approved, started.effective) == (
        {"n": 100},
        {"n": 50},
        {"n": 99},
        {"n": 99},
    )
    assert gated.runs == [{"n": 99}]
    assert 'Ann changed the arguments before approving; it was run with {"n":99}' in (
        model.requests[-1].messages[-1].content
    )


async def test_what_a_hook_rewrote_is_what_is_shown_and_what_runs(bench: Bench) -> None:
    class Clamp:
        def before_tool(self, trace: Any, made: ToolCall) -> Rewrite | None:
            return Rewrite({"n": 50}) if made.args["n"] > 50 else None

    engine, session, (task,), gated = await asked(bench, call("change", n=100), interceptors=[Clamp()])
    await HITL.approve(session, task, by="U2")
    await request(engine)

    assert task.args == {"n": 50}
    assert gated.runs == [{"n": 50}]


async def test_what_a_verdict_rested_on_is_compared_before_it_runs(bench: Bench) -> None:
    world = {"file": "old"}
    tool = change(inspect=lambda args: Inspection(f"-{world['file']}", "diff"))
    model = ScriptedModel([call("change", n=1)], "done")
    engine = bench.engine(model, [tool])
    task = only(await request(engine, "hi"), HITLPending).tasks[0]
    await HITL.approve(await engine.session("s"), task, by="U2")
    world["file"] = "new"

    events = await request(engine)

    assert (task.preview, task.preview_kind) == ("-old", "diff")
    assert only(events, ToolCallEnd).outcome == "not_run"
    assert "changed since it was shown" in only(events, ToolCallEnd).content
    assert tool.runs == []


async def test_a_preview_of_bytes_that_are_no_text_is_shown_as_far_as_it_is(bench: Bench) -> None:
    tool = change(inspect=lambda args: Inspection("caf\udce9", paths=("/a\udcff",)))

    engine, session, (task,), gated = await asked(bench, tool=tool)
    await HITL.approve(session, task, by="U2")
    await request(engine)

    assert task.preview == "caf?"
    assert len(gated.runs) == 1


# -- always allow ------------------------------------------------------------------------------------------------------


async def test_always_allow_lets_exactly_that_call_through_from_then_on_and_not_one_character_more(
    bench: Bench,
) -> None:
    told: list[Any] = []
    interceptor = HITLInterceptor().on_approved(lambda *what: told.append(what))
    gated = change()
    model = ScriptedModel(
        [call("change", n=1)], [call("change", n=1)], [call("change", n=10)], [call("change", n=1, m=1)], "done"
    )
    engine = bench.engine(model, [gated], hitl_interceptor=interceptor)
    await request(engine, "hi")
    session = await engine.session("s")
    (task,) = await HITL.get_pending_tasks(session)
    await HITL.approve(session, task, by="Ann", always_allow=True)

    events = await request(engine)

    assert gated.runs == [{"n": 1}, {"n": 1}]
    assert [t.args for t in only(events, HITLPending).tasks] == [{"n": 10}]
    assert told == [("change", {"n": 1})]
    rule = only(await bench.store.read("s"), RuleChanged)
    assert (rule.rule, rule.by, rule.key) == (
        PermissionRule.exactly("change", {"n": 1}),
        "Ann",
        f"always:{task.fingerprint}",
    )
    await request(engine, "hi", "t")
    assert len(await HITL.get_pending_tasks(await engine.session("t"))) == 1  # another session asks


async def test_the_rule_is_appended_together_with_the_decision(bench: Bench) -> None:
    appended: list[list[str]] = []
    forget = bench.store.changed(lambda _, facts: appended.append([type(f).__name__ for f in facts]))
    _, session, (task,), _ = await asked(bench)
    await HITL.approve(session, task, by="U2", always_allow=True)
    forget()

    assert appended[-1] == ["HITLSubmitted", "RuleChanged"]


async def test_a_plain_approval_leaves_no_rule_and_calls_nobody_back(bench: Bench) -> None:
    told: list[Any] = []
    interceptor = HITLInterceptor().on_approved(lambda *what: told.append(what))
    engine, session, (task,), _ = await asked(bench, hitl_interceptor=interceptor)
    await HITL.approve(session, task)
    await request(engine)

    assert told == []
    assert "RuleChanged" not in await stored(bench.store)


async def test_always_for_an_edited_call_allows_the_edited_one(bench: Bench) -> None:
    engine, session, (task,), _ = await asked(bench)
    await HITL.submit(session, task, HITLDecision.approve(True, modified_args={"n": 7}), by="U2")
    await request(engine)

    assert (await session.trace()).rules == (PermissionRule.exactly("change", {"n": 7}),)


async def test_always_is_refused_where_it_would_not_work(bench: Bench) -> None:
    class Careful:
        def before_tool(self, trace: Any, made: ToolCall) -> Ask:
            return Ask("every time")

    for options in ({"interceptors": [Careful()]}, {"rules": [PermissionRule.ask("change")]}):
        engine = bench.engine(ScriptedModel([call("change")], "done"), [change()], **options)  # type: ignore[arg-type]
        sid = f"s{len(bench.engines)}"
        await request(engine, "hi", sid)
        session = await engine.session(sid)
        (task,) = await HITL.get_pending_tasks(session)

        assert not task.may_always
        with pytest.raises(NotApplicable):
            await HITL.approve(session, task, always_allow=True)
        await HITL.approve(session, task)


async def test_an_interceptor_of_ones_own_remembers_too_unless_told_not_to(bench: Bench) -> None:
    for interceptor, rules in ((HITLInterceptor(), 1), (HITLInterceptor(remember=None), 0)):
        session_id = f"s{rules}"
        engine = bench.engine(ScriptedModel([call("change")], "done"), [change()], hitl_interceptor=interceptor)
        await request(engine, "hi", session_id)
        session = await engine.session(session_id)
        await HITL.approve(session, (await HITL.get_pending_tasks(session))[0], always_allow=True)

        assert len((await session.trace()).rules) == rules


async def test_a_callback_that_fails_is_in_nobodys_way(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    def broken(tool: str, args: Any) -> None:
        raise RuntimeError("boom")

    interceptor = HITLInterceptor().on_approved(broken)
    engine, session, (task,), gated = await asked(bench, hitl_interceptor=interceptor)
    await HITL.approve(session, task, always_allow=True)

    assert only(await request(engine), RunEnd).answer == "done"
    assert len(gated.runs) == 1
    assert "callback failed" in caplog.text


# -- rules and settings that change meanwhile --------------------------------------------------------------------------


async def test_a_rule_added_while_calls_wait_releases_those_it_allows_and_names_itself(bench: Bench) -> None:
    engine, session, tasks, gated = await asked(bench, *(call("change", n=n) for n in (1, 2, 3)))
    rule = PermissionRule.exactly("change", {"n": 1})
    await engine.change_rule(session, rule, by="Ann")
    await engine.idle()

    assert await HITL.get_pending_tasks(session) == tasks[1:]
    assert gated.runs == []
    (released,) = [e for e in await bench.store.read("s") if isinstance(e, HITLSubmitted)]
    assert (released.by, released.via) == (f"rule {rule.id}", "release")
    engine.add_permission_rule(PermissionRule.allow("change"))
    await asyncio.sleep(0)
    await settled(engine)
    assert [r["n"] for r in gated.runs] == [1, 2, 3]


async def settled(engine: HarnessEngine) -> None:
    """Until all sessions that a change of settings wakes have been looked at."""
    while engine._background.tasks or engine._serving.lives:
        await asyncio.gather(*engine._background.tasks)
        await engine.idle()


async def test_a_rule_added_while_calls_wait_denies_them_at_once(bench: Bench) -> None:
    engine, session, _, gated = await asked(bench)
    engine.add_permission_rule(PermissionRule.deny("change"))
    await settled(engine)

    assert await HITL.get_pending_tasks(session) == ()
    assert gated.runs == []
    assert (await session.trace()).answer == "done"
    assert [e.outcome for e in await bench.store.read("s") if isinstance(e, ToolCallEnd)] == ["denied"]


async def test_a_deny_added_between_approval_and_resumption_wins(bench: Bench) -> None:
    engine, session, (task,), gated = await asked(bench)
    await HITL.approve(session, task, by="U2")
    await bench.store.append("s", RuleChanged("added", PermissionRule.deny("change"), "Ann"))

    events = await request(engine)

    assert gated.runs == []
    assert "Denied" in only(events, ToolCallEnd).content


async def test_a_deny_that_lands_while_the_call_is_looked_at_once_more_wins_whoever_else_is_looking(
    bench: Bench,
) -> None:
    looking, go = asyncio.Event(), asyncio.Event()

    class Slow(RecordingTool):
        async def inspect(self, args: Any, context: Any) -> Inspection:
            if approved:
                looking.set()
                await go.wait()
            return Inspection("x")

    approved = False
    tool = Slow("change", inspect=lambda args: Inspection("x"))
    engine, session, (task,), _ = await asked(bench, tool=tool)
    await HITL.approve(session, task, by="U2")
    approved = True
    stream = asyncio.create_task(request(engine))
    await looking.wait()
    await engine.change_rule(session, PermissionRule.deny("change"), by="Ann")
    await session.trace()  # somebody else reads the session, and so moves the engine's view of it on
    go.set()

    await stream

    assert tool.runs == []


async def test_a_deny_that_lands_while_the_policy_is_asked_for_wins(bench: Bench) -> None:
    asking, go = asyncio.Event(), asyncio.Event()

    async def adjust(session_id: str, policy: Any) -> Any:
        if approved:
            asking.set()
            await go.wait()
        return policy

    approved = False
    engine, session, (task,), gated = await asked(bench, adjust=adjust)
    await HITL.approve(session, task, by="U2")
    approved = True
    stream = asyncio.create_task(request(engine))
    for _ in range(3):  # going on, applying the decision, acting
        await asking.wait()
        asking.clear()
        go.set()
        await asyncio.sleep(0)
        go.clear()
        if "HITLDecided" in await stored(bench.store):
            break
    await asking.wait()
    await engine.change_rule(session, PermissionRule.deny("change"), by="Ann")
    await session.trace()
    approved = False
    go.set()

    await stream

    assert gated.runs == []


async def test_approvals_switched_off_turn_asking_into_a_refusal_that_says_so(bench: Bench) -> None:
    gated = change()
    model = ScriptedModel([call("look"), call("change", n=1)], "done")
    engine = bench.engine(model, [RecordingTool("look", read_only=True), gated])
    engine.set_hitl_enabled(False)

    events = await request(engine, "hi")

    assert gated.runs == []
    assert [e.outcome for e in events if isinstance(e, ToolCallEnd)] == ["denied", "ok"]
    assert "approvals are off" in model.requests[-1].messages[-1].content


async def test_without_the_tool_hitl_nobody_can_be_asked(bench: Bench) -> None:
    gated = change()
    model = ScriptedModel([call("change", n=1)], "done")
    engine = HarnessEngine(
        bench.folder, bench.folder, model=model, tools=[gated], store=bench.store, clock=bench.clock, hitl_enabled=True
    )
    bench.engines.append(engine)

    await request(engine, "hi")

    assert gated.runs == []
    assert "nobody can be asked" in model.requests[-1].messages[-1].content


async def test_tasks_stay_decidable_while_approvals_are_off(bench: Bench) -> None:
    engine, session, (task,), gated = await asked(bench)
    engine.set_hitl_enabled(False)
    await settled(engine)
    assert await HITL.get_pending_tasks(session) == (task,)
    await HITL.approve(session, task, by="U2")

    await request(engine)

    assert gated.runs == [{"n": 1}]


@pytest.mark.parametrize("meanwhile", ["approvals on", "deny removed", "prompt"])
async def test_what_was_refused_does_not_run_because_something_changed_while_a_sibling_ran(
    bench: Bench, meanwhile: str
) -> None:
    gate = asyncio.Event()
    note, gated = RecordingTool("note", read_only=True, hold=gate), change()
    first = [[call("change", n=1)]] if meanwhile == "prompt" else []
    engine = bench.engine(ScriptedModel(*first, [call("note"), call("change", n=1)], "done"), [note, gated])
    session = await engine.session("s")
    deny = PermissionRule.deny("change")
    if meanwhile == "approvals on":
        engine.set_hitl_enabled(False)
    if meanwhile == "deny removed":
        await engine.change_rule(session, deny)
    if meanwhile == "prompt":
        await request(engine, "hi")
        (task,) = await HITL.get_pending_tasks(session)
        await HITL.submit(session, task, HITLDecision.reject("no", end=False))
    stream = asyncio.create_task(request(engine, "" if first else "hi"))
    await note.started.reach()
    if meanwhile == "approvals on":
        engine.set_hitl_enabled(True)
    if meanwhile == "deny removed":
        await engine.change_rule(session, deny, add=False)
    if meanwhile == "prompt":
        await engine.prompt(session, "go on")
    gate.set()

    await stream

    assert gated.runs == []


async def test_a_strategy_added_while_the_engine_runs_counts_from_the_next_look_on(bench: Bench) -> None:
    look = RecordingTool("look", read_only=True)
    engine = bench.engine(ScriptedModel([call("look")], "a", [call("look")], "b"), [look])
    await request(engine, "hi")
    engine.hitl_interceptor.on_sensitive_tool("look")

    assert only(await request(engine, "again"), RunEnd).status == "pending"
    assert len(look.runs) == 1


# -- time --------------------------------------------------------------------------------------------------------------


async def test_a_late_decision_stores_the_expiry_then_is_refused_and_stays_so(bench: Bench) -> None:
    engine, session, (task,), gated = await asked(bench, expiries={"change": Expiry(60)})
    late = bench.engine(ScriptedModel("x", "done"), [gated], expiries={"change": Expiry(60)})
    await engine.close()  # nobody's alarm rings
    bench.clock.advance(60)
    session = await late.session("s")

    with pytest.raises(TaskExpired):
        await HITL.approve(session, task, by="U2")

    (fact,) = [e for e in await bench.store.read("s") if isinstance(e, HITLSubmitted)]
    assert fact.decision == Expired()
    for _ in range(2):
        with pytest.raises(TaskExpired):
            await HITL.approve(session, task, by="U2")
        await request(late)
    assert gated.runs == []


async def test_each_tool_expires_as_it_was_told_halt_tell_or_never(bench: Bench) -> None:
    expiries = {"halts": Expiry(60, "halt"), "tells": Expiry(60, "tell")}
    tools = [RecordingTool(name) for name in ("halts", "tells", "waits")]
    for tool in tools:
        name = tool.spec.name
        engine = bench.engine(ScriptedModel([call(name)], "went on"), tools, expiries=expiries)
        await request(engine, "hi", name)
    for engine in bench.engines:
        await engine.close()
    bench.clock.advance(10 * 365 * 86400.0)
    engine = bench.engine(ScriptedModel("x", "went on"), tools, expiries=expiries)
    await engine.start()
    await engine.idle()

    ends = {}
    for tool in tools:
        facts = await bench.store.read(tool.spec.name)
        ends[tool.spec.name] = [e.status for e in facts if isinstance(e, RunEnd)]
    assert ends == {"halts": ["stopped"], "tells": ["completed"], "waits": []}
    assert len(await HITL.get_pending_tasks(await engine.session("waits"))) == 1
    assert all(not tool.runs for tool in tools)


async def test_an_alarm_wakes_the_session_at_the_earliest_expiry(bench: Bench) -> None:
    engine, session, _, _ = await asked(bench, expiries={"change": Expiry(60)})
    await bench.clock.naps.reach(1)
    bench.clock.advance(59)
    await asyncio.sleep(0)
    await engine.idle()
    assert len(await HITL.get_pending_tasks(session)) == 1
    bench.clock.advance(1)
    while (await session.trace()).run:
        await engine.idle()
        await asyncio.sleep(0)

    assert (await session.trace()).answer == "done"


async def test_waiting_is_charged_to_nothing(bench: Bench) -> None:
    tool = change(timeout=10.0)
    engine, session, (task,), _ = await asked(bench, tool=tool, model_timeout=5.0)
    bench.clock.advance(86400 * 30)
    await HITL.approve(session, task, by="U2")

    assert only(await request(engine), RunEnd).status == "completed"
    assert tool.contexts[0].deadline.left(bench.clock.monotonic()) == 10.0
