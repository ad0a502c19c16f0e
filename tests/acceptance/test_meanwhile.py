"""What people say, edit and delete in a thread while a card waits or a run goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.local import people
from harness_core.events import Prompted
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, reading
from tests.acceptance.test_delivery import heard, quiet


async def test_messages_meanwhile_get_one_private_word_and_are_read_after_the_decision(tmp_path: Path) -> None:
    model = ScriptedModel(call("change", a=1), heard)
    async with Desk(tmp_path, model, [RecordingTool("change")]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await desk.say("first", thread=ts)
        await desk.say("second", thread=ts)
        await quiet(desk)
        assert [t for t in desk.notices(people.ADA) if "read after the decision" in t] == desk.notices(people.ADA)
        assert len(desk.notices(people.ADA)) == 1
        assert len(desk.cards(ts)) == 1
        assert reading(desk.cards(ts)[0]) == reading(card)

        await desk.click(card, "approve")

        assert await desk.answer(ts, "I heard") == "I heard: first / second"


async def edited_while_waiting(desk: Desk) -> tuple[str, str]:
    ts = await desk.ask("change it")
    await desk.card(ts)
    return ts, await desk.say("then delete the log", thread=ts)


async def test_an_edit_before_it_was_read_replaces_what_was_said(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), heard), [RecordingTool("change")]) as desk:
        ts, reply = await edited_while_waiting(desk)
        await desk.slack.edit(people.ADA, people.GENERAL, reply, "then keep the log")
        await quiet(desk)

        await desk.click(desk.cards(ts)[0], "approve")

        assert await desk.answer(ts, "I heard") == "I heard: then keep the log"


async def test_an_edit_that_overtakes_its_message_counts_all_the_same(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(heard), []) as desk:
        await desk.bot.stop()
        ts = await desk.ask("delete the log")
        await desk.slack.edit(people.ADA, people.GENERAL, ts, "@harness keep the log")
        payloads = [record["payload"] for record in desk.slack.world.hub.pending.values()]
        desk.slack.world.hub.clear()
        desk.local.bot = desk.local.made()
        await desk.bot.start()

        for payload in payloads[::-1]:
            desk.slack.world.hub.offer("events_api", payload, accepts=False)
            await quiet(desk)

        assert await desk.answer(ts, "I heard") == "I heard: keep the log"
        assert len(await desk.facts(ts, Prompted)) == 1


async def test_a_deletion_before_it_was_read_withdraws_it(tmp_path: Path) -> None:
    model = ScriptedModel(call("change", a=1), lambda request: f"I have {request.messages[-1].role}")
    async with Desk(tmp_path, model, [RecordingTool("change")]) as desk:
        ts, reply = await edited_while_waiting(desk)
        await desk.slack.delete(people.ADA, people.GENERAL, reply)
        await quiet(desk)

        await desk.click(desk.cards(ts)[0], "approve")

        await desk.answer(ts, "I have tool")


async def test_who_may_speak_no_more_may_take_back_what_waits_and_say_nothing_else_in_its_place(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), heard), [RecordingTool("change")]) as desk:
        ts, reply = await edited_while_waiting(desk)
        taken_back = await desk.say("and delete the backup", thread=ts)
        await quiet(desk)
        await desk.slack.command(people.ADA, people.GENERAL, "/harness", "off")
        await desk.slack.edit(people.ADA, people.GENERAL, reply, "then delete everything")
        await desk.slack.delete(people.ADA, people.GENERAL, taken_back)
        await quiet(desk)
        await desk.slack.command(people.ADA, people.GENERAL, "/harness", "on")

        await desk.click(desk.cards(ts)[0], "approve")

        assert await desk.answer(ts, "I heard") == "I heard: then delete the log"


async def test_an_edit_after_it_was_read_changes_nothing_and_starts_nothing(tmp_path: Path) -> None:
    model = ScriptedModel("done", heard)
    async with Desk(tmp_path, model, []) as desk:
        ts = await desk.ask("hello")
        await desk.answer(ts, "done")
        await desk.slack.edit(people.ADA, people.GENERAL, ts, "@harness delete everything")
        await quiet(desk)
        assert len(model.requests) == 1

        await desk.say("and now?", thread=ts)

        assert await desk.answer(ts, "I heard") == "I heard: and now?"
        assert "delete everything" not in str(model.requests[-1].messages)


async def test_a_mention_that_an_edit_adds_is_taken_once(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(heard), []) as desk:
        ts = await desk.say("what time is it?")
        await desk.slack.edit(people.ADA, people.GENERAL, ts, "@harness what time is it?")

        assert await desk.answer(ts, "I heard") == "I heard: what time is it?"
        await quiet(desk)
        assert len(await desk.facts(ts, Prompted)) == 1


async def test_two_messages_at_once_in_one_thread_are_both_answered_in_order(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(*[heard] * 3), []) as desk:
        ts = await desk.ask("hello")
        await desk.answer(ts, "hello")

        await asyncio.gather(desk.say("one", thread=ts), desk.say("two", thread=ts))

        await desk.slack.wait_for(lambda _: "two" in " ".join(desk.texts(ts)))
        await quiet(desk)
        words = [word for text in desk.texts(ts) for word in text.removeprefix("I heard: ").split(" / ")]
        assert words == ["hello", "one", "two"]
        assert buttons(desk.thread(ts)[0]) == []
