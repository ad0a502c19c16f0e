"""The one renderer: makes the thread look like the journal, live and after a restart alike.

What is to be shown is computed from the session's facts; what is shown, from the facts of its `show:` journal. `sync`
posts or updates the difference. A message's intent is stored before it is posted; where nobody knows whether it was
posted, the thread is searched for it first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bot import ids
from bot.blocks import answer_messages, card_message, notice_message
from bot.edits import edit_form
from bot.facts import Posted, PostIntended, Reacted, Rendered, show
from bot.ids import Thread, thread_of
from bot.pace import Urgency
from bot.people import Directory
from bot.posts import Post, Posts, card_id
from bot.settings import SettingsBook
from bot.slack_api import SlackApi, SlackRefused, SlackUnreachable
from bot.story import Story, Withdrawn, told
from bot.view import Answer, Card, Waiting
from bot.words import WITHDRAWN
from harness_core.errors import HarnessError, NewerFormat, StoreError
from harness_core.events import Event
from harness_core.ports import Clock, SessionStore, ToolSpec
from harness_core.types import canonical, digest

log = logging.getLogger(__name__)

CALM: Final = 1.0  # seconds that a mood must last before it becomes a reaction: a quick run needs none
RETRY: Final = 3.0  # seconds until another look, after Slack failed or while another process renders
REMEMBERED: Final = 1_000  # sessions whose posts are kept in memory
MARK: Final = "harness_post"
GONE: Final = frozenset({"message_not_found", "cant_update_message"})


@dataclass(frozen=True, slots=True)
class Draft:
    """A message as it should stand in the thread."""

    post: str
    message: Mapping[str, Any]
    urgency: Urgency
    card: Card | None = None

    @property
    def marked(self) -> Mapping[str, Any]:
        """The message with what it can be found again by. A text comes back from Slack as another text: links are
        marked, emoji are named, and two answers may say the same. Everybody in the workspace can read the mark.
        """
        if self.card:
            return self.message  # its block_id names it
        return {**self.message, "metadata": {"event_type": MARK, "event_payload": {"post": self.post}}}

    @property
    def digest(self) -> str:
        """The same for the same picture: a card's message is drawn for revision 0, whichever stands there."""
        return digest(canonical(self.message))


class Presenter:
    """Renders the sessions of one Slack workspace."""

    def __init__(
        self,
        store: SessionStore,
        api: SlackApi,
        directory: Directory,
        settings: SettingsBook,
        clock: Clock,
        home: str,
        spec: Callable[[str], ToolSpec | None],
    ) -> None:
        self._store, self._api, self._directory, self._settings = store, api, directory, settings
        self._clock, self._home, self._spec = clock, home, spec
        self._dirty: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._posts: dict[str, Posts] = {}
        self._moods: dict[str, Mapping[str, str]] = {}
        self._moody: dict[str, asyncio.Task[None]] = {}
        self._looking_up: set[asyncio.Task[None]] = set()
        self._forget = store.changed(self._changed)

    # -- waking --------------------------------------------------------------------------------------------------------

    def wake(self, session_id: str) -> None:
        """Look at the session soon. At most one look at a time; further wakes join the next."""
        thread = thread_of(session_id)
        if thread is None or thread.home != self._home:
            return
        self._dirty.add(session_id)
        if session_id not in self._tasks:
            self._tasks[session_id] = asyncio.create_task(self._work(session_id), name=f"show {session_id}")

    async def recover(self) -> None:
        """Look at every session that may have changed while nobody was here."""
        while True:
            try:
                for session_id in await self._store.sessions("slack:"):
                    last, posts = await self._store.last_seq(session_id), await self.posts(session_id)
                    if last > posts.upto:
                        self.wake(session_id)
                    else:
                        self._posts.pop(session_id, None)
                return
            except StoreError:
                log.exception("what changed meanwhile is looked for again soon")
                await self._clock.sleep(RETRY)

    async def close(self) -> None:
        """Stop rendering; what is missing is rendered by whoever starts next."""
        self._forget()
        tasks = [*self._tasks.values(), *self._moody.values(), *self._looking_up]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until nothing is being rendered."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def _changed(self, session_id: str, events: tuple[Event, ...]) -> None:
        if not session_id.startswith(("show:", "config:")):
            self.wake(session_id)

    async def _work(self, session_id: str) -> None:
        try:
            while session_id in self._dirty:
                self._dirty.discard(session_id)
                if not await self._tried(session_id):
                    await self._clock.sleep(RETRY)
                    self._dirty.add(session_id)
        finally:
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

    async def posts(self, session_id: str) -> Posts:
        """What was posted for a session, as far as is known."""
        known = self._posts.get(session_id, Posts())
        known = known.plus(await self._store.read(show(session_id), known.seq))
        if len(self._posts) >= REMEMBERED:  # a cache, and cheap to fill again
            self._posts.clear()
        self._posts[session_id] = known
        return known

    async def card(self, session_id: str, fingerprint: str) -> Card | None:
        """The card of a task as it should look now."""
        posts = await self.posts(session_id)
        story = told(session_id, await self._store.read(session_id, posts.upto))
        card = story.cards.get(fingerprint)
        if card is None:  # of a run that has been shown for good
            card = told(session_id, await self._store.read(session_id)).cards.get(fingerprint)
        post = posts.by_id.get(card_id(fingerprint))
        return replace(card, revision=post.revision) if card and post else card

    async def sync(self, session_id: str) -> bool:
        """Make the thread look like the journal. False if another process is at it. Raises what Slack raises."""
        thread = thread_of(session_id)
        if thread is None:
            return True
        async with self._store.lease(show(session_id)) as lease:
            if lease is None:
                return False
            posts = await self.posts(session_id)
            story = told(session_id, await self._store.read(session_id, posts.upto))
            story = await self._completed(story)
            whole = True
            for draft in drafts(story):
                whole = await self._shown(session_id, thread, draft) and whole
            for post, says in story.says.items():
                if isinstance(says, Withdrawn):
                    await self._tell(session_id, thread, post, says)
        settled = await self._reacted(session_id, story)
        if story.over and whole and settled and story.seq > posts.upto and session_id not in self._dirty:
            await self._note(session_id, Rendered(story.seq))
            self._moods.pop(session_id, None)
        return True

    async def _completed(self, story: Story) -> Story:
        """The first card of each batch names who may decide; only what can be edited offers it. People are looked up
        before they click.
        """
        waiting = {mark: card for mark, card in story.cards.items() if isinstance(card.state, Waiting)}
        if not waiting:
            return story
        access = await self._settings.access()
        deciders = sorted(
            one for one in access.admins | access.approvers if ids.is_slack_id(one) and one != "requester"
        )
        # In the background: a card does not wait for it.
        task = asyncio.create_task(self._directory.prepare(deciders[:20]))
        self._looking_up.add(task)
        task.add_done_callback(self._looking_up.discard)
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

    async def _shown(self, session_id: str, thread: Thread, draft: Draft) -> bool:
        """Whether a message stands as it should. One that Slack refuses does not keep the others waiting."""
        try:
            await self._show(session_id, thread, draft)
        except SlackRefused as refused:
            log.error("%s of session %s cannot be shown: %s", draft.post, session_id, refused)
            return False
        return True

    async def _show(self, session_id: str, thread: Thread, draft: Draft) -> None:
        posts = await self.posts(session_id)
        post, wanted = posts.by_id.get(draft.post), draft.digest
        if post is None:
            await self._note(session_id, PostIntended(draft.post, wanted), key=f"intent:{draft.post}")
        elif not post.ts:
            if ts := await self._found(thread, draft):
                post = Post(post.digest, ts)
                await self._note(session_id, Posted(draft.post, post.digest, ts))
        elif post.digest == wanted:
            return
        if post is None or not post.ts:
            ts = await self._api.post(thread.channel, thread.ts, draft.marked, draft.urgency)
            await self._note(session_id, Posted(draft.post, wanted, ts))
        elif post.digest != wanted:
            await self._update(session_id, thread, draft, post, wanted)

    async def _update(self, session_id: str, thread: Thread, draft: Draft, post: Post, wanted: str) -> None:
        revision = post.revision + 1
        message = card_message(replace(draft.card, revision=revision)) if draft.card else draft.message
        try:
            await self._api.update(thread.channel, post.ts, message)
        except SlackRefused as refused:
            if refused.code not in GONE:
                raise
            log.warning("a message of session %s is gone from the thread: %s", session_id, refused)
        await self._note(session_id, Posted(draft.post, wanted, post.ts, revision))

    async def _found(self, thread: Thread, draft: Draft) -> str:
        """The ts of a message that was intended and perhaps posted; "" if it is not in the thread."""
        for message in reversed(await self._api.replies(thread.channel, thread.ts)):
            if _is(message, draft):
                return str(message.get("ts", ""))
        return ""

    async def _tell(self, session_id: str, thread: Thread, post: str, says: Withdrawn) -> None:
        """A private notice leaves no trace in the thread, so it is told at most once."""
        if post in (await self.posts(session_id)).by_id:
            return
        await self._note(session_id, PostIntended(post, ""), key=f"intent:{post}")
        await self._api.whisper(thread.channel, says.by, WITHDRAWN, thread.ts)

    # -- reactions -----------------------------------------------------------------------------------------------------

    async def _reacted(self, session_id: str, story: Story) -> bool:
        """Whether the prompts show the mood; if not, they will, once it has lasted. Only the newest run's has one."""
        shown = (await self.posts(session_id)).reactions
        moods = {ts: "" for ts, name in shown.items() if name}
        if story.prompt_ts:
            moods[story.prompt_ts] = story.mood
        self._moods[session_id] = moods
        if all(shown.get(ts, "") == mood for ts, mood in moods.items()):
            return True
        if session_id not in self._moody:
            self._moody[session_id] = asyncio.create_task(self._react(session_id), name=f"mood {session_id}")
        return False

    async def _react(self, session_id: str) -> None:
        """A mood that passes quickly costs no call, and no mood ever keeps a card waiting."""
        try:
            if any(self._moods[session_id].values()):
                await self._clock.sleep(CALM)
            for ts, mood in self._moods.get(session_id, {}).items():
                await self._change(session_id, ts, mood)
        except HarnessError as error:  # a reaction is decoration
            log.warning("no reaction: %s", error)
            return
        finally:
            del self._moody[session_id]
        self.wake(session_id)

    async def _change(self, session_id: str, ts: str, mood: str) -> None:
        thread, shown = thread_of(session_id), (await self.posts(session_id)).reactions.get(ts, "")
        if thread is None or shown == mood:
            return
        try:
            if shown:
                await self._api.react(thread.channel, ts, shown, add=False)
            if mood:
                await self._api.react(thread.channel, ts, mood, add=True)
        except SlackRefused as refused:  # it would again, and nothing must wait for a decoration
            log.warning("no reaction: %s", refused)
        await self._note(session_id, Reacted(ts, mood))

    async def _note(self, session_id: str, fact: Event, *, key: str | None = None) -> None:
        await self._store.append(show(session_id), replace(fact, at=self._clock.now()), key=key)


def drafts(story: Story) -> Sequence[Draft]:
    """The messages of a story, in the order in which they belong into the thread."""
    made: list[tuple[int, Draft]] = []
    for mark, card in story.cards.items():
        made.append((story.since[mark], Draft(card_id(mark), card_message(card), Urgency.CARD, card)))
    for post, one in story.says.items():
        if isinstance(one, Answer):
            parts = enumerate(answer_messages(one), start=1)
            made += [(story.since[post], Draft(f"{post}:{n}", part, Urgency.ANSWER)) for n, part in parts]
        elif not isinstance(one, Withdrawn):
            made.append((story.since[post], Draft(post, notice_message(one), Urgency.ANSWER)))
    return [draft for _, draft in sorted(made, key=lambda item: item[0])]


def _is(message: Mapping[str, Any], draft: Draft) -> bool:
    """Whether a message of the thread is this draft: a card by its block_id, a text by its mark."""
    if not (message.get("bot_id") or message.get("app_id")):
        return False
    if draft.card is None:
        return bool(message.get("metadata") == draft.marked["metadata"])
    blocks = message.get("blocks")
    names = [ids.card_named(str(block.get("block_id", ""))) for block in blocks] if isinstance(blocks, list) else []
    return any(name is not None and draft.card.task.fingerprint.startswith(name[0]) for name in names)
