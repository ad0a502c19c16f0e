"""Slack's slowness is not the agent's, a quick conversation costs few calls, and what was acknowledged is on disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.facts import CODEC
from bot.local import people
from harness_core.errors import StoreError
from harness_core.events import Event, Prompted
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import Milestones, RecordingTool, ScriptedModel, call
from tests.acceptance.desk import A_LITTLE, CHANNEL, Desk, buttons, clock_of_today, reading

EVERY = tuple(f"chat.{verb}" for verb in ("postMessage", "update", "postEphemeral"))
EVERY += (
    "users.info",
    "conversations.info",
    "conversations.replies",
    "views.open",
    "reactions.add",
    "reactions.remove",
)


@pytest.mark.parametrize("who", [people.ADA, people.CLEO], ids=["an administrator", "an approver who said nothing yet"])
async def test_a_click_runs_its_tool_while_slack_answers_nothing(tmp_path: Path, who: str) -> None:
    change = RecordingTool("change")
    model = ScriptedModel([call("change", a=1)], [call("look")], "done")
    look = RecordingTool("look", read_only=True)
    async with Desk(tmp_path, model, [change, look], approvers=frozenset({people.CLEO})) as desk:
        await known(desk)
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await desk.settled()
        gates = [desk.slack.hold(method) for method in EVERY]

        assert (await desk.click(card, "approve", who)).ok
        await change.started.reach(1)
        await desk.bot.engine.idle()

        assert len(look.runs) == 1
        assert desk.texts(ts) == []
        for gate in gates:
            gate.set()
        await desk.answer(ts, "done")
        await desk.card(ts, showing="ran")


async def test_a_form_that_slack_is_slow_to_open_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel([call("change", a=1), call("change", a=2)], "done"), [change]) as desk:
        ts = await desk.ask("change both")
        await desk.card(ts, 2)
        first, second = desk.cards(ts)
        gate = desk.slack.hold("views.open")
        opening = asyncio.ensure_future(desk.click(first, "edit"))
        await desk.slack.wait_for(lambda s: [entry for entry in s.log if entry["kind"] == "held"])

        assert (await desk.click(first, "approve")).ok
        assert (await desk.click(second, "approve")).ok

        await change.started.reach(2)
        assert not opening.done()
        gate.set()
        await opening


async def test_a_channel_that_slack_holds_up_does_not_hold_up_another(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        first = await desk.ask("one")
        await desk.answer(first, "done")
        desk.slack.fail("chat.postMessage", retry_after=60)
        second = await desk.ask("two")
        await desk.slack.wait_for(lambda s: [c for c in s.calls if c.error == "ratelimited"])

        third = await desk.ask("three", channel=people.OPS)

        await desk.answer(third, "done", people.OPS)
        assert desk.texts(second) == []


@pytest.mark.parametrize("idle", [0.0, 600.0], ids=["just started", "after ten minutes"])
@pytest.mark.parametrize("slow", [False, True], ids=["a quick model", "a slow model"])
async def test_a_cycle_at_the_speed_of_people_makes_six_calls_at_most_and_keeps_its_connections(
    tmp_path: Path, slow: bool, idle: float
) -> None:
    gate = asyncio.Event()
    model = ScriptedModel(call("change", a=1), "done", hold=gate)
    clock = clock_of_today()
    async with Desk(
        tmp_path, model, [RecordingTool("change")], approvers=frozenset({people.CLEO}), clock=clock
    ) as desk:
        await known(desk)
        clock.advance(idle)
        await known(desk)
        before = len(desk.slack.calls)

        ts = await desk.ask("change it", people.ADA if slow else people.BEN)
        if slow:
            await model.asked.reach(1)
            await desk.passing(lambda _: desk.reactions(ts) == ["eyes"], A_LITTLE)
        gate.set()
        card = await desk.card(ts)
        await desk.passing(lambda _: "hourglass_flowing_sand" in desk.reactions(ts), A_LITTLE)
        clock.advance(9.0)  # somebody reads, and thinks
        await desk.click(card, "approve")
        await desk.answer(ts, "done")
        await desk.card(ts, showing="ran")
        await desk.passing(lambda _: "hourglass_flowing_sand" not in desk.reactions(ts), A_LITTLE)
        clock.advance(2.0)
        await desk.settled()

        # Whether Slack takes a status is asked once in the life of a process.
        made = [c for c in desk.slack.calls[before:] if c.error != "not_authorized"]
        assert len(made) <= 6, [c.method for c in made]
        assert len({c.connection for c in made}) <= 2
        assert not [c for c in made if not c.ok]


async def known(desk: Desk) -> None:
    """The bot has looked up whom it will have to know."""
    access = await desk.bot.book.access()
    await desk.bot.directory.keep(access.admins | access.approvers, access.channels)


async def test_a_call_that_takes_its_time_is_shown_as_approved_meanwhile(tmp_path: Path) -> None:
    gate = asyncio.Event()
    change = RecordingTool("change", hold=gate)
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change], clock=clock_of_today()) as desk:
        ts = await desk.ask("change it")
        await desk.click(await desk.card(ts), "approve")
        await change.started.reach(1)
        await desk.settle_cards()
        assert desk.calls("chat.update") == 0

        desk.clock.advance(1.0)

        assert buttons(await desk.card(ts, showing="Approved by")) == []
        gate.set()
        await desk.card(ts, showing="ran")


async def test_a_large_batch_costs_a_few_updates_a_card_and_not_one_for_each_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.pace.PER_SECOND", 10_000.0)  # else twenty cards would take as many seconds
    many = 20
    model = ScriptedModel([call("change", n=n) for n in range(many)], "done")
    async with Desk(tmp_path, model, [RecordingTool("change")], clock=clock_of_today()) as desk:
        ts = await desk.ask("change them all")
        await desk.card(ts, many)
        for number, card in enumerate(desk.cards(ts), start=1):
            desk.clock.advance(3.0)
            await desk.click(card, "approve")
            if number < many:
                await desk.card(ts, number, showing=f"waits for {many - number} more")
            if number == 5:  # a card that waits says how far the others are
                await desk.slack.wait_for(
                    lambda _: [c for c in desk.cards(ts) if "decided · nothing runs" in reading(c)]
                )
        await desk.answer(ts, "done")
        await desk.passing(lambda _: all("ran" in reading(card) for card in desk.cards(ts)))

        counts = 5 + 3 * many / 3
        assert desk.calls("chat.update") <= many + many + counts, "decided, ran, and a bounded number of counts"


async def test_a_card_does_not_wait_for_what_people_are_looked_up_for(tmp_path: Path) -> None:
    async with Desk(
        tmp_path,
        ScriptedModel(call("change", a=1)),
        [RecordingTool("change")],
        approvers=frozenset({people.CLEO}),
        clock=clock_of_today(),
    ) as desk:
        await desk.ask("hello", people.BEN)
        await desk.slack.wait_for(lambda _: [c for c in desk.slack.calls if c.arguments.get("user") == people.BEN])
        desk.slack.hold("users.info")
        desk.clock.advance(50.0)  # those who decide are asked about again

        other = await desk.ask("hello", people.BEN)

        assert "please decide" in reading(await desk.card(other))


class Watched(SQLiteStore):
    """A store that notes how far Slack's log was when a prompt was stored, and that may fail."""

    seen: list[int]
    failed: Milestones
    desk: Desk
    failures = 0

    async def append(self, session_id: str, events: Any, **how: Any) -> tuple[Event, ...]:
        if isinstance(events, Prompted) and self.failures:
            self.failures -= 1
            self.failed.add()
            raise StoreError("the disk is full")
        stored = await super().append(session_id, events, **how)
        if isinstance(events, Prompted) and stored:
            self.seen.append(len(self.desk.slack.log))
        return stored


def watched(tmp_path: Path) -> tuple[Desk, Watched]:
    store = Watched(tmp_path / "harness.db", codec=CODEC)
    desk = Desk(tmp_path, ScriptedModel("done"), [], store=store)
    store.seen, store.failed, store.desk = [], Milestones(), desk
    return desk, store


async def test_a_message_is_on_disk_before_it_is_acknowledged(tmp_path: Path) -> None:
    desk, store = watched(tmp_path)
    async with desk:
        ts = await desk.ask("hello")
        await desk.answer(ts, "done")
        await desk.slack.wait_for(lambda s: len([e for e in s.log if e["kind"] == "ack"]) >= 2)

        acknowledged = [place for place, entry in enumerate(desk.slack.log) if entry["kind"] == "ack"]
        assert len(store.seen) == 1
        assert store.seen[0] <= acknowledged[0]
    await store.close()


async def test_a_message_that_could_not_be_stored_is_not_acknowledged_and_comes_again(tmp_path: Path) -> None:
    desk, store = watched(tmp_path)
    store.failures = 2  # the message, and its twin as a mention
    async with desk:
        ts = await desk.ask("hello")
        await store.failed.reach(2)
        assert desk.thread(ts) == []

        desk.slack.redeliver_now()

        await desk.answer(ts, "done")
        assert len(await desk.facts(ts, Prompted)) == 1
        await desk.slack.wait_for(lambda s: not s.world.hub.pending)
        await desk.settled()
        assert desk.texts(ts) == ["done"]
        kinds = [entry["kind"] for entry in desk.slack.log]
        assert kinds.index("ack") > kinds.index("retry")
    await store.close()


async def test_a_hundred_messages_at_once_are_each_answered_once(tmp_path: Path) -> None:
    model = ScriptedModel("done")
    async with Desk(tmp_path, model, []) as desk:
        first = [await desk.ask(f"number {n}", channel=CHANNEL) for n in range(100)]

        await model.asked.reach(100)
        await asyncio.gather(*(desk.bot.store.last_seq(desk.session(ts)) for ts in first))
        await desk.bot.engine.idle()

        assert [len(await desk.facts(ts, Prompted)) for ts in first] == [1] * 100
        assert len(model.requests) == 100
