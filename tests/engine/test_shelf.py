from __future__ import annotations

from collections.abc import Sequence

from harness_core.events import Event, Prompted
from harness_core.journal import KEPT, Journal, Shelf
from harness_core.store.memory import MemoryStore


class Counting(MemoryStore):
    """Notes how many facts each read brought."""

    def __init__(self) -> None:
        super().__init__()
        self.brought: list[int] = []

    async def open(self, session_id: str) -> Sequence[Event]:
        return self._noted(await super().open(session_id))

    async def read(self, session_id: str, after: int = 0) -> Sequence[Event]:
        return self._noted(await super().read(session_id, after))

    def _noted(self, events: Sequence[Event]) -> Sequence[Event]:
        self.brought.append(len(events))
        return events


async def used(shelf: Shelf, session_id: str) -> Journal:
    journal = shelf.borrow(session_id)
    await journal.load()
    shelf.put_back(journal)
    return journal


async def test_a_second_look_reads_only_what_another_process_has_appended():
    store = Counting()
    shelf = Shelf(store)
    await store.append("s", [Prompted("one"), Prompted("two")])
    await used(shelf, "s")
    await store.append("s", Prompted("three"))

    journal = await used(shelf, "s")

    assert store.brought == [2, 1]
    assert [p.text for p in journal.trace.inbox] == ["one", "two", "three"]


async def test_two_who_look_at_once_do_not_share_a_journal():
    shelf = Shelf(MemoryStore())
    shelf.put_back(Journal(MemoryStore(), "s"))

    assert shelf.borrow("s") is not shelf.borrow("s")


async def test_the_journal_used_longest_ago_makes_room():
    store = Counting()
    shelf = Shelf(store)
    await store.append("s0", Prompted("one"))
    for n in range(KEPT + 1):
        await used(shelf, f"s{n}")
    store.brought.clear()

    await used(shelf, "s0")

    assert store.brought == [1]
