"""What administrators change with /harness, effective at the next step of live sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.local import people
from harness_core.testing import FakeClock, RecordingTool, ScriptedModel, call
from tests.acceptance.desk import CHANNEL, Desk, buttons


def look() -> RecordingTool:
    return RecordingTool("look", read_only=True)


async def command(desk: Desk, text: str, user: str = people.ADA, channel: str = CHANNEL) -> str:
    """The private answer to a command."""
    before = len(desk.slack.ephemerals(user, channel))
    await desk.slack.command(user, channel, "/harness", text)
    return str((await desk.slack.wait_for(lambda _: desk.slack.ephemerals(user, channel)[before:]))[0]["text"])


async def test_a_tool_marked_sensitive_asks_in_this_channel_alone(tmp_path: Path) -> None:
    model = ScriptedModel([call("look")], "done")
    async with Desk(tmp_path, model, [look()]) as desk:
        assert "always asks in this channel" in await command(desk, "sensitive add look")
        assert "`look`" in await command(desk, "sensitive list", people.BEN)

        card = await desk.card(await desk.ask("look"))
        elsewhere = await desk.ask("look", channel=people.OPS)
        await desk.answer(elsewhere, "done", people.OPS)

        assert buttons(card)
        assert desk.cards(elsewhere, people.OPS) == []
        assert "no longer" in await command(desk, "sensitive remove look")
        free = await desk.ask("look")
        await desk.answer(free, "done")


async def test_a_tool_no_longer_sensitive_releases_what_waits_on_the_record(tmp_path: Path) -> None:
    tool = look()
    async with Desk(tmp_path, ScriptedModel([call("look")], "done"), [tool]) as desk:
        await command(desk, "sensitive add look --workspace")
        ts = await desk.ask("look")
        await desk.card(ts)
        assert tool.runs == []

        await command(desk, "sensitive remove look --workspace")

        await desk.answer(ts, "done")
        assert tool.runs == [{}]
        assert (
            "by a rule"
            in (await desk.slack.wait_for(lambda _: [c for c in desk.cards(ts) if not buttons(c)]))[0]["text"]
        )


async def test_only_administrators_change_things(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("hi"), [look()]) as desk:
        for text in ("sensitive add look", "approvers add U0BEN00001", "hitl off because", "pause", "resume", "off"):
            assert "Only administrators" in await command(desk, text, people.BEN)
            assert "guests" in await command(desk, text, people.GIL)
        assert "There is no tool" in await command(desk, "sensitive add nothing")
        for text in ("sensitive add", "approvers add nobody!", "hitl off", "hitl perhaps"):
            assert "`" in await command(desk, text)
        assert (await desk.bot.book.in_force()).sensitive == {}


async def test_an_approver_who_was_added_decides_and_one_who_was_removed_does_not(tmp_path: Path) -> None:
    tool = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel([call("change")], "done"), [tool]) as desk:
        ts = await desk.ask("do it")
        card = await desk.card(ts)
        await desk.click(card, "approve", people.BEN)
        await desk.told(people.BEN, "may not decide")

        assert "decides now" in await command(desk, "approvers add @ben")
        assert f"<@{people.BEN}>" in await command(desk, "approvers list")
        await command(desk, "approvers remove @ben")
        await desk.click(card, "approve", people.BEN)
        assert tool.runs == []
        await command(desk, "approvers add @ben")
        await desk.click(card, "approve", people.BEN)

        await desk.answer(ts, "done")
        assert tool.runs == [{}]


async def test_requesters_decide_their_own_calls_once_requester_is_an_approver(tmp_path: Path) -> None:
    tool = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel([call("change")], "done"), [tool]) as desk:
        await command(desk, "approvers add requester")
        ts = await desk.ask("do it", people.BEN)
        card = await desk.card(ts)

        await desk.click(card, "approve", people.CLEO)
        await desk.told(people.CLEO, "may not decide")
        await desk.click(card, "approve", people.BEN)

        await desk.answer(ts, "done")


async def test_approvals_that_are_off_turn_asks_into_refusals_that_say_so_and_come_back(tmp_path: Path) -> None:
    tool, clock = RecordingTool("change"), FakeClock()
    model = ScriptedModel([call("change")], "first", [call("change")], "second")
    async with Desk(tmp_path, model, [tool], clock=clock) as desk:
        assert "migration & co" in (await command(desk, "hitl off migration & co")).replace("&amp;", "&")
        ts = await desk.ask("do it")
        await desk.answer(ts, "first")
        assert tool.runs == []
        assert "approvals are off" in model.requests[-1].messages[-1].content
        assert "Approvals are off" in await command(desk, "status")

        clock.advance(8 * 3600 + 1)
        await desk.ask("again", thread=ts)

        assert buttons(await desk.card(ts))
        assert "Approvals are off" not in await command(desk, "status")


async def test_a_pause_stops_every_run_and_a_resume_takes_requests_again(tmp_path: Path) -> None:
    tool = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel([call("change")], "done"), [tool]) as desk:
        ts = await desk.ask("do it")
        await desk.card(ts)

        assert "Paused" in await command(desk, "pause")
        await desk.answer(ts, "stopped")
        await desk.ask("one more", people.BEN)
        await desk.told(people.BEN, "paused me")
        assert "take requests again" in await command(desk, "resume")

        again = await desk.ask("do it", people.BEN)
        assert buttons(await desk.card(again))
        assert tool.runs == []


async def test_what_waits_is_listed_for_the_channel_with_its_ids(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel([call("change")], "done"), [RecordingTool("change")]) as desk:
        assert "Nothing waits" in await command(desk, "pending")
        ts = await desk.ask("do it")
        card = await desk.card(ts)
        elsewhere = await desk.ask("do it", channel=people.OPS)
        await desk.card(elsewhere, channel=people.OPS)

        listed = await command(desk, "pending", people.BEN)

        short = card["text"].rpartition("#")[2]
        assert f"`#{short}`" in listed
        assert listed.count("•") == 1
        await desk.click(card, "approve")
        await desk.answer(ts, "done")
        assert "Nothing waits" in await command(desk, "pending")


@pytest.mark.parametrize("text", ["sensitive add look", "approvers add @ben", "hitl off why not", "pause"])
async def test_changes_are_on_the_record_with_who_and_when_and_survive_a_restart(tmp_path: Path, text: str) -> None:
    async with Desk(tmp_path, ScriptedModel("hi"), [look()]) as desk:
        await command(desk, text)
        before = await desk.bot.book.in_force()
        (fact,) = await desk.bot.store.read("config:workspace")
        assert (fact.by, fact.at > 0, bool(fact.key)) == (people.ADA, True, True)

        await desk.restart()

        assert await desk.bot.book.in_force() == before


MISTYPED = [
    ("hlep", "Did you mean `/harness help`?"),
    ("nonsense", "There are `/harness on`"),
    ("help hitl", "`/harness hitl off REASON`"),
    ("help allow", "Type `/harness allow TOOL PATTERN`"),
    ("sensitive add lok", "Did you mean `look`?"),
    ("allow lok x --for 8 hours", "Did you mean `look`?"),
    ("deny git push", "There is no tool `git`. There are: `look`."),
    ("approvers add ben", "`ben` names nobody"),
]


async def test_what_is_mistyped_is_told_with_what_to_type_instead(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), [look()]) as desk:
        answers = [(typed, told, await command(desk, typed)) for typed, told in MISTYPED]

        assert [(typed, answer) for typed, told, answer in answers if told not in answer] == []


async def test_what_still_holds_elsewhere_is_said(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), [look()]) as desk:
        for typed in ("sensitive add look", "sensitive add look --workspace", "hitl off slow --workspace"):
            await command(desk, typed)

        assert "still is everywhere" in await command(desk, "sensitive remove look")
        assert "still off everywhere" in await command(desk, "hitl on")
        assert "still" not in await command(desk, "sensitive remove look --workspace")
        assert "Approvals are on" in await command(desk, "hitl on --workspace")
