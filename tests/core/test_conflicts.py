"""Rules that fight while a run goes on, and demands that nothing allows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.conflicts import Move, dead_ends, fights, moves_of, moves_replayed
from harness_core.events import Event, HookRuled, Prompted, ReasonEnd, RunEnd, RunStart, ToolCallEnd, ToolCallStart
from harness_core.guards import guards_from
from harness_core.hooks import Continue, Deny, Inject, in_order
from harness_core.interceptors.finish import Finish
from harness_core.interceptors.function import hook
from harness_core.interceptors.lookup import Lookup
from harness_core.interceptors.terminal import Terminal
from harness_core.permissions.judge import Gate, judge
from harness_core.permissions.rule import PermissionRule
from harness_core.replay import replay
from harness_core.results import denied
from harness_core.session import Trace
from harness_core.steps import Policy
from harness_core.testing import RecordingTool, history, tool_call
from harness_core.types import ToolCall

TOOLS = {
    "read": RecordingTool("read", read_only=True),
    "edit": RecordingTool("edit"),
    "write": RecordingTool("write"),
    "report": RecordingTool("report"),
    "refund": RecordingTool("refund"),
}


def policy(*hooks: Any, rules: tuple[PermissionRule, ...] = (), **more: Any) -> Policy:
    return Policy(Gate(TOOLS, rules, in_order(hooks)), **more)


# -- fights ------------------------------------------------------------------------------------------------------------


def edit(step: int) -> tuple[Event, ...]:
    """The model tries to edit, and is told to read first."""
    call = tool_call("edit", uuid=f"e{step}")
    ruled = HookRuled("before_tool", "lookup", "drift", "Deny", "read first", step, call.call_uuid, suggests="read")
    return ReasonEnd("", (call,), step=step), ruled, denied(call, "read first")


def read(step: int, why: str = "") -> tuple[Event, ...]:
    """It reads, and a rule says no, and why if its maker told."""
    call, rule = tool_call("read", uuid=f"r{step}"), PermissionRule.deny("read")
    gate = Gate(TOOLS, (rule,), whys={rule.id: why})
    said = judge(gate, Trace(), call, lambda args: None)
    return ReasonEnd("", (call,), step=step), denied(call, said.reason)


BEGIN = (Prompted("go"), RunStart("r1"))


def test_a_rule_that_refuses_what_another_demands_is_found_and_both_are_named() -> None:
    facts = history(*BEGIN, *edit(1), *read(2), *edit(3), *read(4), *edit(5), *read(6))

    [fight] = fights(moves_of(facts))

    assert (fight.refuses, fight.demands, fight.tool) == ("rule “deny read”", "lookup", "read")
    assert (fight.run_id, fight.step, fight.times) == ("r1", 4, 2)
    assert str(fight) == (
        "two rules fight over read: rule “deny read” refuses it (2 times in this run), "
        "and lookup tells the model to call it"
    )


def test_a_rule_that_says_why_is_named_like_any_other() -> None:
    frozen = "frozen until Monday"
    facts = history(*BEGIN, *edit(1), *read(2, frozen), *edit(3), *read(4, frozen))

    assert [fight.refuses for fight in fights(moves_of(facts))] == ["rule “deny read”"]


@pytest.mark.parametrize("upto", range(1, 10))
def test_a_fight_is_seen_with_the_refusal_that_makes_it_one_and_not_before(upto: int) -> None:
    facts = history(*BEGIN, *edit(1), *read(2), *edit(3), *read(4))

    found = fights(moves_of(facts[: len(facts) - upto]))

    assert found == ()
    assert fights(moves_of(facts))[0].seq == facts[-1].seq


def test_progress_ends_a_quarrel_and_another_run_begins_anew() -> None:
    call = tool_call("read", uuid="ok")
    worked = (ReasonEnd("", (call,), step=3), ToolCallStart(call), ToolCallEnd("ok", "text"))
    anew = (RunEnd("completed"), Prompted("again"), RunStart("r2"))

    assert fights(moves_of(history(*BEGIN, *edit(1), *read(2), *worked, *edit(4), *read(5)))) == ()
    assert fights(moves_of(history(*BEGIN, *edit(1), *read(2), *anew, *edit(1), *read(2)))) == ()


def test_siblings_of_one_message_are_refused_once() -> None:
    calls = tuple(tool_call("read", uuid=f"s{n}") for n in range(3))
    ends = [denied(call, "The rule “deny read” denies this call. No.") for call in calls]

    assert fights(moves_of(history(*BEGIN, *edit(1), ReasonEnd("", calls, step=2), *ends))) == ()


def test_a_rule_that_refuses_and_demands_the_same_is_no_fight_of_two() -> None:
    def asks_again(step: int) -> tuple[Event, ...]:
        call = tool_call("edit", uuid=f"e{step}")
        ruled = HookRuled("before_tool", "stubborn", "drift", "Deny", "", step, call.call_uuid, suggests="edit")
        return ReasonEnd("", (call,), step=step), ruled, denied(call, "no")

    assert fights(moves_of(history(*BEGIN, *asks_again(1), *asks_again(2), *asks_again(3)))) == ()


# Few rules in few places, so that some of them do fight.
MOVES = st.builds(Move, st.integers(1, 9), st.sampled_from("rrrrrs"), st.integers(1, 4), st.sampled_from("aaaaab"),
                  st.sampled_from(("refused",) * 4 + ("demanded",) * 3 + ("done",)), st.sampled_from("xy"))  # fmt: skip


@given(st.lists(MOVES, min_size=6, max_size=14))
def test_whoever_fights_did_refuse_twice_and_was_told_to_in_between(moves: list[Move]) -> None:
    for fight in fights(moves):
        refusals = [i for i, m in enumerate(moves) if m.kind == "refused" and (m.run_id, m.tool, m.by) == (
            fight.run_id, fight.tool, fight.refuses)]  # fmt: skip
        demands = [i for i, m in enumerate(moves) if m.kind == "demanded" and (m.run_id, m.tool, m.by) == (
            fight.run_id, fight.tool, fight.demands)]  # fmt: skip
        assert any(demand < refusals[-1] for demand in demands)
        assert len(refusals) >= 2
        assert fight.refuses != fight.demands


def test_the_terminal_guard_and_a_finish_that_requires_something_fight_and_replay_sees_it() -> None:
    """Nothing of it is on record: the recorded policy had neither."""
    report, refunds = tool_call("report", uuid="c1"), [tool_call("refund", uuid=f"c{n}") for n in (2, 3)]
    tried = [
        fact
        for step, call in enumerate(refunds, 2)
        for fact in (ReasonEnd("", (call,), step=step), ToolCallStart(call), ToolCallEnd(call.call_uuid, "no", "error"))
    ]
    facts = history(*BEGIN, ReasonEnd("", (report,), step=1), ToolCallStart(report), ToolCallEnd("c1", "done"), *tried,
                    ReasonEnd("done", step=4), RunEnd("completed", "done"))  # fmt: skip

    @hook("before_model", demands=["refund"])
    def nagging(trace: Any) -> Inject:
        return Inject("Refund it.", suggests="refund")

    rulings = replay(facts, policy(Terminal(("report",)), nagging, rules=(PermissionRule.allow("*"),)))

    [fight] = fights(moves_replayed(rulings))
    assert (fight.refuses, fight.demands, fight.tool, fight.step) == ("terminal", "nagging", "refund", 3)


# -- dead ends ---------------------------------------------------------------------------------------------------------


def test_a_demand_that_a_rule_forbids_is_a_dead_end_and_says_which_rule() -> None:
    [found] = dead_ends(policy(Finish(requires=("report",)), rules=(PermissionRule.deny("report"),)))

    assert str(found) == (
        "finish tells the model to call report, and nothing allows that "
        "(report: the rule “deny report” denies every call)"
    )


def test_one_way_out_is_enough_and_a_rule_against_some_arguments_leaves_one() -> None:
    two = Finish(requires=("report", "refund"))

    assert dead_ends(policy(two, rules=(PermissionRule.deny("report"),))) == ()
    assert dead_ends(policy(Finish(requires=("report",)), rules=(PermissionRule.deny("report", "x"),))) == ()
    assert len(dead_ends(policy(two, rules=(PermissionRule.deny("re*"),)))) == 1


def test_a_lookup_whose_first_step_is_forbidden_missing_or_capped_is_a_dead_end() -> None:
    def why(*hooks: Any, rules: tuple[PermissionRule, ...] = ()) -> str:
        return "; ".join(map(str, dead_ends(policy(*hooks, rules=rules))))

    assert "the rule “deny read” denies every call" in why(Lookup(), rules=(PermissionRule.deny("read"),))
    assert "there is no such tool" in why(Lookup(first=("search",)))
    assert "caps refuses every call" in why(Lookup(), *guards_from({"caps": {"per_run": {"read": 0}}}))
    assert why(Lookup()) == ""


def test_two_that_each_wait_for_the_other_are_a_dead_end() -> None:
    class Pair:
        def __init__(self, name: str, needs: dict[str, tuple[str, ...]]) -> None:
            self.name, self.needs = name, needs

        def before_tool(self, trace: Any, call: ToolCall) -> Deny | None:
            return Deny("not yet", suggests=self.needs[call.name][0]) if call.name in self.needs else None

    first, second = Pair("first", {"report": ("refund",)}), Pair("second", {"refund": ("report",)})

    found = dead_ends(policy(first, second))

    assert {(one.by, one.tools) for one in found} == {("first", ("refund",)), ("second", ("report",))}
    assert "second refuses it until report" in str(found[0])
    assert dead_ends(policy(first, Pair("second", {"refund": ("report", "read")}))) == ()


def test_where_nobody_can_be_asked_only_what_runs_unasked_is_a_way_out() -> None:
    finish = Finish(requires=("report",))

    assert "nobody can be asked" in str(dead_ends(policy(finish, can_ask=False))[0])
    assert dead_ends(policy(finish, rules=(PermissionRule.allow("report"),), can_ask=False)) == ()
    assert dead_ends(policy(Lookup(), can_ask=False)) == ()


def test_a_hook_of_ones_own_says_what_it_demands() -> None:
    @hook("before_stop", demands=["report"])
    def report_first(trace: Any, answer: str) -> Continue:
        return Continue("Write the report.", suggests="report")

    [found] = dead_ends(policy(report_first, rules=(PermissionRule.deny("report"),)))

    assert (found.by, found.tools) == ("report_first", ("report",))


def test_the_default_guards_have_no_dead_end() -> None:
    assert dead_ends(policy(*guards_from({"lookup": True}))) == ()
