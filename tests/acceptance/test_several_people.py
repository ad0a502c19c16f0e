"""Calls that several people must approve, on the card and in the file."""

from __future__ import annotations

from pathlib import Path

from bot.local import people
from harness_core.events import HITLSubmitted, HITLVoted
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, reading
from tests.acceptance.test_settings import command

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
