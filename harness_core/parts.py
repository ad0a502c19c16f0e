"""What an engine works with, and the parts of whoever gives none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_core.agent_files import read_agents
from harness_core.agents import TASK, Agent, check_agents
from harness_core.errors import ConfigError
from harness_core.given import listed, one_of, said
from harness_core.ports import ChatModel, Clock, SessionStore, TokenCounter, Tool, ToolSpec
from harness_core.types import Args


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an engine works with. model_timeout: seconds. approved: called with the tool and the arguments of each
    *always allow*.
    """

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


def agents_among(given: str | Path | Sequence[Agent], tools: dict[str, Tool]) -> tuple[Agent, ...]:
    """The agents of a folder, or those given. With any, the tool that hands them work joins these tools.

    Raises ConfigError for all that is wrong with them.
    """
    agents = read_agents(Path(given), tools) if isinstance(given, str | Path) else listed("agents", given)
    for agent in agents:
        one_of("An agent", Agent, "an Agent", agent)
    check_agents(agents, tools)
    if agents and TASK in tools:
        raise ConfigError(f"A tool is called {TASK}, which is the one that hands work to agents. Give it another name.")
    if agents:
        from harness_core.tools.task import task_tool  # whoever has no agents needs no tool for them

        tools[TASK] = task_tool(agents)
    return agents


def tools_by_name(tools: Sequence[str | Tool]) -> dict[str, Tool]:
    """The table of tools, in the order given. Raises ConfigError for a name that is none."""
    from harness_core.tools import tool_table  # built-in tools import more than somebody with tools of their own needs

    return {tool.spec.name: tool for tool in tool_table(tools)}


def default_store(home: Path) -> SessionStore:
    """SQLite, in the engine's own folder."""
    from harness_core.store.sqlite import SQLiteStore  # only who uses it pays for importing sqlite-utils

    home.mkdir(parents=True, exist_ok=True)
    return SQLiteStore(home / "harness.db")


def default_counter() -> TokenCounter:
    """tiktoken, shared by all engines of this process."""
    from harness_core.models.tokens import shared_counter

    return shared_counter()


def asked_for(model: object) -> ChatModel:
    """The model that was given. Raises ConfigError for what is none."""
    if isinstance(model, type) or not callable(getattr(model, "stream", None)):
        raise ConfigError(
            f"{said(model)} is no model: openai_model(name) of harness_core.models.openai makes one, and any object "
            "with the `stream` of ports.ChatModel is one."
        )
    untyped: Any = model
    return untyped  # type: ignore[no-any-return]


def practice_model() -> ChatModel:
    """The model that needs no network and no key."""
    from harness_core.models.practice import PracticeModel

    return PracticeModel()
