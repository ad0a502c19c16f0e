"""Which verdict counts at which point: exactly those of the table, and nothing that only looks like one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, get_args

import pytest

from harness_core.compression.plan import Plan
from harness_core.events import ContextCompressed, Ledger, ModelFailed, Prompted, ReasonEnd, RunEnd, ToolCallEnd
from harness_core.hooks import (
    Ask,
    Compress,
    Continue,
    Deny,
    HookReject,
    Inject,
    Observe,
    Point,
    Rewrite,
    RuleClass,
    Stop,
    in_order,
    run_point,
)
from harness_core.session import Trace
from harness_core.testing import tool_call
from harness_core.verdicts import FAILED, RULE_CLASSES

CALL = tool_call("change", n=1)
END = ToolCallEnd("c1", "result")
ABOUT: Final[dict[Point, tuple[Any, ...]]] = {
    "session_start": (Prompted("hi", seq=1),),
    "user_prompt": (Prompted("hi", seq=1),),
    "before_model": (),
    "model_error": (ModelFailed("server", 1, 1),),
    "after_model": (ReasonEnd("said"),),
    "permission_request": (CALL,),
    "before_tool": (CALL,),
    "after_tool": (CALL, END),
    "before_stop": ("answer",),
    "run_end": (RunEnd("completed", "answer"),),
    "before_compress": (Plan(1, 10, 10, 100),),
    "after_compress": (ContextCompressed(1, (), Ledger()),),
    "subagent_start": (CALL,),
    "subagent_end": (CALL, END),
}
# What may be ruled at each point beside a note: the table of the design, written down once more.
TABLE: Final[dict[Point, str]] = {
    "session_start": "",
    "user_prompt": "Rewrite Stop",
    "before_model": "Inject Compress Stop",
    "model_error": "Compress Stop",
    "after_model": "Inject Stop",
    "permission_request": "Ask Deny Rewrite",
    "before_tool": "Ask Deny Rewrite",
    "after_tool": "Rewrite Inject",
    "before_stop": "Continue",
    "run_end": "",
    "before_compress": "Rewrite",
    "after_compress": "",
    "subagent_start": "",
    "subagent_end": "",
}
REWRITES: Final[dict[str, Any]] = {
    "ToolCall": {"n": 2},
    "Prompted": "ho",
    "ToolCallEnd": "other",
    "Plan": Plan(2, 9, 9, 100),
}
VERDICTS: Final[dict[str, Callable[[Any], Any]]] = {
    "Observe": lambda about: Observe("note"),
    "Ask": lambda about: Ask("sure?"),
    "Deny": lambda about: Deny("no"),
    "Rewrite": lambda about: Rewrite(REWRITES.get(type(about).__name__, about)),
    "Inject": lambda about: Inject("by the way"),
    "Continue": lambda about: Continue("go on"),
    "Stop": lambda about: Stop("enough"),
    "Compress": lambda about: Compress("tidy"),
}


class Rules:
    """Rules the same at every point, or raises it."""

    def __init__(self, verdict: Any, rule_class: RuleClass = "drift", *, raises: bool = False) -> None:
        self.verdict, self.rule_class, self.raises = verdict, rule_class, raises

    def __getattr__(self, point: str) -> Any:
        if point not in TABLE:
            raise AttributeError(point)
        return self._ruled

    def _ruled(self, trace: Trace, *about: Any) -> Any:
        if self.raises:
            raise self.verdict
        return self.verdict


def ruled(point: Point, hook: Any) -> Any:
    return run_point(point, in_order([hook]), Trace(), *ABOUT[point])


def test_the_table_has_every_point() -> None:
    assert set(TABLE) == set(ABOUT) == set(get_args(Point))


@pytest.mark.parametrize("point", TABLE)
@pytest.mark.parametrize("kind", VERDICTS)
def test_each_point_takes_exactly_its_verdicts_and_anything_else_is_the_hook_s_failure(point: Point, kind: str) -> None:
    about = ABOUT[point][-1] if ABOUT[point] else None

    (record,) = ruled(point, Rules(VERDICTS[kind](about))).rulings

    if kind == "Observe" or kind in TABLE[point].split():
        assert record.verdict == kind
    else:
        assert record.verdict == ("Ask" if point in ("permission_request", "before_tool") else FAILED)
        assert f"ruled {kind}, which {point} does not accept" in record.reason + str(record.payload)


@pytest.mark.parametrize("raises", [False, True], ids=["returned", "raised"])
@pytest.mark.parametrize("point", TABLE)
def test_a_rejection_is_a_deny_whether_it_is_returned_or_raised(point: Point, raises: bool) -> None:
    made = ruled(point, Rules(HookReject("Look first.", "key", "look"), raises=raises))
    (record,) = made.rulings

    if "Deny" in TABLE[point]:
        assert made.verdict == Deny("Look first.", "key", "look")
        assert (record.verdict, record.reason) == ("Deny", "Look first.")
        assert (record.escape_key, record.suggests) == ("key", "look")
    else:
        assert record.verdict == FAILED
        assert f"ruled Deny, which {point} does not accept" in record.reason


@pytest.mark.parametrize("rule_class", RULE_CLASSES)
def test_what_any_class_rules_counts_as_it_was_ruled(rule_class: RuleClass) -> None:
    assert ruled("before_tool", Rules(Deny("no", suggests="look"), rule_class)).verdict == Deny("no", suggests="look")
    assert ruled("before_model", Rules(Stop("enough", "budget"), rule_class)).verdict == Stop("enough", "budget")


def test_the_record_says_of_each_ruling_what_it_changed() -> None:
    def record(point: Point, verdict: Any) -> Any:
        (one,) = ruled(point, Rules(verdict, "budget")).rulings
        return one

    told = record("before_model", Inject("by the way", "why", "look"))
    stopped = record("before_model", Stop("enough", "money", "why"))
    rewritten = record("before_tool", Rewrite({"n": 2}, "why"))
    prompt = record("user_prompt", Rewrite("ho", "why"))
    blocked = record("user_prompt", Stop("not here"))
    planned = record("before_compress", Rewrite(Plan(2, 9, 9, 100), "why"))
    goes_on = record("before_stop", Continue("go on", "why", "look"))

    assert (told.payload, told.reason, told.suggests) == ({"text": "by the way"}, "why", "look")
    assert (stopped.payload, stopped.reason) == ({"answer": "enough", "limit": "money"}, "why")
    assert (rewritten.payload, rewritten.call_uuid) == ({"args": {"n": 2}}, "c1")
    assert prompt.payload == {"prompt": 1, "text": "ho"}
    assert blocked.payload == {"answer": "not here", "limit": "", "prompt": 1}
    assert "cut=2" in planned.payload["to"]
    assert (goes_on.payload, goes_on.suggests) == ({"text": "go on"}, "look")
    assert {r.rule_class for r in (told, stopped, rewritten, prompt, blocked, planned, goes_on)} == {"budget"}
    assert {r.hook for r in (told, stopped)} == {"Rules"}, "under the name of its class, having no other"


def test_who_declares_no_class_and_no_priority_speaks_last_and_in_the_middle_of_its_class() -> None:
    class Plain:
        name = "plain"

    class Placed(Plain):
        def __init__(self, name: str, priority: int, rule_class: str = "drift") -> None:
            self.name, self.priority, self.rule_class = name, priority, rule_class

    hooks = [Plain(), Placed("after", 1), Placed("before", -1), Placed("sooner", 9, "repetition")]

    assert [h.name for h in in_order(hooks)] == ["sooner", "before", "plain", "after"]


def test_a_hook_that_is_asked_again_about_a_rewritten_result_may_tell_of_it_but_not_change_it_any_more() -> None:
    class Tells:
        name = "tells"

        def after_tool(self, trace: Trace, call: Any, result: ToolCallEnd) -> Inject | Rewrite:
            return Inject("It is raw.") if result.content == "result" else Rewrite("mine", "I would have it otherwise")

    class Turns:
        name = "turns"

        def after_tool(self, trace: Trace, call: Any, result: ToolCallEnd) -> Rewrite:
            return Rewrite("masked")

    made = run_point("after_tool", [Tells(), Turns()], Trace(), CALL, END)

    assert (made.value.content, made.texts) == ("masked", ())
    assert [(r.hook, r.verdict) for r in made.rulings] == [("turns", "Rewrite"), ("tells", "Observe")]
