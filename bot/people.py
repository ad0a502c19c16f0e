"""Who people are and what a channel is, as Slack says now: remembered briefly, and unknown where it does not say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, Generic, TypeVar

from bot.approvers import Person, Place, person_of, place_of
from bot.ids import Identity
from bot.slack_api import SlackApi
from harness_core.errors import HarnessError

# A click must not wait for a round trip, and a deactivated account must not go on deciding: a minute is the compromise.
PERSON_SECONDS: Final = 60.0
PLACE_SECONDS: Final = 300.0
MOST: Final = 5_000  # answers remembered

T = TypeVar("T")


class Remembered(Generic[T]):
    """Answers by id, each for some seconds; one question at a time for the same id. None is never remembered."""

    def __init__(self, ask: Callable[[str], Awaitable[T | None]], seconds: float, now: Callable[[], float]) -> None:
        self._ask, self._seconds, self._now = ask, seconds, now
        self._answers: dict[str, tuple[float, T]] = {}
        self._asking: dict[str, asyncio.Task[T | None]] = {}

    async def get(self, name: str) -> T | None:
        """The answer. Raises what asking raises."""
        return await self._answer(name, self._seconds)

    async def keep(self, name: str) -> None:
        """Ask anew, if the answer is missing or has lived for half its time. Raises what asking raises."""
        await self._answer(name, self._seconds / 2)

    async def _answer(self, name: str, young: float) -> T | None:
        """The answer that is known, if it is younger than so many seconds; else a new one."""
        known = self._answers.get(name)
        if known and self._now() - known[0] < young:
            return known[1]
        if name not in self._asking:
            self._asking[name] = asyncio.create_task(self._fetch(name))
        return await asyncio.shield(self._asking[name])

    async def close(self) -> None:
        """Ask no more; whoever waits for an answer gets none."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _fetch(self, name: str) -> T | None:
        asked = self._now()  # what has changed since then the answer may not know
        try:
            answer = await self._ask(name)
            if answer is not None:
                if len(self._answers) >= MOST:
                    self._answers.clear()
                self._answers[name] = (asked, answer)
            return answer
        finally:
            del self._asking[name]


class Directory:
    """People and places of one installation."""

    def __init__(self, api: SlackApi, us: Identity, now: Callable[[], float]) -> None:
        self._api, self._us = api, us
        self._people: Remembered[Person] = Remembered(self._person, PERSON_SECONDS, now)
        self._places: Remembered[Place] = Remembered(self._place, PLACE_SECONDS, now)

    async def person(self, user: str) -> Person | None:
        """A person; None if Slack does not say plainly who it is. Raises SlackUnreachable."""
        return await self._people.get(user)

    async def place(self, channel: str, *, shared_outside: bool) -> Place | None:
        """A conversation, made stricter by what the event said. Raises SlackUnreachable."""
        place = await self._places.get(channel)
        return place.hinted(shared_outside) if place else None

    async def keep(self, users: Iterable[str], channels: Iterable[str]) -> None:
        """Ask about these, as far as what is remembered of them grows old. Failing costs nothing but time."""
        # One after the other: there is time, and at once each would take a connection of its own.
        for ask, names in ((self._people.keep, users), (self._places.keep, channels)):
            for name in names:
                with suppress(HarnessError):
                    await ask(name)

    async def close(self) -> None:
        """Ask no more."""
        await asyncio.gather(self._people.close(), self._places.close())

    async def _person(self, user: str) -> Person | None:
        return person_of(await self._api.user(user), self._us)

    async def _place(self, channel: str) -> Place | None:
        # A direct message with us is never shared with others, and reading about one needs a scope of its own.
        if channel.startswith("D"):
            return Place(channel, direct=True)
        return place_of(await self._api.conversation(channel))
