"""What somebody types to make a rule: `/harness allow bash npm test * --for 8h -- why`.  Pure.

The pattern is taken byte for byte as it was typed. Options stand behind it; where it holds what looks like one, it is
put between grave accents. Where somebody forgets them, what is taken for an option cuts the pattern short: that narrows
an allow rule and widens a deny, and the answer shows the pattern and the reason that were taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bot import rule_words as words
from bot.edits import TYPOGRAPHY
from harness_core.permissions.offer import lets_anything
from harness_core.permissions.rule import Effect, PermissionRule
from harness_core.permissions.sound import fault_of

_OPTION: Final = re.compile(r"(?<!\S)--(?:(?:channel|workspace|for|people)(?:=\S*)?)?(?!\S)")
_DASHES: Final = re.compile(r"(?<!\S)--(?!\S)")  # what stands behind them is the reason
_FOR: Final = re.compile(r"([1-9][0-9]{0,3})(m|h|d)")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,3}")
_SECONDS: Final = {"m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_WHY: Final = 300  # characters of a reason that are kept


@dataclass(frozen=True, slots=True)
class RuleAsked:
    """A rule that somebody wants. everywhere: in the whole workspace, not in this channel alone. seconds: how long."""

    rule: PermissionRule
    everywhere: bool = False
    seconds: float | None = None
    why: str = ""


def rule_asked(effect: Effect, rest: str) -> RuleAsked | str:
    """The rule that the rest of a command asks for, or what to say instead."""
    tool, more = (*rest.split(maxsplit=1), "", "")[:2]
    more = more.strip()
    if not tool or tool.startswith("--"):
        return words.usage(effect)
    taken = _pattern(more)
    if isinstance(taken, str):
        return taken
    pattern, options = taken
    given = _options(options)
    if given is None:
        return words.options_unread(effect, options)
    rule = PermissionRule(effect, tool, pattern, people=given.people)
    if rule.miscounted:
        return words.miscounted(rule)
    if fault := fault_of(rule):
        return words.never_matches(rule, fault)
    if wide := lets_anything(rule):
        return words.too_wide(rule, wide)
    return RuleAsked(rule, given.scope == "workspace", given.seconds, given.why[:LONGEST_WHY])


def _pattern(text: str) -> tuple[str | None, str] | str:
    """The pattern (None if there is none), and the options behind it; or what to say instead."""
    if text.startswith("`"):
        pattern, closed, options = text[1:].partition("`")
        return (pattern, options.strip()) if closed else words.ACCENT
    if found := sorted({name for char, name in TYPOGRAPHY.items() if char in text}):
        return words.typography(found)
    option = _OPTION.search(text)
    end = option.start() if option else len(text)
    return text[:end].strip() or None, text[end:]


@dataclass
class _Options:
    scope: str = ""
    seconds: float | None = None
    people: int = 1
    why: str = ""


def _options(text: str) -> _Options | None:
    """What stands behind the pattern; None where it cannot be read."""
    head, *why = _DASHES.split(text, maxsplit=1)
    read = _Options(why=" ".join("".join(why).split()))
    given = re.sub(r"(?<!\S)--(for|people)=(?=\S)", r"--\1 ", head).split()
    while given:
        option, *given = given
        value = given[0] if given else ""
        if option in ("--channel", "--workspace") and not read.scope:
            read.scope = option[2:]
        elif option == "--for" and read.seconds is None and (found := _FOR.fullmatch(value)):
            read.seconds, given = int(found[1]) * _SECONDS[found[2]], given[1:]
        elif option == "--people" and read.people == 1 and _NUMBER.fullmatch(value):
            read.people, given = int(value), given[1:]
        else:
            return None
    return read
