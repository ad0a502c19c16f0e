"""The reactions on prompts: seen, waiting, done.  Decoration: nothing ever waits for one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from bot.facts import Reacted
from bot.ids import thread_of
from bot.slack_api import SlackApi, SlackRefused
from harness_core.errors import HarnessError
from harness_core.ports import Clock

log = logging.getLogger(__name__)

WAITING: Final = "hourglass_flowing_sand"
CALM: Final = 1.0  # seconds that a mood must last before it becomes a reaction: a quick run needs none


class Moods:
    """Shows moods by session. shown: the reactions that stand, by message; note: keeps a fact; wake: looks again."""

    def __init__(
        self,
        api: SlackApi,
        clock: Clock,
        shown: Callable[[str], Awaitable[Mapping[str, str]]],
        note: Callable[[str, Reacted], Awaitable[None]],
        wake: Callable[[str], None],
    ) -> None:
        self._api, self._clock = api, clock
        self._shown, self._note, self._wake = shown, note, wake
        self._wanted: dict[str, Mapping[str, str]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def settled(self, session_id: str, prompt_ts: str, mood: str) -> bool:
        """Whether the prompts show this mood; if not, they will, once it has lasted. Only the newest run's has one."""
        shown = await self._shown(session_id)
        wanted = {ts: "" for ts, name in shown.items() if name == WAITING}
        if prompt_ts:
            wanted[prompt_ts] = mood
        done = all(_fits(shown.get(ts), name) for ts, name in wanted.items())
        if session_id in self._tasks or not done:
            self._wanted[session_id] = wanted
        if session_id not in self._tasks and not done:
            self._tasks[session_id] = asyncio.create_task(self._react(session_id), name=f"mood {session_id}")
        return done

    async def close(self) -> None:
        """Show no more of them."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _react(self, session_id: str) -> None:
        """A mood that passes quickly costs no call."""
        try:
            if any(self._wanted[session_id].values()):
                await self._clock.sleep(CALM)
            for ts, mood in self._wanted[session_id].items():
                await self._change(session_id, ts, mood)
        except HarnessError as error:
            log.warning("no reaction: %s", error)
            return
        finally:
            del self._tasks[session_id], self._wanted[session_id]
        self._wake(session_id)

    async def _change(self, session_id: str, ts: str, mood: str) -> None:
        thread, shown = thread_of(session_id), (await self._shown(session_id)).get(ts)
        if thread is None or _fits(shown, mood):
            return
        add = mood == WAITING or shown is None
        try:
            await self._api.react(thread.channel, ts, mood if add else WAITING, add=add)
        except SlackRefused as refused:  # it would again
            log.warning("no reaction: %s", refused)
        await self._note(session_id, Reacted(ts, mood if add else ""))


def _fits(shown: str | None, mood: str) -> bool:
    """Whether a message looks as this mood wants it. shown: the last reaction put on it, None if there never was one.

    Eyes say that it was seen, which stays true: they are never taken away, nor added once there was an hourglass. That
    saves a call at each turn.
    """
    if mood == WAITING:
        return shown == WAITING
    return shown != WAITING and (mood == "" or shown is not None)
