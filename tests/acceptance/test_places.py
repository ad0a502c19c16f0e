"""What the bot says where it cannot work: a channel that it is not in any more, and an app that lacks a scope."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from bot import words
from bot.local import people
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk
from tests.conftest import PATIENCE


def desk_of(folder: Path) -> tuple[Desk, RecordingTool]:
    tool = RecordingTool("change")
    return Desk(folder, ScriptedModel([call("change")], "It is done."), [tool]), tool


class Heard(logging.Handler):
    """Waits for a line of the log."""

    def __init__(self, line: str) -> None:
        super().__init__()
        self._line, self._there = line, asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self._line in record.getMessage():
            self._there.set()

    async def __aenter__(self) -> None:
        logging.getLogger("bot").addHandler(self)

    async def __aexit__(self, *error: object) -> None:
        try:
            if error == (None, None, None):
                await asyncio.wait_for(self._there.wait(), PATIENCE)
        finally:
            logging.getLogger("bot").removeHandler(self)


async def test_removed_from_its_channel_it_says_so_and_goes_on_once_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk, tool = desk_of(tmp_path)
    async with desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await desk.slack.leave(people.BOT_USER, people.GENERAL)
        await desk.click(card, "approve")
        await desk.settled()

        assert len(tool.runs) == 1
        assert "/invite" in caplog.text
        direct = await desk.slack.wait_for(lambda _: desk.slack.messages(people.direct_id(people.ADA)))
        assert "/invite" in direct[0]["text"]
        assert f"<#{people.GENERAL}>" in direct[0]["text"]
        await desk.click(card, "reject")
        await desk.slack.wait_for(lambda _: words.LATE in desk.slack.messages(people.direct_id(people.ADA))[-1]["text"])
        await desk.slack.join(people.BOT_USER, people.GENERAL)
        await desk.say("are you back?", thread=ts)
        await desk.answer(ts, "It is done.")


@pytest.mark.parametrize(("scope", "method"), [("reactions:write", "reactions.add"), ("users:read", "users.info")])
async def test_a_scope_that_is_missing_is_named_in_the_log(tmp_path: Path, scope: str, method: str) -> None:
    desk, _ = desk_of(tmp_path)
    line = f"Slack refused {method}: missing_scope (the app lacks the scope {scope}). Reinstall the app"
    async with desk:
        desk.slack.settings.scopes -= {scope}
        async with Heard(line):
            await desk.ask("change it", people.BEN)
