"""Any history comes back as it went in, from every store."""

from __future__ import annotations

import asyncio
from dataclasses import fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.events import FACTS, Event
from harness_core.store.memory import MemoryStore
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
number = st.floats(allow_nan=False, allow_infinity=False)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | number | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: text,
    int: st.integers(0, 2**53),
    float: number,
    bool: st.booleans(),
    type(None): st.none(),
    Any: json,
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Whatever a field of this type may hold."""
    inner = get_args(hint)
    match get_origin(hint):
        case None:
            return build(hint) if is_dataclass(hint) else PLAIN[hint]
        case origin if origin is Annotated:
            return values(inner[0])
        case origin if origin is Literal:
            return st.sampled_from(inner)
        case origin if origin in (Union, UnionType):
            return st.one_of(*map(values, inner))
        case origin if origin is tuple and inner[-1] is ...:
            return st.lists(values(inner[0]), max_size=2).map(tuple)
        case origin if origin is tuple:
            return st.tuples(*map(values, inner))
        case _:
            return st.dictionaries(values(inner[0]), values(inner[1]), max_size=3)


def build(kind: Any) -> st.SearchStrategy[Any]:
    """Instances of one of our frozen classes, field by field."""
    hints = get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{f.name: values(hints[f.name]) for f in fields(kind) if f.name != "seq"})


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
