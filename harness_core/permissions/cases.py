"""One row of a truth table: a call, the rules beside it, what the world is like, and which verdict is expected.  Pure.

A row is read strictly: what is not understood is an error, because a table that is misread proves nothing.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast, get_args

from harness_core.errors import ConfigError
from harness_core.permissions import globs
from harness_core.permissions.book import book
from harness_core.permissions.defaults import unruled
from harness_core.permissions.lookups import needs
from harness_core.permissions.paths import World
from harness_core.permissions.rule import Effect, PermissionRule
from harness_core.permissions.rules import Ruling, check_rules
from harness_core.permissions.shell import read
from harness_core.permissions.subjects import KINDS, every_path, subject_of
from harness_core.types import Args

WORKSPACE: Final = "/ws"  # where a row says nothing else
HOME: Final = "/home/dev"
_EFFECTS: Final = get_args(Effect)
_MOST_NAMES: Final = 10_000  # that globs of a row may meet
_MOST_LINKS: Final = 40  # Linux: symlinks that are followed in one path

ONLY_READS: Final = "it only reads inside the workspace"

ReadOnly = Callable[[str, Args], bool]


class BadRow(ConfigError):
    """This line is no row of a truth table."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row. links: symlinks, by their absolute path; None says that nobody looked, and there are none.

    expect: the verdict that the row asks for, None if it asks for none.
    """

    tool: str
    args: Args
    rules: tuple[PermissionRule, ...] = ()
    world: World = World(WORKSPACE, HOME)  # noqa: RUF009 (frozen)
    links: Mapping[str, str] | None = None
    expect: Effect | None = None


def parse_case(line: str | bytes) -> Case:
    """The row on one line of JSON: `command`, or `tool`, `args` and `rules`; with them `fs` (workspace, home,
    symlinks), `redirects`, `resolved` and `expect`. Other keys are for people. Raises BadRow.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRow(f"it is no JSON: {error}") from None
    if not isinstance(row, dict):
        raise BadRow("it is no object")
    if ("command" in row) == ("tool" in row):
        raise BadRow("it needs either `command`, or `tool` and `args`")
    tool, args = ("bash", {"command": row["command"]}) if "command" in row else (row["tool"], row.get("args"))
    if not isinstance(tool, str):
        raise BadRow("`tool` must be a text")
    if not isinstance(args, dict):
        raise BadRow("`args` must be an object")
    fs = _object(row, "fs")
    links = _texts_by_name(fs, "symlinks") if "fs" in row else None
    workspace, home = _text(fs, "workspace", WORKSPACE), _text(fs, "home", HOME)
    world = World(workspace, home, addresses=_texts(row, "resolved"), redirects=_texts(row, "redirects"))
    return Case(tool, args, _rules(row), world, links, _expected(row))


def judged(case: Case, rules: Sequence[PermissionRule] = (), read_only: ReadOnly = lambda tool, args: False) -> Ruling:
    """What the gate says of the call without a session: by the row's rules and these, then by default.

    read_only: what a tool says of its calls. Hooks, and strategies of a host, need a session and have no say here.
    """
    rules, world = (*case.rules, *rules), _world(case)
    ruling = check_rules(rules, case.tool, case.args, world)
    if KINDS.get(case.tool) == "bash" and ruling.effect == "allow":
        return replace(ruling, reason=ruling.reason or ONLY_READS)
    if ruling.rule or KINDS.get(case.tool) == "bash":
        return ruling
    reason = unruled(book(rules, case.tool), case.args, world, only_reads=read_only(case.tool, case.args))
    return Ruling("allow", ONLY_READS) if reason is None else Ruling("ask", reason)


# -- what symlinks make of it ------------------------------------------------------------------------------------------


def _world(case: Case) -> World:
    if case.links is None:
        return case.world
    links, folder = case.links, case.world.workspace
    found = [real(posixpath.join(folder, path), links) for path in _named(case, links)]
    # A path that leads nowhere is left out, so that there are fewer than the call names: that cannot be allowed.
    return replace(case.world, paths=tuple(path for path in found if path is not None))


def _named(case: Case, links: Mapping[str, str]) -> Sequence[str]:
    """What the call names, in its order, as a tool would look it up. Globs meet no files but the symlinks."""
    command = subject_of("bash", case.args) if KINDS.get(case.tool) == "bash" else None
    if command is None:
        return every_path(case.args)
    wanted = needs(read(command), case.world)
    matched = globs.matched(wanted.globs, _names(links), _MOST_NAMES)
    return () if matched is None else (*wanted.paths, *matched)


def _names(links: Mapping[str, str]) -> globs.Names:
    """What a folder holds: what is on the way to a symlink, or one itself."""

    def names(folder: str) -> Sequence[str]:
        below = (real(folder, links) or folder).rstrip("/") + "/"
        return [link[len(below) :].partition("/")[0] for link in links if link.startswith(below)]

    return names


def real(path: str, links: Mapping[str, str]) -> str | None:
    """Where an absolute path leads when these symlinks are followed, as a kernel does it: `..` after the link.
    None where they lead round in a circle.
    """
    out, names, followed = "", path.split("/")[::-1], 0
    while names:
        name = names.pop()
        if name == "..":
            out = posixpath.dirname(out).rstrip("/")
        elif name not in ("", "."):
            out += "/" + name
        if out in links:
            followed += 1
            if followed > _MOST_LINKS:
                return None
            target = links[out]
            names += target.split("/")[::-1]
            out = "" if target.startswith("/") else posixpath.dirname(out).rstrip("/")
    return out or "/"


# -- reading a row -----------------------------------------------------------------------------------------------------


def _rules(row: Mapping[str, Any]) -> tuple[PermissionRule, ...]:
    entries = row.get("rules", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadRow("`rules` must be a list of objects")
    return tuple(_rule(entry) for entry in entries)


def _rule(entry: Mapping[str, Any]) -> PermissionRule:
    effect, tool, pattern = entry.get("effect"), entry.get("tool"), entry.get("pattern")
    if not isinstance(effect, str) or not isinstance(tool, str) or not isinstance(pattern, str | None):
        raise BadRow("`effect`, `tool` and `pattern` of a rule must be texts")
    if unknown := entry.keys() - {"effect", "tool", "pattern"}:
        raise BadRow(f"a rule has no `{min(unknown)}`")
    return PermissionRule(cast(Effect, effect), tool, pattern)  # an effect that there is not grants and denies nothing


def _expected(row: Mapping[str, Any]) -> Effect | None:
    expect = row.get("expect", row.get("verdict"))
    if expect is not None and expect not in _EFFECTS:
        raise BadRow(f"`expect` must be {', '.join(_EFFECTS[:-1])} or {_EFFECTS[-1]}")
    return cast(Effect | None, expect)


def _object(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = row.get(name, {})
    if not isinstance(value, dict):
        raise BadRow(f"`{name}` must be an object")
    return value


def _text(row: Mapping[str, Any], name: str, otherwise: str) -> str:
    value = row.get(name, otherwise)
    if not isinstance(value, str) or not value.startswith("/"):
        raise BadRow(f"`{name}` must be an absolute path")
    return value


def _texts(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = row.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadRow(f"`{name}` must be a list of texts")
    return tuple(value)


def _texts_by_name(row: Mapping[str, Any], name: str) -> Mapping[str, str]:
    value = _object(row, name)
    if not all(isinstance(one, str) for one in value.values()):
        raise BadRow(f"`{name}` must hold texts")
    return value
