"""Works on sessions: takes the lease, asks what to do next, has it done, and starts again until the session rests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from harness_core.background import Background
from harness_core.crew import Crew, Worker
from harness_core.errors import HarnessError, LeaseLost
from harness_core.events import Event, StopRequested
from harness_core.journal import Journal, Shelf
from harness_core.journal_ids import depth_of, is_session, root_of
from harness_core.live import Live
from harness_core.parts import Surroundings
from harness_core.perform import Performer
from harness_core.policies import Policies
from harness_core.ports import Lease, SessionStore
from harness_core.recorder import STREAMED
from harness_core.session import Trace
from harness_core.steps import Rest
from harness_core.subagents import Subagents

log = logging.getLogger(__name__)

SWEEP: Final = 3.0  # seconds between two looks for sessions that nobody works on
FOLLOW: Final = 0.25  # seconds between two looks at a session that another process works on


class Closed(HarnessError):
    """The engine was closed while this request went on. The session goes on later."""


class Serving:
    """The sessions that are worked on in this process, and those that an alarm will wake."""

    def __init__(
        self,
        store: SessionStore,
        around: Surroundings,
        policies: Policies,
        subagents: Subagents,
        background: Background,
    ) -> None:
        self.lives: dict[str, Live] = {}
        self._store = store
        self._clock = around.clock
        self._around = around
        self._policies = policies
        self._subagents = subagents
        self._background = background
        self._journals: dict[str, Journal] = {}  # of the sessions that are worked on
        self._within: dict[str, list[str]] = {}  # the names of those journals, by their session
        self._shelf = Shelf(store)
        self._alarms: dict[str, asyncio.Task[None]] = {}
        self._closing = False
        self._forget = store.changed(self._told)

    async def trace(self, session_id: str) -> Trace:
        """What the session is now."""
        journal = self._journals.get(session_id)
        if journal and journal.loaded:
            journal.told(await self._store.last_seq(session_id))  # other processes append, and tell nobody here
            return await journal.catch_up()
        journal = self._shelf.borrow(session_id)
        await journal.load()
        self._shelf.put_back(journal)
        return journal.trace

    def wake(self, session_id: str) -> Live:
        """Look at the session (of a sub-agent, at the one that it works in): something may be to be done."""
        session_id = root_of(session_id)
        live = self.lives.get(session_id)
        if live is None:
            live = self.lives[session_id] = Live(session_id)
            live.task = asyncio.create_task(self._serve(live), name=f"session {session_id}")
        live.woken = True
        return live

    # -- the loop ------------------------------------------------------------------------------------------------------

    async def _serve(self, live: Live) -> None:
        try:
            while live.woken:
                live.woken = False
                await self._run(live)
        except Closed as closed:
            live.fail(closed)
        except Exception as error:
            log.exception("session %s cannot go on now", live.session_id)
            live.fail(error)
        except BaseException:
            live.fail(Closed())
            raise
        finally:
            del self.lives[live.session_id]

    async def _run(self, live: Live) -> None:
        while True:
            try:
                async with self._store.lease(live.session_id) as lease:
                    if lease is not None:
                        journal = await self._opened(live.session_id)
                        if live.followed or (live.since or journal.seq) < journal.seq:
                            await self._show_others(live)
                            live.followed = None
                        until, performer = await self._steps(journal, lease, live)
            except LeaseLost:
                log.warning("session %s was taken over by another process", live.session_id)
                await asyncio.sleep(FOLLOW)
                continue
            finally:
                self._forget_journals(live.session_id)
            if lease is None:  # its holder looks again after letting go; the sweep does, if it died
                if not live.watched:
                    return
                await self._follow(live)
                continue
            performer.flush()
            quiet = await self._store.last_seq(live.session_id) == journal.seq and not journal.behind
            self._shelf.put_back(journal)  # not before that look: whoever borrows it reads on
            if quiet:
                live.finish(journal.trace, self._clock.now())
                self._set_alarm(live.session_id, until)
                return

    async def _steps(self, journal: Journal, lease: Lease, live: Live) -> tuple[float | None, Performer]:
        """Work until the session rests. Until when it does, and who performed."""
        async with AsyncExitStack() as leases:
            crew = Crew(self._store, self._policies, self._subagents, self._opened, leases)
            worker = Worker(crew, self._around, journal, lease, live)
            while not isinstance(step := await worker.look(await self._policies.of(live.session_id)), Rest):
                if self._closing:
                    raise Closed
                await worker.do()
            await lease.rest(worker.trace.seq, step.until)
            await worker.rest()
            return step.until, worker.performer

    def _forget_journals(self, session_id: str) -> None:
        for name in self._within.pop(session_id, ()):
            self._journals.pop(name, None)

    async def _opened(self, session_id: str) -> Journal:
        journal = self._journals[session_id] = self._shelf.borrow(session_id)
        self._within.setdefault(root_of(session_id), []).append(session_id)
        await journal.load()
        return journal

    # -- what others write ---------------------------------------------------------------------------------------------

    async def _follow(self, live: Live) -> None:
        """Show the facts that another process writes, until this one gets the lease or the request has ended."""
        live.followed = live.followed or await Journal.open(self._store, live.session_id, upto=live.since)
        await asyncio.sleep(FOLLOW)
        await self._show_others(live)

    async def _show_others(self, live: Live) -> None:
        followed = live.followed or await Journal.open(self._store, live.session_id, upto=live.since)
        for event in await self._store.read(live.session_id, followed.seq):
            followed.take((event,))
            if type(event).__name__ in STREAMED:
                live.publish(event, followed.trace)

    def _told(self, session_id: str, events: tuple[Event, ...]) -> None:
        if journal := self._journals.get(session_id):
            journal.told(events[-1].seq or 0)
        live = self.lives.get(session_id)
        run = journal.trace.run if journal else None
        if live and run and any(isinstance(e, StopRequested) and e.run_id == run.run_id for e in events):
            live.stop()

    # -- waking --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take up what does not rest, now and every few seconds."""
        await self.sweep()
        self._background.spawn(self._sweep_for_ever())

    async def _sweep_for_ever(self) -> None:
        while True:
            await self._clock.sleep(SWEEP)
            try:
                await self.sweep()
            except Exception:
                log.exception("the sweep failed; the next one tries again")

    async def sweep(self) -> None:
        """Wake what does not rest, and see what other processes appended to the sessions that run here."""
        for session_id in await self._store.unfinished(self._clock.now()):
            if depth_of(session_id):
                await self._lay_down(session_id)
            else:
                self.wake(session_id)
        for session_id, journal in list(self._journals.items()):
            # Another process may have appended to a session that runs here, a stop for instance.
            if await self._store.last_seq(session_id) > journal.seq:
                for event in await self._store.read(session_id, journal.seq):
                    self._told(session_id, (event,))

    async def _lay_down(self, session_id: str) -> None:
        """A sub-agent's journal that whoever died left open: what is to be done about it, the session knows."""
        if root_of(session_id) in self.lives:
            return
        async with self._store.lease(session_id) as lease:
            if lease:
                await lease.rest(await self._store.last_seq(session_id))

    async def wake_everybody(self) -> None:
        """Look at every session: what is in force has changed."""
        for session_id in await self._store.sessions():
            if is_session(session_id) and not depth_of(session_id):
                self.wake(session_id)

    def _set_alarm(self, session_id: str, until: float | None) -> None:
        if alarm := self._alarms.pop(session_id, None):
            alarm.cancel()
        if until is not None:
            self._alarms[session_id] = asyncio.create_task(self._ring(session_id, until))

    async def _ring(self, session_id: str, until: float) -> None:
        await self._clock.sleep(max(0.0, until - self._clock.now()))
        self._alarms.pop(session_id, None)
        self.wake(session_id)

    # -- the end -------------------------------------------------------------------------------------------------------

    async def close(self, grace: float) -> None:
        """Stop working: nothing new begins, and tools that run have so many seconds to end before they are killed."""
        self._closing = True
        await _cancelled([*self._background.tasks, *self._alarms.values(), *self._working(acting=False)])
        if (acting := self._working(acting=True)) and grace > 0:
            log.warning("tools of %d sessions still run; they have %.0f s to end", len(acting), grace)
            await asyncio.wait(acting, timeout=grace)
        await _cancelled(self._working())
        self._forget()

    def _working(self, *, acting: bool | None = None) -> Sequence[asyncio.Task[None]]:
        return [live.task for live in self.lives.values() if live.task and acting in (None, live.acting)]

    async def idle(self) -> None:
        """Wait until no session is being worked on in this process."""
        while tasks := [live.task for live in self.lives.values() if live.task]:
            await asyncio.wait(tasks)


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
