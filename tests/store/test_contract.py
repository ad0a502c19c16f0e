"""What every store promises, asked of each."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from harness_core.codec import Codec
from harness_core.errors import LeaseLost, NewerFormat, StoreError
from harness_core.events import (
    FACTS,
    Event,
    Prompted,
    ReasonDelta,
    RuleChanged,
    RunStart,
    StopRequested,
    ToolCallEnd,
)
from harness_core.permissions.rule import PermissionRule
from harness_core.store.memory import MemoryStore
from harness_core.store.rows import OPENS
from harness_core.testing import FakeClock
from tests.conftest import PATIENCE
from tests.store.handles import Handles, Store

HOSTILE = "T1:C1:1.0' or 1=1; --\x00%_*\u202e\U0001f600"


def texts(events: object) -> list[str]:
    return [event.text for event in events if isinstance(event, Prompted)]  # type: ignore[attr-defined]


# -- append and read ---------------------------------------------------------------------------------------------------


async def test_facts_come_back_in_order_with_a_seq_from_one(store: Store):
    await store.append("s", Prompted("a", by="U1", at=5.0))
    await store.append("s", [RunStart("r", at=6.0), ToolCallEnd("c", "done", run_id="r", at=7.0)])

    facts = await store.read("s")

    assert [(f.seq, f.session_id, f.at, f.run_id) for f in facts] == [
        (1, "s", 5.0, ""),
        (2, "s", 6.0, "r"),
        (3, "s", 7.0, "r"),
    ]
    assert await store.last_seq("s") == 3


async def test_append_returns_what_read_will_return(store: Store):
    stored = await store.append("s", [Prompted("a", key="k"), StopRequested("r", by="U")])

    assert stored == tuple(await store.read("s"))


async def test_append_leaves_the_given_event_as_it_was(store: Store):
    given = Prompted("a")

    await store.append("s", given, key="k")

    assert given == Prompted("a")


async def test_a_fact_without_a_time_gets_the_clock_s_and_one_with_a_time_keeps_it(store: Store, clock: FakeClock):
    first, second = await store.append("s", [Prompted("a"), Prompted("b", at=1.5)])

    assert (first.at, second.at) == (clock.now(), 1.5)


async def test_read_begins_after_the_given_seq(store: Store):
    await store.append("s", [Prompted("a"), Prompted("b"), Prompted("c")])

    assert texts(await store.read("s", after=2)) == ["c"]
    assert texts(await store.read("s", after=3)) == []


async def test_an_unknown_session_is_empty(store: Store):
    assert (list(await store.read("x")), list(await store.open("x")), await store.last_seq("x")) == ([], [], 0)


async def test_sessions_do_not_see_each_other(store: Store):
    await store.append("a", Prompted("in a"), key="k")
    await store.append("b", Prompted("in b"), key="k")

    assert (texts(await store.read("a")), texts(await store.read("b"))) == (["in a"], ["in b"])


async def test_appending_nothing_does_nothing(store: Store):
    assert await store.append("s", []) == ()
    assert list(await store.sessions()) == []


async def test_a_session_id_may_be_any_text(store: Store):
    await store.append(HOSTILE, Prompted("x", key=HOSTILE, run_id=HOSTILE))
    async with store.lease(HOSTILE) as lease:
        assert lease is not None
        await store.append(HOSTILE, Prompted("y"), fence=lease.fence)

    assert texts(await store.read(HOSTILE)) == ["x", "y"]
    assert list(await store.sessions(HOSTILE)) == [HOSTILE]
    assert list(await store.unfinished(0.0)) == [HOSTILE]


@pytest.mark.parametrize("fact", [Prompted("\ud800"), Prompted("x", key="\ud800"), Prompted("x", at=float("nan"))])
async def test_what_would_not_come_back_is_refused_and_nothing_is_written(store: Store, fact: Event):
    with pytest.raises(StoreError):
        await store.append("s", [Prompted("before"), fact])

    assert list(await store.read("s")) == []


async def test_an_id_that_no_database_can_hold_is_refused_by_every_verb(store: Store):
    for ask in (store.read, store.open, store.last_seq, store.sessions):
        with pytest.raises(StoreError):
            await ask("\ud800")
    with pytest.raises(StoreError):
        store.lease("\ud800")


async def test_a_passing_event_cannot_be_stored(store: Store):
    with pytest.raises(StoreError, match="not a fact"):
        await store.append("s", ReasonDelta("x"))


# -- refusals ----------------------------------------------------------------------------------------------------------


async def test_a_key_counts_once_in_its_session(store: Store):
    assert await store.append("s", Prompted("first"), key="k")
    assert await store.append("s", Prompted("second"), key="k") == ()
    assert await store.append("s", Prompted("third", key="k")) == ()

    assert texts(await store.read("s")) == ["first"]


async def test_a_taken_key_refuses_the_whole_append(store: Store):
    await store.append("s", Prompted("first", key="k"))

    assert await store.append("s", [Prompted("new"), Prompted("again", key="k")]) == ()

    assert texts(await store.read("s")) == ["first"]


async def test_the_same_key_twice_in_one_append_is_refused(store: Store):
    assert await store.append("s", [Prompted("a", key="k"), Prompted("b", key="k")]) == ()
    assert await store.last_seq("s") == 0


async def test_an_empty_key_is_a_key(store: Store):
    assert await store.append("s", Prompted("a"), key="")
    assert await store.append("s", Prompted("b"), key="") == ()


async def test_key_names_the_first_of_several_facts(store: Store):
    first, second = await store.append("s", [Prompted("a"), Prompted("b")], key="k")

    assert (first.key, second.key) == ("k", None)


async def test_an_append_after_a_seq_that_is_not_the_last_is_refused(store: Store):
    await store.append("s", Prompted("a"), after=0)

    assert await store.append("s", Prompted("late"), after=0) == ()
    assert await store.append("s", Prompted("early"), after=2) == ()
    assert await store.append("s", Prompted("b"), after=1)

    assert texts(await store.read("s")) == ["a", "b"]


async def test_of_two_handles_that_append_after_the_same_fact_exactly_one_wins(handles: Handles):
    one, two = handles.first, handles.another()
    for seq in range(20):
        wins = await asyncio.gather(
            one.append("s", Prompted("one"), after=seq), two.append("s", Prompted("two"), after=seq)
        )
        assert sorted(map(len, wins)) == [0, 1]

    assert await one.last_seq("s") == 20


async def test_of_two_handles_that_append_the_same_key_exactly_one_wins(handles: Handles):
    one, two = handles.first, handles.another()
    for n in range(20):
        wins = await asyncio.gather(
            one.append("s", Prompted("one", key=f"{n}")), two.append("s", Prompted("two", key=f"{n}"))
        )
        assert sorted(map(len, wins)) == [0, 1]


async def test_seqs_are_contiguous_whoever_appends_at_the_same_time(handles: Handles):
    one, two = handles.first, handles.another()

    await asyncio.gather(*(handle.append("s", [Prompted("a"), Prompted("b")]) for handle in (one, two) * 15))

    assert [fact.seq for fact in await one.read("s")] == list(range(1, 61))


# -- open and sessions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ContextCompressed(Event):
    kept_from: int = 0


async def test_open_begins_with_the_last_compression(handles: Handles):
    assert ContextCompressed.__name__ == OPENS
    known = (*(kind for kind in FACTS if kind.__name__ != OPENS), ContextCompressed)
    store = handles.another(Codec(known))
    for facts in ([Prompted("a")], [ContextCompressed()], [Prompted("b"), ContextCompressed(), Prompted("c")]):
        await store.append("s", facts)
    await store.append("s", Prompted("d"))

    assert [fact.seq for fact in await store.open("s")] == [4, 5, 6]
    assert len(await store.read("s")) == 6


async def test_open_without_a_compression_is_everything(store: Store):
    await store.append("s", [Prompted("a"), Prompted("b")])

    assert await store.open("s") == await store.read("s")


async def test_sessions_are_listed_by_their_prefix_which_matches_exactly(store: Store):
    for session_id in ("T1:C1", "T1:C2", "t1:c3", "T1%", "T10:C1", "config:T1"):
        await store.append(session_id, Prompted("x"))

    assert list(await store.sessions("T1:")) == ["T1:C1", "T1:C2"]
    assert list(await store.sessions("T1%")) == ["T1%"]
    assert len(await store.sessions()) == 6


# -- leases ------------------------------------------------------------------------------------------------------------


async def test_a_session_is_held_by_one_task_at_a_time(store: Store):
    async with store.lease("s") as first:
        assert first is not None
        async with store.lease("s") as second:
            assert second is None
        async with store.lease("other") as other:
            assert other is not None
    async with store.lease("s") as third:
        assert third is not None


async def test_of_many_tasks_that_ask_at_once_one_gets_the_session(handles: Handles):
    stores = (handles.first, handles.another())
    done = asyncio.Event()
    asked: list[bool] = []

    async def ask(store: Store) -> bool:
        async with store.lease("s") as lease:
            asked.append(lease is not None)
            if len(asked) == 10:
                done.set()
            await done.wait()
            return lease is not None

    assert sum(await asyncio.gather(*(ask(store) for store in stores * 5))) == 1


async def test_another_process_does_not_get_a_session_that_is_held(handles: Handles):
    async with handles.first.lease("s"), handles.another().lease("s") as lease:
        assert lease is None


async def test_every_holder_gets_a_higher_fence(handles: Handles):
    fences = []
    for store in (handles.first, handles.another(), handles.first):
        async with store.lease("s") as lease:
            assert lease is not None
            fences.append(lease.fence)

    assert fences == [1, 2, 3]


async def test_a_process_without_a_heartbeat_for_three_seconds_is_taken_over(handles: Handles, clock: FakeClock):
    other = handles.another()
    async with handles.first.lease("s") as old:
        clock.advance(3.0)
        async with other.lease("s") as early:
            assert early is None
        clock.advance(0.1)
        async with other.lease("s") as new:
            assert old is not None
            assert new is not None
            assert new.fence == old.fence + 1
            assert new.valid()
            assert not old.valid()


async def test_a_heartbeat_keeps_every_lease_of_its_process(handles: Handles, clock: FakeClock):
    async with handles.first.lease("a") as a, handles.first.lease("b") as b:
        for _ in range(5):
            clock.advance(2.0)
            await handles.first.beat()
        assert a is not None
        assert b is not None
        assert a.valid()
        assert b.valid()
        async with handles.another().lease("a") as lease:
            assert lease is None


async def test_a_lease_stops_being_valid_before_anybody_can_take_it(handles: Handles, clock: FakeClock):
    async with handles.first.lease("s") as lease:
        assert lease is not None
        clock.advance(2.4)
        assert lease.valid()
        clock.advance(0.2)
        assert not lease.valid()
        async with handles.another().lease("s") as other:
            assert other is None


async def test_a_lease_that_survived_a_long_pause_is_never_valid_again(handles: Handles, clock: FakeClock):
    store, other = handles.first, handles.another()
    async with store.lease("s") as stale:
        clock.advance(10.0)
        async with other.lease("s"):
            pass
        await store.beat()
        async with store.lease("fresh") as fresh:
            assert stale is not None
            assert fresh is not None
            assert (stale.valid(), fresh.valid()) == (False, True)


async def test_a_lease_is_not_valid_after_it_was_released(store: Store):
    async with store.lease("s") as lease:
        pass

    assert lease is not None
    assert not lease.valid()


async def test_a_new_lease_brings_its_own_heartbeat_when_the_last_one_is_old(handles: Handles, clock: FakeClock):
    async with handles.first.lease("warm-up"):
        pass
    clock.advance(100.0)

    async with handles.first.lease("s") as lease:
        assert lease is not None
        assert lease.valid()
        async with handles.another().lease("s") as other:
            assert other is None


async def test_an_append_with_the_fence_of_the_lease_is_accepted(store: Store):
    async with store.lease("s") as lease:
        assert lease is not None
        assert await store.append("s", Prompted("a"), fence=lease.fence)


async def test_after_a_takeover_the_old_holder_cannot_write(handles: Handles, clock: FakeClock):
    store, other = handles.first, handles.another()
    async with store.lease("s") as old:
        assert old is not None
        clock.advance(4.0)
        async with other.lease("s") as new:
            assert new is not None
            with pytest.raises(LeaseLost):
                await store.append("s", Prompted("stale"), fence=old.fence)
            assert await other.append("s", Prompted("new"), fence=new.fence)
        with pytest.raises(LeaseLost):
            await store.append("s", Prompted("stale"), fence=old.fence)

    assert texts(await store.read("s")) == ["new"]


async def test_the_fence_of_another_process_does_not_help(handles: Handles):
    other = handles.another()
    async with handles.first.lease("s") as lease:
        assert lease is not None
        with pytest.raises(LeaseLost):
            await other.append("s", Prompted("forged"), fence=lease.fence)


async def test_a_released_lease_writes_nothing_more(store: Store):
    async with store.lease("s") as lease:
        pass

    assert lease is not None
    with pytest.raises(LeaseLost):
        await store.append("s", Prompted("late"), fence=lease.fence)


async def test_a_lost_lease_speaks_before_a_refusal(store: Store):
    await store.append("s", Prompted("a"), key="k")

    with pytest.raises(LeaseLost):
        await store.append("s", Prompted("b"), key="k", after=99, fence=1)


async def test_without_a_fence_anybody_may_append(handles: Handles):
    async with handles.first.lease("s"):
        assert await handles.another().append("s", Prompted("a click"))


async def test_releasing_a_lost_lease_does_not_harm_the_new_holder(handles: Handles, clock: FakeClock):
    store, other = handles.first, handles.another()
    await store.append("s", Prompted("a"))
    old = store.lease("s")
    held = await old.__aenter__()
    assert held is not None
    await held.rest(2)
    clock.advance(4.0)
    async with other.lease("s") as new:
        assert new is not None
        assert await other.append("s", Prompted("b"), fence=new.fence)

        await old.__aexit__(None, None, None)

        async with store.lease("s") as again:
            assert again is None

    assert list(await store.unfinished(clock.now())) == ["s"]


async def test_an_exception_inside_releases_the_session(store: Store):
    with pytest.raises(ZeroDivisionError):
        async with store.lease("s"):
            raise ZeroDivisionError

    async with store.lease("s") as lease:
        assert lease is not None


async def test_a_task_cancelled_while_it_asks_does_not_keep_the_session(handles: Handles):
    other = handles.another()

    async def hold() -> None:
        async with handles.first.lease("s"):
            await asyncio.Event().wait()

    for turns in range(6):
        task = asyncio.create_task(hold())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for store in (other, handles.first):
            async with store.lease("s") as lease:
                assert lease is not None


async def test_closing_lets_go_of_everything(handles: Handles):
    closing, other = handles.another(), handles.first
    async with closing.lease("s") as lease:
        await closing.close()

        assert lease is not None
        assert not lease.valid()
        async with other.lease("s") as taken:
            assert taken is not None


async def test_a_closed_store_says_so_and_can_be_closed_again(handles: Handles):
    store = handles.another()
    await store.append("s", Prompted("a"))
    await store.close()
    await store.close()

    with pytest.raises(StoreError, match="closed"):
        await store.read("s")


# -- rest and what is unfinished ---------------------------------------------------------------------------------------


async def rest(store: Store, session_id: str, seq: int, until: float | None = None) -> None:
    async with store.lease(session_id) as lease:
        assert lease is not None
        await lease.rest(seq, until)


async def test_a_session_with_facts_beyond_its_rest_is_unfinished(store: Store, clock: FakeClock):
    await store.append("s", [Prompted("a"), Prompted("b")])
    assert list(await store.unfinished(clock.now())) == ["s"]

    await rest(store, "s", 1)
    assert list(await store.unfinished(clock.now())) == ["s"]

    await rest(store, "s", 2)
    assert list(await store.unfinished(clock.now())) == []

    await store.append("s", Prompted("c"))
    assert list(await store.unfinished(clock.now())) == ["s"]


async def test_a_rest_ends_at_its_time(store: Store, clock: FakeClock):
    await store.append("s", Prompted("a"))
    await rest(store, "s", 1, until=clock.now() + 60)

    assert list(await store.unfinished(clock.now() + 59)) == []
    assert list(await store.unfinished(clock.now() + 60)) == ["s"]

    await rest(store, "s", 1)
    assert list(await store.unfinished(clock.now() + 999)) == []


async def test_a_rest_beyond_the_last_fact_does_not_cover_what_comes_later(store: Store, clock: FakeClock):
    await store.append("s", Prompted("a"))
    await rest(store, "s", 99)
    await store.append("s", Prompted("b"))

    assert list(await store.unfinished(clock.now())) == ["s"]


async def test_a_rest_is_written_with_the_release_and_not_before(handles: Handles, clock: FakeClock):
    store = handles.first
    await store.append("s", Prompted("a"))
    async with store.lease("s") as lease:
        assert lease is not None
        await lease.rest(1)
        store.stall()
        clock.advance(4.0)

        assert list(await handles.another().unfinished(clock.now())) == ["s"]


async def test_leaving_without_a_rest_leaves_the_session_unfinished(store: Store, clock: FakeClock):
    await store.append("s", Prompted("a"))
    async with store.lease("s"):
        pass

    assert list(await store.unfinished(clock.now())) == ["s"]


async def test_a_session_that_somebody_alive_holds_is_not_unfinished(handles: Handles, clock: FakeClock):
    store, other = handles.first, handles.another()
    await store.append("s", Prompted("a"))
    async with store.lease("s"):
        assert list(await store.unfinished(clock.now())) == []
        assert list(await other.unfinished(clock.now())) == []
        clock.advance(4.0)
        assert list(await store.unfinished(clock.now())) == []
        assert list(await other.unfinished(clock.now())) == ["s"]


async def test_settings_and_what_was_shown_are_never_unfinished(store: Store, clock: FakeClock):
    for session_id in ("config:workspace", "show:s", "configured", "Show:s", "s/show:"):
        await store.append(session_id, Prompted("x"))

    assert sorted(await store.unfinished(clock.now())) == ["Show:s", "configured", "s/show:"]


async def test_whoever_waits_longest_comes_first(store: Store, clock: FakeClock):
    await store.append("a", Prompted("x", at=30.0))
    await store.append("b", [Prompted("x", at=5.0), Prompted("x", at=20.0)])
    await store.append("c", Prompted("x", at=8.0))
    await rest(store, "b", 1)
    await rest(store, "c", 1, until=10.0)

    assert list(await store.unfinished(clock.now())) == ["c", "b", "a"]


# -- who is told -------------------------------------------------------------------------------------------------------


async def test_an_append_is_told_once_it_is_stored(store: Store):
    told: list[tuple[str, list[str]]] = []
    store.changed(lambda session_id, facts: told.append((session_id, texts(facts))))

    await store.append("s", [Prompted("a"), Prompted("b")], key="k")
    await store.append("s", Prompted("refused"), key="k")

    assert told == [("s", ["a", "b"])]


async def test_only_appends_through_this_handle_are_told(handles: Handles):
    told: list[str] = []
    handles.first.changed(lambda session_id, _: told.append(session_id))

    await handles.another().append("s", Prompted("a"))

    assert told == []


async def test_nobody_is_told_after_unsubscribing(store: Store):
    told: list[str] = []
    forget = store.changed(lambda session_id, _: told.append(session_id))
    forget()
    forget()

    await store.append("s", Prompted("a"))

    assert told == []


async def test_one_listener_that_fails_does_not_hurt_the_others(store: Store, caplog: pytest.LogCaptureFixture):
    told: list[str] = []

    def fail(session_id: str, facts: tuple[Event, ...]) -> None:
        raise ZeroDivisionError

    store.changed(fail)
    store.changed(lambda session_id, _: told.append(session_id))

    assert await store.append("s", Prompted("a"))
    assert told == ["s"]
    assert "ZeroDivisionError" in caplog.text


async def test_an_append_whose_caller_was_cancelled_happens_and_is_told(store: Store):
    told = asyncio.Event()
    store.changed(lambda *_: told.set())
    task = asyncio.create_task(store.append("s", Prompted("a")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await asyncio.wait_for(told.wait(), PATIENCE)
    assert texts(await store.read("s")) == ["a"]


# -- formats -----------------------------------------------------------------------------------------------------------


async def test_a_fact_of_a_newer_version_is_refused_in_clear_words(handles: Handles):
    newer = handles.another(Codec((*FACTS, FromTheFuture)))
    await newer.append("s", FromTheFuture("x"))

    with pytest.raises(NewerFormat, match="newer version"):
        await handles.first.read("s")


@dataclass(frozen=True, slots=True)
class FromTheFuture(Event):
    text: str


async def test_a_memory_store_with_a_heartbeat_holds_its_leases_until_it_stalls():
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    other = store.reopen()
    async with store.lease("s") as lease:
        assert lease is not None
        clock.advance(1000.0)
        assert lease.valid()
        async with other.lease("s") as taken:
            assert taken is None

        store.stall()
        clock.advance(4.0)
        assert not lease.valid()
        async with other.lease("s") as taken:
            assert taken is not None


async def test_facts_of_a_kind_are_found_across_the_journals_that_begin_alike(store: Store):
    rule = PermissionRule.allow("bash", "ls")
    await store.append("slack:T:C1:2", [Prompted("hi"), RuleChanged("added", rule, "U2")])
    await store.append("slack:T:C1:1", [RuleChanged("added", rule, "U1"), RuleChanged("removed", rule, "U1")])
    await store.append("slack:T:C2:1", RuleChanged("added", rule, "U3"))

    found = await store.find("RuleChanged", "slack:T:C1:")

    assert [(f.session_id, f.seq, f.by) for f in found if isinstance(f, RuleChanged)] == [
        ("slack:T:C1:1", 1, "U1"),
        ("slack:T:C1:1", 2, "U1"),
        ("slack:T:C1:2", 2, "U2"),
    ]
    assert await store.find("RuleChanged", "slack:T:C3") == ()
    assert len(await store.find("RuleChanged")) == 4
