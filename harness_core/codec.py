"""How facts are stored: as JSON, and back.  Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from harness_core.errors import NewerFormat, StoreError
from harness_core.events import FACTS, Event

ENVELOPE = frozenset(f.name for f in fields(Event))


def stamp(event: Event, **envelope: Any) -> None:
    """Complete the envelope of an event that nobody else has seen yet (the store does, before it hands one out)."""
    for name, value in envelope.items():
        object.__setattr__(event, name, value)


class Codec:
    """Facts to JSON and back. A host adds its own kinds of facts: `Codec((*FACTS, CardPosted))`.

    The envelope is not part of the body: stores keep it in columns of its own.
    """

    def __init__(self, kinds: Iterable[type[Event]] = FACTS) -> None:
        self._kinds = {kind.__name__: kind for kind in kinds}

    def encode(self, event: Event) -> tuple[str, str]:
        """(kind, JSON body) of a fact. Raises StoreError for what cannot be stored: it must never be lost silently."""
        kind = type(event).__name__
        if kind not in self._kinds:
            raise StoreError(f"{kind} is not a fact and cannot be stored.")
        try:
            # Not dump_json, which writes a date, a set or NaN inside of arguments as something else.
            plain = _adapter(self._kinds[kind]).dump_python(event, exclude=set(ENVELOPE), warnings="error")
            body = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            # Written, it must be readable: pydantic writes None for anything, and reads only so many levels of nesting.
            _adapter(self._kinds[kind]).validate_json(body)
            return kind, body
        except Exception as error:  # several kinds of them; each means that the fact would come back different
            raise StoreError(f"{kind} cannot be stored as JSON: {error}") from error

    def decode(self, kind: str, body: str, **envelope: Any) -> Event:
        """The fact as it was. Raises NewerFormat for a kind or a field that this version does not know."""
        if kind not in self._kinds:
            raise NewerFormat(
                f"The journal holds a fact of the kind {kind}, which a newer version of the harness wrote. Upgrade."
            )
        try:
            event: Event = _adapter(self._kinds[kind]).validate_json(body)
        except ValidationError as error:
            if any(e["type"] in ("extra_forbidden", "unexpected_keyword_argument") for e in error.errors()):
                raise NewerFormat(
                    f"A fact of the kind {kind} has fields that a newer version of the harness wrote. Upgrade."
                ) from error
            raise StoreError(f"A fact of the kind {kind} is damaged: {error}") from error
        stamp(event, **envelope)
        return event


_ADAPTERS: Final[dict[type[Event], TypeAdapter[Any]]] = {}


def _adapter(kind: type[Event]) -> TypeAdapter[Any]:
    # Built on first use: building all of them would cost every importer a tenth of a second. Once for all codecs.
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
