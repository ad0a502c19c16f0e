"""The guards: the interceptors that a `[guards]` table switches and tunes.  Pure: a table in, interceptors out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from harness_core.errors import ConfigError, shown
from harness_core.given import one_of
from harness_core.interceptors.budget import Budget
from harness_core.interceptors.caps import Caps
from harness_core.interceptors.finish import Finish
from harness_core.interceptors.limits import Limits as Limits
from harness_core.interceptors.lookup import Lookup
from harness_core.interceptors.looping import StopLoop as StopLoop
from harness_core.interceptors.refused import Refused
from harness_core.interceptors.terminal import Terminal
from harness_core.interceptors.watchdog import Watchdog

GUARDS: Final[tuple[type[Any], ...]] = (Terminal, Finish, Watchdog, Limits, Budget, Caps, Refused, StopLoop, Lookup)
OFF: Final = frozenset({Lookup.name})  # unless the table speaks of it

_OF_TOOLS: Final = frozenset({"tools", "requires", "per_run", "first"})  # settings that hold names of tools
_WORDS: Final = {"a valid tuple": "a list", "valid integer": "whole number", "a valid dictionary": "a table"}


def guards_from(table: Mapping[str, object], tools: Collection[str] = (), source: str = "") -> tuple[Any, ...]:
    """The guards that a table asks for; an empty one gives the defaults.

    Per guard: false switches it off, true takes its defaults, a table tunes it. tools: the names that there are, so
    that a misspelt one is found; without them any name is taken. source: the file, for the words of an error.
    Raises ConfigError, naming everything that is wrong.
    """
    one_of("guards", Mapping, "a table", table)
    known = [guard.name for guard in GUARDS]
    wrong = [f"guards.{shown(name)} is not known; there are {', '.join(known)}" for name in table if name not in known]
    made = [_made(guard, table.get(guard.name, guard.name not in OFF), tools, wrong) for guard in GUARDS]
    if wrong:
        of = f" of {source}" if source else ""
        raise ConfigError(f"The guards{of} need correcting:\n" + "\n".join(f"- {line}" for line in wrong))
    return tuple(guard for guard in made if guard is not None)


def _made(guard: type[Any], said: object, tools: Collection[str], wrong: list[str]) -> Any:
    """The guard as it was set, or None; what is wrong is appended."""
    if isinstance(said, bool):
        return guard() if said else None
    if not isinstance(said, Mapping):
        wrong.append(f"guards.{guard.name} must be true, false or a table, not {shown(repr(said))}")
        return None
    if tools:
        wrong += _no_tools(guard.name, said, tools)
    try:
        return TypeAdapter(guard).validate_python(dict(said))
    except ValidationError as error:
        wrong += [_fault(guard, fault) for fault in error.errors()]
        return None


def _no_tools(guard: str, said: Mapping[str, object], tools: Collection[str]) -> Iterator[str]:
    for key, names in said.items():
        for name in names if key in _OF_TOOLS and isinstance(names, list | tuple | Mapping) else ():
            if isinstance(name, str) and name not in tools:
                yield f"guards.{guard}.{key}: there is no tool {shown(repr(name))}"


def _fault(guard: type[Any], fault: Any) -> str:
    """One line about one fault that pydantic found."""
    place = [str(part) for part in fault["loc"]]
    where = ".".join(["guards", guard.name, *place[:2]])
    if fault["type"] == "unexpected_keyword_argument":
        return f"{where} is not known; there are {', '.join(field.name for field in fields(guard))}"
    if not place:
        return f"{where}: {fault['msg'].removeprefix('Value error, ')}"
    told = fault["msg"].replace("Input should be", "must be", 1)
    for theirs, ours in _WORDS.items():
        told = told.replace(theirs, ours)
    return f"{where} {told}, not {shown(repr(fault['input']))}"
