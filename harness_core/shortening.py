"""Carries out a compression: has the summary made, and records it with what the session is by then."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from harness_core.asking import summarised
from harness_core.background import Interrupted, interruptibly
from harness_core.events import ContextCompressed, Event, Ledger
from harness_core.hooks import run_point
from harness_core.interceptors.compression import MOST_FUTILE
from harness_core.journal import Journal
from harness_core.live import Stage
from harness_core.parts import Surroundings
from harness_core.ports import Lease
from harness_core.recorder import Recorder
from harness_core.session import Trace
from harness_core.steps import Compress, Policy
from harness_core.types import Deadline

log = logging.getLogger(__name__)

COMPRESSION_TRIES: Final = 5  # appends of one compression, while others write to the session


async def shorten(
    around: Surroundings,
    journal: Journal,
    recorder: Recorder,
    live: Stage,
    lease: Lease,
    policy: Policy,
    step: Compress,
    until: Deadline,
) -> ContextCompressed | None:
    """Replace older messages. None if a stop or something else came first; then it is decided again."""
    compression, measure, trace, plan = policy.compression, policy.measure, journal.trace, step.plan
    assert compression is not None
    assert measure is not None
    if trace.seq != recorder.decided_on:  # hooks have not seen what came since
        return None
    context = compression.context(trace, measure)
    try:
        asking = summarised(around, compression.summarise(context, plan), until)
        text, usage = await interruptibly(asking, live.stopping, lease)
    except Interrupted:
        return None
    after = compression.compressed(context, plan, text)
    fact = ContextCompressed(
        kept_from=plan.cut,
        messages=tuple(after.messages),
        ledger=Ledger(),  # of the moment when it is recorded
        why=plan.why,
        goal=after.goal,
        usage=usage,
        fits=compression.fits(after, plan),
        forced=plan.forced,
        messages_before=len(context.messages) + len(context.inbox),
        tokens_before=context.tokens,
        tokens=after.tokens,
        counter=measure.counter,
        upto=trace.seq,
    )

    def now() -> Sequence[Event]:
        made = replace(fact, ledger=journal.ledger())
        seen = replace(journal.trace, now=around.clock.now())
        # After the fact, which a fold may begin with.
        return made, *step.rulings, *run_point("after_compress", policy.gate.hooks, seen, made).rulings

    return fact if await _recorded(fact, now, trace, journal, recorder) else None


async def _recorded(
    fact: ContextCompressed,
    now: Callable[[], Sequence[Event]],
    built_from: Trace,
    journal: Journal,
    recorder: Recorder,
) -> bool:
    """With what the session is now: people may have said and decided things while the summary was made."""
    for _ in range(COMPRESSION_TRIES):
        trace = await journal.catch_up()
        if trace.run is None or trace.run.stop or trace.batch or trace.messages != built_from.messages:
            return False
        recorder.decided_on = trace.seq
        if await recorder.record(now(), guarded=True):
            _tell_if_futile(fact, journal)
            return True
    return False


def _tell_if_futile(fact: ContextCompressed, journal: Journal) -> None:
    run = journal.trace.run
    if run and run.futile == MOST_FUTILE:
        log.warning("session %s: compressed twice in vain, not again in this run (%s)", journal.session_id, fact.why)
