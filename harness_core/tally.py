"""What a run knows of its facts, so that hooks can count: results, cost, rulings, refusals.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from harness_core import results
from harness_core.events import NO_USAGE, RECENT, RULINGS, Done, Halt, HookRuled, Refused, Ruling, Run, ToolCallEnd
from harness_core.trace import CallState
from harness_core.types import NO_OUTPUT, ToolCall, Usage, digest, readable

SHORT: Final = 200  # characters of a reason that a run remembers; the fact has all of it
SIBLINGS: Final = 16  # effects that are remembered of those that a gate refused for one key


Changes = Mapping[str, Any]  # what of a run is another, by the names of its fields


def with_batch(run: Run, batch: Iterable[CallState]) -> Changes:
    """What changes of the run with a batch whose calls all have a result."""
    states = [state for state in batch if state.end]
    done = tuple(_done(state.call, state.end, run.steps) for state in states if state.end)
    calls, paths = dict(run.calls), dict(run.paths)
    for state in states:
        if state.started:
            calls[state.call.name] = calls.get(state.call.name, 0) + 1
        for path in _worked_on(state):
            paths[path] = tuple(dict.fromkeys((*paths.get(path, ()), state.call.name)))
    succeeded = {**run.succeeded, **{d.tool: run.steps for d in done if d.outcome == "ok"}}
    recent, direct = (*run.recent, *done)[-RECENT:], _direct(states)
    return {"recent": recent, "calls": calls, "succeeded": succeeded, "paths": paths, "direct": direct}


def _direct(states: Iterable[CallState]) -> str:
    """What the tools brought, where all of them declare that to be the answer and it is one; else ""."""
    brought = [_brought(state) for state in states]
    return "\n".join(brought) if all(brought) else ""


def _brought(state: CallState) -> str:
    """What a call brought as the answer, without the line that tells the model of an edit; "" if it is none."""
    end = state.end
    if end is None or not end.direct or end.outcome != "ok":
        return ""
    noted = results.read_edited_note(end.content) if state.tasks else None
    said = noted[2] if noted else end.content
    return "" if readable(said) == NO_OUTPUT else said


def worked(run: Run, call: ToolCall, at: float) -> Changes:
    """What changes of the run with a call that worked: it is progress, and closes every gate that had refused this."""
    refused = {key: known for key, known in run.refused.items() if effect_digest(call) not in known.effects}
    return {"refused": refused, "progress": run.elapsed(at)}


def notes_of(rulings: Iterable[HookRuled]) -> tuple[str, ...]:
    """What these rulings tell the model, in their order: a limit, that one message is left."""
    notes = []
    for ruling in rulings:
        payload = ruling.payload
        if ruling.verdict in ("Inject", "Continue") and payload.get("text"):
            notes.append(payload["text"])
        elif ruling.verdict == "Stop" and payload.get("limit") and "prompt" not in payload:
            notes.append(results.last_turn(payload.get("answer", "")))
    return tuple(notes)


def telling_nothing(rulings: Iterable[HookRuled]) -> tuple[HookRuled, ...]:
    """Those that are over and done with. What tells the model something goes with the request that holds it."""
    return tuple(ruling for ruling in rulings if ruling.verdict not in ("Inject", "Continue"))


def with_ruling(run: Run, event: HookRuled, about: CallState | None) -> Changes:
    """What changes of the run with a ruling. about: the call of the open batch that it is about."""
    count = f"{event.hook} {event.verdict}"
    ruling = Ruling(event.point, event.hook, event.verdict, event.reason[:SHORT], event.step, event.call_uuid, event.at)
    changes: dict[str, Any] = {
        "ruled": {**run.ruled, count: run.ruled.get(count, 0) + 1},
        "rulings": (*run.rulings, ruling)[-RULINGS:],
    }
    if event.verdict == "Stop":
        halt = Halt(event.payload.get("answer", ""), event.payload.get("limit", ""), event.point)
        changes["halted"] = run.halted or halt
    elif event.escape_key is not None and about is not None:
        changes["refused"] = _with_refusal(run, event, event.escape_key, about.call)
    return changes


def _with_refusal(run: Run, event: HookRuled, escape_key: str, call: ToolCall) -> Mapping[str, Refused]:
    key = gate_key(event.hook, escape_key)
    known = run.refused.get(key, Refused(0, 0))
    if event.verdict == "Deny" and run.steps > known.step:  # its siblings in the batch do not count
        known = replace(known, batches=known.batches + 1, step=run.steps)
    known = replace(known, effects=(*known.effects, effect_digest(call))[-SIBLINGS:])
    others = [(name, other) for name, other in run.refused.items() if name != key]
    return dict([*others, (key, known)][-RULINGS:])


def gate_key(hook: str, escape_key: str) -> str:
    """Under which name a run counts what a gate refused for one key."""
    name = hook.replace("%", "%25").replace(" ", "%20")  # so that no name and key can be taken for another pair
    return f"{name} {escape_key}"


def effect_digest(call: ToolCall) -> str:
    """The identity of what a call does, in short."""
    return digest(call.effect)[:16]


def _worked_on(state: CallState) -> tuple[str, ...]:
    """The real paths of a call that ran and succeeded, as far as its tool has looked."""
    if state.started is None or state.end is None or state.end.outcome != "ok":
        return ()
    found = state.inspection(state.started.effective)
    return found.paths if found else ()


def _done(call: ToolCall, end: ToolCallEnd, step: int) -> Done:
    return Done(call.name, effect_digest(call), digest(end.content)[:16], end.outcome, step)


def unpriced(usage: Usage) -> Usage:
    """The part of a request's usage whose cost nobody told: all of it, or nothing."""
    return usage if usage.cost is None else NO_USAGE


def added(a: Usage, b: Usage) -> Usage:
    """The sum of two usages. A cost that nobody told is not taken for 0."""
    if b == NO_USAGE:
        return a
    cost = None if a.cost is None and b.cost is None else (a.cost or 0.0) + (b.cost or 0.0)
    return Usage(
        a.input_tokens + b.input_tokens, a.output_tokens + b.output_tokens, a.cached_tokens + b.cached_tokens, cost
    )
