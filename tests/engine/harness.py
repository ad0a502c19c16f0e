"""A bench for engine tests: one store, engines on it that are dropped and made anew, and what streams showed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from harness_core.engine import HarnessEngine
from harness_core.events import Event, Prompted
from harness_core.ports import ChatModel, SessionStore, Tool
from harness_core.store.memory import MemoryStore
from harness_core.testing import FakeClock


class Bench:
    """Makes engines that share one store. `drop` forgets everything in memory, as a restart does."""

    def __init__(self, folder: Path, store: SessionStore | None = None, clock: FakeClock | None = None) -> None:
        self.folder = folder
        self.clock = clock or FakeClock()
        self.store: SessionStore = store or MemoryStore()
        self.engines: list[HarnessEngine] = []

    def engine(self, model: ChatModel, tools: Sequence[str | Tool] = (), **options: Any) -> HarnessEngine:
        options.setdefault("hitl_enabled", True)
        options.setdefault("store", self.store)
        options.setdefault("clock", self.clock)
        engine = HarnessEngine(self.folder / "ws", self.folder, model=model, tools=[*tools, "hitl"], **options)
        self.engines.append(engine)
        return engine

    async def drop(self) -> None:
        for engine in self.engines:
            await engine.close()
        self.engines.clear()


async def request(
    engine: HarnessEngine, prompt: str = "", session_id: str = "s", by: str = "U1", key: str | None = None
) -> list[Event]:
    """The events of one request."""
    session = await engine.session(session_id)
    return [event async for event in engine.stream(session, prompt, by=by, key=key)]


def names(events: Sequence[Event]) -> list[str]:
    """The kinds of events in order, deltas folded into one."""
    kinds = [type(e).__name__ for e in events]
    return [k for i, k in enumerate(kinds) if k != "ReasonDelta" or kinds[i - 1] != "ReasonDelta"]


async def stored(store: SessionStore, session_id: str = "s") -> list[str]:
    """The kinds of the facts in the journal."""
    return [type(e).__name__ for e in await store.read(session_id)]


def only(events: Sequence[Event], kind: type[Event]) -> Any:
    """The one event of a kind."""
    (event,) = [e for e in events if isinstance(e, kind)]
    return event


async def until(holds: Callable[[], Awaitable[Any]]) -> None:
    """Give others their turn until this holds."""
    while not await holds():  # noqa: ASYNC110 (what another engine does, nobody here is told of)
        await asyncio.sleep(0)


async def prompted(store: SessionStore, text: str, session_id: str = "s") -> None:
    """Wait until this prompt is stored."""

    async def is_there() -> bool:
        return text in [e.text for e in await store.read(session_id) if isinstance(e, Prompted)]

    await until(is_there)


class Late:
    """A store that lets something else happen just before its next append, or before a lease is taken or let go."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.before_append: Callable[[], Any] | None = None
        self.before_lease: Callable[[], Any] | None = None
        self.before_release: Callable[[], Any] | None = None

    async def append(self, *args: Any, **how: Any) -> Any:
        if (first := self.before_append) is not None:
            self.before_append = None
            await first()
        return await self.inner.append(*args, **how)

    def lease(self, session_id: str) -> Any:
        return _LateLease(self, self.inner.lease(session_id))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class _LateLease:
    def __init__(self, store: Late, inner: Any) -> None:
        self.store, self.inner = store, inner

    async def __aenter__(self) -> Any:
        if (first := self.store.before_lease) is not None:
            self.store.before_lease = None
            await first()
        return await self.inner.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        if (first := self.store.before_release) is not None:
            self.store.before_release = None
            await first()
        await self.inner.__aexit__(*error)
