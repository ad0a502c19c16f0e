"""Whatever hooks rule, and however they fail: what a model is sent stays valid, runs end, and the facts tell it all."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.errors import ModelError
from harness_core.events import ContextCompressed, Event, HookRuled, RunEnd, RunStart
from harness_core.hooks import ACCEPTS, Ask, Compress, Continue, Deny, Inject, Observe, Point, Rewrite, Stop
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.ports import ModelRequest
from harness_core.session import Trace, fold
from harness_core.store.memory import MemoryStore
from harness_core.testing import FakeClock, RecordingTool, ScriptedModel, call
from harness_core.types import ToolCall, digest
from tests.engine.harness import Bench
from tests.engine.test_resume import paired

VERDICTS: Final[dict[type, Any]] = {
    Ask: Ask("look at it"),
    Deny: Deny("no", escape_key="k"),
    Inject: Inject("by the way"),
    Continue: Continue("go on"),
    Compress: Compress("tidy"),
}


class Chance:
    """Rules by chance, but the same for the same facts; and fails, or rules what nobody accepts, now and then."""

    def __init__(self, seed: int, rule_class: str) -> None:
        self.seed, self.rule_class, self.name = seed, rule_class, f"chance-{seed}"

    def __getattr__(self, point: str) -> Any:
        if point not in ACCEPTS:
            raise AttributeError(point)
        return lambda trace, *about: self._rules(point, trace, about)  # type: ignore[arg-type]

    def _rules(self, point: Point, trace: Trace, about: tuple[Any, ...]) -> Any:
        lot = int(digest(f"{self.seed} {point} {trace.seq} {len(trace.messages)}")[:8], 16)
        if lot % 3:
            return None
        accepted = (*ACCEPTS[point], Observe)
        chosen = accepted[lot // 3 % len(accepted)]
        if lot % 11 == 0:
            raise RuntimeError("boom")
        if lot % 13 == 0:
            return [Deny("x"), Inject(""), Rewrite(object()), "yes"][lot % 4]
        if chosen is Rewrite:
            return Rewrite(self._other(about[-1], lot))
        if chosen is Stop:
            return Stop("Enough.", "some limit" if lot % 2 else "") if lot % 5 == 0 else None
        return VERDICTS.get(chosen, Observe("seen"))

    def _other(self, thing: Any, lot: int) -> Any:
        if isinstance(thing, ToolCall):
            return {**thing.args, "n": lot % 3}
        if hasattr(thing, "cut"):
            return type(thing)(lot % 9 - 1, lot % 50, lot % 7, thing.limit)
        return ["", "other words", " \n"][lot % 3]


REPLIES = st.sampled_from(
    [
        "",
        "text",
        call("look", n=1),
        [call("look", n=1), call("change", n=2)],
        ["so", call("look", n=2), call("missing")],
        ModelError("server", "busy"),
        ModelError("overflow", "too long"),
    ]
)
HOOKS = st.builds(Chance, st.integers(0, 10_000), st.sampled_from(["safety", "termination", "drift"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(REPLIES, min_size=1, max_size=8), st.lists(HOOKS, min_size=1, max_size=3), st.integers(1, 6))
def test_whatever_hooks_rule_what_a_model_is_sent_stays_valid_and_every_run_ends(
    replies: list[Any], hooks: list[Chance], steps: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_session(replies, hooks, steps, Path(folder)))


async def _session(replies: list[Any], hooks: list[Chance], steps: int, folder: Path) -> None:
    bench = Bench(folder, MemoryStore(), FakeClock(auto=True))
    model = ScriptedModel(*replies, then="done")
    engine = bench.engine(
        model,
        [RecordingTool("look", read_only=True, result="seen"), RecordingTool("change")],
        interceptors=hooks,
        max_steps=steps,
        compression_interceptor=ContextCompressionInterceptor(10),
    )
    appended: list[tuple[Event, ...]] = []
    bench.store.changed(lambda _, facts: appended.append(facts))
    for prompt in ("one", "two", "three"):
        events = [event async for event in engine.stream(await engine.session("s"), prompt, by="U1")]
        assert isinstance(events[0], RunStart)
        assert isinstance(events[-1], RunEnd)
        if events[-1].status == "pending":
            await engine.stop("s", by="U2")
            await engine.idle()

    assert not [facts for facts in appended if all(isinstance(fact, HookRuled) for fact in facts)], "never alone"
    facts = await bench.store.read("s")
    assert all(_valid(asked) for asked in model.requests)
    assert len(model.requests) < 60, "no hook keeps a model busy for ever"
    assert fold(facts).run is None
    for at, fact in enumerate(facts):
        if isinstance(fact, ContextCompressed):
            assert fold(facts[at:]) == fold(facts), "a session can be opened from any compression on"
    await bench.drop()


def _valid(asked: ModelRequest) -> bool:
    return paired(asked) and all(message.content.strip() or message.calls for message in asked.messages)
