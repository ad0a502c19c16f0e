"""Long text, cut in the middle: head and tail stay, and it says how much is missing.  Pure."""

from __future__ import annotations

from harness_core.errors import in_words


class HeadTail:
    """Collects text of any length in bounded memory: the first and the last half of `cap` characters are kept."""

    def __init__(self, cap: int) -> None:
        self._head_cap = cap - cap // 2
        self._tail_cap = cap // 2
        self._head = ""
        self._tail = ""
        self._length = 0

    def add(self, piece: str) -> None:
        """One more piece."""
        self._length += len(piece)
        room = self._head_cap - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        if piece and self._tail_cap:
            self._tail = (self._tail + piece)[-self._tail_cap :]

    def text(self) -> str:
        """What was kept, with a line in the middle that says how many characters were left out, if any were."""
        left_out = self._length - len(self._head) - len(self._tail)
        if left_out <= 0:
            return self._head + self._tail
        return f"{self._head}\n[… {left_out:,} characters left out …]\n{self._tail}"


def clip(text: str, cap: int) -> str:
    """The text, or its head and tail if it is longer than `cap` characters (the note about the middle comes on top)."""
    kept = HeadTail(cap)
    kept.add(text)
    return kept.text()


def short(text: str, cap: int = 60) -> str:
    """A name or a value for a one-line message: cut at `cap` characters, what does not print is escaped."""
    cut = text if len(text) <= cap else text[: cap - 1] + "…"
    return cut if cut.isprintable() else cut.encode("unicode_escape").decode("ascii")


def said(error: BaseException) -> str:
    """An error for a result: its class and its message, bounded."""
    return clip(in_words(error), 2_000)
