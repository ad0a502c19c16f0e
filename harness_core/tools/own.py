"""Tools of one's own: a module that a setting names, and the tools that it defines."""

from __future__ import annotations

from collections.abc import Iterable

from harness_core.errors import ConfigError
from harness_core.ports import Tool
from harness_core.tools import BUILTIN, HITL_MARKER
from harness_core.tools.modules import load_module
from harness_core.tools.spec import FunctionTool


def load_tools(spec: str) -> tuple[Tool, ...]:
    """The tools at the top level of a module, in its order: everything there that `@tool` made.

    spec: a module that can be imported (`package.module`), or the path of a .py file. **Its code runs here and now, in
    this process and with all its rights**: name only code that you would run yourself. Approvals bind what the tools do
    when the agent calls them, not what the module does when it is loaded.
    Raises ConfigError if it cannot be loaded, holds no tool, or one whose name is taken.
    """
    module = load_module(spec, "tools")
    # An alias is the same tool under another variable, so each object counts once.
    found = list({id(value): value for value in vars(module).values() if isinstance(value, FunctionTool)}.values())
    if not found:
        raise ConfigError(f"{spec} holds no tool. Put @tool before an async function at its top level.")
    _distinct(spec, [each.spec.name for each in found])
    return tuple(found)


def _distinct(spec: str, names: Iterable[str]) -> None:
    taken = {*BUILTIN, HITL_MARKER}
    faults = []
    seen: set[str] = set()
    for name in names:
        if name in taken:
            faults.append(f"{name} is the name of a built-in tool")
        elif name in seen:
            faults.append(f"two tools are called {name}")
        seen.add(name)
    if faults:
        raise ConfigError(f"The tools of {spec} cannot be used: {'; '.join(faults)}. Give each another name.")
