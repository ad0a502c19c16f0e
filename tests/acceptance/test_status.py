"""Where Slack takes the status of an agent's thread: a run that works can be stopped, and one that waits says so."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.local import people
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import A_LITTLE, CHANNEL, Desk, clock_of_today
from tests.acceptance.test_quickness import known

TELL = "agents.sessions.setStatus"


def declared(tmp_path: Path, model: ScriptedModel) -> Desk:
    """A workspace that takes the app for an agent."""
    desk = Desk(tmp_path, model, [RecordingTool("change")], clock=clock_of_today())
    desk.slack.settings.agents = "ok"
    return desk


def status(desk: Desk, ts: str) -> str:
    return str(desk.slack.state()["sessions"].get(f"{CHANNEL}:{ts}", {}).get("session_status", ""))


async def shows(desk: Desk, ts: str, wanted: str) -> None:
    await desk.passing(lambda _: status(desk, ts) == wanted, A_LITTLE)


@asynccontextmanager
async def at_work(tmp_path: Path) -> AsyncIterator[tuple[Desk, str, asyncio.Event]]:
    """A desk, the message that it works on as Slack shows, and the gate that the model waits for."""
    gate = asyncio.Event()
    model = ScriptedModel("done", hold=gate)
    async with declared(tmp_path, model) as desk:
        ts = await desk.ask("go")
        await model.asked.reach(1)
        await shows(desk, ts, "processing")
        yield desk, ts, gate


async def pressed(desk: Desk, ts: str, at: str = "") -> None:
    """Somebody presses Slack's own stop button. at: when, if Slack tells it only now."""
    event = {
        "type": "agent_session_stopped",
        "channel": CHANNEL,
        "thread_ts": ts,
        "user": people.ADA,
        "event_ts": at or f"{time.time():.6f}",
    }
    desk.slack.world.emit(event, CHANNEL)


async def test_a_run_can_be_stopped_by_slacks_button_while_it_works_and_not_while_it_waits(tmp_path: Path) -> None:
    gate = asyncio.Event()
    model = ScriptedModel(call("change", a=1), "done", hold=gate)
    async with declared(tmp_path, model) as desk:
        await known(desk)
        before = len(desk.slack.calls)
        ts = await desk.ask("change it")
        await model.asked.reach(1)
        await shows(desk, ts, "processing")

        gate.set()
        card = await desk.card(ts)
        await shows(desk, ts, "suspended")
        await desk.click(card, "approve")
        await desk.answer(ts, "done")
        await shows(desk, ts, "active")
        desk.clock.advance(2.0)
        await desk.settled()

        assert desk.reactions(ts) == []
        made = desk.slack.calls[before:]
        assert len(made) <= 6, [one.method for one in made]


async def test_slacks_button_stops_the_run_and_goes_away(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (desk, ts, _):
        await pressed(desk, ts)

        await desk.answer(ts, "stopped this run")
        await shows(desk, ts, "active")


async def test_a_quick_answer_costs_no_status(tmp_path: Path) -> None:
    async with declared(tmp_path, ScriptedModel("done")) as desk:
        before = desk.calls(TELL)
        ts = await desk.ask("hello")
        await desk.answer(ts, "done")
        await desk.settled()
        desk.clock.advance(10.0)
        await desk.settled()

        assert desk.calls(TELL) == before


async def test_a_button_that_stayed_though_nothing_runs_goes_away_when_it_is_pressed(tmp_path: Path) -> None:
    async with declared(tmp_path, ScriptedModel("done")) as desk:
        ts = await desk.ask("hello")
        await desk.answer(ts, "done")
        desk.slack.world.sessions[f"{CHANNEL}:{ts}"] = {"session_status": "processing"}

        await pressed(desk, ts)

        await desk.told(people.ADA, "Nothing is running")
        await shows(desk, ts, "active")


async def test_a_run_that_another_process_takes_over_is_shown_to_its_end(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (desk, ts, gate):
        await desk.reborn()
        gate.set()

        await desk.answer(ts, "done")
        await shows(desk, ts, "active")


async def test_where_slack_takes_no_status_any_more_reactions_are_shown_and_it_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel(call("change", a=1), "done")
    with caplog.at_level(logging.WARNING):
        async with declared(tmp_path, model) as desk:
            desk.slack.fail(TELL, error="not_authorized", times=99)
            asked = [await desk.ask("change it") for _ in range(3)]  # at the same time
            for ts in asked:
                await desk.card(ts)
            for ts in asked:
                await desk.passing(lambda _, ts=ts: desk.reactions(ts) == ["hourglass_flowing_sand"], 1.0)  # type: ignore[misc]
    assert caplog.text.count("no stop button") == 1


async def test_a_press_of_slacks_button_that_is_told_late_stops_nothing_that_began_after_it(tmp_path: Path) -> None:
    gate = asyncio.Event()
    model = ScriptedModel("done", hold=gate)
    async with declared(tmp_path, model) as desk:
        ts = await desk.ask("go")
        await model.asked.reach(1)
        at = f"{time.time():.6f}"
        await pressed(desk, ts, at)
        await desk.answer(ts, "stopped this run")
        await desk.settled()

        await desk.ask("again", thread=ts)
        await model.asked.reach(2)
        await pressed(desk, ts, at)
        await pressed(desk, ts, at)
        await desk.slack.wait_for(lambda s: not s.world.hub.pending)
        gate.set()

        await desk.answer(ts, "done")


@pytest.mark.parametrize("wanted", ["processing", "suspended", "active"])
async def test_a_status_that_slack_did_not_take_for_a_while_is_told_again(tmp_path: Path, wanted: str) -> None:
    gate = asyncio.Event()
    model = ScriptedModel(call("change", a=1), "done", hold=gate)
    async with declared(tmp_path, model) as desk:

        def unreachable() -> None:
            desk.slack.fail(TELL, http_status=404)  # a proxy of somebody's: not a word of Slack's own

        if wanted == "processing":
            unreachable()
        ts = await desk.ask("change it")
        await model.asked.reach(1)
        await shows(desk, ts, "processing")
        if wanted == "suspended":
            unreachable()
        gate.set()
        card = await desk.card(ts)
        await shows(desk, ts, "suspended")
        if wanted == "active":
            unreachable()
        await desk.click(card, "approve")
        await desk.answer(ts, "done")
        await shows(desk, ts, "active")


async def test_a_thread_that_is_gone_takes_no_status_and_the_others_do_as_before(tmp_path: Path) -> None:
    gate = asyncio.Event()
    model = ScriptedModel("done", hold=gate)
    async with declared(tmp_path, model) as desk:
        desk.slack.fail(TELL, error="thread_not_found")
        gone = await desk.ask("go")
        await desk.passing(lambda _: desk.calls(TELL) == 1, 1.0)

        ts = await desk.ask("go")

        await shows(desk, ts, "processing")
        assert desk.reactions(gone) == desk.reactions(ts) == []
        gate.set()
        await desk.answer(ts, "done")
