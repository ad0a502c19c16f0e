"""Facts as rows and back: what lies in columns, and what is refused before it reaches a disk.  Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from harness_core.codec import Codec
from harness_core.errors import StoreError
from harness_core.events import Event

# `open` begins with the last fact of this kind. A name, because a store knows no kind of fact.
OPENS: Final = "ContextCompressed"


class Row(NamedTuple):
    """A fact on its way in. at: seconds since the epoch; body: JSON without the envelope."""

    at: float
    run_id: str
    key: str | None
    kind: str
    body: str


class StoredRow(NamedTuple):
    """A fact on its way out: the columns of Row, and its place in the journal."""

    seq: int
    at: float
    run_id: str
    key: str | None
    kind: str
    body: str


def storable(text: str) -> str:
    """The text, if a database can hold it. Raises StoreError for a lone surrogate, which UTF-8 cannot say."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise StoreError(f"{text!r} cannot be stored: it is no valid Unicode text.") from error
    return text


def encode(codec: Codec, event: Event) -> Row:
    """A fact as a row. Raises StoreError for what would not come back as it is."""
    if not math.isfinite(event.at):
        raise StoreError(f"{type(event).__name__} cannot be stored: its time is {event.at}.")
    kind, body = codec.encode(event)
    key = None if event.key is None else storable(event.key)
    return Row(float(event.at), storable(event.run_id), key, kind, body)


def decode(codec: Codec, session_id: str, rows: Iterable[StoredRow]) -> tuple[Event, ...]:
    """The facts as they were. Raises NewerFormat for what this version does not know."""
    return tuple(
        codec.decode(kind, body, session_id=session_id, seq=seq, at=at, run_id=run_id, key=key)
        for seq, at, run_id, key, kind, body in rows
    )


def addressed(session_id: str, events: Event | Sequence[Event], key: str | None, now: float) -> tuple[Event, ...]:
    """Copies that know their session, their time (now, where the caller left it open), and `key` on the first."""
    several = (events,) if isinstance(events, Event) else tuple(events)
    copies = [replace(event, session_id=session_id, at=event.at or now) for event in several]
    if key is not None and copies:
        copies[0] = replace(copies[0], key=key)
    return tuple(copies)


def repeats_a_key(rows: Iterable[Row]) -> bool:
    """Whether two of these facts claim the same key."""
    keys = [row.key for row in rows if row.key is not None]
    return len(set(keys)) < len(keys)


def opens_at(rows: Sequence[Row], first: int) -> int | None:
    """Where `open` shall begin after these facts, the first of which gets seq `first`; None if that stays."""
    return next((first + i for i in range(len(rows) - 1, -1, -1) if rows[i].kind == OPENS), None)
