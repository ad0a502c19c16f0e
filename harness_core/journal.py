"""One session's journal as the engine holds it: what was read so far, added up, and appends that keep it in step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness_core.events import Event, Ledger
from harness_core.ports import SessionStore
from harness_core.session import Folder, Trace

KEPT: Final = 32  # journals that are kept in memory after use; a long one is some megabytes


class Journal:
    """The facts of a session up to `seq`, folded. `told` notes that others append; a quiet journal costs no read."""

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self._store = store
        self.session_id = session_id
        self._folder = Folder()
        self._trace: Trace | None = None
        self.seq = 0
        self._known = 0
        self.loaded = False

    @classmethod
    async def open(cls, store: SessionStore, session_id: str, upto: int | None = None) -> Journal:
        """Read the session as far as its present state needs, or its state as it was at fact `upto`."""
        journal = cls(store, session_id)
        facts = await store.open(session_id)
        if upto is not None and facts and (facts[0].seq or 0) > upto:
            facts = await store.read(session_id)  # compressed since then: the state before lies in the facts before
        journal.take([e for e in facts if upto is None or (e.seq or 0) <= upto])
        journal.loaded = True
        return journal

    async def load(self) -> None:
        """Read for the first time, or what is new since. What it is told of meanwhile is read by `catch_up`."""
        read = self._store.read(self.session_id, self.seq) if self.loaded else self._store.open(self.session_id)
        self.take(await read)
        self.loaded = True

    @property
    def trace(self) -> Trace:
        """The sum of what was read."""
        if self._trace is None:
            self._trace = self._folder.trace()
        return self._trace

    def ledger(self) -> Ledger:
        """The sum of what was read, but for the messages."""
        return self._folder.ledger()

    @property
    def behind(self) -> bool:
        """Whether somebody is known to have appended what was not read yet."""
        return self._known > self.seq

    def told(self, seq: int) -> None:
        """Somebody appended up to this seq."""
        self._known = max(self._known, seq)

    async def catch_up(self) -> Trace:
        """Read what others appended meanwhile."""
        while self.behind:
            known = self._known
            self.take(await self._store.read(self.session_id, self.seq))
            if self._known == known:  # nobody told of more while we read
                self._known = self.seq
        return self.trace

    async def append(self, events: Sequence[Event], *, fence: int | None, after: int | None) -> tuple[Event, ...]:
        """Append facts; only if `after` is still the last seq, if it is given. Returns them as stored, or () if
        refused.
        """
        stored = await self._store.append(self.session_id, events, after=after, fence=fence)
        if stored and (stored[0].seq or 0) <= self.seq + 1:
            self.take(stored)
        else:  # somebody else was here: refused, or theirs comes first
            self.told(self.seq + 1)
            await self.catch_up()
        return stored

    def take(self, events: Sequence[Event]) -> None:
        """Add facts, each once: two readers of one journal may bring the same ones."""
        for event in events:
            if (event.seq or 0) > self.seq:
                self._folder.add(event)
                self.seq = event.seq or self.seq
                self._trace = None
        self._known = max(self._known, self.seq)


class Shelf:
    """The journals used last, so that the next look at a long session reads only what is new.

    Who borrows one has it alone, and loads it: other processes may have appended meanwhile.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._journals: dict[str, Journal] = {}

    def borrow(self, session_id: str) -> Journal:
        """The journal as it was put back, or a new one."""
        return self._journals.pop(session_id, None) or Journal(self._store, session_id)

    def put_back(self, journal: Journal) -> None:
        """Keep it for the next one, instead of the one used longest ago."""
        self._journals.pop(journal.session_id, None)
        self._journals[journal.session_id] = journal
        while len(self._journals) > KEPT:
            del self._journals[next(iter(self._journals))]
