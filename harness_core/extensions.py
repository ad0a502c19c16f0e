"""What others add to an engine: interceptors and rules, by one object that can be added and removed while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from harness_core.errors import ConfigError
from harness_core.given import asked_at_once, said
from harness_core.hooks import in_order, name_of
from harness_core.interceptors.fitness import fit
from harness_core.permissions.rule import PermissionRule
from harness_core.steps import Policy

if TYPE_CHECKING:
    from harness_core.engine import HarnessEngine


class AgentBuilder:
    """What an extension adds to an agent, beside what the engine was made with."""

    def __init__(self) -> None:
        self._interceptors: list[Any] = []
        self._rules: list[PermissionRule] = []

    def default_interceptor_add(self, interceptor: Any) -> Self:
        """Ask this interceptor, too. Raises ConfigError if it can never work."""
        self._interceptors.append(fit(interceptor))
        return self

    def permission_rule_add(self, rule: PermissionRule) -> Self:
        """Add a rule for all sessions of the agent. Raises ConfigError for what is none."""
        self._rules.append(PermissionRule.given(rule))
        return self

    @property
    def interceptors(self) -> tuple[Any, ...]:
        """In the order in which they were added."""
        return tuple(self._interceptors)

    @property
    def rules(self) -> tuple[PermissionRule, ...]:
        """In the order in which they were added."""
        return tuple(self._rules)


class HarnessExtension(Protocol):
    """Adds to an agent when it is built. A plain function of the same three arguments is one, too."""

    def configure(self, engine: HarnessEngine, agent_name: str, builder: AgentBuilder) -> None:
        """Called when the engine is made, and each time that extensions are added or removed: for the engine's own
        agent (`options.agent`), then for each sub-agent by its name. A sub-agent keeps what was added for the engine's
        agent; an interceptor that is added for it takes the place of the added one of the same name.
        """


Extension = HarnessExtension | Callable[["HarnessEngine", str, AgentBuilder], None]


def built(extensions: Iterable[Extension], engine: HarnessEngine, agent_name: str) -> AgentBuilder:
    """What these extensions add to an agent, in their order. Raises whatever one of them raises."""
    builder = AgentBuilder()
    for extension in extensions:
        if not asked_at_once(extension, "configure"):
            raise ConfigError(
                f"{said(extension)} is no extension: it must be a plain function (engine, agent_name, builder), or an "
                "object with one as its `configure`."
            )
        untyped: Any = extension
        configure: Callable[..., None] = getattr(untyped, "configure", untyped)
        configure(engine, agent_name, builder)
    return builder


def joined(policy: Policy, own: AgentBuilder, others: Iterable[AgentBuilder]) -> Policy:
    """A sub-agent's policy with what extensions add for it. others: what they add for any agent."""
    mine = {name_of(one) for one in own.interceptors}
    replaced = [one for builder in others for one in builder.interceptors if name_of(one) in mine]
    kept = [one for one in policy.gate.hooks if not any(one is other for other in replaced)]
    rules = [rule for rule in own.rules if rule not in policy.gate.rules]
    gate = replace(policy.gate, hooks=in_order((*kept, *own.interceptors)), rules=(*policy.gate.rules, *rules))
    return replace(policy, gate=gate)


def widening(main: AgentBuilder, own: AgentBuilder) -> Iterable[PermissionRule]:
    """The rules that would let a sub-agent do unasked what the engine's agent must ask about."""
    return (rule for rule in own.rules if rule.effect == "allow" and rule not in main.rules)
