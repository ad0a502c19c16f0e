"""The agents at work on one session while its lease is held: the session's own, and the sub-agents within it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final

from harness_core import results
from harness_core.compression.shape import Sizes
from harness_core.delegate import at_work, outset_in
from harness_core.errors import LeaseLost
from harness_core.events import Prompted
from harness_core.journal import Journal
from harness_core.journal_ids import depth_of
from harness_core.live import Aside, Stage
from harness_core.parts import Surroundings
from harness_core.perform import Performer
from harness_core.policies import Policies
from harness_core.ports import Lease, SessionStore
from harness_core.react import needs_start, next_step
from harness_core.session import CallState, Trace
from harness_core.steps import Child, Close, Delegate, Policy, Rest, Step, Tell, Within
from harness_core.subagents import Subagents

HANDED_OVER: Final = "task"  # key of the prompt that a sub-agent's journal begins with


@dataclass(frozen=True, slots=True)
class Crew:
    """What the agents of a session share. leases: those of sub-agents' journals, held within the session's own.

    opened: the journal of a session, kept in step for as long as it is worked on.
    """

    store: SessionStore
    policies: Policies
    subagents: Subagents
    opened: Callable[[str], Awaitable[Journal]]
    leases: AsyncExitStack


class Worker:
    """One agent at work on its journal."""

    def __init__(self, crew: Crew, around: Surroundings, journal: Journal, lease: Lease, stage: Stage) -> None:
        self.journal = journal
        self.performer = Performer(around, journal, lease, stage)
        self.trace = Trace()
        self._crew, self._around, self._lease, self._stage = crew, around, lease, stage
        self._policy = Policy()
        self._step: Step = Rest()
        self._started = False
        self._children: dict[str, Worker] = {}
        self._sizes = Sizes()

    async def look(self, policy: Policy) -> Step:
        """What this agent would do next under its policy; the one that works for it is asked first."""
        trace = await self.journal.catch_up()
        if not (trace.run and trace.run.stop):
            self._stage.go_on()
        if working := at_work(trace):
            policy = replace(policy, children={working.child: await self._looked_at(working, trace, policy)})
        if trace.run and not trace.batch:
            measure = await self._crew.policies.measured(trace, policy, self._around, self._sizes)
            policy = replace(policy, measure=measure)
        self.trace, self._policy = trace, policy
        self._step = next_step(trace, policy, self._around.clock.now())
        return self._step

    async def do(self) -> None:
        """Do that step, or record first that the run goes on here."""
        if await self._went_on():
            return
        match self._step:
            case Within(child=child):
                await self._children[child].do()
            case Tell(child=child, facts=facts):
                await self._children[child].performer.tell(facts)
            case Delegate():
                await self._hand_over(self._step)
            case step:
                await self.performer.perform(step, self._policy, self.trace.seq)
        self._started = True

    async def rest(self) -> None:
        """Note that the sub-agents' journals hold nothing to do; they are never taken up by themselves."""
        for worker in self._children.values():
            await worker.rest()
            await worker._lease.rest(worker.journal.seq)

    async def _went_on(self) -> bool:
        """Record that the run goes on, if that is needed. From the inside out: whoever dies then is counted there."""
        if isinstance(self._step, Within) and await self._children[self._step.child]._went_on():
            return True
        if not needs_start(self._step, self.trace.run, self._started):
            return False
        self._started = await self.performer.go_on(self._policy, self.trace.seq)
        return True

    # -- sub-agents ----------------------------------------------------------------------------------------------------

    async def _looked_at(self, state: CallState, trace: Trace, policy: Policy) -> Child:
        name = state.started.effective.get("agent") if state.started else None
        agent, depth = self._crew.subagents.named(name), depth_of(state.child)
        if agent is None:
            return Child(Trace(), Rest(), f"there is no agent {name!r} any more")
        worker = await self._hired(state.child, self._crew.subagents.around(agent, depth))
        narrowed = await self._crew.policies.on_record(self._crew.subagents.policy(policy, trace.rules, agent, depth))
        step = await worker.look(replace(narrowed, outset=outset_in(trace, self._around.clock.now())))
        return Child(worker.trace, step)

    async def _hired(self, session_id: str, around: Surroundings) -> Worker:
        if session_id not in self._children:
            lease = await self._crew.leases.enter_async_context(self._crew.store.lease(session_id))
            if lease is None:  # of a process that has lost the session, and does not know it yet
                raise LeaseLost
            journal = await self._crew.opened(session_id)
            self._children[session_id] = Worker(self._crew, around, journal, lease, Aside(self._stage))
        return self._children[session_id]

    async def _hand_over(self, step: Delegate) -> None:
        """The sub-agent's journal is there before the call counts as started: one that is missing later was lost."""
        args, run = step.cleared.args, self.trace.run
        agent = self._crew.subagents.named(args.get("agent"))
        if agent is None or run is None:
            gone = results.given_up(step.cleared.call, f"there is no agent {args.get('agent')!r} any more")
            await self.performer.perform(Close(step.cleared.call, gone), self._policy, self.trace.seq)
            return
        worker = await self._hired(step.child, self._crew.subagents.around(agent, depth_of(step.child)))
        prompt = Prompted(str(args.get("prompt", "")), run.requested_by, self._around.clock.now())
        await worker.performer.tell((replace(prompt, key=HANDED_OVER),))
        await self.performer.perform(step, self._policy, self.trace.seq)
