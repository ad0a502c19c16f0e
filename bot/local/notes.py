"""Complaints about a payload, worded and placed as Slack places them in response_metadata.messages."""

from collections.abc import Iterable
from typing import Any

from bot.local.shapes import JSON


class Notes:
    """Collects complaints.  `found` is empty when all was well."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, at: str, complaint: str) -> None:
        self.found.append(f"[ERROR] {complaint} [json-pointer:{at}]")

    def only(self, part: JSON, allowed: Iterable[str], at: str) -> None:
        """No other fields than these ("*": any)."""
        known = set(allowed)
        for key in part:
            if key not in known and "*" not in known:
                self.add(at, f"invalid additional property: {key}")

    def length(self, part: JSON, key: str, at: str, most: int | None, *, low: int = 0, required: bool = False) -> None:
        """A field is text of between `low` and `most` characters; it may be missing unless required."""
        if part.get(key) is None:
            if required:
                self.add(at, f"missing required field: {key}")
            return
        self.size(part[key], f"{at}/{key}", most, low)

    def size(self, text: Any, at: str, most: int | None, low: int = 0) -> None:
        if not isinstance(text, str):
            self.add(at, "must be a string")
        elif most is not None and len(text) > most:
            self.add(at, f"must be less than {most + 1} characters")
        elif len(text) < low:
            self.add(at, f"must be more than {low - 1} characters")
