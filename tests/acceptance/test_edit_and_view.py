"""Edit…, View full and the rules that Always allow leaves behind, through real forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.local import PersonCannot, people
from harness_core.permissions.rule import PermissionRule
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.types import Args, Inspection
from tests.acceptance.desk import CHANNEL, Desk, buttons, reading

PAY = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "description": "the account"},
        "amount": {"type": "integer"},
        "speed": {"enum": ["slow", "fast"]},
    },
    "required": ["to", "amount"],
}


def pay(**more: Any) -> RecordingTool:
    return RecordingTool("pay", schema=PAY, result=lambda args: f"paid {args['amount']} to {args['to']}", **more)


def unlucky(args: Args) -> Inspection:
    return Inspection(problem="There is no amount 13.") if args["amount"] == 13 else Inspection()


async def test_an_edited_call_runs_as_edited_and_card_and_model_say_so(tmp_path: Path) -> None:
    tool = pay()
    model = ScriptedModel([call("pay", to="ann", amount=500, speed="fast")], "done")
    async with Desk(tmp_path, model, [tool]) as desk:
        ts = await desk.ask("pay ann")
        await desk.click(await desk.card(ts), "edit")
        (view,) = desk.slack.views(people.ADA)
        assert view["submit"]["text"] == "Approve edited"

        assert (await desk.slack.submit(people.ADA, {"arg:1": "80", "arg:2": "0"})).ok

        await desk.answer(ts, "done")
        assert tool.runs == [{"to": "ann", "amount": 80, "speed": "slow"}]
        result = model.requests[-1].messages[-1].content
        assert f"{people.ADA} changed the arguments before approving" in result
        assert '"amount":80' in result
        decided = (await desk.slack.wait_for(lambda _: [c for c in desk.cards(ts) if "ran" in reading(c)]))[0]
        assert "Approved with changes" in reading(decided)
        assert "- amount: 500" in reading(decided)
        assert "+ amount: 80" in reading(decided)
        assert desk.slack.views(people.ADA) == []


async def test_errors_stand_at_the_field_and_the_form_stays(tmp_path: Path) -> None:
    tool = pay(inspect=unlucky)
    async with Desk(tmp_path, ScriptedModel([call("pay", to="ann", amount=500)], "done"), [tool]) as desk:
        desk.bot.engine.add_permission_rule(PermissionRule("deny", "pay", arguments='{"amount":666,"to":"ann"}'))
        ts = await desk.ask("pay ann")
        card = await desk.card(ts)
        await desk.click(card, "edit")

        wrong_type = await desk.slack.submit(people.ADA, {"arg:1": "a lot"})
        curly = await desk.slack.submit(people.ADA, {"arg:0": "“ann”", "arg:1": "500"})
        denied = await desk.slack.submit(people.ADA, {"arg:0": "ann", "arg:1": "666"})
        cannot_work = await desk.slack.submit(people.ADA, {"arg:0": "ann", "arg:1": "13"})

        assert "whole number" in wrong_type.errors["arg:1"]
        assert "no amount 13" in cannot_work.errors["arg:1"]
        assert "curly quotes" in curly.errors["arg:0"]
        assert "denies this call" in next(iter(denied.errors.values()))
        assert len(desk.slack.views(people.ADA)) == 1
        assert buttons(desk.cards(ts)[0])
        assert tool.runs == []

        assert (await desk.slack.submit(people.ADA, {"arg:1": "1"})).ok
        await desk.answer(ts, "done")
        assert tool.runs == [{"to": "ann", "amount": 1}]


async def test_an_unchanged_edit_is_a_plain_approval(tmp_path: Path) -> None:
    tool = pay()
    async with Desk(tmp_path, ScriptedModel([call("pay", to="ann", amount=500)], "done"), [tool]) as desk:
        ts = await desk.ask("pay ann")
        await desk.click(await desk.card(ts), "edit")

        assert (await desk.slack.submit(people.ADA, {})).ok

        await desk.answer(ts, "done")
        decided = (await desk.slack.wait_for(lambda _: [c for c in desk.cards(ts) if "ran" in reading(c)]))[0]
        assert "Approved by" in reading(decided)
        assert "changes" not in reading(decided)


async def test_a_late_edit_is_told_so_in_the_form(tmp_path: Path) -> None:
    tool = pay()
    async with Desk(tmp_path, ScriptedModel([call("pay", to="ann", amount=500)], "done"), [tool]) as desk:
        ts = await desk.ask("pay ann")
        card = await desk.card(ts)
        await desk.click(card, "edit")
        await desk.click(card, "approve")
        await desk.answer(ts, "done")

        await desk.slack.submit(people.ADA, {"arg:1": "1"})

        assert "decided this already" in str(desk.slack.views(people.ADA))
        assert tool.runs == [{"to": "ann", "amount": 500}]


async def test_view_full_shows_every_character_to_whoever_may_speak(tmp_path: Path) -> None:
    text = "".join(f"line {n} & <{n}>\n" for n in range(600))
    async with Desk(tmp_path, ScriptedModel([call("note", text=text)], "done"), [RecordingTool("note")]) as desk:
        ts = await desk.ask("note it")
        card = await desk.card(ts)
        assert "approve" not in buttons(card)

        await desk.click(card, "view", people.BEN)

        (view,) = desk.slack.views(people.BEN)
        shown = "".join(
            part["text"]
            for block in view["blocks"]
            if block["type"] == "rich_text"
            for element in block["elements"]
            for part in element["elements"]
        )
        assert "line 0 " in shown
        assert "line 599 " in shown
        assert shown.count("line ") == 600
        assert not view["submit"]


async def test_a_guest_may_not_open_the_forms(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel([call("pay", to="ann", amount=500)], "done"), [pay()]) as desk:
        card = await desk.card(await desk.ask("pay ann"))

        for action in ("edit", "view", "reject"):
            await desk.click(card, action, people.GIL)

        await desk.told(people.GIL, "guests")
        assert desk.slack.views(people.GIL) == []


async def test_always_allow_ends_in_a_rule_that_is_listed_and_can_be_taken_back(tmp_path: Path) -> None:
    tool = RecordingTool("bash2", subject="command")
    same, other = call("bash2", command="ls `x`"), call("bash2", command="ls `x`!")
    model = ScriptedModel([same], "first", [same], "second", [other], "third", [same], "fourth")
    async with Desk(tmp_path, model, [tool]) as desk:
        ts = await desk.ask("one")
        await desk.click(await desk.card(ts), "always")
        assert (await desk.slack.submit(people.ADA, {})).ok
        await desk.answer(ts, "first")

        await desk.ask("two", thread=ts)
        await desk.answer(ts, "second")
        assert len(desk.cards(ts)) == 1

        await desk.ask("three", thread=ts)
        await desk.click(await desk.card(ts, 2), "approve")
        await desk.answer(ts, "third")

        await desk.slack.command(people.BEN, CHANNEL, "/harness", "allowed list")
        text = await desk.told(people.BEN, "bash2")
        rule_id = text.split("`#")[1][:6]
        await desk.slack.command(people.BEN, CHANNEL, "/harness", f"allowed revoke {rule_id}")
        await desk.told(people.BEN, "only administrators and approvers")
        await desk.slack.command(people.ADA, CHANNEL, "/harness", f"allowed revoke {rule_id}")
        await desk.told(people.ADA, "Taken back in 1 thread")
        await desk.slack.command(people.ADA, CHANNEL, "/harness", "allowed")
        await desk.told(people.ADA, "Nothing runs unasked")

        await desk.ask("four", thread=ts)
        assert buttons(await desk.card(ts, 3))
        assert len(tool.runs) == 3


async def test_a_person_cannot_press_what_is_not_there(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel([call("note")], "done"), [RecordingTool("note", schema={})]) as desk:
        card = await desk.card(await desk.ask("note it"))

        with pytest.raises(PersonCannot):
            await desk.click(card, "edit")
