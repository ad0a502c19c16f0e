"""Hook points: order, rewrites, faults, and the record of what was ruled."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from harness_core.codec import Codec
from harness_core.compression.plan import Plan
from harness_core.errors import ConfigError
from harness_core.hooks import (
    Ask,
    Continue,
    Deny,
    HookReject,
    Inject,
    Observe,
    Point,
    Rewrite,
    Stop,
    in_order,
    run_point,
)
from harness_core.session import Trace
from harness_core.testing import tool_call
from harness_core.types import ToolCall
from harness_core.verdicts import FAILED

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
    [record] = ruled(Hook("x", verdict)).rulings

    assert Codec().decode(*Codec().encode(record)) == record


BAD: list[Any] = [
    Deny("no", escape_key=5),  # type: ignore[arg-type]
    Deny("no", escape_key=("a", 1)),  # type: ignore[arg-type]
    Deny("no", suggests=["look"]),  # type: ignore[arg-type]
    Deny(None),  # type: ignore[arg-type]
    HookReject("no", ("a", 1)),  # type: ignore[arg-type]
    HookReject(5),  # type: ignore[arg-type]
    Ask(b"sure?"),  # type: ignore[arg-type]
    Rewrite({"n": 1}, 5),  # type: ignore[arg-type]
    Rewrite({"n": "\ud800"}),
    Rewrite({"n": b"x"}),
    Rewrite({5: 1}),
]


@pytest.mark.parametrize("verdict", BAD, ids=repr)
def test_a_verdict_with_a_field_of_the_wrong_kind_is_the_hook_s_failure(verdict: Any) -> None:
    asks, denies = ruled(Hook("x", verdict)), ruled(Hook("x", verdict, "safety"))

    assert (type(asks.verdict), type(denies.verdict)) == (Ask, Deny)
    for record in (*asks.rulings, *denies.rulings):
        assert "the hook x" in record.reason
        Codec().encode(record)


def at(point: Point, verdict: Any, about: Any) -> Any:
    hook = Hook("x")
    setattr(hook, point, lambda *handed: verdict)
    (record,) = (made := run_point(point, [hook], Trace(), *about)).rulings
    Codec().encode(record)
    return made, record


PLAN = Plan(3, 100, 10, 1000, why="too long")


@pytest.mark.parametrize(
    ("point", "verdict", "about"),
    [
        ("before_model", Inject("so", suggests=5), ()),  # type: ignore[arg-type]
        ("before_model", Inject(5), ()),  # type: ignore[arg-type]
        ("before_model", Stop("so", None), ()),  # type: ignore[arg-type]
        ("before_model", Observe(5), ()),  # type: ignore[arg-type]
        ("before_stop", Continue("more", suggests=["a"]), ("answer",)),  # type: ignore[arg-type]
        ("before_compress", Rewrite(Plan(None, 1, 1, 10)), (PLAN,)),  # type: ignore[arg-type]
        ("before_compress", Rewrite(Plan(2, "a", 1, 10)), (PLAN,)),  # type: ignore[arg-type]
        ("before_compress", Rewrite(Plan(2, 1, True, 10)), (PLAN,)),
        ("before_compress", Rewrite(Plan(2, 1, 1, 10, why=5)), (PLAN,)),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_used_at_another_point_is_passed_over(point: Point, verdict: Any, about: Any) -> None:
    made, record = at(point, verdict, about)

    assert record.verdict == FAILED
    assert (made.verdict, made.texts, made.value) == (None, (), about[-1] if about else None)


def test_every_text_of_a_verdict_is_made_one_that_can_be_stored() -> None:
    _, denied = at("before_tool", Deny("a\ud800", "b\ud800", "c\ud800"), (CALL,))
    _, told = at("before_model", Inject("a\ud800", "b\ud800", "c\ud800"), ())
    planned, _ = at("before_compress", Rewrite(replace(PLAN, why="d\ud800")), (PLAN,))

    assert (denied.reason, denied.escape_key, denied.suggests) == ("a?", "b?", "c?")
    assert (told.payload, told.reason, told.suggests) == ({"text": "a?"}, "b?", "c?")
    assert planned.value.why == "d?"


@pytest.mark.parametrize("exit_", [SystemExit(3), asyncio.CancelledError(), GeneratorExit()])
def test_a_hook_that_would_end_the_process_only_fails(exit_: BaseException) -> None:
    class Exits:
        def before_tool(self, trace: Trace, call: ToolCall) -> None:
            raise exit_

    assert type(ruled(Exits()).verdict) is Ask


def test_a_person_at_the_keyboard_still_ends_it() -> None:
    class Interrupted:
        def before_tool(self, trace: Trace, call: ToolCall) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ruled(Interrupted())


def test_a_hook_that_changes_the_arguments_in_place_changes_nothing() -> None:
    class Sly:
        def before_tool(self, trace: Trace, call: ToolCall) -> None:
            call.args.clear()  # type: ignore[attr-defined]

    assert ruled(Sly()).value.args == {"n": 100}
    assert CALL.args == {"n": 100}


def test_a_hook_without_a_method_for_the_point_has_no_say() -> None:
    assert ruled(object()).verdict is None
