"""Which of our messages stand where: card, answer or notice -> message ts and digest.  Pure; folded from facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bot.facts import Posted, PostGone, PostIntended, Reacted, Rendered, StatusTold
from harness_core.events import Event


@dataclass(frozen=True, slots=True)
class Post:
    """One message of ours. ts "": intended, and not known to stand in the thread; gone: it does not."""

    digest: str
    ts: str = ""
    revision: int = 0
    core: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Posts:
    """All that was posted for a session. status: what Slack was told of its thread last, "" if nothing ever was.

    upto: facts of the session that are shown for good. seq: of the last fact.
    """

    by_id: Mapping[str, Post] = field(default_factory=dict)
    reactions: Mapping[str, str] = field(default_factory=dict)
    status: str = ""
    upto: int = 0
    seq: int = 0

    def plus(self, events: Iterable[Event]) -> Posts:
        """These posts after more facts."""
        by_id, reactions, status = dict(self.by_id), dict(self.reactions), self.status
        upto, seq = self.upto, self.seq
        for event in events:
            seq = event.seq or seq
            match event:
                case PostIntended(post=post, digest=digest):
                    by_id.setdefault(post, Post(digest))
                case Posted(post=post, digest=digest, ts=ts, revision=revision, core=core):
                    by_id[post] = Post(digest, ts, revision, core)
                case PostGone(post=post, ts=ts) if post in by_id and by_id[post].ts == ts:
                    by_id[post] = Post("", gone=True)
                case Reacted(ts=ts, name=name):
                    reactions[ts] = name
                case StatusTold(status=told):
                    status = told
                case Rendered(upto=shown):
                    upto = max(upto, shown)
        return Posts(by_id, reactions, status, upto, seq)


def card_id(fingerprint: str) -> str:
    """The post that is the card of a task."""
    return f"card:{fingerprint}"
