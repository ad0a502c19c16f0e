"""Guards in a running engine: what they refuse is not run, what they say reaches the model, what they end ends well."""

from __future__ import annotations

from harness_core.events import Event, HookRuled, RunEnd, ToolCallEnd
from harness_core.interceptors.caps import Caps
from harness_core.interceptors.lookup import Lookup
from harness_core.interceptors.terminal import Terminal
from harness_core.permissions.rule import PermissionRule
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.engine.harness import Bench, only, request


def tools(*names: str) -> list[RecordingTool]:
    return [RecordingTool(name, read_only=True) for name in names]


def results(events: list[Event]) -> list[tuple[str, str]]:
    return [(e.outcome, e.content) for e in events if isinstance(e, ToolCallEnd)]


async def test_after_a_terminal_tool_its_siblings_run_and_later_calls_are_told_to_answer(bench: Bench) -> None:
    order, look = tools("order", "look")
    model = ScriptedModel([call("look", n=1), call("order"), call("look", n=2)], call("look", n=3), "ordered")
    engine = bench.engine(model, [order, look], interceptors=[Terminal(("order",))])

    events = await request(engine, "order it")

    assert look.runs == [{"n": 1}, {"n": 2}]
    assert results(events)[-1] == (
        "denied",
        "Denied: order has ended the work, so nothing more is run. Answer now, without calling a tool.",
    )
    assert only(events, RunEnd).answer == "ordered"


async def test_of_a_capped_tool_only_so_many_calls_run_also_of_one_message(bench: Bench) -> None:
    (fetch,) = tools("fetch")
    script = [[call("fetch", n=1), call("fetch", n=2), call("fetch", n=3)], call("fetch", n=4), "enough"]
    engine = bench.engine(ScriptedModel(*script), [fetch], interceptors=[Caps({"fetch": 2})])

    events = await request(engine, "fetch them")

    assert fetch.runs == [{"n": 1}, {"n": 2}]
    assert sorted(outcome for outcome, _ in results(events)) == ["denied", "denied", "ok", "ok"]
    ruled = [e for e in await bench.store.read("s") if isinstance(e, HookRuled)]
    assert {(e.hook, e.rule_class, e.verdict) for e in ruled} == {("caps", "budget", "Deny")}


async def test_a_file_is_read_before_it_is_changed(bench: Bench) -> None:
    (bench.folder / "ws").mkdir()
    (bench.folder / "ws" / "a.txt").write_text("old", "utf-8")
    change = call("edit", path="./a.txt", old="old", new="new")
    engine = bench.engine(
        ScriptedModel(change, call("read", path="a.txt"), change, "changed"),
        ["read", "edit"],
        interceptors=[Lookup()],
        rules=[PermissionRule.allow("edit", "**")],
    )

    events = await request(engine, "change it")

    assert [outcome for outcome, _ in results(events)] == ["denied", "ok", "ok"]
    assert "Call read for it first" in results(events)[0][1]
    assert (bench.folder / "ws" / "a.txt").read_text("utf-8") == "new"


async def test_a_new_file_is_written_unread_and_then_may_be_changed(bench: Bench) -> None:
    engine = bench.engine(
        ScriptedModel(call("write", path="n.txt", content="a"), call("write", path="n.txt", content="b"), "written"),
        ["write"],
        interceptors=[Lookup()],
        rules=[PermissionRule.allow("write", "**")],
    )

    events = await request(engine, "write it")

    assert [outcome for outcome, _ in results(events)] == ["ok", "ok"]
