"""Facts go to JSON and come back as they were, or are refused in clear words."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core import events, hitl
from harness_core.codec import Codec
from harness_core.errors import NewerFormat, StoreError
from harness_core.events import (
    FACTS,
    PASSING,
    ContextCompressed,
    Done,
    Event,
    Halt,
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
    Refused,
    RuleChanged,
    Ruling,
    Run,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.frozen import FrozenDict, FrozenList
from harness_core.hitl import Approve, Expired, Happened, HITLTask, Reject, Rerun, Skip
from harness_core.permissions.rule import PermissionRule
from harness_core.types import Inspection, Message, ToolCall, Usage

CALL = ToolCall("c1", "change", {"n": 1, "f": 1.5, "deep": {"x": [True, None, "é", {}]}}, "bad", "p1", "{raw")
TASK = HITLTask("c1", "change", {"n": 1}, "why", "unknown", "r", "f" * 64, "U1", "kid", "+a", "diff", 12.5, True)
DECISIONS: list[Any] = [
    Approve(True, {}, True, "ok"),
    Approve(modified_args={"n": None}),
    Approve(),
    Reject("no", False),
    Reject(),
    Skip("", True),
    Skip(),
    Rerun(),
    Happened("done"),
    Expired(),
]
SUMMED: Any = {
    "failures": (ModelFailed("overflow", 1, 2, "long", 3, None, seq=8, at=2.5, session_id="s", run_id="r"),),
    "last": ReasonEnd("text", (CALL,), Usage(1, 2, 3, None), "stop", 7, 2, 3, seq=7, run_id="r"),
    "stop": StopRequested("r", "U1", seq=9),
    "rejected": {"change {}": "U1"},
    "recent": (Done("change", "e", "d", "rejected", 2),),
    "ruled": {"h Deny": 1},
    "rulings": (Ruling("before_tool", "h", "Deny", "why", 2, "c1", 4.5),),
    "refused": {"h key": Refused(2, 4, ("e",))},
    "progress": 1.5,
    "paused": 2.5,
    "paused_at": 3.5,
    "policy": "pd",
    "direct": "42",
    "spent": (1.5,),
    "outside": Usage(4, 5, 6, 0.5),
    "outside_unpriced": Usage(1, 1, 1, None),
    "halted": Halt("Stopped.", "steps", "before_model"),
}
LEDGER = Ledger(
    (Prompted("hi", "U1", 1.5, ("a.png",), "k", seq=5, key="k", at=1.0, session_id="s"),),
    Run("r", "U1", 2, 3, 4.5, 5, False, 1, upto=6, compressed=4, futile=1, **SUMMED),
    (PermissionRule.exactly("change", {}),),
    "so far",
    Usage(1, 2, 3, 0.5),
    notes=("be brief",),
    heard=(5,),
    runs=2,
)
CONTEXT = (Message("user", "goal"), Message("user", "in short", summary=True), Message("assistant", "", (CALL,)))
FULL: list[Event] = [
    Prompted("hi", "U1", 1.5, ("a.png",), "k"),
    PromptAmended("k", None),
    PromptAmended("k", ""),
    PromptHeard(3, "hi"),
    RunStart("r", 2, True, "U1", "pd", "qd", (1.5, 2.0), {"change {}": "U1"}, Usage(4, 5, 6, 0.5), Usage(1, 1, 1)),
    ReasonEnd("text", (CALL,), Usage(1, 2, 3, 0.25), "stop", 7, 2, 3, "steps"),
    ModelFailed("rate_limited", 1, 2, "slow down", 3, 1.5, "steps"),
    Inspected("c1", "d", Inspection("p", "diff", ("/a",), ("1.1.1.1",), ("x",), True, "no")),
    HookRuled("before_tool", "h", "safety", "Deny", "why", 1, "c1", {"args": {"n": 1}}, "key", "look"),
    HITLPending((TASK, replace(TASK, expires_at=None, session="s/c1"))),
    HITLVoted("f", "U1", Approve()),
    *(HITLSubmitted("f", d, "U1", "button") for d in DECISIONS),
    *(HITLDecided("c1", "change", d, "U1", "why", {"n": 1}, {"n": 2}, {}) for d in DECISIONS),
    RuleChanged("removed", PermissionRule("deny", "change", "a", None), "U1", "why"),
    RuleChanged("added", PermissionRule.exactly("change", {})),
    PolicyInForce("pd", {"can_ask": True, "rules": [{"tool": "change"}]}),
    ToolCallStart(CALL, {}),
    ToolCallStart(CALL, None),
    ToolCallStart(CALL, None, "s/c1"),
    ToolCallEnd("c1", "done", "not_run", 0.25, Usage(1, 2, 3, 0.5), Usage(1, 0), True),
    ContextCompressed(3, CONTEXT, LEDGER, "long", 0, Usage(1, 2), False, 1, 9, 100, 50, "tiktoken"),
    StopRequested("r", "U1"),
    RunEnd("limited", "so far", "steps", ("k",)),
]


def there_and_back(event: Event) -> Event:
    codec = Codec()
    return codec.decode(*codec.encode(event))


@pytest.mark.parametrize("event", FULL, ids=lambda e: type(e).__name__)
def test_a_fact_comes_back_as_it_was(event: Event) -> None:
    back = there_and_back(event)

    assert replace(back, run_id=event.run_id) == event  # the envelope is the store's
    assert type(back) is type(event)


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda d: d.action)
def test_a_decision_comes_back_as_the_kind_it_was(decision: Any) -> None:
    back = there_and_back(HITLSubmitted("f", decision))

    assert isinstance(back, HITLSubmitted)
    assert type(back.decision) is type(decision)


def open_to_change(held: Any) -> list[Any]:
    """The objects and arrays in a value that can be changed in place."""
    if is_dataclass(held):
        return [found for f in fields(held) for found in open_to_change(getattr(held, f.name))]
    if not isinstance(held, dict | list | tuple):
        return []
    parts = held.values() if isinstance(held, dict) else held
    open_ = not isinstance(held, FrozenDict | FrozenList | tuple)
    return [held] * open_ + [found for part in parts for found in open_to_change(part)]


@pytest.mark.parametrize("event", FULL, ids=lambda e: type(e).__name__)
def test_what_a_fact_holds_cannot_be_changed(event: Event) -> None:
    assert open_to_change(event) == []
    assert open_to_change(there_and_back(event)) == []


def test_every_kind_of_fact_and_every_decision_is_among_these() -> None:
    assert {type(e) for e in FULL} == set(FACTS)
    assert {type(d) for d in DECISIONS} == set(hitl.Decision.__args__)
    named = {c for c in vars(events).values() if isinstance(c, type) and issubclass(c, Event) and c is not Event}
    assert named == {*FACTS, *PASSING}


@pytest.mark.parametrize("kind", FACTS, ids=lambda k: k.__name__)
def test_an_older_fact_without_the_optional_fields_is_read(kind: type[Event]) -> None:
    (full,) = [e for e in FULL if type(e) is kind][:1]
    body = json.loads(Codec().encode(full)[1])
    required = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}

    old = Codec().decode(kind.__name__, json.dumps({k: v for k, v in body.items() if k in required}))

    assert type(old) is kind


@pytest.mark.parametrize("event", FULL, ids=lambda e: type(e).__name__)
def test_a_field_of_a_newer_version_is_refused_and_says_so(event: Event) -> None:
    kind, body = Codec().encode(event)

    with pytest.raises(NewerFormat, match="newer version"):
        Codec().decode(kind, json.dumps({**json.loads(body), "colour": "red"}))


def test_a_field_of_a_newer_version_deep_inside_is_refused_too() -> None:
    kind, body = Codec().encode(HITLPending((TASK,)))
    newer = json.loads(body)
    newer["tasks"][0]["votes"] = 2

    with pytest.raises(NewerFormat):
        Codec().decode(kind, json.dumps(newer))


def test_a_kind_of_a_newer_version_is_refused_and_names_it() -> None:
    with pytest.raises(NewerFormat, match="CardPosted"):
        Codec().decode("CardPosted", "{}")


def test_a_host_adds_kinds_of_its_own() -> None:
    @dataclass(frozen=True, slots=True)
    class CardPosted(Event):
        ts: str

    codec = Codec((*FACTS, CardPosted))

    assert codec.decode(*codec.encode(CardPosted("1.0"))) == CardPosted("1.0")


DAMAGED = [
    ("ToolCallEnd", "{"),
    ("ToolCallEnd", '{"call_uuid": "c", "content": 1}'),
    ("ToolCallEnd", '{"call_uuid": "c", "content": "x", "outcome": "fine"}'),
    ("RunEnd", '{"status": "done"}'),
    ("RunStart", '{"attempt": "1"}'),
    ("HITLSubmitted", '{"fingerprint": "f", "decision": {"action": "aprove"}}'),
    ("HITLSubmitted", '{"fingerprint": "f", "decision": null}'),
    ("HITLSubmitted", '{"fingerprint": "f", "decision": {"comment": "no tag"}}'),
]


@pytest.mark.parametrize(("kind", "body"), DAMAGED)
def test_a_damaged_fact_is_refused_not_guessed_at(kind: str, body: str) -> None:
    with pytest.raises(StoreError):
        Codec().decode(kind, body)


@pytest.mark.parametrize(
    "value", [date(2026, 1, 5), Decimal("1.5"), b"x", {1, 2}, float("nan"), float("inf"), object()]
)
def test_what_json_cannot_hold_is_refused_loudly(value: Any) -> None:
    with pytest.raises((StoreError, ValueError, TypeError)):
        Codec().encode(ToolCallStart(ToolCall("c", "t", {"x": value})))


NOTHING: list[Any] = [
    Prompted("x", None),  # type: ignore[arg-type]
    Prompted(None),  # type: ignore[arg-type]
    ReasonEnd("x", (), None),  # type: ignore[arg-type]
    ToolCallEnd("c", "x", seconds=None),  # type: ignore[arg-type]
    HITLPending(None),  # type: ignore[arg-type]
    HITLSubmitted("f", None),  # type: ignore[arg-type]
    RunEnd(None),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("fact", NOTHING, ids=lambda e: type(e).__name__)
def test_what_could_not_be_read_again_is_not_written(fact: Event) -> None:
    with pytest.raises(StoreError):
        Codec().encode(fact)


@pytest.mark.parametrize("nest", [lambda inner: {"a": inner}, lambda inner: [inner]])
def test_what_is_written_can_be_read_however_deep_it_is_nested(nest: Any) -> None:
    value: Any = 1
    for _ in range(400):
        value = nest(value)
        fact = ToolCallStart(ToolCall("c", "t", {"x": value}))
        stored = None
        with suppress(StoreError):
            stored = Codec().encode(fact)
        assert stored is None or Codec().decode(*stored) == fact
    with pytest.raises(StoreError):
        Codec().encode(fact)


@pytest.mark.parametrize("kind", PASSING, ids=lambda k: k.__name__)
def test_a_passing_event_is_never_stored(kind: type[Event]) -> None:
    with pytest.raises(StoreError, match="not a fact"):
        Codec().encode(object.__new__(kind))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(), st.dictionaries(st.text(), JSON, max_size=3))
def test_any_text_and_any_arguments_come_back_exactly(text: str, args: dict[str, Any]) -> None:
    for event in (Prompted(text), ToolCallStart(ToolCall("c", text, args), args), ToolCallEnd("c", text)):
        assert there_and_back(event) == event


def test_a_lone_surrogate_is_refused_not_mangled() -> None:
    with pytest.raises(StoreError):
        Codec().encode(Prompted("\ud800"))


def test_arguments_keep_the_order_in_which_the_model_wrote_them() -> None:
    back = there_and_back(ToolCallStart(ToolCall("c", "t", {"z": 1, "a": 2})))

    assert isinstance(back, ToolCallStart)
    assert list(back.call.args) == ["z", "a"]
