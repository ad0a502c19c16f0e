"""A recorded session under another policy: what it says of each call, where the course parts, and from where on it
only may be so.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.events import (
    Event,
    HITLDecided,
    HITLPending,
    HITLSubmitted,
    HookRuled,
    Inspected,
    Prompted,
    ReasonEnd,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import Approve, Decision, Happened, HITLTask, Reject
from harness_core.hooks import Deny, Inject, Observe, Rewrite, in_order
from harness_core.permissions.judge import Gate
from harness_core.permissions.rule import PermissionRule
from harness_core.replay import Ruling, replay, verdicts
from harness_core.session import Trace
from harness_core.steps import Policy
from harness_core.testing import RecordingTool, history, tool_call
from harness_core.types import Inspection, ToolCall, canonical, digest

TOOLS = {
    "look": RecordingTool("look", read_only=True),
    "change": RecordingTool("change"),
    "bash": RecordingTool("bash"),
}
LOOK, CHANGE = tool_call("look", uuid="c1"), tool_call("change", uuid="c2", n=1)
BEGIN = (Prompted("go", "U1"), RunStart("r1"))
DONE = (ReasonEnd("done", step=9), RunEnd("completed", "done"))


def policy(*rules: PermissionRule, hooks: Any = (), **more: Any) -> Policy:
    return Policy(Gate(TOOLS, rules, in_order(hooks)), **more)


def ran(call: ToolCall, outcome: Any = "ok") -> tuple[Event, ...]:
    return ToolCallStart(call), ToolCallEnd(call.call_uuid, "it is so", outcome)


def asked(call: ToolCall, decision: Decision) -> tuple[Event, ...]:
    task = HITLTask(call.call_uuid, call.name, call.args, "because", fingerprint=call.call_uuid * 32)
    return (
        HITLPending((task,)),
        HITLSubmitted(task.fingerprint, decision, "U2", "button"),
        RunStart("r1", resumed=True),
        HITLDecided(call.call_uuid, call.name, decision, "U2", proposed=call.args, effective=call.args),
    )


def told(rulings: tuple[Ruling, ...]) -> list[tuple[str, str, str]]:
    return [(r.hook, r.verdict, r.recorded) for r in rulings]


UNASKED = history(*BEGIN, ReasonEnd("", (LOOK,)), *ran(LOOK),
                  ReasonEnd("", (CHANGE,), step=2), *asked(CHANGE, Approve()),
                  *ran(CHANGE), *DONE)  # fmt: skip


def test_the_same_policy_says_the_same_and_parts_nowhere() -> None:
    said = replay(UNASKED, policy())

    assert told(said) == [("default", "allow", "allow"), ("default", "ask", "ask")]
    assert [(r.point, r.step, r.call and r.call.name) for r in said] == [("gate", 1, "look"), ("gate", 2, "change")]
    assert not any(r.differs or r.diverges or r.conditional for r in said)


def test_a_call_that_was_approved_as_it_was_would_have_run_and_nothing_else_had_changed() -> None:
    said = replay(UNASKED, policy(PermissionRule.allow("change")))

    assert told(said)[1] == ("rule allow change", "allow", "ask")
    assert said[1].differs
    assert not said[1].diverges


@pytest.mark.parametrize("decision", [Approve(modified_args={"n": 2}), Reject("no", end=False)])
def test_a_call_that_was_changed_or_rejected_would_have_run_and_all_after_it_may_have_been_otherwise(
    decision: Decision,
) -> None:
    facts = history(*BEGIN, ReasonEnd("", (CHANGE,)), *asked(CHANGE, decision), *ran(CHANGE),
                    ReasonEnd("", (LOOK,), step=2), *ran(LOOK), *DONE)  # fmt: skip

    said = replay(facts, policy(PermissionRule.allow("change")))

    assert [(r.verdict, r.diverges, r.conditional) for r in said] == [("allow", True, False), ("allow", False, True)]


def test_a_refusal_parts_the_course_and_its_siblings_are_still_certain() -> None:
    second = tool_call("change", uuid="c3", n=2)
    facts = history(*BEGIN, ReasonEnd("", (LOOK, CHANGE)), *asked(CHANGE, Approve()), *ran(LOOK), *ran(CHANGE),
                    ReasonEnd("", (second,), step=2), *asked(second, Approve()), *ran(second), *DONE)  # fmt: skip

    said = replay(facts, policy(PermissionRule.deny("look")))

    assert told(said) == [("default", "ask", "ask"), ("rule deny look", "deny", "allow"), ("default", "ask", "ask")]
    assert [r.conditional for r in said] == [False, False, True]
    assert "denies this call" in said[1].reason


def test_what_the_tools_saw_comes_from_the_recording() -> None:
    call = tool_call("bash", uuid="c1", command="cat notes.md")
    seen = Inspected("c1", digest(canonical(call.args)), Inspection(paths=("/elsewhere/notes.md",)))
    ls = {"bash": RecordingTool("bash", inspect=lambda args: Inspection())}

    def verdict(*facts: Event) -> str:
        recorded = history(*BEGIN, ReasonEnd("", (call,)), *facts, *ran(call), *DONE)
        return replay(recorded, Policy(Gate(ls, workspace="/-/workspace")))[0].verdict

    assert (verdict(seen), ls["bash"].contexts) == ("ask", [])
    here = Inspected("c1", seen.args_digest, Inspection(paths=("/-/workspace/notes.md",)))
    assert verdict(here) == "allow"


def test_a_call_that_cannot_work_is_an_error_under_any_policy() -> None:
    gone = tool_call("gone", uuid="c1")
    facts = history(*BEGIN, ReasonEnd("", (gone,)), ToolCallEnd("c1", "There is no tool gone.", "error"), *DONE)

    assert told(replay(facts, policy(PermissionRule.allow("*")))) == [("default", "error", "error")]


def test_where_nobody_can_be_asked_what_would_ask_is_refused() -> None:
    said = replay(UNASKED, policy(can_ask=False))[1]

    assert (said.verdict, said.diverges) == ("deny", True)
    assert "nobody can be asked" in said.reason


def test_a_call_that_was_let_through_may_be_refused_when_it_is_about_to_run() -> None:
    """The edited arguments of a call, say, which were not what the gate saw first."""
    facts = history(*BEGIN, ReasonEnd("", (CHANGE,)), *asked(CHANGE, Approve(modified_args={"n": 2})),
                    ToolCallStart(CHANGE, {"n": 2}), ToolCallEnd("c2", "done"), *DONE)  # fmt: skip
    only_one = PermissionRule("deny", "change", arguments='{"n":2}')

    said = verdicts(replay(facts, policy(only_one)))

    assert [(r.verdict, r.recorded, r.diverges) for r in said] == [("ask", "ask", False), ("deny", "allow", True)]


def test_the_limit_of_steps_ends_the_run_earlier_or_lets_it_go_on() -> None:
    steps = [f for n in range(3) for f in (ReasonEnd("", (tool_call("look", uuid=f"l{n}"),), step=n + 1),
                                           *ran(tool_call("look", uuid=f"l{n}")))]  # fmt: skip
    facts = history(*BEGIN, *steps, RunEnd("limited", "so far", "steps"))

    fewer = [r for r in replay(facts, policy(max_steps=2)) if r.differs]
    more = [r for r in replay(facts, policy(max_steps=5)) if r.differs]

    assert [(r.step, r.point, r.hook, r.verdict, r.diverges) for r in fewer[:1]] == [
        (2, "before_model", "limits", "Stop", True)
    ]
    assert [(r.step, r.point, r.hook, r.verdict, r.recorded) for r in more] == [
        (3, "run", "steps", "go on", "end limited")
    ]
    assert not [r for r in replay(facts, policy(max_steps=3)) if r.differs]


class Guard:
    """Refuses `change` until `look` has succeeded, and says so."""

    name, rule_class = "guard", "drift"

    def before_tool(self, trace: Any, call: ToolCall) -> Deny | None:
        return Deny("look first", suggests="look") if call.name == "change" else None


class Talker:
    name = "talker"

    def before_model(self, trace: Any) -> Inject | Observe:
        return Inject("be brief") if trace.run and trace.run.steps == 1 else Observe("nothing to say")


def test_hooks_are_asked_again_at_their_points() -> None:
    said = replay(UNASKED, policy(hooks=[Guard(), Talker()]))

    assert ("before_tool", "guard", "Deny", "look first") in {(r.point, r.hook, r.verdict, r.reason) for r in said}
    assert [r.hook for r in verdicts(said)] == ["default", "guard"]
    [inject] = [r for r in said if r.verdict == "Inject"]
    assert (inject.point, inject.step, inject.recorded, inject.diverges) == ("before_model", 1, "nothing", True)
    assert not any(r.diverges for r in said if r.verdict == "Observe")


def test_a_ruling_on_record_is_the_same_ruling_and_one_that_is_no_more_is_told() -> None:
    ruled = HookRuled("before_tool", "guard", "drift", "Deny", "look first", 1, "c2", suggests="look")
    facts = history(*BEGIN, ReasonEnd("", (CHANGE,)), ruled, ToolCallEnd("c2", "look first", "denied"), *DONE)

    same, without = replay(facts, policy(hooks=[Guard()])), replay(facts, policy())

    assert told(same) == [("guard", "Deny", "Deny"), ("guard", "deny", "deny")]
    assert ("guard", "nothing", "Deny") in told(without)
    assert ("default", "ask", "deny") in told(without)


def test_what_was_never_decided_is_said_and_compared_with_nothing() -> None:
    facts = history(*BEGIN, ReasonEnd("", (CHANGE,)))

    [said] = replay(facts, policy())

    assert (said.verdict, said.recorded, said.differs, said.diverges) == ("ask", "", False, False)


def test_a_thousand_steps_get_a_thousand_verdicts() -> None:
    calls = [tool_call("look", uuid=f"l{step}", n=step) for step in range(1_000)]
    steps = [fact for step, call in enumerate(calls, 1) for fact in (ReasonEnd("", (call,), step=step), *ran(call))]

    said = replay(history(*BEGIN, *steps, *DONE), policy(PermissionRule.deny("look", '{"n":500}'), max_steps=2_000))

    assert [r.step for r in said if r.verdict == "allow"] == [n for n in range(1, 1_001) if n != 501]
    assert [r.step for r in said if r.diverges] == [501]
    assert [r.conditional for r in said] == [False] * 501 + [True] * 499


def test_only_what_comes_from_a_fact_on_is_asked_about_but_all_before_counts() -> None:
    later = next(fact.seq for fact in UNASKED if isinstance(fact, ReasonEnd) and fact.step == 2)

    said = replay(UNASKED, policy(PermissionRule.deny("look")), since=later or 0)

    assert [(r.call and r.call.name, r.step, r.conditional) for r in said] == [("change", 2, False)]


def test_an_empty_session_has_nothing_to_say() -> None:
    assert replay((), policy()) == ()


def test_hooks_are_asked_about_results_that_tools_and_agents_brought_and_about_no_others() -> None:
    class Tidy:
        name = "tidy"

        def after_tool(self, trace: Trace, call: ToolCall, result: ToolCallEnd) -> Rewrite:
            return Rewrite("tidied")

    known, again = asked(LOOK, Happened("it did")), ToolCall("c3", "change", {})
    facts = history(*BEGIN, ReasonEnd("", (LOOK,)), ToolCallStart(LOOK), *known, ToolCallEnd("c1", "It had happened."),
                    ReasonEnd("", (CHANGE,), step=2), ToolCallStart(CHANGE, child="s/c2"), ToolCallEnd("c2", "found"),
                    ReasonEnd("", (again,), step=3), ToolCallStart(again, child="s/c3"), StopRequested("r1"),
                    ToolCallEnd("c3", "It did not finish.", "error"), RunEnd("stopped"))  # fmt: skip

    said = replay(facts, policy(hooks=(Tidy(),)))

    (brought,) = [fact for fact in facts if isinstance(fact, ToolCallEnd) and fact.call_uuid == "c2"]
    assert [r.seq for r in said if r.point == "after_tool"] == [brought.seq]
