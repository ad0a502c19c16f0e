"""The watch that stands over every test: it notices what Slack would refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.local import people
from bot.modals import message
from bot.slack_api import SlackRefused
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import CHANNEL, Desk
from tests.acceptance.remote import Elsewhere
from tests.payloads import Payloads

pytestmark = pytest.mark.skipif(
    Elsewhere.from_env() is not None, reason="the watch stands in this process, and the workspace is elsewhere"
)
SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "x"}}


@pytest.mark.parametrize(
    ("sent", "noticed"),
    [
        ({"text": "x", "blocks": [SECTION] * 51}, "invalid_blocks"),
        ({"text": "x", "blocks": [{**SECTION, "text": {"type": "mrkdwn", "text": "x" * 3_001}}]}, "invalid_blocks"),
        ({"text": "x", "blocks": [{"type": "actions", "elements": [{"type": "button"}]}]}, "invalid_blocks"),
        ({"text": "x", "blocks": [{**SECTION, "text": {"type": "mrkdwn", "text": "x" * 2_900}}] * 4}, "msg_blocks_too"),
        ({"text": ""}, "no_text"),
        ({"text": "x", "metadata": "{"}, "invalid_metadata_format"),
        ({"text": "x", "attachments": "{"}, "invalid_attachments"),
    ],
)
async def test_a_message_that_slack_refuses_is_noticed(
    tmp_path: Path, payloads: Payloads, sent: dict[str, Any], noticed: str
) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        ts = await desk.ask("hello")
        await desk.answer(ts, "done")
        assert payloads.wrong == []

        with pytest.raises(SlackRefused):
            await desk.bot.api.post(CHANNEL, ts, sent)

        [wrong] = payloads.wrong
        assert noticed in wrong
        payloads.forget()


async def test_a_text_that_slack_splits_is_noticed(tmp_path: Path, payloads: Payloads) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        ts = await desk.ask("hello")
        await desk.bot.api.post(CHANNEL, ts, {"text": "x" * 4_041})

        assert [line for line in payloads.wrong if "splits a text of 4041" in line] == payloads.wrong != []
        payloads.forget()


async def test_an_answer_to_a_form_that_slack_refuses_is_noticed(
    tmp_path: Path, payloads: Payloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")]) as desk:
        await desk.late_form()
        much = {"type": "plain_text", "text": "A title of far too many characters"}
        monkeypatch.setattr("bot.modals.message", lambda title, text: {**message(title, text), "title": much})

        await desk.slack.submit(people.ADA, {"choice": "stop"})

        assert ["form" in line for line in payloads.wrong] == [True]
        payloads.forget()


async def test_a_fault_that_a_test_orders_is_no_payload_of_the_bots(tmp_path: Path, payloads: Payloads) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        desk.slack.fail("chat.postMessage", error="invalid_blocks")
        await desk.ask("hello")
        await desk.slack.wait_for(lambda _: desk.calls("chat.postMessage"))

        assert payloads.wrong == []
