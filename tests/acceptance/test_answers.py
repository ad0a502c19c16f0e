"""What the agent says at the end, and the small signs until then."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.local import people
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, clock_of_today, reading

LONG = "\n\n".join(
    [
        "# A report",
        "**Bold** and <!channel> and a & b",
        "```python\n" + "x = '<b>'  # a line\n" * 400 + "```",
        "The end.",
    ]
)


async def test_a_long_answer_comes_in_parts_with_balanced_fences_and_nothing_lost(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(LONG), []) as desk:
        ts = await desk.ask("report")
        await desk.answer(ts, "The end.")

        sent = [c.arguments["text"] for c in desk.slack.calls if c.method == "chat.postMessage"]
        assert len(sent) == len(desk.thread(ts)) >= 3
        assert all(len(text) <= 4_000 for text in sent)
        assert all(text.count("```") % 2 == 0 for text in sent)
        assert sum(text.count("x = '&lt;b&gt;'  # a line") for text in sent) == 400
        assert "*Bold* and &lt;!channel&gt; and a &amp; b" in sent[0]
        assert all("<!channel>" not in text for text in sent)


async def test_an_answer_is_no_card_whatever_it_says(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("*Run a shell command?* [Approve](https://evil.example)"), []) as desk:
        ts = await desk.ask("hello")
        await desk.answer(ts, "Run a shell command?")

        [sent] = [c.arguments for c in desk.slack.calls if c.method == "chat.postMessage"]
        assert "blocks" not in sent
        assert sent["unfurl_links"] is False
        assert sent["unfurl_media"] is False
        assert "evil.example" in sent["text"]


async def test_an_answer_that_comes_late_mentions_who_asked(tmp_path: Path) -> None:
    async with Desk(
        tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")], clock=clock_of_today()
    ) as desk:
        ts = await desk.ask("change it", people.BEN)
        card = await desk.card(ts)
        desk.clock.advance(6 * 60)  # the bot's clock stands still since before the message was sent
        await desk.click(card, "approve")

        assert await desk.answer(ts, "done") == f"<@{people.BEN}> done"


async def test_an_answer_that_comes_soon_mentions_nobody(tmp_path: Path) -> None:
    async with Desk(
        tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")], clock=clock_of_today()
    ) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        desk.clock.advance(4 * 60)
        await desk.click(card, "approve")

        assert await desk.answer(ts, "done") == "done"


async def test_an_empty_answer_is_told_to_be_one(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(call("look"), ""), [RecordingTool("look", read_only=True)]) as desk:
        ts = await desk.ask("look")

        await desk.slack.wait_for(lambda _: desk.texts(ts))


async def test_a_model_that_fails_is_told_in_the_thread(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(ValueError("no such <thing>")), [], clock=clock_of_today()) as desk:
        ts = await desk.ask("hello")

        await desk.passing(lambda _: desk.texts(ts), 30.0)
        assert "<thing>" not in desk.texts(ts)[0]


async def test_an_answer_is_shown_though_another_message_came_in_while_it_was_made(tmp_path: Path) -> None:
    gate = asyncio.Event()
    model = ScriptedModel("one", "two", hold=gate)
    async with Desk(tmp_path, model, []) as desk:
        ts = await desk.ask("first")
        await model.asked.reach(1)
        await desk.say("second", thread=ts)
        await desk.told(people.ADA, "read as soon as")

        gate.set()

        await desk.answer(ts, "two")
        assert desk.texts(ts) == ["one", "two"]


async def test_a_message_shows_eyes_once_it_is_seen_and_an_hourglass_while_it_waits(tmp_path: Path) -> None:
    gate = asyncio.Event()
    model = ScriptedModel(call("change", a=1), "done", hold=gate)
    async with Desk(tmp_path, model, [RecordingTool("change")], clock=clock_of_today()) as desk:
        ts = await desk.ask("change it")
        await model.asked.reach(1)
        await desk.passing(lambda _: desk.reactions(ts) == ["eyes"], 1.0)

        gate.set()
        card = await desk.card(ts)
        assert desk.reactions(ts) == ["eyes"]
        await desk.passing(lambda _: desk.reactions(ts) == ["eyes", "hourglass_flowing_sand"], 1.0)
        await desk.click(card, "approve")
        await desk.answer(ts, "done")

        await desk.passing(lambda _: desk.reactions(ts) == ["eyes"], 1.0)


async def test_a_quick_answer_costs_no_reaction(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), [], clock=clock_of_today()) as desk:
        ts = await desk.ask("hello")
        await desk.answer(ts, "done")
        await desk.settled()

        desk.clock.advance(10.0)
        await desk.settled()

        assert desk.calls("reactions.add") == 0


async def test_reactions_that_slack_does_not_take_delay_nothing(tmp_path: Path) -> None:
    async with Desk(
        tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")], clock=clock_of_today()
    ) as desk:
        gate = desk.slack.hold("reactions.add")
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        desk.clock.advance(2.0)

        await desk.click(card, "approve")

        await desk.answer(ts, "done")
        await desk.card(ts, showing="ran")
        gate.set()
        await desk.passing(lambda _: desk.reactions(ts) == [], 1.0)


async def test_where_reactions_are_not_allowed_everything_else_works(tmp_path: Path) -> None:
    async with Desk(
        tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")], clock=clock_of_today()
    ) as desk:
        desk.slack.fail("reactions.add", error="missing_scope", times=99)
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await desk.passing(lambda _: desk.calls("reactions.add"), 1.0)
        await desk.click(card, "approve")
        await desk.answer(ts, "done")
        await desk.card(ts, showing="ran")
        await desk.passing(lambda _: not desk.bot.presenter._tasks and not desk.bot.presenter._moods._tasks, 1.0)

        posts = await desk.bot.presenter.board.posts(desk.session(ts))
        assert posts.upto == await desk.bot.store.last_seq(desk.session(ts))  # shown for good


async def test_a_queued_prompt_takes_the_sign_over(tmp_path: Path) -> None:
    gate = asyncio.Event()
    model = ScriptedModel(call("change", a=1), "one", "two", hold=gate)
    gate.set()
    async with Desk(tmp_path, model, [RecordingTool("change")], clock=clock_of_today()) as desk:
        ts = await desk.ask("first")
        card = await desk.card(ts)
        await desk.passing(lambda _: desk.reactions(ts) == ["hourglass_flowing_sand"], 1.0)
        second = await desk.ask("second", people.BEN, thread=ts)
        await desk.told(people.BEN, "read after the decision")

        await desk.click(card, "approve")

        await desk.answer(ts, "one")
        await desk.passing(lambda _: desk.reactions(ts) == [], 1.0)
        assert desk.reactions(second) == []
        assert "ran" in reading(await desk.card(ts, showing="ran"))
