"""What cards tell: batches, decisions that wait for others, rules, and time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.local import people
from harness_core.events import RunEnd, RunStart
from harness_core.handle import HITL
from harness_core.options import HarnessOptions
from harness_core.permissions.rule import PermissionRule
from harness_core.steps import Expiry
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, clock_of_today, reading

APPROVERS = frozenset({people.BEN, people.CLEO})


async def test_a_batch_is_decided_in_any_order_by_several_people_and_goes_on_once(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel([call("change", n=1), call("change", n=2), call("change", n=3)], "all done")
    async with Desk(tmp_path, model, [change], approvers=APPROVERS) as desk:
        ts = await desk.ask("change three things")
        third = await desk.card(ts, 3)
        first, second, _ = desk.cards(ts)
        assert "1 of 3" in reading(first)
        assert "nothing runs until all are decided" in reading(first)
        assert f"<@{people.BEN}> <@{people.CLEO}> please decide" in reading(first)
        assert "please decide" not in reading(second)

        await desk.click(third, "approve", people.BEN)
        waiting = await desk.card(ts, 3, showing=f"Approved by <@{people.BEN}>")
        assert "waits for 2 more" in reading(waiting)
        assert buttons(waiting) == []
        await desk.click(first, "approve", people.CLEO)
        await desk.card(ts, 1, showing="waits for 1 more")
        await desk.card(ts, 3, showing="waits for 1 more")
        assert change.runs == []
        await desk.fill(second, "skip", people.ADA, choice="left_out")

        await desk.answer(ts, "all done")
        assert change.runs == [{"n": 1}, {"n": 3}]
        await desk.settled()
        assert ["ran" in reading(card) for card in desk.cards(ts)] == [True, False, True]
        assert "Left out by" in reading(desk.cards(ts)[1])
        assert len([start for start in await desk.facts(ts, RunStart) if start.resumed]) == 1
        assert len(model.requests) == 2


async def test_calls_that_would_do_the_same_say_so_and_are_each_decided(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel([call("change", n=1), call("change", n=1), call("change", n=2)], "done")
    async with Desk(tmp_path, model, [change]) as desk:
        ts = await desk.ask("twice the same")
        await desk.card(ts, 3)
        cards = desk.cards(ts)
        assert ["alike" in reading(card) for card in cards] == [True, True, False]
        assert "1 of 2 alike" in reading(cards[0])
        assert "2 of 2 alike" in reading(cards[1])

        await desk.click(cards[0], "approve")
        await desk.fill(cards[1], "skip", choice="left_out")
        await desk.click(cards[2], "approve")

        await desk.answer(ts, "done")
        assert change.runs == [{"n": 1}, {"n": 2}]


async def test_a_rule_made_on_one_card_releases_the_cards_that_it_covers(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel([call("change", n=1), call("change", n=1), call("change", n=2)], "done")
    async with Desk(tmp_path, model, [change]) as desk:
        ts = await desk.ask("twice the same")
        await desk.card(ts, 3)
        first, _, other = desk.cards(ts)

        await desk.fill(first, "always")

        released = await desk.card(ts, 2, showing="Approved by a rule")
        assert "allow change" in reading(released)
        assert buttons(released) == []
        assert buttons(desk.cards(ts)[2]) != []
        await desk.click(other, "approve")
        await desk.answer(ts, "done")
        assert change.runs == [{"n": 1}, {"n": 1}, {"n": 2}]


async def test_what_was_decided_elsewhere_than_in_slack_is_told_in_the_thread(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", n=1), "done"), [change]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        session = await desk.bot.engine.session(desk.session(ts))

        await HITL.approve(session, await HITL.get_pending_task(session), by="the night shift")

        await desk.answer(ts, "done")
        decided = await desk.card(ts, showing="Approved by the night shift")
        assert buttons(decided) == []
        assert change.runs == [{"n": 1}]
        await desk.click(card, "reject", force=True)
        await desk.told(people.ADA, "has decided this already, or it is over")


async def test_a_deny_that_comes_meanwhile_closes_the_card(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel(call("change", n=1), lambda request: f"I was told: {request.messages[-1].content}")
    async with Desk(tmp_path, model, [change]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)

        desk.bot.engine.add_permission_rule(PermissionRule.deny("change"))

        await desk.answer(ts, "I was told: Denied")
        closed = await desk.card(ts, showing="Closed")
        assert buttons(closed) == []
        await desk.click(card, "approve", force=True)
        await desk.told(people.ADA, "has decided this already, or it is over")
        assert change.runs == []


async def test_a_card_that_nobody_decides_expires_and_says_so(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel(call("change", n=1), lambda request: f"I was told: {request.messages[-1].content}")
    options, clock = HarnessOptions(expiries={"change": Expiry(60.0)}), clock_of_today()
    async with Desk(tmp_path, model, [change], options=options, clock=clock) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts, showing="expires <!date^")
        await desk.bot.engine.idle()

        clock.advance(61.0)

        answer = await desk.answer(ts, "I was told: Nobody decided in time")
        assert "nobody rejected it" in answer
        expired = await desk.card(ts, showing="Expired: nobody decided in time")
        assert buttons(expired) == []
        await desk.click(card, "approve", force=True)
        await desk.told(people.ADA, "it is over")
        assert change.runs == []


async def test_an_expiry_that_halts_ends_the_run_with_a_word_in_the_thread(tmp_path: Path) -> None:
    options, clock = HarnessOptions(expiries={"change": Expiry(60.0, "halt")}), clock_of_today()
    async with Desk(
        tmp_path, ScriptedModel(call("change", n=1)), [RecordingTool("change")], options=options, clock=clock
    ) as desk:
        ts = await desk.ask("change it")
        await desk.card(ts)
        await desk.bot.engine.idle()

        clock.advance(61.0)

        await desk.answer(ts, "Nobody decided about change in time")
        await desk.settled()
        assert [end.status for end in await desk.facts(ts, RunEnd)] == ["stopped"]


async def test_a_failing_call_and_an_exit_code_are_told_on_the_card(tmp_path: Path) -> None:
    model = ScriptedModel([call("change", n=1), call("bash", command="echo hi; touch x; exit 3")], "done")
    async with Desk(tmp_path, model, [RecordingTool("change", fails="no such thing"), "bash"]) as desk:
        ts = await desk.ask("do both")
        await desk.card(ts, 2)
        for card in desk.cards(ts):
            await desk.click(card, "approve")

        await desk.answer(ts, "done")

        assert "failed" in reading(await desk.card(ts, 1, showing="failed"))
        await desk.card(ts, 2, showing="exit 3")


async def test_a_reject_that_stops_closes_the_cards_of_the_others(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel([call("change", n=1), call("change", n=2)])
    async with Desk(tmp_path, model, [change]) as desk:
        ts = await desk.ask("two things")
        second = await desk.card(ts, 2)
        await desk.click(desk.cards(ts)[0], "approve")

        await desk.fill(second, "reject", choice="stop", comment="no")

        await desk.answer(ts, "rejected it, so I stopped here. Reason: no")
        first = await desk.card(ts, 1, showing="not run")
        assert "waits for" not in reading(first)
        assert change.runs == []


async def test_two_threads_that_wait_at_once_are_decided_each_for_itself(tmp_path: Path) -> None:
    change = RecordingTool("change", result=lambda args: f"changed {args['n']}")

    def asked(request: object) -> object:
        said = str(request.messages[-1].content)  # type: ignore[attr-defined]
        return call("change", n=said) if said.startswith("thread") else f"I was told: {said}"

    async with Desk(tmp_path, ScriptedModel(asked, asked), [change]) as desk:
        one, two = await asyncio.gather(desk.ask("thread one"), desk.ask("thread two"))
        card_one, card_two = await desk.card(one), await desk.card(two)

        await desk.click(card_two, "approve")
        assert "thread two" in await desk.answer(two, "I was told")
        assert change.runs == [{"n": "thread two"}]
        await desk.click(card_one, "approve")

        assert "thread one" in await desk.answer(one, "I was told")
