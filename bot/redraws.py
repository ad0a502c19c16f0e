"""When a card that stands is drawn anew: at once, or a moment later where that saves calls of the Web API.  Pure."""

from __future__ import annotations

from typing import Final

from bot.drafts import Draft
from bot.posts import Post
from bot.view import Decided
from harness_core.hitl import Approve, Rerun

SETTLE: Final = 0.7  # seconds that an approved call has to end, so that decision and result are drawn in one update
COUNTS: Final = 5  # cards at once whose count of others is drawn anew
COUNT_EACH: Final = 3.0  # seconds for each further one; Slack: chat.update about fifty times a minute, for all we show


class Redraws:
    """Says of each update how long it can wait. Times are seconds since the epoch."""

    def __init__(self) -> None:
        self._paid: dict[str, float] = {}  # by session: when the counts that were drawn are paid for

    def wait(self, session_id: str, draft: Draft, post: Post, now: float) -> float:
        """The seconds to wait before this update; 0 to draw it now."""
        if only_counts(draft, post):
            return max(0.0, self._paid.get(session_id, 0.0) - now - (COUNTS - 1) * COUNT_EACH)
        # No longer than that, though the clock of whoever stored the decision be ahead of ours.
        return min(SETTLE, max(0.0, _decided_at(draft) + SETTLE - now))

    def drawn(self, session_id: str, draft: Draft, post: Post, now: float) -> None:
        """It is drawn now."""
        if only_counts(draft, post):
            self._paid[session_id] = max(self._paid.get(session_id, 0.0), now) + COUNT_EACH

    def forget(self, session_id: str) -> None:
        """Nothing of the session changes any more."""
        self._paid.pop(session_id, None)


def only_counts(draft: Draft, post: Post) -> bool:
    """Whether what stands differs only in how many of the others are decided. In a batch of twenty all cards show that
    number; drawn at each decision it would cost hundreds of calls.
    """
    return bool(post.core) and draft.digest != post.digest and draft.core == post.core


def _decided_at(draft: Draft) -> float:
    """When a call was approved that runs by now, and of whose end nothing is known; 0 for all others."""
    state = draft.card.state if draft.card else None
    runs = isinstance(state, Decided) and state.waits_for == 0 and isinstance(state.decision, Approve | Rerun)
    return state.at if runs and isinstance(state, Decided) else 0.0
