"""A data folder as a bot leaves it: sessions that the real engine recorded, with real tools and a scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from bot.facts import CODEC
from bot.folders import DATABASE, own_workspace
from harness_core.engine import HarnessEngine
from harness_core.events import HITLSubmitted
from harness_core.handle import HITL
from harness_core.hitl import Decision, HITLDecision
from harness_core.ports import ChatModel
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock, ScriptedModel, call

BEGAN: Final = 1_772_357_400.0  # 1 March 2026, 09:30 UTC
THREAD: Final = "slack:T1:C1:1772357400.000100"
OTHER: Final = "slack:T1:C2:1772357500.000200"


async def record(data: Path) -> None:
    """Two threads: one that reads, asks and is approved; one that asks and is rejected."""
    await session(
        data,
        THREAD,
        ["I look first.", call("bash", command="ls")],
        call("bash", command="touch report.txt"),
        "The report is there.",
        decisions=[HITLDecision.approve()],
    )
    await session(
        data,
        OTHER,
        call("bash", command="rm -rf build"),
        "I left it.",
        decisions=[HITLDecision.reject("not on a Friday", end=False)],
        began=BEGAN + 100,
    )


async def session(
    data: Path, session_id: str, *script: Any, decisions: list[Decision], began: float = BEGAN, **options: Any
) -> None:
    """Record one session. decisions: of its tasks, in order."""
    clock = FakeClock(began)
    store = SQLiteStore(data / DATABASE, CODEC, heartbeat=False)
    model: ChatModel = options.pop("model", None) or ScriptedModel(*script)
    options.setdefault("hitl_enabled", True)
    engine = HarnessEngine(
        data, data, model=model, store=store, clock=clock, new_id=lambda: "r51c2", **options,
        workspace_for=own_workspace(data),
    )  # fmt: skip
    handle = await engine.session(session_id)
    await _request(engine, session_id, "make the report", clock)
    for decision in decisions:
        task = await HITL.get_pending_task(handle)
        await HITL.submit(handle, task, decision, by="U0REVIEWER", via="button")
        await _request(engine, session_id, "", clock)
    await engine.close()
    await store.close()


async def _request(engine: HarnessEngine, session_id: str, prompt: str, clock: FakeClock) -> None:
    async for event in engine.stream(session_id, prompt, by="U0REQUEST"):
        if not isinstance(event, HITLSubmitted):
            clock.advance(1.0)
