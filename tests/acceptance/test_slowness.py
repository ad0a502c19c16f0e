"""Where Slack is slow to answer us, it is answered in time all the same; a socket that is silent is opened anew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from bot.local import people
from bot.pace import BURST, Urgency
from bot.people import PLACE_SECONDS
from bot.slack_api import SlackApi
from harness_core.events import HITLSubmitted, Prompted
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import CHANNEL, Desk, buttons, clock_of_today, reading
from tests.engine.harness import until

ACK = 0.2  # seconds that the bot takes for long, so that no test has to wait for what Slack takes for long


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.listeners.ACK_BY", ACK)


def said(caplog: pytest.LogCaptureFixture, text: str) -> Callable[[], Awaitable[bool]]:
    async def is_said() -> bool:
        return any(text in record.getMessage() for record in caplog.records)

    return is_said


async def pong_of(desk: Desk, moment: float) -> bool:
    return desk.bot.wire._client.last_ping_pong_time == moment


def connected(desk: Desk) -> int:
    return sum(entry["kind"] == "connected" for entry in desk.slack.log)


async def slowly_rejected(desk: Desk) -> tuple[str, asyncio.Event]:
    """Ask, and submit the form of a reject while Slack says nothing about who did: the thread, and what lets it."""
    ts = await desk.ask("change it")
    await desk.click(await desk.card(ts), "reject")
    await desk.form()
    gate = desk.slack.hold("users.info")
    desk.clock.advance(PLACE_SECONDS)  # what was known of everybody is old
    assert (await desk.slack.submit(people.ADA, {"choice": "stop"})).ok
    return ts, gate


@pytest.mark.usefixtures("impatient")
async def test_a_form_is_answered_in_time_and_decides_later(tmp_path: Path) -> None:
    async with Desk(
        tmp_path, ScriptedModel(call("change", a=1)), [RecordingTool("change")], clock=clock_of_today()
    ) as desk:
        ts, gate = await slowly_rejected(desk)

        assert "still at it" in reading(desk.slack.views(people.ADA)[-1])
        assert await desk.facts(ts, HITLSubmitted) == []
        gate.set()
        await desk.answer(ts, "rejected it, so I stopped here")


@pytest.mark.usefixtures("impatient")
async def test_a_form_that_was_answered_in_time_and_came_too_late_says_so_in_private(tmp_path: Path) -> None:
    async with Desk(
        tmp_path, ScriptedModel(call("change", a=1)), [RecordingTool("change")], clock=clock_of_today()
    ) as desk:
        ts, gate = await slowly_rejected(desk)

        await desk.bot.engine.stop(desk.session(ts), by=people.ADA)
        await desk.answer(ts, "stopped this run")
        gate.set()

        await desk.told(people.ADA, "decided this already, or it is over")


@pytest.mark.usefixtures("impatient")
async def test_a_command_is_answered_in_time_and_again_when_it_is_done(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), [], clock=clock_of_today()) as desk:
        gate = desk.slack.hold("users.info")
        desk.clock.advance(PLACE_SECONDS)

        answer = await desk.slack.command(people.ADA, people.GENERAL, "/harness", "off")

        assert answer.ok
        assert "still at it" in str(answer.payload)
        gate.set()
        await desk.told(people.ADA, "switched off in this channel")


async def test_another_listener_on_the_same_token_is_pointed_out_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk, aiohttp.ClientSession() as session:
        await desk.slack.wait_for(lambda s: s.connections == 1)
        assert not [r for r in caplog.records if "another process listens" in r.getMessage()]
        await desk.bot.stop()
        api = SlackApi(desk.slack.app_token, desk.slack.api_url)
        async with session.ws_connect(await api.socket_address()):
            await api.close()
            with caplog.at_level(logging.WARNING, "bot.wire"):
                desk.local.bot = desk.local.made()
                await desk.bot.start()
                await desk.slack.wait_for(lambda s: s.connections == 2)
                await until(said(caplog, "counts 1 more connection of this app"))


class Today:
    """The time as the client of the socket is told it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def time(self) -> float:
        return self.now


async def test_a_socket_without_pongs_is_dead_and_opened_anew_and_a_quiet_one_with_them_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = Today()
    monkeypatch.setattr("slack_sdk.socket_mode.aiohttp.time", today)
    monkeypatch.setattr("bot.app.PING", 0.1)  # it pings by the real time, and judges by what it is told
    async with Desk(tmp_path, ScriptedModel("done"), [], clock=clock_of_today()) as desk:
        for _ in range(2):  # the first ping counts as answered when it is sent
            today.now += 0.5
            await until(lambda: pong_of(desk, today.now))
        assert await desk.bot.wire.alive()
        assert connected(desk) == 1

        desk.slack.world.hub.sockets[0].response._autoping = False  # it stays open, and answers no more
        today.now += 60.0
        await desk.slack.wait_for(lambda _: connected(desk) == 2)

        ts = await desk.ask("hello")
        await desk.answer(ts, "done")
        assert await desk.bot.wire.alive()


async def test_a_socket_that_died_is_told_in_the_log_once_and_so_is_its_return(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), [], clock=clock_of_today()) as desk:
        client = desk.bot.wire._client
        before, client.last_ping_pong_time = client.last_ping_pong_time, 1.0
        for _ in range(3):
            await desk.bot.wire.look()
        client.last_ping_pong_time = before
        for _ in range(3):
            await desk.bot.wire.look()

        assert [r.getMessage()[:17] for r in caplog.records if r.name == "bot.wire"] == [
            "Slack is not hear",
            "Slack is heard ag",
        ]


async def test_a_connection_that_is_dropped_once_is_opened_once(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done", "done"), []) as desk:
        desk.slack.disconnect("cut")
        await desk.slack.wait_for(lambda _: connected(desk) == 2)

        ts = await desk.ask("hello")

        await desk.answer(ts, "done")
        assert connected(desk) == 2
        assert len(await desk.facts(ts, Prompted)) == 1


@pytest.mark.parametrize("busy", ["our own pace", "Slack's word"])
async def test_a_decision_is_shown_though_the_channel_is_too_busy_for_the_next_card(
    tmp_path: Path, busy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.pace.PER_SECOND", 0.001)
    model = ScriptedModel([call("change", a=1), call("change", a=2)], "done")
    async with Desk(tmp_path, model, [RecordingTool("change")], clock=clock_of_today()) as desk:
        for _ in range(BURST - 1):
            await desk.bot.api.turn(CHANNEL, Urgency.PROGRESS)
        ts = await desk.ask("change both")
        card = await desk.card(ts)
        if busy == "Slack's word":
            desk.slack.fail("chat.postMessage", retry_after=60)
            monkeypatch.setattr("bot.pace.PER_SECOND", 1_000.0)
            desk.bot.api.turn(CHANNEL, Urgency.PROGRESS)  # which lets in who waits
            await desk.slack.wait_for(lambda s: [c for c in s.calls if c.method == "chat.postMessage" and not c.ok])

        await desk.click(card, "approve")

        assert buttons(await desk.card(ts, showing="Approved by")) == []
        assert len(desk.cards(ts)) == 1
        assert desk.calls("conversations.replies") == 0
