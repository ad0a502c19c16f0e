"""Once a call of a batch has started, hooks may still refuse the others of it, and change nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from harness_core.events import HookRuled, RunEnd, ToolCallEnd, ToolCallStart
from harness_core.hooks import Ask, Deny, Rewrite
from harness_core.permissions.rule import PermissionRule
from harness_core.session import Trace
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.types import ToolCall
from tests.engine.harness import Bench, only, request
from tests.engine.test_hook_points import at, look


def begun(trace: Trace) -> bool:
    return any(state.started for state in trace.batch)


def of(tool: str, rules: Callable[[Trace, ToolCall], Any]) -> Callable[[Trace, ToolCall], Any]:
    return lambda trace, made: rules(trace, made) if made.name == tool else None


@pytest.mark.parametrize(
    "rule", [PermissionRule.deny("change", '{"to":"b"}'), PermissionRule.ask("change", '{"to":"b"}')]
)
async def test_a_call_runs_as_it_was_judged_whatever_a_hook_would_make_of_it_later(
    bench: Bench, rule: PermissionRule
) -> None:
    change = RecordingTool("change")
    turns = at("before_tool", of("change", lambda trace, made: Rewrite({"to": "b"}) if begun(trace) else None))
    rules = [PermissionRule.exactly("change", {"to": "a"}), rule]
    engine = bench.engine(
        ScriptedModel([call("look"), call("change", to="a")], "done"),
        [look(), change],
        interceptors=[turns],
        rules=rules,
    )

    await request(engine, "hi")

    assert change.runs == [{"to": "a"}]
    (ruling,) = [e for e in await bench.store.read("s") if isinstance(e, HookRuled)]
    assert (ruling.verdict, ruling.payload) == ("Observe", {"late": {"to": "b"}})


async def test_a_call_runs_as_hooks_rewrote_it_before_its_batch_began_even_if_they_would_not_any_more(
    bench: Bench,
) -> None:
    change = RecordingTool("change")
    turns = at("before_tool", of("change", lambda trace, made: None if begun(trace) else Rewrite({"to": "safe"})))
    engine = bench.engine(
        ScriptedModel([call("look"), call("change", to="a")], "done"),
        [look(), change],
        interceptors=[turns],
        rules=[PermissionRule.exactly("change", {"to": "safe"})],
    )

    assert only(await request(engine, "hi"), RunEnd).status == "completed"

    assert change.runs == [{"to": "safe"}]
    kinds = [e for e in await bench.store.read("s") if isinstance(e, HookRuled | ToolCallStart)]
    assert [type(e).__name__ for e in kinds] == ["HookRuled", "ToolCallStart", "ToolCallStart"]


async def test_what_is_refused_late_is_what_would_run_and_not_what_another_hook_would_make_of_it(bench: Bench) -> None:
    change = RecordingTool("change")
    hides = at("before_tool", of("change", lambda t, made: Rewrite({"to": "ok"}) if begun(t) else None), name="hides")
    forbids = at("before_tool", lambda t, made: Deny("not a") if begun(t) and made.args.get("to") == "a" else None)
    engine = bench.engine(
        ScriptedModel([call("look"), call("change", to="a")], "done"),
        [look(), change],
        interceptors=[hides, forbids],
        rules=[PermissionRule.allow("change")],
    )

    await request(engine, "hi")

    assert change.runs == []
    assert [e.outcome for e in await bench.store.read("s") if isinstance(e, ToolCallEnd)] == ["ok", "denied"]


async def test_a_hook_that_would_ask_late_asks_nobody(bench: Bench) -> None:
    change = RecordingTool("change")
    asks = at("before_tool", lambda trace, made: Ask("sure?") if begun(trace) else None)
    engine = bench.engine(
        ScriptedModel([call("look"), call("change", to="a")], "done"),
        [look(), change],
        interceptors=[asks],
        rules=[PermissionRule.allow("change")],
    )

    assert only(await request(engine, "hi"), RunEnd).status == "completed"

    assert change.runs == [{"to": "a"}]


async def test_a_restart_between_the_calls_of_a_batch_forgets_no_rewrite(bench: Bench) -> None:
    change, model = RecordingTool("change"), ScriptedModel([call("look"), call("change", to="a")], "done")
    rules = [PermissionRule.exactly("change", {"to": "safe"})]
    turns = at("before_tool", of("change", lambda trace, made: Rewrite({"to": "safe"})))
    dies = look(hold=asyncio.Event(), repeatable=True)
    first = asyncio.create_task(request(bench.engine(model, [dies, change], interceptors=[turns], rules=rules), "hi"))
    await dies.started.reach()
    await bench.drop()
    with suppress(Exception):
        await first

    engine = bench.engine(model, [look(repeatable=True), change], rules=rules)
    assert only(await request(engine), RunEnd).status == "completed"

    assert change.runs == [{"to": "safe"}]
