"""The messages of threads: what stands there by our `show:` journals, and how one is made to stand as it should.

A message's intent is stored before it is posted; where nobody knows whether it was posted, the thread is searched for
it first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bot.blocks import card_message
from bot.drafts import Draft, stands
from bot.facts import Posted, PostGone, PostIntended, show
from bot.ids import Thread
from bot.later import Later
from bot.posts import Post, Posts
from bot.redraws import Redraws
from bot.slack_api import SlackApi, SlackPutOff, SlackRefused
from bot.story import Withdrawn
from bot.turns import Turns
from bot.words import WITHDRAWN, not_shown
from harness_core.events import Event
from harness_core.ports import Clock, SessionStore

log = logging.getLogger(__name__)

REMEMBERED: Final = 1_000  # sessions whose posts are kept in memory
GONE: Final = frozenset({"message_not_found", "cant_update_message"})


class Board:
    """What we have posted, by session. bot_id: ours. later, wake: look at a session again then, or soon. has_changed:
    whether it changed since it was looked at.
    """

    def __init__(
        self,
        store: SessionStore,
        api: SlackApi,
        clock: Clock,
        bot_id: str,
        later: Later,
        wake: Callable[[str], None],
        has_changed: Callable[[str], bool],
    ) -> None:
        self._store, self._api, self._clock, self._bot_id = store, api, clock, bot_id
        self._later, self._wake, self._has_changed = later, wake, has_changed
        self._posts: dict[str, Posts] = {}
        self._redraws = Redraws()
        self._turns = Turns(api.turn)
        self._put_off: dict[str, str] = {}  # by session: the post that was tried, and surely does not stand

    async def posts(self, session_id: str) -> Posts:
        """What was posted for a session, as far as is known."""
        known = self._posts.get(session_id, Posts())
        known = known.plus(await self._store.read(show(session_id), known.seq))
        if len(self._posts) >= REMEMBERED:  # a cache, and cheap to fill again
            self._posts.clear()
        self._posts[session_id] = known
        return known

    def forget(self, session_id: str) -> None:
        """Keep in memory no longer what was posted for a session; it is read again when it is asked for."""
        self._posts.pop(session_id, None)

    def calm(self, session_id: str) -> None:
        """Nothing of a session is going to change: how often it was drawn lately is no matter."""
        self._redraws.forget(session_id)

    async def note(self, session_id: str, fact: Event, *, key: str | None = None) -> None:
        """Keep a fact of what is shown. key: where it is to be kept once."""
        await self._store.append(show(session_id), replace(fact, at=self._clock.now()), key=key)

    async def stands(self, session_id: str, post: str, digest: str, ts: str, core: str = "") -> None:
        """Keep that a message stands there: once, though a click on it may tell before Slack's answer does."""
        await self.note(session_id, Posted(post, digest, ts, core=core), key=f"posted:{ts}")

    async def put(self, session_id: str, thread: Thread, draft: Draft) -> bool:
        """Post or update a message if it differs from what stands. Whether Slack was asked for anything, or will be
        once what changed meanwhile is looked at.
        """
        post = (await self.posts(session_id)).by_id.get(draft.post)
        if (post is None and not draft.wanted) or (post is not None and post.gone and not draft.waits):
            return False
        if post is None or not post.ts:
            return await self._added(session_id, thread, draft, post)
        return post.digest != draft.digest and await self._update(session_id, thread, draft, post)

    async def _added(self, session_id: str, thread: Thread, draft: Draft, post: Post | None) -> bool:
        """Post a message, unless it stands there."""
        if draft.wanted and not await self._turn(session_id, thread, draft):
            return True
        if post is None:
            await self.note(session_id, PostIntended(draft.post, draft.digest), key=f"intent:{draft.post}")
        elif self._put_off.get(session_id) != draft.post and (ts := await self._found(session_id, thread, draft)):
            post = Post(post.digest, ts)
            await self.stands(session_id, draft.post, post.digest, ts)
            return post.digest == draft.digest or await self._update(session_id, thread, draft, post)
        elif not draft.wanted:
            await self.note(session_id, PostGone(draft.post))
            return True
        while True:
            self._put_off.pop(session_id, None)
            try:
                ts = await self._api.post(thread.channel, thread.ts, draft.marked)
            except SlackPutOff:
                self._put_off[session_id] = draft.post
                if not await self._turn(session_id, thread, draft):
                    return True
            else:
                await self.stands(session_id, draft.post, draft.digest, ts, draft.core)
                return True

    async def _turn(self, session_id: str, thread: Thread, draft: Draft) -> bool:
        changed = self._has_changed(session_id)
        return await self._turns.taken(session_id, thread.channel, draft.urgency, changed=changed)

    def changed(self, session_id: str) -> None:
        """A session changed: what stands is mended before anything that waits for its turn is posted."""
        self._turns.changed(session_id)

    def left(self, session_id: str) -> None:
        """Nothing more is put for now."""
        self._turns.leave(session_id)
        self._put_off.pop(session_id, None)

    async def _update(self, session_id: str, thread: Thread, draft: Draft, post: Post) -> bool:
        """Draw a message anew, now or later. Whether Slack was asked."""
        now = self._clock.now()
        if wait := self._redraws.wait(session_id, draft, post, now):
            self._later.look(session_id, now + wait)
            return False
        self._redraws.drawn(session_id, draft, post, now)
        revision = post.revision + 1
        message = card_message(replace(draft.card, revision=revision)) if draft.card else draft.message
        try:
            await self._api.update(thread.channel, post.ts, message)
        except SlackRefused as refused:
            if refused.code not in GONE:
                raise
            log.warning("a message of session %s is gone from the thread: %s", session_id, refused)
            await self.gone(session_id, post.ts)
        else:
            await self.note(session_id, Posted(draft.post, draft.digest, post.ts, revision, draft.core))
        return True

    async def gone(self, session_id: str, ts: str) -> None:
        """A message of a thread was deleted. If it is a card of ours that waits, it is posted anew."""
        for post, standing in (await self.posts(session_id)).by_id.items():
            if standing.ts == ts:
                await self.note(session_id, PostGone(post, ts))
                self._wake(session_id)

    async def _found(self, session_id: str, thread: Thread, draft: Draft) -> str:
        """The ts of a message that was intended and perhaps posted; "" if it is not in the thread.

        Where Slack does not let us look it counts as not there: twice is a blemish, never leaves somebody waiting.
        """
        try:
            replies = await self._api.replies(thread.channel, thread.ts)
        except SlackRefused as refused:
            log.warning(
                "the thread of session %s cannot be searched, so %s may be posted twice: %s",
                session_id,
                draft.post,
                refused,
            )
            return ""
        for message in reversed(replies):
            if stands(draft, message, self._bot_id):
                return str(message.get("ts", ""))
        return ""

    async def tell(self, session_id: str, thread: Thread, post: str, says: Withdrawn) -> None:
        """A private notice leaves no trace in the thread, so it is told at most once."""
        if post in (await self.posts(session_id)).by_id:
            return
        await self.note(session_id, PostIntended(post, ""), key=f"intent:{post}")
        await self._api.whisper(thread.channel, says.by, WITHDRAWN, thread.ts)

    async def tell_refused(
        self, session_id: str, thread: Thread, whom: str, draft: Draft, refused: SlackRefused
    ) -> None:
        """Whoever asked hears in private what the thread cannot show, once for each of Slack's reasons."""
        post = f"refused:{refused.code}"
        if not whom or post in (await self.posts(session_id)).by_id:
            return
        await self.note(session_id, PostIntended(post, ""), key=f"intent:{post}")
        await self._api.whisper(thread.channel, whom, not_shown(str(refused), waits=draft.waits), thread.ts)
