"""What has gone wrong with rules and approvals elsewhere, as it must come out here.

Commands that escape a rule in another spelling are rows of `cases/own_rule_cases.jsonl` of the class `report`.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.errors import DecisionRefused
from harness_core.events import HITLDecided, HITLPending, HITLSubmitted, ToolCallEnd
from harness_core.handle import HITL
from harness_core.hitl import Approve, HITLDecision, Reject
from harness_core.hooks import Ask, Rewrite
from harness_core.interceptors.hitl import HITLInterceptor
from harness_core.permissions.rule import PermissionRule
from harness_core.session import Trace
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.types import Args, ToolCall
from tests.engine.harness import Bench, only, request


def waiting(events: list[Any]) -> list[tuple[str, Args]]:
    """The tools and arguments of the tasks that were shown."""
    return [(task.tool_name, task.args) for event in events if isinstance(event, HITLPending) for task in event.tasks]


def outcomes(events: list[Any]) -> list[str]:
    return [event.outcome for event in events if isinstance(event, ToolCallEnd)]


# -- whose rule it is --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other", ["mcp__other__x", "mcp__our_s__x", "mcp_ours_x", "mcp__ours__X", "mcp__ours__xx", "mcp__ours", "x"]
)
async def test_an_approval_does_not_leak_to_a_tool_of_another_server_that_is_called_alike(
    bench: Bench, other: str
) -> None:
    tools = [RecordingTool("mcp__ours__x"), RecordingTool(other)]
    model = ScriptedModel([call("mcp__ours__x")], [call("mcp__ours__x"), call(other)], "done")
    engine = bench.engine(model, tools)
    session = await engine.session("s")
    await request(engine, "go")

    await HITL.submit(session, await HITL.get_pending_task(session), HITLDecision.approve(always_allow=True), by="U1")

    assert waiting(await request(engine)) == [(other, {})]


@pytest.mark.parametrize("name", ["write", "ls", "read"])
async def test_a_rule_and_a_strategy_for_a_tool_do_not_speak_for_one_whose_name_holds_its_name(
    bench: Bench, name: str
) -> None:
    hitl = HITLInterceptor().on_tool(name, lambda trace, args: None)
    tools = [RecordingTool(f"re{name}"), RecordingTool(f"{name}r")]
    calls = [call(tool.spec.name) for tool in tools]
    engine = bench.engine(
        ScriptedModel(calls, "done"), tools, rules=[PermissionRule.allow(name)], hitl_interceptor=hitl
    )

    assert [tool for tool, _ in waiting(await request(engine, "go"))] == [f"re{name}", f"{name}r"]


async def test_always_for_a_call_without_arguments_is_not_always_for_any_arguments(bench: Bench) -> None:
    tool = RecordingTool("restart")
    model = ScriptedModel([call("restart")], [call("restart"), call("restart", all=True)], "done")
    engine = bench.engine(model, [tool])
    session = await engine.session("s")
    await request(engine, "go")

    await HITL.submit(session, await HITL.get_pending_task(session), HITLDecision.approve(always_allow=True), by="U1")

    assert waiting(await request(engine)) == [("restart", {"all": True})]
    assert tool.runs == [{}]


@pytest.mark.parametrize("name", ["__class__", "__init__", "constructor", "__proto__", "toString", "get", "items"])
async def test_a_tool_that_is_called_like_a_part_of_the_language_is_a_tool_like_any_other(
    bench: Bench, name: str
) -> None:
    missing = await request(bench.engine(ScriptedModel([call(name)], "done"), ["read"]), "go", session_id="a")
    there = await request(
        bench.engine(ScriptedModel([call(name)], "done"), [RecordingTool(name)]), "go", session_id="b"
    )

    assert (outcomes(missing), waiting(missing)) == (["error"], [])
    assert (outcomes(there), waiting(there)) == ([], [(name, {})])


# -- strategies --------------------------------------------------------------------------------------------------------


def raises(trace: Trace, args: Args) -> str | None:
    raise RuntimeError("boom")


def times_out(trace: Trace, args: Args) -> str | None:
    raise TimeoutError


@pytest.mark.parametrize(
    "strategy", [raises, times_out, *(lambda t, a, junk=junk: junk for junk in (False, True, 0, {}, [], b"", object()))]
)
async def test_a_strategy_that_fails_takes_too_long_or_answers_junk_asks(bench: Bench, strategy: Any) -> None:
    tool = RecordingTool("change")
    hitl = HITLInterceptor().on_tool("change", strategy)
    engine = bench.engine(ScriptedModel([call("change")], "done"), [tool], hitl_interceptor=hitl)

    assert waiting(await request(engine, "go")) == [("change", {})]
    assert tool.runs == []


async def test_what_a_person_decided_is_not_asked_again_whatever_a_strategy_would_say_by_then(bench: Bench) -> None:
    tool, asked = RecordingTool("change"), []

    def strategy(trace: Trace, args: Args) -> str | None:
        asked.append(args)
        return f"asked {len(asked)} times"

    hitl = HITLInterceptor().on_tool("change", strategy)
    engine = bench.engine(ScriptedModel([call("change")], "done"), [tool], hitl_interceptor=hitl)
    session = await engine.session("s")
    await request(engine, "go")
    await HITL.approve(session, await HITL.get_pending_task(session), by="U1")

    assert waiting(await request(engine)) == []
    assert tool.runs == [{}]


# -- a deny is a deny --------------------------------------------------------------------------------------------------


class Asks:
    """A hook that would rather have a person decide."""

    rule_class, priority = "drift", -100

    def before_tool(self, trace: Trace, call: ToolCall) -> Ask:
        return Ask("let a person decide")

    def permission_request(self, trace: Trace, call: ToolCall) -> Ask:
        return Ask("let a person decide")


class Renames(Asks):
    """A hook that makes of what is denied something that is not, and back again just before it is asked."""

    def before_tool(self, trace: Trace, call: ToolCall) -> Any:
        return Rewrite({"n": 1})

    def permission_request(self, trace: Trace, call: ToolCall) -> Any:
        return Rewrite({"n": 13})


@pytest.mark.parametrize(
    "more",
    [
        {"rules": [PermissionRule.allow("change"), PermissionRule.allow("*")]},
        {"rules": [PermissionRule.exactly("change", {"n": 13})]},
        {"rules": [PermissionRule.ask("change")]},
        {"interceptors": [Asks()]},
        {"interceptors": [Renames()]},
        {"hitl_interceptor": HITLInterceptor().on_tool("change", lambda trace, args: None)},
        {"hitl_interceptor": HITLInterceptor().on_tool("change", lambda trace, args: "look at this")},
        {"hitl_interceptor": HITLInterceptor().on_sensitive_tool("change")},
    ],
)
async def test_no_rule_no_strategy_and_no_hook_brings_a_denied_call_before_a_person_or_lets_it_run(
    bench: Bench, more: dict[str, Any]
) -> None:
    tool = RecordingTool("change")
    rules = [*more.pop("rules", []), PermissionRule.deny("change", '{"n":13}')]
    engine = bench.engine(ScriptedModel([call("change", n=13)], "done"), [tool], rules=rules, **more)

    events = await request(engine, "go")

    assert (outcomes(events), waiting(events), tool.runs) == (["denied"], [], [])


@pytest.mark.parametrize("n", [13, 13.0])
async def test_no_edit_approves_what_is_denied(bench: Bench, n: Any) -> None:
    tool = RecordingTool("change")
    engine = bench.engine(
        ScriptedModel([call("change", n=1)], "done"), [tool], rules=[PermissionRule.deny("change", f'{{"n":{n}}}')]
    )
    session = await engine.session("s")
    await request(engine, "go")
    task = await HITL.get_pending_task(session)

    with pytest.raises(DecisionRefused):
        await HITL.submit(session, task, HITLDecision.approve(modified_args={"n": n}), by="U1")

    assert [one.fingerprint for one in await HITL.get_pending_tasks(session)] == [task.fingerprint]
    assert tool.runs == []


# -- rules that come meanwhile -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", [HITLDecision.reject("no", end=False), HITLDecision.skip("later")])
async def test_a_rule_that_comes_later_never_turns_a_rejected_or_skipped_call_into_a_running_one(
    bench: Bench, decision: Any
) -> None:
    tool = RecordingTool("change")
    engine = bench.engine(ScriptedModel([call("change", n=1), call("change", n=2)], "done"), [tool])
    session = await engine.session("s")
    await request(engine, "go")
    first, _ = await HITL.get_pending_tasks(session)
    await HITL.submit(session, first, decision, by="U1")

    await engine.change_rule("s", PermissionRule.allow("change"), by="U2", why="it is safe after all")
    await request(engine)

    facts = await bench.store.read("s")
    assert tool.runs == [{"n": 2}]
    kept, released = [fact for fact in facts if isinstance(fact, HITLSubmitted)]
    assert (kept.decision, kept.by) == (decision, "U1")
    assert isinstance(released.decision, Approve)
    assert released.via == "release"
    assert [fact.decision for fact in facts if isinstance(fact, HITLDecided)] == [decision, released.decision]


async def test_after_a_reject_that_ended_the_run_a_rule_runs_nothing_of_it(bench: Bench) -> None:
    tool = RecordingTool("change")
    engine = bench.engine(ScriptedModel([call("change", n=1)], "done"), [tool])
    session = await engine.session("s")
    await request(engine, "go")
    await HITL.submit(session, await HITL.get_pending_task(session), HITLDecision.reject("no"), by="U1")

    await engine.change_rule("s", PermissionRule.allow("change"), by="U2", why="it is safe after all")

    assert outcomes(await request(engine)) == []
    assert tool.runs == []
    submitted = only([*await bench.store.read("s")], HITLSubmitted)
    assert isinstance(submitted.decision, Reject)
