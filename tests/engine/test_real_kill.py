"""A process is killed for good, and another one goes on."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from harness_core.events import HITLPending, Prompted, RunEnd, RunStart
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision
from harness_core.testing import ledger_runs
from tests.conftest import PATIENCE
from tests.engine.child import engine
from tests.engine.harness import only, request

pytestmark = pytest.mark.real_kill

ROOT = Path(__file__).resolve().parents[2]


async def killed(folder: Path, tool: str, *, when: str) -> None:
    """Start a process on this folder, and kill it when it says so."""
    command = (sys.executable, "-m", "tests.engine.child", str(folder), tool)
    child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert child.stdout
    try:
        assert (await asyncio.wait_for(child.stdout.readline(), PATIENCE)).decode().strip() == when
    finally:
        child.kill()
        await child.communicate()


async def test_a_write_that_was_cut_off_is_put_to_a_person_and_not_repeated(tmp_path: Path) -> None:
    await killed(tmp_path, "log", when="running")
    heir = engine(tmp_path, "log")

    before = await request(heir)  # which waits until the dead one's lease has expired

    (task,) = only(before, HITLPending).tasks
    assert task.kind == "unknown"
    session = await heir.session("s")
    await HITL.submit(session, task, HITLDecision.happened("it was logged"), by="U2")
    assert only(await request(heir), RunEnd).answer == "done"
    assert ledger_runs(tmp_path / "log") == [{"n": 1}]
    facts = await heir.store.read("s")
    assert [e.text for e in facts if isinstance(e, Prompted)] == ["hi"]
    assert len({e.run_id for e in facts if isinstance(e, RunStart)}) == 1
    await heir.close()
    await heir.store.close()


async def test_a_read_that_was_cut_off_is_repeated(tmp_path: Path) -> None:
    await killed(tmp_path, "look", when="running")
    heir = engine(tmp_path, "look")
    await heir.start()

    end = only(await request(heir), RunEnd)

    assert (end.status, end.answer) == ("completed", "done")
    assert ledger_runs(tmp_path / "look") == [{"n": 1}, {"n": 1}]
    await heir.close()
    await heir.store.close()


async def test_a_task_outlives_the_process_that_asked_and_runs_once(tmp_path: Path) -> None:
    await killed(tmp_path, "change", when="pending")
    heir = engine(tmp_path, "change")
    session = await heir.session("s")
    (task,) = await HITL.get_pending_tasks(session)
    await HITL.approve(session, task, by="U2")

    ends = [only(events, RunEnd) for events in await asyncio.gather(request(heir), request(heir))]

    assert [e.answer for e in ends] == ["done", "done"]
    assert ledger_runs(tmp_path / "change") == [{"n": 1}]
    await heir.close()
    await heir.store.close()
