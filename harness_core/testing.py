"""Stand-ins for tests: a clock, a model, tools, and builders of histories.  Shipped, since users test their agents too.

Nothing here sleeps or polls: what a test has to wait for is a milestone (`await model.asked.reach(2)`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from harness_core.errors import ModelError, ToolFailed
from harness_core.events import Event, HITLPending, HITLSubmitted, ModelFailed, ReasonEnd, RunEnd, RunStart, ToolCallEnd
from harness_core.hitl import Decision, HITLTask, TaskKind, fingerprint
from harness_core.ports import Clock, ModelReply, ModelRequest, ProposedCall, TextDelta, ToolContext, ToolSpec
from harness_core.types import NO_DEADLINE, Args, Deadline, Inspection, Outcome, ToolCall, ToolResult, Usage, canonical

NOON: Final = 1_767_614_400.0  # Monday, 5 January 2026, 12:00 UTC, in seconds since the epoch


class Waitable(Protocol):
    """What holds a stand-in open until a test lets go: an asyncio.Event, say."""

    async def wait(self) -> Any:
        """Return when the stand-in may go on."""


class Milestones:
    """A number that only grows, and that a test can wait for."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def add(self) -> None:
        """One more; whoever waits for this number goes on."""
        self.count += 1
        for count, future in self._waiting:
            if count <= self.count and not future.done():
                future.set_result(None)
        self._waiting = [(count, future) for count, future in self._waiting if not future.done()]

    async def reach(self, count: int = 1) -> None:
        """Wait until the number is `count` or more."""
        if self.count < count:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((count, future))
            await future


class FakeClock:
    """A Clock that a test moves. With auto=True a sleep moves it at once, and nobody ever waits.

    `naps` counts the sleeps that began, so that a test can wait for one before it advances.
    """

    def __init__(self, now: float = NOON, *, auto: bool = False) -> None:
        self.auto = auto
        self.naps = Milestones()
        self._now = now
        self._passed = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._now + self._passed

    def monotonic(self) -> float:
        """Seconds since this clock was made."""
        return self._passed

    @property
    def sleeping(self) -> int:
        """How many sleep at this moment."""
        return sum(1 for _, future in self._sleepers if not future.done())

    def advance(self, seconds: float) -> None:
        """Move the time and wake whoever is due. One who sleeps again does so from the new time on."""
        if seconds < 0:
            raise ValueError("Time does not go back.")
        self._passed += seconds
        for due, future in sorted(self._sleepers, key=lambda sleeper: sleeper[0]):
            if due <= self._passed and not future.done():
                future.set_result(None)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been advanced by so many seconds."""
        due = self._passed + max(seconds, 0.0)
        self.naps.add()
        if self.auto:
            self.advance(max(seconds, 0.0))
        if due <= self._passed:
            await asyncio.sleep(0)  # as the real one does: others get a turn, so that a loop of sleeps can be cancelled
            return
        sleeper = (due, asyncio.get_running_loop().create_future())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1]
        finally:
            self._sleepers.remove(sleeper)


# -- the model ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class Attempts:
    """Replies to one and the same question, asked again: the first, the second, ... the last one stays."""

    replies: tuple[Reply, ...]

    def __init__(self, first: Reply, *more: Reply) -> None:
        object.__setattr__(self, "replies", (first, *more))


Part = str | ProposedCall
Reply = Part | ModelReply | Sequence[Part] | Exception | Attempts | Callable[[ModelRequest], "Reply"]


def call(name: str, /, *, id: str = "", **arguments: Any) -> ProposedCall:
    """A tool call as a model proposes it: call("write", path="a", content="b")."""
    return ProposedCall(name, arguments, id)


class ScriptedModel:
    """A ChatModel that says what the script says.

    Reply number i answers the request that holds i assistant messages, so the same script goes on after a restart. A
    reply is a text, a call, a list of both, a ModelReply, an exception to raise, a function of the request that returns
    one of these, or Attempts. Past the end it answers `then`, or fails with a ModelError of the kind "server".
    hold: after its first delta the model waits for it. requests: all that was asked. asked: the same as milestones.
    cancelled: how many answers were cut off.
    """

    def __init__(
        self, *replies: Reply, name: str = "scripted", then: Reply | None = None, hold: Waitable | None = None
    ) -> None:
        self.name = name
        self.hold = hold
        self.requests: list[ModelRequest] = []
        self.asked = Milestones()
        self.cancelled = 0
        self._replies = replies
        self._then: Reply = ModelError("server", "the script is over") if then is None else then

    async def stream(self, request: ModelRequest, deadline: Deadline) -> AsyncIterator[TextDelta | ModelReply]:
        """Two text deltas if there is text for two, then the reply. Raises what the script says."""
        position = _position(request)
        attempt = sum(1 for earlier in self.requests if _position(earlier) == position)
        self.requests.append(request)
        self.asked.add()
        reply = _settled(self._scripted(position), request, attempt)
        half = (len(reply.text) + 1) // 2
        try:
            if reply.text:
                yield TextDelta(reply.text[:half])
            if self.hold is not None:
                await self.hold.wait()
            if reply.text[half:]:
                yield TextDelta(reply.text[half:])
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled += 1
            raise
        yield reply

    def _scripted(self, position: int) -> Reply:
        return self._replies[position] if position < len(self._replies) else self._then


def _position(request: ModelRequest) -> int:
    return sum(1 for message in request.messages if message.role == "assistant")


def _settled(reply: Reply, request: ModelRequest, attempt: int) -> ModelReply:
    """The reply in its plain form. Raises it, if it is an exception."""
    match reply:
        case ModelReply():
            return reply
        case str() | ProposedCall():
            return _settled([reply], request, attempt)
        case Exception():
            raise reply
        case Attempts():
            return _settled(reply.replies[min(attempt, len(reply.replies) - 1)], request, attempt)
        case Sequence():
            text = "".join(part for part in reply if isinstance(part, str))
            calls = tuple(part for part in reply if isinstance(part, ProposedCall))
            return ModelReply(text, calls, Usage(100, 10), "tool_calls" if calls else "stop")
        case _:
            return _settled(reply(request), request, attempt)


# -- tools -------------------------------------------------------------------------------------------------------------

ANY_ARGUMENTS: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": True}

Says = str | ToolResult | Callable[[Args], "str | ToolResult"]


class RecordingTool:
    """A Tool that only remembers. By default it is neither read-only nor repeatable, and takes any arguments.

    runs: the effective arguments of every run, in order; contexts: where and until when. started: the same as
    milestones. killed: how many runs were cancelled.
    """

    def __init__(
        self,
        name: str,
        *,
        read_only: bool | Callable[[Args], bool] = False,
        repeatable: bool | Callable[[Args], bool] = False,
        result: Says = "done",
        schema: Mapping[str, Any] = ANY_ARGUMENTS,
        description: str = "",
        subject: str = "",
        timeout: float = 60.0,
        hold: Waitable | None = None,
        fails: str | Exception | None = None,
        inspect: Callable[[Args], Inspection] | None = None,
        ledger: Path | None = None,
        return_direct: bool = False,
    ) -> None:
        """result: what a run brings, or a function of the arguments. subject: the argument that rules match, "" for
        all of them as canonical JSON. timeout: seconds. hold: a run waits for it. fails: the text of a ToolFailed, or
        any exception. inspect: without it there is nothing to inspect. ledger: a file that gets a line of JSON per run
        before anything else happens, so that runs can be counted across processes. return_direct: see ports.Tool.
        """
        self.spec = ToolSpec(name, description or f"The {name} tool.", schema)
        self.inspects = inspect is not None
        self.timeout = timeout
        self.return_direct = return_direct
        self.result, self.hold, self.fails, self.ledger = result, hold, fails, ledger
        self.runs: list[Args] = []
        self.contexts: list[ToolContext] = []
        self.started = Milestones()
        self.killed = 0
        self._read_only, self._repeatable, self._subject, self._inspect = read_only, repeatable, subject, inspect

    def check(self, args: Args) -> str:
        """Required, unknown and wrongly typed arguments, at the top level of the schema."""
        return misfit(self.spec.schema, args)

    def read_only(self, args: Args) -> bool:
        """As given."""
        return self._read_only(args) if callable(self._read_only) else self._read_only

    def repeatable(self, args: Args) -> bool:
        """As given."""
        return self._repeatable(args) if callable(self._repeatable) else self._repeatable

    def subject(self, args: Args) -> str:
        """The argument named as subject, or the canonical arguments."""
        return str(args.get(self._subject, "")) if self._subject else canonical(args)

    async def inspect(self, args: Args, context: ToolContext) -> Inspection:
        """What the given function says of these arguments."""
        return self._inspect(args) if self._inspect else Inspection()

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Remember, wait for `hold`, fail or bring the result."""
        self._remember(args, context)
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.killed += 1
                raise
        if self.fails is not None:
            raise ToolFailed(self.fails) if isinstance(self.fails, str) else self.fails
        brought = self.result(args) if callable(self.result) else self.result
        return ToolResult(brought) if isinstance(brought, str) else brought

    def _remember(self, args: Args, context: ToolContext) -> None:
        if self.ledger is not None:
            with self.ledger.open("a", encoding="utf-8") as file:
                file.write(canonical(args) + "\n")
        self.runs.append(dict(args))
        self.contexts.append(context)
        self.started.add()


def ledger_runs(ledger: Path) -> list[Args]:
    """The arguments of every run that a ledger has seen, in whatever process."""
    return [json.loads(line) for line in ledger.read_text("utf-8").splitlines()] if ledger.exists() else []


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


def misfit(schema: Mapping[str, Any], args: Args) -> str:
    """Why the arguments do not fit the top level of a JSON schema; "" if they do. Unknown keys are refused, unless
    the schema names no properties or says additionalProperties.
    """
    properties: Mapping[str, Any] = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in args]
    if missing:
        return f"Missing: {', '.join(missing)}."
    unknown = sorted(name for name in args if name not in properties)
    if unknown and properties and not schema.get("additionalProperties", False):
        return f"Unknown: {', '.join(unknown)}."
    wrong = [name for name in properties if name in args and not _typed(properties[name].get("type"), args[name])]
    return f"Of the wrong type: {', '.join(wrong)}." if wrong else ""


def _typed(wanted: str | Sequence[str] | None, value: Any) -> bool:
    names = [wanted] if isinstance(wanted, str) else list(wanted or ())
    if not names:
        return True
    if isinstance(value, bool):  # which Python takes for an integer
        return "boolean" in names
    return any(isinstance(value, _TYPES.get(name, ())) for name in names)


def tool_context(workspace: Path, *, clock: Clock | None = None, session_id: str = "s") -> ToolContext:
    """A context to run a tool in, without a deadline."""
    return ToolContext(session_id, "c1", workspace, NO_DEADLINE, clock or FakeClock())


# -- histories ---------------------------------------------------------------------------------------------------------


def history(*facts: Event, session_id: str = "s") -> tuple[Event, ...]:
    """The facts as a store would hand them out, ready for `fold`: seq from 1, one second apart from NOON.

    Filled in where it is empty: at, the run_id of the run that goes on, and `upto` of a model request (all that came
    before it). The facts given are not changed. Raises ValueError for a passing event.
    """
    stored: list[Event] = []
    run_id = ""
    for seq, fact in enumerate(facts, start=1):
        if not fact.STORED:
            raise ValueError(f"{type(fact).__name__} is not stored: it is no part of a history.")
        if isinstance(fact, RunStart):
            run_id = fact.run_id
        filled: dict[str, Any] = {"seq": seq, "at": fact.at or NOON + seq, "session_id": session_id}
        filled["run_id"] = fact.run_id or run_id
        if isinstance(fact, ReasonEnd | ModelFailed):
            filled["upto"] = fact.upto or seq - 1
        stored.append(replace(fact, **filled))
        if isinstance(fact, RunEnd) and fact.status != "pending":
            run_id = ""
    return tuple(stored)


def tool_call(name: str, /, *, uuid: str = "c1", **args: Any) -> ToolCall:
    """A call as it stands in a history: tool_call("bash", command="ls", uuid="c1")."""
    return ToolCall(uuid, name, args)


def reasoned(*said: str | ToolCall, upto: int = 0) -> ReasonEnd:
    """A model message of these texts and calls."""
    text = "".join(part for part in said if isinstance(part, str))
    calls = tuple(part for part in said if isinstance(part, ToolCall))
    return ReasonEnd(text, calls, finish_reason="tool_calls" if calls else "stop", upto=upto)


def task(
    asked: ToolCall, *, run_id: str = "r", ask_count: int = 0, kind: TaskKind = "approve", **more: Any
) -> HITLTask:
    """The question about a call, with the fingerprint that it has. more: other fields of HITLTask."""
    mark = fingerprint(run_id, asked.call_uuid, ask_count, asked.name, asked.args)
    comment = more.pop("comment", f"{asked.name} asks first")
    return HITLTask(asked.call_uuid, asked.name, asked.args, comment, kind, run_id, mark, **more)


def pending(*asked: ToolCall | HITLTask, run_id: str = "r") -> HITLPending:
    """The run is suspended until people have decided on these."""
    return HITLPending(tuple(task(one, run_id=run_id) if isinstance(one, ToolCall) else one for one in asked))


def submitted(asked: ToolCall | HITLTask, decision: Decision, *, by: str = "U1", run_id: str = "r") -> HITLSubmitted:
    """A person's decision on the first question about a call, or on this very task."""
    mark = (task(asked, run_id=run_id) if isinstance(asked, ToolCall) else asked).fingerprint
    return HITLSubmitted(mark, decision, by, "test", key=mark)


def ended(done: ToolCall, content: str = "done", outcome: Outcome = "ok") -> ToolCallEnd:
    """What came of a call."""
    return ToolCallEnd(done.call_uuid, content, outcome)
