"""What things cost, in what is the same on every machine: calls of functions, and facts that are read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.codec import Codec
from harness_core.compression.plan import compressed, plan
from harness_core.compression.room import Context
from harness_core.compression.shape import sized
from harness_core.events import ContextCompressed, Event, Prompted, ReasonEnd, RunEnd, RunStart, ToolCallStart
from harness_core.guards import guards_from
from harness_core.hooks import in_order
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.permissions.judge import Gate
from harness_core.permissions.rule import PermissionRule
from harness_core.replay import replay
from harness_core.session import Folder, fold
from harness_core.steps import Policy
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import NOON, RecordingTool, ScriptedModel, ended, tool_call
from tests.bench.hooks import HOOKS, Cap, one_step
from tests.bench.replay import recorded
from tests.engine.harness import Bench, request

MICROSECOND: Final = 5  # calls that even a slow machine makes in one; measured: 8 to 15
LIMITS: Final = ContextCompressionInterceptor(50).limits


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, Python's own among them."""
    made = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made


def test_fifty_hooks_cost_less_than_half_a_millisecond_of_a_step() -> None:
    without, with_all = one_step(()), one_step(in_order(Cap(n) for n in range(HOOKS)))
    without(), with_all()  # what is done once is not a step's

    assert calls_of(with_all) - calls_of(without) < 500 * MICROSECOND


@pytest.mark.parametrize("guards", [(), in_order(guards_from({}))], ids=["no guards", "the default guards"])
def test_a_session_of_a_thousand_steps_is_replayed_in_less_than_a_second(guards: Sequence[Any]) -> None:
    tools = {"bash": RecordingTool("bash", read_only=True)}  # reading commands has costs and tests of its own
    policy = Policy(Gate(tools, (PermissionRule.deny("bash", "rm *"),), tuple(guards)), max_steps=2_000)
    short, long = recorded(100), recorded(1_000)

    few, many = calls_of(lambda: replay(short, policy)), calls_of(lambda: replay(long, policy))

    assert many < 1_000_000 * MICROSECOND
    assert many < 11 * few, "ten times as long costs ten times as much"


def conversation(runs: int, compress_every: int = 0) -> list[Event]:
    """Runs of four messages each, with a call; compressed as an engine would after so many runs."""
    facts: list[Event] = []
    folder = Folder()

    def add(*more: Event) -> None:
        for fact in more:
            facts.append(replace(fact, seq=len(facts) + 1, at=NOON + len(facts)))
            folder.add(facts[-1])

    for n in range(1, runs + 1):
        made, answer = tool_call("look", uuid=f"c{n}", page=n), f"Nothing is on page {n}."
        add(Prompted(f"What is on page {n}?", "U1"), RunStart(f"r{n}"))
        add(ReasonEnd("I look.", (made,), step=1, upto=len(facts)), ToolCallStart(made))
        add(ended(made, f"page {n} is empty"))
        add(ReasonEnd(answer, step=2, upto=len(facts)), RunEnd("completed", answer))
        if compress_every and n % compress_every == 0:
            add(compression(folder))
    return facts


def compression(folder: Folder) -> ContextCompressed:
    trace = folder.trace()
    context = Context(trace.messages, lambda message: sized(message, len), len, trace.goal)
    made = plan(context, LIMITS)
    assert made is not None
    messages, goal = compressed(context, made, "They looked at pages.")
    return ContextCompressed(made.cut, messages, folder.ledger(), made.why, goal)


async def test_opening_a_compressed_session_costs_what_its_context_costs_and_not_what_its_history_weighs(
    tmp_path: Path,
) -> None:
    store, codec = SQLiteStore(tmp_path / "s.db"), Codec()
    sessions = {"long": conversation(1_250, 25), "short": conversation(25, 25), "plain": conversation(25)}
    read: dict[str, Sequence[Event]] = {}
    for name, facts in sessions.items():
        await store.append(name, facts)
        read[name] = await store.open(name)
    weight = {name: sum(len(codec.encode(fact)[1]) for fact in facts) for name, facts in read.items()}
    work = {name: calls_of(lambda facts=facts: fold(facts)) for name, facts in read.items()}  # type: ignore[misc]

    assert len(fold(conversation(1_250)).messages) == 5_000
    assert len(fold(sessions["plain"]).messages) == 100
    assert fold(read["long"]) == fold(await store.read("long"))
    assert len(read["long"]) == len(read["short"]) < len(read["plain"])
    assert weight["long"] < 1.5 * weight["short"], "numbers have more digits, and more calls are listed"
    assert weight["long"] < weight["plain"]
    assert work["long"] <= work["short"] < work["plain"]

    bench = Bench(tmp_path, store)
    model = ScriptedModel(then="It is empty.")
    await request(bench.engine(model), "And the next page?", "long")
    assert len(model.requests[0].messages) < 55
    await bench.drop()
    await store.close()
