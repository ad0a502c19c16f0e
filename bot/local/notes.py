"""Complaints about a payload, worded and placed as Slack places them in response_metadata.messages."""

from collections.abc import Iterable
from typing import Any, Final

from bot.local.shapes import JSON

_TEXTS: Final = ("type", "block_id", "action_id", "value")
_LISTS: Final = (
    "elements",
    "actions",
    "options",
    "option_groups",
    "initial_options",
    "fields",
    "child_blocks",
    "blocks",
)


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

    def shaped(self, part: Any, at: str) -> bool:
        """Is JSON of the right kinds wherever it is named alike in every block?  What the finer checks rely on."""
        before = len(self.found)
        if not isinstance(part, dict):
            self.add(at, "must be an object")
            return False
        for key, value in part.items():
            if key in _TEXTS and not isinstance(value, str):
                self.add(f"{at}/{key}", "must be a string")
            elif key in _LISTS and not isinstance(value, list):
                self.add(f"{at}/{key}", "must be an array")
            elif isinstance(value, list) and (key in _LISTS or key == "rows"):
                self._shaped_list(value, f"{at}/{key}", deep=key == "rows")
            elif isinstance(value, dict):
                self.shaped(value, f"{at}/{key}")
        return len(self.found) == before

    def _shaped_list(self, parts: list[Any], at: str, *, deep: bool) -> None:
        for number, part in enumerate(parts):
            if deep and isinstance(part, list):  # a table's rows are lists of cells
                self._shaped_list(part, f"{at}/{number}", deep=False)
            else:
                self.shaped(part, f"{at}/{number}")
