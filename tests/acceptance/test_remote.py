"""The same tests run against any Slack-compatible server: here `python -m bot.local` in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.local import people
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, reading
from tests.acceptance.remote import Elsewhere, RemoteSlack

ROOT = Path(__file__).parents[2]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    """A workspace in another process, named by the environment as the README says."""
    command = [sys.executable, "-m", "bot.local"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            for line in (server.stdout.readline().strip() for _ in range(4)):
                monkeypatch.setenv(*line.split("=", 1))
            where = Elsewhere.from_env()
            assert where
            yield where
        finally:
            server.terminate()
    assert server.returncode == 0


async def test_a_whole_conversation_with_a_server_elsewhere(tmp_path: Path, elsewhere: Elsewhere) -> None:
    pay = RecordingTool("pay", result="paid")
    async with Desk(
        tmp_path, ScriptedModel(call("pay", amount=500), call("pay", amount=7), "All paid."), [pay]
    ) as desk:
        assert isinstance(desk.slack, RemoteSlack)
        assert desk.slack.api_url == elsewhere.slack.api_url
        ts = await desk.ask("pay them")
        first = await desk.card(ts)
        assert (await desk.fill(first, "edit", people.ADA, **{"arg:0": "80"})).ok

        second = await desk.card(ts, 2)
        assert "approve" in buttons(second)
        assert (await desk.click(second, "approve")).ok

        await desk.answer(ts, "All paid.")
        assert pay.runs == [{"amount": 80}, {"amount": 7}]
        assert f"<@{people.ADA}>" in reading(await desk.card(ts, showing="80"))
        assert desk.slack.views(people.ADA) == []

        await desk.reborn()
        again = await desk.ask("thanks", people.BEN)
        await desk.slack.delete(people.BEN, people.GENERAL, again)


async def test_what_only_this_process_can_do_skips_with_a_reason(tmp_path: Path, elsewhere: Elsewhere) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        with pytest.raises(pytest.skip.Exception, match="hold: only the workspace in this process"):
            desk.slack.hold("chat.postMessage")
