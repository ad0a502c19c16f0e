"""Whether a context is to be compressed, and where it is cut.  Pure: tokens are counted by whoever asks.

The system prompt and the current goal always stay; a call is never parted from its results; the newest messages stay
as far as there is room; what is too large for its place keeps its head and its tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from harness_core.compression.limits import FEWEST_RESERVED, MOST_RESERVED, Limits
from harness_core.compression.notes import note
from harness_core.compression.room import Context, Room, room_for
from harness_core.compression.shape import capped, groups, may_be_cut, plain_answer, whole
from harness_core.types import Message

LEAST_SHOWN: Final = 64  # tokens of a message that is cut to make room for others


@dataclass(frozen=True, slots=True)
class Plan:
    """Where to cut: messages from `cut` on stay, with at most `cap` tokens each. note: tokens of what replaces the
    others. limit: tokens that the request shall have at most; reachable: whether that can be, by the prompt and the
    goal alone. forced: how often the model has refused the request as too long.
    """

    cut: int
    cap: int
    note: int
    limit: int
    reachable: bool = True
    forced: int = 0
    why: str = ""


def shown(context: Context, limits: Limits) -> tuple[Message, ...]:
    """The messages as a request holds them: what is larger than one message may be keeps its head and tail."""
    cap = limits.cap(limits.threshold(context.length))
    if max(context.of_each(), default=0) <= cap:  # as good as always
        return tuple(context.messages)
    return tuple(
        message if at == context.goal else capped(message, cap, context.size, context.count)
        for at, message in enumerate(context.messages)
    )


def plan(context: Context, limits: Limits, forced: int = 0) -> Plan | None:
    """Where to cut, None if nothing is to be done or nothing can be.

    context.messages: as shown. forced: 0, or how often in a row the model has refused the request as too long.
    """
    room = room_for(context, limits, forced)
    if not room.why:
        return None
    cut = _cut(context, limits, room)
    cap, cut = _squeezed(context, cut, room, limits)
    made = Plan(cut, cap, room.note, room.limit, room.reachable, forced, room.why)
    return made if _gains(context, made) else None


def replaced(context: Context, plan: Plan) -> tuple[Message, ...]:
    """The messages that something else will stand for. The goal is never among them."""
    return tuple(message for at, message in enumerate(context.messages[: plan.cut]) if at != context.goal)


def compressed(context: Context, plan: Plan, text: str) -> tuple[tuple[Message, ...], int | None]:
    """The messages after compression, and where the goal is among them. text: the summary, "" for none."""
    goal = None if context.goal is None else context.messages[context.goal]
    head = [goal] if goal is not None and context.goal is not None and context.goal < plan.cut else []
    if said := note(text, replaced(context, plan), plan.note, context.count):
        head.append(said)
    kept = (
        message if message is goal else capped(message, plan.cap, context.size, context.count)
        for message in context.messages[plan.cut :]
    )
    messages = (*head, *whole(tuple(kept)))
    return messages, next((at for at, message in enumerate(messages) if message is goal), None)


def fits(context: Context, limits: Limits, plan: Plan) -> bool:
    """Whether a compressed context needs no more compression: else the next one would do as little."""
    return context.tokens <= plan.limit and context.variable <= limits.trigger


# -- where to cut ------------------------------------------------------------------------------------------------------


def _cut(context: Context, limits: Limits, room: Room) -> int:
    """The start of a group: as few messages as the count wants, and as many as there is room for."""
    starts = [group.start for group in groups(context.messages)]
    by_count = _from_tail(context, room.keep)
    by_tokens = _fitting(context, room.window)
    reserved = _from_tail(context, _reserved(context, limits, room))
    wanted = max(by_count, min(by_tokens, reserved))
    first = max((start for start in starts if start <= wanted), default=0)
    last = max((start for start in starts if start <= max(wanted, reserved)), default=0)
    most = max(limits.max_messages, room.keep)
    for start in (start for start in starts if first <= start <= last):
        kept = context.messages[start:]
        if _tokens(context, start) <= room.window and len(kept) <= most:
            return _anchored(context, start, room)
    return last


def _anchored(context: Context, cut: int, room: Room) -> int:
    """Include what the model said just before, if there is room: it says what the calls after it are for."""
    before = cut - 1
    if before < 0 or room.forced or not plain_answer(context.messages[before]):
        return cut
    return before if _tokens(context, before) <= room.window else cut


def _from_tail(context: Context, count: int) -> int:
    """The index from which on there are so many messages, the goal not counted."""
    for at in range(len(context.messages) - 1, -1, -1):
        if count <= 0:
            return at + 1
        count -= at != context.goal
    return 0


def _fitting(context: Context, window: int) -> int:
    """The first index from which on everything fits into the window."""
    for at in range(len(context.messages) - 1, -1, -1):
        window -= 0 if at == context.goal else context.size(context.messages[at])
        if window < 0:
            return at + 1
    return 0


def _reserved(context: Context, limits: Limits, room: Room) -> int:
    if room.forced:
        return 1
    if limits.min_reserved_messages:
        return limits.min_reserved_messages
    quarter = len(context.messages) - _fitting(context, room.window // 4)
    return min(max(quarter, FEWEST_RESERVED), MOST_RESERVED)


def _tokens(context: Context, start: int) -> int:
    """Tokens of what stays, the goal not counted."""
    return sum(
        context.size(message) for at, message in enumerate(context.messages) if at >= start and at != context.goal
    )


# -- what is too large for its place -----------------------------------------------------------------------------------


def _squeezed(context: Context, cut: int, room: Room, limits: Limits) -> tuple[int, int]:
    """(cap, cut): how far the kept messages are cut to fit, and from where they are kept if even that is too much."""
    cap = limits.cap(limits.threshold(context.length))
    for start in [group.start for group in groups(context.messages) if group.start >= cut]:
        fixed, loose = _parts(context, start)
        if fixed + sum(loose) <= room.hard:
            return cap, start
        if fixed + LEAST_SHOWN * len(loose) <= room.hard:
            return _even_cap(loose, room.hard - fixed), start
    return cap, len(context.messages)


def _parts(context: Context, start: int) -> tuple[int, list[int]]:
    """Tokens of the kept messages: what may not be cut, and each one that may."""
    fixed, loose = 0, []
    for at in range(start, len(context.messages)):
        message = context.messages[at]
        if at != context.goal and may_be_cut(message):
            loose.append(context.size(message))
        elif at != context.goal:
            fixed += context.size(message)
    return fixed, loose


def _even_cap(sizes: Sequence[int], room: int) -> int:
    """The largest cap with which messages of these sizes fit: the small ones leave their room to the large ones."""
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return max(room // left, 1)
        room, left = room - size, left - 1
    return max(sizes, default=1)


def _gains(context: Context, plan: Plan) -> bool:
    """Whether anything becomes less: something is replaced that was no summary before, or something is cut."""
    if any(not message.summary for message in replaced(context, plan)):
        return True
    return any(
        context.size(message) > plan.cap and may_be_cut(message) and at != context.goal
        for at, message in enumerate(context.messages)
        if at >= plan.cut
    )
