"""The tools that come with the harness, and how a list of names becomes a table of tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from harness_core.errors import ConfigError
from harness_core.ports import Tool
from harness_core.tools.files import edit, ls, read, write
from harness_core.tools.glob import glob
from harness_core.tools.grep import grep
from harness_core.tools.shell import bash
from harness_core.tools.todo import todo
from harness_core.tools.web import webfetch

# In an agent's tool list this name is no tool: it says that people may be asked.
HITL_MARKER: Final = "hitl"

BUILTIN: Final[Mapping[str, Tool]] = MappingProxyType(
    {t.spec.name: t for t in (read, write, edit, ls, glob, grep, bash, webfetch, todo)}
)


def tool_table(names_or_tools: Iterable[str | Tool]) -> tuple[Tool, ...]:
    """The tools of a list that mixes names of built-in ones and tools; the marker `hitl` is left out.

    Raises ConfigError that names every unknown tool, whatever is no tool, and every name that stands twice.
    """
    table: dict[str, Tool] = {}
    unknown: list[str] = []
    none: list[str] = []
    twice: list[str] = []
    for entry in names_or_tools:
        if entry == HITL_MARKER:
            continue
        found = BUILTIN.get(entry) if isinstance(entry, str) else entry
        if found is None:
            unknown.append(str(entry))
        elif not hasattr(found, "spec"):
            name = getattr(found, "__name__", type(found).__name__)
            none.append(f"{name} is no tool: write @tool() before an async function, or give what is a ports.Tool.")
        elif found.spec.name in table:
            twice.append(found.spec.name)
        else:
            table[found.spec.name] = found
    faults = [f"There is no tool {', '.join(unknown)} (built in: {', '.join(BUILTIN)})."] if unknown else []
    faults += none
    faults += [f"Listed twice: {', '.join(twice)}."] if twice else []
    if faults:
        raise ConfigError(" ".join(faults))
    return tuple(table.values())
