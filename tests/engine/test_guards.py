"""Guards in a running engine: what they refuse is not run, what they say reaches the model, what they end ends well."""

from __future__ import annotations

from harness_core.errors import ModelError
from harness_core.events import Event, HookRuled, RunEnd, ToolCallEnd
from harness_core.interceptors.budget import Budget
from harness_core.interceptors.caps import Caps
from harness_core.interceptors.fields import HARNESS
from harness_core.interceptors.finish import Finish
from harness_core.interceptors.lookup import Lookup
from harness_core.interceptors.refused import Refused
from harness_core.interceptors.terminal import Terminal
from harness_core.interceptors.watchdog import Watchdog
from harness_core.permissions.rule import PermissionRule
from harness_core.testing import Attempts, RecordingTool, ScriptedModel, call
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


# -- what ends a run ---------------------------------------------------------------------------------------------------


def told(model: ScriptedModel, request: int) -> str:
    """All that the model was told by the harness up to this request, the first being 0."""
    return "\n".join(m.content for m in model.requests[request].messages if HARNESS in m.content)


async def test_a_run_in_which_nothing_works_is_told_and_then_ends_with_what_there_is(bench: Bench) -> None:
    broken = RecordingTool("look", fails="no", read_only=True)
    model = ScriptedModel(*[[f"try {n}", call("look", n=n)] for n in range(4)], "I found half of it.")
    engine = bench.engine(model, [broken], interceptors=[Watchdog(nudge_after=2, end_after=4)])

    end = only(await request(engine, "look"), RunEnd)

    assert (end.status, end.limit) == ("limited", "watchdog")
    assert "no tool has succeeded in the last 4 steps" in end.answer
    assert "I found half of it." in end.answer
    assert told(model, 1) == ""
    assert told(model, 4).count("No tool has succeeded in your last 2 messages") == 1


async def test_an_empty_answer_is_asked_for_again_so_often_and_no_more(bench: Bench) -> None:
    better, never = ScriptedModel(Attempts("", "Here it is.")), ScriptedModel("")

    good = only(await request(bench.engine(better, interceptors=[Finish()]), "hi", "s1"), RunEnd)
    bad = only(await request(bench.engine(never, interceptors=[Finish(nudges=2)]), "hi", "s2"), RunEnd)

    assert (good.status, good.answer) == ("completed", "Here it is.")
    assert "Your last message was empty" in told(better, 1)
    assert len(never.requests) == 3
    assert bad.answer == ""


async def test_a_promise_is_held_to(bench: Bench) -> None:
    (look,) = tools("look")
    model = ScriptedModel("Let me check.", call("look"), "It is fine.")

    end = only(await request(bench.engine(model, [look], interceptors=[Finish()]), "is it fine?"), RunEnd)

    assert (len(look.runs), end.answer) == (1, "It is fine.")


async def test_a_refused_call_that_comes_again_is_told_what_to_do_and_ends_the_run_in_the_end(bench: Bench) -> None:
    (pay,) = tools("pay")
    model = ScriptedModel(*[call("pay", sum=5)] * 3, "It was refused.")
    engine = bench.engine(
        model, [pay], interceptors=[Refused(nudge_after=2, end_after=3)], rules=[PermissionRule.deny("pay")]
    )

    end = only(await request(engine, "pay"), RunEnd)

    assert (end.status, end.limit, pay.runs) == ("limited", "refused", [])
    assert "pay was refused 2 times" in told(model, 2)
    assert "It was refused." in end.answer


async def test_a_budget_is_told_when_it_gets_short_and_ends_the_run_when_it_is_used_up(bench: Bench) -> None:
    (look,) = tools("look")
    model = ScriptedModel(*[call("look", n=n) for n in range(5)], then="so far")  # 110 tokens a message
    engine = bench.engine(model, [look], interceptors=[Budget(run_tokens=400, warn_at=0.5)])

    end = only(await request(engine, "look around"), RunEnd)

    assert (end.status, end.limit) == ("limited", "budget")
    assert "this run has used up its budget of 400 tokens" in end.answer
    assert told(model, 4).count("Mind the budget: this run has used 55%") == 1
    assert len(look.runs) == 4


async def test_what_the_model_is_told_once_is_not_told_again_because_a_request_failed(bench: Bench) -> None:
    bench.clock.auto = True
    (look,) = tools("look")
    model = ScriptedModel(call("look"), Attempts(ModelError("server", "busy"), ModelError("server", "busy"), "done"))
    engine = bench.engine(model, [look], interceptors=[Budget(run_tokens=200, warn_at=0.5)])

    await request(engine, "look")

    assert told(model, len(model.requests) - 1).count("Mind the budget") == 1


async def test_a_gate_that_guesses_lets_through_who_insists(bench: Bench) -> None:
    (bench.folder / "ws").mkdir()
    (bench.folder / "ws" / "a.txt").write_text("old", "utf-8")
    engine = bench.engine(
        ScriptedModel(*[call("edit", path="a.txt", old="old", new="new")] * 3, "changed"),
        ["edit"],
        guards={"lookup": True},
        rules=[PermissionRule.allow("edit", "**")],
    )

    events = await request(engine, "change it, I know what is in it")

    assert [outcome for outcome, _ in results(events)] == ["denied", "denied", "ok"]
    assert only(events, RunEnd).status == "completed"
