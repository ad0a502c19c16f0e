"""Journals of every released shape still load, add up to the same, and go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_core.events import FACTS, RunEnd
from harness_core.handle import HITL
from harness_core.session import fold
from harness_core.store.memory import MemoryStore
from harness_core.testing import RecordingTool, ScriptedModel
from tests.engine.harness import Bench, only, request
from tests.journals.record import HERE, line, read, summary

GOLDEN = sorted(HERE.glob("*.jsonl"))


def holds(now: Any, before: Any) -> bool:
    """Whether everything that was written before is there now; a newer version may have more fields, at any depth."""
    if isinstance(before, dict):
        return isinstance(now, dict) and all(name in now and holds(now[name], value) for name, value in before.items())
    if isinstance(before, list):
        return isinstance(now, list) and len(now) == len(before) and all(map(holds, now, before))
    return bool(now == before)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_a_golden_journal_adds_up_to_what_it_always_did(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text("utf-8"))

    assert json.loads(json.dumps(summary(fold(read(path))))) == expected


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_a_golden_journal_loses_nothing_when_it_is_written_again(path: Path) -> None:
    from harness_core.codec import Codec

    for fact, row in zip(read(path), path.read_text("utf-8").splitlines(), strict=True):
        again, before = json.loads(line(Codec(), fact)), json.loads(row)
        assert holds(again["body"], before["body"])
        assert {**again, "body": None} == {**before, "body": None}


def test_every_kind_of_fact_is_in_a_golden_journal() -> None:
    assert {type(fact) for path in GOLDEN for fact in read(path)} == set(FACTS)


@pytest.mark.parametrize("path", [p for p in GOLDEN if p.stem.endswith("-waiting")], ids=lambda p: p.stem)
async def test_a_golden_journal_that_waits_can_be_decided_and_goes_on(path: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    for fact in read(path):
        await store.append("s", fact)
    change, look = RecordingTool("change"), RecordingTool("look", read_only=True, repeatable=True)
    bench = Bench(tmp_path, store)
    engine = bench.engine(ScriptedModel("no", "done"), [change, look])
    session = await engine.session("s")
    for task in await HITL.get_pending_tasks(session):
        await HITL.approve(session, task, by="U2")

    end = only(await request(engine), RunEnd)

    assert (end.status, end.answer) == ("completed", "done")
    assert change.runs == [{"n": 50}]
    await bench.drop()
