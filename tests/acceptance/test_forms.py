"""The forms behind a card's buttons: reject, skip, always allow, review, and the outcome that nobody knows."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot import words
from bot.local import people
from harness_core.events import HITLSubmitted, RuleChanged, RunEnd, ToolCallEnd, ToolCallStart
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, reading, shown, value_of

TEXT = {"type": "string"}
DEPLOY = {"type": "object", "properties": {"target": TEXT, "script": TEXT}, "required": ["target", "script"]}


async def test_a_rejection_ends_the_run_with_its_reason_as_the_seed_has_it(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1)), [change]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await desk.click(card, "reject")
        form = await desk.form()
        radio = next(b["element"] for b in form["blocks"] if b["type"] == "input" and "options" in b["element"])
        assert radio["initial_option"]["value"] == "stop"

        assert (await desk.slack.submit(people.ADA, {"comment": "not *today* <!here>"})).ok

        text = await desk.answer(ts, "rejected it, so I stopped here")
        assert "not *today* &lt;!here&gt;" in text
        assert "Rejected" in reading(await desk.card(ts, showing="Rejected"))
        assert change.runs == []
        assert desk.slack.views(people.ADA) == []
        await desk.settled()
        assert [end.status for end in await desk.facts(ts, RunEnd)] == ["rejected"]


async def test_a_rejection_may_let_the_agent_go_on_with_the_reason(tmp_path: Path) -> None:
    model = ScriptedModel(call("change", a=1), lambda request: f"I was told: {request.messages[-1].content}")
    async with Desk(tmp_path, model, [RecordingTool("change")]) as desk:
        ts = await desk.ask("change it")

        assert (await desk.fill(await desk.card(ts), "reject", choice="go_on", comment="too risky")).ok

        answer = await desk.answer(ts, "I was told: Rejected by")
        assert "too risky" in answer


async def test_an_empty_reason_tells_the_agent_who_rejected(tmp_path: Path) -> None:
    model = ScriptedModel(call("change", a=1), lambda request: f"I was told: {request.messages[-1].content}")
    async with Desk(tmp_path, model, [RecordingTool("change")]) as desk:
        ts = await desk.ask("change it")

        await desk.fill(await desk.card(ts), "reject", choice="go_on")

        assert people.ADA in await desk.answer(ts, "I was told: Rejected by")


async def test_with_several_calls_the_form_begins_with_going_on(tmp_path: Path) -> None:
    model = ScriptedModel([call("change", a=1), call("change", a=2)])
    async with Desk(tmp_path, model, [RecordingTool("change")]) as desk:
        ts = await desk.ask("change both")
        await desk.click(await desk.card(ts, 2), "reject")

        form = await desk.form()

        radio = next(b["element"] for b in form["blocks"] if b["type"] == "input" and "options" in b["element"])
        assert radio["initial_option"]["value"] == "go_on"


@pytest.mark.parametrize(
    ("choice", "told", "on_card"),
    [("done", "Done by hand by", "Skipped: it was done"), ("left_out", "Left out by", "Left out")],
)
async def test_a_skip_says_which_kind_it_is(tmp_path: Path, choice: str, told: str, on_card: str) -> None:
    change = RecordingTool("change")
    model = ScriptedModel(call("change", a=1), lambda request: f"I was told: {request.messages[-1].content}")
    async with Desk(tmp_path, model, [change]) as desk:
        ts = await desk.ask("change it")

        assert (await desk.fill(await desk.card(ts), "skip", choice=choice, comment="ticket 7")).ok

        answer = await desk.answer(ts, f"I was told: {told}")
        assert "ticket 7" in answer
        await desk.card(ts, showing=f"{on_card} by <@{people.ADA}>")
        assert change.runs == []


async def test_always_allow_lets_exactly_that_call_run_without_a_card_from_then_on(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel(call("change", a="x"), call("change", a="x"), call("change", a="x "), "done")
    async with Desk(tmp_path, model, [change], approvers=frozenset({people.CLEO})) as desk:
        ts = await desk.ask("change it twice, then another")
        card = await desk.card(ts)
        await desk.click(card, "always", people.CLEO)
        form = await desk.form(people.CLEO)
        assert "In this thread, exactly this" in reading(form)
        assert shown(form) == "a: x"
        assert "radio_buttons" not in reading(form)

        assert (await desk.slack.submit(people.CLEO, {})).ok

        second = await desk.card(ts, 2)
        assert change.runs == [{"a": "x"}, {"a": "x"}]
        assert 'a: "x "' in shown(second)
        assert "always in this thread" in reading(await desk.card(ts, showing="ran"))

        # It is the rule of this thread and of no other.
        other = await desk.ask("and here?")
        await desk.card(other)
        assert len(change.runs) == 2


async def test_a_cut_card_is_approved_only_in_the_form_that_shows_every_character(tmp_path: Path) -> None:
    command = "echo start\n" + "x" * 5_000 + "\nrm -rf /important"
    run = RecordingTool("bash")
    async with Desk(tmp_path, ScriptedModel(call("bash", command=command), "done"), [run]) as desk:
        ts = await desk.ask("run it")
        card = await desk.card(ts)
        assert "approve" not in buttons(card)
        assert "always" not in buttons(card)
        assert "characters left out" in reading(card)
        assert "rm -rf /important" in reading(card)

        # A client may send what it was never shown, on a card that the bot knows the place of.
        await desk.settled()
        forged = await desk.click(card, "approve", value=value_of(card, "review"), force=True)
        block = next(b["block_id"] for b in card["blocks"] if b["type"] == "actions")
        await desk.click(card, "approve", value=value_of(card, "review"), block_id=block, force=True)
        assert forged.ok
        await desk.told(people.ADA, "has to be read in full")
        short = value_of(card, "review").rpartition("|")[2][:6]
        await desk.say(f"!approve {short}", thread=ts)
        await desk.slack.wait_for(lambda _: len([t for t in desk.notices(people.ADA) if "read in full" in t]) >= 2)
        assert run.runs == []

        await desk.click(card, "review")
        form = await desk.form()
        assert shown(form) == command
        assert (await desk.slack.submit(people.ADA, {})).ok
        await desk.answer(ts, "done")
        assert run.runs == [{"command": command}]


@pytest.mark.parametrize(
    "command",
    [
        "echo " + "x" * 5_000,  # cut on its card
        "curl -H 'Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123456789' x.io",  # masked
        "echo safe\u202etxt.exe\u200b",  # disguised, and shown with marks
    ],
    ids=["cut", "masked", "disguised"],
)
async def test_a_form_that_was_never_offered_allows_nothing_for_always(tmp_path: Path, command: str) -> None:
    run = RecordingTool("bash")
    async with Desk(tmp_path, ScriptedModel(call("bash", command=command), "done"), [run]) as desk:
        ts = await desk.ask("run it")
        card = await desk.card(ts)
        assert "always" not in buttons(card)
        await desk.settled()  # the bot knows where the card stands
        assert (await desk.click(card, "always", value=value_of(card, "reject"), force=True)).ok
        await desk.told(people.ADA, "not switched on here")
        await desk.click(card, "reject")
        form = await desk.form()
        desk.slack.world.views[form["id"]]["view"]["callback_id"] = "always"  # a client may send what it likes

        assert (await desk.slack.submit(people.ADA, {"choice": "stop"})).ok

        assert "not switched on here" in reading(desk.slack.views(people.ADA)[-1])
        assert await desk.facts(ts, HITLSubmitted) == []
        assert await desk.facts(ts, RuleChanged) == []
        assert run.runs == []


async def test_what_a_card_had_to_cut_is_not_approved_through_a_form_that_keeps_it_unseen(tmp_path: Path) -> None:
    deploy = RecordingTool("deploy", schema=DEPLOY)
    script = "echo\n" * 2_000 + "rm -rf /"
    async with Desk(tmp_path, ScriptedModel(call("deploy", target="prod", script=script), "done"), [deploy]) as desk:
        ts = await desk.ask("deploy")
        card = await desk.card(ts)
        assert not {"approve", "edit", "always"} & set(buttons(card))
        await desk.settled()  # the bot knows where the card stands
        assert (await desk.click(card, "edit", value=value_of(card, "reject"), force=True)).ok
        await desk.told(people.ADA, "not switched on here")
        await desk.click(card, "reject")
        form = await desk.form()
        desk.slack.world.views[form["id"]]["view"]["callback_id"] = "edit"  # a client may send what it likes

        assert (await desk.slack.submit(people.ADA, {"choice": "stop"})).ok

        assert await desk.facts(ts, HITLSubmitted) == []
        assert deploy.runs == []
        await desk.click(card, "review")
        assert "rm -rf /" in shown(await desk.form())


async def test_what_no_form_can_show_can_only_be_rejected_or_skipped(tmp_path: Path) -> None:
    run = RecordingTool("bash")
    async with Desk(tmp_path, ScriptedModel(call("bash", command="x" * 300_000), "ok"), [run]) as desk:
        ts = await desk.ask("run it")
        card = await desk.card(ts)

        assert not {"approve", "review", "always"} & set(buttons(card))
        await desk.fill(card, "skip", choice="left_out")

        await desk.answer(ts, "ok")
        assert run.runs == []


@pytest.mark.parametrize(
    ("action", "values", "runs", "told"),
    [
        ("rerun", None, 2, "done"),
        ("happened", {"comment": "it is there"}, 1, "What came of it: it is there"),
        ("skip", {"choice": "left_out"}, 1, "Left as it is by"),
    ],
)
async def test_a_call_whose_end_nobody_saw_is_put_to_a_person(
    tmp_path: Path, action: str, values: dict[str, str] | None, runs: int, told: str
) -> None:
    change = RecordingTool("change", hold=asyncio.Event())
    model = ScriptedModel(call("change", a=1), lambda request: f"I was told: {request.messages[-1].content}")
    async with Desk(tmp_path, model, [change]) as desk:
        ts = await desk.ask("change it")
        await desk.click(await desk.card(ts), "approve")
        await change.started.reach(1)

        await desk.reborn()  # while the tool runs
        change.hold = None

        card = await desk.card(ts, 2)
        assert buttons(card)[:4] == ["rerun", "happened", "skip", "reject"]
        assert "Did the tool change finish?" in card["text"]
        assert len(change.runs) == 1
        first = desk.cards(ts)[0]
        await desk.click(first, "approve", value=value_of(await desk.card(ts, 2), "rerun"), force=True)
        await desk.told(people.ADA, words.UNKNOWN)  # the old card does not decide the new question
        assert len(await desk.facts(ts, HITLSubmitted)) == 1
        if values is None:
            await desk.click(card, action)
        else:
            assert (await desk.fill(card, action, **values)).ok

        await desk.answer(ts, told)
        assert len(change.runs) == runs
        assert len(desk.cards(ts)) == 2
        assert len(await desk.facts(ts, ToolCallStart)) == runs
        assert len(await desk.facts(ts, ToolCallEnd)) == 1
        assert len(await desk.facts(ts, HITLSubmitted)) == 2
