"""Sub-agents: a session within a session, with its own context and caps, and never with more rights."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from harness_core.agents import Agent
from harness_core.errors import AlreadyDecided, ConfigError, DeniedByPolicy, InvalidArguments
from harness_core.events import (
    HITLDecided,
    HITLPending,
    HITLSubmitted,
    HookRuled,
    Prompted,
    ReasonEnd,
    RuleChanged,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision
from harness_core.hooks import Observe, Rewrite
from harness_core.interceptors.budget import Budget
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ModelReply, ModelRequest
from harness_core.session import Trace
from harness_core.steps import Expiry
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.types import ToolCall, Usage
from tests.engine.harness import Bench, names, only, request, stored, until

WORKER = Agent("worker", "Does the work.", "You are the worker.")
HAND_OVER = call("task", agent="worker", prompt="do it")


class Cast:
    """A model that speaks for each agent by its system prompt."""

    name = "cast"

    def __init__(self, main: Sequence[Any], **agents: Sequence[Any]) -> None:
        self.main = ScriptedModel(*main)
        self.agents = {f"You are the {name}.": ScriptedModel(*script) for name, script in agents.items()}

    def stream(self, request: ModelRequest, deadline: Any) -> Any:
        return self.agents.get(request.system, self.main).stream(request, deadline)

    def of(self, name: str) -> ScriptedModel:
        return self.agents[f"You are the {name}."]


def tools() -> dict[str, RecordingTool]:
    look = RecordingTool("look", read_only=True, repeatable=True, result="it is 0")
    return {"look": look, "change": RecordingTool("change"), "log": RecordingTool("log")}


async def child(bench: Bench, session_id: str = "s") -> str:
    (name,) = await bench.store.sessions(f"{session_id}/")
    return name


async def decide(engine: Any, decision: Any, by: str = "U2") -> None:
    session = await engine.session("s")
    for task in await HITL.get_pending_tasks(session):
        await HITL.submit(session, task, decision, by=by)


# -- work handed over --------------------------------------------------------------------------------------------------


async def test_the_answer_of_a_sub_agent_is_the_result_of_the_call(bench: Bench) -> None:
    model = Cast([HAND_OVER, "all done"], worker=[call("look"), "found 0"])
    engine = bench.engine(model, [*tools().values()], agents=[WORKER])

    events = await request(engine, "go")

    assert " ".join(names(events)) == (
        "RunStart ContextSize ReasonStart ReasonEnd ActionStart ToolCallStart ToolCallEnd ActionEnd "
        "ContextSize ReasonStart ReasonDelta ReasonEnd RunEnd"
    )
    assert only(events, ToolCallEnd).content == "found 0"
    assert only(events, RunEnd).answer == "all done"
    assert [m.content for m in model.of("worker").requests[0].messages] == ["do it"]


async def test_its_journal_is_named_after_the_call_and_lies_within_the_session(bench: Bench) -> None:
    engine = bench.engine(Cast([HAND_OVER, "done"], worker=["ok"]), agents=[WORKER])

    events = await request(engine, "go")

    start = only(events, ToolCallStart)
    assert start.child == await child(bench) == f"s/{start.call.call_uuid}"
    assert await stored(bench.store, start.child) == ["Prompted", "RunStart", "ReasonEnd", "RunEnd"]
    assert not await bench.store.unfinished(bench.clock.now() + 1e6)


async def test_nobody_else_holds_the_journal_of_a_sub_agent_meanwhile(bench: Bench) -> None:
    gate = asyncio.Event()
    look = RecordingTool("look", read_only=True, hold=gate)
    engine = bench.engine(Cast([HAND_OVER, "done"], worker=[call("look"), "ok"]), [look], agents=[WORKER])
    running = asyncio.create_task(request(engine, "go"))
    await look.started.reach()

    async with bench.store.lease(await child(bench)) as lease:
        assert lease is None

    gate.set()
    await running


async def test_a_sub_agent_has_the_tools_of_its_file_and_none_that_hands_work_on(bench: Bench) -> None:
    agents = [WORKER, Agent("reader", "Reads.", "You are the reader.", ("look",))]
    script = [[HAND_OVER, call("task", agent="reader", prompt="read")], "done"]
    model = Cast(script, worker=["ok"], reader=[call("change"), "ok"])
    engine = bench.engine(model, [*(table := tools()).values()], agents=agents)

    await request(engine, "go")

    assert [t.name for t in model.main.requests[0].tools] == ["look", "change", "log", "task"]
    assert [t.name for t in model.of("worker").requests[0].tools] == ["look", "change", "log"]
    assert [t.name for t in model.of("reader").requests[0].tools] == ["look"]
    assert model.of("reader").requests[1].messages[-1].content == "There is no tool “change”. There are: look."
    assert table["change"].runs == []


async def test_two_tasks_of_one_message_are_done_one_after_the_other(bench: Bench) -> None:
    script = [[call("task", agent="worker", prompt="a"), call("task", agent="worker", prompt="b")], "done"]
    model = Cast(script, worker=[lambda r: f"did {r.messages[0].content}"])
    engine = bench.engine(model, agents=[WORKER])

    events = await request(engine, "go")

    assert [e.content for e in events if isinstance(e, ToolCallEnd)] == ["did a", "did b"]
    assert len(await bench.store.sessions("s/")) == 2


async def test_an_agent_that_may_hands_work_on_and_no_deeper_than_two(bench: Bench) -> None:
    hires = ("task", "look")
    agents = [
        Agent("boss", "Hires.", "You are the boss.", hires),
        Agent("clerk", "Is hired.", "You are the clerk.", hires),
    ]
    model = Cast(
        [call("task", agent="boss", prompt="x"), "done"],
        boss=[call("task", agent="clerk", prompt="y"), lambda r: f"clerk: {r.messages[-1].content}"],
        clerk=["paper"],
    )
    engine = bench.engine(model, [*tools().values()], agents=agents)

    events = await request(engine, "go")

    assert only(events, ToolCallEnd).content == "clerk: paper"
    assert "task" not in [t.name for t in model.of("clerk").requests[0].tools]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([call("look"), call("look"), "too late"], "worker did not finish. Stopped at the limit of 2 steps"),
        ([RuntimeError("no")], "worker did not finish. The model did not answer"),
        ([""], "It ended without an answer"),
    ],
)
async def test_one_that_does_not_finish_says_so(bench: Bench, script: list[Any], words: str) -> None:
    agent = Agent("worker", "Does the work.", "You are the worker.", max_steps=2)
    engine = bench.engine(
        Cast([HAND_OVER, "done"], worker=script), [*tools().values()], agents=[agent], model_retries=1
    )

    end = only(await request(engine, "go"), ToolCallEnd)

    assert words in end.content
    assert end.outcome == ("ok" if script == [""] else "error")


async def test_what_a_sub_agent_used_counts_for_the_run(bench: Bench) -> None:
    def costs(text: str, *calls: Any) -> ModelReply:
        return ModelReply(text, tuple(calls), Usage(10, 1, 0, 0.5))

    model = Cast([costs("", HAND_OVER), costs("done")], worker=[costs("", call("look")), costs("ok")])
    engine = bench.engine(model, [*tools().values()], agents=[WORKER])

    end = only(await request(engine, "go"), ToolCallEnd)

    assert end.usage == Usage(20, 2, 0, 1.0)
    assert (await engine.trace("s")).usage == Usage(40, 4, 0, 2.0)


async def test_a_sub_agent_heeds_the_budget_of_the_thread_that_it_works_in(bench: Bench) -> None:
    def costs(text: str, *calls: Any) -> ModelReply:
        return ModelReply(text, tuple(calls), Usage(100, 0, 0, 0.5))

    looks = [costs("", call("look", n=n)) for n in range(9)]
    model = Cast([costs("", HAND_OVER), costs("done")], worker=looks)
    guards = [Budget(thread_tokens=400)]
    engine = bench.engine(model, [*tools().values()], agents=[WORKER], interceptors=guards)

    end = only(await request(engine, "go"), RunEnd)

    assert len(model.of("worker").requests) == 3 + 1  # with what the session used: 400; and a last message
    assert len(model.main.requests) == 1 + 1
    assert (end.status, end.limit) == ("limited", "budget")


async def test_an_agent_may_want_a_model_of_its_own(bench: Bench) -> None:
    agent, own = Agent("worker", "Works.", "You are the worker.", model="small"), ScriptedModel("small answer")
    engine = bench.engine(ScriptedModel(HAND_OVER, "done"), agents=[agent], models={"small": own}.__getitem__)

    assert only(await request(engine, "go"), ToolCallEnd).content == "small answer"
    with pytest.raises(ConfigError, match="models of their own"):
        bench.engine(ScriptedModel(), agents=[agent])


async def test_a_session_cannot_be_called_like_a_sub_agent_s_journal(bench: Bench) -> None:
    with pytest.raises(ConfigError):
        await bench.engine(ScriptedModel()).session("s/r1-1-1")


# -- people are asked --------------------------------------------------------------------------------------------------


async def asked(bench: Bench, worker: Sequence[Any], table: dict[str, RecordingTool], **options: Any) -> Any:
    model = Cast([HAND_OVER, lambda r: f"worker said: {r.messages[-1].content}"], worker=worker)
    engine = bench.engine(model, [*table.values()], agents=[WORKER], **options)
    await request(engine, "go")
    return engine


async def test_its_questions_are_asked_in_the_session_and_name_it(bench: Bench) -> None:
    model = Cast([HAND_OVER, "done"], worker=[call("change", n=1), "ok"])
    engine = bench.engine(model, [*tools().values()], agents=[WORKER])

    events = await request(engine, "go", by="U7")

    assert names(events)[-4:] == ["ActionStart", "ToolCallStart", "HITLPending", "RunEnd"]
    (task,) = only(events, HITLPending).tasks
    assert (task.agent, task.session, task.tool_name, task.requested_by) == (
        "worker",
        await child(bench),
        "change",
        "U7",
    )
    assert (await engine.trace("s")).pending == (task,)
    assert only(events, RunEnd).status == "pending"


async def test_the_decision_runs_the_call_and_the_same_sub_agent_goes_on(bench: Bench) -> None:
    engine = await asked(bench, [call("change", n=1), "changed it"], table := tools())
    await decide(engine, HITLDecision.approve())

    events = await request(engine)

    assert " ".join(names(events)) == (
        "RunStart HITLDecided ActionStart ToolCallStart ToolCallEnd ActionEnd "
        "ContextSize ReasonStart ReasonDelta ReasonEnd RunEnd"
    )
    assert only(events, RunEnd).answer == "worker said: changed it"
    assert table["change"].runs == [{"n": 1}]
    assert len(await bench.store.sessions("s/")) == 1


async def test_the_record_of_the_session_holds_what_was_decided_and_what_came_of_it(bench: Bench) -> None:
    engine = await asked(bench, [call("change", n=1), "changed it"], tools())
    (task,) = (await engine.trace("s")).pending
    await decide(engine, HITLDecision.approve())
    await request(engine)

    facts = await bench.store.read("s")
    assert only(facts, HITLSubmitted).by == "U2"
    assert only(facts, HITLDecided).call_id == task.call_uuid
    assert [e.content for e in facts if isinstance(e, ToolCallEnd)] == ["done", "changed it"]
    assert only(await bench.store.read(await child(bench)), HITLSubmitted).by == "U2"


async def test_asking_again_without_a_prompt_stores_nothing(bench: Bench) -> None:
    engine = await asked(bench, [call("change", n=1), "ok"], tools())
    before = await stored(bench.store), await stored(bench.store, await child(bench))

    events = await request(engine)

    assert names(events) == ["RunStart", "HITLPending", "RunEnd"]
    assert (await stored(bench.store), await stored(bench.store, await child(bench))) == before


async def test_after_a_part_of_its_questions_the_session_rests(bench: Bench) -> None:
    engine = await asked(bench, [[call("change", n=1), call("change", n=2)], "ok"], table := tools())
    session = await engine.session("s")
    first, second = await HITL.get_pending_tasks(session)
    await HITL.approve(session, first, by="U2")

    assert names(await request(engine)) == ["RunStart", "HITLPending", "RunEnd"]
    assert table["change"].runs == []

    await HITL.skip(session, second, "no need", by="U3")
    events = await request(engine)
    assert table["change"].runs == [{"n": 1}]
    assert [e.by for e in events if isinstance(e, HITLDecided)] == ["U2", "U3"]


@pytest.mark.parametrize(
    "later",
    [
        [HAND_OVER, call("change", n=1), lambda asked: asked.messages[-1].content],
        [HAND_OVER, HAND_OVER, lambda asked: asked.messages[-1].content],
        [[HAND_OVER, HAND_OVER], lambda asked: asked.messages[-1].content],
    ],
    ids=["by the session itself", "by the next sub-agent", "by its sibling"],
)
async def test_what_a_person_rejected_is_not_asked_again_whoever_asks_for_it_in_this_run(
    bench: Bench, later: list[Any]
) -> None:
    model = Cast(later, worker=[call("change", n=1), "no"] * 2)
    made = tools()
    engine = bench.engine(model, [*made.values()], agents=[WORKER])
    await request(engine, "go")
    await decide(engine, HITLDecision.reject("no", end=False))

    assert only(await request(engine), RunEnd).status == "completed"

    assert made["change"].runs == []
    assert len([e for e in await bench.store.read("s") if isinstance(e, HITLPending)]) == 1


async def test_a_rejected_call_ends_the_sub_agent_and_not_the_session(bench: Bench) -> None:
    engine = await asked(bench, [call("change", n=1), "never"], table := tools())
    await decide(engine, HITLDecision.reject("not on a Friday"))

    end = only(await request(engine), RunEnd)

    assert (end.status, table["change"].runs) == ("completed", [])
    assert "worker did not finish: a person rejected a call of its, and said: not on a Friday" in end.answer


async def test_a_reject_that_ends_the_run_ends_the_session_s_too_and_asks_no_model(bench: Bench) -> None:
    script = [[HAND_OVER, call("change", n=9)], "never", "hello again"]
    model = Cast(script, worker=[[call("change", n=1), call("change", n=2)], "never"])
    engine = bench.engine(model, [*(table := tools()).values()], agents=[WORKER])
    session = await engine.session("s")
    (outer,) = only(await request(engine, "go"), HITLPending).tasks
    await HITL.approve(session, outer, by="U2")
    first, _ = only(await request(engine), HITLPending).tasks
    await HITL.submit(session, first, HITLDecision.reject("not on a Friday", end=True), by="U2")

    events = await request(engine)

    assert names(events) == ["RunStart", "HITLDecided", "RunEnd"]
    assert (only(events, RunEnd).status, only(events, RunEnd).answer) == ("rejected", "not on a Friday")
    assert (len(model.main.requests), len(model.of("worker").requests), table["change"].runs) == (1, 1, [])
    ends = [(e.outcome, e.content) for e in await bench.store.read("s") if isinstance(e, ToolCallEnd)]
    assert [outcome for outcome, _ in ends] == ["rejected", "not_run", "error", "not_run"]
    assert "Not run: U2 rejected another call and ended the run." in ends[-1][1]
    assert (await engine.trace("s")).pending == ()
    assert only(await request(engine, "hello?"), RunEnd).status == "completed"


async def test_the_first_decision_wins(bench: Bench) -> None:
    engine = await asked(bench, [call("change", n=1), "ok"], tools())
    session = await engine.session("s")
    (task,) = await HITL.get_pending_tasks(session)
    await HITL.approve(session, task)

    with pytest.raises(AlreadyDecided):
        await HITL.reject(session, task)


async def test_an_edit_is_judged_where_the_call_is_and_runs_as_edited(bench: Bench) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    table = {"change": RecordingTool("change", schema=schema)}
    rules = [PermissionRule("deny", "change", arguments='{"n":13}')]
    engine = await asked(bench, [call("change", n=1), lambda r: r.messages[-1].content], table, rules=rules)
    session = await engine.session("s")
    (task,) = await HITL.get_pending_tasks(session)

    with pytest.raises(InvalidArguments):
        await HITL.submit(session, task, HITLDecision.approve(modified_args={"n": "x"}))
    with pytest.raises(DeniedByPolicy):
        await HITL.submit(session, task, HITLDecision.approve(modified_args={"n": 13}))
    await HITL.submit(session, task, HITLDecision.approve(modified_args={"n": 2}), by="U2")
    await request(engine)

    assert table["change"].runs == [{"n": 2}]


async def test_always_allow_holds_for_the_session_and_so_for_its_sub_agents(bench: Bench) -> None:
    script = [call("change", n=1), call("change", n=1), "twice"]
    engine = await asked(bench, script, table := tools())
    await decide(engine, HITLDecision.approve(always_allow=True))

    end = only(await request(engine), RunEnd)

    assert end.answer == "worker said: twice"
    assert table["change"].runs == [{"n": 1}, {"n": 1}]
    assert only(await bench.store.read("s"), RuleChanged).by == "U2"
    assert "RuleChanged" not in await stored(bench.store, await child(bench))


async def test_a_question_of_a_sub_agent_s_sub_agent_is_asked_and_decided_in_the_session(bench: Bench) -> None:
    agents = [Agent("boss", "Hires.", "You are the boss.", ("task", "change")), WORKER]
    model = Cast(
        [call("task", agent="boss", prompt="x"), "done"],
        boss=[HAND_OVER, lambda r: r.messages[-1].content],
        worker=[call("change", n=1), "changed"],
    )
    engine = bench.engine(model, [*(table := tools()).values()], agents=agents)
    (task,) = only(await request(engine, "go"), HITLPending).tasks
    assert (task.agent, task.session.count("/")) == ("worker", 2)
    assert not await bench.store.unfinished(bench.clock.now() + 1e6)
    await bench.drop()
    engine = bench.engine(model, [*table.values()], agents=agents)

    await decide(engine, HITLDecision.approve())
    events = await request(engine)

    assert table["change"].runs == [{"n": 1}]
    assert only(events, HITLDecided).call_id == task.call_uuid
    assert only(events, RunEnd).status == "completed"
    assert [e.content for e in events if isinstance(e, ToolCallEnd)] == ["changed"]


# -- what is in force --------------------------------------------------------------------------------------------------


async def test_rules_of_the_engine_and_of_the_session_hold_for_sub_agents(bench: Bench) -> None:
    script = [call("change"), call("log"), "ok"]
    model = Cast([HAND_OVER, "done"], worker=script)
    table = tools()
    engine = bench.engine(model, [*table.values()], agents=[WORKER], rules=[PermissionRule.allow("log")])
    await engine.change_rule("s", PermissionRule.deny("change"))

    await request(engine, "go")

    assert (table["change"].runs, table["log"].runs) == ([], [{}])


async def test_a_sub_agent_s_own_rules_narrow_what_others_allow(bench: Bench) -> None:
    agent = Agent("worker", "Works.", "You are the worker.", rules=(PermissionRule.deny("log"),))
    model = Cast([[call("log", n=1), HAND_OVER], "done"], worker=[call("log", n=2), "ok"])
    table = tools()
    engine = bench.engine(model, [*table.values()], agents=[agent], rules=[PermissionRule.allow("log")])

    await request(engine, "go")

    assert table["log"].runs == [{"n": 1}]


async def test_where_nobody_can_be_asked_a_sub_agent_cannot_ask_either(bench: Bench) -> None:
    model = Cast([HAND_OVER, "done"], worker=[call("change"), lambda r: r.messages[-1].content])
    engine = bench.engine(model, [*(table := tools()).values()], agents=[WORKER], hitl_enabled=False)

    end = only(await request(engine, "go"), ToolCallEnd)

    assert "approvals are off" in end.content
    assert table["change"].runs == []


async def test_handing_work_over_is_judged_as_any_call(bench: Bench) -> None:
    rules = [PermissionRule.deny("task", "worker"), PermissionRule.ask("task", "other")]
    agents = [WORKER, Agent("other", "Else.", "You are the other.")]
    script = [[HAND_OVER, call("task", agent="other", prompt="x")], "done"]
    engine = bench.engine(Cast(script, other=["ok"]), agents=agents, rules=rules)

    (task,) = only(await request(engine, "go"), HITLPending).tasks
    assert (task.tool_name, task.args["agent"], task.agent, task.session) == ("task", "other", "", "")
    await HITL.submit(await engine.session("s"), task, HITLDecision.approve(modified_args={"prompt": "y"}), by="U2")
    events = await request(engine)

    ends = [e.content for e in events if isinstance(e, ToolCallEnd)]
    assert ends[0].startswith("Denied: The rule “deny task worker”")
    assert ends[1].startswith("[U2 changed the arguments before approving;")
    assert ends[1].endswith("ok")
    (journal,) = await bench.store.sessions("s/")
    assert only(await bench.store.read(journal), Prompted).text == "y"


async def test_a_changed_rule_releases_or_closes_the_questions_of_a_sub_agent(bench: Bench) -> None:
    engine = await asked(bench, [[call("change", n=1), call("log", n=1)], "ok"], table := tools())
    await engine.change_rule("s", PermissionRule.deny("change"))
    await engine.change_rule("s", PermissionRule.allow("log"))
    await engine.idle()

    assert (table["change"].runs, table["log"].runs) == ([], [{"n": 1}])
    assert (await engine.trace("s")).answer == "worker said: ok"
    facts = await bench.store.read("s")
    assert [e.outcome for e in facts if isinstance(e, ToolCallEnd)] == ["denied", "ok", "ok"]
    assert only(facts, HITLSubmitted).via == "release"


async def test_a_question_of_a_sub_agent_expires_on_time_and_for_good(bench: Bench) -> None:
    worker = [call("change", n=1), lambda r: r.messages[-1].content]
    engine = await asked(bench, worker, table := tools(), expiries={"change": Expiry(60.0)})
    bench.clock.advance(61.0)
    await until(lambda: _over(engine))

    assert "Nobody decided in time" in (await engine.trace("s")).answer
    assert table["change"].runs == []
    assert only(await bench.store.read("s"), HITLSubmitted).via == "expired"


async def _over(engine: Any) -> bool:
    return (await engine.trace("s")).run is None


# -- stopping ----------------------------------------------------------------------------------------------------------


async def test_a_stop_goes_down_first_while_a_tool_runs(bench: Bench) -> None:
    gate = asyncio.Event()
    table = {"change": RecordingTool("change", hold=gate)}
    model = Cast([HAND_OVER, "never"], worker=[call("change"), "never"])
    engine = bench.engine(model, [*table.values()], agents=[WORKER], rules=[PermissionRule.allow("change")])
    running = asyncio.create_task(request(engine, "go"))
    await table["change"].started.reach()

    await engine.stop("s", by="U9")
    events = await running

    assert table["change"].killed == 1
    assert (only(events, RunEnd).status, only(events, ToolCallEnd).outcome) == ("stopped", "error")
    assert "worker did not finish. Stopped by U9." in only(events, ToolCallEnd).content
    below = await bench.store.read(await child(bench))
    assert only(below, ToolCallEnd).outcome == "unknown"
    assert only(below, RunEnd).status == "stopped"


async def test_a_stop_while_it_asks_closes_its_questions(bench: Bench) -> None:
    engine = await asked(bench, [call("change"), "never"], table := tools())

    await engine.stop("s", by="U9")
    end = only(await request(engine), RunEnd)

    assert (end.status, table["change"].runs) == ("stopped", [])
    assert (await engine.trace("s")).pending == ()
    ends = [e for e in await bench.store.read("s") if isinstance(e, ToolCallEnd)]
    assert [e.outcome for e in ends] == ["not_run", "error"]
    starts = [e for e in await bench.store.read("s") if isinstance(e, RunStart)]
    assert len(starts) == 1


async def test_a_stop_reaches_a_sub_agent_s_sub_agent(bench: Bench) -> None:
    agents = [Agent("boss", "Hires.", "You are the boss.", ("task", "change")), WORKER]
    model = Cast(
        [call("task", agent="boss", prompt="x"), "never"], boss=[HAND_OVER, "never"], worker=[call("change"), "never"]
    )
    engine = bench.engine(model, [*tools().values()], agents=agents)
    await request(engine, "go")

    await engine.stop("s", by="U9")
    end = only(await request(engine), RunEnd)

    assert end.status == "stopped"
    for journal in await bench.store.sessions("s/"):
        assert only(await bench.store.read(journal), RunEnd).status == "stopped"


# -- restarts ----------------------------------------------------------------------------------------------------------


async def test_after_a_restart_the_same_sub_agent_waits_and_goes_on(bench: Bench) -> None:
    worker = [call("change", n=1), "changed it"]
    await asked(bench, worker, tools())
    before = await child(bench)
    await bench.drop()

    model = Cast([HAND_OVER, lambda r: f"worker said: {r.messages[-1].content}"], worker=worker)
    engine = bench.engine(model, [*(table := tools()).values()], agents=[WORKER])
    await engine.start()
    await engine.idle()
    assert model.main.requests == model.of("worker").requests == []
    await decide(engine, HITLDecision.approve())
    end = only(await request(engine), RunEnd)

    assert (end.answer, await child(bench)) == ("worker said: changed it", before)
    assert table["change"].runs == [{"n": 1}]
    assert len(model.of("worker").requests) == 1


async def test_a_sub_agent_s_journal_that_is_gone_is_an_error_and_never_a_fresh_run(bench: Bench) -> None:
    await asked(bench, [call("change", n=1), "Sent the email."], tools())
    gone = await child(bench)
    await bench.drop()
    without = Without(bench.store, gone)
    model = Cast([HAND_OVER, lambda r: f"worker said: {r.messages[-1].content}"], worker=["Sent the email."])
    engine = bench.engine(model, [*(table := tools()).values()], agents=[WORKER], store=without)

    await decide(engine, HITLDecision.approve())
    end = only(await request(engine), RunEnd)

    assert "cannot go on: its journal is gone" in end.answer
    assert (model.of("worker").requests, table["change"].runs) == ([], [])
    ends = [e.outcome for e in await bench.store.read("s") if isinstance(e, ToolCallEnd)]
    assert ends == ["unknown", "error"]


class Without:
    """A store that has lost one journal."""

    def __init__(self, inner: Any, gone: str) -> None:
        self._inner, self._gone = inner, gone

    async def read(self, session_id: str, after: int = 0) -> Any:
        return () if session_id == self._gone else await self._inner.read(session_id, after)

    async def open(self, session_id: str) -> Any:
        return () if session_id == self._gone else await self._inner.open(session_id)

    async def last_seq(self, session_id: str) -> int:
        return 0 if session_id == self._gone else await self._inner.last_seq(session_id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


async def test_an_agent_whose_file_is_gone_is_an_error_and_its_questions_are_closed(bench: Bench) -> None:
    await asked(bench, [call("change", n=1), "never"], tools())
    await bench.drop()
    model = Cast([HAND_OVER, lambda r: r.messages[-1].content])
    engine = bench.engine(model, [*tools().values()], agents=[Agent("other", "Else.", "You are the other.")])

    end = only(await request(engine), RunEnd)

    assert "there is no agent 'worker' any more" in end.answer
    assert (await engine.trace("s")).pending == ()


async def test_a_call_of_unknown_outcome_is_put_to_a_person_in_the_session(bench: Bench) -> None:
    gate = asyncio.Event()
    table = {"change": RecordingTool("change", hold=gate)}
    model = Cast([HAND_OVER, "done"], worker=[call("change", n=1), lambda r: r.messages[-1].content])
    rules = [PermissionRule.allow("change")]
    running = asyncio.create_task(request(bench.engine(model, [*table.values()], agents=[WORKER], rules=rules), "go"))
    await table["change"].started.reach()
    await bench.drop()
    await asyncio.gather(running, return_exceptions=True)

    engine = bench.engine(model, [*tools().values()], agents=[WORKER], rules=rules)
    (task,) = only(await request(engine), HITLPending).tasks
    assert (task.kind, task.agent) == ("unknown", "worker")
    await decide(engine, HITLDecision.happened("it is 1"))
    end = only(await request(engine), ToolCallEnd)

    assert "It had happened already, says U2. What came of it: it is 1" in end.content


async def test_a_prompt_meanwhile_waits_for_the_sub_agent_and_is_then_heard(bench: Bench) -> None:
    model = Cast([HAND_OVER, "done", "heard"], worker=[call("change"), "ok"])
    engine = bench.engine(model, [*tools().values()], agents=[WORKER])
    await request(engine, "go")

    assert names(await request(engine, "hurry"))[-1] == "RunEnd"
    await decide(engine, HITLDecision.approve())
    await request(engine)

    said = [m.content for m in model.main.requests[1].messages if m.role == "user"]
    assert said == ["go", "hurry"]
    assert [e.text for e in await bench.store.read("s") if isinstance(e, ReasonEnd)] == ["", "done"]


# -- hooks and limits --------------------------------------------------------------------------------------------------


class Watching:
    """Puts on record what is handed over, which agent begins and what it brought."""

    def before_tool(self, trace: Trace, made: ToolCall) -> Observe:
        return Observe(f"{made.name} is called")

    def subagent_start(self, trace: Trace, made: ToolCall) -> Observe:
        return Observe(f"{made.args['agent']} begins")

    def subagent_end(self, trace: Trace, made: ToolCall, result: ToolCallEnd) -> Observe:
        return Observe(f"{made.args['agent']}: {result.content}")


async def test_hooks_see_a_sub_agent_begin_and_end(bench: Bench) -> None:
    model = Cast([HAND_OVER, "done"], worker=["ok"])
    engine = bench.engine(model, agents=[WORKER], interceptors=[Watching()])

    await request(engine, "go")

    facts = await bench.store.read("s")
    ruled = [(type(before).__name__, e.point, e.reason, type(after).__name__) for before, e, after in _around(facts)]
    assert ruled == [
        ("ReasonEnd", "before_tool", "task is called", "HookRuled"),
        ("HookRuled", "subagent_start", "worker begins", "ToolCallStart"),
        ("ToolCallStart", "subagent_end", "worker: ok", "ToolCallEnd"),
    ]


def _around(facts: Sequence[Any]) -> list[tuple[Any, HookRuled, Any]]:
    triples = zip(facts, facts[1:], facts[2:], strict=False)
    return [(before, fact, after) for before, fact, after in triples if isinstance(fact, HookRuled)]


class Afraid:
    """A hook for safety that fails before an agent begins."""

    rule_class = "safety"

    def subagent_start(self, trace: Trace, made: ToolCall) -> None:
        raise RuntimeError("who is that?")


async def test_a_safety_hook_that_fails_lets_no_sub_agent_begin(bench: Bench) -> None:
    model = Cast([HAND_OVER, "done"], worker=["ok"])
    engine = bench.engine(model, agents=[WORKER], interceptors=[Afraid()])

    end = only(await request(engine, "go"), RunEnd)

    assert (end.status, model.of("worker").requests) == ("stopped", [])
    assert "who is that?" in end.answer


class Louder:
    """Rewrites what an agent brought."""

    def after_tool(self, trace: Trace, made: ToolCall, result: ToolCallEnd) -> Rewrite | None:
        return Rewrite(result.content.upper(), "louder") if made.name == "task" else None


async def test_what_a_sub_agent_brought_is_a_result_that_hooks_may_rewrite(bench: Bench) -> None:
    engine = bench.engine(Cast([HAND_OVER, "done"], worker=["ok"]), agents=[WORKER], interceptors=[Louder()])

    assert only(await request(engine, "go"), ToolCallEnd).content == "OK"


async def test_a_sub_agent_has_no_more_time_than_its_session_which_can_still_answer(bench: Bench) -> None:
    def slow(request: ModelRequest) -> Any:
        bench.clock.advance(42.0)
        return call("look", n=len(request.messages))

    model = Cast([HAND_OVER, lambda r: r.messages[-1].content], worker=[slow, slow, "found half"])
    engine = bench.engine(model, [*tools().values()], agents=[WORKER], max_seconds=100.0)

    end = only(await request(engine, "go"), RunEnd)

    assert end.status == "completed"
    assert end.answer.startswith("The agent worker did not finish. Stopped at the limit of")
    assert "found half" in end.answer


async def test_a_session_whose_time_is_over_stops_its_sub_agent_first(bench: Bench) -> None:
    def slow(request: ModelRequest) -> Any:
        bench.clock.advance(95.0)
        return call("look")

    model = Cast([HAND_OVER, "what I have"], worker=[slow, "never"])
    engine = bench.engine(model, [*tools().values()], agents=[WORKER], max_seconds=100.0)

    events = await request(engine, "go")

    end, result = only(events, RunEnd), only(events, ToolCallEnd)
    assert (end.status, end.limit, result.outcome) == ("limited", "seconds", "error")
    assert "what I have" in end.answer
    assert only(await bench.store.read(await child(bench)), RunEnd).status in ("limited", "stopped")
    assert len(model.of("worker").requests) == 1


async def test_what_is_in_force_for_a_sub_agent_is_on_record(bench: Bench) -> None:
    agent = Agent("worker", "Works.", "You are the worker.", ("look",), rules=(PermissionRule.deny("look", "x"),))
    engine = bench.engine(Cast([HAND_OVER, "done"], worker=["ok"]), [*tools().values()], agents=[agent])

    await request(engine, "go")

    start = only(await bench.store.read(await child(bench)), RunStart)
    kept = {fact.digest: fact.content for fact in await bench.store.read("config:policies")}
    content = kept[start.policy_digest]
    assert (content["agent"], content["tools"], len(content["rules"])) == ("worker", ["look"], 1)
