"""Does one step and records what came of it.  Owns no policy: what to do was decided before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from harness_core import results
from harness_core.asking import ask, said, wait_before
from harness_core.background import Interrupted, interruptibly
from harness_core.calls import valid_text
from harness_core.errors import LeaseLost, ModelError
from harness_core.events import (
    ContextSize,
    Event,
    HITLPending,
    Inspected,
    ModelFailed,
    ReasonStart,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.journal import Journal
from harness_core.live import Live
from harness_core.masking import mask
from harness_core.parts import Surroundings
from harness_core.ports import Lease, ModelReply, ModelRequest
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
    End,
    Look,
    Policy,
    Reason,
    Settle,
    Step,
    Suspend,
)
from harness_core.tooling import inspected, run_all
from harness_core.types import Message, ToolCall, canonical, digest, same


class Performer:
    """Performs the steps of one session while its lease is held."""

    def __init__(self, around: Surroundings, journal: Journal, lease: Lease, live: Live) -> None:
        self._around = around
        self._journal = journal
        self._lease = lease
        self._live = live
        self._recorder = Recorder(journal, lease, live, around.clock)
        self._before: tuple[int | None, int | None] = (None, None)  # messages and tokens before a compression

    async def perform(self, step: Step, policy: Policy, decided_on: int) -> None:
        """Do it. Whatever is refused because something else came first is simply decided again.

        decided_on: the last fact that the step rests on. Others who ask for the session's state move the journal on
        while a step awaits something, so where the journal stands by then would guard nothing.
        """
        recorder = self._recorder
        recorder.decided_on = decided_on
        match step:
            case Begin():
                await self._begin(step, policy)
            case Reason():
                await self._reason(step, policy)
            case Compress():
                await self._compress(step, policy)
            case Look():
                await self._look(step)
            case Settle(facts=facts):
                await recorder.record(facts, guarded=True)
            case Suspend(tasks=tasks, rulings=rulings):
                await recorder.record((*rulings, HITLPending(tasks)), guarded=True)
            case Apply():
                await self._apply(step)
            case Act():
                await self._act(step)
            case Close():
                await self._close(step)
            case End():
                await self._end(step)

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

    def flush(self) -> None:
        """Show the end of a run; see Recorder."""
        self._recorder.flush()

    # -- the model -----------------------------------------------------------------------------------------------------

    async def _begin(self, step: Begin, policy: Policy) -> None:
        self.flush()
        start = RunStart(
            self._around.new_id(),
            requested_by=step.prompt.by,
            policy_digest=policy.digest,
            prompt_digest=policy.prompt_digest,
        )
        await self._recorder.record((start,), guarded=True)

    async def _reason(self, step: Reason, policy: Policy) -> None:
        trace = self._journal.trace
        messages, size = _sized(trace, policy)
        try:
            await self._back_off(trace)
            self._recorder.show(replace(size, messages_before=self._before[0], tokens_before=self._before[1]))
            self._before = (None, None)
            self._recorder.show(ReasonStart(step.step, step.attempt))
            reply = await interruptibly(self._asked(messages), self._live.stopping, self._lease)
            fact: Event = said(reply, trace, step.step, step.attempt)
        except Interrupted:
            return
        except ModelError as error:
            message = valid_text(mask(str(error)))
            fact = ModelFailed(error.kind, step.attempt, step.step, message, trace.seq, error.retry_after)
        await self._recorder.record((fact,))

    async def _back_off(self, trace: Trace) -> None:
        clock = self._around.clock
        if (seconds := wait_before(trace, clock.now())) > 0:
            await interruptibly(clock.sleep(seconds), self._live.stopping, self._lease)

    async def _asked(self, messages: Sequence[Message]) -> ModelReply:
        around = self._around
        return await ask(around, ModelRequest(around.system, messages, around.specs), self._recorder.show)

    async def _compress(self, step: Compress, policy: Policy) -> None:
        fact = await shorten(self._around, self._journal, self._recorder, self._live, self._lease, policy, step.plan)
        if fact:
            self._before = (fact.messages_before, fact.tokens_before)

    # -- the calls -----------------------------------------------------------------------------------------------------

    async def _look(self, step: Look) -> None:
        session_id = self._journal.session_id
        found = await asyncio.gather(*(inspected(self._around, session_id, call, args) for call, args in step.at))
        facts = [
            Inspected(call.call_uuid, digest(canonical(args)), seen)
            for (call, args), seen in zip(step.at, found, strict=True)
        ]
        await self._recorder.record(facts)

    async def _apply(self, step: Apply) -> None:
        for tool, args in step.approvals:
            await self._around.approved(tool, args)
        await self._recorder.record(step.facts, guarded=True)

    async def _close(self, step: Close) -> None:
        self._recorder.show_action_start()
        self._recorder.show(ToolCallStart(step.call))
        await self._recorder.record((*step.rulings, step.end))
        self._recorder.show_action_end()

    async def _act(self, step: Act) -> None:
        recorder, clock = self._recorder, self._around.clock
        if changed := await self._changed(step.cleared):
            recorder.show_action_start()
            for c in changed:
                recorder.show(ToolCallStart(c.call, c.args))
            await recorder.record([self._changed_end(c.call) for c in changed])
            recorder.show_action_end()
            return
        if not self._lease.valid():
            raise LeaseLost
        cleared = step.cleared[: self._around.parallel]
        facts: list[Event] = []
        for c in cleared:
            facts += [*c.rulings, ToolCallStart(c.call, None if same(c.args, c.call.args) else c.args)]
        began = clock.monotonic()
        self._live.acting = True
        try:
            if not await recorder.record(facts, guarded=True, before=recorder.show_action_start):
                return
            ends = await run_all(self._around, self._journal.session_id, cleared, self._live.stopping, self._lease)
            seconds = round(clock.monotonic() - began, 3)
            await recorder.record([replace(end, seconds=seconds) for end in ends])
        finally:
            self._live.acting = False
        recorder.show_action_end()

    async def _changed(self, cleared: Sequence[Cleared]) -> Sequence[Cleared]:
        """The calls for which the world is not what it was when they were judged and shown."""
        changed = []
        for c in cleared:
            state = self._journal.trace.of(c.call.call_uuid)
            judged_on = state.inspection(c.args) if state else None
            if judged_on is None:
                continue
            if judged_on != await inspected(self._around, self._journal.session_id, c.call, c.args):
                changed.append(c)
        return changed

    def _changed_end(self, call: ToolCall) -> ToolCallEnd:
        state = self._journal.trace.of(call.call_uuid)
        if state and state.started:  # to be repeated, it cannot be said to have never run
            return results.unknown(call, f"it was started once and not again, since {results.CHANGED}")
        return results.not_run(call, results.CHANGED)

    # -- the end -------------------------------------------------------------------------------------------------------

    async def _end(self, step: End) -> None:
        end = RunEnd(step.status, step.answer, step.limit, step.withdrawn)
        show = frozenset({"RunEnd"}) if step.quiet else STREAMED
        await self._recorder.record((*step.ends, end), guarded=True, show=show)


def _sized(trace: Trace, policy: Policy) -> tuple[Sequence[Message], ContextSize]:
    """The messages of the next request, and how large it is."""
    if policy.compression is None or policy.measure is None:
        return trace.context, ContextSize(len(trace.context))
    context = policy.compression.context(trace, policy.measure)
    messages = (*context.messages, *context.inbox)
    return messages, ContextSize(len(messages), context.tokens, counter=policy.measure.counter)
