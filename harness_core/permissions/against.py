"""What a rule that denies or asks matches: a call in any reading of its arguments. Doubt widens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Literal

from harness_core.permissions import carried, patterns, shell
from harness_core.permissions.book import Shelf
from harness_core.permissions.carried import carries, too_many
from harness_core.permissions.everywhere import commands_in
from harness_core.permissions.paths import World, covers, placed
from harness_core.permissions.patterns import Line
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.spelling import Glob, base_name
from harness_core.permissions.subjects import KINDS, every_path, every_text, means_json
from harness_core.permissions.url_rules import denies
from harness_core.types import Args


def struck(
    rules: Shelf, tool: str, args: Args, world: World
) -> Iterator[tuple[PermissionRule, Literal["yes", "unknown"]]]:
    """The deny or ask rules that name the tool and match the call, in their order; unknown if one cannot be judged."""
    for rule in _about(rules, tool, args):
        try:
            if _strikes(rule, tool, args, world):
                yield rule, "yes"
        except Exception:  # what a rule cannot judge is put to a person, whether it denies or asks
            yield rule, "unknown"


def _about(rules: Shelf, tool: str, args: Args) -> Iterable[PermissionRule]:
    """The rules that may match the call."""
    if not rules.by_program or KINDS.get(tool.casefold()) != "bash":
        return rules.rules
    try:
        texts = every_text(args)
        runs = [_run_by(text) for text in texts]
    except Exception:  # each of them will find that it cannot be judged
        return rules.rules
    if any(one.unnamed for one in runs):
        return rules.rules
    return rules.about({text.strip() for text in texts}, {name for one in runs for name in one.named})


def _strikes(rule: PermissionRule, tool: str, args: Args, world: World) -> bool:
    """Whether a deny or ask rule that names the tool matches these arguments, in any reading of them."""
    if rule.arguments is not None:
        return means_json(rule.arguments, args)
    if rule.pattern is None or rule.pattern == "":
        return True
    kind = KINDS.get(tool.casefold(), "other")
    if kind == "bash":
        return any(_strikes_command(rule.pattern, text) for text in every_text(args))
    if kind == "path":
        return _strikes_path(rule.pattern, args, world)
    if kind == "url":
        found = [*every_text(args), *world.redirects]
        return any(denies(rule.pattern, text, world.addresses) for text in found)
    return means_json(rule.pattern, args) or any(
        rule.pattern == text for text in args.values() if isinstance(text, str)
    )


def _strikes_command(pattern: str, command: str) -> bool:
    if patterns.exact_text(pattern) == command.strip():
        return True
    return "yes" in _met(pattern, command)


@lru_cache(maxsize=128)  # every level of the gate asks it of the same rules and the same command
def _met(pattern: str, command: str) -> frozenset[patterns.Match]:
    """How a pattern meets what a command runs."""
    return frozenset(patterns.strikes(pattern, line) for line in _run_by(command).of(patterns.denied_program(pattern)))


@dataclass(frozen=True, slots=True)
class _Run:
    """What a command runs, by the base name of the program in lower case. unnamed: by programs whose name is not known,
    or not plain, so that any pattern may mean them.
    """

    named: Mapping[str, Sequence[Line]]
    unnamed: Sequence[Line]

    def of(self, program: str | None) -> Iterator[Line]:
        """What may be run of this program; of all programs for None."""
        named = chain.from_iterable(self.named.values()) if program is None else self.named.get(program, ())
        return chain(named, self.unnamed)


@lru_cache(maxsize=16)  # several rules look at one command
def _run_by(command: str) -> _Run:
    named = defaultdict[str, list[Line]](list)
    unnamed: list[Line] = []
    for argv in commands_in(command).commands:
        program = argv[0] if argv else ""
        if program is None or isinstance(program, Glob) or not program.isascii():
            unnamed.append(Line(argv))
        elif argv:
            named[base_name(program).lower()].append(Line(argv))
    return _Run(named, unnamed)


def _strikes_path(pattern: str, args: Args, world: World) -> bool:
    named = [placed(path, world) for path in every_path(args)]
    return any(covers(pattern, path, world, wide=True) for path in (*named, *(world.paths or ())))


def hidden(scoped: Shelf, command: str) -> str:
    """What keeps a scoped deny or ask rule from seeing all that a command runs; "" if nothing does."""
    if not scoped.rules:
        return ""
    found, runs = commands_in(command), _run_by(command)
    if found.opaque:
        return f"{found.opaque}, and there are rules against some commands"
    programs = runs.named.keys() | carried.programs(command)
    for rule in scoped.rules if runs.unnamed else scoped.about({command.strip()}, programs):
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
    _run_by.cache_clear()
    carried.forget()
    commands_in.cache_clear()
    shell.forget()
