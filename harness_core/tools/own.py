"""Tools of one's own: a module that a setting names, and the tools that it defines."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from harness_core.errors import ConfigError
from harness_core.ports import Tool
from harness_core.tools import BUILTIN, HITL_MARKER
from harness_core.tools.clip import said
from harness_core.tools.spec import FunctionTool


def load_tools(spec: str) -> tuple[Tool, ...]:
    """The tools at the top level of a module, in its order: everything there that `@tool` made.

    spec: a module that can be imported (`package.module`), or the path of a .py file. **Its code runs here and now, in
    this process and with all its rights**: name only code that you would run yourself. Approvals bind what the tools do
    when the agent calls them, not what the module does when it is loaded.
    Raises ConfigError if it cannot be loaded, holds no tool, or one whose name is taken.
    """
    module = _from_file(spec) if spec.endswith(".py") or "/" in spec else _from_name(spec)
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


def _from_name(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ConfigError(f"{name!r} is neither a module (package.module) nor the path of a .py file.")
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # a foreign module may raise anything while it is imported
        raise ConfigError(f"The tools of {name} could not be loaded: {_told(error)}") from error


def _from_file(path: str) -> ModuleType:
    file = Path(path).expanduser().resolve()
    if not file.is_file():
        raise ConfigError(f"The tools of {path} could not be loaded: there is no such file.")
    # A name of its own, so that it hides no module, and the same file is the same module.
    name = f"harness_tools_{hashlib.sha256(str(file).encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"The tools of {path} could not be loaded: it is no .py file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # type hints are looked up there while the module runs
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"The tools of {path} could not be loaded: {_told(error)}") from error
    return module


def _told(error: BaseException) -> str:
    """The error, and the line of the foreign code where it arose."""
    ours = (__file__, importlib.__file__)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in ours]
    foreign = [frame for frame in frames if not frame.filename.startswith("<")]  # <frozen importlib…>
    where = f" (line {foreign[-1].lineno} of {foreign[-1].filename})" if foreign else ""
    return said(error) + where
