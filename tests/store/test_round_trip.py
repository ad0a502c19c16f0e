"""Any history comes back as it went in, from every store."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.errors import ModelErrorKind
from harness_core.events import FACTS, Event
from harness_core.hitl import Approve, Expired, Happened, HITLTask, Reject, Rerun, Skip
from harness_core.permissions.rule import PermissionRule
from harness_core.store.memory import MemoryStore
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock
from harness_core.types import Inspection, ToolCall, Usage

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
number = st.floats(allow_nan=False, allow_infinity=False)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | number | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
args = st.dictionaries(text, json, max_size=3)


def build(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Instances of one of our frozen classes, field by field."""
    return st.builds(
        kind, **{f.name: VALUES[str(f.type).replace('"', "'")] for f in fields(kind) if f.name not in ("seq", "action")}
    )


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": text,
    "str | None": st.none() | text,
    "int": st.integers(0, 2**53),
    "int | None": st.none() | st.integers(0, 2**53),
    "float": number,
    "float | None": st.none() | number,
    "bool": st.booleans(),
    "bool | None": st.none() | st.booleans(),
    "Args": args,
    "Args | None": st.none() | args,
    "Mapping[str, Any]": args,
    "Mapping[str, Any] | None": st.none() | args,
    "tuple[str, ...]": st.lists(text, max_size=3).map(tuple),
    "Outcome": st.sampled_from(["ok", "error", "denied", "rejected", "skipped", "expired", "unknown", "not_run"]),
    "RunStatus": st.sampled_from(["completed", "pending", "rejected", "limited", "stopped", "failed"]),
    "ModelErrorKind": st.sampled_from(ModelErrorKind.__args__),  # type: ignore[attr-defined]
    "TaskKind": st.sampled_from(["approve", "unknown"]),
    "Effect": st.sampled_from(["allow", "ask", "deny"]),
    "Literal['text', 'diff']": st.sampled_from(["text", "diff"]),
    "Literal['added', 'removed']": st.sampled_from(["added", "removed"]),
    "ToolCall": st.deferred(lambda: build(ToolCall)),
    "tuple[ToolCall, ...]": st.deferred(lambda: st.lists(build(ToolCall), max_size=2).map(tuple)),
    "Usage": st.deferred(lambda: build(Usage)),
    "Inspection": st.deferred(lambda: build(Inspection)),
    "PermissionRule": st.deferred(lambda: build(PermissionRule)),
    "tuple[HITLTask, ...]": st.deferred(lambda: st.lists(build(HITLTask), max_size=2).map(tuple)),
    "StoredDecision": st.deferred(lambda: st.one_of(*map(build, (Approve, Reject, Skip, Rerun, Happened, Expired)))),
}
fact = st.one_of(*(build(kind) for kind in FACTS))
history = st.lists(st.tuples(text, st.lists(fact, min_size=1, max_size=3)), max_size=5)


@settings(max_examples=60, deadline=None)
@given(history)
def test_any_history_comes_back_equal_from_every_store(appends: list[tuple[str, list[Event]]]):
    asyncio.run(both_keep(appends))


async def both_keep(appends: list[tuple[str, list[Event]]]) -> None:
    with TemporaryDirectory() as folder:
        clock = FakeClock()
        stores = (
            MemoryStore(clock=clock),
            SQLiteStore(Path(folder) / "journals.db", clock=clock, heartbeat=False),
        )
        kept = [await keep(store, appends) for store in stores]
        assert kept[0] == kept[1]
        for store in stores:
            await store.close()


async def keep(store: MemoryStore | SQLiteStore, appends: list[tuple[str, list[Event]]]) -> dict[str, list[Event]]:
    expected: dict[str, list[Event]] = {}
    for session_id, facts in appends:
        expected.setdefault(session_id, []).extend(await store.append(session_id, facts))
    for session_id, facts in expected.items():
        assert list(await store.read(session_id)) == facts
        assert [f.seq for f in facts] == list(range(1, len(facts) + 1))
    return expected
