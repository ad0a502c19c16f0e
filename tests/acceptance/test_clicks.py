"""Clicks at once, twice, late, early, forged, or from elsewhere: one decision, and nobody is left without a word."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from bot import words
from bot.facts import Posted, show
from bot.local import people
from harness_core.errors import StoreError
from harness_core.events import HITLSubmitted, ToolCallStart
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, clock_of_today, reading, value_of

BEN_TOO = frozenset({people.BEN})


async def test_two_people_who_click_at_once_give_one_decision_and_one_of_them_is_told(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change], approvers=BEN_TOO) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)

        await asyncio.gather(desk.click(card, "approve", people.ADA), desk.click(card, "approve", people.BEN))

        await desk.answer(ts, "done")
        assert len(change.runs) == 1
        [submitted] = await desk.facts(ts, HITLSubmitted)
        loser = people.BEN if submitted.by == people.ADA else people.ADA
        await desk.told(loser, "has decided this already")
        assert desk.notices(submitted.by) == []
        await desk.card(ts, showing=f"Approved by <@{submitted.by}>")


async def test_approve_and_reject_at_the_same_moment_come_to_one_of_the_two(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change], approvers=BEN_TOO) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await desk.click(card, "reject", people.BEN)
        await desk.form(people.BEN)

        _, submitted = await asyncio.gather(
            desk.click(card, "approve", people.ADA), desk.slack.submit(people.BEN, {"choice": "stop"})
        )

        await desk.slack.wait_for(lambda _: desk.texts(ts))
        [fact] = await desk.facts(ts, HITLSubmitted)
        assert len(change.runs) == (fact.by == people.ADA)
        if fact.by == people.ADA:
            assert submitted.ok
            assert "decided this already" in str(desk.slack.views(people.BEN)[-1]["blocks"])
        else:
            await desk.told(people.ADA, "has decided this already")


async def test_a_double_click_and_a_redelivered_one_run_it_once(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)

        answers = await asyncio.gather(*(desk.click(card, "approve") for _ in range(4)))

        assert all(answer.ok for answer in answers)
        await desk.answer(ts, "done")
        assert len(change.runs) == 1
        assert len(await desk.facts(ts, HITLSubmitted)) == 1


async def test_a_late_click_is_answered_in_private_and_the_card_is_as_it_was(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await desk.click(card, "approve")
        await desk.answer(ts, "done")
        await desk.settled()
        before = reading(desk.cards(ts)[0])

        late = await desk.click(card, "approve", force=True)

        assert late.ok
        await desk.told(people.ADA, "has decided this already, or it is over")
        await desk.settled()
        assert reading(desk.cards(ts)[0]) == before
        assert len(change.runs) == 1


@pytest.mark.parametrize("action", ["approve", "reject", "edit", "view"])
async def test_a_guest_who_clicks_a_decided_card_learns_that_it_is_decided_and_no_more(
    tmp_path: Path, action: str
) -> None:
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await desk.click(card, "approve")
        await desk.answer(ts, "done")
        await desk.settled()
        updates = desk.calls("chat.update")

        value = value_of(card, "approve")
        assert (await desk.click(card, action, people.GIL, value=value, force=True)).ok

        [told] = await desk.slack.wait_for(lambda _: desk.notices(people.GIL))
        assert told == (words.GUEST if action == "view" else words.LATE)
        await desk.settled()
        assert desk.slack.views(people.GIL) == []
        assert desk.calls("chat.update") == updates


async def test_a_guests_word_learns_not_even_which_ids_there_are(tmp_path: Path) -> None:
    model = ScriptedModel([call("change", a=1), call("change", a=2)], "done")
    async with Desk(tmp_path, model, [RecordingTool("change")]) as desk:
        ts = await desk.ask("change both")
        second = await desk.card(ts, 2)

        await desk.say(f"!approve {second['text'].rpartition('#')[2][:6]}", people.GIL, thread=ts)
        await desk.say("!approve 000000", people.GIL, thread=ts)

        await desk.slack.wait_for(lambda _: len(desk.notices(people.GIL)) == 2)
        assert desk.notices(people.GIL) == [words.GUEST] * 2


async def test_a_form_that_is_submitted_late_says_so_in_its_place(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")]) as desk:
        await desk.late_form()

        assert (await desk.slack.submit(people.ADA, {"choice": "stop"})).ok

        assert "has decided this already" in str(desk.slack.views(people.ADA)[-1]["blocks"])


@pytest.mark.parametrize("value", ["", "nonsense", "c1|" + "0" * 64, "|", "x" * 2_000, "c1|" + "g" * 64])
async def test_a_value_that_names_no_task_is_logged_and_answered(
    tmp_path: Path, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)

        with caplog.at_level(logging.WARNING):
            assert (await desk.click(card, "approve", value=value)).ok

        await desk.slack.wait_for(lambda _: desk.notices(people.ADA))
        assert [r for r in caplog.records if r.name.startswith("bot") and r.levelno == logging.WARNING]
        await desk.settled()
        assert reading(desk.cards(ts)[0]) == reading(card)
        assert change.runs == []
        await desk.click(card, "approve")
        await desk.answer(ts, "done")


async def test_the_fingerprint_of_another_thread_decides_nothing(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel(call("change", a=1), "done")
    async with Desk(tmp_path, model, [change]) as desk:
        here, there = await desk.ask("change it"), await desk.ask("and here")
        card, other = await desk.card(here), await desk.card(there)

        await desk.click(card, "approve", value=value_of(other, "approve"))

        await desk.told(people.ADA, "There is no such task in this thread")
        assert change.runs == []


async def test_a_click_on_another_message_of_ours_that_names_the_task_decides_nothing(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel([call("change", a=1), call("change", a=2)], "done")
    async with Desk(tmp_path, model, [change]) as desk:
        ts = await desk.ask("change it")
        second = await desk.card(ts, 2)
        first = desk.cards(ts)[0]

        await desk.click(first, "approve", value=value_of(second, "approve"))

        await desk.told(people.ADA, "There is no such task in this thread")
        assert await desk.facts(ts, HITLSubmitted) == []


async def test_a_click_for_another_app_is_dropped(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)

        await desk.click(card, "approve", api_app_id="A0SOMEBODY")

        await desk.settled()
        assert await desk.facts(ts, HITLSubmitted) == []
        assert buttons(desk.cards(ts)[0]) == buttons(card)


async def test_a_click_whose_team_differs_from_that_of_the_message_counts(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change]) as desk:
        ts = await desk.ask("change it")

        await desk.click(await desk.card(ts), "approve", team_id="T0PARTNER1")

        await desk.answer(ts, "done")
        assert len(change.runs) == 1


async def test_a_click_that_is_quicker_than_the_answer_to_our_own_post_counts(tmp_path: Path) -> None:
    change = RecordingTool("change")
    model = ScriptedModel(call("change", a=1), "done")
    async with Desk(tmp_path, model, [change], clock=clock_of_today()) as desk:
        desk.slack.fail("chat.postMessage", after_effect=True)  # it stands there, and we do not know it
        ts = await desk.ask("change it")
        card = await desk.card(ts)

        await desk.click(card, "approve")

        await change.started.reach(1)
        assert len(await desk.facts(ts, ToolCallStart)) == 1
        await desk.passing(lambda _: [one for one in desk.thread(ts) if one["text"] == "done"])
        assert len(desk.cards(ts)) == 1
        assert "Approved by" in reading(await desk.card(ts, showing="Approved by"))


async def test_a_card_whose_click_is_quicker_than_the_answer_to_its_post_is_put_on_record_once(tmp_path: Path) -> None:
    async with Desk(
        tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")], clock=clock_of_today()
    ) as desk:
        post, answered = desk.bot.api.post, asyncio.Event()

        async def slow(*message: Any) -> str:
            ts = await post(*message)
            await answered.wait()
            return ts

        desk.bot.api.post = slow  # type: ignore[method-assign]
        ts = await desk.ask("change it")
        await desk.click(await desk.card(ts), "approve")
        answered.set()

        await desk.answer(ts, "done")
        await desk.settled()
        facts = await desk.bot.store.read(show(desk.session(ts)))
        posted = [fact for fact in facts if isinstance(fact, Posted) and fact.post.startswith("card:")]
        assert [fact.revision for fact in posted] == [0, 1]


async def test_a_decision_that_cannot_be_stored_leaves_the_buttons_and_says_so(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        store = desk.bot.store
        real = store.append

        async def failing(session_id: str, *args: object, **how: object) -> object:
            if session_id.startswith("slack:"):
                raise StoreError("the disk is full")
            return await real(session_id, *args, **how)  # type: ignore[arg-type]

        store.append = failing  # type: ignore[method-assign,assignment]
        await desk.click(card, "approve")
        await desk.told(people.ADA, "That did not work, and nothing was decided")
        store.append = real  # type: ignore[method-assign]
        assert buttons(desk.cards(ts)[0]) == buttons(card)

        await desk.click(card, "approve")
        await desk.answer(ts, "done")
        assert len(change.runs) == 1


async def test_a_word_about_a_task_that_is_over_is_told_so(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await desk.click(card, "approve")
        await desk.answer(ts, "done")

        await desk.say(f"!approve {card['text'].rpartition('#')[2][:6]}", thread=ts)
        await desk.say("!approve 000000", thread=ts)

        await desk.told(people.ADA, words.LATE)
        await desk.told(people.ADA, words.UNKNOWN)


async def test_a_card_that_a_stop_closed_names_who_stopped_as_a_person(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")]) as desk:
        ts = await desk.ask("change it")
        await desk.card(ts)
        await desk.say("!stop", thread=ts)

        closed = await desk.card(ts, showing="stopped the run")
        assert f"<@{people.ADA}> stopped the run" in reading(closed)
        assert people.ADA not in reading(closed).replace(f"<@{people.ADA}>", "")
