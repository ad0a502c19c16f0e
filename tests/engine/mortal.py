"""Processes that die, and what outlives them: the journal, and what tools did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness_core.errors import AlreadyDecided, HarnessError
from harness_core.events import Event, RunEnd
from harness_core.handle import HITL
from harness_core.hitl import Decision, HITLDecision, HITLTask
from harness_core.store.leases import EXPIRY
from harness_core.store.memory import MemoryStore
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock, RecordingTool
from tests.engine.harness import Bench
from tests.store.faulty import Crash, CrashingStore


class World:
    """What outlives a process. Each `live` is a process of its own."""

    def __init__(self, kind: str, folder: Path, model: Any, tools: Sequence[RecordingTool], **options: Any) -> None:
        clock = FakeClock()
        folder.mkdir(exist_ok=True)
        self.store: Any = (
            MemoryStore(clock=clock, heartbeat=False)
            if kind == "memory"
            else SQLiteStore(folder / "h.db", clock=clock, heartbeat=False)
        )
        self.bench = Bench(folder, self.store, clock)
        self.model = model
        self.tools = {tool.spec.name: tool for tool in tools}
        self.options = options

    def runs(self) -> Counter[str]:
        """How often each tool ran, by its name and its argument n."""
        return Counter(f"{name}{args['n']}" for name, tool in self.tools.items() for args in tool.runs)

    async def live(self, store: Any = None) -> RunEnd:
        """Work in this process as people would, until the run is over. Raises if the process dies."""
        engine = self.bench.engine(self.model, [*self.tools.values()], store=store or self.store, **self.options)
        session, prompt = await engine.session("s"), "hi"
        for _ in range(12):
            end: Event | None = None
            async for event in engine.stream(session, prompt, by="U1", key="k"):
                end = event
            assert isinstance(end, RunEnd)
            if end.status != "pending":
                return end
            prompt = ""
            for task in await HITL.get_pending_tasks(session):
                with suppress(AlreadyDecided):
                    await HITL.submit(session, task, self.decision(task), by="U2")
        raise AssertionError("it never came to an end")

    def decision(self, task: HITLTask) -> Decision:
        """What people say of a call."""
        return HITLDecision.happened("it did") if task.kind == "unknown" else HITLDecision.approve()

    async def die_at(self, at: int, performed: bool) -> bool:
        """Live until the n-th store call kills the process. False if it got to its end before."""
        store = CrashingStore(self.store, at, performed=performed)
        await self._die(store)
        return store.crashed

    async def die_after(self, fatal: Callable[[str, Event], bool]) -> None:
        """Live until such a fact of such a session is stored, which kills the process."""
        store = CrashingStore(self.store)
        append = store.append

        async def append_and_die(session_id: str, events: Any, **how: Any) -> Any:
            facts = await append(session_id, events, **how)
            if any(fatal(session_id, fact) for fact in facts):
                store.die(f"after {facts}")
            return facts

        store.append = append_and_die  # type: ignore[method-assign]
        await self._die(store)

    async def die_in(self, tool: str, moment: str) -> None:
        """Live until a tool kills the process, before or after it did its work."""
        victim, store = self.tools[tool], CrashingStore(self.store)
        run = victim.run

        async def fatal(args: Any, context: Any) -> Any:
            if moment == "after":
                await run(args, context)
            store.die(f"{moment} {tool}")

        victim.run = fatal  # type: ignore[method-assign]
        await self._die(store)
        victim.run = run  # type: ignore[method-assign]

    async def _die(self, store: CrashingStore) -> None:
        with suppress(Crash, HarnessError):
            await self.live(store)
        await self.bench.drop()
        self.bench.clock.advance(EXPIRY + 1)
        self.store = self.store.reopen()
