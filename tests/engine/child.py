"""A process with an engine, until it is killed: `child.py FOLDER TOOL`.  The model calls that tool once.

It says "running" on stdout when the tool has done its work but not returned, and the status when a request has ended.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from harness_core.engine import HarnessEngine
from harness_core.events import RunEnd
from harness_core.permissions.rule import PermissionRule
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import RecordingTool, ScriptedModel, call


class Announced:
    """Says that it runs, and lets nobody go on."""

    async def wait(self) -> Any:
        print("running", flush=True)
        await asyncio.Event().wait()


def tools(folder: Path, hold: Any = None) -> list[RecordingTool]:
    """A read, a write that a rule allows, and one that asks; each run is a line in its ledger."""
    return [
        RecordingTool("look", read_only=True, repeatable=True, hold=hold, ledger=folder / "look"),
        RecordingTool("log", hold=hold, ledger=folder / "log"),
        RecordingTool("change", ledger=folder / "change"),
    ]


def engine(folder: Path, tool: str, hold: Any = None) -> HarnessEngine:
    """An engine as each process on this folder makes it."""
    return HarnessEngine(
        folder / "ws",
        folder,
        model=ScriptedModel([call(tool, n=1)], "done"),
        tools=[*tools(folder, hold), "hitl"],
        store=SQLiteStore(folder / "h.db"),
        rules=[PermissionRule.allow("log")],
        hitl_enabled=True,
    )


async def main(folder: Path, tool: str) -> None:
    async for event in engine(folder, tool, Announced()).stream("s", "hi", by="U1", key="k"):
        if isinstance(event, RunEnd):
            print(event.status, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
