"""Does one step and records what came of it.  Owns no policy: what to do was decided before."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

from harness_core import results
from harness_core.calls import normalise, valid_text
from harness_core.compression.plan import Plan
from harness_core.compression.strategies import Answer, Summarising
from harness_core.errors import LeaseLost, ModelError, ToolFailed
from harness_core.events import (
    ActionEnd,
    ActionStart,
    Codec,
    ContextCompressed,
    ContextSize,
    Event,
    HITLPending,
    Inspected,
    Ledger,
    ModelFailed,
    ReasonDelta,
    ReasonEnd,
    ReasonStart,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.interceptors.compression import MOST_FUTILE
from harness_core.journal import Journal
from harness_core.live import Live
from harness_core.masking import mask
from harness_core.ports import (
    ChatModel,
    Clock,
    Lease,
    ModelReply,
    ModelRequest,
    TextDelta,
    Tool,
    ToolContext,
    ToolSpec,
)
from harness_core.session import Trace, added
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
from harness_core.types import (
    Args,
    Deadline,
    Inspection,
    Message,
    Outcome,
    ToolCall,
    ToolResult,
    Usage,
    canonical,
    digest,
    same,
)

log = logging.getLogger(__name__)
T = TypeVar("T")

_CODEC: Final = Codec()  # to try what comes from outside, before it is recorded

FIRST_BACKOFF: Final = 1.0  # seconds before the second attempt of a model request; doubled for each further one
LONGEST_BACKOFF: Final = 30.0
INSPECT_TIMEOUT: Final = 15.0  # seconds that looking may take
COMPRESSION_TRIES: Final = 5  # appends of one compression, while others write to the session
LEAVE: Final = 5.0  # seconds that something cancelled has to end
STOPPED: Final = "it was stopped while it ran"
LEASE_CHECK: Final = 0.5  # seconds between two looks at whether the lease still holds, while something runs

# What a stream shows of the facts; the others are for the record.
STREAMED: Final = frozenset(
    {"RunStart", "ReasonEnd", "HITLPending", "HITLDecided", "ToolCallStart", "ToolCallEnd", "RunEnd"}
)


class Interrupted(Exception):
    """A stop was requested while something ran."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an engine works with."""

    model: ChatModel
    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    system: str
    clock: Clock
    workspace: Callable[[str], Path]
    model_timeout: float
    parallel: int
    new_id: Callable[[], str]
    approved: Callable[[str, Args], Awaitable[None]]


class Performer:
    """Performs the steps of one session while its lease is held."""

    def __init__(self, around: Surroundings, journal: Journal, lease: Lease, live: Live) -> None:
        self._around = around
        self._journal = journal
        self._lease = lease
        self._live = live
        self._decided_on = 0  # the last fact that the step in hand was decided on
        self._acting = 0  # the step whose ActionStart was shown, 0 for none
        self._ending: list[Event] = []
        self._before: tuple[int | None, int | None] = (None, None)  # messages and tokens before a compression

    async def perform(self, step: Step, policy: Policy, decided_on: int) -> None:
        """Do it. Whatever is refused because something else came first is simply decided again.

        decided_on: the last fact that the step rests on. Others who ask for the session's state move the journal on
        while a step awaits something, so where the journal stands by then would guard nothing.
        """
        self._decided_on = decided_on
        match step:
            case Begin():
                await self._begin(step, policy)
            case Reason():
                await self._reason(step, policy)
            case Compress(plan=plan):
                await self._compress(plan, policy)
            case Look():
                await self._look(step)
            case Settle(facts=facts):
                await self._record(facts, guarded=True)
            case Suspend(tasks=tasks, rulings=rulings):
                await self._record((*rulings, HITLPending(tasks)), guarded=True)
            case Apply():
                await self._apply(step)
            case Act():
                await self._act(step)
            case Close(call=call, end=end, rulings=rulings):
                self._show_action_start()
                self._show(ToolCallStart(call))
                await self._record((*rulings, end))
                self._show_action_end()
            case End():
                await self._end(step)

    async def go_on(self, policy: Policy, decided_on: int) -> bool:
        """Record that a run goes on here: after decisions with the same attempt, else as a takeover."""
        self._decided_on = decided_on
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
        return bool(await self._record((start,), guarded=True))

    def flush(self) -> None:
        """Show the end of a run. Held back until the lease is free, so that whoever sees it can go on elsewhere."""
        for event in self._ending:
            self._live.publish(event, self._journal.trace)
        self._ending = []

    # -- the steps -----------------------------------------------------------------------------------------------------

    async def _begin(self, step: Begin, policy: Policy) -> None:
        self.flush()
        start = RunStart(
            self._around.new_id(),
            requested_by=step.prompt.by,
            policy_digest=policy.digest,
            prompt_digest=policy.prompt_digest,
        )
        await self._record((start,), guarded=True)

    async def _reason(self, step: Reason, policy: Policy) -> None:
        around, trace = self._around, self._journal.trace
        if not await self._backed_off(trace):
            return
        messages, size = _sized(trace, policy)
        request = ModelRequest(around.system, messages, around.specs)
        self._show(replace(size, messages_before=self._before[0], tokens_before=self._before[1]))
        self._before = (None, None)
        self._show(ReasonStart(step.step, step.attempt))
        try:
            said = self._said(step, trace, await self._interruptibly(self._ask(request)))
        except Interrupted:
            return
        except ModelError as error:
            message = valid_text(mask(str(error)))
            failed = ModelFailed(error.kind, step.attempt, step.step, message, trace.seq, error.retry_after)
            await self._record((failed,))
            return
        await self._record((said,))

    def _said(self, step: Reason, trace: Trace, reply: ModelReply) -> ReasonEnd:
        """The message as a fact. Raises ModelError: what cannot be stored would otherwise be asked for for ever."""
        run_id = trace.run.run_id if trace.run else ""
        try:
            proposed = ((c.name, c.arguments, c.id) for c in reply.calls)
            calls = normalise(proposed, run_id, step.step, reply.finish_reason)
            text, finish = valid_text(reply.text), valid_text(reply.finish_reason)
            said = ReasonEnd(text, calls, reply.usage, finish, trace.seq, step.step, step.attempt)
            _CODEC.encode(said)
        except Exception as error:
            raise ModelError("bad_reply", f"the model's message is unusable: {error}") from error
        return said

    async def _compress(self, plan: Plan, policy: Policy) -> None:
        compression, measure, trace = policy.compression, policy.measure, self._journal.trace
        assert compression is not None
        assert measure is not None
        context = compression.context(trace, measure)
        try:
            text, usage = await self._summarised(compression.summarise(context, plan))
        except Interrupted:
            return
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
        if await self._record_compression(fact, trace):
            self._before = (fact.messages_before, fact.tokens_before)

    async def _record_compression(self, fact: ContextCompressed, built_from: Trace) -> bool:
        """With what the session is now: people may have said and decided things while the summary was made."""
        for _ in range(COMPRESSION_TRIES):
            trace = await self._journal.catch_up()
            if trace.run is None or trace.run.stop or trace.batch or trace.messages != built_from.messages:
                return False
            self._decided_on = trace.seq
            if await self._record((replace(fact, ledger=self._journal.ledger()),), guarded=True):
                self._tell_if_futile(fact)
                return True
        return False

    def _tell_if_futile(self, fact: ContextCompressed) -> None:
        run = self._journal.trace.run
        if run and run.futile == MOST_FUTILE:
            log.warning(
                "session %s: compressed twice in vain, not again in this run (%s)", self._journal.session_id, fact.why
            )

    async def _summarised(self, asking: Summarising) -> tuple[str | None, Usage]:
        """Answer a strategy's questions, until it has its summary or none."""
        usage = Usage()
        try:
            question = next(asking)
            while True:
                answer: Answer
                request = ModelRequest(question.system, (Message("user", question.text),))
                try:
                    reply = await self._interruptibly(self._ask(request, shown=False))
                    answer, usage = valid_text(reply.text), added(usage, reply.usage)
                except ModelError as error:
                    answer = error
                question = asking.send(answer)
        except StopIteration as over:
            return over.value, usage

    async def _look(self, step: Look) -> None:
        found = await asyncio.gather(*(self._inspect(call, args) for call, args in step.at))
        facts = [
            Inspected(call.call_uuid, digest(canonical(args)), seen)
            for (call, args), seen in zip(step.at, found, strict=True)
        ]
        await self._record(facts)

    async def _apply(self, step: Apply) -> None:
        for tool, args in step.approvals:
            await self._around.approved(tool, args)
        await self._record(step.facts, guarded=True)

    async def _act(self, step: Act) -> None:
        if changed := await self._changed(step.cleared):
            self._show_action_start()
            for c in changed:
                self._show(ToolCallStart(c.call, c.args))
            await self._record([self._changed_end(c.call) for c in changed])
            self._show_action_end()
            return
        if not self._lease.valid():
            raise LeaseLost
        cleared = step.cleared[: self._around.parallel]
        facts: list[Event] = []
        for c in cleared:
            facts += [*c.rulings, ToolCallStart(c.call, None if same(c.args, c.call.args) else c.args)]
        began = self._around.clock.monotonic()
        if not await self._record(facts, guarded=True, before=self._show_action_start):
            return
        ends = await self._run_all(cleared)
        seconds = round(self._around.clock.monotonic() - began, 3)
        await self._record([replace(end, seconds=seconds) for end in ends])
        self._show_action_end()

    async def _end(self, step: End) -> None:
        end = RunEnd(step.status, step.answer, step.limit, step.withdrawn)
        if not step.quiet:
            await self._record((*step.ends, end), guarded=True)
        else:
            await self._record((*step.ends, end), guarded=True, show=frozenset({"RunEnd"}))

    # -- models and tools ----------------------------------------------------------------------------------------------

    async def _ask(self, request: ModelRequest, *, shown: bool = True) -> ModelReply:
        around = self._around
        deadline = Deadline(around.clock.monotonic() + around.model_timeout)
        reply: ModelReply | None = None
        try:
            async with asyncio.timeout(around.model_timeout):
                stream: AsyncIterator[TextDelta | ModelReply] = around.model.stream(request, deadline)
                async for piece in stream:
                    if not isinstance(piece, TextDelta):
                        reply = piece
                    elif shown:
                        self._show(ReasonDelta(piece.text))
        except ModelError:
            raise
        except TimeoutError as error:
            raise ModelError("timeout", f"no answer within {around.model_timeout:.0f} s") from error
        except Exception as error:  # an adapter's fault is the model's failure, and is put on record as one
            log.warning("the model failed", exc_info=error)
            raise ModelError("server", f"{type(error).__name__}: {error}") from error
        if reply is None:
            raise ModelError("bad_reply", "the stream ended without a message")
        return reply

    async def _inspect(self, call: ToolCall, args: Args) -> Inspection:
        tool = self._around.tools[call.name]
        try:
            async with asyncio.timeout(INSPECT_TIMEOUT):
                return _storable(await tool.inspect(deepcopy(args), self._context(call, INSPECT_TIMEOUT)))
        except Exception as error:  # what cannot be looked at cannot be judged, so the model is told instead
            why = "it took too long" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
            return Inspection(problem=valid_text(f"The call could not be inspected: {mask(why)}"))

    async def _changed(self, cleared: Sequence[Cleared]) -> Sequence[Cleared]:
        """The calls for which the world is not what it was when they were judged and shown."""
        changed = []
        for c in cleared:
            state = self._journal.trace.of(c.call.call_uuid)
            judged_on = state.inspection(c.args) if state else None
            if judged_on is not None and judged_on != await self._inspect(c.call, c.args):
                changed.append(c)
        return changed

    def _changed_end(self, call: ToolCall) -> ToolCallEnd:
        state = self._journal.trace.of(call.call_uuid)
        if state and state.started:  # to be repeated, it cannot be said to have never run
            return results.unknown(call, f"it was started once and not again, since {results.CHANGED}")
        return results.not_run(call, results.CHANGED)

    async def _run_all(self, cleared: Sequence[Cleared]) -> Sequence[ToolCallEnd]:
        tasks = [asyncio.ensure_future(self._run(c)) for c in cleared]
        try:
            await self._interruptibly(asyncio.wait(tasks))
        except Interrupted:
            pass  # each call says below what became of it
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=LEAVE)  # a tool that will not end is left behind, not waited for
        return [
            task.result() if task.done() and not task.cancelled() else results.unknown(c.call, STOPPED)
            for c, task in zip(cleared, tasks, strict=True)
        ]

    async def _run(self, cleared: Cleared) -> ToolCallEnd:
        tool = self._around.tools[cleared.call.name]
        try:
            async with asyncio.timeout(tool.timeout):
                result = _result(await tool.run(deepcopy(cleared.args), self._context(cleared.call, tool.timeout)))
        except TimeoutError:
            result = ToolResult(f"The tool took longer than its {tool.timeout:.0f} s and was stopped.", "error")
        except ToolFailed as error:
            result = ToolResult(str(error), "error")
        except Exception as error:  # a tool's fault is a result that the model can act on
            log.warning("the tool %s failed", cleared.call.name, exc_info=error)
            result = ToolResult(f"{type(error).__name__}: {error}", "error")
        content = cleared.note + (valid_text(result.content) or "(no output)")
        return ToolCallEnd(cleared.call.call_uuid, content, result.outcome)

    def _context(self, call: ToolCall, seconds: float) -> ToolContext:
        clock, session_id = self._around.clock, self._journal.session_id
        deadline = Deadline(clock.monotonic() + seconds)
        return ToolContext(session_id, call.call_uuid, self._around.workspace(session_id), deadline, clock)

    # -- waiting -------------------------------------------------------------------------------------------------------

    async def _interruptibly(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the work, a stop, or the loss of the lease, whichever comes first; the work never outlives this."""
        task, stopping = asyncio.ensure_future(work), self._live.stopping
        either: set[asyncio.Future[Any]] = {task, stopping}
        try:
            # The heartbeat is another thread's work, so there is nothing to be told by: look now and then.
            while not (task.done() or stopping.done()) and self._lease.valid():
                await asyncio.wait(either, timeout=LEASE_CHECK, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise Interrupted if self._lease.valid() else LeaseLost
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=LEAVE)

    async def _backed_off(self, trace: Trace) -> bool:
        """Wait as long as the last failure asks for. False if a stop came meanwhile."""
        failures = trace.run.failures if trace.run else ()
        if not failures or failures[-1].kind == "overflow":  # which no waiting cures, and a shorter context has
            return True
        backoff = failures[-1].retry_after or FIRST_BACKOFF * 2 ** (len(failures) - 1)
        wait = failures[-1].at + min(backoff, LONGEST_BACKOFF) - self._around.clock.now()
        try:
            await self._interruptibly(self._sleep(wait))
        except Interrupted:
            return False
        return True

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            await self._around.clock.sleep(seconds)

    # -- recording and showing -----------------------------------------------------------------------------------------

    async def _record(
        self,
        events: Sequence[Event],
        *,
        guarded: bool = False,
        before: Callable[[], None] | None = None,
        show: frozenset[str] = STREAMED,
    ) -> bool:
        trace = self._journal.trace
        run_id = trace.run.run_id if trace.run else ""
        now = self._around.clock.now()
        stamped = [replace(e, run_id=e.run_id or run_id, at=now) for e in events]
        after = self._decided_on if guarded else None
        stored = await self._journal.append(stamped, fence=self._lease.fence, after=after)
        if stored and before:
            before()
        for event in stored:
            if type(event).__name__ not in show:
                continue
            if isinstance(event, RunEnd):
                self._show_action_end()
                self._ending.append(event)
            else:
                self._live.publish(event, self._journal.trace)
        return bool(stored)

    def _show(self, event: Event) -> None:
        trace = self._journal.trace
        run_id = trace.run.run_id if trace.run else ""
        passing = replace(event, session_id=trace.session_id, run_id=run_id, at=self._around.clock.now())
        self._live.publish(passing, trace)

    def _show_action_start(self) -> None:
        run = self._journal.trace.run
        if run and run.last and self._acting != run.last.step:
            self._acting = run.last.step
            self._show(ActionStart(run.last.step, run.last.calls))

    def _show_action_end(self) -> None:
        run = self._journal.trace.run
        if self._acting and not self._journal.trace.batch:
            calls = run.last.calls if run and run.last else ()
            self._show(ActionEnd(self._acting, calls))
            self._acting = 0


def _sized(trace: Trace, policy: Policy) -> tuple[Sequence[Message], ContextSize]:
    """The messages of the next request, and how large it is."""
    if policy.compression is None or policy.measure is None:
        return trace.context, ContextSize(len(trace.context))
    context = policy.compression.context(trace, policy.measure)
    messages = (*context.messages, *context.inbox)
    return messages, ContextSize(len(messages), context.tokens, counter=policy.measure.counter)


def _storable(found: Inspection) -> Inspection:
    """What a tool saw, as it can be stored: file names need not be valid text. Raises StoreError for anything else."""
    paths = tuple(valid_text(path) for path in found.paths)
    clean = replace(found, preview=valid_text(found.preview), problem=valid_text(found.problem), paths=paths)
    _CODEC.encode(Inspected("", "", clean))
    return clean


def _result(brought: object) -> ToolResult:
    """What a tool brought, if it is a result. Raises ToolFailed: the tool ran, and its answer cannot be read."""
    if not isinstance(brought, ToolResult) or not isinstance(brought.content, str):
        raise ToolFailed(f"The tool ran, but brought {type(brought).__name__} instead of a result.")
    if brought.outcome not in get_args(Outcome):
        raise ToolFailed(f"The tool ran, but its outcome {brought.outcome!r} is none.")
    return brought


async def call_back(callbacks: Sequence[Callable[[str, Args], Awaitable[None] | None]], tool: str, args: Args) -> None:
    """Tell everybody who asked to be told of an *always allow*. Their faults are logged, and change nothing."""
    for callback in callbacks:
        try:
            done = callback(tool, args)
            if inspect.isawaitable(done):
                await done
        except Exception:
            log.exception("an on_approved callback failed for %s", tool)
