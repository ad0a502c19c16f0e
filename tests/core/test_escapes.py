"""A gate that guesses opens after some refused batches for the same key; a safety gate never does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness_core.events import Event, Prompted, RunStart, ToolCallEnd, ToolCallStart
from harness_core.hooks import Deny, HookReject, run_point
from harness_core.session import Trace, fold
from harness_core.testing import history, reasoned, tool_call
from harness_core.types import ToolCall

SAYS = Deny("You have enough. Answer now.", escape_key="search")


class Gate:
    name, rule_class = "gate", "repetition"

    def __init__(self, verdict: Any = SAYS, **more: Any) -> None:
        self.verdict = verdict
        self.__dict__ |= more

    def before_tool(self, trace: Trace, call: ToolCall) -> Any:
        return self.verdict(call) if callable(self.verdict) else self.verdict


def search(n: int) -> ToolCall:
    return tool_call("search", uuid=f"c{n}", q=n)


class Run:
    """A run whose model asks for searches, and what a gate made of each."""

    def __init__(self, gate: Any) -> None:
        self.gate = gate
        self.facts: list[Event] = [Prompted("go"), RunStart("r")]
        self.asked = 0

    def batch(self, *calls: ToolCall, works: bool = True) -> list[str]:
        """What the gate says of each call of one message, as it goes on record one after the other."""
        self.facts.append(reasoned(*calls))
        outcomes = []
        for call in calls:
            ruled = run_point("before_tool", [self.gate], fold(history(*self.facts)), call)
            denied = isinstance(ruled.verdict, Deny)
            outcomes.append("denied" if denied else "ran")
            end = ToolCallEnd(call.call_uuid, "x", "denied" if denied else "ok" if works else "error")
            self.facts += [*ruled.rulings, *([] if denied else [ToolCallStart(call)]), end]
        return outcomes

    def next(self, count: int = 1, works: bool = True) -> list[str]:
        self.asked += count
        return self.batch(*(search(n) for n in range(self.asked - count, self.asked)), works=works)


def batches(run: Run, *counts: int) -> Sequence[list[str]]:
    return [run.next(count) for count in counts]


def test_it_opens_after_two_refused_batches_for_the_same_key() -> None:
    assert batches(Run(Gate()), 1, 1, 1) == [["denied"], ["denied"], ["ran"]]


def test_siblings_of_one_batch_count_once_and_none_of_them_slips_through() -> None:
    assert batches(Run(Gate()), 3, 3, 1) == [["denied"] * 3, ["denied"] * 3, ["ran"]]


def test_how_often_is_the_gate_s_own() -> None:
    assert batches(Run(Gate(escape_after=1)), 1, 1) == [["denied"], ["ran"]]
    assert batches(Run(Gate(escape_after=0)), 1, 1) == [["denied"], ["ran"]]


def test_it_stays_open_until_what_it_refused_has_worked_and_then_counts_anew() -> None:
    run = Run(Gate())
    batches(run, 1, 1)

    assert run.next(works=False) == ["ran"]
    assert run.next() == ["ran"], "a failure was no progress"
    assert run.next() == ["denied"]


def test_another_key_is_another_count() -> None:
    run = Run(Gate(lambda call: Deny("no", escape_key=call.args["q"])))

    assert [run.batch(tool_call("search", uuid=f"c{n}", q=q)) for n, q in enumerate("abab")] == [["denied"]] * 4
    assert run.batch(tool_call("search", uuid="c9", q="a")) == ["ran"]


def test_another_gate_with_the_same_key_has_its_own_count() -> None:
    run = Run(Gate())
    batches(run, 1, 1)
    run.gate = Gate(name="other")

    assert run.next() == ["denied"]


def test_a_person_who_speaks_has_it_count_anew() -> None:
    run = Run(Gate())
    batches(run, 1, 1)
    run.facts.append(Prompted("go on"))

    assert run.next() == ["denied"]


@pytest.mark.parametrize("verdict", [Deny("no"), HookReject("no")])
def test_without_a_key_it_never_opens(verdict: Any) -> None:
    assert batches(Run(Gate(verdict)), 1, 1, 1, 1) == [["denied"]] * 4


def test_a_safety_gate_cannot_declare_a_key_and_never_opens() -> None:
    assert batches(Run(Gate(rule_class="safety")), 1, 1, 1, 1) == [["denied"]] * 4


def test_that_it_was_overruled_is_on_record() -> None:
    run = Run(Gate())
    batches(run, 1, 1)
    ruled = run_point("before_tool", [run.gate], fold(history(*run.facts, reasoned(search(9)))), search(9))

    (record,) = ruled.rulings
    assert (record.verdict, record.escape_key) == ("Escaped", "search")
    assert ruled.verdict is None
