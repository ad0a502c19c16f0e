"""Which messages belong together: a call is never without its result, nor a result without its call.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from harness_core.types import Message, canonical

Count = Callable[[str], int]  # tokens of a text
Size = Callable[[Message], int]  # tokens of a message

OF_A_MESSAGE: Final = 4  # tokens around a message: its role, and where it begins and ends
OF_A_CALL: Final = 10  # tokens around a call or beside a result: its id and its place in the JSON
OF_A_TOOL: Final = 15  # tokens around a tool in the table
OF_A_REQUEST: Final = 3

GAP: Final = (
    "\n[… the middle was left out: this message was larger than one may be. To see it, ask for it in parts …]\n"
)
SMALL_GAP: Final = "\n[…]\n"


def texts(message: Message) -> tuple[str, ...]:
    """All of a message that is counted."""
    return (message.content, *(part for call in message.calls for part in (call.name, canonical(call.args))))


def sized(message: Message, count: Count) -> int:
    """Tokens of a message with all that is around it."""
    if not message.calls:  # most messages; every request asks for the size of each of them several times
        return count(message.content) + OF_A_CALL * bool(message.call_uuid) + OF_A_MESSAGE
    ids = len(message.calls) + bool(message.call_uuid)
    return sum(count(text) for text in texts(message)) + OF_A_CALL * ids + OF_A_MESSAGE


class Sizes:
    """Tokens of each message of a history that grows: it remembers the last one, and counts what is new."""

    def __init__(self) -> None:
        self._messages: Sequence[Message] = ()
        self._sizes: tuple[int, ...] = ()

    def of(self, messages: Sequence[Message], size: Size) -> tuple[int, ...]:
        """The size of each."""
        if messages is not self._messages:
            known = self._sizes[: len(messages) - len(self.new(messages))]
            self._messages, self._sizes = messages, (*known, *map(size, messages[len(known) :]))
        return self._sizes

    def new(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Those that were not counted yet."""
        known = len(self._messages)  # compared by identity first, so that this is no work
        return messages[known:] if messages[:known] == self._messages else messages


def groups(messages: Sequence[Message]) -> tuple[range, ...]:
    """The messages that stay or go as one: a message with calls and the results after it; any other by itself."""
    found: list[range] = []
    for at, message in enumerate(messages):
        if message.role == "tool" and found and messages[found[-1].start].calls:
            found[-1] = range(found[-1].start, at + 1)
        else:
            found.append(range(at, at + 1))
    return tuple(found)


def whole(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without what no provider takes: calls that lack a result or have two, results of no call before
    them, and messages that say nothing.
    """
    kept: list[Message] = []
    for group in groups(messages):
        first, *rest = (messages[at] for at in group)
        if first.calls:
            ids = [call.call_uuid for call in first.calls]
            results = [result for result in rest if result.call_uuid in ids]
            if len(set(ids)) == len(ids) and sorted(ids) == sorted(result.call_uuid for result in results):
                kept += [first, *results]
        elif first.role != "tool" and first.content.strip():
            kept.append(first)
    return tuple(kept)


def plain_answer(message: Message) -> bool:
    """Whether the model said something here without calling anything."""
    return message.role == "assistant" and not message.calls and bool(message.content.strip())


def may_be_cut(message: Message) -> bool:
    """Whether its middle may be left out. Not that of calls, whose arguments are what was done, nor of a summary."""
    return bool(message.content) and not message.calls and not message.summary


def fitted(text: str, budget: int, count: Count) -> str:
    """The text, or its head and tail around a note, in at most `budget` tokens ("" where not even the note fits)."""
    total = count(text)
    if total <= budget:
        return text
    gap = GAP if budget >= 4 * count(GAP) else SMALL_GAP
    keep = len(text) * max(budget - count(gap), 0) // total
    while keep > 0:
        head = keep - keep // 2
        shorter = f"{text[:head]}{gap}{text[len(text) - keep // 2 :]}"
        if count(shorter) <= budget:
            return shorter
        keep = keep * 9 // 10
    return gap.strip() if count(gap.strip()) <= budget else ""


def capped(message: Message, cap: int, size: Size, count: Count) -> Message:
    """The message in at most `cap` tokens, or as it is where nothing of it may be cut."""
    total = size(message)
    if total <= cap or not may_be_cut(message):
        return message
    around = total - count(message.content)
    return replace(message, content=fitted(message.content, max(cap - around, 1), count) or SMALL_GAP.strip())


def without_empty(lines: Iterable[str]) -> str:
    """Paragraphs, one below the other."""
    return "\n\n".join(line for line in lines if line.strip())
