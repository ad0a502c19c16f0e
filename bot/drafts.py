"""The messages that a session's thread should hold, and how each is found again there.  No effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bot import ids
from bot.blocks import answer_messages, card_message, notice_message
from bot.fields import maps_of, text_of
from bot.pace import Urgency
from bot.posts import card_id
from bot.story import Story, Withdrawn
from bot.view import Answer, Card, Decided, Waiting
from harness_core.types import canonical, digest

MARK: Final = "harness_post"


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
    def waits(self) -> bool:
        """Whether it is a card that somebody has to decide."""
        return self.card is not None and isinstance(self.card.state, Waiting)

    @property
    def wanted(self) -> bool:
        """Whether it is posted if it does not stand yet: a card that nobody can decide any more helps nobody."""
        return self.card is None or self.waits

    @property
    def core(self) -> str:
        """The same for two pictures that differ only in how many of the others are decided."""
        if self.card is None:
            return self.digest
        state = self.card.state
        state = replace(state, waits_for=min(state.waits_for, 1)) if isinstance(state, Decided) else state
        return digest(canonical(card_message(replace(self.card, decided=0, state=state))))

    @property
    def digest(self) -> str:
        """The same for the same picture: a card's message is drawn for revision 0, whichever stands there."""
        return digest(canonical(self.message))


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


def stands(draft: Draft, message: Mapping[str, Any], bot_id: str) -> bool:
    """Whether a message of a thread is this draft: a card by its block_id, a text by its mark; and ours, for another
    bot could write the same.
    """
    if not bot_id or message.get("bot_id") != bot_id:
        return False
    if draft.card is None:
        return bool(message.get("metadata") == draft.marked["metadata"])
    names = [ids.card_named(text_of(block, "block_id")) for block in maps_of(message.get("blocks"))]
    return any(name is not None and draft.card.task.fingerprint.startswith(name[0]) for name in names)
