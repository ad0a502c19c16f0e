"""An engine is changed while sessions go on: extensions, rules, tools switched off; what was in force is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from harness_core.agents import Agent
from harness_core.engine import HarnessEngine
from harness_core.errors import ConfigError
from harness_core.events import HookRuled, PolicyInForce, RunEnd, RunStart, ToolCallEnd
from harness_core.extensions import AgentBuilder
from harness_core.handle import HITL
from harness_core.hooks import Deny, Inject
from harness_core.permissions.rule import PermissionRule
from harness_core.policies import POLICIES
from harness_core.session import Trace
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.types import ToolCall, canonical, digest
from tests.engine.harness import Bench, only, request
from tests.engine.test_decisions import settled
from tests.engine.test_subagents import Cast


class Brief:
    """Tells the model to be brief, with every request."""

    name = "brief"

    def before_model(self, trace: Trace) -> Inject:
        return Inject("Be brief.")


class BriefExtension:
    def __init__(self) -> None:
        self.configured: list[str] = []

    def configure(self, engine: HarnessEngine, agent_name: str, builder: AgentBuilder) -> None:
        self.configured.append(agent_name)
        builder.default_interceptor_add(Brief())


def no_more(engine: HarnessEngine, agent_name: str, builder: AgentBuilder) -> None:
    builder.permission_rule_add(PermissionRule.deny("look"))


def look(**how: Any) -> RecordingTool:
    return RecordingTool("look", read_only=True, **how)


async def outcomes(bench: Bench) -> Sequence[str]:
    return [e.outcome for e in await bench.store.read("s") if isinstance(e, ToolCallEnd)]


# -- extensions --------------------------------------------------------------------------------------------------------


async def test_an_extension_adds_interceptors_when_the_engine_is_made(bench: Bench) -> None:
    extension, model = BriefExtension(), ScriptedModel("done")
    engine = bench.engine(model, extensions=[extension], agent="main")

    await request(engine, "hi")

    assert extension.configured == ["main"]
    assert [m.content for m in model.requests[0].messages] == ["Be brief.", "hi"]


async def test_an_extension_is_asked_for_each_sub_agent_by_its_name(bench: Bench) -> None:
    extension, worker = BriefExtension(), Agent("worker", "Does it.", "You are the worker.")
    names: list[str] = []

    def for_the_worker(engine: HarnessEngine, agent_name: str, builder: AgentBuilder) -> None:
        names.append(agent_name)
        if agent_name == "worker":
            builder.permission_rule_add(PermissionRule.deny("look"))

    hand_over = call("task", agent="worker", prompt="do it")
    model = Cast([[call("look"), hand_over], "done"], worker=[call("look"), "no"])
    engine = bench.engine(model, [look()], agents=[worker], extensions=[extension, for_the_worker])

    await request(engine, "hi")

    (child,) = await bench.store.sessions("s/")
    ends = [e.outcome for e in await bench.store.read(child) if isinstance(e, ToolCallEnd)]
    assert (extension.configured, names) == (["", "worker"], ["", "worker"])
    assert (await outcomes(bench), ends) == (["ok", "ok"], ["denied"])
    assert [m.content for m in model.of("worker").requests[0].messages] == ["Be brief.", "do it"]  # told once


async def test_an_interceptor_that_is_added_for_a_sub_agent_takes_the_place_of_the_one_of_its_name(
    bench: Bench,
) -> None:
    class Long(Brief):
        def before_model(self, trace: Trace) -> Inject:
            return Inject("Take your time.")

    def each_its_own(engine: HarnessEngine, agent_name: str, builder: AgentBuilder) -> None:
        builder.default_interceptor_add(Long() if agent_name == "worker" else Brief())

    model = Cast([call("task", agent="worker", prompt="do it"), "done"], worker=["no"])
    worker = Agent("worker", "Does it.", "You are the worker.")
    engine = bench.engine(model, agents=[worker], extensions=[each_its_own])

    await request(engine, "hi")

    assert [m.content for m in model.of("worker").requests[0].messages] == ["Take your time.", "do it"]
    assert [m.content for m in model.main.requests[0].messages] == ["Be brief.", "hi"]


def test_an_extension_may_not_allow_a_sub_agent_more_than_all_may(bench: Bench) -> None:
    def wider(engine: HarnessEngine, agent_name: str, builder: AgentBuilder) -> None:
        if agent_name:
            builder.permission_rule_add(PermissionRule.allow("look"))

    with pytest.raises(ConfigError, match="may not allow worker more than all may: allow look"):
        bench.engine(ScriptedModel(), [look()], agents=[Agent("worker", "Does it.", "You work.")], extensions=[wider])


async def test_one_that_is_added_or_removed_counts_from_the_next_step_of_a_run_that_goes_on(bench: Bench) -> None:
    extension = BriefExtension()

    def adds(args: Any) -> str:
        engine.add_extension(extension)
        return "added"

    def removes(args: Any) -> str:
        engine.remove_extension(extension)
        return "removed"

    model = ScriptedModel([call("adds")], [call("removes")], "done")
    tools = [
        RecordingTool(name, read_only=True, result=result) for name, result in (("adds", adds), ("removes", removes))
    ]
    engine = bench.engine(model, tools)

    await request(engine, "hi")
    await settled(engine)

    told = [[m.content for m in asked.messages].count("Be brief.") for asked in model.requests]
    assert told == [0, 1, 1], "once with the second request, and no more with the third"


async def test_a_plain_function_is_an_extension_and_its_rules_count(bench: Bench) -> None:
    tool = look()
    engine = bench.engine(ScriptedModel([call("look")], "done"), [tool], extensions=[no_more])

    await request(engine, "hi")

    assert (tool.runs, await outcomes(bench)) == ([], ["denied"])
    engine.remove_extension(no_more)
    assert (await engine.policy("s")).gate.rules == ()


async def test_an_extension_that_fails_changes_nothing(bench: Bench) -> None:
    class Wrong:
        rule_class = "safty"

    engine = bench.engine(ScriptedModel("done"), extensions=[BriefExtension()])

    with pytest.raises(ConfigError, match="safty"):
        engine.add_extension(lambda engine, name, builder: builder.default_interceptor_add(Wrong()))

    assert [hook.name for hook in (await engine.policy("s")).gate.hooks if hasattr(hook, "name")] == [
        "stop_loop",
        "brief",
    ]


async def test_the_builtin_interceptors_are_replaced_and_never_doubled(bench: Bench) -> None:
    class Mine:
        name = "mine"

        def before_tool(self, trace: Trace, made: ToolCall) -> Deny:
            return Deny("no")

    engine = bench.engine(ScriptedModel("done"), stop_loop_interceptor=Mine())
    engine.add_extension(BriefExtension())
    engine.remove_extension(BriefExtension())  # another one, which was never added

    assert [hook.name for hook in (await engine.policy("s")).gate.hooks] == ["mine", "brief"]


# -- tools and rules ---------------------------------------------------------------------------------------------------


async def test_a_tool_that_is_switched_off_stays_in_the_table_and_is_refused(bench: Bench) -> None:
    tool, model = look(), ScriptedModel([call("look")], [call("look")], "done")
    tool.result = lambda args: engine.disallow_tool("look") or "seen"
    engine = bench.engine(model, [tool])

    await request(engine, "hi")

    assert await outcomes(bench) == ["ok", "denied"]
    assert all(asked.tools == model.requests[0].tools for asked in model.requests)
    assert [spec.name for spec in model.requests[0].tools] == ["look"]
    engine.remove_permission_rule(PermissionRule.deny("look"))
    assert (await engine.policy("s")).gate.rules == ()


def test_only_a_tool_that_there_is_can_be_switched_off(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="nothing"):
        bench.engine(ScriptedModel("done")).disallow_tool("nothing")


async def test_a_tool_that_is_switched_off_while_its_call_waits_is_refused_at_once(bench: Bench) -> None:
    gated = RecordingTool("change")
    engine = bench.engine(ScriptedModel([call("change")], "done"), [gated])
    await request(engine, "hi")

    engine.disallow_tool("change")
    await asyncio.sleep(0)
    await settled(engine)

    assert (gated.runs, await outcomes(bench)) == ([], ["denied"])
    assert await HITL.get_pending_tasks(await engine.session("s")) == ()


# -- the record --------------------------------------------------------------------------------------------------------


async def test_each_policy_is_on_record_once_with_what_it_was(bench: Bench) -> None:
    for _ in range(2):  # a restart changes nothing
        engine = bench.engine(ScriptedModel("done", "done", "done", "done"), [look()], interceptors=[Brief()])
        await request(engine, "hi")
        engine.add_permission_rule(PermissionRule.deny("look"))
        await request(engine, "again")
        await settled(engine)

    kept = [e for e in await bench.store.read(POLICIES) if isinstance(e, PolicyInForce)]
    used = [e.policy_digest for e in await bench.store.read("s") if isinstance(e, RunStart)]

    assert len(kept) == 2
    assert [e.digest for e in kept] == used[:2] == used[2:]
    assert all(digest(canonical(e.content)) == e.digest for e in kept)
    assert kept[0].content["rules"] == []
    assert kept[1].content["rules"] == [{"effect": "deny", "tool": "look", "pattern": None, "arguments": None}]
    assert [hook["name"] for hook in kept[0].content["hooks"]] == ["stop_loop", "brief"]
    assert kept[0].content["hooks"][0]["settings"]["max_repeat"] == 3


async def test_a_change_in_the_middle_of_a_run_is_on_record_where_it_begins_to_count(bench: Bench) -> None:
    tool = look()
    tool.result = lambda args: engine.set_hitl_enabled(False) or "seen"
    engine = bench.engine(ScriptedModel([call("look")], [call("change")], "done"), [tool, RecordingTool("change")])

    assert only(await request(engine, "hi"), RunEnd).status == "completed"

    facts = await bench.store.read("s")
    kinds = [type(e).__name__ for e in facts]
    assert kinds[kinds.index("PolicyInForce") - 1] == "ToolCallEnd"
    assert kinds[kinds.index("PolicyInForce") + 1] == "ReasonEnd"
    (changed,) = [e for e in facts if isinstance(e, PolicyInForce)]
    assert changed.digest == (await engine.policy("s")).digest
    assert await outcomes(bench) == ["ok", "denied"], "nobody can be asked any more"


async def test_a_session_that_waits_is_left_alone_by_a_change_that_does_nothing_to_it(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel([call("change")], "done"), [RecordingTool("change"), look()])
    await request(engine, "hi")
    before = await bench.store.last_seq("s")

    engine.set_compression_threshold(50)
    engine.add_permission_rule(PermissionRule.deny("look"))
    await asyncio.sleep(0)
    await settled(engine)

    assert await bench.store.last_seq("s") == before
    assert not [e for e in await bench.store.read("s") if isinstance(e, HookRuled)]


class Wrong:
    """A hook that was never going to work."""

    def __init__(self, **how: Any) -> None:
        vars(self).update(how)


async def _later(trace: Any, call: Any) -> None: ...


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"rule_class": "Safety"}, "'Safety'"),
        ({"priority": "high"}, "the priority of Wrong"),
        ({"escape_after": "x"}, "the escape_after of Wrong"),
        ({"escape_after": 0}, "the escape_after of Wrong"),
        ({"before_tool": "deny"}, "before_tool of Wrong is no function"),
        ({"before_tool": _later}, "before_tool of Wrong must be a plain function"),
        ({"before_tool": lambda trace: None}, r"before_tool of Wrong must take \(trace, call\)"),
    ],
)
async def test_an_interceptor_that_can_never_work_is_found_when_it_is_added(
    bench: Bench, how: dict[str, Any], said: str
) -> None:
    def adds(engine: Any, agent: str, builder: AgentBuilder) -> None:
        builder.default_interceptor_add(Wrong(**how))

    for wrong in ({"interceptors": [Wrong(**how)]}, {"stop_loop_interceptor": Wrong(**how)}, {"extensions": [adds]}):
        with pytest.raises(ConfigError, match=said):
            bench.engine(ScriptedModel("x"), **wrong)  # type: ignore[arg-type]


async def test_a_function_that_no_point_would_ever_ask_is_refused_and_not_passed_over(bench: Bench) -> None:
    def no_refunds(trace: Trace, call: ToolCall) -> Deny:
        return Deny("No refunds.")

    with pytest.raises(ConfigError, match="no_refunds is no hook yet"):
        bench.engine(ScriptedModel(), interceptors=[no_refunds])
    with pytest.raises(ConfigError, match="no_refunds is no hook yet"):
        AgentBuilder().default_interceptor_add(no_refunds)


async def test_what_is_no_tool_is_refused_in_words(bench: Bench) -> None:
    def refund(order: str) -> str:
        return order

    with pytest.raises(ConfigError, match="refund is no tool"):
        bench.engine(ScriptedModel(), [refund])  # type: ignore[list-item]


async def test_an_option_that_there_is_not_is_named(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="no option max_step; there are hitl_enabled, "):
        bench.engine(ScriptedModel(), max_step=3)
