"""Pieces of formatted text as messages: each as long as Slack takes, and nothing parted that must stay whole.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bot.limits import units

FENCE: Final = "```"
# What may never be parted: a date, a link and the host that stands behind it, and an entity.
_ATOM: Final = re.compile(r"<[^<>\n]*>(?: \([^\s()]*\))?|&(?:amp|lt|gt);|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Part:
    """A paragraph, or the inside of a fence, escaped and formatted already. close: no blank line before it."""

    text: str
    fenced: bool = False
    close: bool = False

    def drawn(self) -> str:
        """As it stands in a message."""
        return f"{FENCE}\n{self.text}\n{FENCE}" if self.fenced else self.text


def packed(parts: Sequence[Part], prefix: str, most: int) -> Sequence[str]:
    """The texts of one or more messages of at most `most` characters each; none for no parts. prefix: in front of the
    first one.
    """
    messages, now = list[str](), prefix
    for part in parts:
        for piece in _split(part, most - len(prefix)):
            text = piece.drawn()
            gap = "" if now == prefix else "\n" if piece.close else "\n\n"
            joined = f"{now}{gap}{text}"
            if units(joined) > most and now != prefix:
                messages.append(now)
                joined = text
            now = joined
    return [*messages, now] if now != prefix else messages


def _split(part: Part, most: int) -> Iterator[Part]:
    """A part in pieces that fit a message, at a line's end or a blank if there is one, never inside an atom."""
    room = most - (2 * len(FENCE) + 2 if part.fenced else 0)
    rest = part.text
    while units(rest) > room:
        end = _fitting(rest, room)
        for gap in ("\n", " "):
            near = rest.rfind(gap, end // 2, end)
            if near > 0 and not _inside_atom(rest, near):
                yield replace(part, text=rest[:near])
                rest = rest[near + 1 :]
                break
        else:
            yield replace(part, text=rest[:end])
            rest = rest[end:]
    yield replace(part, text=rest)


def _fitting(text: str, room: int) -> int:
    """Where the last atom ends that still fits; the first counts as fitting, so that no text is split for ever."""
    end = 0
    for atom in _ATOM.finditer(text):
        room -= units(atom[0])
        if room < 0 and end:
            break
        end = atom.end()
    return end


def _inside_atom(text: str, place: int) -> bool:
    start = text.rfind("<", 0, place)
    atom = _ATOM.match(text, start) if start >= 0 else None
    return atom is not None and atom.end() > place
