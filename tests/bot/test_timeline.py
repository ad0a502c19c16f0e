"""What happened, as lines: every kind of fact has one, and nothing in it is a secret or a trick."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.timeline import timeline
from harness_core.events import (
    FACTS,
    ContextCompressed,
    Event,
    HITLDecided,
    HITLPending,
    HITLSubmitted,
    HITLVoted,
    HookRuled,
    Inspected,
    Ledger,
    ModelFailed,
    PolicyInForce,
    PromptAmended,
    Prompted,
    PromptHeard,
    ReasonEnd,
    RuleChanged,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import Approve, Expired, Happened, HITLTask, Reject, Rerun, Skip
from harness_core.permissions.rule import PermissionRule
from harness_core.testing import history, tool_call
from harness_core.types import Inspection

CALL = tool_call("change", uuid="r1-1-1", n=1)
TASK = HITLTask("r1-1-1", "change", {"n": 1}, "it may change something", fingerprint="3f9a1c" + "0" * 58)
STORY: tuple[Event, ...] = (
    Prompted("go", "U1"),
    PromptAmended("k", "went"),
    RunStart("r1", requested_by="U1"),
    PromptHeard(1, "gone"),
    ModelFailed("server", 1, 1, "away"),
    ReasonEnd("so", (CALL,)),
    Inspected("r1-1-1", "d", Inspection()),
    HookRuled("before_tool", "caps", "budget", "Ask", "once too often", 1, "r1-1-1", suggests="look"),
    HITLPending((TASK,)),
    HITLVoted(TASK.fingerprint, "U2", Approve()),
    HITLSubmitted(TASK.fingerprint, Approve(always_allow=True, comment="fine"), "U2", "button"),
    RuleChanged("added", PermissionRule.deny("change"), "U2", "never again"),
    RunStart("r1", resumed=True, attempt=2),
    HITLDecided("r1-1-1", "change", Approve(), "U2", proposed={"n": 1}, effective={"n": 2}),
    ToolCallStart(CALL),
    ToolCallEnd("r1-1-1", "done", seconds=1.25),
    ContextCompressed(1, (), Ledger(), "too long", tokens_before=4000, tokens=300),
    PolicyInForce("abcdef0123"),
    StopRequested("r1", "U3"),
    RunEnd("limited", "so far", "steps"),
)  # fmt: skip


def lines(*facts: Event) -> list[str]:
    return [line.text for line in timeline(history(*facts))]


def test_every_kind_of_fact_has_a_line() -> None:
    assert lines(*STORY) == [
        "U1 said: go",
        "the author changed a message to: went",
        "run r1 began, asked for by U1",
        "the model hears message 1 as: gone",
        "the model failed (server), attempt 1: away",
        "the model said: so",
        "the model calls change (1-1): n: 1",
        "what change (1-1) would touch was looked up",
        "hook caps [budget] at before_tool, change (1-1): Ask: once too often (do look)",
        "change (1-1) waits for a person, #3f9a1c: it may change something",
        "#3f9a1c: U2 votes to approve",
        "#3f9a1c: approved for good (fine) by U2, via button",
        f"rule #{PermissionRule.deny('change').id} added by U2 (deny change): never again",
        "run r1 goes on, taken over (attempt 2)",
        "change (1-1) was changed by U2 to: n: 2",
        "change (1-1) runs",
        "change (1-1) ended ok after 1.2 s: done",
        "the context was shortened from 4,000 to 300 tokens: too long",
        "other settings hold from here on (policy abcdef)",
        "U3 asked to stop",
        "run r1 ended: limited at the limit steps: so far",
    ]  # fmt: skip
    assert {type(fact) for fact in STORY} == set(FACTS)


def test_a_call_that_is_handed_over_and_what_its_agent_asks_are_told_by_name() -> None:
    task = replace(TASK, call_uuid="r2-1-1", agent="worker", session="s/r1-1-1")

    assert lines(
        ReasonEnd("", (hand_over := tool_call("task", uuid="r1-1-1", agent="worker", prompt="do it"),)),
        ToolCallStart(hand_over, child="s/r1-1-1"),
        HITLPending((task,)),
        ToolCallEnd("r2-1-1", "done"),
    )[1:] == [
        "task (1-1) is handed to worker, in s/r1-1-1",
        "worker's change (1-1) waits for a person, #3f9a1c: it may change something",
        "worker's change (1-1) ended ok: done",
    ]


@pytest.mark.parametrize("decision", [Reject("no"), Skip(), Rerun(), Happened("it did"), Expired()])
def test_every_decision_has_a_word(decision: Reject | Skip | Rerun | Happened | Expired) -> None:
    [line] = lines(HITLSubmitted(TASK.fingerprint, decision, "U2"))

    assert line.startswith("#3f9a1c: ")
    assert line.endswith("by U2")


def test_steps_and_times_stand_beside_what_happened() -> None:
    told = list(timeline(history(*STORY)))

    assert [told[0].step, told[2].step, told[5].step, told[-1].step] == [None, 0, 1, 1]
    assert str(told[0]).split()[:2] == ["1", "12:00:01"]


def test_nothing_is_a_secret_or_a_trick_of_the_terminal() -> None:
    hostile = "\x1b[2J\u202e token=xoxb-1234567890-abcdefghij\nnext line " + "x" * 5_000
    call = tool_call("\x1b]0;x\x07", uuid="r1-1-1", command=hostile, password="hunter2hunter2")
    end = replace(RunEnd("completed"), answer=hostile)

    told = lines(Prompted(hostile, hostile), RunStart("r1"), ReasonEnd(hostile, (call,)), HookRuled(
        "before_tool", hostile, "drift", "Deny", hostile, 1, "r1-1-1", suggests=hostile
    ), end)  # fmt: skip

    assert len(told) == 6
    for line in told:
        assert line.isprintable()
        assert "abcdefghij" not in line
        assert "hunter2" not in line
        assert len(line) < 500
