"""Does one step and records what came of it.  Owns no policy: what to do was decided before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from harness_core import results
from harness_core.asking import ask, said, wait_before
from harness_core.background import Interrupted, interruptibly
from harness_core.calls import valid_text
from harness_core.ending import closing, time_left
from harness_core.errors import LeaseLost, ModelError
from harness_core.events import (
    Event,
    HITLPending,
    Inspected,
    ModelFailed,
    PolicyInForce,
    ReasonStart,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hooks import run_point
from harness_core.journal import Journal
from harness_core.live import Stage
from harness_core.masking import mask
from harness_core.parts import Surroundings
from harness_core.ports import Lease, ModelReply, ModelRequest
from harness_core.reasoning import sized, with_all_that_it_holds
from harness_core.recorder import STREAMED, Recorder
from harness_core.session import Trace
from harness_core.shortening import shorten
from harness_core.steps import (
    Act,
    Apply,
    Begin,
    Cleared,
    Close,
    Compress,
    Delegate,
    End,
    Hear,
    Look,
    Policy,
    Reason,
    Report,
    Settle,
    Step,
    Suspend,
)
from harness_core.tally import telling_nothing
from harness_core.tooling import inspected, run_all
from harness_core.types import (
    NO_DEADLINE,
    Args,
    Deadline,
    Inspection,
    Message,
    ToolCall,
    canonical,
    digest,
    same,
)


class Performer:
    """Performs the steps of one session while its lease is held."""

    def __init__(self, around: Surroundings, journal: Journal, lease: Lease, live: Stage) -> None:
        self._around = around
        self._journal = journal
        self._lease = lease
        self._live = live
        self._recorder = Recorder(journal, lease, live, around.clock)
        self._handed_over: set[str] = set()
        self._before: tuple[int | None, int | None] = (None, None)  # messages and tokens before a compression

    async def perform(self, step: Step, policy: Policy, decided_on: int) -> None:
        """Do it. Whatever is refused because something else came first is simply decided again.

        decided_on: the last fact that the step rests on. Others who ask for the session's state move the journal on
        while a step awaits something, so where the journal stands by then would guard nothing.
        """
        recorder = self._recorder
        recorder.decided_on = decided_on
        run = recorder.trace.run
        if run and run.policy != policy.digest:  # on record, it is decided again
            await recorder.record((PolicyInForce(policy.digest),))
            return
        match step:
            case Begin():
                await self._begin(step, policy)
            case Hear(facts=facts):
                await recorder.record(facts, guarded=True)
            case Reason():
                await self._reason(step, policy)
            case Compress():
                await self._compress(step, policy)
            case Look():
                await self._look(step, policy)
            case Settle(facts=facts):
                await recorder.record(facts, guarded=True)
            case Suspend(tasks=tasks, rulings=rulings):
                await recorder.record((*rulings, HITLPending(tasks)), guarded=True)
            case Apply():
                await self._apply(step)
            case Act():
                await self._act(step, policy)
            case Delegate():
                await self._delegate(step)
            case Report(facts=facts):
                await recorder.record(facts, guarded=True, show=frozenset({"HITLDecided"}))
            case Close():
                await self._close(step)
            case End():
                await self._end(step, policy)

    async def go_on(self, policy: Policy, decided_on: int) -> bool:
        """Record that a run goes on here: after decisions with the same attempt, else as a takeover."""
        self._recorder.decided_on = decided_on
        run = self._journal.trace.run
        assert run is not None
        start = RunStart(
            run.run_id,
            attempt=run.attempt if run.suspended else run.attempt + 1,
            resumed=True,
            requested_by=run.requested_by,
            policy_digest=policy.digest,
            prompt_digest=policy.prompt_digest,
        )
        return await self._recorder.record((start,), guarded=True)

    async def tell(self, facts: Sequence[Event]) -> None:
        """Record what comes from the session that this sub-agent works in. Each has a key, or is missed until it is
        there.
        """
        await self._recorder.record(facts)

    def flush(self) -> None:
        """Show the end of a run; see Recorder."""
        self._recorder.flush()

    # -- the model -----------------------------------------------------------------------------------------------------

    async def _begin(self, step: Begin, policy: Policy) -> None:
        self.flush()
        outset = policy.outset
        start = RunStart(
            self._around.new_id(),
            requested_by=step.prompt.by,
            policy_digest=policy.digest,
            prompt_digest=policy.prompt_digest,
            spent=outset.spent,
            rejected=outset.rejected,
            outside=outset.outside,
            outside_unpriced=outset.outside_unpriced,
        )
        await self._recorder.record((start, *(replace(f, run_id=start.run_id) for f in step.facts)), guarded=True)

    async def _reason(self, step: Reason, policy: Policy) -> None:
        if self._journal.trace.seq != self._recorder.decided_on:  # hooks have not seen what came since
            return
        trace = with_all_that_it_holds(self._journal.trace, step)
        messages, size = sized(trace, policy)
        until = self._until(policy, last=bool(step.limit))
        try:
            await self._back_off(trace, until)
            self._recorder.show(replace(size, messages_before=self._before[0], tokens_before=self._before[1]))
            self._before = (None, None)
            self._recorder.show(ReasonStart(step.step, step.attempt))
            reply = await interruptibly(self._asked(messages, until), self._live.stopping, self._lease)
            fact = said(reply, trace, step)
        except Interrupted:
            return
        except ModelError as error:
            message = valid_text(mask(str(error)))
            failed = ModelFailed(error.kind, step.attempt, step.step, message, trace.seq, error.retry_after, step.limit)
            # What hooks wanted to tell is told with the next attempt; but that the run is ending is so already.
            rulings = step.rulings if step.limit else telling_nothing(step.rulings)
            await self._recorder.record((*rulings, failed))
            return
        hooks = policy.gate.hooks
        await self._ruled(lambda now: (*step.rulings, fact, *run_point("after_model", hooks, now, fact).rulings))

    async def _ruled(self, facts: Callable[[Trace], Sequence[Event]]) -> None:
        """Record what came about, and what hooks rule on it. Where others wrote meanwhile, hooks are asked again: what
        stands before a ruling, the hook has seen, or a replay would have it see something else.
        """
        while True:
            now = self._now()
            self._recorder.decided_on = now.seq
            if await self._recorder.record(facts(now), guarded=True):
                return

    def _now(self) -> Trace:
        """The session, for hooks that are asked now."""
        return replace(self._journal.trace, now=self._around.clock.now())

    def _until(self, policy: Policy, *, last: bool = False) -> Deadline:
        """When this run's time is over: for its work, or for its last message."""
        run, clock = self._journal.trace.run, self._around.clock
        return Deadline(clock.monotonic() + time_left(run, policy, clock.now(), last=last)) if run else NO_DEADLINE

    async def _back_off(self, trace: Trace, until: Deadline) -> None:
        clock = self._around.clock
        if (seconds := wait_before(trace, clock.now())) > 0:
            seconds = until.left(clock.monotonic(), seconds)
            await interruptibly(clock.sleep(seconds), self._live.stopping, self._lease)

    async def _asked(self, messages: Sequence[Message], until: Deadline) -> ModelReply:
        around = self._around
        return await ask(around, ModelRequest(around.system, messages, around.specs), until, self._recorder.show)

    async def _compress(self, step: Compress, policy: Policy) -> None:
        fact = await shorten(
            self._around,
            self._journal,
            self._recorder,
            self._live,
            self._lease,
            policy,
            step,
            self._until(policy),
        )
        if fact:
            self._before = (fact.messages_before, fact.tokens_before)

    # -- the calls -----------------------------------------------------------------------------------------------------

    async def _look(self, step: Look, policy: Policy) -> None:
        until = self._until(policy)
        try:
            found = await interruptibly(self._all_inspected(step, until), self._live.stopping, self._lease)
        except Interrupted:
            return
        facts = [
            Inspected(call.call_uuid, digest(canonical(args)), seen)
            for (call, args), seen in zip(step.at, found, strict=True)
        ]
        await self._recorder.record(facts)

    async def _all_inspected(self, step: Look, until: Deadline) -> Sequence[Inspection]:
        return await asyncio.gather(*(self._inspected(call, args, until) for call, args in step.at))

    async def _inspected(self, call: ToolCall, args: Args, until: Deadline) -> Inspection:
        return await inspected(self._around, self._journal.session_id, call, args, until)

    async def _apply(self, step: Apply) -> None:
        for tool, args in step.approvals:
            await self._around.approved(tool, args)
        await self._recorder.record(step.facts, guarded=True)

    async def _close(self, step: Close) -> None:
        await self._recorder.record((*step.rulings, step.end), guarded=True, before=lambda: self._show_start(step.call))
        self._recorder.show_action_end()

    def _show_start(self, call: ToolCall) -> None:
        self._recorder.show_action_start()
        if call.call_uuid not in self._handed_over:  # of which the start was shown
            self._recorder.show(ToolCallStart(call))

    async def _act(self, step: Act, policy: Policy) -> None:
        recorder, clock, until = self._recorder, self._around.clock, self._until(policy)
        try:
            changed = await interruptibly(self._changed(step.cleared, until), self._live.stopping, self._lease)
        except Interrupted:
            return
        if changed:
            recorder.show_action_start()
            for c in changed:
                recorder.show(ToolCallStart(c.call, c.args))
            await recorder.record([self._changed_end(c.call) for c in changed])
            recorder.show_action_end()
            return
        if not self._lease.valid():
            raise LeaseLost
        cleared = step.cleared[: self._around.parallel]
        facts: list[Event] = [*step.rulings]
        for c in cleared:
            facts += [*c.rulings, ToolCallStart(c.call, None if same(c.args, c.call.args) else c.args)]
        began = clock.monotonic()
        self._live.acting = True
        try:
            if not await recorder.record(facts, guarded=True, before=recorder.show_action_start):
                return
            ends = await run_all(
                self._around, self._journal.session_id, cleared, until, self._live.stopping, self._lease
            )
            seconds = round(clock.monotonic() - began, 3)
            ends = [replace(end, seconds=seconds) for end in ends]
            await self._ruled(lambda now: _results(cleared, ends, policy, now))
        finally:
            self._live.acting = False
        recorder.show_action_end()

    async def _delegate(self, step: Delegate) -> None:
        c = step.cleared
        start = ToolCallStart(c.call, None if same(c.args, c.call.args) else c.args, step.child)
        if await self._recorder.record((*step.rulings, start), guarded=True, before=self._recorder.show_action_start):
            self._handed_over.add(c.call.call_uuid)

    async def _changed(self, cleared: Sequence[Cleared], until: Deadline) -> Sequence[Cleared]:
        """The calls for which the world is not what it was when they were judged and shown."""
        changed = []
        for c in cleared:
            state = self._journal.trace.of(c.call.call_uuid)
            judged_on = state.inspection(c.args) if state else None
            if judged_on is not None and judged_on != await self._inspected(c.call, c.args, until):
                changed.append(c)
        return changed

    def _changed_end(self, call: ToolCall) -> ToolCallEnd:
        state = self._journal.trace.of(call.call_uuid)
        if state and state.started:  # to be repeated, it cannot be said to have never run
            return results.unknown(call, f"it was started once and not again, since {results.CHANGED}")
        return results.not_run(call, results.CHANGED)

    # -- the end -------------------------------------------------------------------------------------------------------

    async def _end(self, step: End, policy: Policy) -> None:
        end, rulings = closing(step, self._now(), policy.gate.hooks)
        show = frozenset({"RunEnd"}) if step.quiet else STREAMED
        facts = (*step.rulings, *rulings, *step.ends, end)
        await self._recorder.record(facts, guarded=True, show=show)


def _results(cleared: Sequence[Cleared], ends: Sequence[ToolCallEnd], policy: Policy, now: Trace) -> Sequence[Event]:
    """The results as hooks leave them, and what hooks said about them."""
    facts: list[Event] = []
    for c, end in zip(cleared, ends, strict=True):
        ruled = run_point("after_tool", policy.gate.hooks, now, c.call.given(c.args), end)
        facts += [ruled.value, *ruled.rulings]
    return facts
