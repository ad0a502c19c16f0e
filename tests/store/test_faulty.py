"""The store that dies on command dies as a killed process does."""

from __future__ import annotations

from contextlib import suppress

import pytest

from harness_core.events import Prompted
from harness_core.testing import FakeClock
from tests.store.faulty import Crash, CrashingStore
from tests.store.handles import Handles, Store


async def work(store: CrashingStore) -> None:
    async with store.lease("s") as lease:
        assert lease is not None
        await store.append("s", Prompted("a"), fence=lease.fence)
        await lease.rest(await store.last_seq("s"))


async def test_it_counts_every_call(store: Store):
    counting = CrashingStore(store)

    await work(counting)

    assert counting.log == ["lease", "append", "last_seq", "rest", "release"]
    assert not counting.crashed


@pytest.mark.parametrize("performed", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
async def test_at_every_point_the_next_process_finds_all_that_was_done(
    handles: Handles, clock: FakeClock, at: int, performed: bool
):
    dying, heir = CrashingStore(handles.first, at, performed=performed), handles.another()

    with pytest.raises(Crash):
        await work(dying)

    clock.advance(4.0)
    done = at + performed  # the first so many calls happened
    assert await heir.last_seq("s") == (1 if done > 2 else 0)
    assert list(await heir.unfinished(clock.now())) == (["s"] if 2 < done < 6 else [])
    async with heir.lease("s") as lease:
        assert lease is not None


async def test_a_killed_process_does_not_release_what_it_held(handles: Handles, clock: FakeClock):
    with suppress(Crash):
        await work(CrashingStore(handles.first, 2))

    async with handles.another().lease("s") as early:
        assert early is None
    clock.advance(4.0)
    async with handles.another().lease("s") as lease:
        assert lease is not None


async def test_after_its_death_nothing_reaches_the_disk(store: Store):
    dying = CrashingStore(store, 1)
    for _ in range(2):
        with pytest.raises(Crash):
            await dying.append("s", Prompted("a"))

    assert list(await store.read("s")) == []
    assert dying.log == ["append"]
