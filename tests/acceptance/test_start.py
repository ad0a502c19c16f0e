"""Starting and ending: nothing is left open, and what cannot work says so."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from bot.app import Bot, Parts
from bot.approvers import Access
from bot.config import Settings, SlackSettings
from bot.local import LocalWorkspace, people
from bot.pace import Urgency
from bot.slack_api import SlackRefused, SlackUnreachable
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import CHANNEL, Desk, reading


def tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "told"), [("bot_token", r"auth\.test: invalid_auth"), ("app_token", r"apps\.connections\.open: ")]
)
async def test_a_start_that_fails_says_why_and_leaves_nothing_open(tmp_path: Path, wrong: str, told: str) -> None:
    async with LocalWorkspace() as slack:
        before = tasks()
        bot_token = "xoxb-wrong-token" if wrong == "bot_token" else slack.bot_token
        app_token = "xapp-wrong-token" if wrong == "app_token" else slack.app_token
        bot = Bot(Settings(data=tmp_path), SlackSettings(bot_token, app_token, slack.api_url), Access())

        with pytest.raises(SlackRefused, match=told) as raised:
            await bot.start()

        assert "wrong-token" not in str(raised.value)
        gc.collect()
        await asyncio.sleep(0)
        assert tasks() <= before
        assert slack.connections == 0


async def test_a_server_that_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    async with LocalWorkspace() as slack:
        how = SlackSettings(slack.bot_token, slack.app_token, slack.api_url)
        slack.fail("auth.test", http_status=200, times=9)  # a page, and no answer of Slack's
        with pytest.raises(SlackUnreachable):
            await Bot(Settings(data=tmp_path), how, Access()).start()


async def test_a_bot_that_ends_leaves_no_connection_and_no_task(tmp_path: Path) -> None:
    async with LocalWorkspace() as slack:
        before = tasks()
        how = SlackSettings(slack.bot_token, slack.app_token, slack.api_url)
        for _ in range(3):
            async with Bot(Settings(data=tmp_path), how, Access(), Parts(model=ScriptedModel("done"))):
                assert slack.connections == 1
            await slack.wait_for(lambda s: s.connections == 0)

        hellos = [entry for entry in slack.log if entry["kind"] == "connected"]
        assert len(hellos) == 3
        assert len({task for task in tasks() if task not in before and "aiohttp" not in repr(task)}) == 0


async def test_a_decision_is_shown_before_the_rest_of_a_long_batch_is_posted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.pace.PER_SECOND", 0.001)
    calls = [call("change", n=n) for n in range(7)]  # Slack takes five at once
    async with Desk(tmp_path, ScriptedModel(calls, "done"), [RecordingTool("change")]) as desk:
        ts = await desk.ask("change them all")
        await desk.click(await desk.card(ts), "approve")

        shown = await desk.card(ts, showing=f"Approved by <@{people.ADA}>")

        assert "waits for 6 more" in reading(shown)
        assert len(desk.cards(ts)) < 7
        monkeypatch.setattr("bot.pace.PER_SECOND", 1_000.0)
        desk.bot.api.turn(CHANNEL, Urgency.PROGRESS)  # which lets in who waits
        await desk.card(ts, 7)
