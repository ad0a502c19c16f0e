"""A session keeps its place in the queue of its channel while it looks at what changed."""

from __future__ import annotations

import asyncio

from bot.pace import BURST, Pace, Urgency
from bot.turns import Turns


class Queue:
    """A channel in which nobody has a turn left, and the sessions that wait for one."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pace = Pace(lambda: self.now)
        for _ in range(BURST):
            self.pace.turn(Urgency.CARD)
        self.turns = Turns(lambda _, urgency: self.pace.turn(urgency))

    async def ask(self, session: str, *, changed: bool = False, urgency: Urgency = Urgency.ANSWER) -> bool:
        return await self.turns.taken(session, "C1", urgency, changed=changed)

    def pass_time(self, turns: int) -> None:
        self.now += float(turns)
        self.pace.hold(0.0)


async def test_a_session_that_changes_looks_at_once_and_keeps_its_place() -> None:
    queue = Queue()
    first = asyncio.create_task(queue.ask("first"))
    second = asyncio.create_task(queue.ask("second"))
    await asyncio.sleep(0)

    queue.turns.changed("first")
    assert await first is False
    assert await queue.ask("first", changed=True) is False
    again = asyncio.create_task(queue.ask("first"))
    await asyncio.sleep(0)
    queue.pass_time(1)

    assert await again is True
    assert not second.done()
    queue.pass_time(1)
    assert await second is True


async def test_a_turn_that_has_come_is_taken_though_the_session_changed() -> None:
    queue = Queue()
    queue.pass_time(1)

    assert await queue.ask("one", changed=True) is True
    assert await queue.ask("one", changed=True) is False


async def test_a_place_that_was_left_costs_the_others_no_turn() -> None:
    queue = Queue()
    assert await queue.ask("gone", changed=True) is False
    behind = asyncio.create_task(queue.ask("behind"))
    await asyncio.sleep(0)

    queue.turns.leave("gone")
    queue.pass_time(1)

    assert await behind is True


async def test_what_has_become_more_urgent_takes_a_place_further_ahead() -> None:
    queue = Queue()
    other = asyncio.create_task(queue.ask("other"))
    assert await queue.ask("one", changed=True) is False
    card = asyncio.create_task(queue.ask("one", urgency=Urgency.CARD))
    await asyncio.sleep(0)
    queue.pass_time(1)

    assert await card is True
    assert not other.done()
    other.cancel()
