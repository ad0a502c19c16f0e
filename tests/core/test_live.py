"""What a stream is shown of what happens in its session."""

from __future__ import annotations

from harness_core.events import Event, Prompted, ReasonEnd, RunEnd, RunStart
from harness_core.live import Watcher
from harness_core.session import fold
from harness_core.testing import history, reasoned

FACTS = history(
    Prompted("one"),
    RunStart("r"),
    reasoned("a"),
    RunEnd("completed", "a"),
    Prompted("two"),
    RunStart("q"),
    reasoned("b"),
)


def shown(watcher: Watcher, facts: tuple[Event, ...]) -> list[str]:
    for n, fact in enumerate(facts, 1):
        if not isinstance(fact, Prompted):
            watcher.push(fact, fold(facts[:n]))
    return [type(watcher.queue.get_nowait()).__name__ for _ in range(watcher.queue.qsize())]


async def test_the_end_of_a_run_before_a_streams_prompt_is_not_its_end() -> None:
    watcher = Watcher(prompt_seq=5)

    assert shown(watcher, FACTS) == ["RunStart", "ReasonEnd"]
    assert not watcher.done


async def test_the_end_of_a_run_that_did_not_take_up_a_streams_prompt_is_not_its_end() -> None:
    facts = history(Prompted("one"), RunStart("r"), Prompted("two"), reasoned("a", upto=2), RunEnd("limited"))
    watcher = Watcher(prompt_seq=3)
    shown(watcher, facts)

    assert not watcher.done


async def test_a_stream_that_joins_late_begins_with_a_run_start_all_the_same() -> None:
    watcher = Watcher()
    watcher.push(FACTS[2], fold(FACTS[:3]))
    start, end = watcher.queue.get_nowait(), watcher.queue.get_nowait()

    assert isinstance(start, RunStart)
    assert (start.seq, start.run_id, start.resumed) == (None, "r", True)
    assert isinstance(end, ReasonEnd)
