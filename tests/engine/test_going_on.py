"""A run goes on while something comes of it: an end that hooks put off, a request that a hook has made shorter."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from harness_core.errors import ModelError
from harness_core.events import ContextCompressed, ModelFailed, RunEnd
from harness_core.hooks import Compress, Continue, Observe, Rewrite
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.ports import ModelRequest
from harness_core.session import Trace
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.engine.harness import Bench, only, request
from tests.engine.test_hook_failures import Breaks
from tests.engine.test_hook_points import at, look, said


def works_and_is_done(rounds: int) -> ScriptedModel:
    """Calls a tool, then says that it is done, so many times; after that it only says so."""
    steps = count()

    def say(sent: ModelRequest) -> Any:
        step = next(steps)
        return "done" if step % 2 or step >= 2 * rounds else call("look", n=step)

    return ScriptedModel(then=say)


async def test_an_end_may_be_put_off_as_long_as_something_comes_of_it(bench: Bench) -> None:
    tool, model = look(), works_and_is_done(6)
    hook = at("before_stop", lambda trace, answer: Continue("More!") if trace.run.steps < 12 else None)
    engine = bench.engine(model, [tool], interceptors=[hook], stop_loop_interceptor=None)

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, len(tool.runs)) == ("completed", 6)


async def test_of_a_tool_that_only_fails_nothing_comes(bench: Bench) -> None:
    tool, model = RecordingTool("look", read_only=True, fails="broken"), works_and_is_done(9)
    hook = at("before_stop", lambda trace, answer: Continue("More!"))
    engine = bench.engine(model, [tool], interceptors=[hook], stop_loop_interceptor=None)

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, end.limit, len(tool.runs)) == ("limited", "hook", 4)


async def test_what_other_hooks_note_of_the_end_or_tell_earlier_does_not_put_it_off(bench: Bench) -> None:
    notes = at("before_stop", lambda trace, answer: Observe("so it ends"), name="notes", rule_class="safety")
    critic = at("before_stop", lambda trace, answer: Continue("More!") if trace.run.steps < 3 else None, name="critic")
    never = at("before_stop", lambda trace, answer: Continue("It is too short."), name="never")
    twice, always = ScriptedModel(then="done"), ScriptedModel(then="done")

    done = only(await request(bench.engine(twice, interceptors=[notes, critic]), "hi", "s1"), RunEnd)
    ended = only(await request(bench.engine(always, interceptors=[notes, never]), "hi", "s2"), RunEnd)

    assert (done.status, len(twice.requests)) == ("completed", 3)
    assert (ended.status, ended.limit, len(always.requests)) == ("limited", "never", 4)
    assert "It says: It is too short." in ended.answer, "the reason, or else what it told the model"


async def test_a_prompt_is_rewritten_in_the_history_also_where_its_run_ended_before_any_model_heard_it(
    bench: Bench,
) -> None:
    model = ScriptedModel(then="done")
    masks = at("user_prompt", lambda trace, prompt: Rewrite(prompt.text.replace("4711", "####")), name="masks")
    engine = bench.engine(model, interceptors=[Breaks("session_start", "safety"), masks])

    first = only(await request(engine, "my card is 4711"), RunEnd)
    await request(engine, "go on")

    assert (first.status, len(model.requests)) == ("stopped", 1)
    assert "4711" not in str([said(sent) for sent in model.requests])


# -- a request that failed for good ------------------------------------------------------------------------------------


class Narrow(ScriptedModel):
    """Calls a tool some times, and refuses long contexts in words that only its owner understands."""

    def __init__(self, most: int) -> None:
        super().__init__(then=self._say)
        self.most, self.steps = most, count()

    def _say(self, sent: ModelRequest) -> Any:
        if len(sent.messages) > self.most:
            return ModelError("refused", "E-4711: zu lang")
        step = next(self.steps)
        return call("look", n=step) if step < 8 else "done"


def shortens(trace: Trace, failed: ModelFailed) -> Compress | None:
    return Compress("zu lang") if "zu lang" in failed.message else None


@pytest.mark.parametrize(("most", "status"), [(14, "completed"), (7, "completed"), (0, "failed")])
async def test_a_failure_that_a_hook_knows_a_cure_for_is_no_failure_until_the_cure_is_used_up(
    bench: Bench, most: int, status: str
) -> None:
    bench.clock.auto = True
    model = Narrow(most)
    engine = bench.engine(
        model,
        [look()],
        interceptors=[at("model_error", shortens)],
        compression_interceptor=ContextCompressionInterceptor(100),
        stop_loop_interceptor=None,
    )

    end = only(await request(engine, "hi"), RunEnd)

    assert end.status == status
    made = [fact for fact in await bench.store.read("s") if isinstance(fact, ContextCompressed)]
    assert bool(made) == (status == "completed")
    assert len(model.requests) < 20


async def test_a_hook_that_always_wants_the_context_shortened_is_heeded_once_for_each_message(bench: Bench) -> None:
    steps = count()
    model = ScriptedModel(then=lambda _: call("look", n=step) if (step := next(steps)) < 16 else "done")
    wants = at("before_model", lambda trace: Compress("tidy") if trace.run.steps > 12 else None)
    engine = bench.engine(
        model,
        [look()],
        interceptors=[wants],
        compression_interceptor=ContextCompressionInterceptor(100),
        stop_loop_interceptor=None,
    )

    assert only(await request(engine, "go"), RunEnd).status == "completed"

    kinds = [type(fact).__name__ for fact in await bench.store.read("s")]
    assert kinds.count("ContextCompressed") == 4, "before each of the last four requests, and no more"


async def test_without_a_hook_that_knows_better_it_ends_the_run_at_once(bench: Bench) -> None:
    model = Narrow(5)
    engine = bench.engine(model, [look()], compression_interceptor=ContextCompressionInterceptor(100))

    end = only(await request(engine, "hi"), RunEnd)

    assert (end.status, len(model.requests)) == ("failed", 4)
    assert "E-4711" in end.answer


@pytest.mark.parametrize(
    "made_up",
    [
        ModelError("bad_request", "no such thing"),  # type: ignore[arg-type]
        ModelError(None, "no such thing"),  # type: ignore[arg-type]
        ModelError("server", "no such thing", retry_after="soon"),  # type: ignore[arg-type]
        ModelError("server", "no such thing", retry_after=float("nan")),
    ],
    ids=["kind", "no kind", "wait", "endless wait"],
)
async def test_a_failure_that_an_adapter_makes_up_is_put_on_record_as_one_and_tried_again(
    bench: Bench, made_up: ModelError
) -> None:
    bench.clock.auto = True
    model = ScriptedModel(then=made_up)

    end = only(await request(bench.engine(model), "hi"), RunEnd)

    assert (end.status, len(model.requests)) == ("failed", 3)
    assert "no such thing" in end.answer
    assert {fact.kind for fact in await bench.store.read("s") if isinstance(fact, ModelFailed)} == {"server"}


async def test_a_failure_whose_words_cannot_be_stored_as_they_are_keeps_its_kind(bench: Bench) -> None:
    bench.clock.auto = True
    model = ScriptedModel(then=ModelError("auth", "the key is wrong \ud800"))

    end = only(await request(bench.engine(model), "hi"), RunEnd)

    assert (end.status, len(model.requests)) == ("failed", 1)
    assert {fact.kind for fact in await bench.store.read("s") if isinstance(fact, ModelFailed)} == {"auth"}
