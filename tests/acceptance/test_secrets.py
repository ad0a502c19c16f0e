"""Secrets are masked wherever people or logs see them, and only there: the tool gets the real value."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from bot.local import people
from bot.logs import JsonFormatter, TextFormatter
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons

TOKEN = "ghp_" + "Zq3" * 12
PASSWORD = "hunter2hunter2"
KEY = "sk-ant-" + "a1b2" * 8


def everything_sent(desk: Desk) -> str:
    """All that the bot ever sent to Slack, and all that Slack shows of it."""
    calls = [c.arguments for c in desk.slack.calls]
    return json.dumps(calls, ensure_ascii=False) + json.dumps(desk.slack.state(), ensure_ascii=False)


async def test_a_secret_in_arguments_output_and_answers_is_seen_by_the_tool_alone(tmp_path: Path) -> None:
    deploy = RecordingTool("deploy", result=f"deployed with {TOKEN}\npassword={PASSWORD}")
    model = ScriptedModel(
        [f"I will use {TOKEN}.", call("deploy", token=TOKEN, command=f"curl -H 'Authorization: Bearer {KEY}' x.io")],
        lambda request: f"It said: {request.messages[-1].content} and {KEY}",
    )
    async with Desk(tmp_path, model, [deploy]) as desk:
        ts = await desk.ask("deploy")
        card = await desk.card(ts)
        assert "always" not in buttons(card)  # what cannot be read in full is not allowed for ever
        await desk.click(card, "view")
        await desk.form()
        await desk.slack.close_view(people.ADA)
        await desk.click(card, "approve")
        await desk.answer(ts, "It said")
        await desk.card(ts, showing="ran")

        assert deploy.runs == [{"token": TOKEN, "command": f"curl -H 'Authorization: Bearer {KEY}' x.io"}]
        seen = everything_sent(desk)
        for secret in (TOKEN, KEY, PASSWORD):
            assert secret not in seen
        assert "•••" in seen


async def test_a_secret_in_a_persons_comment_is_not_repeated(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(call("change", a=1)), [RecordingTool("change")]) as desk:
        ts = await desk.ask("change it")
        await desk.fill(await desk.card(ts), "reject", choice="stop", comment=f"use {TOKEN} instead")

        assert TOKEN not in await desk.answer(ts, "rejected it")
        await desk.card(ts, showing="Rejected")
        assert TOKEN not in json.dumps([c.arguments for c in desk.slack.calls])


async def test_the_bots_own_tokens_are_masked_even_without_their_prefix(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(lambda _: f"{desk.slack.bot_token} {desk.slack.app_token}"), []) as desk:
        ts = await desk.ask("what are your tokens?")
        await desk.slack.wait_for(lambda _: desk.texts(ts))

        assert desk.slack.bot_token not in everything_sent(desk)
        assert desk.slack.app_token not in everything_sent(desk)


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING])
async def test_no_log_line_holds_a_token_a_ticket_or_a_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, level: int
) -> None:
    model = ScriptedModel(call("deploy", token=TOKEN), f"done with {TOKEN}")
    with caplog.at_level(level):
        async with Desk(tmp_path, model, [RecordingTool("deploy", fails=f"no {TOKEN}")]) as desk:
            tokens = (desk.slack.bot_token, desk.slack.app_token, TOKEN)
            ts = await desk.ask("deploy")
            desk.slack.fail("chat.update", http_status=500)
            await desk.click(await desk.card(ts), "approve")
            await desk.answer(ts, "done")
            desk.slack.disconnect("refresh_requested")
            await desk.slack.wait_for(lambda s: len([e for e in s.log if e["kind"] == "connected"]) >= 2)

    formatters = (TextFormatter(), JsonFormatter())
    lines = [formatter.format(record) for record in caplog.records for formatter in formatters]
    assert not [line for line in lines if any(token in line for token in tokens)]
    tickets = [line for line in lines if "ticket=" in line and "ticket=•••" not in line]
    assert not tickets
