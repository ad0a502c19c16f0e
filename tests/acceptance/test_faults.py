"""When Slack fails, or the bot starts again in the middle: no card twice, no answer lost or twice, and cards that tell
the truth in the end.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.local import people
from bot.people import PLACE_SECONDS
from harness_core.events import HITLSubmitted, Prompted, ToolCallStart
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, clock_of_today, reading

ANSWER = "Done: see https://example.com/a_b 🙂 <x> & *more*"


async def finish(desk: Desk, ts: str, change: RecordingTool) -> None:
    """Go on to the end, and look whether everything is there exactly once."""
    card = (await desk.passing(lambda _: desk.cards(ts)))[0]
    if buttons(card):
        await desk.click(card, "approve")
    await desk.passing(lambda _: [t for t in desk.texts(ts) if "Done: see" in t])
    await desk.passing(lambda _: [c for c in desk.cards(ts) if "ran" in reading(c)])
    # On a slow machine so much time passes that the message gets a sign, which has to go again.
    await desk.passing(lambda _: not desk.bot.presenter._tasks and not desk.bot.presenter._moods._tasks)
    assert len(desk.cards(ts)) == 1
    assert len(desk.texts(ts)) == 1
    assert buttons(desk.cards(ts)[0]) == []
    assert change.runs == [{"a": 1}]
    assert len(await desk.facts(ts, Prompted)) == 1
    assert len(await desk.facts(ts, ToolCallStart)) == 1
    assert len(await desk.facts(ts, HITLSubmitted)) == 1


def desk_of(tmp_path: Path) -> tuple[Desk, RecordingTool]:
    change = RecordingTool("change")
    model = ScriptedModel(call("change", a=1), ANSWER)
    return Desk(tmp_path, model, [change], clock=clock_of_today()), change


FAULTS: list[dict[str, Any]] = [
    {"after_effect": True},  # the connection is cut after the effect, or before
    {"after_effect": False},
    {"http_status": 500, "after_effect": True},
    {"http_status": 503},
    {"http_status": 200},  # a page that is no JSON
    {"http_status": 200, "after_effect": True},
    {"retry_after": 0.01},
    {"error": "internal_error"},
    {"error": "fatal_error", "after_effect": True},
    {"error": "ratelimited"},
]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("number", [1, 2], ids=["the card", "the answer"])
async def test_a_post_that_fails_is_sought_before_it_is_made_again(
    tmp_path: Path, fault: dict[str, Any], number: int
) -> None:
    desk, change = desk_of(tmp_path)
    async with desk:
        if number == 1:
            desk.slack.fail("chat.postMessage", **fault)
        ts = await desk.ask("change it")
        if number == 2:
            await desk.card(ts)
            desk.slack.fail("chat.postMessage", **fault)

        await finish(desk, ts, change)

        uncertain = "retry_after" not in fault and fault.get("error") != "ratelimited"
        if number == 2:  # a click on the card can be quicker, and tells where the card stands
            assert (desk.calls("conversations.replies") > 0) == uncertain


@pytest.mark.parametrize("fault", [*FAULTS[:5], {"retry_after": 0.01}], ids=str)
async def test_an_update_that_fails_is_made_again(tmp_path: Path, fault: dict[str, Any]) -> None:
    desk, change = desk_of(tmp_path)
    async with desk:
        ts = await desk.ask("change it")
        await desk.card(ts)
        desk.slack.fail("chat.update", **fault)

        await finish(desk, ts, change)


async def test_a_wait_that_cannot_be_read_is_a_short_one(tmp_path: Path) -> None:
    desk, change = desk_of(tmp_path)
    async with desk:
        desk.slack.fail("chat.postMessage", retry_after=float("nan"))
        ts = await desk.ask("change it")

        await finish(desk, ts, change)


@pytest.mark.parametrize("after_effect", [False, True], ids=["before its effect", "after its effect"])
@pytest.mark.parametrize("place", ["users.info", "conversations.info", "card", "update", "answer"])
async def test_a_restart_at_any_call_of_the_web_api_loses_and_repeats_nothing(
    tmp_path: Path, place: str, after_effect: bool
) -> None:
    desk, change = desk_of(tmp_path)
    async with desk:
        methods = {"card": "chat.postMessage", "answer": "chat.postMessage", "update": "chat.update"}
        method = methods.get(place, place)

        def failing() -> None:
            desk.slack.fail(method, times=99, after_effect=after_effect)

        if place in ("users.info", "conversations.info"):
            desk.clock.advance(PLACE_SECONDS + 1)  # so long ago was everything looked up
        if place in ("users.info", "conversations.info", "card"):
            failing()
        ts = await desk.ask("change it")
        if place in ("update", "answer"):
            card = await desk.card(ts)
            failing()
            await desk.click(card, "approve")
        await desk.slack.wait_for(lambda s: [c for c in s.calls if c.method == method and not c.ok])
        await desk.bot.engine.idle()  # killing a tool is another matter

        await desk.reborn()
        desk.slack.settings.faults.clear()
        desk.slack.redeliver_now()

        await finish(desk, ts, change)


async def test_a_tool_that_ends_within_the_grace_of_a_restart_is_no_unknown_outcome(tmp_path: Path) -> None:
    gate = asyncio.Event()
    change = RecordingTool("change", hold=gate)
    model = ScriptedModel(call("change", a=1), "done")
    async with Desk(tmp_path, model, [change], grace=30.0) as desk:
        ts = await desk.ask("change it")
        await desk.click(await desk.card(ts), "approve")
        await change.started.reach(1)

        restarting = asyncio.create_task(desk.reborn())
        await desk.slack.wait_for(lambda s: s.connections == 0)
        gate.set()
        await restarting

        await desk.answer(ts, "done")
        assert len(desk.cards(ts)) == 1
        assert "ran" in reading(await desk.card(ts, showing="ran"))
        assert change.killed == 0
        assert len(change.runs) == 1


async def test_a_restart_between_two_cards_of_a_batch_posts_the_missing_one(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel([call("change", a=1), call("change", a=2)], "done")
    async with Desk(tmp_path, model, [change], clock=clock_of_today()) as desk:
        ts = await desk.ask("change both")
        await desk.slack.wait_for(lambda _: desk.cards(ts))
        await desk.reborn()

        second = await desk.card(ts, 2)
        for card in (second, desk.cards(ts)[0]):
            await desk.click(card, "approve")

        await desk.answer(ts, "done")
        assert len(desk.cards(ts)) == 2
        assert len(change.runs) == 2


async def test_after_a_restart_the_first_click_counts_and_the_thread_goes_on(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel(call("change", a=1), "one", call("change", a=2), "two")
    async with Desk(tmp_path, model, [change]) as desk:
        ts = await desk.ask("change it")
        await desk.card(ts)

        await desk.restart()
        await desk.click(await desk.card(ts), "approve")
        await desk.answer(ts, "one")
        await desk.restart()

        await desk.say("and again", thread=ts)
        await desk.click(await desk.card(ts, 2), "approve")
        await desk.answer(ts, "two")
        assert change.runs == [{"a": 1}, {"a": 2}]
        assert len(desk.cards(ts)) == 2
        assert desk.texts(ts) == ["one", "two"]


async def test_what_was_rendered_is_not_looked_at_again_after_a_restart(tmp_path: Path) -> None:
    desk, change = desk_of(tmp_path)
    async with desk:
        ts = await desk.ask("change it")
        await finish(desk, ts, change)

        await desk.restart()
        await desk.settled()

        shown = ("chat.", "conversations.replies", "reactions.")
        assert [c.method for c in desk.slack.calls if c.method.startswith(shown)] == []


async def test_two_answers_that_say_the_same_are_two_messages(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("Done.", "Done."), [], clock=clock_of_today()) as desk:
        ts = await desk.ask("one")
        await desk.answer(ts, "Done.")
        desk.slack.fail("chat.postMessage")  # nobody knows whether the second one stands there; it does not

        await desk.say("two", thread=ts)

        await desk.passing(lambda _: len(desk.texts(ts)) == 2)


async def test_a_message_that_slack_refuses_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel([call("change", a=1), call("change", a=2)], "done")
    async with Desk(tmp_path, model, [change]) as desk:
        desk.slack.fail("chat.postMessage", error="invalid_blocks")
        ts = await desk.ask("change both")

        await desk.slack.wait_for(lambda _: [card for card in desk.cards(ts) if "2 of 2" in reading(card)])


@pytest.mark.parametrize("told", [True, False], ids=["Slack tells of it", "found out by an update"])
async def test_a_card_that_was_deleted_while_it_waits_is_posted_anew_and_works(tmp_path: Path, told: bool) -> None:
    change = RecordingTool("change")
    model = ScriptedModel([call("change", a=1), call("change", a=2)], "done")
    async with Desk(tmp_path, model, [change], clock=clock_of_today()) as desk:
        ts = await desk.ask("change both")
        second = await desk.card(ts, 2)
        first = desk.cards(ts)[0]
        if not told:
            desk.slack.settings.events -= {"message.channels"}
        await desk.slack.delete(people.BOT_USER, people.GENERAL, first["ts"], force=True)
        if not told:
            await desk.click(second, "approve")  # which shows on the first one, too

        again = await desk.passing(
            lambda _: [c for c in desk.cards(ts) if "1 of 2" in reading(c) and c["ts"] != first["ts"]]
        )
        assert len(desk.cards(ts)) == 2
        await desk.click(again[0], "approve")
        if told:
            await desk.click(second, "approve")

        await desk.answer(ts, "done")
        assert sorted(run["a"] for run in change.runs) == [1, 2]
        assert len(desk.cards(ts)) == 2


async def test_a_decided_card_that_was_deleted_stays_deleted(tmp_path: Path) -> None:
    desk, change = desk_of(tmp_path)
    async with desk:
        ts = await desk.ask("change it")
        await finish(desk, ts, change)
        for message in desk.thread(ts):
            await desk.slack.delete(people.BOT_USER, people.GENERAL, message["ts"], force=True)
        await desk.slack.wait_for(lambda s: not s.world.hub.pending)
        await desk.settled()

        await desk.reborn()
        await desk.settled()

        assert desk.thread(ts) == []
        posts = await desk.bot.presenter.board.posts(desk.session(ts))
        assert posts.upto == await desk.bot.store.last_seq(desk.session(ts))  # nothing more is tried


async def test_a_card_is_posted_though_slack_does_not_let_the_thread_be_searched(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk, change = desk_of(tmp_path)
    async with desk:
        desk.slack.fail("conversations.replies", error="missing_scope", times=99)
        desk.slack.fail("chat.postMessage")  # nobody knows whether it stands there; it does not
        ts = await desk.ask("change it")

        await finish(desk, ts, change)

        assert [record for record in caplog.records if "cannot be searched" in record.getMessage()]


async def test_what_was_over_before_its_card_could_be_posted_gets_none(tmp_path: Path) -> None:
    desk, change = desk_of(tmp_path)
    async with desk:
        desk.slack.fail("chat.postMessage", http_status=503, times=99)
        ts = await desk.ask("change it")
        await desk.slack.wait_for(lambda s: [c for c in s.calls if c.method == "chat.postMessage"])
        await desk.say("!stop", thread=ts)
        await desk.slack.wait_for(lambda s: not s.world.hub.pending)
        await desk.bot.engine.idle()
        desk.slack.settings.faults.clear()

        await desk.passing(lambda _: [text for text in desk.texts(ts) if "stopped" in text])

        await desk.passing(lambda _: not desk.bot.presenter._tasks)
        assert desk.cards(ts) == []
        assert change.runs == []


async def test_a_card_that_slack_refuses_is_posted_once_slack_takes_it_and_who_asked_is_told(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change], clock=clock_of_today()) as desk:
        desk.slack.fail("chat.postMessage", error="not_allowed_token_type", times=6)
        ts = await desk.ask("change it", people.BEN)
        told = await desk.told(people.BEN, "not_allowed_token_type")
        await desk.settled()
        assert desk.cards(ts) == []

        card = (await desk.passing(lambda _: desk.cards(ts), seconds=60.0))[0]
        await desk.click(card, "approve")

        await desk.answer(ts, "done")
        assert len(change.runs) == 1
        assert "waits for a decision" in told
        assert len(desk.notices(people.BEN)) == 1


async def test_who_asks_how_things_stand_has_a_refused_card_posted_at_once(tmp_path: Path) -> None:
    async with Desk(
        tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")], clock=clock_of_today()
    ) as desk:
        desk.slack.fail("chat.postMessage", error="not_allowed_token_type")
        ts = await desk.ask("change it")
        await desk.told(people.ADA, "not_allowed_token_type")
        await desk.settled()

        await desk.say("!status", thread=ts)

        await desk.card(ts)


async def test_what_slack_refuses_is_tried_ever_more_seldom(tmp_path: Path) -> None:
    async with Desk(
        tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")], clock=clock_of_today()
    ) as desk:
        desk.slack.fail("chat.postMessage", error="restricted_action", times=999)
        await desk.ask("change it")
        await desk.told(people.ADA, "restricted_action")
        began = desk.clock.now()
        await desk.passing(lambda _: desk.calls("chat.postMessage") > 5, seconds=10.0)

        assert desk.clock.now() - began > 60.0
