"""`!why`: what is told of the newest run's calls, from the facts and by the rules of now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bot.why import MOST_CALLS, NOTHING, since, why
from harness_core.events import (
    Event,
    HITLPending,
    HITLSubmitted,
    HITLVoted,
    HookRuled,
    Prompted,
    ReasonEnd,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import Approve, Expired, HITLTask, Reject
from harness_core.permissions.judge import Gate
from harness_core.permissions.rule import PermissionRule
from harness_core.replay import replay
from harness_core.results import denied
from harness_core.steps import Policy
from harness_core.testing import RecordingTool, history, tool_call
from harness_core.types import ToolCall

TOOLS = {"look": RecordingTool("look", read_only=True), "change": RecordingTool("change")}
LOOK, CHANGE = tool_call("look", uuid="c1"), tool_call("change", uuid="c2", n=1)
BEGIN = (Prompted("go", "U1"), RunStart("r1", requested_by="U1"))


def ran(call: ToolCall) -> tuple[Event, ...]:
    return ToolCallStart(call), ToolCallEnd(call.call_uuid, "it is so")


def asked_for(call: ToolCall, reason: str) -> HITLTask:
    return HITLTask(call.call_uuid, call.name, call.args, reason, fingerprint=call.call_uuid * 32)


def asked(call: ToolCall, reason: str, *decided: Any, via: str = "button") -> tuple[Event, ...]:
    task = asked_for(call, reason)
    return (HITLPending((task,)), *(HITLSubmitted(task.fingerprint, one, "U22", via) for one in decided))


def told(*facts: Event, rules: tuple[PermissionRule, ...] = ()) -> list[str]:
    recorded = history(*facts)
    return why(recorded, replay(recorded, Policy(Gate(TOOLS, rules)), since(recorded))).splitlines()


def test_what_asked_says_why_and_what_was_decided() -> None:
    facts = (*BEGIN, ReasonEnd("", (CHANGE,)))

    assert told(*facts, *asked(CHANGE, "the part `rm x` is not known."))[1] == (
        "• change `n: 1` *asked*: the part `rm x` is not known. It waits (`#c2c2c2`)."
    )
    assert told(*facts, *asked(CHANGE, "so", Approve()))[1].endswith("Then it was approved by <@U22>.")
    edited = Approve(modified_args={"n": 2})
    assert told(*facts, *asked(CHANGE, "so", edited))[1].endswith("Then it was approved with changes by <@U22>.")
    assert told(*facts, *asked(CHANGE, "so", Reject("no")))[1].endswith("Then it was rejected by <@U22>.")
    assert told(*facts, *asked(CHANGE, "so", Expired(), via="expired"))[1].endswith("Nobody decided in time.")
    released = Approve(comment="Released: the rule “allow change” allows it")
    assert told(*facts, *asked(CHANGE, "so", released, via="release"))[1].endswith(
        "Released: the rule “allow change” allows it."
    )


def test_all_who_approved_are_named_where_a_rule_wants_several() -> None:
    task = replace(asked_for(CHANGE, "so"), people=2)
    votes = [HITLVoted(task.fingerprint, by, Approve()) for by in ("U11", "U22")]
    facts = (*BEGIN, ReasonEnd("", (CHANGE,)), HITLPending((task,)))

    assert told(*facts)[1].endswith("It waits (`#c2c2c2`); 2 people must approve.")
    assert told(*facts, votes[0])[1].endswith("It waits (`#c2c2c2`); approved by <@U11>; 1 more must approve.")
    approved = HITLSubmitted(task.fingerprint, Approve(), "U22", "button")
    assert told(*facts, *votes, approved)[1].endswith("Then it was approved by <@U11> and <@U22>.")
    rejected = HITLSubmitted(task.fingerprint, Reject("no"), "U22", "button")
    assert told(*facts, votes[0], rejected)[1].endswith("Then it was rejected by <@U22>.")


def test_what_ran_unasked_is_judged_again_and_says_if_it_would_be_otherwise_now() -> None:
    facts = (*BEGIN, ReasonEnd("", (LOOK,)), *ran(LOOK))

    assert told(*facts)[1] == "• look `(no arguments)` *ran unasked*: it only reads inside the workspace."
    assert told(*facts, rules=(PermissionRule.ask("look"),))[1] == (
        "• look `(no arguments)` *ran unasked*; by the rules of now it would ask: the rule “ask look” asks."
    )


def test_a_call_that_is_open_runs_or_has_not_been_decided() -> None:
    facts = (*BEGIN, ReasonEnd("", (LOOK,)))

    assert told(*facts)[1] == "• look `(no arguments)` has not been decided yet."
    assert "*ran unasked*" in told(*facts, ToolCallStart(LOOK))[1]


def test_what_was_refused_names_the_hook_or_the_rule() -> None:
    hooked = HookRuled("before_tool", "lookup", "drift", "Deny", "read first", 1, "c2", suggests="read")
    by_rule = denied(CHANGE, "The rule “deny change” denies this call. Find another way.")
    refused = (*BEGIN, ReasonEnd("", (CHANGE,)))

    assert told(*refused, hooked, denied(CHANGE, "read first"))[1] == (
        "• change `n: 1` *was refused* by the hook lookup: read first."
    )
    assert "*was refused*: The rule “deny change” denies this call" in told(*refused, by_rule)[1]


def test_the_newest_call_comes_first_and_only_the_newest_run_is_told_of() -> None:
    before = (*BEGIN, ReasonEnd("", (CHANGE,)), *ran(CHANGE), RunEnd("completed"))
    calls = [tool_call("look", uuid=f"x{n}", n=n) for n in range(MOST_CALLS + 2)]
    steps = [fact for n, call in enumerate(calls, 1) for fact in (ReasonEnd("", (call,), step=n), *ran(call))]

    lines = told(*before, Prompted("more"), RunStart("r2"), *steps)

    assert [line.split("`")[1] for line in lines[1:-1]] == [f"n: {n}" for n in range(MOST_CALLS + 1, 1, -1)]
    assert lines[-1] == "… and 2 earlier calls"


def test_other_rulings_limits_and_conflicts_are_told_too() -> None:
    nudge = HookRuled("before_stop", "finish", "termination", "Continue", "the answer is empty", 1)

    lines = told(*BEGIN, ReasonEnd(""), nudge, RunEnd("limited", "so far", "steps"))

    assert lines[1:] == [
        "• the hook finish ruled *Continue* (before_stop): the answer is empty.",
        "• the run *ended at the limit* steps.",
    ]


def test_rules_that_fight_are_named() -> None:
    def refused(step: int) -> tuple[Event, ...]:
        call = tool_call("change", uuid=f"c{step}", n=1)
        ruled = HookRuled("before_tool", "terminal", "termination", "Deny", "over", step, call.call_uuid)
        nag = HookRuled("before_stop", "finish", "termination", "Continue", "not yet", step, suggests="change")
        return ReasonEnd("", (call,), step=step), ruled, denied(call, "over"), nag

    lines = told(*BEGIN, *refused(1), *refused(2))

    assert (
        "• *Conflict:* two rules fight over change: terminal refuses it (2 times in this run), and finish tells"
        in lines[-1]
    )


def test_where_nothing_was_decided_it_says_so() -> None:
    assert told() == told(*BEGIN) == [NOTHING]


def test_nothing_that_a_model_says_mentions_anybody_or_shows_a_secret() -> None:
    hostile = tool_call("<!channel>", uuid="c9", command="`<@U1> token=xoxb-1234567890-abcdefghij \u202e")

    text = "\n".join(told(*BEGIN, ReasonEnd("", (hostile,)), ToolCallEnd("c9", "<!here> **x**", "error")))

    assert "<!" not in text
    assert "<@U1>" not in text
    assert "abcdefghij" not in text
    assert "\u202e" not in text
    assert text.count("`") == 2
