"""The work that is measured: look a record up, ask a person, send the money, answer.  Done by the harness."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from harness_core.engine import HarnessEngine
from harness_core.events import ContextCompressed, Event, Prompted, ReasonEnd, RunEnd, RunStart
from harness_core.handle import HITL
from harness_core.interceptors.hitl import HITLInterceptor
from harness_core.ports import ModelReply, ModelRequest, ProposedCall
from harness_core.session import Folder
from harness_core.store.sqlite import SQLiteStore
from harness_core.tools.spec import tool
from harness_core.types import Deadline

PROMPT = "Please look the record up and then send the money to its owner."
UNCOMPRESSED: dict[str, Any] = {"compression_max_messages": 1_000_000, "context_length": 1_000_000_000}
KEPT = 15  # messages, as by default
SEED_TEXT = "lorem ipsum " * 33  # about 400 characters a message


class Model:
    """No latency: asks for a lookup, then for a transfer, then answers."""

    name = "bench"

    async def stream(self, request: ModelRequest, deadline: Deadline) -> AsyncIterator[ModelReply]:
        last = request.messages[-1]
        if last.role == "user":
            yield ModelReply(calls=(ProposedCall("lookup", '{"key":"k","n":0}'),))
        elif last.content.startswith("row"):
            yield ModelReply(calls=(ProposedCall("transfer", '{"to":"k","amount":5}'),))
        else:
            yield ModelReply(f"Done: {last.content}")


async def lookup(key: str, n: int) -> str:
    """Look up row n of the record with this key."""
    return f"row {n} of {key} " + "x" * 180


async def transfer(to: str, amount: int) -> str:
    """Transfer an amount of money. Needs approval."""
    return f"sent {amount} to {to}"


TOOLS: Final = (tool(read_only=True)(lookup), tool(transfer), "hitl")  # made once, as those of a program's modules


class Harness:
    """An engine and its store over one file. Dropped and made anew, it has only what is on disk."""

    def __init__(self, path: Path) -> None:
        self.store = SQLiteStore(path)
        self.engine = HarnessEngine(
            Path(tempfile.gettempdir()),
            path.parent,
            model=Model(),
            tools=TOOLS,
            store=self.store,
            hitl_interceptor=HITLInterceptor().on_sensitive_tool("transfer"),
            hitl_enabled=True,
            **UNCOMPRESSED,
        )

    async def suspend(self, session_id: str) -> None:
        """From the prompt to the question."""
        await self._until("pending", session_id, PROMPT)

    async def resume(self, session_id: str) -> None:
        """From the click to the answer."""
        session = await self.engine.session(session_id)
        (task,) = await HITL.get_pending_tasks(session)
        await HITL.approve(session, task, by="U1")
        await self._until("completed", session_id)

    async def _until(self, status: str, session_id: str, prompt: str = "") -> None:
        end = [e async for e in self.engine.stream(session_id, prompt)][-1]
        assert isinstance(end, RunEnd)
        assert end.status == status, end

    async def close(self) -> None:
        """Drop everything."""
        await self.engine.close()
        await self.store.close()


def history(messages: int) -> Sequence[Event]:
    """A session of so many messages: a prompt and an answer in turn, each pair a run."""
    facts: list[Event] = []
    for run_id in (f"r{n}" for n in range(messages // 2)):
        prompted = len(facts) + 1
        facts.append(Prompted(SEED_TEXT))
        facts.append(RunStart(run_id))
        facts.append(ReasonEnd(SEED_TEXT, upto=prompted + 1, run_id=run_id))
        facts.append(RunEnd("completed", SEED_TEXT, run_id=run_id))
    return facts


def compression(facts: Sequence[Event]) -> Event:
    """What stands for all but the newest of these messages."""
    folder = Folder()
    for fact in facts:
        folder.add(fact)
    messages = folder.trace().messages
    return ContextCompressed(len(messages) - KEPT, messages[-KEPT:], folder.ledger())


async def seeded(path: Path, session_id: str, messages: int, *, compressed: bool = False) -> None:
    """Write a file that holds one session of so many messages, at rest. compressed: of late, to a few."""
    store = SQLiteStore(path)
    facts = history(messages)
    if compressed:
        facts = [*facts, compression(facts)]
    await store.append(session_id, facts)
    async with store.lease(session_id) as lease:
        assert lease is not None
        await lease.rest(len(facts))
    await store.close()
