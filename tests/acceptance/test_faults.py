"""When Slack fails, or the bot starts again in the middle: no card twice, no answer lost or twice, and cards that tell
the truth in the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.local import people
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
    await desk.passing(lambda _: not desk.bot.presenter._tasks)
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

        assert [c.method for c in desk.slack.calls if c.method.startswith(("chat.", "conversations.", "reac"))] == []


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


async def test_a_card_that_was_deleted_does_not_keep_the_answer_waiting(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await desk.slack.delete(people.BOT_USER, people.GENERAL, card["ts"], force=True)

        await desk.say(f"!approve {card['text'].rpartition('#')[2][:6]}", thread=ts)

        await desk.answer(ts, "done")
        await desk.settled()
        assert desk.cards(ts) == []
        posts = await desk.bot.presenter.posts(desk.session(ts))
        assert posts.upto == await desk.bot.store.last_seq(desk.session(ts))  # nothing more is tried
