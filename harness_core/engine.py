"""Runs sessions: reads the journal, asks what to do next, does it, and starts again.  Owns no policy."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

from harness_core.compression.shape import OF_A_MESSAGE, OF_A_TOOL, texts
from harness_core.compression.strategies import default_strategy
from harness_core.errors import ConfigError, HarnessError, LeaseLost
from harness_core.events import Event, PromptAmended, Prompted, RuleChanged, RunEnd, StopRequested
from harness_core.handle import AgentSession
from harness_core.hooks import in_order
from harness_core.interceptors.compression import ContextCompressionInterceptor, Measure
from harness_core.interceptors.hitl import HITLInterceptor
from harness_core.journal import Journal, Shelf
from harness_core.live import Live, Watcher
from harness_core.options import DEFAULT_TOOLS, HarnessOptions
from harness_core.perform import STREAMED, Performer, Surroundings, call_back
from harness_core.permissions.judge import Gate
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ChatModel, Clock, Lease, SessionStore, TokenCounter, Tool, ToolContext, ToolSpec
from harness_core.react import needs_start, next_step
from harness_core.session import Trace
from harness_core.steps import Policy, Rest
from harness_core.types import Args, Deadline, Inspection, canonical, digest

log = logging.getLogger(__name__)

HOME: Final = os.path.realpath(os.path.expanduser("~"))  # where `~` leads in a command
SWEEP: Final = 3.0  # seconds between two looks for sessions that nobody works on
FOLLOW: Final = 0.25  # seconds between two looks at a session that another process works on

Observer = Callable[[Event], Awaitable[None]]


class SystemClock:
    """The real time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class HarnessEngine:
    """Runs any number of sessions over one store.

    workspace: the folder that tools work in. home: the engine's own folder, with its database unless a store is given.
    tools: names of built-in tools, tools of your own, and "hitl" if calls may be put to a person. Further keyword
    arguments are the fields of HarnessOptions. Raises ConfigError for what cannot work.
    """

    def __init__(
        self,
        workspace: str | Path,
        home: str | Path,
        *,
        model: ChatModel | None = None,
        tools: Sequence[str | Tool] = DEFAULT_TOOLS,
        store: SessionStore | None = None,
        hitl_interceptor: HITLInterceptor | None = None,
        compression_interceptor: ContextCompressionInterceptor | None = None,
        interceptors: Sequence[Any] = (),
        rules: Sequence[PermissionRule] = (),
        clock: Clock | None = None,
        counter: TokenCounter | None = None,
        new_id: Callable[[], str] = lambda: "r" + secrets.token_hex(6),
        options: HarnessOptions | None = None,
        **changes: Any,
    ) -> None:
        try:
            self.options = replace(options or HarnessOptions(), **changes)
        except TypeError as error:
            raise ConfigError(f"No such option: {error}") from error
        for name in ("max_steps", "model_retries", "parallel"):
            if getattr(self.options, name) < 1:
                raise ConfigError(f"{name} must be 1 or more, or nothing would ever be done.")
        self.workspace = Path(workspace)
        self.clock: Clock = clock or SystemClock()
        self.store: SessionStore = store or _default_store(Path(home))
        self.hitl_interceptor = hitl_interceptor or HITLInterceptor()
        self.compression_interceptor = compression_interceptor or self._default_compression()
        self._counter = counter or _shared_counter()
        self._measure: Measure | None = None
        self._tools = _tool_table(tools)
        self._can_hitl = "hitl" in tools
        self._interceptors = in_order(interceptors)
        self._rules = tuple(rules)
        self._hitl_enabled = self.options.hitl_enabled
        self._policy: Policy | None = None
        self._lives: dict[str, Live] = {}
        self._journals: dict[str, Journal] = {}  # of the sessions that are worked on
        self._shelf = Shelf(self.store)
        self._alarms: dict[str, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._around = Surroundings(
            model=model or _practice_model(),
            tools=self._tools,
            specs=tuple(tool.spec for tool in self._tools.values()),
            system=self.options.system_prompt,
            clock=self.clock,
            workspace=self.workspace_of,
            model_timeout=self.options.model_timeout,
            parallel=self.options.parallel,
            new_id=new_id,
            approved=self._approved,
        )
        self._forget = self.store.changed(self._told)

    # -- what people call ----------------------------------------------------------------------------------------------

    async def session(self, session_id: str) -> AgentSession:
        """The handle of a session; it need not exist yet."""
        if not session_id or session_id.startswith(("config:", "show:")) or "\0" in session_id:
            raise ConfigError(f"{session_id!r} cannot be the id of a session.")
        return AgentSession(self, session_id)

    async def stream(
        self, session: AgentSession | str, prompt: str = "", *, by: str = "", key: str | None = None
    ) -> AsyncIterator[Event]:
        """One request: its events from RunStart to exactly one RunEnd. Without a prompt the session resumes.

        Abandoning the stream neither stops nor slows the run. Raises StoreError if the journal fails.
        """
        session_id = _id(session)
        stored = await self.prompt(session_id, prompt, by=by, key=key, wake=False) if prompt else None
        watcher = Watcher(stored.seq if stored else None)
        live = self._wake(session_id)
        live.watchers.append(watcher)
        try:
            while True:
                item = await watcher.queue.get()
                if isinstance(item, BaseException):
                    raise item
                yield item
                if isinstance(item, RunEnd):
                    return
        finally:
            live.watchers.remove(watcher)

    async def prompt(
        self,
        session: AgentSession | str,
        text: str,
        *,
        by: str = "",
        key: str | None = None,
        sent_at: float | None = None,
        files: Sequence[str] = (),
        wake: bool = True,
    ) -> Event | None:
        """Store what somebody said, and wake the session. None if a prompt with this key is stored already."""
        now = self.clock.now()
        sent = now if sent_at is None else sent_at
        prompted = Prompted(text, by, sent, tuple(files), ref=key or "", at=now)
        stored = await self.store.append(_id(session), prompted, key=key)
        if stored and wake:
            self.wake(session)
        return stored[0] if stored else None

    async def amend(self, session: AgentSession | str, ref: str, text: str | None, *, key: str | None = None) -> bool:
        """An author edited (text) or withdrew (None) the prompt with this key; moot once the model has read it."""
        amended = PromptAmended(ref, text, at=self.clock.now())
        return bool(await self.store.append(_id(session), amended, key=key))

    async def stop(self, session: AgentSession | str, *, by: str = "") -> bool:
        """Stop the run that goes on or is suspended. False if there is none."""
        while run := (trace := await self.trace(session)).run:
            # Guarded, because a stop that came after the end of its run would stop nothing, and yet seem to have.
            request = StopRequested(run.run_id, by, at=self.clock.now())
            if await self.store.append(_id(session), request, after=trace.seq):
                self.wake(session)
                return True
        return False

    def wake(self, session: AgentSession | str) -> None:
        """Look at the session: something may be to be done."""
        self._wake(_id(session))

    async def trace(self, session: AgentSession | str) -> Trace:
        """What the session is now."""
        journal = self._journals.get(_id(session))
        if journal and journal.loaded:
            journal.told(await self.store.last_seq(_id(session)))  # other processes append, and tell nobody here
            return await journal.catch_up()
        journal = self._shelf.borrow(_id(session))
        await journal.load()
        self._shelf.put_back(journal)
        return journal.trace

    def subscribe(self, observer: Observer) -> Callable[[], None]:
        """Tell an async function of every fact stored through this engine's store, in order, after it is stored.

        Its errors are logged; it is never in the way. Returns what ends the subscription.
        """
        queue: asyncio.Queue[Event] = asyncio.Queue()
        forget = self.store.changed(lambda _, events: _put(queue, events))
        task = self._spawn(_observe(queue, observer))

        def unsubscribe() -> None:
            forget()
            task.cancel()

        return unsubscribe

    # -- configuration at run time -------------------------------------------------------------------------------------

    def set_hitl_enabled(self, enabled: bool) -> None:
        """Switch approvals on or off. Off never widens what runs: what would ask is refused. Waiting tasks stay."""
        self._hitl_enabled = enabled
        self._reconsider()

    def set_compression_threshold(
        self, max_messages: int | None = None, max_context_ratio: float | None = None
    ) -> None:
        """Compress contexts above other thresholds, from the next step on; None leaves one as it is.

        max_messages: at least 10. max_context_ratio: above 0, at most 1, else ConfigError.
        """
        changed = self.compression_interceptor.with_limits(max_messages, max_context_ratio)
        self.compression_interceptor = changed
        self._policy = None

    def add_permission_rule(self, rule: PermissionRule) -> None:
        """Add a rule for all sessions of this engine; waiting tasks are judged afresh."""
        self._rules = (*self._rules, rule)
        self._reconsider()

    async def change_rule(
        self, session: AgentSession | str, rule: PermissionRule, *, add: bool = True, by: str = "", why: str = ""
    ) -> None:
        """Add or remove a rule of one session, on the record; its waiting tasks are judged afresh."""
        fact = RuleChanged("added" if add else "removed", rule, by, why, at=self.clock.now())
        await self.store.append(_id(session), fact)
        self.wake(session)

    async def policy(self, session_id: str) -> Policy:
        """The policy in force for a session now."""
        if self._policy is None or self._policy.gate.strategies is not self.hitl_interceptor.strategies:
            self._policy = self._made_policy()
        gate = replace(self._policy.gate, workspace=self._root_of(session_id), home=HOME)
        policy = replace(self._policy, gate=gate)
        adjust = self.options.adjust
        return await adjust(session_id, policy) if adjust else policy

    def _root_of(self, session_id: str) -> str:
        return os.path.realpath(self.workspace_of(session_id))

    def workspace_of(self, session_id: str) -> Path:
        """The folder that the session's tools work in; made if it is not there."""
        folder = self.options.workspace_for(session_id) if self.options.workspace_for else self.workspace
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools, in the order of the table."""
        return tuple(self._tools)

    def spec(self, tool: str) -> ToolSpec | None:
        """A tool as the model sees it, None if it is not there."""
        return self._tools[tool].spec if tool in self._tools else None

    async def inspect(self, session: AgentSession | str, tool: str, args: Args) -> Inspection | None:
        """What a tool sees for these arguments; None if it does not look."""
        if not self._tools[tool].inspects:
            return None
        session_id = _id(session)
        deadline = Deadline(self.clock.monotonic() + 15.0)
        context = ToolContext(session_id, "", self.workspace_of(session_id), deadline, self.clock)
        return await self._tools[tool].inspect(args, context)

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take up what does not rest, now and every few seconds."""
        await self._sweep()
        self._spawn(self._sweep_for_ever())
        self._spawn(self._counter.prepare(["ready"]))  # a table of tokens takes a moment to load

    async def close(self) -> None:
        """Stop working. Runs go on when somebody takes them up; a call in flight is of unknown outcome then."""
        self._forget()
        tasks = [*self._background, *self._alarms.values(), *(x.task for x in self._lives.values() if x.task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until no session is being worked on in this process."""
        while tasks := [live.task for live in self._lives.values() if live.task]:
            await asyncio.wait(tasks)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- the loop ------------------------------------------------------------------------------------------------------

    def _wake(self, session_id: str) -> Live:
        live = self._lives.get(session_id)
        if live is None:
            live = self._lives[session_id] = Live(session_id)
            live.task = asyncio.create_task(self._serve(live), name=f"session {session_id}")
        live.woken = True
        return live

    async def _serve(self, live: Live) -> None:
        try:
            while live.woken:
                live.woken = False
                await self._run(live)
        except Exception as error:
            log.exception("session %s cannot go on now", live.session_id)
            live.fail(error)
        except BaseException:
            live.fail(HarnessError("The engine was closed while this request went on. The session goes on later."))
            raise
        finally:
            del self._lives[live.session_id]

    async def _run(self, live: Live) -> None:
        while True:
            try:
                async with self.store.lease(live.session_id) as lease:
                    if lease is not None:
                        journal = await self._opened(live.session_id)
                        if live.followed or (live.since or journal.seq) < journal.seq:
                            await self._show_others(live)
                            live.followed = None
                        performer = Performer(self._around, journal, lease, live)
                        until = await self._steps(journal, lease, live, performer)
            except LeaseLost:
                log.warning("session %s was taken over by another process", live.session_id)
                await asyncio.sleep(FOLLOW)
                continue
            finally:
                self._journals.pop(live.session_id, None)
            if lease is None:  # its holder looks again after letting go; the sweep does, if it died
                if not live.watched:
                    return
                await self._follow(live)
                continue
            performer.flush()
            quiet = await self.store.last_seq(live.session_id) == journal.seq and not journal.behind
            self._shelf.put_back(journal)  # not before that look: whoever borrows it reads on
            if quiet:
                live.finish(journal.trace, self.clock.now())
                self._set_alarm(live.session_id, until)
                return

    async def _steps(self, journal: Journal, lease: Lease, live: Live, performer: Performer) -> float | None:
        started = False
        while True:
            trace = await journal.catch_up()
            if not (trace.run and trace.run.stop):
                live.go_on()
            policy = await self.policy(live.session_id)
            if trace.run and not trace.batch:
                policy = replace(policy, measure=await self._measured(trace))
            step = next_step(trace, policy, self.clock.now())
            if isinstance(step, Rest):
                await lease.rest(journal.seq, step.until)
                return step.until
            if needs_start(step, trace.run, started):
                started = await performer.go_on(policy, trace.seq)
                continue
            await performer.perform(step, policy, trace.seq)
            started = True

    async def _opened(self, session_id: str) -> Journal:
        journal = self._journals[session_id] = self._shelf.borrow(session_id)
        await journal.load()
        return journal

    async def _follow(self, live: Live) -> None:
        """Show the facts that another process writes, until this one gets the lease or the request has ended."""
        live.followed = live.followed or await Journal.open(self.store, live.session_id, upto=live.since)
        await asyncio.sleep(FOLLOW)
        await self._show_others(live)

    async def _show_others(self, live: Live) -> None:
        followed = live.followed or await Journal.open(self.store, live.session_id, upto=live.since)
        for event in await self.store.read(live.session_id, followed.seq):
            followed.take((event,))
            if type(event).__name__ in STREAMED:
                live.publish(event, followed.trace)

    def _told(self, session_id: str, events: tuple[Event, ...]) -> None:
        if journal := self._journals.get(session_id):
            journal.told(events[-1].seq or 0)
        live = self._lives.get(session_id)
        run = journal.trace.run if journal else None
        if live and run and any(isinstance(e, StopRequested) and e.run_id == run.run_id for e in events):
            live.stop()

    # -- waking --------------------------------------------------------------------------------------------------------

    async def _sweep_for_ever(self) -> None:
        while True:
            await self.clock.sleep(SWEEP)
            try:
                await self._sweep()
            except Exception:
                log.exception("the sweep failed; the next one tries again")

    async def _sweep(self) -> None:
        for session_id in await self.store.unfinished(self.clock.now()):
            self.wake(session_id)
        for session_id, journal in list(self._journals.items()):
            # Another process may have appended to a session that runs here, a stop for instance.
            if await self.store.last_seq(session_id) > journal.seq:
                for event in await self.store.read(session_id, journal.seq):
                    self._told(session_id, (event,))

    def _set_alarm(self, session_id: str, until: float | None) -> None:
        if alarm := self._alarms.pop(session_id, None):
            alarm.cancel()
        if until is not None:
            self._alarms[session_id] = asyncio.create_task(self._ring(session_id, until))

    async def _ring(self, session_id: str, until: float) -> None:
        await self.clock.sleep(max(0.0, until - self.clock.now()))
        self._alarms.pop(session_id, None)
        self.wake(session_id)

    def _reconsider(self) -> None:
        self._policy = None
        try:
            self._spawn(self._wake_everybody())
        except RuntimeError:  # no event loop yet: nothing runs, so nothing waits here either
            return

    async def _wake_everybody(self) -> None:
        for session_id in await self.store.sessions():
            if not session_id.startswith(("config:", "show:")):
                self.wake(session_id)

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        try:
            task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        except RuntimeError:
            work.close()
            raise
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    # -- the context ---------------------------------------------------------------------------------------------------

    def _default_compression(self) -> ContextCompressionInterceptor:
        options = self.options
        return ContextCompressionInterceptor(
            options.compression_max_messages,
            options.compression_max_context_ratio,
            options.model_retries,
            default_strategy(),
        )

    async def _measured(self, trace: Trace) -> Measure:
        """How large requests are, with everything that the next one holds counted."""
        counter = self._counter
        if self._measure is None:
            specs = self._around.specs
            table = [text for s in specs for text in (s.name, s.description, canonical(s.schema))]
            await counter.prepare([self._around.system, *table])
            fixed = counter.count(self._around.system) + OF_A_MESSAGE + OF_A_TOOL * len(specs)
            length = self.options.context_length or getattr(self._around.model, "context_length", None)
            self._measure = Measure(counter.count, fixed + sum(map(counter.count, table)), length, counter.name)
        await counter.prepare(text for message in trace.context for text in texts(message))
        return self._measure

    # -- the policy ----------------------------------------------------------------------------------------------------

    def _made_policy(self) -> Policy:
        options = self.options
        strategies = self.hitl_interceptor.strategies
        gate = Gate(self._tools, self._rules, self._interceptors, strategies)
        can_ask = self._can_hitl and self._hitl_enabled
        named = (sorted(map(str, self._rules)), sorted(strategies), [type(i).__name__ for i in self._interceptors])
        return Policy(
            gate=gate,
            can_ask=can_ask,
            max_steps=options.max_steps,
            model_attempts=options.model_retries,
            expiries=options.expiries,
            agent=options.agent,
            digest=digest(repr((*named, can_ask, options.max_steps, sorted(options.expiries.items(), key=str)))),
            prompt_digest=digest(repr((options.system_prompt, self._around.specs))),
            compression=self.compression_interceptor,
        )

    async def _approved(self, tool: str, args: Args) -> None:
        await call_back(self.hitl_interceptor.callbacks, tool, args)


def _put(queue: asyncio.Queue[Event], events: tuple[Event, ...]) -> None:
    for event in events:
        queue.put_nowait(event)


async def _observe(queue: asyncio.Queue[Event], observer: Observer) -> None:
    while True:
        event = await queue.get()
        try:
            await observer(event)
        except Exception:
            log.exception("an observer failed on %s", type(event).__name__)


def _id(session: AgentSession | str) -> str:
    return session if isinstance(session, str) else session.id


def _tool_table(tools: Sequence[str | Tool]) -> dict[str, Tool]:
    from harness_core.tools import tool_table  # built-in tools import more than somebody with tools of their own needs

    return {tool.spec.name: tool for tool in tool_table(tools)}


def _default_store(home: Path) -> SessionStore:
    from harness_core.store.sqlite import SQLiteStore  # only who uses it pays for importing sqlite-utils

    home.mkdir(parents=True, exist_ok=True)
    return SQLiteStore(home / "harness.db")


def _shared_counter() -> TokenCounter:
    from harness_core.models.tokens import shared_counter

    return shared_counter()


def _practice_model() -> ChatModel:
    from harness_core.models.practice import PracticeModel

    return PracticeModel()
