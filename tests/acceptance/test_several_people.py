"""Calls that several people must approve, on the card and in the file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.local import people
from harness_core.events import HITLSubmitted, HITLVoted
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, clock_of_today, reading, value_of
from tests.acceptance.killed import agents
from tests.acceptance.test_settings import command
from tests.engine.test_subagents import Cast

BOTH = frozenset({people.BEN, people.CLEO})


def model() -> ScriptedModel:
    return ScriptedModel([call("change", n=1)], "done")


async def test_a_card_counts_who_approved_and_the_call_runs_with_the_last(tmp_path: Path) -> None:
    tool = RecordingTool("change")
    async with Desk(tmp_path, model(), [tool], approvers=BOTH) as desk:
        assert "2 people must approve" in await command(desk, "ask change --people 2")
        ts = await desk.ask("go")
        card = await desk.card(ts, showing="2 people must approve")
        assert buttons(card) == ["approve", "reject", "skip", "view"]

        await desk.click(card, "approve", people.BEN)
        card = await desk.card(ts, showing=f"*1 more must approve* · approved by <@{people.BEN}>")
        assert tool.runs == []
        await desk.say("!status", people.CLEO, thread=ts)
        await desk.told(people.CLEO, "`, 1 more must approve")

        await desk.click(card, "approve", people.BEN)
        await desk.told(people.BEN, "approved this already")
        assert tool.runs == []

        await desk.click(card, "approve", people.CLEO)

        await desk.answer(ts, "done")
        assert f"Approved by <@{people.BEN}> and <@{people.CLEO}>" in reading(await desk.card(ts, showing="ran"))
        assert tool.runs == [{"n": 1}]
        assert [vote.by for vote in await desk.facts(ts, HITLVoted)] == [people.BEN, people.CLEO]


async def test_votes_outlive_a_restart_and_one_reject_decides(tmp_path: Path) -> None:
    tool, policy = RecordingTool("change"), tmp_path / "harness.toml"
    policy.write_text('[[rule]]\neffect = "ask"\ntool = "change"\npeople = 2\nwhy = "four eyes"\n', encoding="utf-8")
    async with Desk(tmp_path, model(), [tool], approvers=BOTH, policy=policy) as desk:
        ts = await desk.ask("go")
        await desk.click(await desk.card(ts), "approve", people.BEN)
        await desk.card(ts, showing="1 more must")

        await desk.reborn()
        await desk.say("!approve " + (await desk.facts(ts, HITLVoted))[0].fingerprint[:6], people.BEN, thread=ts)
        await desk.told(people.BEN, "approved this already")
        await desk.fill(await desk.card(ts), "reject", people.CLEO, choice="go_on", comment="not today")

        await desk.answer(ts, "done")
        assert [(fact.by, fact.decision.action) for fact in await desk.facts(ts, HITLSubmitted)] == [
            (people.CLEO, "reject")
        ]
        assert tool.runs == []


async def test_clicks_and_words_at_once_are_one_vote_of_each_person(tmp_path: Path) -> None:
    tool = RecordingTool("change")
    async with Desk(tmp_path, model(), [tool], approvers=BOTH) as desk:
        await command(desk, "ask change --people 3")
        ts = await desk.ask("go")
        card = await desk.card(ts)
        short = value_of(card, "approve").rpartition("|")[2][:6]

        await asyncio.gather(
            *(desk.click(card, "approve", by, force=True) for by in (people.BEN, people.CLEO) * 2),
            desk.say(f"!approve {short}", people.BEN, thread=ts),
        )
        await desk.card(ts, showing="*1 more must approve*")
        await desk.told(people.BEN, "approved this already")
        await desk.settled()
        assert sorted(vote.by for vote in await desk.facts(ts, HITLVoted)) == sorted(BOTH)
        assert tool.runs == []

        await desk.click(await desk.card(ts), "approve")
        await desk.answer(ts, "done")
        assert tool.runs == [{"n": 1}]


@pytest.mark.parametrize("action", ["edit", "always", "review", "rerun"])
async def test_what_a_card_for_several_people_never_offered_decides_nothing(tmp_path: Path, action: str) -> None:
    tool = RecordingTool("change")
    async with Desk(tmp_path, model(), [tool], approvers=BOTH) as desk:
        await command(desk, "ask change --people 2")
        ts = await desk.ask("go")
        card = await desk.card(ts)
        await desk.settled()  # the bot knows where the card stands

        assert (await desk.click(card, action, people.BEN, value=value_of(card, "approve"), force=True)).ok

        if action == "review":
            await desk.form(people.BEN)  # which shows what the card does
            assert (await desk.slack.submit(people.BEN, {})).ok
            await desk.card(ts, showing="*1 more must approve*")
        else:
            await desk.slack.wait_for(lambda _: desk.notices(people.BEN))
        assert tool.runs == []
        assert await desk.facts(ts, HITLSubmitted) == []


async def test_who_lost_the_right_after_approving_is_not_one_of_those_who_let_a_call_run(tmp_path: Path) -> None:
    tool = RecordingTool("change")
    async with Desk(tmp_path, model(), [tool], approvers=BOTH) as desk:
        await command(desk, "ask change --people 2")
        ts = await desk.ask("go")
        await desk.click(await desk.card(ts), "approve", people.BEN)
        card = await desk.card(ts, showing="1 more must approve")
        await command(desk, "approvers remove @ben")

        await desk.click(card, "approve", people.CLEO)
        await desk.told(people.CLEO, f"<@{people.BEN}> approved this and may not decide any more")
        assert tool.runs == []

        await command(desk, "approvers add @ben")
        await desk.click(card, "approve", people.CLEO)
        await desk.answer(ts, "done")
        assert tool.runs == [{"n": 1}]


async def test_each_of_several_people_reads_a_cut_card_in_full(tmp_path: Path) -> None:
    text = "start\n" + "x" * 5_000 + "\nend"
    tool = RecordingTool("change")
    model = ScriptedModel([call("change", text=text)], "done")
    async with Desk(tmp_path, model, [tool], approvers=BOTH) as desk:
        await command(desk, "ask change --people 2")
        ts = await desk.ask("go")
        card = await desk.card(ts)
        assert buttons(card) == ["review", "reject", "skip", "view"]
        await desk.fill(card, "review", people.BEN)
        card = await desk.card(ts, showing="*1 more must approve*")

        assert (await desk.click(card, "approve", people.CLEO, value=value_of(card, "review"), force=True)).ok
        await desk.told(people.CLEO, "has to be read in full")
        await desk.fill(card, "review", people.BEN)
        assert "approved this already" in str((await desk.form(people.BEN))["blocks"])
        assert tool.runs == []
        await desk.fill(card, "review", people.CLEO)

        await desk.answer(ts, "done")
        assert tool.runs == [{"text": text}]


async def test_a_call_whose_end_nobody_saw_is_run_again_by_as_many(tmp_path: Path) -> None:
    tool = RecordingTool("change", hold=asyncio.Event())
    async with Desk(tmp_path, model(), [tool], approvers=BOTH) as desk:
        await command(desk, "ask change --people 2")
        ts = await desk.ask("go")
        for by in (people.BEN, people.CLEO):
            await desk.click(await desk.card(ts), "approve", by)
        await tool.started.reach(1)

        await desk.reborn()  # while the tool runs
        tool.hold = None
        card = await desk.card(ts, 2, showing="*2 people must approve*")
        await desk.click(card, "rerun", people.BEN)
        await desk.card(ts, 2, showing="*1 more must approve*")
        await desk.click(card, "rerun", people.BEN)
        await desk.told(people.BEN, "approved this already")
        assert len(tool.runs) == 1
        await desk.click(card, "rerun", people.CLEO)

        await desk.answer(ts, "done")
        assert len(tool.runs) == 2


async def test_a_card_that_is_deleted_or_cannot_be_redrawn_between_votes_loses_none(tmp_path: Path) -> None:
    tool = RecordingTool("change")
    async with Desk(tmp_path, model(), [tool], approvers=BOTH, clock=clock_of_today()) as desk:
        await command(desk, "ask change --people 3")
        ts = await desk.ask("go")
        card = await desk.card(ts)
        desk.slack.fail("chat.update", error="internal_error")
        await desk.click(card, "approve", people.BEN)
        await desk.passing(lambda _: [c for c in desk.cards(ts) if "*2 more must approve*" in reading(c)])

        await desk.slack.delete(people.BOT_USER, people.GENERAL, card["ts"], force=True)
        again = await desk.passing(lambda _: [c for c in desk.cards(ts) if c["ts"] != card["ts"]])
        assert f"approved by <@{people.BEN}>" in reading(again[0])
        for by in (people.CLEO, people.ADA):
            await desk.click(again[0], "approve", by)

        await desk.answer(ts, "done")
        assert tool.runs == [{"n": 1}]


async def test_what_an_agent_asks_waits_for_several_people_across_a_restart(tmp_path: Path) -> None:
    tool, worker = RecordingTool("change"), [[call("change", n=1)], "it is changed"]
    cast = Cast([[call("task", agent="worker", prompt="do it")], "done"], worker=worker)
    async with Desk(tmp_path, cast, [tool], approvers=BOTH, agents=agents(tmp_path)) as desk:
        await command(desk, "ask change --people 2")
        ts = await desk.ask("go")
        await desk.click(await desk.card(ts, showing="*2 people must approve*"), "approve", people.BEN)
        await desk.card(ts, showing="*1 more must approve*")

        await desk.reborn()
        card = await desk.card(ts)
        await desk.click(card, "approve", people.BEN)
        await desk.told(people.BEN, "approved this already")
        assert tool.runs == []
        await desk.click(card, "approve", people.CLEO)

        await desk.answer(ts, "done")
        assert tool.runs == [{"n": 1}]
        assert f"Approved by <@{people.BEN}> and <@{people.CLEO}>" in reading(await desk.card(ts, showing="ran"))


async def test_a_number_of_people_that_no_rule_can_want_makes_no_rule(tmp_path: Path) -> None:
    async with Desk(tmp_path, model(), [RecordingTool("change")]) as desk:
        assert "1 to 10 people" in await command(desk, "ask change --people 99")
        assert "only a rule that asks" in await command(desk, "deny change --people 2")


async def test_a_rule_that_wants_more_people_than_decide_says_so(tmp_path: Path) -> None:
    async with Desk(tmp_path, model(), [RecordingTool("change")]) as desk:
        assert "only 1 person decides so far" in await command(desk, "ask change --people 2")
        assert "decides now" in await command(desk, "approvers add @ben")
        assert "so far" not in await command(desk, "ask change --people 2")
        assert "only 2 people decide so far" in await command(desk, "ask change --people 3")
