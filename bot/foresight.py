"""Keeps known who may click and where: neither a message nor a click waits for Slack to say who somebody is."""

from __future__ import annotations

import logging
from typing import Final

from bot import ids
from bot.people import PERSON_SECONDS, Directory
from bot.settings import SettingsBook
from harness_core.errors import HarnessError
from harness_core.ports import Clock

log = logging.getLogger(__name__)

EACH: Final = PERSON_SECONDS / 4  # seconds between two looks at what grows old
MOST: Final = 20  # people, and channels, that are kept known; Slack allows some hundred questions a minute


class Foresight:
    """Asks about those who decide and about the channels that are on, from the start and before answers grow old."""

    def __init__(self, directory: Directory, settings: SettingsBook, clock: Clock) -> None:
        self._directory, self._settings, self._clock = directory, settings, clock
        self._waiting: dict[str, str] = {}

    def expect(self, session_id: str) -> None:
        """A card waits there: a click may come."""
        if thread := ids.thread_of(session_id):
            self._waiting[session_id] = thread.channel

    def unexpect(self, session_id: str) -> None:
        """No card waits there any more."""
        self._waiting.pop(session_id, None)

    async def watch(self) -> None:
        """Look, again and again, until cancelled. Failing costs nothing but time."""
        while True:
            try:
                await self.look()
            except HarnessError as error:
                log.warning("who decides is looked up later: %s", error)
            await self._clock.sleep(EACH)

    async def look(self) -> None:
        """Ask about whom an answer is missing, or grows old. Where cards wait, only those channels matter."""
        access = await self._settings.access()
        people = sorted(filter(ids.is_slack_id, access.deciders))
        places = sorted(set(self._waiting.values()) or access.channels)
        await self._directory.keep(people[:MOST], places[:MOST])
