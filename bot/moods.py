"""How people see from outside what becomes of their prompt: seen, waiting, done.  Decoration: nothing waits for it.

Slack shows the status of an agent's thread, with its own stop button while it works; where it takes none, prompts get
reactions. Never both: a conversation has six calls of the Web API, and either takes three of them. (A run that works on
for long after a decision has a seventh, for without it there would be no button to stop it.)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from bot.facts import Reacted, StatusTold
from bot.ids import thread_of
from bot.later import RETRY
from bot.posts import Posts
from bot.slack_api import NOWHERE, SlackApi, SlackRefused, SlackUnreachable
from bot.story import SEEN, WAITING
from harness_core.errors import NewerFormat, StoreError
from harness_core.events import Event
from harness_core.ports import Clock

log = logging.getLogger(__name__)

CALM: Final = 1.0  # seconds that a mood must last before it is shown: a quick run needs none
WORKS: Final = "processing"  # shown with the stop button; Slack ends it by itself after an hour
RESTS: Final = "active"  # as is every thread of which Slack was told nothing
# By mood. Source: docs.slack.dev/ai/agent-sessions
STATUSES: Final[Mapping[str, str]] = {SEEN: WORKS, WAITING: "suspended", "": RESTS}


class Moods:
    """Shows moods by session. posts: what stands; note: keeps a fact; wake: looks again.

    takes_status: whether Slack takes the status of a thread, as far as is known.
    """

    def __init__(
        self,
        api: SlackApi,
        clock: Clock,
        posts: Callable[[str], Awaitable[Posts]],
        note: Callable[[str, Event], Awaitable[None]],
        wake: Callable[[str], None],
        *,
        takes_status: bool,
    ) -> None:
        self._api, self._clock = api, clock
        self._posts, self._note, self._wake = posts, note, wake
        self._takes_status = takes_status
        self._wanted: dict[str, tuple[str, Mapping[str, str]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def settled(self, session_id: str, prompt_ts: str, mood: str) -> bool:
        """Whether this mood is shown; if not, it will be, once it has lasted. Only the newest run has one."""
        posts = await self._posts(session_id)
        reactions = {ts: "" for ts, name in posts.reactions.items() if name == WAITING}
        if prompt_ts and not self._takes_status:
            reactions[prompt_ts] = mood
        status = STATUSES[mood] if self._takes_status else ""
        done = _told(posts.status, status) and all(
            _fits(posts.reactions.get(ts), name) for ts, name in reactions.items()
        )
        if session_id in self._tasks or not done:
            self._wanted[session_id] = status, reactions
        if session_id not in self._tasks and not done:
            self._tasks[session_id] = asyncio.create_task(self._show(session_id), name=f"mood {session_id}")
        return done

    async def close(self) -> None:
        """Show no more of them."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def doubt(self, session_id: str) -> None:
        """Slack may show a status that it was not told last."""
        if self._takes_status:
            await self._note(session_id, StatusTold(WORKS))

    async def _show(self, session_id: str) -> None:
        """A mood that passes quickly costs no call; one that Slack does not take now is shown later."""
        try:
            status, reactions = self._wanted[session_id]
            if any(reactions.values()) or status not in ("", RESTS):
                await self._clock.sleep(CALM)
            again = False
            while not await self._shown(session_id, again):
                again = True
                await self._clock.sleep(RETRY)
        finally:
            del self._tasks[session_id], self._wanted[session_id]
        self._wake(session_id)

    async def _shown(self, session_id: str, again: bool) -> bool:
        """Whether what is wanted now is shown, as far as it can be. again: the last attempt failed."""
        status, reactions = self._wanted[session_id]
        try:
            await self._tell(session_id, status, again)
            for ts, mood in reactions.items():
                await self._react(session_id, ts, mood)
        except (SlackUnreachable, StoreError) as error:
            log.warning("what becomes of a prompt is shown later: %s", error)
            return isinstance(error, NewerFormat)  # it would be no other then
        return True

    async def _tell(self, session_id: str, status: str, again: bool) -> None:
        thread = thread_of(session_id)
        # After a failure nobody knows whether Slack heard that it works, though it is stored.
        unsure = again and status == WORKS
        if thread is None or not self._takes_status:  # it may have refused another thread's meanwhile
            return
        if _told((await self._posts(session_id)).status, status) and not unsure:
            return
        if status == WORKS:  # stored first: after a crash in between it is known that it has to be taken away
            await self._note(session_id, StatusTold(status))
        try:
            await self._api.set_status(thread.channel, thread.ts, status)
        except SlackRefused as refused:  # it would again
            if self._takes_status:
                log.warning("no status, and so no stop button of Slack's: %s", refused)
            self._takes_status &= refused.code in NOWHERE
        if status != WORKS:
            await self._note(session_id, StatusTold(status))

    async def _react(self, session_id: str, ts: str, mood: str) -> None:
        thread, shown = thread_of(session_id), (await self._posts(session_id)).reactions.get(ts)
        if thread is None or _fits(shown, mood):
            return
        add = mood == WAITING or shown is None
        try:
            await self._api.react(thread.channel, ts, mood if add else WAITING, add=add)
        except SlackRefused as refused:  # it would again
            log.warning("no reaction: %s", refused)
        await self._note(session_id, Reacted(ts, mood if add else ""))


def _told(told: str, wanted: str) -> bool:
    """Whether Slack knows this status, or needs not be told: of a thread that it was told nothing of, nothing shows."""
    return wanted in ("", told or RESTS)


def _fits(shown: str | None, mood: str) -> bool:
    """Whether a message looks as this mood wants it. shown: the last reaction put on it, None if there never was one.

    Eyes say that it was seen, which stays true: they are never taken away, nor added once there was an hourglass. That
    saves a call at each turn.
    """
    if mood == WAITING:
        return shown == WAITING
    return shown != WAITING and (mood == "" or shown is not None)
