"""Builders of recorded facts, as a store would hand them out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness_core.events import Event, HITLPending, HITLSubmitted, ModelFailed, ReasonEnd, RunEnd, RunStart, ToolCallEnd
from harness_core.hitl import Decision, HITLTask, TaskKind, fingerprint
from harness_core.testing.clock import NOON
from harness_core.types import Outcome, ToolCall


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
