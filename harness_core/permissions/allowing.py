"""What allow rules let run: only calls that are plainly meant by them. Doubt narrows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from harness_core.permissions import patterns, urls
from harness_core.permissions.against import hidden
from harness_core.permissions.book import Book, Shelf
from harness_core.permissions.flags import Refused
from harness_core.permissions.lookups import moved
from harness_core.permissions.paths import (
    World,
    covers,
    has_wildcard,
    placed,
    protected,
    secret,
    unescaped,
    unusual,
    within,
)
from harness_core.permissions.reach import beyond
from harness_core.permissions.readonly import Verdict, harmless_redirect, judged, look, unread
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.shell import Command, Reading, read
from harness_core.permissions.subjects import KINDS, every_text, paths_of, same_json, subject_of
from harness_core.permissions.text import invisible
from harness_core.permissions.url_rules import allows
from harness_core.permissions.words import quoted
from harness_core.permissions.wrappers import STATEFUL
from harness_core.types import Args, canonical


def allowing(rules: Book, args: Args, world: World) -> PermissionRule | None:
    """The first of the allow rules that lets the call run; None if they do not."""
    kind = KINDS.get(rules.tool, "other")
    mine = rules.allow.rules
    if kind == "other":
        return next((rule for rule in mine if _allows_json(rule, args)), None)
    exact = [rule for rule in mine if rule.arguments is not None and rule.arguments == canonical(args)]
    if kind == "bash":
        return _allows_command(rules, exact, args, world)
    scoped = [rule for rule in mine if rule.arguments is None]
    if kind == "path":
        return _allows_path(exact, scoped, rules.tool, args, world)
    return _allows_url(exact, scoped, args, world)


def _allows_json(rule: PermissionRule, args: Args) -> bool:
    if rule.arguments is None and rule.pattern is None:
        return True
    if any(invisible(text) for text in every_text(args)):
        return False  # whoever made the rule may not have seen what it holds
    return rule.arguments == canonical(args) if rule.arguments is not None else same_json(rule.pattern or "", args)


# -- commands ----------------------------------------------------------------------------------------------------------


def _allows_command(rules: Book, exact: Sequence[PermissionRule], args: Args, world: World) -> PermissionRule | None:
    command = subject_of("bash", args)
    if command is None:
        return None
    reading = read(command)
    if not reading.parses or hidden(rules.scoped, command):
        return None
    mine = rules.allow
    any_command = (rule for rule in mine.rules if rule.pattern is None and rule.arguments is None)
    if whole := next(chain(exact, any_command, mine.standing_for(command.strip(" \t\n"))), None):
        return whole
    if not any(part.words[0].text in mine.by_program for part in reading.commands):
        return None  # no rule takes part in it, so it runs by the table or not at all
    used, verdict = _by_parts(reading, mine, world)
    return used[0] if used and verdict.effect == "allow" else None


def uncovered(rules: Shelf, command: str, world: World) -> Verdict:
    """What keeps those of the allow rules that have a pattern from letting a command run: the first part they leave."""
    reading = read(command)
    _, verdict = _by_parts(reading, rules, world)
    part = next((part for part in reading.commands if part.source == verdict.part), None)
    if part is None or verdict.effect != "ask":
        return verdict
    away = moved(reading, world) is not None and part is not reading.commands[0]
    near = _near(part, rules, world, away=away)
    where = f"the part {quoted(part.source)}" if len(reading.commands) > 1 else "it"
    return replace(verdict, reason=f"{where} {near}") if near else verdict


def _near(part: Command, rules: Shelf, world: World, *, away: bool) -> str:
    """Why a rule whose words fit a part does not reach it; "" if there is no such rule."""
    for rule in rules.of(part.words[0].text):
        places = patterns.covered(rule.pattern or "", part)
        if places is None:
            continue
        if redirect := next((one for one in part.redirects if not harmless_redirect(one)), None):
            return f"is not covered by the rule “{rule}”: it redirects to {quoted(redirect.target.text)}"
        if away:
            return f"is not covered by the rule “{rule}”: it runs in another folder"
        if fault := beyond(part, places, (world.workspace,), world, lambda inner, folders: False):
            return f"is not covered by the rule “{rule}”: {fault}"
    return ""


def _by_parts(reading: Reading, rules: Shelf, world: World) -> tuple[Sequence[PermissionRule], Verdict]:
    """Every part by a rule or by the table: the rules that took part, and what came of it."""
    if reading.problem:
        return (), unread(reading)
    used: list[PermissionRule] = []
    away = moved(reading, world) is not None

    def allowed(part: Command, places: Sequence[str]) -> bool:
        if len(reading.commands) > 1 and part.words[0].text in STATEFUL:
            return False  # it may change what the other parts mean
        if part.negated or (away and part is not reading.commands[0]):
            return False  # a rule was made for commands that start in the workspace
        if not all(harmless_redirect(redirect) for redirect in part.redirects):
            return False
        mine = rules.of(part.words[0].text)
        rule = next((rule for rule in mine if _covers_part(rule, part, places, world, by_itself)), None)
        used.extend([rule] if rule else [])
        return rule is not None

    def by_itself(part: Command, places: Sequence[str]) -> bool:
        if allowed(part, places):
            return True
        try:
            look(part, places, world, first=False)
        except Refused:
            return False
        return True

    return used, judged(reading, world, allowed, "is not covered by a rule, and")


def _covers_part(rule: PermissionRule, part: Command, places: Sequence[str], world: World, by_itself: Any) -> bool:
    pattern = rule.pattern or ""
    if patterns.same_argv(pattern, part):
        return True
    if patterns.exact_text(pattern) is not None:
        return False
    covered = patterns.covered(pattern, part)
    return covered is not None and not beyond(part, covered, places, world, by_itself)


# -- paths -------------------------------------------------------------------------------------------------------------


def _allows_path(
    exact: Sequence[PermissionRule], scoped: Sequence[PermissionRule], tool: str, args: Args, world: World
) -> PermissionRule | None:
    found = paths_of(args)
    if not found or any(unusual(path) for path in found):
        return None
    lexical = [placed(path, world) for path in found]
    real = list(world.paths) if world.paths is not None else lexical
    if len(real) != len(lexical):
        return None
    both = list(zip(lexical, real, strict=True))
    if exact:
        # The arguments were approved for the file that they name, not for where a symlink leads today.
        return exact[0] if all(one == other for one, other in both) else None
    kept = protected if tool in ("write", "edit") else _kept_from_readers
    used = [next((r for r in scoped if _allows_file(r.pattern, places, kept, world)), None) for places in both]
    return used[0] if all(used) else None


def _kept_from_readers(path: str) -> bool:
    return protected(path) or secret(path)


def _allows_file(pattern: str | None, places: tuple[str, str], kept: Callable[[str], bool], world: World) -> bool:
    return all(_allows_one(pattern, path, kept, world) for path in places)


def _allows_one(pattern: str | None, path: str, kept: Callable[[str], bool], world: World) -> bool:
    if pattern is not None and not has_wildcard(pattern) and pattern:
        return placed(unescaped(pattern), world) == path
    below = path[len(world.workspace) :] if within(path, world.workspace) else path
    if kept(below):
        return False
    return pattern is None or covers(pattern, path, world, wide=False)


# -- URLs --------------------------------------------------------------------------------------------------------------


def _allows_url(
    exact: Sequence[PermissionRule], scoped: Sequence[PermissionRule], args: Args, world: World
) -> PermissionRule | None:
    text = subject_of("url", args)
    if text is None:
        return None
    try:
        hops = [urls.canonical_url(hop) for hop in (text, *world.redirects)]
    except urls.BadUrl:
        return None
    first, *further = [_url_rule(exact if place == 0 else (), scoped, hop) for place, hop in enumerate(hops)]
    if first is None or not all(further):
        return None
    own = urls.local(hops[0].host)  # a rule that names a private host means its private address
    return first if own or not any(_private(address) for address in world.addresses) else None


def _url_rule(
    exact: Sequence[PermissionRule], scoped: Sequence[PermissionRule], url: urls.Url
) -> PermissionRule | None:
    return next((rule for rule in (*exact, *(r for r in scoped if allows(r.pattern, url)))), None)


def _private(address: str) -> bool:
    found = urls.address_of(address)
    return found is None or urls.private(found)
