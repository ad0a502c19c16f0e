"""Records the golden journals of a release: `python -m tests.journals.record v0.2 [SESSION]`.

What is there is never edited. A journal is a file of lines {seq, at, run_id, key, kind, body}; beside it lies what it
adds up to, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

from harness_core.agents import Agent
from harness_core.codec import Codec
from harness_core.engine import HarnessEngine
from harness_core.errors import ModelError
from harness_core.events import ContextCompressed, Event, HITLVoted, Prompted, RunEnd, ToolCallEnd
from harness_core.handle import HITL
from harness_core.hitl import Approve, Decision, HITLDecision
from harness_core.hooks import Continue, Inject, Rewrite
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ModelRequest
from harness_core.session import Folder, Trace, fold
from harness_core.steps import Expiry
from harness_core.store.memory import MemoryStore
from harness_core.testing import Attempts, FakeClock, RecordingTool, ScriptedModel, call
from harness_core.types import Inspection, Message, ToolCall, Usage

HERE: Final = Path(__file__).parent


class Clamp:
    """Rewrites what is too much."""

    rule_class = "budget"

    def before_tool(self, trace: Trace, made: ToolCall) -> Rewrite | None:
        return Rewrite({**made.args, "n": 50}, "at most 50") if made.args.get("n", 0) > 50 else None


class Speaks:
    """Rules something at most points, once each."""

    rule_class = "termination"

    def user_prompt(self, trace: Trace, prompt: Prompted) -> Rewrite:
        return Rewrite(prompt.text.replace("secret", "●●●"), "no secrets")

    def before_model(self, trace: Trace) -> Inject | None:
        return Inject("Be brief.", "once") if trace.run and not trace.run.steps else None

    def after_tool(self, trace: Trace, made: ToolCall, result: ToolCallEnd) -> Rewrite | None:
        return Rewrite(result.content[:5], "shortened") if made.name == "look" else None

    def before_stop(self, trace: Trace, answer: str) -> Continue | None:
        return None if trace.succeeded else Continue("Look first.", suggests="look")


class Recording:
    """One session of one engine, on a clock that nobody waits for. journal: the one to record."""

    journal = "s"

    def __init__(self, folder: Path, *script: Any, hold: Any = None, **options: Any) -> None:
        ids = count(1)
        self.store, self.clock = MemoryStore(), FakeClock(auto=True)
        self.held = RecordingTool("held", read_only=True, hold=hold)
        tools = [
            RecordingTool("look", read_only=True, repeatable=True, result="it is 0"),
            RecordingTool("change", result=lambda args: f"it is {args.get('n')}"),
            RecordingTool("edit", inspect=lambda args: Inspection("-a\n+b", "diff", ("/ws/a",), digests=("d1",))),
            self.held,
            RecordingTool("show", read_only=True, result="it is 42", return_direct=True),
        ]
        self.engine = HarnessEngine(
            folder,
            folder,
            model=ScriptedModel(*script),
            tools=[*tools, "hitl"],
            store=self.store,
            clock=self.clock,
            hitl_enabled=True,
            new_id=lambda: f"r{next(ids)}",
            **options,
        )

    async def say(self, text: str = "") -> None:
        async for _ in self.engine.stream("s", text, by="U1"):
            pass

    async def decide(self, *decisions: Any) -> None:
        session = await self.engine.session("s")
        tasks = await HITL.get_pending_tasks(session)
        named = {task.fingerprint: decision for task, decision in zip(tasks, decisions, strict=True)}
        await HITL.submit_all(session, named, by="U2", via="button")
        await self.say()


async def plain(folder: Path) -> Recording:
    it = Recording(folder, Attempts(ModelError("server", "busy"), "hello"), ["let me see", call("look")], "it is 0")
    await it.engine.prompt("s", "hi", by="U1", key="T:C:1", files=["a.png"], wake=False)
    await it.engine.amend("s", "T:C:1", "hi there", key="T:C:1:edit")
    await it.say()
    await it.say("what is it?")
    return it


async def waiting(folder: Path) -> Recording:
    it = Recording(folder, [call("look"), call("change", n=100)], "done", interceptors=[Clamp()])
    await it.say("set it to 100")
    return it


async def approval(folder: Path) -> Recording:
    it = Recording(folder, [call("edit", path="a")], "done")
    await it.say("edit it")
    (task,) = (await it.engine.trace("s")).pending
    await it.store.append("s", HITLVoted(task.fingerprint, "U3", Approve(), key=f"{task.fingerprint}:U3"))
    await it.decide(HITLDecision.approve(comment="fine"))
    return it


async def batch(folder: Path) -> Recording:
    it = Recording(folder, [call("look"), *(call("change", n=n) for n in (1, 2, 3, 4))], "done")
    await it.say("go")
    edit, reject = HITLDecision.approve(modified_args={"n": 9}), HITLDecision.reject("not that", end=False)
    await it.decide(edit, reject, HITLDecision.skip("by hand", done=True), HITLDecision.skip())
    return it


async def rejected(folder: Path) -> Recording:
    it = Recording(folder, [call("look"), call("change", n=1)])
    await it.say("go")
    await it.decide(HITLDecision.reject("too dear"))
    return it


async def happened(folder: Path) -> Recording:
    return await _lost(folder, HITLDecision.happened("it was done"))


async def rerun(folder: Path) -> Recording:
    return await _lost(folder, HITLDecision.rerun())


async def _lost(folder: Path, decision: Decision) -> Recording:
    """A run whose process ended inside a tool, and what a person said about that."""
    it = Recording(folder, [call("change", n=1), call("change", n=2)], "done")
    tool = it.engine._around.tools["change"]
    assert isinstance(tool, RecordingTool)
    tool.hold = hold = asyncio.Event()
    await it.say("go")
    work = asyncio.create_task(it.decide(HITLDecision.approve(), HITLDecision.approve()))
    await tool.started.reach()
    dying = it.engine._serving.lives["s"].task
    assert dying
    dying.cancel()
    await asyncio.gather(work, dying, return_exceptions=True)
    hold.set()
    await it.say()
    await it.decide(decision)
    return it


async def stop(folder: Path) -> Recording:
    it = Recording(folder, [call("held"), call("look")], hold=asyncio.Event())
    work = asyncio.create_task(it.say("go"))
    await it.held.started.reach()
    await it.engine.prompt("s", "and then", by="U3", key="T:C:2", wake=False)
    await it.engine.stop("s", by="U2")
    await work
    return it


async def always(folder: Path) -> Recording:
    it = Recording(folder, [call("change", n=1)], [call("change", n=1)], "done")
    await it.say("go")
    await it.decide(HITLDecision.approve(always_allow=True))
    await it.engine.change_rule("s", PermissionRule.deny("change", "x"), by="U2", why="never")
    await it.engine.change_rule("s", PermissionRule.deny("change", "x"), add=False, by="U2")
    await it.engine.idle()
    return it


async def expired(folder: Path) -> Recording:
    it = Recording(folder, [call("change", n=1)], "nobody was there", expiries={"change": Expiry(60)})
    await it.say("go")  # the clock does not wait, so the alarm rings at once
    await it.engine.idle()
    while (await it.engine.trace("s")).run:
        await it.say()
    return it


async def compressed(folder: Path) -> Recording:
    """A context that was compressed while a run went on, a prompt waited and somebody had rejected something."""
    before = Recording(folder, [call("look")], [call("change", n=1), call("change", n=2)], "unheard")
    await before.engine.change_rule("s", PermissionRule.deny("change", "x"), by="U2")
    await before.say("go")
    await before.decide(HITLDecision.reject("no", end=False), HITLDecision.approve())
    facts = [f for f in await before.store.read("s") if not isinstance(f, RunEnd)][:-1]  # all but the answer
    await before.engine.close()
    it = Recording(folder, "unheard", "so it is", "and that too")
    for fact in facts:
        await it.store.append("s", fact)
    await it.engine.prompt("s", "one more thing", by="U3", key="T:C:3", wake=False)
    folder_of_facts = Folder()
    for fact in await it.store.read("s"):
        folder_of_facts.add(fact)
    trace = folder_of_facts.trace()
    short = (trace.messages[0], Message("user", "[Summary] it was looked at", summary=True), *trace.messages[3:])
    fact = ContextCompressed(
        3,
        short,
        folder_of_facts.ledger(),
        "6 messages, above the limit of 5",
        goal=0,
        usage=Usage(50, 5),
        messages_before=6,
        tokens_before=400,
        tokens=300,
        counter="estimate",
        at=it.clock.now(),
    )
    await it.store.append("s", fact, after=trace.seq)
    await it.say()
    return it


async def reconfigured(folder: Path) -> Recording:
    it = Recording(folder, [call("change", n=1)], "it was refused")
    await it.say("set it to 1")
    it.engine.add_permission_rule(PermissionRule.deny("change"))
    await it.engine.idle()
    await it.say()
    return it


async def hooked(folder: Path) -> Recording:
    looks = [[call("look", n=n)] for n in range(4)]
    script = ("it is 1", looks[0], "it is 0", *looks[1:], "so far")
    it = Recording(folder, *script, interceptors=[Speaks()], max_steps=3)
    await it.say("what is the secret?")
    await it.engine.prompt("s", "and now?", by="U1", wake=False)
    await it.say()
    return it


async def direct(folder: Path) -> Recording:
    it = Recording(folder, [call("show")], [call("show"), call("look")], "both")
    await it.say("what is it?")
    await it.say("and that?")
    return it


WORKER: Final = Agent("worker", "Works.", "You are the worker.")


def says(mine: Any, its: Any) -> Callable[[ModelRequest], Any]:
    """What the session's own agent says, and what the other one does."""
    return lambda request: its if request.system == WORKER.prompt else mine


async def handed(folder: Path) -> Recording:
    """A call that an agent works on, which asks people."""

    hand_over = call("task", agent="worker", prompt="set it")
    changes = [call("change", n=1), call("change", n=2)]
    it = Recording(folder, says(hand_over, changes), says("done", "it is set"), agents=[WORKER])
    await it.say("go")
    return it


async def delegated(folder: Path) -> Recording:
    it = await handed(folder)
    await it.decide(HITLDecision.approve(modified_args={"n": 9}), HITLDecision.skip("by hand", done=True))
    return it


async def hired(folder: Path) -> Recording:
    """An agent's own journal: it asks for what was rejected before it began."""
    hand_over, change = call("task", agent="worker", prompt="set it"), call("change", n=1)
    it = Recording(folder, says(change, change), says(hand_over, "it is not to be"), "done", agents=[WORKER])
    await it.say("go")
    it.clock.advance(5.0)
    await it.decide(HITLDecision.reject("no", end=False))
    (it.journal,) = await it.store.sessions("s/")
    return it


SESSIONS: Final[Sequence[Callable[[Path], Awaitable[Recording]]]] = (
    plain,
    waiting,
    approval,
    batch,
    rejected,
    happened,
    rerun,
    stop,
    always,
    expired,
    compressed,
    hooked,
    reconfigured,
    handed,
    delegated,
    direct,
    hired,
)


def line(codec: Codec, event: Event) -> str:
    """One fact as it lies in a store."""
    kind, body = codec.encode(event)
    envelope = {"seq": event.seq, "at": event.at, "run_id": event.run_id, "key": event.key, "kind": kind}
    return json.dumps({**envelope, "body": json.loads(body)}, ensure_ascii=False)


def read(path: Path) -> list[Event]:
    """The facts of a golden journal."""
    lines = [json.loads(row) for row in path.read_text("utf-8").splitlines()]
    codec = Codec()
    return [codec.decode(row.pop("kind"), json.dumps(row.pop("body")), session_id="s", **row) for row in lines]


def summary(trace: Trace) -> dict[str, Any]:
    """What a session adds up to, as far as it must never change."""
    return {
        "messages": [[m.role, m.content, [[c.call_uuid, c.name, c.args] for c in m.calls]] for m in trace.context],
        "pending": [[t.call_uuid, t.kind, t.args, t.fingerprint] for t in trace.pending],
        "run": trace.run and [trace.run.run_id, trace.run.steps, trace.run.suspended],
        "rules": [str(rule) for rule in trace.rules],
        "answer": trace.answer,
        "usage": [trace.usage.input_tokens, trace.usage.output_tokens],
    }


async def main(release: str, *names: str) -> None:
    """Record every session, or those named, that this release has not recorded yet."""
    for session in SESSIONS:
        if names and session.__name__ not in names:
            continue
        path = HERE / f"{release}-{session.__name__}.jsonl"
        if path.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            recording = await session(Path(folder))
            facts = await recording.store.read(recording.journal)
            await recording.engine.close()
        path.write_text("".join(line(Codec(), fact) + "\n" for fact in facts), "utf-8")
        path.with_suffix(".json").write_text(json.dumps(summary(fold(facts)), ensure_ascii=False, indent=1), "utf-8")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
