"""What hooks may do at each point of a run, what the model sees of it, and what is on record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness_core.errors import ModelError
from harness_core.events import (
    Event,
    HookRuled,
    Prompted,
    PromptHeard,
    ReasonEnd,
    RunEnd,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hooks import Compress, Continue, Deny, Inject, Observe, Point, Rewrite, Stop
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.interceptors.stop_loop import StopLoopInterceptor
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ModelRequest
from harness_core.session import Trace, fold
from harness_core.testing import Attempts, RecordingTool, ScriptedModel, call
from harness_core.types import digest
from tests.engine.harness import Bench, only, prompted, request
from tests.engine.test_resume import paired


def at(point: Point, rules: Callable[..., Any], *, name: str = "hook", rule_class: str = "drift") -> Any:
    """An interceptor with one method."""
    made = type("Interceptor", (), {point: staticmethod(rules)})()
    made.name, made.rule_class = name, rule_class
    return made


def once(verdict: Any) -> Callable[..., Any]:
    """A hook that rules this while none of its rulings are on record."""
    return lambda trace, *about: None if trace.run and trace.run.rulings else verdict


def look(**how: Any) -> RecordingTool:
    return RecordingTool("look", read_only=True, **how)


def said(asked: ModelRequest) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in asked.messages]


async def rulings(bench: Bench) -> list[HookRuled]:
    return [e for e in await bench.store.read("s") if isinstance(e, HookRuled)]


async def around(bench: Bench, kind: type[Event]) -> list[str]:
    """The kinds of facts that were written at the same moment as the first one of a kind."""
    facts = await bench.store.read("s")
    first = next(e for e in facts if isinstance(e, kind))
    return [type(e).__name__ for e in facts if e.at == first.at]


# -- observing ---------------------------------------------------------------------------------------------------------

POINTS: Sequence[Point] = (
    "session_start", "user_prompt", "before_model", "after_model", "before_tool", "after_tool", "before_stop",
    "run_end",
)  # fmt: skip


async def test_every_point_of_a_run_is_asked_in_its_order_and_notes_change_nothing(bench: Bench) -> None:
    class Notes:
        name = "notes"

        def __getattr__(self, point: str) -> Any:
            if point not in POINTS:
                raise AttributeError(point)
            return lambda trace, *about: Observe(point)

    model = ScriptedModel([call("look")], "done", "done again")
    engine = bench.engine(model, [look()], interceptors=[Notes()])

    assert only(await request(engine, "hi"), RunEnd).answer == "done"
    await request(engine, "again")

    seen = [r.point for r in await rulings(bench)]
    first = seen[: seen.index("run_end") + 1]
    assert [p for i, p in enumerate(first) if p not in first[:i]] == list(POINTS)
    assert seen.count("session_start") == 1, "a session begins once"
    assert said(model.requests[0]) == [("user", "hi")]


# -- prompts -----------------------------------------------------------------------------------------------------------


async def test_a_prompt_is_heard_as_a_hook_rewrote_it_and_stays_in_the_journal_as_it_was(bench: Bench) -> None:
    model = ScriptedModel("done")
    hook = at("user_prompt", lambda trace, prompt: Rewrite(prompt.text.replace("4711", "####"), "no card numbers"))
    engine = bench.engine(model, interceptors=[hook])

    await request(engine, "my card is 4711")

    assert said(model.requests[0]) == [("user", "my card is ####")]
    facts = await bench.store.read("s")
    assert [e.text for e in facts if isinstance(e, Prompted | PromptHeard)] == ["my card is 4711", "my card is ####"]
    assert fold(facts).messages[0].content == "my card is ####"


async def test_a_prompt_is_ruled_on_once_however_often_the_model_has_to_be_asked(bench: Bench) -> None:
    bench.clock.auto = True
    model = ScriptedModel(lambda _: ModelError("server", "busy") if len(model.requests) < 3 else "done")
    engine = bench.engine(model, interceptors=[at("user_prompt", lambda trace, prompt: Rewrite(f"<{prompt.text}>"))])

    await request(engine, "hi")

    assert {tuple(said(asked)) for asked in model.requests} == {(("user", "<hi>"),)}
    assert len(await rulings(bench)) == 1


async def test_a_prompt_that_joins_a_run_is_ruled_on_before_the_model_hears_it(bench: Bench) -> None:
    gate = asyncio.Event()
    tool, model = look(hold=gate), ScriptedModel([call("look")], "done")
    engine = bench.engine(model, [tool], interceptors=[at("user_prompt", lambda t, p: Rewrite(p.text.upper()))])
    first = asyncio.create_task(request(engine, "one"))
    await tool.started.reach()
    second = asyncio.create_task(request(engine, "two"))
    await prompted(bench.store, "two")
    gate.set()
    await asyncio.gather(first, second)

    assert [text for role, text in said(model.requests[-1]) if role == "user"] == ["ONE", "TWO"]


async def test_a_prompt_that_a_hook_blocks_reaches_no_model_then_or_later(bench: Bench) -> None:
    model = ScriptedModel("fine")
    hook = at("user_prompt", lambda t, p: Stop("That is not for here.") if "forbidden" in p.text else None)
    engine = bench.engine(model, interceptors=[hook])

    end = only(await request(engine, "forbidden words"), RunEnd)
    assert (end.status, end.answer) == ("stopped", "That is not for here.")
    assert only(await request(engine, "hello"), RunEnd).status == "completed"

    assert [said(asked) for asked in model.requests] == [[("user", "hello")]]


async def test_what_was_said_after_a_blocked_prompt_is_ruled_on_and_answered_in_the_next_run(bench: Bench) -> None:
    def rules(trace: Trace, prompt: Prompted) -> Stop | Rewrite | None:
        if "forbidden" in prompt.text:
            return Stop("That is not for here.")
        return Rewrite(prompt.text.replace("4711", "####")) if "4711" in prompt.text else None

    model = ScriptedModel(then="done")
    engine = bench.engine(model, interceptors=[at("user_prompt", rules)])
    for place, text in enumerate(("hello", "forbidden words", "my card is 4711")):
        bench.clock.advance(1.0)
        await engine.prompt("s", text, key=f"k{place}", wake=False)

    await request(engine)
    await engine.idle()

    assert [e.status for e in await bench.store.read("s") if isinstance(e, RunEnd)] == ["stopped", "completed"]
    assert [said(asked) for asked in model.requests] == [[("user", "hello"), ("user", "my card is ####")]]


async def test_an_edit_is_ruled_on_anew_and_what_was_made_of_the_prompt_before_is_forgotten(bench: Bench) -> None:
    gate = asyncio.Event()
    tool, model = look(hold=gate), ScriptedModel([call("look")], "done")
    redacts = at("user_prompt", lambda trace, prompt: Rewrite(prompt.text.replace("4711", "####")))
    engine = bench.engine(model, [tool], interceptors=[redacts])
    stream = asyncio.create_task(request(engine, "hi"))
    await tool.started.reach()
    seqs = [fact.seq for fact in [await engine.prompt("s", "card 4711", key="k")] if fact]
    trace = await engine.trace("s")
    await bench.store.append("s", PromptHeard(seqs[0] or 0, "card ####"), after=trace.seq)
    await engine.amend("s", "k", "the card is 4711")
    gate.set()
    await stream

    assert [text for role, text in said(model.requests[-1]) if role == "user"] == ["hi", "the card is ####"]


async def test_an_edit_while_the_model_answers_slips_past_no_hook_and_changes_no_history(bench: Bench) -> None:
    gate = asyncio.Event()
    model = ScriptedModel([call("look")], "done", hold=gate)
    redacts = at("user_prompt", lambda trace, prompt: Rewrite(prompt.text.replace("4711", "####")))
    engine = bench.engine(model, [look()], interceptors=[redacts])
    await engine.prompt("s", "card 4711", key="k")
    await engine.prompt("s", "second", key="l")
    await model.asked.reach()
    await engine.amend("s", "k", "my card is 4711")
    await engine.amend("s", "l", None)
    gate.set()
    await engine.idle()

    heard = [[text for role, text in said(asked) if role == "user"] for asked in model.requests]
    assert heard == [["card ####", "second"]] * 2
    assert [m.content for m in (await engine.trace("s")).messages if m.role == "user"] == heard[0]


# -- the model ---------------------------------------------------------------------------------------------------------


async def test_what_hooks_tell_the_model_follows_the_results_in_the_order_of_hooks_and_before_new_prompts(
    bench: Bench,
) -> None:
    gate = asyncio.Event()
    tool, model = look(hold=gate), ScriptedModel([call("look")], "done")

    def says(text: str) -> Callable[[Trace], Inject | None]:
        return lambda trace: Inject(text) if trace.run and trace.run.steps == 1 else None

    hooks = [at("before_model", says("late")), at("before_model", says("early"), rule_class="budget")]
    engine = bench.engine(model, [tool], interceptors=hooks)
    first = asyncio.create_task(request(engine, "hi"))
    await tool.started.reach()
    second = asyncio.create_task(request(engine, "more"))
    await prompted(bench.store, "more")
    gate.set()
    await asyncio.gather(first, second)

    assert said(model.requests[1])[2:] == [("tool", "done"), ("user", "early"), ("user", "late"), ("user", "more")]
    assert [m.content for m in (await engine.trace("s")).messages[3:6]] == ["early", "late", "more"]


async def test_what_is_told_with_a_request_that_fails_is_told_once_when_one_works(bench: Bench) -> None:
    bench.clock.auto = True
    model = ScriptedModel(lambda _: ModelError("server", "busy") if len(model.requests) < 2 else "done")
    engine = bench.engine(model, interceptors=[at("before_model", once(Inject("be brief")))])

    await request(engine, "hi")

    assert [said(asked) for asked in model.requests] == [[("user", "be brief"), ("user", "hi")]] * 2
    assert [r.verdict for r in await rulings(bench)] == ["Inject"]
    assert [m.content for m in (await engine.trace("s")).messages] == ["be brief", "hi", "done"]


async def test_what_hooks_note_of_each_attempt_is_stored_with_what_came_of_it(bench: Bench) -> None:
    bench.clock.auto = True
    model = ScriptedModel(Attempts(ModelError("server", "busy"), ModelError("server", "busy"), "done"))
    notes = at("model_error", lambda trace, failed: Observe(f"attempt {failed.attempt}"))
    engine = bench.engine(model, interceptors=[notes])

    await request(engine, "hi")

    assert [r.reason for r in await rulings(bench)] == ["attempt 1", "attempt 2"]
    kinds = [type(e).__name__ for e in await bench.store.read("s")]
    assert kinds[2:] == ["ModelFailed", "HookRuled", "ModelFailed", "HookRuled", "ReasonEnd", "RunEnd"]


async def test_a_stop_before_the_model_is_asked_ends_the_run_at_once(bench: Bench) -> None:
    model = ScriptedModel("never")
    engine = bench.engine(model, interceptors=[at("before_model", lambda trace: Stop("Closed on Sundays."))])

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, end.answer, model.requests) == ("stopped", "Closed on Sundays.", [])
    assert [r.verdict for r in await rulings(bench)] == ["Stop"]


async def test_a_stop_with_a_limit_leaves_the_model_one_last_message_whose_calls_are_not_carried_out(
    bench: Bench,
) -> None:
    tool, model = look(), ScriptedModel([call("look")], ["I know it is 3.", call("look")])
    spent = at("before_model", lambda trace: Stop("The budget is spent.", "budget") if trace.run.steps else None)
    engine = bench.engine(model, [tool], interceptors=[spent])

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, end.limit) == ("limited", "budget")
    assert end.answer == "The budget is spent.\n\nSo far: I know it is 3."
    assert len(tool.runs) == 1
    assert "one last message" in said(model.requests[1])[-1][1]
    assert [e.outcome for e in await bench.store.read("s") if isinstance(e, ToolCallEnd)] == ["ok", "not_run"]


async def test_after_a_message_hooks_may_tell_the_model_something_once_its_calls_have_results(bench: Bench) -> None:
    model = ScriptedModel(["so", call("look"), call("look")], "done")
    engine = bench.engine(model, [look()], interceptors=[at("after_model", once(Inject("mind the gap")))])

    await request(engine, "hi")

    assert [role for role, _ in said(model.requests[1])] == ["user", "assistant", "tool", "tool", "user"]
    assert said(model.requests[1])[-1] == ("user", "mind the gap")


async def test_what_is_told_after_the_last_message_of_a_run_is_not_heard_in_the_next(bench: Bench) -> None:
    model = ScriptedModel("one", "two")
    engine = bench.engine(model, interceptors=[at("after_model", lambda trace, said: Inject("too late"))])

    await request(engine, "hi")
    await request(engine, "again")

    assert said(model.requests[1]) == [("user", "hi"), ("assistant", "one"), ("user", "again")]


async def test_a_stop_after_a_message_leaves_its_calls_undone(bench: Bench) -> None:
    tool = look()
    hook = at("after_model", lambda trace, said: Stop("Enough.") if said.calls else None)
    engine = bench.engine(ScriptedModel([call("look"), call("look")]), [tool], interceptors=[hook])

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, end.answer, tool.runs) == ("stopped", "Enough.", [])
    ends = [e for e in await bench.store.read("s") if isinstance(e, ToolCallEnd)]
    assert [e.outcome for e in ends] == ["not_run", "not_run"]
    assert "HookRuled" in await around(bench, ReasonEnd), "stored with the message that it is about"


async def test_a_model_s_error_may_end_the_run_in_a_hook_s_words(bench: Bench) -> None:
    hook = at("model_error", lambda trace, failed: Stop(f"The model is out ({failed.kind}).", "model"))
    engine = bench.engine(ScriptedModel(ModelError("server", "busy")), interceptors=[hook])

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, end.limit, end.answer) == ("limited", "model", "The model is out (server).")


async def test_a_hook_may_have_the_context_shortened_once_for_each_message(bench: Bench) -> None:
    model = ScriptedModel(*[[call("look", n=n)] for n in range(6)], "done")
    hook = at("before_model", lambda trace: Compress("tidy") if trace.run.steps == 6 else None)
    seen = []
    after = at("after_compress", lambda trace, fact: seen.append(fact.why) or Observe("shortened"), name="after")
    engine = bench.engine(
        model,
        [look()],
        interceptors=[hook, after],
        compression_interceptor=ContextCompressionInterceptor(100),
        stop_loop_interceptor=StopLoopInterceptor(escalate=False, often=None),
    )

    await request(engine, "hi")

    kinds = [type(e).__name__ for e in await bench.store.read("s")]
    assert kinds.count("ContextCompressed") == len(seen) == 1
    assert len(model.requests[5].messages) == 11
    assert len(model.requests[6].messages) < 13
    assert all(paired(asked) for asked in model.requests)
    where = kinds.index("ContextCompressed")
    assert kinds[where + 1 : where + 3] == ["HookRuled", "HookRuled"], "the wish, and the note about it"


# -- results -----------------------------------------------------------------------------------------------------------


async def test_a_result_is_stored_as_a_hook_rewrote_it_with_the_digest_of_what_it_was(bench: Bench) -> None:
    model = ScriptedModel([call("look")], "done")
    hook = at("after_tool", lambda trace, made, result: Rewrite(result.content[:4] + "…"))
    engine = bench.engine(model, [look(result="long and tedious")], interceptors=[hook])

    shown = await request(engine, "hi")

    assert only(shown, ToolCallEnd).content == "long…"
    assert said(model.requests[1])[-1] == ("tool", "long…")
    (ruling,) = await rulings(bench)
    assert ruling.payload == {"original": digest("long and tedious")}


async def test_what_a_hook_tells_of_a_result_is_made_of_it_as_others_rewrote_it(bench: Bench) -> None:
    model = ScriptedModel([call("look")], "done")
    tells = at("after_tool", lambda trace, made, result: Inject(f"It says {result.content}."), rule_class="termination")
    turns = at("after_tool", lambda trace, made, result: Rewrite("####"))
    late = at("after_tool", lambda trace, made, result: Inject("4711!") if "4711" in result.content else None, name="l")
    engine = bench.engine(model, [look(result="4711")], interceptors=[tells, late, turns])

    await request(engine, "hi")

    assert said(model.requests[1])[2:] == [("tool", "####"), ("user", "It says ####.")]
    assert [r.verdict for r in await rulings(bench)] == ["Rewrite", "Inject"]


@pytest.mark.parametrize("blank", ["", " \n"])
async def test_a_rewritten_result_is_never_empty(bench: Bench, blank: str) -> None:
    model = ScriptedModel([call("look")], "done")
    engine = bench.engine(model, [look()], interceptors=[at("after_tool", lambda *about: Rewrite(blank))])

    await request(engine, "hi")

    assert said(model.requests[1])[-1] == ("tool", "(no output)")


async def test_what_hooks_say_about_results_waits_until_all_of_the_batch_have_theirs(bench: Bench) -> None:
    model = ScriptedModel([call("look", n=1), call("look", n=2)], "done")
    hook = at("after_tool", lambda trace, made, result: Inject(f"about {made.args['n']}"))
    engine = bench.engine(model, [look()], interceptors=[hook])

    await request(engine, "hi")

    roles = [role for role, _ in said(model.requests[1])]
    assert roles == ["user", "assistant", "tool", "tool", "user", "user"]
    assert [text for _, text in said(model.requests[1])][-2:] == ["about 1", "about 2"]


async def test_two_gates_are_never_taken_for_one_by_their_names_and_keys(bench: Bench) -> None:
    model, change = ScriptedModel(*[[call("look")]] * 2, call("change"), "done"), RecordingTool("change")
    one = at("before_tool", lambda t, made: Deny("x", escape_key="c") if made.name == "look" else None, name="a b")
    other = at("before_tool", lambda t, made: Deny("y", escape_key="b c") if made.name == "change" else None, name="a")
    engine = bench.engine(
        model,
        [look(), change],
        interceptors=[one, other],
        rules=[PermissionRule.allow("change")],
        stop_loop_interceptor=StopLoopInterceptor(escalate=False, often=None),
    )

    await request(engine, "hi")

    assert change.runs == []


# -- the end -----------------------------------------------------------------------------------------------------------


async def test_a_run_goes_on_while_a_hook_wants_more_and_ends_when_it_has_it(bench: Bench) -> None:
    model = ScriptedModel("done already", [call("look")], "now it is done")
    hook = at("before_stop", lambda trace, answer: None if "look" in trace.succeeded else Continue("Look first."))
    engine = bench.engine(model, [look()], interceptors=[hook])

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, end.answer) == ("completed", "now it is done")
    assert said(model.requests[1]) == [("user", "hi"), ("assistant", "done already"), ("user", "Look first.")]


async def test_a_hook_that_is_never_content_ends_the_run_after_some_rounds_with_its_reason(bench: Bench) -> None:
    model = ScriptedModel(then="done")
    hook = at("before_stop", lambda trace, answer: Continue("More!", "tests are missing"), name="critic")
    engine = bench.engine(model, interceptors=[hook])

    end = only(await request(engine, "hi"), RunEnd)

    assert len(model.requests) == 4
    assert (end.status, end.limit) == ("limited", "critic")
    assert "critic" in end.answer
    assert "tests are missing" in end.answer
    assert end.answer.endswith("So far: done")


# -- faults ------------------------------------------------------------------------------------------------------------


async def test_a_verdict_that_a_point_does_not_accept_is_a_fault_and_not_silently_dropped(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel("done"), interceptors=[at("before_model", lambda trace: Deny("no"))])

    await request(engine, "hi")

    (ruling,) = await rulings(bench)
    assert ruling.verdict == "Failed"
    assert "before_model does not accept" in ruling.reason


async def test_a_hook_cannot_change_what_it_is_shown(bench: Bench) -> None:
    tool = look()

    def sly(trace: Trace, *about: Any) -> None:
        for state in trace.batch:
            state.call.args["n"] = 666  # type: ignore[index]

    model = ScriptedModel([call("look", n=1, deep={"x": [1]})], "done")
    engine = bench.engine(model, [tool], interceptors=[at("before_tool", sly)], rules=[PermissionRule.allow("look")])

    await request(engine, "hi")

    started = [e.effective for e in await bench.store.read("s") if isinstance(e, ToolCallStart)]
    assert [args["n"] for args in (*started, *tool.runs)] in ([], [1, 1])
    assert [e.calls[0].args["n"] for e in await bench.store.read("s") if isinstance(e, ReasonEnd) and e.calls] == [1]
