"""How fast and in which order the bot posts in one channel."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bot.pace import BURST, PER_SECOND, Pace, Urgency


class Channel:
    """A channel whose time a test moves, and who got a turn in it, in order."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pace = Pace(lambda: self.now)
        self.done: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, urgency: Urgency, *names: str) -> None:
        self.tasks += [asyncio.create_task(self._turn(urgency, name)) for name in names]
        await self._settle()

    async def after(self, seconds: float) -> Sequence[str]:
        """Who gets a turn in so many seconds."""
        before = len(self.done)
        self.now += seconds
        self.pace.hold(0.0)
        await self._settle()
        return self.done[before:]

    async def _turn(self, urgency: Urgency, name: str) -> None:
        await self.pace.turn(urgency)
        self.done.append(name)

    async def _settle(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)


async def test_a_short_burst_goes_at_once_and_then_one_at_a_time() -> None:
    channel = Channel()
    await channel.ask(Urgency.ANSWER, *map(str, range(BURST + 3)))

    assert channel.done == [*map(str, range(BURST))]
    assert await channel.after(0.9 / PER_SECOND) == []
    assert await channel.after(0.2 / PER_SECOND) == [str(BURST)]
    assert await channel.after(2.0 / PER_SECOND) == [str(BURST + 1), str(BURST + 2)]


async def test_a_channel_that_was_quiet_for_long_takes_no_more_than_a_burst() -> None:
    channel = Channel()
    await channel.after(3_600.0)
    await channel.ask(Urgency.ANSWER, *map(str, range(BURST + 1)))

    assert len(channel.done) == BURST


async def test_cards_go_first_and_progress_last_whoever_came_first() -> None:
    channel = Channel()
    channel.pace.hold(10.0)
    await channel.ask(Urgency.PROGRESS, "progress")
    await channel.ask(Urgency.ANSWER, "answer", "another answer")
    await channel.ask(Urgency.PRIVATE, "private")
    await channel.ask(Urgency.CARD, "card")

    assert await channel.after(9.0) == []
    assert await channel.after(2.0) == ["card", "private", "answer", "another answer", "progress"]


async def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    channel = Channel()
    channel.pace.hold(10.0)
    channel.pace.hold(1.0)
    await channel.ask(Urgency.CARD, "card")

    assert await channel.after(5.0) == []
    assert await channel.after(6.0) == ["card"]


async def test_whoever_gave_up_costs_nobody_a_turn() -> None:
    channel = Channel()
    channel.pace.hold(10.0)
    await channel.ask(Urgency.CARD, *map(str, range(BURST)))
    for task in channel.tasks:
        task.cancel()
    await channel.ask(Urgency.ANSWER, *"abcde"[:BURST])

    assert await channel.after(11.0) == [*"abcde"[:BURST]]
