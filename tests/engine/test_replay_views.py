"""A replay asks every hook what the engine asked it, at the same points and of the same moment, whatever hooks rule and
whatever people do meanwhile.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.engine import HarnessEngine
from harness_core.errors import ModelError, StoreError
from harness_core.events import Event, HookRuled, ReasonEnd, RuleChanged
from harness_core.hooks import ACCEPTS, Observe
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.permissions.rule import PermissionRule
from harness_core.replay import replay
from harness_core.session import Trace
from harness_core.steps import Expiry
from harness_core.store.memory import MemoryStore
from harness_core.testing import FakeClock, RecordingTool, call
from harness_core.types import Args, Inspection, digest
from tests.engine.anyone import DENY, do_anything
from tests.engine.harness import Bench
from tests.engine.test_any_hooks import HOOKS
from tests.engine.test_replay_any import Slow, policy_of, whole
from tests.engine.test_subagent_any import AGENTS, CHANGES, HIRES
from tests.engine.test_subagents import Cast


class Watch:
    """Notes at every point what a hook can see there, and has no wish of its own."""

    name = "watch"

    def __getattr__(self, point: str) -> Any:
        if point not in ACCEPTS:
            raise AttributeError(point)
        return lambda trace, *about: Observe(digest(repr((seen(trace), *map(seen, about)))))


def seen(thing: Any) -> Any:
    """All that a hook can see of a thing, but for the time of the day."""
    if isinstance(thing, Trace):
        thing = replace(thing, now=0.0)
    if is_dataclass(thing):
        return [type(thing).__name__, *(seen(getattr(thing, field.name)) for field in fields(thing))]
    if isinstance(thing, Mapping):
        return sorted((key, seen(value)) for key, value in thing.items())
    return [seen(one) for one in thing] if isinstance(thing, tuple | list) else thing


class Flaky(MemoryStore):
    """A store that fails whoever works on a session when it is told to, once."""

    fails = False

    async def append(self, session_id: str, events: Any, *, fence: int | None = None, **how: Any) -> Any:
        if fence and self.fails:
            self.fails = False
            raise StoreError("The disk is full.")
        return await super().append(session_id, events, fence=fence, **how)


class Meanwhile:
    """What happens while a model or a tool is busy, one thing each time."""

    def __init__(self, deeds: Sequence[str], clock: FakeClock, store: Flaky) -> None:
        self.deeds, self.clock, self.store = iter(deeds), clock, store
        self.engine: HarnessEngine | None = None
        self.begun: set[asyncio.Task[None]] = set()

    async def happens(self) -> None:
        """Somebody does something; what is begun `soon` comes about at the moment when the other thing ends."""
        deed = next(self.deeds, "")
        what, _, soon = deed.partition(" ")
        if soon:
            task = asyncio.create_task(self._does(what))
            self.begun.add(task)
            task.add_done_callback(self.begun.discard)
        else:
            await self._does(what)

    async def _does(self, deed: str) -> None:
        engine = self.engine
        assert engine
        self.clock.advance(0.001)
        match deed:
            case "prompt":
                await engine.prompt("s", "by the way", by="U3", key="p")
            case "edit":
                await engine.amend("s", "p", "never mind")
            case "deny" | "undeny":
                await engine.change_rule("s", DENY, add=deed == "deny")
            case "allow":
                await engine.change_rule("s", PermissionRule.exactly("change", {"n": 1}))
            case "crash":
                self.store.fails = True
            case "stop":
                await engine.stop("s", by="U3")


DEEDS = st.lists(
    st.sampled_from(
        ["", "", "", "prompt", "prompt soon", "edit", "deny", "undeny", "allow", "allow soon", "crash", "crash", "stop"]
    ),
    max_size=8,
)


class BusyModel:
    """A model that takes its time, in which things happen."""

    name = "busy"

    def __init__(self, model: Any, meanwhile: Meanwhile) -> None:
        self.model, self.meanwhile = model, meanwhile

    async def stream(self, asked: Any, deadline: Any) -> AsyncIterator[Any]:
        await self.meanwhile.happens()
        async for part in self.model.stream(asked, deadline):
            yield part


class BusyTool(RecordingTool):
    """A tool that takes its time, some calls longer than others, in which things happen."""

    def __init__(self, name: str, meanwhile: Meanwhile, clock: FakeClock, seconds: float, **how: Any) -> None:
        super().__init__(name, **how)
        self.meanwhile, self.clock, self.seconds = meanwhile, clock, seconds

    async def run(self, args: Args, context: Any) -> Any:
        for _ in range(args.get("n", 0)):
            await self.clock.sleep(self.seconds)
        await self.meanwhile.happens()
        return await super().run(args, context)


def looked(args: Args) -> Inspection:
    return Inspection(problem="there is no such thing" if args.get("n") == 2 else "")


def tools(meanwhile: Meanwhile, clock: FakeClock, seconds: float) -> list[RecordingTool]:
    def tool(name: str, **how: Any) -> RecordingTool:
        return BusyTool(name, meanwhile, clock, seconds, **how)

    return [
        tool("look", read_only=True, repeatable=True),
        tool("see", read_only=True, repeatable=True, inspect=looked),
        tool("change"),
        tool("answer", read_only=True, return_direct=True),
        tool("fails", read_only=True, fails=RuntimeError("boom")),
    ]


LOOKS = [call(name, n=n) for name in ("look", "see", "fails") for n in range(3)]
CALLS = st.sampled_from([*LOOKS, *CHANGES, *HIRES, call("change", n=0), call("answer"), call("gone")])
BATCHES = st.lists(CALLS, min_size=1, max_size=3)
REPLIES = BATCHES | BATCHES | st.sampled_from(["text", "", ModelError("server"), ModelError("overflow", "too long")])
SCRIPTS = st.builds(lambda said, more: [said, *more], BATCHES, st.lists(REPLIES, max_size=3))
CLOCKS = st.sampled_from([(0.0, 0.0), (1.0, 0.0), (0.0, 2.0), (11.0, 5.0)])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_replay_asks_every_hook_what_the_engine_asked_it(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_any_session(data, Path(folder)))


async def _any_session(data: st.DataObject, folder: Path) -> None:
    store = Flaky()
    bench = Bench(folder, store, FakeClock(auto=True))
    of_model, of_tools = data.draw(CLOCKS)
    meanwhile = Meanwhile(data.draw(DEEDS), bench.clock, store)
    cast = Cast(data.draw(SCRIPTS), boss=data.draw(SCRIPTS), worker=data.draw(SCRIPTS))
    model = Slow(BusyModel(cast, meanwhile), bench.clock, of_model)
    options: dict[str, Any] = {
        "interceptors": [*data.draw(st.lists(HOOKS, max_size=2)), Watch()],
        "compression_interceptor": ContextCompressionInterceptor(10),
        "expiries": data.draw(st.sampled_from([{}, {"change": Expiry(5.0)}, {"change": Expiry(5.0, "halt")}])),
        "max_steps": 5,
        "max_seconds": data.draw(st.sampled_from([1e9, 60.0])),
        "agents": AGENTS,
    }
    given_tools = tools(meanwhile, bench.clock, of_tools)
    bench.store.changed(lambda _, facts: any(isinstance(f, RuleChanged) for f in facts) and bench.clock.advance(0.001))

    def made() -> HarnessEngine:
        meanwhile.engine = bench.engine(model, given_tools, **options)
        return meanwhile.engine

    engine = await do_anything(data, bench, made, 6)
    await asyncio.gather(*meanwhile.begun)
    await engine.idle()
    journals = {name: await bench.store.read(name) for name in await bench.store.sessions("s")}
    await bench.drop()

    for name, facts in journals.items():
        rulings = replay(whole(journals, name), await policy_of(engine, journals, name))
        replayed = Counter((r.point, r.reason) for r in rulings if r.hook == "watch" and r.recorded)
        assert [r for r in rulings if r.differs or r.diverges] == [], name
        assert replayed == Counter(on_record(facts)), name


def on_record(facts: Sequence[Event]) -> Iterator[tuple[str, str]]:
    """What the watching hook noted of this session's own, but for what nothing on record tells: of what a summary is to
    be made, and what a result was before a hook rewrote it.
    """
    own = {"", *(call.call_uuid for fact in facts if isinstance(fact, ReasonEnd) for call in fact.calls)}
    ruled = [fact for fact in facts if isinstance(fact, HookRuled)]
    rewritten = {r.call_uuid for r in ruled if r.point == "after_tool" and r.verdict == "Rewrite"}
    for ruling in ruled:
        lost = ruling.point == "before_compress" or (ruling.point == "after_tool" and ruling.call_uuid in rewritten)
        if ruling.hook == "watch" and ruling.call_uuid in own and not lost:
            yield ruling.point, ruling.reason
