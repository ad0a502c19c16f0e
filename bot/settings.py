"""Who administers, who approves, which channels are on: as given at the start, and as people changed it since."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import replace

from bot.approvers import Access
from bot.facts import WORKSPACE, AdminClaimed, ChannelSwitched
from harness_core.events import Event
from harness_core.ports import Clock, SessionStore


class SettingsBook:
    """The access settings in force. Read anew at every question: another process may have changed them."""

    def __init__(self, store: SessionStore, clock: Clock, given: Access, home: str) -> None:
        self._store, self._clock, self.home = store, clock, home
        self._access = given
        self._seq = 0
        self.claim_code = "" if given.admins else secrets.token_hex(4)

    async def access(self) -> Access:
        """Who may do what, now."""
        if await self._store.last_seq(WORKSPACE) > self._seq:
            events = await self._store.read(WORKSPACE, self._seq)
            self._access = changed(self._access, events)
            self._seq = events[-1].seq or self._seq
        return self._access

    async def switch(self, channel: str, *, on: bool, by: str, key: str) -> None:
        """Switch a channel on or off. key: of the command, so that a redelivered one counts once."""
        fact = ChannelSwitched(channel, on, by, at=self._clock.now())
        await self._store.append(WORKSPACE, fact, key=key)

    async def claim(self, code: str, by: str) -> bool:
        """Become the first administrator, if the code is the one that was printed at the start."""
        given, wanted = code.strip().encode(), self.claim_code.encode()
        if not wanted or not hmac.compare_digest(given, wanted) or (await self.access()).admins:
            return False
        fact = AdminClaimed(by, at=self._clock.now())
        return bool(await self._store.append(WORKSPACE, fact, key="claim"))


def changed(access: Access, events: Iterable[Event]) -> Access:
    """The settings after these facts."""
    for event in events:
        match event:
            case AdminClaimed(by=by):
                access = replace(access, admins=access.admins | {by})
            case ChannelSwitched(channel=channel, on=True):
                access = replace(access, channels=access.channels | {channel})
            case ChannelSwitched(channel=channel, on=False):
                access = replace(access, channels=access.channels - {channel})
    return access
