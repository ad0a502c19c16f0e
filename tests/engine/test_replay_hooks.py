"""Whatever hooks rule: under the same policy a replay finds what is on record, and nothing else."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.errors import ModelError
from harness_core.hooks import Compress, Inject, Observe, Rewrite, Stop
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.replay import Ruling, replay
from harness_core.session import Trace
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.engine.anyone import do_anything
from tests.engine.harness import Bench, request
from tests.engine.test_any_hooks import Chance
from tests.engine.test_replay_any import Ticking, _policy, _whole
from tests.engine.test_subagent_any import AGENTS, CHANGES, HIRES, scripts, tools
from tests.engine.test_subagents import Cast


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
    options = {"compression_interceptor": ContextCompressionInterceptor(10), "stop_loop_interceptor": Rules()}

    assert await replayed(bench, model, Tidy(after_compress=Observe("seen")), look, **options) == []


class Steady(Chance):
    """Rules by chance, but not by the number of the fact: what is yet to be stored has none."""

    def _rules(self, point: Any, trace: Trace, about: tuple[Any, ...]) -> Any:
        run = trace.run
        counted = run.steps * 31 + len(run.failures) * 7 + len(run.recent) if run else 5
        ended = sum(state.end is not None for state in trace.batch)
        return super()._rules(point, replace(trace, seq=len(trace.context) * 1009 + counted * 5 + ended), about)


HOOKS = st.builds(Steady, st.integers(0, 10_000), st.sampled_from(["safety", "termination", "drift"]))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_whatever_hooks_rule_no_session_parts_from_its_recording(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_any_session(data, Path(folder)))


async def _any_session(data: st.DataObject, folder: Path) -> None:
    bench = Bench(folder, clock=Ticking(auto=True))
    said = {"boss": data.draw(scripts([*HIRES, *CHANGES])), "worker": data.draw(scripts(CHANGES))}
    model = Cast(data.draw(scripts([*HIRES, *CHANGES])), **said)
    options: dict[str, Any] = {
        "max_steps": 4,
        "agents": AGENTS,
        "interceptors": data.draw(st.lists(HOOKS, min_size=1, max_size=2)),
        "compression_interceptor": ContextCompressionInterceptor(10),
    }
    engine = await do_anything(data, bench, lambda: bench.engine(model, tools(), **options), 8)
    journals = {name: await bench.store.read(name) for name in await bench.store.sessions("s")}
    await bench.drop()

    for name in journals:
        rulings = replay(_whole(journals, name), await _policy(engine, journals, name))
        assert [r for r in rulings if r.differs or r.diverges] == [], name
