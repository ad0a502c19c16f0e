"""The one renderer: makes the thread look like the journal, live and after a restart alike.

What is to be shown is computed from the session's facts; what is shown, from the facts of its `show:` journal. `sync`
posts or updates the difference.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from bot import ids
from bot.board import Board
from bot.drafts import Draft, drafts
from bot.edits import edit_form
from bot.facts import Rendered, show
from bot.foresight import Foresight
from bot.ids import Identity, Thread, thread_of
from bot.later import RETRY, Later
from bot.moods import Moods
from bot.posts import Posts, card_id
from bot.redraws import only_counts
from bot.settings import SettingsBook
from bot.slack_api import SlackApi, SlackRefused, SlackUnreachable
from bot.story import Story, Withdrawn, told
from bot.view import Card, Waiting
from harness_core.errors import HarnessError, NewerFormat, StoreError
from harness_core.events import Event
from harness_core.journal_ids import is_session
from harness_core.ports import Clock, SessionStore, ToolSpec

log = logging.getLogger(__name__)


class Presenter:
    """Renders the sessions of one Slack workspace. board: what it has posted."""

    def __init__(
        self,
        store: SessionStore,
        api: SlackApi,
        foresight: Foresight,
        settings: SettingsBook,
        clock: Clock,
        us: Identity,
        spec: Callable[[str], ToolSpec | None],
        *,
        takes_status: bool = False,
    ) -> None:
        self._store, self._api, self._foresight, self._settings = store, api, foresight, settings
        self._clock, self._us, self._spec = clock, us, spec
        self._dirty: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._later = Later(clock, self.wake)
        self.board = Board(store, api, clock, us.bot_id, self._later, self.wake, self._dirty.__contains__)
        self._moods = Moods(api, clock, self.board.posts, self.board.note, self.wake, takes_status=takes_status)
        self._forget = store.changed(self._changed)

    # -- waking --------------------------------------------------------------------------------------------------------

    def wake(self, session_id: str) -> None:
        """Look at the session soon. At most one look at a time; further wakes join the next."""
        thread = thread_of(session_id)
        if thread is None or thread.home != self._us.home:
            return
        self._dirty.add(session_id)
        self.board.changed(session_id)
        if session_id not in self._tasks:
            self._tasks[session_id] = asyncio.create_task(self._work(session_id), name=f"show {session_id}")

    async def recover(self) -> None:
        """Look at every session that may have changed while nobody was here."""
        while True:
            try:
                for session_id in filter(thread_of, await self._store.sessions("slack:")):
                    last, posts = await self._store.last_seq(session_id), await self.board.posts(session_id)
                    if last > posts.upto:
                        self.wake(session_id)
                    else:
                        self.board.forget(session_id)
                return
            except StoreError:
                log.exception("what changed meanwhile is looked for again soon")
                await self._clock.sleep(RETRY)

    async def close(self) -> None:
        """Stop rendering; what is missing is rendered by whoever starts next."""
        self._forget()
        await self._moods.close()
        tasks = [*self._tasks.values(), *self._later.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until nothing is being rendered."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def _changed(self, session_id: str, events: tuple[Event, ...]) -> None:
        if is_session(session_id):
            self.wake(session_id)

    async def _work(self, session_id: str) -> None:
        try:
            while session_id in self._dirty:
                self._dirty.discard(session_id)
                if not await self._tried(session_id):
                    await self._clock.sleep(RETRY)
                    self._dirty.add(session_id)
        finally:
            self.board.left(session_id)
            del self._tasks[session_id]

    async def _tried(self, session_id: str) -> bool:
        """Whether the thread is up to date now; a display must never bring anything else down."""
        try:
            return await self.sync(session_id)
        except NewerFormat as error:
            log.error("session %s cannot be shown: %s", session_id, error)
            return True
        except (SlackUnreachable, StoreError) as error:
            log.warning("session %s is shown later: %s", session_id, error)
            return False
        except HarnessError as error:
            log.error("session %s cannot be shown: %s", session_id, error)
            return True  # trying the same again would fail the same way
        except Exception:
            log.exception("session %s cannot be shown", session_id)
            return True

    # -- the picture ---------------------------------------------------------------------------------------------------

    async def card(self, session_id: str, fingerprint: str) -> Card | None:
        """The card of a task as it should look now."""
        posts = await self.board.posts(session_id)
        story = told(session_id, await self._store.read(session_id, posts.upto))
        card = story.cards.get(fingerprint)
        if card is None:  # of a run that has been shown for good
            card = told(session_id, await self._store.read(session_id)).cards.get(fingerprint)
        post = posts.by_id.get(card_id(fingerprint))
        return replace(card, revision=post.revision) if card and post else card

    async def asked(self, session_id: str, beginning: str) -> bool:
        """Whether there ever was a task whose fingerprint begins so."""
        cards = told(session_id, await self._store.read(session_id)).cards
        return any(mark.startswith(beginning) for mark in cards)

    async def sync(self, session_id: str) -> bool:
        """Make the thread look like the journal. False if another process is at it. Raises what Slack raises."""
        thread = thread_of(session_id)
        if thread is None:
            return True
        async with self._store.lease(show(session_id)) as lease:
            if lease is None:
                return False
            posts = await self.board.posts(session_id)
            story = told(session_id, await self._store.read(session_id, posts.upto))
            story = await self._completed(session_id, story)
            whole = await self._drawn(session_id, thread, story)
            for post, says in story.says.items():
                if isinstance(says, Withdrawn):
                    await self.board.tell(session_id, thread, post, says)
        settled = await self._moods.settled(session_id, story.prompt_ts, story.mood)
        if story.over:
            self.board.calm(session_id)
        if story.over and whole and settled and story.seq > posts.upto and session_id not in self._dirty:
            await self.board.note(session_id, Rendered(story.seq))
        return True

    async def _completed(self, session_id: str, story: Story) -> Story:
        """The first card of each batch names who may decide; only what can be edited offers it."""
        waiting = {mark: card for mark, card in story.cards.items() if isinstance(card.state, Waiting)}
        if not waiting:
            self._foresight.unexpect(session_id)
            return story
        self._foresight.expect(session_id)
        deciders = sorted(filter(ids.is_slack_id, (await self._settings.access()).deciders))
        completed = {
            mark: replace(
                card,
                approvers=tuple(d for d in deciders if d != card.task.requested_by) if card.index == 1 else (),
                features=card.features if self._editable(card) else card.features - {"edit"},
            )
            for mark, card in waiting.items()
        }
        return replace(story, cards={**story.cards, **completed})

    def _editable(self, card: Card) -> bool:
        spec = self._spec(card.task.tool_name)
        return spec is not None and edit_form(card, spec.schema) is not None

    async def _drawn(self, session_id: str, thread: Thread, story: Story) -> bool:
        """Whether every message stands as it should. One that Slack refuses does not keep the others waiting."""
        whole = True
        self._later.drop(session_id)  # what can wait is asked anew below
        for draft in self._in_turn(drafts(story), await self.board.posts(session_id)):
            try:
                asked = await self.board.put(session_id, thread, draft)
            except SlackRefused as refused:
                log.error("%s of session %s cannot be shown: %s", draft.post, session_id, refused)
                whom = draft.card.task.requested_by if draft.card else story.asker
                await self.board.tell_refused(session_id, thread, whom, draft, refused)
                whole, asked = False, False
            if asked and session_id in self._dirty:
                return False  # Slack takes its time: what changed meanwhile must not wait for all the rest
        if whole:
            self._later.taken(session_id)
        else:
            self._later.refused(session_id)
        return whole and session_id not in self._later

    @staticmethod
    def _in_turn(drafts: Sequence[Draft], posts: Posts) -> Sequence[Draft]:
        """What stands is mended before anything is added: a decision is shown before the next card is posted. Of those
        whose count changed, the one comes first that was drawn least often.
        """

        def turn(draft: Draft) -> tuple[int, int]:
            post = posts.by_id.get(draft.post)
            if post is None or not post.ts:
                return 2, 0
            return (1, post.revision) if only_counts(draft, post) else (0, 0)

        return sorted(drafts, key=turn)

    async def idles(self, session_id: str) -> None:
        """Somebody saw a run that is none. If Slack shows one it is told otherwise."""
        await self._moods.doubt(session_id)
        self.wake(session_id)
