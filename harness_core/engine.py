"""The engine as people hold it: asked, told, configured.  Owns no policy, and does no step itself."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from harness_core.agents import TASK, Agent
from harness_core.background import Background
from harness_core.clock import SystemClock
from harness_core.delegate import hired
from harness_core.errors import ConfigError, InvalidArguments, UnknownTask
from harness_core.events import Event, PromptAmended, Prompted, RuleChanged, RunEnd, StopRequested
from harness_core.extensions import Extension, built
from harness_core.given import listed, one_of
from harness_core.guards import guards_from
from harness_core.handle import AgentSession
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.interceptors.hitl import HITLInterceptor
from harness_core.interceptors.stop_loop import StopLoopInterceptor
from harness_core.journal_ids import depth_of, is_session, outer_of
from harness_core.live import Watcher
from harness_core.observers import Observer, subscribed, tell_approved
from harness_core.options import DEFAULT_TOOLS, HarnessOptions, changed
from harness_core.parts import (
    Surroundings,
    agents_among,
    asked_for,
    default_counter,
    default_store,
    practice_model,
    tools_by_name,
)
from harness_core.permissions.judge import Judgement, judge, misfit
from harness_core.permissions.rule import PermissionRule
from harness_core.policies import Policies
from harness_core.ports import ChatModel, Clock, SessionStore, TokenCounter, Tool, ToolSpec, Unsubscribe
from harness_core.serving import Serving
from harness_core.session import Trace
from harness_core.steps import Policy
from harness_core.subagents import Subagents
from harness_core.tooling import INSPECT_TIMEOUT, context
from harness_core.trace import note_of
from harness_core.types import Args, Inspection, ToolCall, same


class HarnessEngine:
    """Runs any number of sessions over one store.

    workspace: the folder that tools work in. home: the engine's own folder, with its database unless a store is given.
    tools: names of built-in tools, tools of your own, and "hitl" if calls may be put to a person. agents: a folder of
    agent files, or agents; with any there is the tool `task` that hands them work. models: the model of a name, for
    agents that want one of their own. *_interceptor: takes the place of the built-in one. guards: a table as in
    harness.toml, which says of the loop detector, too; {} for all of their defaults. interceptors: hooks beside those.
    extensions: add to the agent, and can be added and removed while it runs. new_id: makes the ids of runs, none of
    them twice. Further keyword arguments are the fields of HarnessOptions. Raises ConfigError for what cannot work.
    """

    def __init__(
        self,
        workspace: str | Path,
        home: str | Path,
        *,
        model: ChatModel | None = None,
        tools: Sequence[str | Tool] = DEFAULT_TOOLS,
        agents: str | Path | Sequence[Agent] = (),
        models: Callable[[str], ChatModel] | None = None,
        store: SessionStore | None = None,
        hitl_interceptor: HITLInterceptor | None = None,
        compression_interceptor: ContextCompressionInterceptor | None = None,
        stop_loop_interceptor: Any = None,
        guards: Mapping[str, object] | None = None,
        interceptors: Sequence[Any] = (),
        extensions: Sequence[Extension] = (),
        rules: Sequence[PermissionRule] = (),
        clock: Clock | None = None,
        counter: TokenCounter | None = None,
        new_id: Callable[[], str] = lambda: "r" + secrets.token_hex(6),
        options: HarnessOptions | None = None,
        **changes: Any,
    ) -> None:
        options = HarnessOptions() if options is None else options
        one_of("options", HarnessOptions, "HarnessOptions", options)
        if guards is not None and stop_loop_interceptor is not None:
            raise ConfigError("stop_loop_interceptor and guards would both say which loop detector there is. Give one.")
        hitl, compression = hitl_interceptor or HITLInterceptor(), compression_interceptor
        one_of("hitl_interceptor", HITLInterceptor, "a HITLInterceptor", hitl)
        if compression is not None:
            one_of("compression_interceptor", ContextCompressionInterceptor, "one of that name", compression)
        self.options = changed(options, changes)
        self.workspace = Path(workspace)
        self.clock: Clock = clock or SystemClock()
        self._own_store = store is None
        self.store: SessionStore = store or default_store(Path(home))
        self._tools = tools_by_name(tools)
        hired = agents_among(agents, self._tools)
        self._counter = counter or default_counter()
        self._background = Background()
        self._around = Surroundings(
            model=practice_model() if model is None else asked_for(model),
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
        self._policies = Policies(
            self.options,
            self._around,
            self._counter,
            self.store,
            hitl=hitl,
            compression=compression,
            hooks=(stop_loop_interceptor or StopLoopInterceptor(), *listed("interceptors", interceptors)),
            guards=None if guards is None else guards_from(guards, self._tools),
            rules=[PermissionRule.given(rule) for rule in listed("rules", rules)],
            can_hitl="hitl" in tools,
            delegate=TASK if hired else "",
        )
        self._subagents = Subagents(hired, self._around, models)
        self._serving = Serving(self.store, self._around, self._policies, self._subagents, self._background)
        self._extensions: tuple[Extension, ...] = ()
        self._extend(listed("extensions", extensions))

    # -- what people call ----------------------------------------------------------------------------------------------

    async def session(self, session_id: str) -> AgentSession:
        """The handle of a session; it need not exist yet."""
        return AgentSession(self, _session(session_id))

    async def stream(
        self, session: AgentSession | str, prompt: str = "", *, by: str = "", key: str | None = None
    ) -> AsyncIterator[Event]:
        """One request: its events from RunStart to exactly one RunEnd. Without a prompt the session resumes.

        Abandoning the stream neither stops nor slows the run. Raises StoreError if the journal fails.
        """
        session_id = _session(session)
        stored = await self.prompt(session_id, prompt, by=by, key=key, wake=False) if prompt else None
        watcher = Watcher(stored.seq if stored else None)
        live = self._serving.wake(session_id)
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
        prompted = Prompted(text, by, sent, tuple(files), ref=key or "", note=note_of(files), at=now)
        stored = await self.store.append(_session(session), prompted, key=key)
        if stored and wake:
            self.wake(session)
        return stored[0] if stored else None

    async def amend(self, session: AgentSession | str, ref: str, text: str | None, *, key: str | None = None) -> bool:
        """An author edited (text) or withdrew (None) the prompt with this key. False if that (key) is stored already.

        Moot once the model has the prompt: the history says what the model read, also while it still answers. Raises
        ConfigError for no key.
        """
        if not ref:  # which every prompt without a key has
            raise ConfigError("Only a prompt that was given a key can be amended, by that key.")
        amended = PromptAmended(ref, text, at=self.clock.now())
        return bool(await self.store.append(_session(session), amended, key=key))

    async def stop(self, session: AgentSession | str, *, by: str = "") -> bool:
        """Stop the run that goes on or is suspended. False if there is none."""
        session_id = _session(session)
        while run := (trace := await self.trace(session_id)).run:
            # Guarded, because a stop that came after the end of its run would stop nothing, and yet seem to have.
            request = StopRequested(run.run_id, by, at=self.clock.now())
            if await self.store.append(session_id, request, after=trace.seq):
                self.wake(session_id)
                return True
        return False

    def wake(self, session: AgentSession | str) -> None:
        """Look at the session: something may be to be done."""
        self._serving.wake(_id(session))

    async def trace(self, session: AgentSession | str) -> Trace:
        """What the session is now."""
        return await self._serving.trace(_id(session))

    def subscribe(self, observer: Observer) -> Unsubscribe:
        """Tell a function, async or not, of every fact stored through this engine's store, in order, after it is
        stored; but not of what the engine notes of its policies.

        Its errors are logged; it is never in the way. Returns what ends the subscription.
        """
        return subscribed(observer, self.store, self._background)

    # -- configuration at run time -------------------------------------------------------------------------------------

    def set_hitl_enabled(self, enabled: bool) -> None:
        """Switch approvals on or off. Off never widens what runs: what would ask is refused. Waiting tasks stay."""
        self._policies.hitl_enabled = enabled
        self._reconsider()

    def set_compression_threshold(
        self, max_messages: int | None = None, max_context_ratio: float | None = None
    ) -> None:
        """Compress contexts above other thresholds, from the next step on; None leaves one as it is.

        max_messages: at least 10. max_context_ratio: above 0, at most 1, else ConfigError.
        """
        self._policies.compression = self.compression_interceptor.with_limits(max_messages, max_context_ratio)
        self._policies.changed()

    def add_permission_rule(self, rule: PermissionRule) -> None:
        """Add a rule for all sessions of this engine; waiting tasks are judged afresh."""
        self._policies.rules = (*self._policies.rules, PermissionRule.given(rule))
        self._reconsider()

    def remove_permission_rule(self, rule: PermissionRule) -> None:
        """Take back a rule that was added; waiting tasks are judged afresh."""
        self._policies.rules = tuple(known for known in self._policies.rules if known != rule)
        self._reconsider()

    def disallow_tool(self, tool: str) -> None:
        """Refuse every call of a tool from the next step on. It stays in the table that the model is sent, so that the
        prefix of its requests stays the same; `remove_permission_rule(PermissionRule.deny(tool))` allows it again.
        What runs goes on: so does a sub-agent, whose work was handed over before `task` was refused.
        """
        if tool not in self._tools:
            raise ConfigError(f"There is no tool {tool!r} to disallow.")
        self.add_permission_rule(PermissionRule.deny(tool))

    def add_extension(self, extension: Extension) -> None:
        """Let an extension add to the agent, in the sessions that go on, too: from their next step on."""
        self._extend((*self._extensions, extension))
        self._reconsider()

    def remove_extension(self, extension: Extension) -> None:
        """Take back what an extension has added."""
        self._extend(tuple(known for known in self._extensions if known is not extension))
        self._reconsider()

    def _extend(self, extensions: tuple[Extension, ...]) -> None:
        added = built(extensions, self, self.options.agent)  # raises before anything has changed
        self._subagents.extend(added, {one.name: built(extensions, self, one.name) for one in self.agents})
        self._extensions, self._policies.added = extensions, added

    async def change_rule(
        self, session: AgentSession | str, rule: PermissionRule, *, add: bool = True, by: str = "", why: str = ""
    ) -> None:
        """Add or remove a rule of one session, on the record; its waiting tasks are judged afresh."""
        fact = RuleChanged("added" if add else "removed", PermissionRule.given(rule), by, why, at=self.clock.now())
        await self.store.append(_session(session), fact)
        self.wake(session)

    async def policy(self, session_id: str) -> Policy:
        """The policy in force for a session now; or for a sub-agent, by its journal, though it has ended. Raises
        UnknownTask if there never was one, or its agent is no more.
        """
        outer, call_uuid = outer_of(session_id)
        if not outer:
            return await self._policies.of(session_id)
        policy, trace = await self.policy(outer), await self.trace(outer)
        starts = await self.store.find("ToolCallStart", outer)
        agent = self._subagents.named(hired((one for one in starts if one.session_id == outer), call_uuid))
        if agent is None:
            raise UnknownTask
        return self._subagents.policy(policy, trace.rules, agent, depth_of(session_id))

    @property
    def hitl_interceptor(self) -> HITLInterceptor:
        """Which tools ask, and who is told of an *always allow*."""
        return self._policies.hitl

    @property
    def compression_interceptor(self) -> ContextCompressionInterceptor:
        """What decides about compression now."""
        return self._policies.compression

    def _reconsider(self) -> None:
        self._policies.changed()
        try:
            self._background.spawn(self._serving.wake_everybody())
        except RuntimeError:  # no event loop yet: nothing runs, so nothing waits here either
            return

    def workspace_of(self, session_id: str) -> Path:
        """The folder that the session's tools work in; made if it is not there."""
        folder = Path(self.options.workspace_for(session_id)) if self.options.workspace_for else self.workspace
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    @property
    def token_counter(self) -> str:
        """What counts tokens: "tiktoken …", or "estimate" where its table cannot be had."""
        return self._counter.name

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools, in the order of the table."""
        return tuple(self._tools)

    @property
    def agents(self) -> tuple[Agent, ...]:
        """The sub-agents."""
        return self._subagents.agents

    def spec(self, tool: str) -> ToolSpec | None:
        """A tool as the model sees it, None if it is not there."""
        return self._tools[tool].spec if tool in self._tools else None

    async def inspect(self, session: AgentSession | str, tool: str, args: Args) -> Inspection | None:
        """What a tool sees for these arguments; None if it does not look.

        Raises KeyError for a tool that is not there, and whatever the tool raises.
        """
        if not self._tools[tool].inspects:
            return None
        return await self._tools[tool].inspect(args, context(self._around, _id(session), "", INSPECT_TIMEOUT))

    async def judge(self, session: AgentSession | str, tool: str, args: Args) -> Judgement:
        """What the gate says of a call in this session, now. Nothing runs and nothing is stored.

        Raises InvalidArguments for a call that could not work, and KeyError for a tool that is not there.
        """
        session_id, call = _id(session), ToolCall("judged", tool, args)
        if problem := misfit(self._tools[tool], args):
            raise InvalidArguments(problem)
        found = await self.inspect(session_id, tool, args)
        gate = (await self.policy(session_id)).gate
        return judge(gate, await self.trace(session_id), call, lambda given: found if same(given, args) else None)

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take up what does not rest, now and every few seconds."""
        await self._serving.start()
        self._background.spawn(self._counter.prepare(["ready"]))  # a table of tokens takes a moment to load

    async def close(self, grace: float = 0.0) -> None:
        """Stop working: nothing new begins. Tools that run have `grace` seconds to end; what is killed after that is of
        unknown outcome. Runs go on when somebody takes them up. A store that was given stays open.
        """
        await self._serving.close(grace)
        if self._own_store:
            await self.store.close()

    async def idle(self) -> None:
        """Wait until no session is being worked on in this process."""
        await self._serving.idle()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _approved(self, tool: str, args: Args) -> None:
        await tell_approved(self.hitl_interceptor.callbacks, tool, args)


def _id(session: AgentSession | str) -> str:
    return session if isinstance(session, str) else session.id


def _session(session: AgentSession | str) -> str:
    """The id of a session that can be spoken to. Raises ConfigError for what is none: a prompt would wait for ever."""
    named = getattr(session, "id", session)
    # What stands behind a / is the journal of a sub-agent, which is nobody's to prompt.
    if not isinstance(named, str) or not named or not is_session(named) or {*named} & {"\0", "/"}:
        raise ConfigError(f"{named!r} cannot be the id of a session.")
    return named
