"""Judges a call by rules.  Allow narrows, deny and ask widen: every doubt is settled that way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness_core.permissions.against import hidden, struck
from harness_core.permissions.allowing import allowing, uncovered
from harness_core.permissions.book import Book, book
from harness_core.permissions.paths import World
from harness_core.permissions.readonly import Verdict, classify
from harness_core.permissions.rule import Effect, PermissionRule
from harness_core.permissions.subjects import KINDS, subject_of
from harness_core.types import Args


@dataclass(frozen=True, slots=True)
class Ruling:
    """What rules and the read-only table say of one call. rule: which one spoke, if one did."""

    effect: Literal["allow", "ask", "deny"]
    reason: str = ""
    rule: PermissionRule | None = None


def check_rules(rules: Sequence[PermissionRule], tool: str, args: Args, world: World) -> Ruling:
    """Deny, then ask, then allow, then the default: bash runs what only reads, all else asks. Never raises."""
    try:
        mine = book(rules, tool)
        if rule := speaking(mine, "deny", args, world):
            return Ruling("deny", f"the rule “{rule}” denies it", rule)
        if rule := speaking(mine, "ask", args, world):
            return Ruling("ask", f"the rule “{rule}” asks", rule)
        if rule := speaking(mine, "allow", args, world):
            return Ruling("allow", f"the rule “{rule}” allows it", rule)
        if KINDS.get(tool) == "bash":
            verdict = unasked(mine, args, world)
            return Ruling(verdict.effect, verdict.reason)
    except Exception as error:  # a fault of the gate must not become a permission
        return Ruling("ask", f"the call could not be judged ({type(error).__name__})")
    return Ruling("ask", f"{tool} may change something")


def speaking(rules: Book, effect: Effect, args: Args, world: World) -> PermissionRule | None:
    """The first rule of this effect that speaks about the call; None if none does.

    All rules are needed, also to allow: several may allow one compound command, and a deny rule that cannot see what a
    command will run keeps every allow rule from it. An allow rule is not found for a call that cannot be judged; a
    deny rule that fails at it speaks when asked about "ask".
    """
    if effect == "deny":
        return next((rule for rule, how in struck(rules.deny, rules.tool, args, world) if how == "yes"), None)
    if effect == "ask":
        asking = (rule for rule, _ in struck(rules.ask, rules.tool, args, world))
        unknown = (rule for rule, how in struck(rules.deny, rules.tool, args, world) if how == "unknown")
        return next(asking, None) or next(unknown, None)
    if not rules.allow.rules:
        return None
    try:
        return allowing(rules, args, world)
    except Exception:  # no permission comes of a fault
        return None


def people_wanted(rules: Book, args: Args, world: World) -> int:
    """How many people must approve a call that is asked about: the most that any ask rule for it wants."""
    if all(rule.people == 1 for rule in rules.ask.rules):
        return 1
    return max((rule.people for rule, _ in struck(rules.ask, rules.tool, args, world)), default=1)


def unasked(rules: Book, args: Args, world: World) -> Verdict:
    """Whether a bash call runs without any rule: it only reads, and no deny or ask rule is left in the dark.

    The reason to ask names the part that allow rules leave open, where there are any for commands.
    """
    command = subject_of("bash", args)
    if command is None:
        return Verdict("ask", "the arguments are not the plain ones of a command")
    if why := hidden(rules.scoped, command):
        return Verdict("ask", why)
    verdict = classify(command, world)
    if verdict.effect == "allow" or not any(rule.pattern for rule in rules.allow.rules):
        return verdict
    left = uncovered(rules.allow, command, world)
    return left if left.effect == "ask" else verdict
