"""The process is killed with SIGKILL and started again on the same files: nothing is lost, nothing is done twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bot.local import people
from harness_core.events import Prompted
from harness_core.testing import ledger_runs
from tests.acceptance.desk import Desk, buttons, reading
from tests.acceptance.killed import ANSWER, agent_script, agents, script, tool
from tests.acceptance.remote import needs_this_process
from tests.conftest import PATIENCE

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.real_kill


def killed(folder: Path, where: str) -> str:
    """Let a process play until it dies there. The ts of the message that began the conversation."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.acceptance.killed", str(folder), where],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.strip()


@needs_this_process  # elsewhere the server is not there to be watched
def test_what_slack_would_refuse_is_noticed_in_the_process_that_is_killed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"chat\.postMessage: no_text"):
        killed(tmp_path, "refused")


async def test_killed_while_a_card_waits_the_click_still_counts(tmp_path: Path) -> None:
    ts = killed(tmp_path, "waiting")
    async with Desk(tmp_path, script(), [tool(tmp_path)]) as desk:
        card = desk.cards(ts)[0]

        assert (await desk.click(card, "approve")).ok

        await desk.answer(ts, ANSWER)
        await desk.card(ts, showing=f"Approved by <@{people.ADA}>")
        assert len(desk.cards(ts)) == 1
        assert desk.texts(ts) == [ANSWER]
        assert ledger_runs(tmp_path / "runs.jsonl") == [{"a": 1}]


async def test_killed_inside_a_tool_that_writes_a_person_is_asked_and_nothing_is_repeated(tmp_path: Path) -> None:
    ts = killed(tmp_path, "in the tool")
    assert ledger_runs(tmp_path / "runs.jsonl") == [{"a": 1}]
    async with Desk(tmp_path, script(), [tool(tmp_path)]) as desk:
        card = await desk.card(ts, 2)
        assert "rerun" in buttons(card)
        assert ledger_runs(tmp_path / "runs.jsonl") == [{"a": 1}]

        assert (await desk.fill(card, "happened", comment="it is there")).ok

        await desk.answer(ts, ANSWER)
        assert ledger_runs(tmp_path / "runs.jsonl") == [{"a": 1}]
        assert len(desk.cards(ts)) == 2


async def test_killed_while_an_agent_waits_the_same_one_goes_on_after_the_click(tmp_path: Path) -> None:
    ts = killed(tmp_path, "agent waits")
    model = agent_script()
    async with Desk(tmp_path, model, [tool(tmp_path)], agents=agents(tmp_path)) as desk:
        before = await desk.bot.store.sessions(f"{desk.session(ts)}/")
        assert model.main.requests == model.of("worker").requests == []

        assert (await desk.click(desk.cards(ts)[0], "approve")).ok

        await desk.answer(ts, ANSWER)
        assert await desk.bot.store.sessions(f"{desk.session(ts)}/") == before
        assert len(model.of("worker").requests) == 1, "what it had said before is not asked again"
        assert ledger_runs(tmp_path / "runs.jsonl") == [{"a": 1}]
        assert len(desk.cards(ts)) == 1


@needs_this_process
async def test_killed_between_the_acknowledgement_and_the_card_the_message_is_not_lost(tmp_path: Path) -> None:
    ts = killed(tmp_path, "acknowledged")
    async with Desk(tmp_path, script(), [tool(tmp_path)]) as desk:
        card = await desk.card(ts)
        await desk.click(card, "approve")

        await desk.answer(ts, ANSWER)
        assert len(await desk.facts(ts, Prompted)) == 1
        assert len(desk.cards(ts)) == 1
        assert ledger_runs(tmp_path / "runs.jsonl") == [{"a": 1}]


async def test_killed_after_a_card_was_posted_and_before_that_was_known_there_is_one_card(tmp_path: Path) -> None:
    ts = killed(tmp_path, "posted")
    async with Desk(tmp_path, script(), [tool(tmp_path)]) as desk:
        await desk.slack.wait_for(lambda _: desk.calls("conversations.replies"))
        await desk.settled()
        assert len(desk.cards(ts)) == 1

        await desk.click(desk.cards(ts)[0], "approve")

        await desk.answer(ts, ANSWER)
        assert "Approved by" in reading(await desk.card(ts, showing="Approved by"))
        assert ledger_runs(tmp_path / "runs.jsonl") == [{"a": 1}]
