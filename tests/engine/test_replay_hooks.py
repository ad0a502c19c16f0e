"""Whatever hooks rule: under the same policy a replay finds what is on record, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness_core.errors import ModelError
from harness_core.events import HookRuled
from harness_core.hooks import Compress, Deny, Inject, Observe, Rewrite, Stop
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.interceptors.stop_loop import StopLoopInterceptor
from harness_core.replay import Ruling, replay
from harness_core.session import Trace
from harness_core.testing import FakeClock, RecordingTool, ScriptedModel, call
from tests.engine.harness import Bench, request
from tests.engine.test_replay_any import Ticking

QUIET = StopLoopInterceptor(escalate=False, often=None)


class Rules:
    """A hook that rules one thing at each of these points."""

    name = "own"

    def __init__(self, rule_class: str = "drift", **rules: Any) -> None:
        self.rule_class = rule_class
        for point, verdict in rules.items():
            setattr(self, point, lambda *about, verdict=verdict: verdict)


async def replayed(bench: Bench, model: Any, hook: Any, *given: RecordingTool, **options: Any) -> Sequence[Ruling]:
    """What a replay finds otherwise than it is on record, of two requests."""
    bench.clock = Ticking(auto=True)
    engine = bench.engine(model, given, interceptors=[hook], **options)
    for prompt in ("one", "two"):
        await request(engine, prompt)
    rulings = replay(await bench.store.read("s"), await engine.policy("s"))
    return [ruling for ruling in rulings if ruling.differs or ruling.diverges]


class Counts:
    """Notes of each call, and of each result, how many of their batch have ended."""

    name = "counts"

    def before_tool(self, trace: Trace, call: Any) -> Observe:
        return Observe(f"{call.name}: {sum(state.end is not None for state in trace.batch)}")

    def after_tool(self, trace: Trace, call: Any, result: Any) -> Observe:
        return self.before_tool(trace, call)


@pytest.mark.parametrize("clock", [FakeClock, Ticking])
async def test_a_hook_that_counts_results_finds_as_many_in_the_replay_whatever_the_clock_says(
    bench: Bench, clock: type[FakeClock]
) -> None:
    bench.clock = clock(auto=True)
    calls = [call("gone"), call("look"), call("look"), call("fails"), call("look")]
    fails = RecordingTool("fails", read_only=True, fails="no")
    tools = [RecordingTool("look", read_only=True, repeatable=True), fails]
    engine = bench.engine(ScriptedModel(calls, then="done"), tools, interceptors=[Counts()])
    await request(engine, "go")

    facts = await bench.store.read("s")
    rulings = replay(facts, await engine.policy("s"))

    noted = [(f.point, f.reason) for f in facts if isinstance(f, HookRuled) and f.hook == "counts"]
    judged = [("before_tool", f"{name}: 1") for name in ("look", "look", "fails", "look")]
    ended = [("after_tool", counted) for counted in ("look: 1", "look: 1", "fails: 3", "look: 4")]
    assert noted == [*judged, *ended]
    assert [(r.point, r.reason) for r in rulings if r.hook == "counts"] == noted


async def test_what_people_say_while_a_model_is_asked_no_hook_has_seen_before(bench: Bench) -> None:
    class Busy(ScriptedModel):
        async def stream(self, asked: Any, deadline: Any) -> Any:
            await engine.prompt("s", "and that", key="p", wake=False)
            async for part in super().stream(asked, deadline):
                yield part

    class Looks:
        name = "looks"

        def before_model(self, trace: Trace) -> Inject | None:
            return Inject("Somebody else spoke.") if "and that" in [prompt.text for prompt in trace.inbox] else None

    engine = bench.engine(Busy("one", "two"), interceptors=[Looks()])
    await request(engine, "go")
    rulings = replay(await bench.store.read("s"), await engine.policy("s"))

    assert [(r.point, r.verdict) for r in rulings if r.hook == "looks"] == [("before_model", "Inject")]
    assert [r for r in rulings if r.differs or r.diverges] == []


@pytest.mark.parametrize("limit", ["", "of mine"])
@pytest.mark.parametrize("more", [{}, {"before_model": Stop("No more.")}])
async def test_a_prompt_that_is_blocked_as_its_run_begins_is_so_in_the_replay(
    bench: Bench, limit: str, more: dict[str, Any]
) -> None:
    assert await replayed(bench, ScriptedModel(then="done"), Rules(user_prompt=Stop("No.", limit), **more)) == []


async def test_a_hook_before_the_model_is_asked_about_the_prompt_as_hooks_rewrote_it(bench: Bench) -> None:
    class Polite:
        name = "polite"

        def user_prompt(self, trace: Trace, prompt: Any) -> Rewrite:
            return Rewrite("please")

        def before_model(self, trace: Trace) -> Inject | None:
            return Inject("be kind") if [p.text for p in trace.inbox] == ["please"] else None

    assert await replayed(bench, ScriptedModel(then="done"), Polite()) == []


async def test_what_hooks_ruled_on_a_compression_is_no_step_of_its_own(bench: Bench) -> None:
    class Tidy(Rules):
        def model_error(self, trace: Trace, failed: Any) -> Compress | Observe:
            return Compress("tidy") if trace.run and trace.run.compressed == 0 else Observe("again")

    model = ScriptedModel(*[call("look", n=n) for n in range(8)], then=ModelError("server", "busy"))
    look = RecordingTool("look", read_only=True)
    options = {"compression_interceptor": ContextCompressionInterceptor(10), "stop_loop_interceptor": QUIET}

    assert await replayed(bench, model, Tidy(after_compress=Observe("seen")), look, **options) == []


async def test_a_hook_on_calls_is_asked_after_what_hooks_told_about_the_message_that_made_them(bench: Bench) -> None:
    class Strict(Rules):
        def before_tool(self, trace: Trace, call: Any) -> Deny | None:
            return None if trace.notes else Deny("Say why first.")

    look = RecordingTool("look", read_only=True)

    assert (
        await replayed(bench, ScriptedModel(call("look"), then="done"), Strict(after_model=Inject("why?")), look) == []
    )
    assert look.runs == [{}]
