"""Hook points: order, rewrites, faults, and the record of what was ruled."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.errors import ConfigError
from harness_core.events import Codec
from harness_core.hooks import Ask, Deny, HookReject, Rewrite, in_order, run_point
from harness_core.session import Trace
from harness_core.testing import tool_call
from harness_core.types import ToolCall

CALL = tool_call("change", n=100)


class Hook:
    def __init__(self, name: str, verdict: Any = None, rule_class: str = "drift", priority: int = 0) -> None:
        self.name, self.rule_class, self.priority, self.verdict = name, rule_class, priority, verdict
        self.saw: list[Any] = []

    def before_tool(self, trace: Trace, call: ToolCall) -> Any:
        self.saw.append(call.args)
        return self.verdict


def ruled(*hooks: Any) -> Any:
    return run_point("before_tool", in_order(hooks), Trace(), CALL)


def test_hooks_speak_by_class_then_priority_then_as_registered() -> None:
    hooks = [Hook("late"), Hook("early", priority=-1), Hook("budget", None, "budget"), Hook("safe", None, "safety", 9)]

    assert [h.name for h in in_order([*hooks, Hook("last")])] == ["safe", "budget", "early", "late", "last"]


def test_a_class_that_does_not_exist_is_a_fault_of_configuration() -> None:
    with pytest.raises(ConfigError, match="safty"):
        in_order([Hook("x", None, "safty")])


def test_each_hook_sees_what_the_ones_before_it_rewrote() -> None:
    first, second = Hook("first", Rewrite({"n": 50})), Hook("second", Rewrite({"n": 25}))

    outcome = ruled(first, second)

    assert second.saw == [{"n": 50}]
    assert outcome.value.args == {"n": 25}
    assert [r.verdict for r in outcome.rulings] == ["Rewrite", "Rewrite"]


def test_the_first_deny_ends_it_and_the_first_ask_is_the_one_that_is_told() -> None:
    after = Hook("after", Deny("second"))

    assert ruled(Hook("a", Ask("one")), Hook("b", Ask("two"))).verdict == Ask("one")
    assert ruled(Hook("a", Ask("one")), Hook("b", Deny("no")), after).verdict == Deny("no")
    assert after.saw == []


def test_every_ruling_is_recorded_with_who_ruled_and_why() -> None:
    (record,) = ruled(Hook("gate", HookReject("Do it in two steps.", "two-steps", "change"), "repetition")).rulings

    assert (record.point, record.hook, record.rule_class, record.verdict) == (
        "before_tool",
        "gate",
        "repetition",
        "Deny",
    )
    assert (record.reason, record.escape_key, record.suggests) == ("Do it in two steps.", "two-steps", "change")
    assert record.call_uuid == "c1"


def test_nobody_escapes_a_safety_gate() -> None:
    outcome = ruled(Hook("guard", Deny("no", escape_key="please"), "safety"))

    assert isinstance(outcome.verdict, Deny)
    assert outcome.verdict.escape_key is None
    assert "escape_key" in outcome.verdict.reason


@pytest.mark.parametrize(
    "verdict", [Ask("\ud800"), Deny("\udfff"), HookReject("\ud800"), Rewrite({}, "\ud800"), "\ud800"]
)
def test_what_hooks_say_can_always_be_stored(verdict: Any) -> None:
    for record in ruled(Hook("x", verdict)).rulings:
        Codec().encode(record)


def test_a_hook_that_changes_the_arguments_in_place_changes_nothing() -> None:
    class Sly:
        def before_tool(self, trace: Trace, call: ToolCall) -> None:
            call.args.clear()  # type: ignore[attr-defined]

    assert ruled(Sly()).value.args == {"n": 100}
    assert CALL.args == {"n": 100}


def test_a_hook_without_a_method_for_the_point_has_no_say() -> None:
    assert ruled(object()).verdict is None
