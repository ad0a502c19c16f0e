"""How much room a context has, and how much of it history may take.  Pure arithmetic, in tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from harness_core.compression.limits import ROOM_TO_GROW, Limits
from harness_core.compression.shape import OF_A_REQUEST, Count, Size
from harness_core.types import Message

# How much of a context stays when a model has refused it as too long: the first time, the second, and so on.
FORCED: Final = (0.8, 0.6, 0.4, 0.25)
LEAST_FORCED: Final = 1_000

LEAST_NOTE: Final = 200  # what stands for older messages may always have so much
MOST_NOTE: Final = 4_000
LEAST_KEPT: Final = 1_000  # history that stays where prompt and goal alone are too long


@dataclass(frozen=True, slots=True)
class Context:
    """What a request would hold. goal: where in messages the current goal is, None if it is not there (yet).

    inbox: prompts that no request has held. fixed: tokens of system prompt and tools. reserve: tokens to leave free for
    what is added before the next compression. length: of the model's window, None if it does not tell. sizes: of many
    messages, for who remembers them.
    """

    messages: Sequence[Message]
    size: Size
    count: Count
    goal: int | None = None
    inbox: Sequence[Message] = ()
    fixed: int = 0
    reserve: int = 0
    length: int | None = None
    sizes: Callable[[Sequence[Message]], Iterable[int]] | None = None

    @property
    def tokens(self) -> int:
        """Of the whole request."""
        return self.fixed + OF_A_REQUEST + sum(self.of_each()) + sum(map(self.size, self.inbox))

    def of_each(self) -> Iterable[int]:
        """Tokens of each message."""
        return self.sizes(self.messages) if self.sizes else map(self.size, self.messages)

    @property
    def variable(self) -> int:
        """How many messages may be replaced."""
        return len(self.messages) - (self.goal is not None)


@dataclass(frozen=True, slots=True)
class Room:
    """limit: of the request, and reachable: whether prompt and goal alone are below what was asked for.

    window: for the messages that are kept, if it can be; hard: for them at most. note: for what stands for the others.
    keep: how many messages. forced: as asked. why: what is too much, "" for nothing.
    """

    limit: int
    reachable: bool
    window: int
    hard: int
    note: int
    keep: int
    forced: int
    why: str


def room_for(context: Context, limits: Limits, forced: int = 0) -> Room:
    """The room for a context; forced: 0, or how often in a row the model has refused it as too long."""
    threshold, total, base = limits.threshold(context.length), context.tokens, _base(context)
    reachable = base < threshold
    # A threshold that prompt and goal alone are above means nothing; then half of what they leave of the window does.
    limit = threshold if reachable else base + max(limits.window(context.length) - base, 0) // 2
    spare = max(limit - base, 0)
    if forced:
        ratio = FORCED[min(forced, len(FORCED)) - 1]
        # Of what it is now: the model's window may be far smaller than we believe.
        available = max(max(min(LEAST_FORCED, threshold), int(min(total, limit) * ratio)) - base, 0)
        keep = max(1, math.ceil(context.variable * ratio))
    else:
        available, keep = int(spare * ROOM_TO_GROW), limits.target - 1
    note = min(max(LEAST_NOTE, available // 10), MOST_NOTE, spare if reachable else LEAST_NOTE)
    window = max(available - note, 0)
    hard = window if forced else max(spare - note, 0)
    if not (reachable or forced):
        window, hard = max(window, LEAST_KEPT), max(hard, LEAST_KEPT)
    why = _why(context, limits, total, limit, forced)
    if why and not reachable:
        why += f"; the system prompt, the tools and the goal alone are {base:,}, above the threshold of {threshold:,}"
    return Room(limit, reachable, window, hard, note, keep, forced, why)


def _base(context: Context) -> int:
    """Tokens of what always stays, and of what is left free."""
    goal = 0 if context.goal is None else context.size(context.messages[context.goal])
    return context.fixed + context.reserve + OF_A_REQUEST + goal + sum(map(context.size, context.inbox))


def _why(context: Context, limits: Limits, total: int, limit: int, forced: int) -> str:
    if forced:
        return f"the model refused {total:,} tokens as too long"
    if total > limit:
        return f"{total:,} tokens, above the limit of {limit:,}"
    if context.variable > limits.trigger:
        return f"{context.variable} messages, above the limit of {limits.trigger}"
    return ""
