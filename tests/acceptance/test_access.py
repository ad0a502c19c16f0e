"""Who may start, speak, decide and administer: asked anew every time, and closed where in doubt."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bot.local import people
from bot.people import PLACE_SECONDS
from harness_core.events import HITLSubmitted, Prompted
from harness_core.testing import FakeClock, Milestones, RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, clock_of_today, reading, value_of
from tests.acceptance.test_quickness import known

EVERYBODY = [people.ADA, people.BEN, people.CLEO, people.GIL, people.DEE]


def desk_of(tmp_path: Path, **more: object) -> Desk:
    return Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")], **more)  # type: ignore[arg-type]


async def refused(desk: Desk, ts: str, channel: str, user: str, why: str) -> None:
    """Told once in private, and nothing else came of it."""
    await desk.told(user, why)
    await desk.slack.wait_for(lambda s: not s.world.hub.pending)
    await desk.settled()
    assert desk.thread(ts, channel) == []
    assert await desk.facts(ts, Prompted, channel) == []
    assert len(desk.notices(user)) == 1


@pytest.mark.parametrize(
    ("user", "channel", "why"),
    [
        (people.GIL, people.GENERAL, "guests"),
        (people.ADA, people.SHARED, "shared with another organisation"),
        (people.SAM, people.SHARED, "another organisation"),
        (people.BEN, people.direct_id(people.BEN), "Direct messages work for administrators and approvers"),
    ],
)
async def test_whoever_may_not_start_is_told_so_once_in_private(
    tmp_path: Path, user: str, channel: str, why: str
) -> None:
    async with desk_of(tmp_path) as desk:
        ts = await desk.ask("change it", user, channel)

        await refused(desk, ts, channel, user, why)


async def test_a_deactivated_person_starts_nothing(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        message = await desk.slack.say(people.DEE, people.GENERAL, "@harness change it", force=True)
        await desk.slack.wait_for(lambda s: not s.world.hub.pending)
        await desk.settled()

        assert await desk.facts(message["ts"], Prompted) == []
        assert desk.thread(message["ts"]) == []


@pytest.mark.parametrize("user", [people.ADA, people.BEN])
async def test_direct_messages_work_for_administrators_and_approvers(tmp_path: Path, user: str) -> None:
    async with desk_of(tmp_path, approvers=frozenset({people.BEN})) as desk:
        channel = people.direct_id(user)
        ts = await desk.say("change it", user, channel)

        await desk.click(await desk.card(ts, channel=channel), "approve", user, channel=channel)

        await desk.answer(ts, "done", channel)


async def test_a_channel_that_is_switched_off_takes_neither_messages_nor_clicks(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        waiting = await desk.ask("change it")
        card = await desk.card(waiting)
        off = await desk.slack.command(people.ADA, people.GENERAL, "/harness", "off")
        assert "switched off" in str(off.payload)

        await desk.click(card, "approve")
        await desk.told(people.ADA, "not switched on in this channel")
        ts = await desk.ask("change it", people.BEN)
        await refused(desk, ts, people.GENERAL, people.BEN, "not switched on in this channel")
        assert await desk.facts(waiting, HITLSubmitted) == []
        assert buttons(desk.cards(waiting)[0]) == buttons(card)

        await desk.slack.command(people.ADA, people.GENERAL, "/harness", "on")
        await desk.click(card, "approve")
        await desk.answer(waiting, "done")


@pytest.mark.parametrize("user", [people.BEN, people.GIL])
@pytest.mark.parametrize("action", ["approve", "reject", "skip", "always"])
async def test_the_wrong_persons_click_is_answered_and_changes_nothing(tmp_path: Path, user: str, action: str) -> None:
    async with desk_of(tmp_path) as desk:
        ts = await desk.ask("change it", people.BEN)
        card = await desk.card(ts)

        assert (await desk.click(card, action, user)).ok

        await desk.slack.wait_for(lambda _: desk.notices(user))
        await desk.settled()
        assert desk.slack.views(user) == []
        assert await desk.facts(ts, HITLSubmitted) == []
        assert reading(desk.cards(ts)[0]) == reading(card)
        assert len(desk.texts(ts)) == 0


async def test_a_form_that_was_opened_by_right_is_refused_when_the_right_is_gone(tmp_path: Path) -> None:
    async with desk_of(tmp_path, approvers=frozenset({people.BEN}), clock=clock_of_today()) as desk:
        ts = await desk.ask("change it")
        await desk.click(await desk.card(ts), "skip", people.BEN)
        await desk.form(people.BEN)
        desk.slack.change_person(people.BEN, is_restricted=True)
        desk.clock.advance(61.0)

        assert (await desk.slack.submit(people.BEN, {"choice": "done"})).ok

        assert "guests" in str(desk.slack.views(people.BEN)[-1]["blocks"])
        assert await desk.facts(ts, HITLSubmitted) == []


@pytest.mark.parametrize("facts", [{"deleted": True}, {"is_restricted": True}, {"is_ultra_restricted": True}])
async def test_whoever_lost_the_right_since_the_card_was_shown_does_not_decide(
    tmp_path: Path, facts: dict[str, bool]
) -> None:
    async with desk_of(tmp_path, approvers=frozenset({people.BEN}), clock=clock_of_today()) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        await known(desk)
        desk.slack.change_person(people.BEN, **facts)
        desk.clock.advance(61.0)

        await desk.slack.click(people.BEN, people.GENERAL, card["ts"], "approve", force=True)

        await desk.slack.wait_for(lambda _: desk.calls("chat.postEphemeral"))
        await desk.settled()
        assert await desk.facts(ts, HITLSubmitted) == []
        assert buttons(desk.cards(ts)[0]) == buttons(card)


async def test_with_empty_lists_nobody_may_do_anything(tmp_path: Path) -> None:
    async with desk_of(tmp_path, admins=frozenset({"U0NOBODY00"})) as desk:
        ts = await desk.ask("change it", people.BEN)
        card = await desk.card(ts)

        for user in (people.ADA, people.BEN, people.CLEO):
            await desk.click(card, "approve", user)
            await desk.told(user, "only administrators and approvers")

        assert await desk.facts(ts, HITLSubmitted) == []


async def test_requesters_decide_their_own_calls_only_where_they_are_listed(tmp_path: Path) -> None:
    async with desk_of(tmp_path, approvers=frozenset({"requester"})) as desk:
        ts = await desk.ask("change it", people.BEN)
        card = await desk.card(ts)
        await desk.click(card, "approve", people.CLEO)
        await desk.told(people.CLEO, "only administrators and approvers")

        await desk.click(card, "approve", people.BEN)

        await desk.answer(ts, "done")
        assert [fact.by for fact in await desk.facts(ts, HITLSubmitted)] == [people.BEN]


async def test_joining_a_run_gives_no_right_to_decide_in_it(tmp_path: Path) -> None:
    async with desk_of(tmp_path, approvers=frozenset({"requester"})) as desk:
        ts = await desk.ask("change it", people.BEN)
        card = await desk.card(ts)
        await desk.ask("me too", people.CLEO, thread=ts)
        await desk.told(people.CLEO, "read after the decision")

        await desk.click(card, "approve", people.CLEO)

        await desk.told(people.CLEO, "only administrators and approvers")


async def test_a_person_whom_slack_does_not_know_is_refused(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        desk.slack.fail("users.info", error="user_not_found", only={"user": people.BEN})
        ts = await desk.ask("change it", people.BEN)

        await desk.told(people.BEN, "could not find out who you are")
        await desk.settled()
        assert desk.cards(ts) == []


async def test_while_slack_does_not_say_who_it_is_the_message_is_not_acknowledged(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        desk.slack.fail("users.info", http_status=503, times=2, only={"user": people.BEN})
        ts = await desk.ask("change it", people.BEN)
        await desk.slack.wait_for(lambda s: [c for c in s.calls if c.method == "users.info" and not c.ok])
        assert desk.thread(ts) == []

        desk.slack.settings.faults.clear()
        desk.slack.redeliver_now()

        await desk.card(ts)
        assert len(await desk.facts(ts, Prompted)) == 1


@pytest.mark.parametrize("method", ["users.info", "conversations.info"])
async def test_a_look_up_that_fails_once_is_made_again_and_the_click_counts(tmp_path: Path, method: str) -> None:
    async with desk_of(tmp_path, clock=clock_of_today()) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        desk.clock.advance(PLACE_SECONDS + 1)
        desk.slack.fail(method, http_status=503)

        await desk.click(card, "approve")

        await desk.answer(ts, "done")
        assert desk.notices(people.ADA) == []


async def test_a_click_while_slack_does_not_say_who_it_is_leaves_the_card_and_says_so(tmp_path: Path) -> None:
    async with desk_of(tmp_path, clock=clock_of_today()) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        desk.clock.advance(61.0)
        desk.slack.fail("users.info", http_status=503, times=100)

        await desk.click(card, "approve")

        await desk.told(people.ADA, "did not work, and nothing was decided")
        assert buttons(desk.cards(ts)[0]) == buttons(card)
        desk.slack.settings.faults.clear()
        await desk.click(card, "approve")
        await desk.answer(ts, "done")


async def test_an_unlisted_persons_word_decides_no_more_than_their_click(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        ts = await desk.ask("change it", people.BEN)
        short = value_of(await desk.card(ts), "approve").rpartition("|")[2][:6]

        await desk.say(f"!approve {short}", people.BEN, thread=ts)

        await desk.told(people.BEN, "only administrators and approvers")
        assert await desk.facts(ts, HITLSubmitted) == []


@pytest.mark.parametrize("user", [people.SAM, people.DEE, people.OTHER_BOT, people.SLACK, people.BOT_USER])
async def test_strangers_bots_and_the_deactivated_decide_nothing_though_they_are_listed(
    tmp_path: Path, user: str
) -> None:
    async with desk_of(tmp_path, approvers=frozenset(EVERYBODY) | {user}) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)

        await desk.click(card, "approve", user, force=True)

        await desk.slack.wait_for(lambda _: desk.calls("chat.postEphemeral"))
        await desk.settled()
        assert await desk.facts(ts, HITLSubmitted) == []
        assert reading(desk.cards(ts)[0]) == reading(card)


async def test_what_was_refused_does_not_slip_in_when_it_is_delivered_again(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        await desk.slack.command(people.ADA, people.GENERAL, "/harness", "off")
        ts = await desk.ask("change it", people.BEN)
        await desk.told(people.BEN, "not switched on")
        await desk.slack.command(people.ADA, people.GENERAL, "/harness", "on")

        assert desk.slack.replay(ts) == 2

        await desk.slack.wait_for(lambda s: not s.world.hub.pending)
        await desk.settled()
        assert await desk.facts(ts, Prompted) == []


LOOK = 14.0  # seconds between two looks at who is known, as nobody else sleeps


class Looks(FakeClock):
    """The time of today, and the looks at who is known that are over."""

    def __init__(self) -> None:
        super().__init__(time.time())
        self.over = Milestones()

    async def sleep(self, seconds: float) -> None:
        if seconds == LOOK:
            self.over.add()
        await super().sleep(seconds)


async def test_who_may_click_stays_known_while_a_card_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.foresight.EACH", LOOK)
    clock = Looks()
    async with desk_of(tmp_path, clock=clock) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)

        before = desk.calls("users.info")
        for look in range(1, 9):  # almost two minutes; a person is known for one
            await clock.over.reach(look)
            clock.advance(LOOK)
        await clock.over.reach(9)
        assert desk.calls("users.info") >= before + 2
        desk.slack.hold("users.info")
        desk.slack.hold("conversations.info")

        await desk.click(card, "approve")

        await desk.answer(ts, "done")
