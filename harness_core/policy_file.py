"""The policy file, `harness.toml`: rules that are reviewed in git like code.  Pure: text in, rules out.

A typing error must neither widen what runs nor lose what is denied: whatever is not understood is an error, and one
error names them all.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from harness_core.errors import ConfigError, shown
from harness_core.permissions.book import names
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.sound import fault_of

NAME: Final = "harness.toml"
_TABLES: Final = ("rule", "guards")
_EFFECTS: Final = ("allow", "ask", "deny")
_TEXTS: Final = ("effect", "tool", "pattern", "channel", "why", "by")
_KEYS: Final = (*_TEXTS, "people", "until")


@dataclass(frozen=True, slots=True)
class StandingRule:
    """A rule with where it holds, who made it, why, and until when.

    channel: what the host calls the place; "" for everywhere. until: seconds since the epoch; None for good.
    """

    rule: PermissionRule
    channel: str = ""
    by: str = ""
    why: str = ""
    until: float | None = None

    def holds(self, channel: str, now: float) -> bool:
        """Whether it counts in this channel, now."""
        return self.channel in ("", channel) and (self.until is None or now < self.until)

    def __str__(self) -> str:
        where = f" in {self.channel}" if self.channel else ""
        until = "" if self.until is None else f" until {datetime.fromtimestamp(self.until, UTC):%Y-%m-%d %H:%M} UTC"
        return f"{self.rule}{where}{until}" + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """What a policy file says. guards: the table of that name as it stands; whoever builds guards checks it."""

    rules: tuple[StandingRule, ...] = ()
    guards: Mapping[str, object] = field(default_factory=dict)

    def rules_in(self, channel: str, now: float) -> tuple[PermissionRule, ...]:
        """The rules that count in a channel ("" for none in particular), now."""
        return tuple(one.rule for one in self.rules if one.holds(channel, now))

    def strangers(self, tools: Iterable[str]) -> tuple[str, ...]:
        """What rules name as a tool and none of these tools is: such a rule never matches."""
        there = tuple(tools)
        named = {one.rule.tool for one in self.rules if not any(names(one.rule, tool) for tool in there)}
        return tuple(sorted(named))


def parse_policy(text: str, name: str = NAME) -> PolicyFile:
    """Read a policy file. Raises ConfigError, naming everything that is wrong and where; name: for its words."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is no TOML: {error}") from None
    wrong = [f"`{shown(key)}` is not known here; there are {_listed(_TABLES)}" for key in tables if key not in _TABLES]
    entries, guards = tables.get("rule", []), tables.get("guards", {})
    if not isinstance(entries, list):
        wrong.append("a rule begins with `[[rule]]`, in double brackets")
        entries = []
    if not isinstance(guards, dict):
        wrong.append("`guards` must be a table: `[guards]`")
    lines = _lines(text, len(entries))
    rules = [_rule(entry, where, wrong) for entry, where in zip(entries, lines, strict=True)]
    if wrong:
        raise ConfigError(f"{name} needs correcting:\n" + "\n".join(f"- {line}" for line in wrong))
    return PolicyFile(tuple(rule for rule in rules if rule is not None), guards)


def _lines(text: str, rules: int) -> list[str]:
    """How to name each rule: by its place, and by its line where the headings can be counted."""
    found = [n for n, line in enumerate(text.split("\n"), 1) if re.match(r"\s*\[\[\s*['\"]?rule['\"]?\s*\]\]", line)]
    if len(found) != rules:  # written in another way, or one stands in a text of several lines
        return [f"rule {place}" for place in range(1, rules + 1)]
    return [f"rule {place}, line {line}" for place, line in enumerate(found, 1)]


def _rule(entry: Any, where: str, wrong: list[str]) -> StandingRule | None:
    """One entry; what is wrong with it is appended, and then it is None."""
    faults = _faults(entry)
    if not faults:
        rule = PermissionRule(entry["effect"], entry["tool"], entry.get("pattern"), people=entry.get("people", 1))
        if rule.miscounted:
            faults = [f"`people`: {rule.miscounted}"]
        elif not (fault := fault_of(rule)):
            until = entry.get("until")
            said = (entry.get("channel", ""), entry.get("by", ""), entry.get("why", ""))
            return StandingRule(rule, *said, None if until is None else until.timestamp())
        else:
            faults = [f"“{shown(str(rule))}” can never match: {fault}"]
    wrong += [f"{where}: {fault}" for fault in faults]
    return None


def _faults(entry: Any) -> list[str]:
    if not isinstance(entry, dict):
        return ["it must be a table"]
    faults = [f"`{shown(key)}` is not known; a rule has {_listed(_KEYS)}" for key in entry if key not in _KEYS]
    faults += [f"`{key}` is missing" for key in ("effect", "tool") if key not in entry]
    texts = [key for key in _TEXTS if key in entry]
    faults += [f"`{key}` must be a text in quotes" for key in texts if not isinstance(entry[key], str)]
    if isinstance(effect := entry.get("effect", "ask"), str) and effect not in _EFFECTS:
        faults.append(f"`effect` must be {_listed(_EFFECTS, 'or')}, not `{shown(effect)}`")
    if entry.get("channel", "all") == "":
        faults.append("`channel` is empty: leave it out to mean everywhere")
    until = entry.get("until")
    if "until" in entry and not _is_moment(until):
        faults.append("`until` must be a date, a time and an offset without quotes, as in 2026-03-01T18:00:00Z")
    return faults


def _is_moment(until: object) -> bool:
    """Whether this is a moment with an offset, which in UTC has a year that there is."""
    if not isinstance(until, datetime) or until.tzinfo is None:
        return False
    try:
        until.astimezone(UTC)
    except OverflowError:
        return False
    return True


def _listed(names: tuple[str, ...], word: str = "and") -> str:
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} {word} {last}"
