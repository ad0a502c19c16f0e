"""What sub-agents work with and what they may do: always less than whoever hands them work, or the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from harness_core.agents import TASK, Agent
from harness_core.errors import ConfigError
from harness_core.extensions import AgentBuilder, joined, widening
from harness_core.parts import Surroundings, asked_for
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ChatModel, Tool
from harness_core.steps import Policy
from harness_core.types import digest

DEEPEST: Final = 2  # sub-agents of sub-agents; whoever needs more has lost sight of who does what


class Subagents:
    """The sub-agents of an engine. models: the model of a name, for agents that want another one than all have.

    Raises ConfigError if one wants another and there is no such choice.
    """

    def __init__(
        self, agents: Sequence[Agent], around: Surroundings, models: Callable[[str], ChatModel] | None = None
    ) -> None:
        self._agents = {agent.name: agent for agent in agents}
        self._around = around
        wanted = sorted({agent.model for agent in agents if agent.model})
        if wanted and models is None:
            raise ConfigError(f"Agents want models of their own ({', '.join(wanted)}), and there is only one here.")
        self._models = {name: asked_for(models(name)) for name in wanted} if models else {}
        self._made: dict[tuple[str, bool], Surroundings] = {}
        self._main, self._added = AgentBuilder(), dict[str, AgentBuilder]()  # by extensions

    @property
    def agents(self) -> tuple[Agent, ...]:
        """All of them, by name."""
        return tuple(self._agents.values())

    def extend(self, main: AgentBuilder, added: Mapping[str, AgentBuilder]) -> None:
        """What extensions add: for the engine's agent, and for each sub-agent by name. Raises ConfigError for a rule
        that would let one do more than the engine's agent may.
        """
        for name, own in added.items():
            if more := [str(rule) for rule in widening(main, own)]:
                raise ConfigError(f"An extension may not allow {name} more than all may: {', '.join(more)}.")
        self._main, self._added = main, dict(added)

    def named(self, name: object) -> Agent | None:
        """The agent of this name, if there is one (still)."""
        return self._agents.get(name) if isinstance(name, str) else None

    def around(self, agent: Agent, depth: int) -> Surroundings:
        """What an agent works with. depth: how many sub-agents deep it works, from 1."""
        hires = _hires(agent, depth)
        if (agent.name, hires) not in self._made:
            self._made[agent.name, hires] = self._make(agent, tools_of(agent, self._around.tools, depth))
        return self._made[agent.name, hires]

    def _make(self, agent: Agent, tools: Mapping[str, Tool]) -> Surroundings:
        around = self._around
        return replace(
            around,
            model=self._models.get(agent.model, around.model),
            tools=tools,
            specs=tuple(tool.spec for tool in tools.values()),
            system=agent.prompt,
        )

    def policy(self, policy: Policy, rules: Sequence[PermissionRule], agent: Agent, depth: int) -> Policy:
        """What is in force for an agent. policy, rules: of the session that it works in."""
        around = self.around(agent, depth)
        own = joined(policy, self._added.get(agent.name, AgentBuilder()), (self._main, *self._added.values()))
        return replace(
            narrowed(own, rules, agent, around.tools), prompt_digest=digest(repr((around.system, around.specs)))
        )


def tools_of(agent: Agent, tools: Mapping[str, Tool], depth: int) -> Mapping[str, Tool]:
    """Those of the engine's tools that an agent may call. depth: how many sub-agents deep it works, from 1."""
    wanted = tools if agent.tools is None else agent.tools
    return {name: tool for name, tool in tools.items() if name in wanted and (name != TASK or _hires(agent, depth))}


def narrowed(policy: Policy, rules: Sequence[PermissionRule], agent: Agent, tools: Mapping[str, Tool]) -> Policy:
    """What is in force for an agent, but for its prompt. policy, rules: of the session that it works in."""
    gate = replace(policy.gate, tools=tools, rules=(*policy.gate.rules, *rules, *agent.rules))
    most = min(policy.max_steps, agent.max_steps or policy.max_steps)
    return replace(policy, gate=gate, max_steps=most, agent=agent.name, delegate=TASK if TASK in tools else "")


def _hires(agent: Agent, depth: int) -> bool:
    return agent.tools is not None and TASK in agent.tools and depth < DEEPEST
