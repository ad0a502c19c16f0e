"""The first whole conversation: message, approval card, click, the same session goes on."""

from __future__ import annotations

from pathlib import Path

from bot.local import people
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, reading


async def test_a_message_a_card_a_click_and_the_answer(tmp_path: Path) -> None:
    change = RecordingTool("change", result="changed")
    model = ScriptedModel(["I will change it.", call("change", a=1)], "All **done**.")
    async with Desk(tmp_path, model, [change]) as desk:
        ts = await desk.ask("please change it")

        card = await desk.card(ts)
        assert change.runs == []
        assert buttons(card) == ["approve", "reject", "edit", "skip", "always", "view"]
        assert "I will change it." in reading(card)
        assert (await desk.click(card, "approve")).ok

        assert await desk.answer(ts, "All *done*.")
        assert change.runs == [{"a": 1}]
        decided = await desk.slack.wait_for(lambda _: [c for c in desk.cards(ts) if "ran" in reading(c)])
        assert f"Approved by <@{people.ADA}>" in reading(decided[0])
        assert buttons(decided[0]) == []
        assert len(desk.cards(ts)) == 1
