"""May a call run: the levels, and that no order, fault or trick widens them."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.hooks import Ask, Deny, HookReject, Rewrite, in_order
from harness_core.permissions.judge import Gate, Judgement, judge, refusal
from harness_core.permissions.rule import PermissionRule
from harness_core.session import Trace
from harness_core.testing import RecordingTool, tool_call
from harness_core.types import Args, Inspection, ToolCall

TOOLS = {
    "look": RecordingTool("look", read_only=True),
    "change": RecordingTool("change", subject="path"),
    "restart": RecordingTool("restart"),
}
LOOK, CHANGE = tool_call("look", n=1), tool_call("change", path="a", n=1)
ALLOW, ASK, DENY = (getattr(PermissionRule, effect)("change") for effect in ("allow", "ask", "deny"))


class Rules:
    """A hook that rules the same at one point."""

    def __init__(self, point: str, verdict: Any, rule_class: str = "drift", priority: int = 0) -> None:
        self.rule_class, self.priority = rule_class, priority
        setattr(self, point, lambda trace, call: verdict(call) if callable(verdict) else verdict)


def verdict(call: ToolCall, *rules: PermissionRule, hooks: Any = (), seen: Any = None, **strategies: Any) -> Judgement:
    gate = Gate(TOOLS, rules, in_order(hooks), strategies)
    return judge(gate, Trace(), call, lambda args: seen)


def test_what_only_reads_inside_the_workspace_runs_and_everything_else_asks() -> None:
    assert verdict(LOOK).effect == "allow"
    assert verdict(LOOK, seen=Inspection(outside=True)).effect == "ask"
    assert verdict(CHANGE).effect == "ask"
    assert verdict(CHANGE).may_always


@pytest.mark.parametrize("said", ["no", 1, object(), lambda: False])
def test_a_tool_that_answers_neither_yes_nor_no_is_not_taken_to_only_read(said: Any) -> None:
    tool = RecordingTool("look")
    tool.read_only = lambda args: said  # type: ignore[method-assign]

    assert judge(Gate({"look": tool}), Trace(), LOOK, lambda _: None).effect == "ask"


def test_a_call_that_cannot_be_judged_asks_and_ends_nothing() -> None:
    def seen(args: Args) -> Inspection:
        raise RuntimeError("a fault of the gate")

    found = judge(Gate(TOOLS), Trace(), LOOK, seen)

    assert (found.effect, found.reason) == ("ask", "the call could not be judged (RuntimeError)")


@pytest.mark.parametrize("rules", list(permutations((ALLOW, ASK, DENY))))
def test_deny_beats_ask_beats_allow_in_any_order(rules: tuple[PermissionRule, ...]) -> None:
    assert verdict(CHANGE, *rules).effect == "deny"
    assert verdict(CHANGE, *(r for r in rules if r != DENY)).effect == "ask"
    assert verdict(CHANGE, ALLOW).effect == "allow"


def test_rules_of_the_session_count_like_the_others() -> None:
    gate = Gate(TOOLS, (ALLOW,))

    assert judge(gate, Trace(rules=(DENY,)), CHANGE, lambda _: None).effect == "deny"
    assert judge(Gate(TOOLS), Trace(rules=(ALLOW,)), CHANGE, lambda _: None).effect == "allow"


def test_a_hook_that_refuses_beats_every_rule_and_one_that_asks_beats_allow() -> None:
    assert verdict(CHANGE, ALLOW, hooks=[Rules("before_tool", Deny("no"))]).effect == "deny"
    assert verdict(CHANGE, ALLOW, hooks=[Rules("before_tool", Ask("sure?"))]).effect == "ask"
    assert verdict(LOOK, hooks=[Rules("before_tool", Ask("sure?"))]).reason == "sure?"
    assert verdict(CHANGE, DENY, hooks=[Rules("before_tool", Ask("sure?"))]).effect == "deny"


@pytest.mark.parametrize("priorities", list(product((-5, 5), repeat=2)))
def test_priority_never_makes_an_ask_beat_a_deny(priorities: tuple[int, int]) -> None:
    first, second = priorities
    hooks = [Rules("before_tool", Ask("?"), priority=first), Rules("before_tool", Deny("no"), priority=second)]

    assert verdict(CHANGE, hooks=hooks).effect == "deny"


def test_an_allow_rule_speaks_before_strategies_and_a_strategy_before_the_default() -> None:
    asks = {"change": lambda trace, args: "sensitive", "look": lambda trace, args: "sensitive"}

    assert verdict(CHANGE, ALLOW, **asks).effect == "allow"
    assert verdict(LOOK, **asks).effect == "ask"
    assert verdict(CHANGE, change=lambda trace, args: None).effect == "allow"
    assert verdict(LOOK, **asks).may_always


class Fails:
    def evaluate(self, trace: Trace, args: Args) -> str | None:
        raise ValueError("boom")


JUNK = [Fails(), lambda t, a: 1 / 0, lambda t, a: False, lambda t, a: 0, lambda t, a: [], lambda t, a: {}, lambda: None]


@pytest.mark.parametrize("strategy", JUNK)
def test_a_strategy_that_fails_or_returns_junk_asks(strategy: Any) -> None:
    assert verdict(LOOK, look=strategy).effect == "ask"


def test_a_strategy_cannot_change_the_arguments_nor_give_a_reason_that_cannot_be_stored() -> None:
    def sly(trace: Trace, args: Any) -> str:
        args["n"] = 0
        return "\ud800"

    asked = verdict(LOOK, look=sly)

    assert asked.args == {"n": 1}
    assert asked.reason == "?"


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_strategy_that_gives_no_words_asks_and_people_are_told_so(blank: str) -> None:
    asked = verdict(LOOK, look=lambda trace, args: blank)

    assert (asked.effect, asked.reason) == ("ask", "the check asks, and gives no reason")


@pytest.mark.parametrize("point", ["before_tool", "permission_request"])
@pytest.mark.parametrize("answer", ["deny", True, PermissionRule.allow("change"), 0, Rewrite(None), Deny(None), Ask(1)])  # type: ignore[arg-type]
def test_a_hook_that_rules_what_its_point_does_not_accept_asks_and_a_safety_hook_denies(
    point: str, answer: Any
) -> None:
    assert verdict(CHANGE, hooks=[Rules(point, answer)]).effect == "ask"
    assert not verdict(CHANGE, hooks=[Rules(point, answer)]).may_always
    assert verdict(CHANGE, hooks=[Rules(point, answer, "safety")]).effect == "deny"


@pytest.mark.parametrize("point", ["before_tool", "permission_request"])
def test_a_hook_that_raises_fails_closed(point: str) -> None:
    def broken(call: ToolCall) -> None:
        raise RuntimeError("boom")

    def refuses(call: ToolCall) -> None:
        raise HookReject("Look it up first.", suggests="look")

    assert verdict(CHANGE, hooks=[Rules(point, broken)]).effect == "ask"
    assert verdict(CHANGE, hooks=[Rules(point, broken, "safety")]).effect == "deny"
    refused = verdict(CHANGE, hooks=[Rules(point, refuses)])
    assert (refused.effect, refused.reason) == ("deny", "Look it up first.")
    assert refused.rulings[-1].suggests == "look"


def clamp(call: ToolCall) -> Rewrite | None:
    return Rewrite({**call.args, "n": 50}) if call.args.get("n", 0) > 50 else None


def test_a_rewrite_is_what_is_judged_and_shown() -> None:
    call = tool_call("change", path="a", n=100)

    clamped = verdict(call, hooks=[Rules("before_tool", clamp)])
    denied = verdict(call, PermissionRule.deny("change", "b"), hooks=[Rules("before_tool", Rewrite({"path": "b"}))])

    assert (clamped.effect, clamped.args["n"]) == ("ask", 50)
    assert denied.effect == "deny"
    assert clamped.rulings[0].payload == {"args": {"path": "a", "n": 50}}


def test_a_rewrite_just_before_asking_still_asks_even_for_what_a_rule_allows_and_offers_no_always() -> None:
    rewrite = Rules("permission_request", Rewrite({"path": "b"}))
    allowed = PermissionRule.allow("change", "b")

    asked = verdict(CHANGE, allowed, hooks=[rewrite])

    assert (asked.effect, asked.args, asked.may_always) == ("ask", {"path": "b"}, False)
    assert "allows" not in asked.reason
    assert verdict(CHANGE, PermissionRule.deny("change", "b"), hooks=[rewrite]).effect == "deny"


def test_a_rewrite_from_one_to_true_is_a_rewrite() -> None:
    asked = verdict(CHANGE, hooks=[Rules("permission_request", Rewrite({"path": "a", "n": True}))])

    assert asked.args["n"] is True


def test_always_allow_is_offered_only_where_a_rule_would_let_the_call_through() -> None:
    assert not verdict(CHANGE, ASK).may_always
    assert not verdict(CHANGE, hooks=[Rules("before_tool", Ask("?"))]).may_always
    assert not verdict(CHANGE, hooks=[Rules("permission_request", Ask("?"))]).may_always
    assert not verdict(CHANGE, ASK, hooks=[Rules("before_tool", clamp)]).may_always


def test_what_is_offered_as_always_does_let_exactly_that_call_through() -> None:
    asked = verdict(call := tool_call("change", path="a", n=100), hooks=[Rules("before_tool", clamp)])
    rule = PermissionRule.exactly("change", asked.args)

    assert asked.may_always
    assert verdict(call, rule, hooks=[Rules("before_tool", clamp)]).effect == "allow"
    assert verdict(tool_call("change", path="a", n=49), rule, hooks=[Rules("before_tool", clamp)]).effect == "ask"


def test_no_arguments_are_not_any_arguments() -> None:
    rule = PermissionRule.exactly("restart", {})

    assert verdict(tool_call("restart"), rule).effect == "allow"
    assert verdict(tool_call("restart", all=True), rule).effect == "ask"


def test_allow_minds_the_case_of_the_name_and_deny_does_not() -> None:
    assert verdict(CHANGE, PermissionRule.allow("Change")).effect == "ask"
    assert verdict(CHANGE, PermissionRule.deny("CHANGE")).effect == "deny"
    assert verdict(CHANGE, PermissionRule.deny("chang")).effect == "ask"


def test_what_counts_against_a_decided_call_is_deny_alone() -> None:
    def left(*rules: PermissionRule, hook: Any = None) -> Judgement | None:
        return refusal(Gate(TOOLS, rules, (Rules("before_tool", hook),)), Trace(), CHANGE, lambda _: None)

    assert left(ALLOW, ASK) is None
    assert left(hook=Ask("?")) is None
    assert left(hook=Rewrite({"path": "b"})) is None
    assert left(DENY) is not None
    assert left(hook=Deny("no")) is not None


STANCES = st.lists(st.sampled_from([ALLOW, ASK, DENY, PermissionRule.allow("change", "a"), PermissionRule.deny("x")]))
HOOKS = st.lists(
    st.builds(
        Rules,
        st.sampled_from(["before_tool", "permission_request"]),
        st.sampled_from([None, Ask("?"), Deny("no"), "junk"]),
        st.sampled_from(["safety", "budget", "drift"]),
        st.integers(-3, 3),
    ),
    max_size=4,
)


@given(STANCES, HOOKS, st.randoms())
def test_no_order_of_rules_changes_a_verdict(rules: list[PermissionRule], hooks: list[Rules], random: Any) -> None:
    shuffled = random.sample(rules, len(rules))

    before, after = verdict(CHANGE, *rules, hooks=hooks), verdict(CHANGE, *shuffled, hooks=hooks)

    assert before.effect == after.effect
    assert before.effect == "deny" or DENY not in rules
    assert before.effect != "allow" or (ALLOW in rules or PermissionRule.allow("change", "a") in rules)


def test_a_verdict_says_which_level_spoke() -> None:
    asks = {"change": lambda trace, args: "sensitive"}

    assert verdict(CHANGE, DENY, ALLOW).level == "deny rule"
    assert verdict(CHANGE, ASK, ALLOW).level == "ask rule"
    assert verdict(CHANGE, ALLOW).level == "allow rule"
    assert verdict(CHANGE, **asks).level == "strategy"
    assert verdict(CHANGE).level == verdict(LOOK).level == "default"
    assert verdict(CHANGE, hooks=[Rules("before_tool", Deny("no"))]).level == "hook"
    assert verdict(CHANGE, hooks=[Rules("permission_request", Ask("sure?"))]).level == "hook"
