"""What the engine records, a replay under the same policy says again, verdict by verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from harness_core.agents import Agent
from harness_core.engine import HarnessEngine
from harness_core.errors import ModelError, UnknownTask
from harness_core.events import HookRuled, RunEnd, ToolCallEnd
from harness_core.handle import HITL
from harness_core.hitl import Decision, HITLDecision
from harness_core.hooks import Continue, Deny, Inject, Observe, Rewrite, Stop
from harness_core.interceptors.finish import Finish
from harness_core.interceptors.terminal import Terminal
from harness_core.permissions.rule import PermissionRule
from harness_core.replay import GATE, Ruling, replay, with_rules_of
from harness_core.testing import Attempts, RecordingTool, ScriptedModel, call
from tests.alike import alike
from tests.engine.harness import Bench, request
from tests.engine.test_subagents import Cast

GUARDS = {"lookup": True}


class Everywhere:
    """Says something at every point, so that each is on record."""

    name = "everywhere"

    def session_start(self, trace: Any, prompt: Any) -> Observe:
        return Observe("begun")

    def user_prompt(self, trace: Any, prompt: Any) -> Rewrite:
        return Rewrite(prompt.text + "!", "louder")

    def before_model(self, trace: Any) -> Inject | None:
        return Inject("mind the time") if trace.run.steps == 1 else None

    def after_model(self, trace: Any, said: Any) -> Inject | None:
        return Inject("well said") if said.calls else None

    def before_tool(self, trace: Any, call: Any) -> Any:
        return Rewrite({**call.args, "n": 1}, "one") if call.args.get("n") == 0 else None

    def permission_request(self, trace: Any, call: Any) -> Any:
        return Deny("never nine", suggests="look") if call.args.get("n") == 9 else None

    def after_tool(self, trace: Any, call: Any, result: Any) -> Inject | None:
        return Inject("noted") if call.name == "change" else None

    def model_error(self, trace: Any, failed: Any) -> Stop | None:
        return Stop("The model is away.", "") if len(trace.run.failures) > 2 else None

    def before_stop(self, trace: Any, answer: str) -> Continue | None:
        return Continue("Say more.") if answer == "done" else None

    def run_end(self, trace: Any, end: Any) -> Observe:
        return Observe(end.status)


def away(_: Any) -> Exception:
    return ModelError("server", "busy")


class Guess:
    """Refuses, and may be wrong: it is overruled after a while."""

    name, rule_class = "guess", "drift"

    def before_tool(self, trace: Any, call: Any) -> Any:
        return Deny("look first", escape_key="change", suggests="look") if call.name == "change" else None


def too_long(_: Any) -> Exception:
    return ModelError("overflow", "the context is too long")


class Joins:
    """Has nothing to say of what begins a run, and something of it once the run has begun."""

    name = "joins"

    def user_prompt(self, trace: Any, prompt: Any) -> Rewrite | None:
        return Rewrite(prompt.text + "!") if trace.run else None


class Afraid:
    """Cannot look at the end, and watches over safety."""

    name, rule_class = "afraid", "safety"

    def run_end(self, trace: Any, end: Any) -> None:
        raise RuntimeError("boom")


class Notes:
    """Notes each failure of a model, and each request."""

    name = "notes"

    def model_error(self, trace: Any, failed: Any) -> Observe:
        return Observe(failed.message)

    def before_model(self, trace: Any) -> Observe:
        return Observe("asked")


SCENARIOS: dict[str, tuple[list[Any], list[Decision], dict[str, Any]]] = {
    "reads, and is done": ([call("look"), "done", "really"], [], {}),
    "asks, and is approved": ([call("change", n=2), "fine"], [HITLDecision.approve()], {}),
    "asks, and is edited": (
        [call("change", n=2), "fine"], [HITLDecision.approve(modified_args={"n": 3})], {},
    ),
    "asks, and is rejected": ([call("change", n=2), "fine"], [HITLDecision.reject("no", end=True)], {}),
    "several, one refused": (
        [[call("look"), call("change", n=0), call("change", n=9)], "fine"], [HITLDecision.approve()], {},
    ),
    "at the limit of steps": ([call("look", n=n) for n in range(5)], [], {"max_steps": 3}),
    "goes round in circles": ([call("look", n=1)] * 9, [], {"interceptors": [], "guards": GUARDS}),
    "ends with empty hands": (["", "", "fine"], [], {"interceptors": [Finish()]}),
    "after the end": (
        [call("look"), call("look", n=2), "fine"], [], {"interceptors": [Terminal(("look",))]},
    ),
    "a rule refuses": ([call("change", n=4), "fine"], [], {"rules": [PermissionRule.deny("change")]}),
    "the model fails for good": ([away], [], {}),
    "each failure is noted": ([Attempts(ModelError("server", "busy"), "done")], [], {"interceptors": [Notes()]}),
    "a guess is overruled": (
        [call("change", n=n) for n in range(5)], [HITLDecision.approve()], {"interceptors": [Guess()]},
    ),
    "no such tool": ([call("gone"), "fine"], [], {}),
    "too long, and shortened": (
        [*(call("look", n=n) for n in range(8)), too_long, "key", "summary", call("look", n=99), "fine"], [], {},
    ),
    "heard when it has begun": ([away, call("look"), "fine"], [], {"interceptors": [Joins()]}),
    "nobody looked at the end": (["done"], [], {"interceptors": [Afraid()]}),
    "nobody can be asked": ([call("change", n=4), "fine"], [], {"hitl_enabled": False}),
}  # fmt: skip


async def recorded(bench: Bench, script: list[Any], decisions: list[Decision], **options: Any) -> HarnessEngine:
    bench.clock.auto = True
    if "interceptors" not in options:
        options |= {"interceptors": [Everywhere()], "guards": GUARDS}
    tools = [RecordingTool("look", read_only=True), RecordingTool("change")]
    engine = bench.engine(ScriptedModel(*script, then="fine"), tools, **options)
    session = await engine.session("s")
    await request(engine, "go")
    for decision in decisions:
        await HITL.submit(session, await HITL.get_pending_task(session), decision, by="U2")
        await request(engine)
    await request(engine, "and then?")
    return engine


async def replayed(bench: Bench, engine: HarnessEngine) -> tuple[Ruling, ...]:
    return replay(await bench.store.read("s"), await engine.policy("s"))


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_under_the_same_policy_every_verdict_is_the_recorded_one(bench: Bench, scenario: str) -> None:
    script, decisions, options = SCENARIOS[scenario]
    engine = await recorded(bench, script, decisions, **options)

    said = await replayed(bench, engine)

    assert said
    assert [(r.seq, r.point, r.hook, r.verdict, r.recorded, r.reason) for r in said if r.differs or r.diverges] == []


async def test_what_was_said_after_a_blocked_prompt_is_asked_about_where_it_was(bench: Bench) -> None:
    class Blocks(Everywhere):
        def user_prompt(self, trace: Any, prompt: Any) -> Any:
            return Stop("Not here.") if prompt.text == "bad" else super().user_prompt(trace, prompt)

    bench.clock.auto = True
    engine = bench.engine(ScriptedModel(then="fine"), interceptors=[Blocks()])
    for key in ("one", "bad", "two"):
        await engine.prompt("s", key, key=key, wake=False)
    await request(engine)
    await engine.idle()

    said = await replayed(bench, engine)

    assert [r.verdict for r in said if r.point == "user_prompt"] == ["Rewrite", "Stop", "Rewrite"]
    assert [(r.seq, r.point, r.verdict, r.recorded) for r in said if r.differs or r.diverges] == []


async def test_every_point_is_asked_again(bench: Bench) -> None:
    engine = await recorded(bench, [call("look"), call("change", n=9), "done", "more"], [])

    points = {r.point for r in await replayed(bench, engine) if r.hook == "everywhere" and r.point != GATE}

    assert points == {
        "session_start", "user_prompt", "before_model", "after_model", "permission_request", "before_stop", "run_end",
    }  # fmt: skip


async def test_without_its_hooks_the_session_would_have_gone_another_way(bench: Bench) -> None:
    engine = await recorded(bench, [call("look"), "done", "more"], [])
    bare = bench.engine(ScriptedModel(), [RecordingTool("look", read_only=True)])

    said = replay(await bench.store.read("s"), await bare.policy("s"))

    gone = [(r.hook, r.point, r.recorded) for r in said if r.verdict == "nothing"]
    assert ("everywhere", "user_prompt", "Rewrite") in gone
    assert ("everywhere", "before_stop", "Continue") in gone
    assert next(r for r in said if r.diverges).point == "user_prompt"
    assert engine is not bare


async def test_what_is_told_at_the_end_of_a_run_is_told_again(bench: Bench) -> None:
    class Last:
        name = "last"

        def run_end(self, trace: Any, end: Any) -> Observe:
            return Observe(f"{len(trace.batch)} open, {len(trace.messages)} messages, {len(trace.run.rulings)} rulings")

    bench.clock.auto = True
    model = ScriptedModel(call("change"), "not reached")
    engine = bench.engine(model, [RecordingTool("change")], interceptors=[Last()])
    await request(engine, "go")
    await engine.stop("s", by="U2")
    await engine.idle()

    (recorded,) = [fact.reason for fact in await bench.store.read("s") if isinstance(fact, HookRuled)]

    assert recorded == "0 open, 3 messages, 0 rulings"  # as it will be: each call with its result
    assert [r.reason for r in await replayed(bench, engine) if r.point == "run_end"] == [recorded]


async def test_a_sub_agents_session_is_replayed_under_its_own_rules_and_limits(bench: Bench) -> None:
    rules = (PermissionRule.deny("change", '{"n":9}'),)
    worker = Agent("worker", "Does it.", "You are the worker.", max_steps=3, rules=rules)
    deeds = [call("change", n=9), call("change", n=1), call("change", n=1), "not asked any more"]
    model = Cast([call("task", agent="worker", prompt="go"), "fine"], worker=deeds)
    bench.clock.auto = True
    engine = bench.engine(model, [RecordingTool("change")], agents=[worker])
    session = await engine.session("s")
    await request(engine, "go")
    bench.clock.advance(1.0)
    task = await HITL.get_pending_task(session)
    await HITL.submit(session, task, HITLDecision.approve(always_allow=True), by="U2")
    await request(engine)
    (name,) = await bench.store.sessions("s/")

    policy = await engine.policy(name)
    outer = await bench.store.read("s")
    facts = with_rules_of(outer, await bench.store.read(name))
    as_it_stood = replace(policy, gate=replace(policy.gate, rules=rules))
    said = replay(facts, as_it_stood)

    assert (policy.agent, policy.max_steps) == ("worker", 3)
    assert [r.verdict for r in said if r.point == GATE] == ["deny", "ask", "allow"]
    assert [(r.point, r.hook, r.verdict, r.recorded) for r in said if r.differs or r.diverges] == []
    with pytest.raises(UnknownTask):
        await engine.policy("s/never")


async def test_a_rule_of_the_session_with_the_id_of_another_holds_for_a_replayed_sub_agent(bench: Bench) -> None:
    deny, allow = alike()
    denied = call("change", **json.loads(deny.pattern or ""))
    model = Cast([call("task", agent="worker", prompt="go"), "fine"], worker=[denied, "ok"])
    engine = bench.engine(model, [RecordingTool("change")], agents=[Agent("worker", "Does it.", "You are the worker.")])
    for rule in (deny, allow):
        await engine.change_rule("s", rule)
    bench.clock.advance(1.0)
    await request(engine, "go")
    (name,) = await bench.store.sessions("s/")

    facts = with_rules_of(await bench.store.read("s"), await bench.store.read(name))
    policy = await engine.policy(name)
    bare = replace(policy, gate=replace(policy.gate, rules=()))

    assert [r.verdict for r in replay(facts, bare) if r.point == GATE] == ["deny"]


def slow(bench: Bench, seconds: float, reply: Any) -> Any:
    """What a model says after so many seconds."""

    def said(_: Any) -> Any:
        bench.clock.advance(seconds)
        return reply

    return said


WORKER = Agent("worker", "Does it.", "You are the worker.")
BOSS = Agent("boss", "Hires.", "You are the boss.", ("task", "look", "change"))
HIRE, HIRE_BOSS = call("task", agent="worker", prompt="go"), call("task", agent="boss", prompt="go")

HANDED: dict[str, Any] = {
    "what was rejected before": lambda bench: Cast(
        [call("change", n=1), HIRE, "fine"], worker=[slow(bench, 1.0, call("change", n=1)), "no"]
    ),
    "what was rejected before, one deeper": lambda bench: Cast(
        [call("change", n=1), HIRE_BOSS, "fine"],
        boss=[call("change", n=2), HIRE, "fine"], worker=[[call("change", n=1), call("change", n=2)], "no"],
    ),
    "the time of the session itself": lambda bench: Cast(
        [*(slow(bench, 46.0, call("look", n=n)) for n in range(3)), "half of it"],
    ),
    "the time that was left": lambda bench: Cast(
        [slow(bench, 42.0, HIRE), lambda _: "fine"],
        worker=[*(slow(bench, 11.0, call("look", n=n)) for n in range(5)), "half of it"],
    ),
    "the time that was left, one deeper": lambda bench: Cast(
        [slow(bench, 20.0, HIRE_BOSS), lambda _: "fine"],
        boss=[slow(bench, 20.0, HIRE), lambda _: "half of it"],
        worker=[*(slow(bench, 11.0, call("look", n=n)) for n in range(5)), "half of it"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("cast", HANDED)
async def test_what_a_sub_agent_was_left_of_its_session_holds_in_a_replay(bench: Bench, cast: str) -> None:
    tools = [RecordingTool("look", read_only=True), RecordingTool("change")]
    engine = bench.engine(HANDED[cast](bench), tools, agents=[WORKER, BOSS], max_seconds=100.0)
    session = await engine.session("s")
    await request(engine, "go")
    while task := await HITL.get_pending_task(session):
        bench.clock.advance(500.0)
        await HITL.submit(session, task, HITLDecision.reject("no", end=False), by="U2")
        await request(engine)

    journals = await bench.store.sessions("s")
    said = {name: replay(await bench.store.read(name), await engine.policy(name)) for name in journals}

    assert [(name, r) for name, rulings in said.items() for r in rulings if r.differs or r.diverges] == []
    ends = [e for name in journals for e in await bench.store.read(name) if isinstance(e, ToolCallEnd | RunEnd)]
    told = "rejected exactly this before" if "rejected" in cast else "Stopped at the limit of"
    assert any(told in (e.answer if isinstance(e, RunEnd) else e.content) for e in ends)
