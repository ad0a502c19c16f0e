"""Rules that want several people: approvals are votes, and the last one that is wanted decides."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_core.engine import HarnessEngine
from harness_core.errors import (
    AlreadyDecided,
    AlreadyVoted,
    ConfigError,
    DecisionRefused,
    DeniedByPolicy,
    NotApplicable,
)
from harness_core.events import HITLPending, HITLSubmitted, HITLVoted
from harness_core.handle import HITL, AgentSession
from harness_core.hitl import HITLDecision, HITLTask
from harness_core.hooks import Rewrite
from harness_core.permissions.rule import MOST_PEOPLE, PermissionRule
from harness_core.session import Trace
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.types import ToolCall
from tests.engine.harness import Bench, request
from tests.engine.test_subagents import HAND_OVER, WORKER, Cast

TWO = PermissionRule.ask("change", people=2)
APPROVE = HITLDecision.approve()


class Tests:
    """A hook that has what is deployed tested instead."""

    def before_tool(self, trace: Trace, call: ToolCall) -> Rewrite | None:
        return Rewrite({"command": "make test"}) if call.args["command"] == "make deploy" else None


async def asked(
    bench: Bench, *rules: PermissionRule, **more: Any
) -> tuple[HarnessEngine, AgentSession, HITLTask, RecordingTool]:
    """A session that waits for several people."""
    tool = RecordingTool("change")
    model = more.pop("model", None) or ScriptedModel(call("change", n=1), "done")
    engine = bench.engine(model, [tool], rules=rules or (TWO,), **more)
    await request(engine, "hi")
    session = await engine.session("s")
    (task,) = await HITL.get_pending_tasks(session)
    return engine, session, task, tool


def delegating() -> Cast:
    """A model whose sub-agent makes the call."""
    return Cast([HAND_OVER, "all done"], worker=[call("change", n=1), "did it"])


async def runs_with_the_second(
    engine: HarnessEngine, session: AgentSession, task: HITLTask, tool: RecordingTool
) -> None:
    await HITL.approve(session, task, by="U1")
    await request(engine)
    assert tool.runs == []

    await HITL.approve(session, task, by="U2")
    await request(engine)
    assert len(tool.runs) == 1


async def voters(bench: Bench) -> list[str]:
    return [fact.by for fact in await bench.store.read("s") if isinstance(fact, HITLVoted)]


async def test_nothing_runs_before_as_many_people_approved_as_the_rule_wants(bench: Bench) -> None:
    engine, session, task, tool = await asked(bench)
    assert task.people == 2

    await HITL.approve(session, task, by="U1")
    await request(engine)
    assert tool.runs == []
    assert await session.is_pending()

    await HITL.approve(session, task, by="U2")
    await request(engine)

    assert len(tool.runs) == 1
    assert await voters(bench) == ["U1", "U2"]
    assert [f.by for f in await bench.store.read("s") if isinstance(f, HITLSubmitted)] == ["U2"]


async def test_votes_are_still_there_after_a_restart(bench: Bench) -> None:
    model = ScriptedModel(call("change", n=1), "done")
    _, session, task, tool = await asked(bench, model=model)
    await HITL.approve(session, task, by="U1")
    await bench.drop()

    engine = bench.engine(model, [tool], rules=(TWO,))
    session = await engine.session("s")
    with pytest.raises(AlreadyVoted):
        await HITL.approve(session, task, by="U1")
    await HITL.approve(session, task, by="U2")
    await request(engine)

    assert len(tool.runs) == 1


async def test_a_person_has_one_vote(bench: Bench) -> None:
    engine, session, task, tool = await asked(bench)
    await HITL.approve(session, task, by="U1")

    with pytest.raises(AlreadyVoted):
        await HITL.approve(session, task, by="U1")

    await request(engine)
    assert (await voters(bench), tool.runs) == (["U1"], [])


@pytest.mark.parametrize("same", [" U1", "U1\n", "u1", "U\u200b1", "\uff351"])
async def test_another_spelling_of_a_person_is_the_same_person(bench: Bench, same: str) -> None:
    engine, session, task, tool = await asked(bench)
    await HITL.approve(session, task, by="U1")

    with pytest.raises(AlreadyVoted):
        await HITL.approve(session, task, by=same)

    await request(engine)
    assert (await voters(bench), tool.runs) == (["U1"], [])


@pytest.mark.parametrize("nobody", ["", " ", "\n", "\u200b"])
async def test_who_does_not_say_who_they_are_has_no_vote(bench: Bench, nobody: str) -> None:
    _, session, task, _ = await asked(bench)

    with pytest.raises(NotApplicable, match="2 people"):
        await HITL.approve(session, task, by=nobody)

    assert await voters(bench) == []


@pytest.mark.parametrize("decision", [HITLDecision.reject("no"), HITLDecision.skip(done=True)])
async def test_one_who_does_not_want_it_to_run_decides_alone(bench: Bench, decision: Any) -> None:
    engine, session, task, tool = await asked(bench)
    await HITL.approve(session, task, by="U1")

    await HITL.submit(session, task, decision, by="U2")

    await request(engine)
    with pytest.raises(AlreadyDecided):
        await HITL.approve(session, task, by="U3")
    assert tool.runs == []


async def test_all_approve_the_call_as_it_was_shown(bench: Bench) -> None:
    _, session, task, _ = await asked(bench)

    with pytest.raises(DecisionRefused, match="2 people must approve"):
        await HITL.submit(session, task, HITLDecision.approve(modified_args={"n": 2}), by="U1")

    assert await voters(bench) == []


async def test_an_edit_by_one_does_not_reach_what_several_must_approve(bench: Bench) -> None:
    tool = RecordingTool("bash")
    engine = bench.engine(
        ScriptedModel(call("bash", command="make test"), "done"),
        [tool],
        rules=(PermissionRule.ask("bash", "make deploy *", people=2),),
    )
    await request(engine, "hi")
    session = await engine.session("s")
    (task,) = await HITL.get_pending_tasks(session)
    assert task.people == 1

    edit = HITLDecision.approve(modified_args={"command": "make deploy now"})
    with pytest.raises(DeniedByPolicy, match="2 people"):
        await HITL.submit(session, task, edit, by="U1")

    assert tool.runs == []


async def test_an_edit_back_to_what_a_hook_had_changed_reaches_no_more(bench: Bench) -> None:
    tool = RecordingTool("bash")
    engine = bench.engine(
        ScriptedModel(call("bash", command="make deploy"), "done"),
        [tool],
        rules=(PermissionRule.ask("bash", "make deploy", people=2),),
        interceptors=[Tests()],
    )
    await request(engine, "hi")
    session = await engine.session("s")
    (task,) = await HITL.get_pending_tasks(session)
    assert (task.args, task.people) == ({"command": "make test"}, 1)

    with pytest.raises(DeniedByPolicy, match="2 people"):
        await HITL.submit(session, task, HITLDecision.approve(modified_args={"command": "make deploy"}), by="U1")

    await request(engine)
    assert tool.runs == []


async def test_the_rule_that_wants_the_most_people_counts(bench: Bench) -> None:
    allow, one, three = PermissionRule.allow("change"), PermissionRule.ask("change"), PermissionRule.ask("*", people=3)

    _, _, task, _ = await asked(bench, allow, one, TWO, three)

    assert task.people == 3


async def test_a_rule_about_another_call_wants_nobody_for_this_one(bench: Bench) -> None:
    _, _, task, _ = await asked(bench, PermissionRule.ask("bash", "git push *", people=2))

    assert task.people == 1


async def test_the_last_two_at_once_make_one_run(bench: Bench) -> None:
    engine, session, task, tool = await asked(bench, PermissionRule.ask("change", people=3))
    await HITL.approve(session, task, by="U1")

    votes = (HITL.submit(session, task.fingerprint, APPROVE, by=by) for by in ("U2", "U3", "U4"))
    ends = await asyncio.gather(*votes, return_exceptions=True)

    await request(engine)
    assert [type(end) for end in ends if end is not None] == [AlreadyDecided]
    assert (len(await voters(bench)), len(tool.runs)) == (3, 1)


async def test_a_deny_that_comes_between_two_votes_wins(bench: Bench) -> None:
    engine, session, task, tool = await asked(bench)
    await HITL.approve(session, task, by="U1")

    engine.add_permission_rule(PermissionRule.deny("change"))
    await request(engine)

    with pytest.raises(AlreadyDecided):
        await HITL.approve(session, task, by="U2")
    assert tool.runs == []


async def test_a_call_of_unknown_outcome_is_run_again_by_as_many(bench: Bench) -> None:
    tool, model = RecordingTool("change", hold=asyncio.Event()), ScriptedModel(call("change", n=1), "done")
    engine = bench.engine(model, [tool], rules=(TWO,))
    await request(engine, "hi")
    session = await engine.session("s")
    (task,) = await HITL.get_pending_tasks(session)
    for by in ("U1", "U2"):
        await HITL.approve(session, task, by=by)
    going = asyncio.create_task(request(engine))
    await tool.started.reach(1)
    going.cancel()
    await asyncio.gather(going, return_exceptions=True)
    await bench.drop()

    again = RecordingTool("change")
    engine = bench.engine(model, [again], rules=(TWO,))
    await request(engine)
    session = await engine.session("s")
    (lost,) = await HITL.get_pending_tasks(session)
    assert (lost.kind, lost.people) == ("unknown", 2)

    await HITL.submit(session, lost, HITLDecision.rerun(), by="U1")
    await request(engine)
    assert again.runs == []
    await HITL.submit(session, lost, HITLDecision.rerun(), by="U2")
    await request(engine)
    assert len(again.runs) == 1


async def test_a_sub_agents_call_waits_for_as_many_in_the_thread(bench: Bench) -> None:
    engine, session, task, tool = await asked(bench, model=delegating(), agents=[WORKER])
    assert (task.agent, task.people) == ("worker", 2)

    await runs_with_the_second(engine, session, task, tool)


async def test_what_a_sub_agent_asks_is_decided_in_the_session_alone(bench: Bench) -> None:
    engine, _, task, _ = await asked(bench, model=delegating(), agents=[WORKER])
    inner = AgentSession(engine, task.session)
    (its,) = await HITL.get_pending_tasks(inner)

    for decision in (APPROVE, HITLDecision.reject("no")):
        with pytest.raises(NotApplicable, match="in the session"):
            await HITL.submit(inner, its, decision, by="U1")

    assert not (await inner.trace()).batch[0].votes


async def test_a_rule_that_comes_while_a_card_waits_wants_its_people_for_that_too(bench: Bench) -> None:
    engine, session, task, tool = await asked(bench, PermissionRule.ask("change"))
    await engine.change_rule(session, TWO, by="admin")

    await runs_with_the_second(engine, session, task, tool)


async def test_a_rule_that_comes_while_a_sub_agents_card_waits_counts_for_that_too(bench: Bench) -> None:
    one = PermissionRule.ask("change")
    engine, session, task, tool = await asked(bench, one, model=delegating(), agents=[WORKER])
    await engine.change_rule(session, TWO, by="admin")

    await HITL.approve(session, task, by="U1")
    await request(engine)

    assert tool.runs == []


async def test_approvals_that_are_enough_since_a_rule_went_let_one_of_these_people_decide(bench: Bench) -> None:
    three = PermissionRule.ask("change", people=3)
    engine, session, task, tool = await asked(bench)
    engine.add_permission_rule(three)
    for by in ("U1", "U2"):
        await HITL.approve(session, task, by=by)
    engine.remove_permission_rule(three)

    await HITL.approve(session, task, by="U1")
    await request(engine)

    assert (await voters(bench), len(tool.runs)) == (["U1", "U2"], 1)


async def test_one_of_several_approvals_makes_no_rule(bench: Bench) -> None:
    engine, session, task, _ = await asked(bench, PermissionRule.ask("bash"))
    assert task.may_always
    engine.add_permission_rule(TWO)

    with pytest.raises(NotApplicable, match="approved once"):
        await HITL.approve(session, task, by="U1", always_allow=True)

    assert (await session.trace()).rules == ()


async def test_a_call_that_a_rule_let_run_is_run_again_by_as_many_as_rules_want_now(bench: Bench) -> None:
    tool, model = RecordingTool("change", hold=asyncio.Event()), ScriptedModel(call("change", n=1), "done")
    going = asyncio.create_task(request(bench.engine(model, [tool], rules=(PermissionRule.allow("change"),)), "hi"))
    await tool.started.reach(1)
    going.cancel()
    await asyncio.gather(going, return_exceptions=True)
    await bench.drop()

    engine = bench.engine(model, [RecordingTool("change")], rules=(TWO,))
    await request(engine)
    (lost,) = await HITL.get_pending_tasks(await engine.session("s"))

    assert (lost.kind, lost.people) == ("unknown", 2)


async def test_the_card_keeps_its_number_when_the_rule_goes(bench: Bench) -> None:
    engine, session, task, tool = await asked(bench)
    engine.remove_permission_rule(TWO)

    await HITL.approve(session, task, by="U1")
    await request(engine)

    assert tool.runs == []
    (pending,) = [fact for fact in await bench.store.read("s") if isinstance(fact, HITLPending)]
    assert pending.tasks[0].people == 2


@pytest.mark.parametrize("people", [0, -1, MOST_PEOPLE + 1, 2.0, "2", True, None])
async def test_no_rule_wants_a_number_of_people_that_there_cannot_be(bench: Bench, people: Any) -> None:
    with pytest.raises(ConfigError, match="people"):
        bench.engine(ScriptedModel("x"), rules=(PermissionRule.ask("change", people=people),))


@pytest.mark.parametrize("effect", ["allow", "deny"])
async def test_only_a_rule_that_asks_wants_people(bench: Bench, effect: Any) -> None:
    with pytest.raises(ConfigError, match="several people"):
        bench.engine(ScriptedModel("x"), rules=(PermissionRule(effect, "change", people=2),))
