"""Carries out a compression: has the summary made, and records it with what the session is by then."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from harness_core.asking import summarised
from harness_core.background import Interrupted, interruptibly
from harness_core.compression.plan import Plan
from harness_core.events import ContextCompressed, Ledger
from harness_core.interceptors.compression import MOST_FUTILE
from harness_core.journal import Journal
from harness_core.live import Live
from harness_core.parts import Surroundings
from harness_core.ports import Lease
from harness_core.recorder import Recorder
from harness_core.session import Trace
from harness_core.steps import Policy

log = logging.getLogger(__name__)

COMPRESSION_TRIES: Final = 5  # appends of one compression, while others write to the session


async def shorten(
    around: Surroundings, journal: Journal, recorder: Recorder, live: Live, lease: Lease, policy: Policy, plan: Plan
) -> ContextCompressed | None:
    """Replace older messages. None if a stop or something else came first; then it is decided again."""
    compression, measure, trace = policy.compression, policy.measure, journal.trace
    assert compression is not None
    assert measure is not None
    context = compression.context(trace, measure)
    try:
        asking = summarised(around, compression.summarise(context, plan))
        text, usage = await interruptibly(asking, live.stopping, lease)
    except Interrupted:
        return None
    after = compression.compressed(context, plan, text)
    fact = ContextCompressed(
        plan.cut,
        tuple(after.messages),
        Ledger(),
        plan.why,
        after.goal,
        usage,
        compression.fits(after, plan),
        plan.forced,
        len(context.messages) + len(context.inbox),
        context.tokens,
        after.tokens,
        measure.counter,
    )
    return fact if await _recorded(fact, trace, journal, recorder) else None


async def _recorded(fact: ContextCompressed, built_from: Trace, journal: Journal, recorder: Recorder) -> bool:
    """With what the session is now: people may have said and decided things while the summary was made."""
    for _ in range(COMPRESSION_TRIES):
        trace = await journal.catch_up()
        if trace.run is None or trace.run.stop or trace.batch or trace.messages != built_from.messages:
            return False
        recorder.decided_on = trace.seq
        if await recorder.record((replace(fact, ledger=journal.ledger()),), guarded=True):
            _tell_if_futile(fact, journal)
            return True
    return False


def _tell_if_futile(fact: ContextCompressed, journal: Journal) -> None:
    run = journal.trace.run
    if run and run.futile == MOST_FUTILE:
        log.warning("session %s: compressed twice in vain, not again in this run (%s)", journal.session_id, fact.why)
