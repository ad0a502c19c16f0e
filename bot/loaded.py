"""Tools, hooks, agents, rules and guards that a bot with these settings would load, as `config` and `check` tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from bot import check
from bot.check import Line
from bot.config import Settings
from bot.folders import DATABASE, LOCAL_DATABASE, WORKSPACES, not_emptied
from bot.policy import PolicyKeeper, default_path
from bot.replaying import check_rules, reader
from harness_core.agents import Agent
from harness_core.errors import ConfigError, StoreError
from harness_core.guards import GUARDS, Limits
from harness_core.hooks import name_of
from harness_core.options import DEFAULT_TOOLS, HarnessOptions
from harness_core.own_hooks import load_hooks
from harness_core.parts import agents_among, tools_by_name
from harness_core.tools.own import load_tools

# -- what config shows -------------------------------------------------------------------------------------------------


def shown(settings: Settings) -> Sequence[str]:
    """The tools and hooks of one's own, the rules, agents and guards that hold. Raises ConfigError."""
    own = [tool.spec.name for tool in _own(settings)]
    hooks = [name_of(hook) for hook in load_hooks(settings.hooks)] if settings.hooks else []
    policy = PolicyKeeper(settings.policy or default_path())
    return [
        *_listed("Tools of your own:", own, "There are no tools of your own."),
        *_listed("Hooks of your own:", hooks, "There are no hooks of your own."),
        *_listed(f"Rules of {policy.path}:", map(str, policy.file.rules), "There are no rules in a file."),
        *_listed("Agents:", map(_agent, agents_of(settings)), "There are no agents."),
        *_listed("Guards:", guards_shown(policy.guards), ""),
    ]


def _listed(head: str, lines: Iterable[str], none: str) -> Sequence[str]:
    listed = [f"- {line}" for line in lines]
    return ["", head, *listed] if listed else ["", none]


def agents_of(settings: Settings) -> Sequence[Agent]:
    """The agents that a bot with these settings would have. Raises ConfigError."""
    return agents_among(settings.agents or (), tools_by_name([*DEFAULT_TOOLS, *_own(settings)]))


def _own(settings: Settings) -> Sequence[Any]:
    return load_tools(settings.tools) if settings.tools else ()


def _agent(agent: Agent) -> str:
    """What it is for, what it has, and what it must not do."""
    has = "all tools but task" if agent.tools is None else ", ".join(agent.tools) or "no tools"
    more = [f"model {agent.model}"] if agent.model else []
    more += [f"{agent.max_steps} steps"] if agent.max_steps else []
    return "; ".join([f"{agent.name}: {agent.description} ({has}", *more, *map(str, agent.rules)]) + ")"


def guards_shown(guards: Sequence[Any]) -> Sequence[str]:
    """A line for each guard there is: its settings in force, as `harness.toml` would have them, or that it is off."""
    on = {guard.name: guard for guard in guards}
    options = HarnessOptions()
    # What the guard leaves open, the engine's own limits say; without the guard they hold as well.
    limits = on.get(Limits.name, Limits())
    on[Limits.name] = replace(
        limits, steps=limits.steps or options.max_steps, seconds=limits.seconds or options.max_seconds
    )
    return [f"{kind.name}: {_settings(on[kind.name]) if kind.name in on else 'off'}" for kind in GUARDS]


def _settings(guard: Any) -> str:
    return ", ".join(f"{each.name}={_value(getattr(guard, each.name))}" for each in fields(guard))


def _value(value: Any) -> str:
    match value:
        case None:
            return "not set"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case Mapping():
            return "{" + ", ".join(f"{name}: {_value(one)}" for name, one in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)


# -- what check says ---------------------------------------------------------------------------------------------------


def check_loaded(settings: Settings) -> Sequence[Line]:
    """A line for each thing that is loaded. A fault is told once: what rests on it is not looked at."""
    tools, path = _tools(settings), settings.policy or default_path()
    if tools.advice:
        return [tools, _hooks(settings), check.policy(path), _record(settings)]
    names = tools_by_name([*DEFAULT_TOOLS, *_own(settings)])
    lines = [tools, _hooks(settings), check_agents(settings), check.policy(path, names), _record(settings)]
    return lines if any(line.advice for line in lines) else [*lines, check_rules(settings)]


def _tools(settings: Settings) -> Line:
    try:
        names = [tool.spec.name for tool in _own(settings)]
    except ConfigError as error:
        return Line("HARNESS_TOOLS", str(error))
    return Line(f"tools of your own: {', '.join(names) or 'none'}")


def _hooks(settings: Settings) -> Line:
    try:
        names = [name_of(hook) for hook in load_hooks(settings.hooks)] if settings.hooks else []
    except ConfigError as error:
        return Line("HARNESS_HOOKS", str(error))
    return Line(f"hooks of your own: {', '.join(names) or 'none'}")


def check_agents(settings: Settings) -> Line:
    """Whether the agents can be used."""
    try:
        names = ", ".join(agent.name for agent in agents_of(settings))
    except ConfigError as error:
        return Line("agents", str(error))
    return Line(f"agents: {names or 'none'}")


def _record(settings: Settings) -> Line:
    """Whether what was recorded can be read."""
    path = settings.data / DATABASE
    if not path.exists():
        return Line(f"nothing is recorded yet: {path} is made at the start")
    try:
        not_emptied(path, settings.data / WORKSPACES, settings.data / LOCAL_DATABASE)
        with reader(settings) as journals:
            return Line(f"{path}: {len(journals.sessions())} sessions")
    except StoreError as error:
        return Line(f"the record {path}", str(error))
