"""What is in force for a session: made of the options, the interceptors and the rules, and kept until they change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from harness_core.compression.shape import OF_A_MESSAGE, OF_A_TOOL, Sizes, texts
from harness_core.compression.strategies import default_strategy
from harness_core.events import PolicyInForce
from harness_core.extensions import AgentBuilder
from harness_core.guarding import guarded
from harness_core.hooks import in_order
from harness_core.interceptors.compression import ContextCompressionInterceptor, Measure
from harness_core.interceptors.fitness import fit
from harness_core.interceptors.hitl import HITLInterceptor
from harness_core.options import HarnessOptions
from harness_core.parts import Surroundings
from harness_core.permissions.judge import Gate
from harness_core.permissions.rule import PermissionRule
from harness_core.policy_record import content_parts, recorded
from harness_core.ports import SessionStore, TokenCounter
from harness_core.session import Trace
from harness_core.steps import Policy
from harness_core.types import canonical, digest

POLICIES: Final = "config:policies"  # the journal that keeps what each policy was
HOME: Final = os.path.realpath(os.path.expanduser("~"))  # where `~` leads in a command


class Policies:
    """The settings of an engine as they are now, and the policy that they come to."""

    def __init__(
        self,
        options: HarnessOptions,
        around: Surroundings,
        counter: TokenCounter,
        store: SessionStore,
        *,
        hitl: HITLInterceptor,
        compression: ContextCompressionInterceptor | None,
        hooks: Sequence[Any],
        guards: Sequence[Any] | None,
        rules: Sequence[PermissionRule],
        can_hitl: bool,
        delegate: str,
    ) -> None:
        self.hitl = hitl
        self.hitl_enabled = options.hitl_enabled
        self.compression = compression or default_compression(options)
        self.rules = tuple(rules)
        self.added = AgentBuilder()  # by extensions
        self._store = store
        self._own = tuple(map(fit, hooks))
        self._guards = guards
        self._known: set[str] = set()  # digests whose content is on record
        self._latest: tuple[tuple[object, ...], str] | None = None  # of what the last digest was, and that
        self._options = options
        self._around = around
        self._counter = counter
        self._can_hitl = can_hitl
        self._made: Policy | None = None
        self._delegate = delegate
        self._measures: dict[str, Measure] = {}  # by the digest of prompt and tools

    def changed(self) -> None:
        """Something was set: the next policy is made anew."""
        self._made = None

    async def of(self, session_id: str) -> Policy:
        """The policy in force for a session now."""
        if self._made is None or self._made.gate.strategies is not self.hitl.strategies:
            self._made = self._make()
        gate = replace(self._made.gate, workspace=self._root_of(session_id), home=HOME)
        policy = replace(self._made, gate=gate)
        if adjust := self._options.adjust:
            policy = await adjust(session_id, policy)
        return await self.on_record(policy)

    async def on_record(self, policy: Policy) -> Policy:
        """The policy with its digest. What it was is kept, once, for whoever looks at a session later."""
        parts = content_parts(policy)
        if self._latest and self._latest[0] == parts:  # the same at nearly every step
            return replace(policy, digest=self._latest[1])
        policy, content = recorded(policy)
        if (name := policy.digest) not in self._known:
            fact = PolicyInForce(name, content, at=self._around.clock.now())
            await self._store.append(POLICIES, fact, key=f"policy:{name}")
            self._known.add(name)
        self._latest = parts, name
        return policy

    def _root_of(self, session_id: str) -> str:
        return os.path.realpath(self._around.workspace(session_id))

    def _make(self) -> Policy:
        options, around = self._options, self._around
        policy = Policy(
            gate=Gate(around.tools, (*self.rules, *self.added.rules), in_order(self._own), self.hitl.strategies),
            can_ask=self._can_hitl and self.hitl_enabled,
            max_steps=options.max_steps,
            max_seconds=options.max_seconds,
            model_attempts=options.model_retries,
            expiries=options.expiries,
            agent=options.agent,
            prompt_digest=digest(repr((options.system_prompt, around.specs))),
            compression=self.compression,
            delegate=self._delegate,
        )
        if self._guards is not None:
            policy = guarded(policy, self._guards)
        hooks = in_order((*policy.gate.hooks, *self.added.interceptors))
        return replace(policy, gate=replace(policy.gate, hooks=hooks))

    async def measured(self, trace: Trace, policy: Policy, around: Surroundings, known: Sizes) -> Measure:
        """How large an agent's requests are, with all that the next one holds counted. known: by now."""
        counter = self._counter
        if (measure := self._measures.get(policy.prompt_digest)) is None:
            table = [text for s in around.specs for text in (s.name, s.description, canonical(s.schema))]
            await counter.prepare([around.system, *table])
            fixed = counter.count(around.system) + OF_A_MESSAGE + OF_A_TOOL * len(around.specs)
            length = self._options.context_length or getattr(around.model, "context_length", None)
            measure = Measure(counter.count, fixed + sum(map(counter.count, table)), length, counter.name)
            self._measures[policy.prompt_digest] = measure
        new = (*known.new(trace.messages), *trace.coming)
        await counter.prepare(text for message in new for text in texts(message))
        return replace(measure, known=known)


def default_compression(options: HarnessOptions) -> ContextCompressionInterceptor:
    """What decides about compression where nobody gives anything else."""
    return ContextCompressionInterceptor(
        options.compression_max_messages,
        options.compression_max_context_ratio,
        options.model_retries,
        default_strategy(),
    )
