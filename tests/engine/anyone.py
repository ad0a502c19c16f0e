"""Whatever people do in a session: they ask, decide, make rules, stop, and restart the process, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from hypothesis import strategies as st

from harness_core.engine import HarnessEngine
from harness_core.errors import DecisionRefused, StoreError
from harness_core.events import Event, HITLSubmitted, ReasonEnd, RuleChanged, RunEnd, RunStart, ToolCallStart
from harness_core.handle import HITL
from harness_core.hitl import Approve, HITLDecision, Rerun
from harness_core.permissions.rule import PermissionRule
from tests.engine.harness import Bench, request

DECISIONS = st.sampled_from(
    [
        HITLDecision.approve(),
        HITLDecision.approve(True),
        HITLDecision.approve(modified_args={"n": 3}),
        HITLDecision.approve(modified_args={}, replace_args=True),
        HITLDecision.reject("no"),
        HITLDecision.reject(end=True),
        HITLDecision.reject(end=False),
        HITLDecision.skip(done=True),
        HITLDecision.rerun(),
        HITLDecision.happened("it did"),
    ]
)
MOVES = st.sampled_from(
    ["decide", "decide", "decide", "prompt", "resume", "stop", "restart", "allow", "deny", "undeny"]
)
DENY = PermissionRule.deny("change")


async def do_anything(
    data: st.DataObject, bench: Bench, made: Callable[[], HarnessEngine], moves: int
) -> HarnessEngine:
    """A request and up to so many moves in session "s", then a stop; the engine of the last process."""
    engine = made()
    for number, move in enumerate(["prompt", *data.draw(st.lists(MOVES, max_size=moves))]):
        session = await engine.session("s")
        bench.clock.advance(0.001)  # nobody does two things at once
        match move:
            case "prompt":
                await _heard(engine, f"prompt {number}")
            case "resume":
                await _heard(engine)
            case "stop":
                await engine.stop(session, by="U9")
            case "restart":
                await bench.drop()
                engine = made()
            case "allow":
                await engine.change_rule(session, PermissionRule.exactly("change", {"n": 1}))
            case "deny" | "undeny":
                await engine.change_rule(session, DENY, add=move == "deny")
            case _:
                for task in await HITL.get_pending_tasks(session):
                    with suppress(DecisionRefused):
                        await HITL.submit(session, task, data.draw(DECISIONS), by="U2")
        await engine.idle()
    await engine.stop("s", by="U9")
    await engine.idle()
    return engine


async def _heard(engine: HarnessEngine, prompt: str = "") -> None:
    try:
        events = await request(engine, prompt)
    except StoreError:  # as when a process dies: whoever comes next goes on
        return
    assert isinstance(events[0], RunStart)
    assert [type(e) for e in events].count(RunEnd) == 1
    assert isinstance(events[-1], RunEnd)


def every_run_ended_once(facts: Sequence[Event]) -> bool:
    runs = {e.run_id for e in facts if isinstance(e, RunStart)}
    return sorted(e.run_id for e in facts if isinstance(e, RunEnd)) == sorted(runs)


def proposed(facts: Sequence[Event]) -> list[str]:
    """The calls that models made."""
    return [call.call_uuid for e in facts if isinstance(e, ReasonEnd) for call in e.calls]


def nothing_ran_unallowed(facts: Iterable[Event]) -> None:
    """Of these facts, in the order in which they came about, none is a change without leave, or made twice."""
    approved: set[str] = set()
    asked: dict[str, str] = {}
    rules: set[PermissionRule] = set()
    starts: Counter[str] = Counter()
    for event in facts:
        for task in getattr(event, "tasks", ()):
            asked[task.fingerprint] = task.call_uuid
        if isinstance(event, HITLSubmitted) and isinstance(event.decision, Approve | Rerun):
            approved.add(asked[event.fingerprint])
        if isinstance(event, RuleChanged):
            (rules.add if event.change == "added" else rules.discard)(event.rule)
        if isinstance(event, ToolCallStart) and event.call.name == "change":
            starts[event.call.call_uuid] += 1
            allowed = PermissionRule.exactly("change", event.effective) in rules
            assert event.call.call_uuid in approved or allowed, event
            assert DENY not in rules, event
    assert all(count == 1 for count in starts.values())
