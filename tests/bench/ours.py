"""This harness as a peer of peerbench: its own engine, its own SQLite store, a scripted model.

Implements `peerbench.protocol.AdapterProtocol`; peerbench must be importable (see README.md).
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from peerbench.protocol import Decision, Finished, ModelScript, Pending, Suspended, Toolbox

from harness_core.engine import HarnessEngine
from harness_core.events import Event, HITLPending, Prompted, ReasonEnd, RunEnd, RunStart
from harness_core.handle import HITL, AgentSession
from harness_core.hitl import HITLDecision
from harness_core.interceptors.hitl import HITLInterceptor
from harness_core.interceptors.stop_loop import StopLoopInterceptor
from harness_core.ports import ModelReply, ModelRequest, ProposedCall
from harness_core.store.sqlite import SQLiteStore
from harness_core.tools.spec import tool
from harness_core.types import Deadline

IMPORT = (
    "from harness_core import HarnessEngine, HITL, HITLInterceptor; from harness_core.store.sqlite import SQLiteStore"
)

# Every message of a long session reaches the model, as the benchmark checks.
UNCOMPRESSED: dict[str, Any] = {"compression_max_messages": 1_000_000, "context_length": 1_000_000_000}
STEPS = 100_000  # more than any script has; the default of 20 would end the runs of 50 steps early


class Scripted:
    """The benchmark's script as a chat model."""

    name = "script"

    def __init__(self, script: ModelScript) -> None:
        self._script = script

    async def stream(self, request: ModelRequest, deadline: Deadline) -> AsyncIterator[ModelReply]:
        last = request.messages[-1]
        reply = self._script.reply(_provider_id(request), last.content, len(request.messages))
        if isinstance(reply, str):
            yield ModelReply(reply)
        else:
            yield ModelReply(calls=tuple(ProposedCall(u.name, u.args_json, u.id) for u in reply))


def _provider_id(request: ModelRequest) -> str | None:
    """The script's own id of the call whose result comes last; it finds its place by it."""
    last = request.messages[-1]
    if last.role != "tool":
        return None
    calls = next(m.calls for m in reversed(request.messages) if m.calls)
    return next(c.provider_id for c in calls if c.call_uuid == last.call_uuid)


class Adapter:
    persists = "every fact: prompt, run start, model reply, task, decision, call start before the tool, result after it"

    @classmethod
    async def build(cls, script: ModelScript, tools: Toolbox, db_path: str, variant: str | None = None) -> Adapter:
        self = cls()
        specs = tools.specs()
        sensitive = HITLInterceptor().on_sensitive_tool(*(s.name for s in specs if s.sensitive))
        self.store = SQLiteStore(db_path)
        self.engine = HarnessEngine(
            Path(tempfile.gettempdir()),
            Path(db_path).parent,
            model=Scripted(script),
            tools=[*(tool(read_only=not s.sensitive)(s.fn) for s in specs), "hitl"],
            store=self.store,
            hitl_interceptor=sensitive,
            hitl_enabled=True,
            **UNCOMPRESSED,
            max_steps=STEPS,
            stop_loop_interceptor=StopLoopInterceptor(often=None),  # the script calls one tool dozens of times
        )
        return self  # not started: start() looks for runs that other processes left behind, which no peer does

    async def run_until_suspended(self, session_id: str, prompt: str) -> Suspended | Finished:
        return await self._request(await self.engine.session(session_id), prompt)

    async def resume(self, session_id: str, decisions: list[Decision]) -> Suspended | Finished:
        session = await self.engine.session(session_id)
        tasks = await HITL.get_pending_tasks(session)
        answers = {task.fingerprint: _ours(d) for task, d in zip(tasks, decisions, strict=True)}
        await HITL.submit_all(session, answers, by="bench")
        return await self._request(session)

    async def _request(self, session: AgentSession, prompt: str = "") -> Suspended | Finished:
        waiting: list[Pending] = []
        async for event in self.engine.stream(session, prompt):
            match event:
                case HITLPending(tasks=tasks):
                    waiting = [Pending(t.tool_name, dict(t.args)) for t in tasks]
                case RunEnd(status="pending"):
                    return Suspended(waiting)
                case RunEnd(answer=answer):
                    return Finished(answer)
        raise AssertionError("a stream ends with a RunEnd")

    async def seed(self, session_id: str, messages: Sequence[tuple[str, str]]) -> None:
        facts: list[Event] = []
        for role, text in messages:
            if role == "user":
                facts.append(Prompted(text))
            else:
                run_id = f"seed{len(facts)}"
                facts.append(RunStart(run_id))
                facts.append(ReasonEnd(text, upto=len(facts) - 1, run_id=run_id))
                facts.append(RunEnd("completed", text, run_id=run_id))
        await self.store.append(session_id, facts)
        async with self.store.lease(session_id) as lease:
            assert lease is not None
            await lease.rest(len(facts))

    async def durability(self) -> dict[str, Any]:
        def pragmas(disk: Any) -> dict[str, Any]:
            return {p: disk._conn.execute(f"pragma {p}").fetchone()[0] for p in ("journal_mode", "synchronous")}

        await self.store.append(
            "config:bench", Prompted("probe")
        )  # as it is for facts; leases do not wait for the disk
        return await self.store._submit(pragmas)

    async def close(self) -> None:
        await self.engine.close()
        await self.store.close()


def _ours(decision: Decision) -> Any:
    match decision.kind:
        case "approve":
            return HITLDecision.approve()
        case "reject":
            return HITLDecision.reject(decision.message)
        case "edit":
            return HITLDecision.approve(modified_args=decision.args, replace_args=True)
