"""What Slack delivers twice, late, out of order, or for others: one message is one prompt, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.local import people
from harness_core.events import Prompted, RunStart
from harness_core.ports import ModelRequest
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, clock_of_today


def heard(request: ModelRequest) -> str:
    """All that people said since the model spoke last."""
    said: list[str] = []
    for message in reversed(request.messages):
        if message.role != "user":
            break
        said.insert(0, message.content)
    return "I heard: " + " / ".join(said)


async def quiet(desk: Desk) -> None:
    """Everything delivered so far is acknowledged and carried out."""
    await desk.slack.wait_for(lambda s: not s.world.hub.pending)
    await desk.settled()


@pytest.mark.parametrize("order", [1, -1], ids=["the message first", "the mention first"])
@pytest.mark.parametrize("apart", [False, True], ids=["at once", "one after the other"])
async def test_a_mention_that_comes_as_itself_and_as_a_message_is_one_prompt(
    tmp_path: Path, order: int, apart: bool
) -> None:
    async with Desk(tmp_path, ScriptedModel(heard, heard), []) as desk:
        await desk.bot.stop()
        ts = await desk.ask("hello")
        payloads = [record["payload"] for record in desk.slack.world.hub.pending.values()]
        assert {payload["event"]["type"] for payload in payloads} == {"message", "app_mention"}
        desk.slack.world.hub.clear()
        desk.local.bot = desk.local.made()
        await desk.bot.start()

        for payload in payloads[::order]:
            desk.slack.world.hub.offer("events_api", payload, accepts=False)
            if apart:
                await quiet(desk)

        assert await desk.answer(ts, "I heard") == "I heard: hello"
        await quiet(desk)
        assert len(await desk.facts(ts, Prompted)) == 1
        assert len(desk.thread(ts)) == 1


@pytest.mark.parametrize("later", [6 * 60.0, 23 * 3_600.0], ids=["after six minutes", "after 23 hours"])
@pytest.mark.parametrize("restart", [False, True], ids=["the same process", "another process"])
async def test_a_message_that_is_delivered_again_while_it_waits_and_after_is_one_turn(
    tmp_path: Path, later: float, restart: bool
) -> None:
    async def again() -> None:
        if restart:
            await desk.reborn()
        desk.clock.advance(later)
        assert desk.slack.replay(ts) == 2
        await quiet(desk)

    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change], clock=clock_of_today()) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await again()
        await desk.click(card, "approve")
        await desk.answer(ts, "done")
        await again()

        assert len(await desk.facts(ts, Prompted)) == 1
        assert len(await desk.facts(ts, RunStart)) == 2  # begun, and gone on with
        assert len(change.runs) == 1
        assert len(desk.thread(ts)) == 2
        assert desk.notices(people.ADA) == []


async def test_one_message_that_two_processes_get_at_the_same_moment_is_one_turn(tmp_path: Path) -> None:
    model = ScriptedModel(heard, heard)
    async with Desk(tmp_path, model, []) as desk:
        await desk.bot.stop()
        ts = await desk.ask("hello")
        before = len(desk.slack.log)
        desk.local.bot, other = desk.local.made(), desk.local.made()
        await desk.bot.start()
        async with other:
            await desk.slack.wait_for(lambda s: s.connections == 2)
            desk.slack.redeliver_now()
            desk.slack.replay(ts)
            desk.slack.replay(ts)
            await desk.slack.wait_for(
                lambda s: len({entry["socket"] for entry in s.log[before:] if entry["kind"] == "sent"}) == 2
            )

            assert await desk.answer(ts, "I heard") == "I heard: hello"
            await quiet(desk)
            await other.engine.idle()
            await other.presenter.idle()
            assert len(await desk.facts(ts, Prompted)) == 1
            assert len(model.requests) == 1
            assert desk.texts(ts) == ["I heard: hello"]


async def test_an_event_whose_first_delivery_was_lost_counts_when_it_is_tried_again(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        await desk.bot.stop()
        ts = await desk.ask("hello")
        desk.local.bot = desk.local.made()
        await desk.bot.start()

        await desk.answer(ts, "done")


async def connected_anew(desk: Desk, times: int) -> None:
    """The bot has connected so many times, and let go of what it had before."""
    await desk.slack.wait_for(lambda s: [entry["kind"] for entry in s.log].count("connected") == times)
    await desk.slack.wait_for(lambda s: s.connections == 1)


@pytest.mark.parametrize("reason", ["refresh_requested", "warning", "cut"])
async def test_a_connection_that_ends_loses_nothing(tmp_path: Path, reason: str) -> None:
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")]) as desk:
        desk.slack.disconnect(reason)
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await connected_anew(desk, 2)
        desk.slack.disconnect(reason)
        await connected_anew(desk, 3)

        assert (await desk.click(card, "approve")).ok

        await desk.answer(ts, "done")
        assert len(await desk.facts(ts, Prompted)) == 1


# -- who is meant ------------------------------------------------------------------------------------------------------


async def test_the_bots_own_messages_and_updates_start_nothing(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")]) as desk:
        ts = await desk.ask("change it")
        await desk.click(await desk.card(ts), "approve")
        await desk.answer(ts, "done")
        await desk.card(ts, showing="ran")
        await quiet(desk)

        assert len(await desk.bot.store.sessions("slack:")) == 1
        assert len(await desk.facts(ts, Prompted)) == 1


async def test_other_bots_start_nothing_and_are_not_answered(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        alone = await desk.slack.say(people.OTHER_BOT, people.GENERAL, f"<@{people.BOT_USER}> hello", as_bot=True)
        hook = await desk.slack.notice(people.OTHER_BOT, people.GENERAL, "bot_message", f"<@{people.BOT_USER}> hi")
        ts = await desk.ask("hello")
        await desk.answer(ts, "done")
        for _ in range(10):
            text = f"<@{people.BOT_USER}> thank you"
            await desk.slack.say(people.OTHER_BOT, people.GENERAL, text, ts, as_bot=True)
            await quiet(desk)

        assert desk.texts(ts) == ["done"]
        assert desk.thread(alone["ts"]) == []
        assert list(await desk.bot.store.sessions("slack:")) == [desk.session(ts)]
        assert hook["ts"] != ts


async def test_slack_itself_is_nobody(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        channel = people.direct_id(people.ADA)
        message = await desk.slack.say(people.SLACK, channel, "Your trial ends", force=True)
        for subtype in ("channel_join", "channel_topic"):
            await desk.slack.notice(people.ADA, people.GENERAL, subtype, f"<@{people.BOT_USER}> is here")
        await quiet(desk)

        assert list(await desk.bot.store.sessions("slack:")) == []
        assert desk.thread(message["ts"], channel) == []


async def test_the_requesters_replies_need_no_mention_and_those_of_others_do(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(*[heard] * 9), []) as desk:
        ts = await desk.ask("hello", people.BEN)
        await desk.answer(ts, "I heard: hello")
        await desk.say("nobody asked you", people.CLEO, thread=ts)
        await desk.say("go on", people.BEN, thread=ts)
        await desk.answer(ts, "I heard: go on")
        await desk.say("@cleo what do you think?", people.BEN, thread=ts)
        await desk.say("@ben I think so", people.CLEO, thread=ts)
        await quiet(desk)
        await desk.ask("and me?", people.CLEO, thread=ts)

        await desk.answer(ts, "I heard: and me?")
        await desk.say("now mine count too", people.CLEO, thread=ts)
        await desk.answer(ts, "I heard: now mine count too")
        assert len(desk.texts(ts)) == 4


async def test_a_reply_in_a_thread_that_is_not_the_bots_is_not_kept(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        root = await desk.say("lunch?", people.BEN)
        await desk.say("yes", people.ADA, thread=root)
        await quiet(desk)

        assert list(await desk.bot.store.sessions("")) == []


async def test_two_channels_with_the_same_timestamp_are_two_sessions(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(heard), []) as desk:
        stamps = desk.slack.world.stamps
        ts = await desk.ask("in general")
        stamps._last -= 1  # the next message gets the same timestamp
        stamps._clock = lambda: 0.0
        other = await desk.ask("in ops", channel=people.OPS)
        assert ts == other

        assert await desk.answer(ts, "I heard") == "I heard: in general"
        assert await desk.answer(ts, "I heard", people.OPS) == "I heard: in ops"


async def test_a_file_without_words_and_one_with_words_count(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(heard, heard), []) as desk:
        message = await desk.slack.say(people.ADA, people.GENERAL, "@harness look", files=[{"name": "plan.txt"}])
        ts = message["ts"]
        await desk.answer(ts, "I heard")
        await desk.slack.say(people.ADA, people.GENERAL, "", ts, files=[{"name": "more.csv"}])

        await desk.slack.wait_for(lambda _: len(desk.texts(ts)) == 2)
        first, second = desk.texts(ts)
        assert 'look\n(files: "plan.txt" — not readable here)' in first
        assert '(files: "more.csv" — not readable here)' in second
        assert [fact.files for fact in await desk.facts(ts, Prompted)] == [("plan.txt",), ("more.csv",)]
