"""What an engine is given is looked at when it is given: what would never work, or never count, is refused in words."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from harness_core import (
    Agent,
    CompositeCompressionStrategy,
    ContextCompressionInterceptor,
    Deny,
    Expiry,
    HITLInterceptor,
    KeyInfoExtractionStrategy,
    PermissionRule,
    RunEnd,
    StopLoopInterceptor,
    hook,
)
from harness_core.errors import ConfigError
from harness_core.extensions import AgentBuilder
from harness_core.guards import guards_from
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.engine.harness import Bench, only, request

NAN = math.nan
MISSPELT: Any = PermissionRule("alow", "look")  # type: ignore[arg-type]


class Misspelt:
    def befor_tool(self, trace: Any, call: Any) -> Deny:
        return Deny("Never asked.")


class Fine:
    def before_tool(self, trace: Any, call: Any) -> Deny:
        return Deny("No.")


@hook("before_tool")
def no(trace: Any, call: Any) -> Deny:
    return Deny("No.")


async def later(*given: Any) -> None:
    """Nobody would await it."""


ADDS: dict[str, Callable[[AgentBuilder], object]] = {
    "an interceptor that is asked at no point": lambda builder: builder.default_interceptor_add(Misspelt()),
    "a text as a rule": lambda builder: builder.permission_rule_add("deny look"),  # type: ignore[arg-type]
    "a rule of no effect": lambda builder: builder.permission_rule_add(MISSPELT),
}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rules": ["deny look"]}, "must be a PermissionRule, .* not 'deny look'"),
        ({"rules": [MISSPELT]}, "no effect 'alow'"),
        ({"rules": [PermissionRule.deny(None)]}, "name of a tool"),  # type: ignore[arg-type]
        ({"rules": [PermissionRule.deny("look", 7)]}, "pattern"),  # type: ignore[arg-type]
        ({"rules": PermissionRule.deny("look")}, "rules must be a list"),
        ({"interceptors": [Misspelt()]}, "Misspelt is asked at no point"),
        ({"interceptors": [None]}, "NoneType is asked at no point"),
        ({"interceptors": ["finish"]}, "str is asked at no point"),
        ({"interceptors": [Fine]}, "Fine is a class"),
        ({"interceptors": Fine()}, "interceptors must be a list"),
        ({"interceptors": [HITLInterceptor()]}, "hitl_interceptor="),
        ({"interceptors": [ContextCompressionInterceptor()]}, "compression_interceptor="),
        ({"interceptors": guards_from({"limits": {"steps": 3}})}, "guards="),
        ({"stop_loop_interceptor": "none"}, "str is asked at no point"),
        ({"stop_loop_interceptor": StopLoopInterceptor(), "guards": {}}, "stop_loop"),
        ({"guards": guards_from({})}, "guards must be a table"),
        ({"guards": {"terminal": {"tools": ["lok"]}}}, "there is no tool 'lok'"),
        ({"hitl_interceptor": HITLInterceptor}, "hitl_interceptor must be"),
        ({"compression_interceptor": KeyInfoExtractionStrategy()}, "compression_interceptor must be"),
        ({"max_steps": "20"}, "max_steps must be a whole number above 0, not '20'"),
        ({"max_steps": None}, "max_steps"),
        ({"max_steps": 1.5}, "max_steps"),
        ({"max_steps": True}, "max_steps"),
        ({"parallel": 0}, "parallel"),
        ({"max_seconds": NAN}, "max_seconds must be a number above 0, not nan"),
        ({"max_seconds": None}, "max_seconds"),
        ({"model_timeout": 0}, "model_timeout"),
        ({"model_timeout": NAN}, "model_timeout"),
        ({"context_length": 0}, "context_length"),
        ({"context_length": "128k"}, "context_length"),
        ({"hitl_enabled": "false"}, "hitl_enabled must be True or False, not 'false'"),
        ({"system_prompt": None}, "system_prompt must be a text"),
        ({"agent": None}, "agent must be a text"),
        ({"expiries": {"look": 60}}, "expiries"),
        ({"compression_max_messages": None}, "max_messages must be a whole number"),
        ({"compression_max_context_ratio": "0.5"}, "max_context_ratio"),
        ({"options": {"max_steps": 3}}, "options must be HarnessOptions"),
        ({"agents": Agent("a", "b", "c")}, "agents must be"),
        ({"model": "gpt-4"}, "'gpt-4' is no model"),
        ({"agents": [Agent("a", "b", "c", model="small")], "models": lambda name: name}, "'small' is no model"),
        ({"extensions": [7]}, "7 is no extension"),
        ({"extensions": [later]}, "later is no extension: it must be a plain function"),
        ({"extensions": later}, "extensions must be a list"),
    ],
)
async def test_what_could_never_work_is_refused_in_words(bench: Bench, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        bench.engine(**{"model": ScriptedModel("x"), "tools": [RecordingTool("look")], **given})


@pytest.mark.parametrize("adds", ADDS.values(), ids=ADDS)
async def test_what_an_extension_adds_is_looked_at_too(bench: Bench, adds: Callable[[AgentBuilder], object]) -> None:
    engine = bench.engine(ScriptedModel("fine"))

    with pytest.raises(ConfigError):
        engine.add_extension(lambda _engine, _agent, builder: adds(builder) and None)
    assert only(await request(engine, "hi"), RunEnd).answer == "fine"


@pytest.mark.parametrize("rule", ["deny look", MISSPELT, None])
async def test_what_is_no_rule_changes_nothing_while_sessions_live(bench: Bench, rule: Any) -> None:
    engine = bench.engine(ScriptedModel("fine"))

    with pytest.raises(ConfigError):
        engine.add_permission_rule(rule)
    with pytest.raises(ConfigError):
        await engine.change_rule("s", rule)
    assert only(await request(engine, "hi"), RunEnd).answer == "fine"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Expiry(-1),
        lambda: Expiry(NAN),
        lambda: Expiry(60, "hlat"),  # type: ignore[arg-type]
        lambda: StopLoopInterceptor("3"),  # type: ignore[arg-type]
        lambda: StopLoopInterceptor(3, NAN),  # type: ignore[arg-type]
        lambda: StopLoopInterceptor(often=4),  # type: ignore[arg-type]
        lambda: StopLoopInterceptor(often=(9, 2)),
        lambda: ContextCompressionInterceptor("100"),  # type: ignore[arg-type]
        lambda: ContextCompressionInterceptor(strategy="hierarchical"),  # type: ignore[arg-type]
        lambda: ContextCompressionInterceptor(strategy=KeyInfoExtractionStrategy),  # type: ignore[arg-type]
        lambda: CompositeCompressionStrategy("key info"),  # type: ignore[arg-type]
        lambda: CompositeCompressionStrategy().add_strategy(KeyInfoExtractionStrategy),  # type: ignore[arg-type]
        lambda: HITLInterceptor().on_tool("look", "always"),  # type: ignore[arg-type]
        lambda: HITLInterceptor().on_tool("look", later),  # type: ignore[arg-type]
        lambda: HITLInterceptor().on_sensitive_tool(["look"]),  # type: ignore[arg-type]
        lambda: HITLInterceptor().on_approved(7),  # type: ignore[arg-type]
    ],
)
def test_a_part_that_could_never_work_is_refused_when_it_is_made(wrong: Callable[[], object]) -> None:
    with pytest.raises(ConfigError):
        wrong()


async def test_guards_are_a_table_that_sets_limits_and_the_loop_detector_too(bench: Bench) -> None:
    look = RecordingTool("look", read_only=True)
    engine = bench.engine(
        ScriptedModel(then=[call("look")]),
        [look],
        guards={"limits": {"steps": 6}, "stop_loop": False, "watchdog": False},
    )

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, end.limit) == ("limited", "steps")
    assert len(look.runs) == 6, "nothing told, refused or ended it before"
    assert "watchdog" not in [getattr(one, "name", "") for one in (await engine.policy("s")).gate.hooks]


async def test_what_an_extension_adds_stands_beside_the_guards(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel([call("look")], "done"), [RecordingTool("look", read_only=True)], guards={})
    engine.add_extension(lambda _engine, _agent, builder: builder.default_interceptor_add(no) and None)

    await request(engine, "hi")

    names = [getattr(one, "name", "") for one in (await engine.policy("s")).gate.hooks]
    assert {"no", "watchdog", "stop_loop"} <= {*names}


async def test_a_model_is_what_can_be_asked(bench: Bench) -> None:
    class Mine:
        name = "mine"

        async def stream(self, request: Any, deadline: Any) -> AsyncIterator[Any]:
            yield ScriptedModel  # junk, but of a model

    assert bench.engine(Mine())
