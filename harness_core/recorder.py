"""Records the facts of one session while its lease is held, and shows them, and what passes, to whoever watches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from harness_core.events import ActionEnd, ActionStart, Event, HookRuled, RunEnd
from harness_core.hooks import FAULT
from harness_core.journal import Journal
from harness_core.live import Stage
from harness_core.ports import Clock, Lease
from harness_core.session import Trace

log = logging.getLogger(__name__)

# What a stream shows of the facts; the others are for the record.
STREAMED: Final = frozenset(
    {"RunStart", "ReasonEnd", "HITLPending", "HITLDecided", "ToolCallStart", "ToolCallEnd", "RunEnd"}
)


class Recorder:
    """Appends and publishes. decided_on: the last fact that the step in hand was decided on, which guards it."""

    def __init__(self, journal: Journal, lease: Lease, live: Stage, clock: Clock) -> None:
        self.decided_on = 0
        self._journal = journal
        self._lease = lease
        self._live = live
        self._clock = clock
        self._acting = 0  # the step whose ActionStart was shown, 0 for none
        self._ending: list[Event] = []

    @property
    def trace(self) -> Trace:
        """The session as it is known now."""
        return self._journal.trace

    async def record(
        self,
        events: Sequence[Event],
        *,
        guarded: bool = False,
        before: Callable[[], None] | None = None,
        show: frozenset[str] = STREAMED,
    ) -> bool:
        """Append facts, all or none. guarded: only if nothing came in since `decided_on`. before: called once they
        are stored, before they are shown. False if refused.
        """
        run = self.trace.run
        now = self._clock.now()
        stamped = [replace(e, run_id=e.run_id or (run.run_id if run else ""), at=now) for e in events]
        after = self.decided_on if guarded else None
        stored = await self._journal.append(stamped, fence=self._lease.fence, after=after)
        if stored and before:
            before()
        for event in stored:
            if isinstance(event, HookRuled) and FAULT in event.payload:
                log.warning("session %s, at %s: %s", event.session_id, event.point, event.payload[FAULT])
            if type(event).__name__ not in show:
                continue
            if isinstance(event, RunEnd):
                self.show_action_end()
                self._ending.append(event)
            else:
                self._live.publish(event, self.trace)
        return bool(stored)

    def show(self, event: Event) -> None:
        """Show an event that passes."""
        trace = self.trace
        run_id = trace.run.run_id if trace.run else ""
        passing = replace(event, session_id=trace.session_id, run_id=run_id, at=self._clock.now())
        self._live.publish(passing, trace)

    def show_action_start(self) -> None:
        """The calls of the last message begin, if that was not shown yet."""
        run = self.trace.run
        if run and run.last and self._acting != run.last.step:
            self._acting = run.last.step
            self.show(ActionStart(run.last.step, run.last.calls))

    def show_action_end(self) -> None:
        """The calls of the last message have their results, if their beginning was shown."""
        run = self.trace.run
        if self._acting and not self.trace.batch:
            calls = run.last.calls if run and run.last else ()
            self.show(ActionEnd(self._acting, calls))
            self._acting = 0

    def flush(self) -> None:
        """Show the end of a run. Held back until the lease is free, so that whoever sees it can go on elsewhere."""
        for event in self._ending:
            self._live.publish(event, self.trace)
        self._ending = []
