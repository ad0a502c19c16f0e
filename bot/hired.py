"""The agents of HARNESS_AGENTS, as `config` and `check` tell of them."""

from __future__ import annotations

from collections.abc import Sequence

from bot.check import Line
from bot.config import Settings
from harness_core.agents import Agent
from harness_core.errors import ConfigError
from harness_core.options import DEFAULT_TOOLS
from harness_core.parts import agents_among, tools_by_name
from harness_core.tools.own import load_tools


def agents_of(settings: Settings) -> Sequence[Agent]:
    """The agents that a bot with these settings would have. Raises ConfigError."""
    own = load_tools(settings.tools) if settings.tools else ()
    return agents_among(settings.agents or (), tools_by_name([*DEFAULT_TOOLS, *own]))


def shown(agents: Sequence[Agent]) -> Sequence[str]:
    """A line for each: what it is for, what it has, and what it must not do."""
    lines = []
    for agent in agents:
        has = "all tools but task" if agent.tools is None else ", ".join(agent.tools) or "no tools"
        more = [f"model {agent.model}"] if agent.model else []
        more += [f"{agent.max_steps} steps"] if agent.max_steps else []
        lines.append("; ".join([f"{agent.name}: {agent.description} ({has}", *more, *map(str, agent.rules)]) + ")")
    return lines


def check_agents(settings: Settings) -> Line:
    """Whether the agents can be used."""
    try:
        names = ", ".join(agent.name for agent in agents_of(settings))
    except ConfigError as error:
        return Line("agents", str(error))
    return Line(f"agents: {names or 'none'}")
