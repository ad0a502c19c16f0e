"""Hooks of one's own: a module that a setting names, and the hooks that it defines."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from harness_core.errors import ConfigError
from harness_core.guards import GUARDS
from harness_core.hooks import name_of
from harness_core.interceptors.fitness import points, unfit
from harness_core.tools.modules import load_module
from harness_core.verdicts import ACCEPTS


def load_hooks(spec: str) -> tuple[Any, ...]:
    """The hooks at the top level of a module, in its order: what `@hook` made, and objects with a method per point.

    spec: see load_module, also for what loading it means. Raises ConfigError if it cannot be loaded, holds no hook, or
    one that would never be asked or whose name is taken.
    """
    module = load_module(spec, "hooks")
    # An alias is the same hook under another variable, so each object counts once.
    found = list({id(value): value for value in vars(module).values() if _points(value)}.values())
    if wrong := [*_unmarked(module), *_faults(found)]:
        raise ConfigError(f"The hooks of {spec} cannot be used: {'; '.join(wrong)}.")
    if not found:
        raise ConfigError(f'{spec} holds no hook. Put @hook("before_tool"), say, before a function at its top level.')
    return tuple(found)


def _points(value: object) -> Sequence[str]:
    """The points at which this object, of whatever kind, is to be asked."""
    return () if isinstance(value, type | ModuleType) or inspect.isroutine(value) else points(value)


def _unmarked(module: ModuleType) -> Iterable[str]:
    """Functions that were meant to be hooks, by their name, and would never be asked."""
    for name, value in vars(module).items():
        if name in ACCEPTS and inspect.isfunction(value):
            yield f'{name} is not marked: put @hook("{name}") before it'


def _faults(found: Sequence[Any]) -> Iterable[str]:
    taken = {guard.name for guard in GUARDS}
    seen: set[str] = set()
    for each in found:
        name = name_of(each)
        if name in taken:
            yield f"{name} is the name of a guard"
        elif name in seen:
            yield f"two hooks are called {name}"
        seen.add(name)
        yield from unfit(each)
