"""What a rule that denies or asks matches: a call in any reading of its arguments. Doubt widens."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from harness_core.permissions import carried, patterns, shell, urls
from harness_core.permissions.carried import carries, too_many
from harness_core.permissions.everywhere import commands_in
from harness_core.permissions.paths import World, covers, placed
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.subjects import KINDS, every_path, every_text, same_json
from harness_core.permissions.text import invisible
from harness_core.types import Args, canonical


def names(rule: PermissionRule, tool: str) -> bool:
    """Whether the rule's tool is this one. `*` stays between the `__` of a name; alone it is every tool."""
    return _names(rule.tool, tool, rule.effect != "allow")


@lru_cache(maxsize=1024)  # every call is held against every rule
def _names(ruled: str, tool: str, wide: bool) -> bool:
    if not tool or (not wide and (not tool.isascii() or invisible(tool))):
        return wide and ruled == "*"
    if ruled == "*":
        return True
    flags = re.I if wide else 0
    wanted, given = (name.split("__") for name in (ruled, tool))
    return len(wanted) == len(given) and all(_star(one, other, flags) for one, other in zip(wanted, given, strict=True))


def _star(pattern: str, name: str, flags: int) -> bool:
    return bool(re.fullmatch(".*".join(re.escape(piece) for piece in pattern.split("*")), name, re.S | flags))


def struck(rule: PermissionRule, tool: str, args: Args, world: World) -> Literal["yes", "no", "unknown"]:
    """Whether a deny or ask rule that names the tool matches; unknown if it cannot be judged."""
    try:
        return "yes" if _strikes(rule, tool, args, world) else "no"
    except Exception:  # what a rule cannot judge is put to a person, whether it denies or asks
        return "unknown"


def _strikes(rule: PermissionRule, tool: str, args: Args, world: World) -> bool:
    """Whether a deny or ask rule that names the tool matches these arguments, in any reading of them."""
    if rule.arguments is not None:
        return rule.arguments == canonical(args)
    if rule.pattern is None or rule.pattern == "":
        return True
    kind = KINDS.get(tool.casefold(), "other")
    if kind == "bash":
        return any(_strikes_command(rule.pattern, text) for text in every_text(args))
    if kind == "path":
        return _strikes_path(rule.pattern, args, world)
    if kind == "url":
        found = [*every_text(args), *world.redirects]
        return any(urls.denies(rule.pattern, text, world.addresses) for text in found)
    return same_json(rule.pattern, args) or any(rule.pattern == text for text in args.values() if isinstance(text, str))


def _strikes_command(pattern: str, command: str) -> bool:
    if patterns.exact_text(pattern) == command.strip():
        return True
    return "yes" in _met(pattern, command)


@lru_cache(maxsize=128)  # every level of the gate asks it of the same rules and the same command
def _met(pattern: str, command: str) -> frozenset[patterns.Match]:
    """How a pattern meets what a command runs."""
    return frozenset(patterns.strikes(pattern, argv) for argv in commands_in(command).commands if argv)


def _strikes_path(pattern: str, args: Args, world: World) -> bool:
    named = [placed(path, world) for path in every_path(args)]
    return any(covers(pattern, path, world, wide=True) for path in (*named, *(world.paths or ())))


def hidden(rules: Iterable[PermissionRule], tool: str, command: str) -> str:
    """What keeps a scoped deny or ask rule from seeing all that a command runs; "" if nothing does."""
    scoped = [r for r in rules if r.effect in ("deny", "ask") and names(r, tool) and (r.pattern or r.arguments)]
    if not scoped:
        return ""
    found = commands_in(command)
    if found.opaque:
        return f"{found.opaque}, and there are rules against some commands"
    for rule in scoped:
        if rule.pattern and "maybe" in _met(rule.pattern, command):
            return f"whether the rule “{rule}” speaks of it is only known when it runs"
        if rule.pattern and (by := carries(rule.pattern, command)):
            return f"{by} may run what the rule “{rule}” speaks of"
    if too_many(command):
        return "it has more words that may be commands than anybody reviews, and there are rules against some commands"
    return ""


def forget() -> None:
    """Forget every command that was looked at, for measuring and for tests that take the parser away."""
    _met.cache_clear()
    carried.forget()
    commands_in.cache_clear()
    shell.forget()
