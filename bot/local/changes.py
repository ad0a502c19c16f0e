"""Which documents changed since a reader last looked: numbers, newest last."""

import secrets
from typing import Final

# Of these a page shows something; all others (envelopes, triggers, addresses) come and go unseen.
WATCHED: Final = frozenset({"person", "channel", "message", "view"})


class Changes:
    """Numbers every change.  `epoch` tells one opening of a file from the next, as numbers begin anew with each."""

    def __init__(self) -> None:
        self.epoch = secrets.token_hex(6)
        self.number = 0
        self._last: dict[tuple[str, str], int] = {}  # in the order of their last change

    def note(self, kind: str, key: str) -> None:
        if kind in WATCHED:
            self.number += 1
            self._last.pop((kind, key), None)
            self._last[kind, key] = self.number

    def since(self, number: int) -> list[tuple[str, str]]:
        """Kind and id of each document that changed after this number, the latest change last."""
        found = []
        for place in reversed(self._last):
            if self._last[place] <= number:
                break
            found.append(place)
        return found[::-1]
