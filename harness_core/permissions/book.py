"""The rules that name one tool, looked up by what they are about.  Pure; made once for a policy, not once for a call.

Most rules speak of one program, and a command runs few. So a rule is found by the program that its pattern begins with,
and many rules cost no more than few.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache

from harness_core.permissions.patterns import allowed_program, denied_program, exact_text
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.text import invisible


@dataclass(frozen=True, slots=True)
class Shelf:
    """Rules in their order. by_program, by_text: the places of those that speak of one program alone, and of those that
    stand for one exact text; others: the places of those that may speak of any program.
    """

    rules: tuple[PermissionRule, ...]
    by_program: Mapping[str, Sequence[int]]
    by_text: Mapping[str, Sequence[int]]
    others: tuple[int, ...]

    def about(self, texts: Iterable[str], programs: AbstractSet[str]) -> Iterator[PermissionRule]:
        """Those that may speak of commands with these texts, which run these programs."""
        places = {*self.others}
        for text in texts:
            places.update(self.by_text.get(text, ()))
        for program in self.by_program.keys() & programs:
            places.update(self.by_program[program])
        return (self.rules[place] for place in sorted(places))

    def standing_for(self, text: str) -> Iterator[PermissionRule]:
        """Those that stand for exactly this text."""
        return (self.rules[place] for place in self.by_text.get(text, ()))

    def of(self, program: str) -> Iterator[PermissionRule]:
        """Those that speak of this program alone."""
        return (self.rules[place] for place in self.by_program.get(program, ()))


@dataclass(frozen=True, slots=True)
class Book:
    """The rules that name a tool. scoped: those that deny or ask, but not whatever the arguments are."""

    tool: str
    deny: Shelf
    ask: Shelf
    allow: Shelf
    scoped: Shelf

    def and_allowing(self, rule: PermissionRule) -> Book:
        """The same with one more allow rule, which has no pattern."""
        if not names(rule, self.tool):
            return self
        rules, others = self.allow.rules, self.allow.others
        return replace(self, allow=replace(self.allow, rules=(*rules, rule), others=(*others, len(rules))))


def book(rules: Sequence[PermissionRule], tool: str) -> Book:
    """The rules among these that name the tool."""
    return _book(tuple(rules), tool)


@lru_cache(maxsize=256)  # the policies in force, each with the tools that are called
def _book(rules: tuple[PermissionRule, ...], tool: str) -> Book:
    mine = [rule for rule in rules if names(rule, tool)]
    scoped = [rule for rule in mine if rule.effect != "allow" and (rule.pattern or rule.arguments)]
    deny, ask = ([rule for rule in mine if rule.effect == effect] for effect in ("deny", "ask"))
    allow = _shelf((rule for rule in mine if rule.effect == "allow"), allowed_program)
    return Book(tool, _shelf(deny, denied_program), _shelf(ask, denied_program), allow, _shelf(scoped, denied_program))


def _shelf(rules: Iterable[PermissionRule], program_of: Callable[[str], str | None]) -> Shelf:
    kept = tuple(rules)
    by_program, by_text = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    others: list[int] = []
    for place, rule in enumerate(kept):
        program = program_of(rule.pattern) if rule.pattern else None
        (others if program is None else by_program[program]).append(place)
        if rule.pattern and (text := exact_text(rule.pattern)) is not None:
            by_text[text].append(place)
    return Shelf(kept, dict(by_program), dict(by_text), tuple(others))


def names(rule: PermissionRule, tool: str) -> bool:
    """Whether the rule's tool is this one. `*` stays between the `__` of a name; alone it is every tool."""
    ruled, wide = rule.tool, rule.effect != "allow"
    if not tool or (not wide and (not tool.isascii() or invisible(tool))):
        return wide and ruled == "*"
    if ruled == "*":
        return True
    flags = re.I if wide else 0
    wanted, given = (name.split("__") for name in (ruled, tool))
    if not wide and "*" in ruled and "" in given:
        return False  # a name with nothing between its separators is nobody's tool
    return len(wanted) == len(given) and all(_star(one, other, flags) for one, other in zip(wanted, given, strict=True))


def _star(pattern: str, name: str, flags: int) -> bool:
    return bool(re.fullmatch(".*".join(re.escape(piece) for piece in pattern.split("*")), name, re.S | flags))
