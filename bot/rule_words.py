"""What the bot says of rules.  Pure; everything untrusted in it is masked, made visible and escaped here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bot import inline
from bot.inline import mention, moment
from bot.limits import escape
from bot.shown import shown_line
from harness_core.permissions.rule import Effect, PermissionRule

RuleScope = Literal["file", "workspace", "channel", "thread"]

_PATTERN: Final = 200  # characters of a pattern or of a reason in a list
_LONGER_ID: Final = 16  # digits by which rules are told apart
_NAME: Final = 60  # characters of a tool's name
_ORDER: Final[Sequence[Effect]] = ("deny", "ask", "allow")  # in lists: what weighs most comes first
_DONE: Final = {"allow": "Allowed", "ask": "Always asks", "deny": "Denied"}
_WHERE: Final = {"workspace": "everywhere", "channel": "in this channel"}
_STANDS: Final[Mapping[RuleScope, str]] = {
    "file": "in the policy file",
    "workspace": "in the whole workspace",
    "channel": "in this channel",
    "thread": "in threads of this channel",
}
_SPOKE: Final = {
    "hook": "a hook",
    "deny rule": "a deny rule",
    "ask rule": "an ask rule",
    "allow rule": "an allow rule",
    "strategy": "the tool is marked sensitive, or has a strategy",
    "default": "no rule speaks, so the default holds",
}

ACCENT: Final = "No rule was made: the pattern begins with a grave accent (`ˋ`), and none ends it. Type one behind it."
NO_RULES: Final = "No rules hold here: what only reads runs, everything else asks."
RULES: Final = "These rules hold here. Deny goes before ask, ask before allow:"
TOO_SLOW: Final = "To judge this call its tool has to look at the world, and that took too long. Please try again."
REVOKE_USAGE: Final = "Type `/harness revoke ID`; `/harness rules` shows the ids."
WHY_USAGE: Final = (
    "Type `/harness why TOOL ARGUMENTS`, with a command, a path or an address as it is, as in "
    "`/harness why bash git push origin`; or with all arguments as JSON."
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A rule that holds here, as people see it. by: an id of Slack's, or whatever the file says. at, until: seconds
    since the epoch; at is 0.0 where it is not known. thread_ts: of the one thread that it holds in.
    """

    rule: PermissionRule
    scope: RuleScope
    by: str = ""
    at: float = 0.0
    why: str = ""
    until: float | None = None
    thread_ts: str = ""


def usage(effect: Effect) -> str:
    """How a rule is typed."""
    several = ", `--people 2` (so many must approve)" if effect == "ask" else ""
    return (
        f"Type `/harness {effect} TOOL PATTERN`, as in `/harness {effect} bash npm test *`; no pattern means any "
        f"arguments.\nBehind it may stand `--workspace` (else it holds in this channel), `--for 8h`{several}, and "
        "`-- why`. A pattern that holds such words is put between grave accents."
    )


def miscounted(rule: PermissionRule) -> str:
    """No call is approved by so many people."""
    return f"No rule was made: {rule.miscounted}."


def options_unread(effect: Effect, options: str) -> str:
    """What stands behind the pattern cannot be read."""
    long = "`--for` takes one length, as in `--for 90m`, `--for 8h` or `--for 2d`. " if "--for" in options else ""
    return f"No rule was made: {_code(options.strip())} cannot be read. {long}{usage(effect)}"


def typography(found: Sequence[str]) -> str:
    """The pattern holds what a phone makes of quotes and dashes."""
    return (
        f"No rule was made: it holds {' and '.join(found)}, which phones put in by themselves. Type plain ones, or put "
        "the pattern between grave accents if you mean it."
    )


def never_matches(rule: PermissionRule, fault: str) -> str:
    """A rule that would never match."""
    return f"No rule was made. {named(rule)} would never match: {escape(fault)}."


def too_wide(rule: PermissionRule, why: str) -> str:
    """A rule that is not made by a command."""
    return (
        f"No rule was made. {named(rule)} is as good as no approvals at all: {escape(why)}. If you mean it, put it "
        "into the policy file, where it is reviewed."
    )


def named(rule: PermissionRule) -> str:
    """A rule as a piece of a sentence: `allow` bash `npm test *`."""
    return f"`{rule.effect}` {_subject(rule)}"


def made(rule: PermissionRule, *, everywhere: bool, until: float | None, why: str, caution: str, beaten: str) -> str:
    """A rule was made. why: what was taken for the reason; somebody may have meant it as part of the pattern.
    caution: what may not be meant. beaten: the id of a rule that goes before it.
    """
    where = _WHERE["workspace" if everywhere else "channel"]
    lines = [f"{_DONE[rule.effect]} {where}{_until(until)}: {_subject(rule)} (`#{rule.id}`). It counts from now on."]
    if why:
        lines.append(
            f"Taken as the reason, not as part of the pattern: {_plain(why)}. If it belongs to the pattern, type "
            f"`/harness revoke {rule.id}`, and put the whole pattern between grave accents."
        )
    if caution:
        lines.append(f"Mind that {escape(caution)}.")
    if beaten:
        lines.append(f"It has no effect while `#{beaten}` stands, which goes before it.")
    return "\n".join(lines)


def too_few(rule: PermissionRule, people: int) -> str:
    """What is wrong with a rule that wants more people than there are to decide; "" for nothing."""
    if rule.people <= people:
        return ""
    who = "only 1 person decides" if people == 1 else f"only {people} people decide"
    return f"{who} so far, and no call of it can be approved; `/harness approvers add @somebody` adds one"


def rules_here(rules: Collection[Listed], most: int, fault: str) -> str:
    """All rules that hold in a place, one a line. fault: why the policy file cannot be used as it is now."""
    lines = [_line(one) for one in sorted(rules, key=lambda one: (_ORDER.index(one.rule.effect), -one.at))]
    if len(lines) > most:
        lines[most:] = [f"… and {len(lines) - most} more"]
    lines = [RULES, *lines] if lines else [NO_RULES]
    if fault:
        lines.append(f"The policy file was changed and cannot be used, so what it said before holds: {_code(fault)}")
    return "\n".join(lines)


def _line(one: Listed) -> str:
    file = "the policy file" + (f", {_plain(one.by)}" if one.by else "")
    where = {"file": file, "thread": _thread(one.thread_ts)}.get(one.scope) or _WHERE[one.scope]
    by = f", by {mention(one.by)}{_at(one.at)}" if one.by and one.scope != "file" else ""
    why = f": {_plain(one.why)}" if one.why else ""
    return f"• `#{one.rule.id}` *{one.rule.effect}* {_subject(one.rule)} · {where}{by}{_until(one.until)}{why}"


def revoked(rule: PermissionRule, scope: RuleScope, threads: int, left: Collection[RuleScope]) -> str:
    """A rule was taken back in one place. left: where the same one still stands."""
    where = f"in {threads} thread{'' if threads == 1 else 's'}" if scope == "thread" else _WHERE[scope]
    if not left:
        return f"Taken back {where}: {named(rule)}. It counts no more from now on."
    places = " and ".join(_STANDS[one] for one in _STANDS if one in left)
    return f"Taken back {where}, and only there: {named(rule)}. The same rule stands {places} and goes on counting."


def no_such_rule(rule_id: str) -> str:
    """No rule has this id."""
    return (
        f"No rule {inline.code('#' + rule_id[:12])} holds here. `/harness rules` shows those that do, with their ids."
    )


def alike(rules: Sequence[PermissionRule]) -> str:
    """Several rules have the digits that somebody typed."""
    lines = [f"• `{rule.fingerprint[:_LONGER_ID]}` {named(rule)}" for rule in rules]
    return "\n".join(["Several rules have this id. Say which, with more digits:", *lines])


def in_the_file(rule: PermissionRule) -> str:
    """A rule of the file cannot be taken back by a command."""
    return f"{named(rule)} stands in the policy file. Take it out there; the file is read again when it changes."


def several(rule: PermissionRule, scopes: Collection[RuleScope]) -> str:
    """A rule stands in several places, and nobody said which is meant."""
    options = " or ".join(f"`--{scope}`" for scope in ("workspace", "channel", "thread") if scope in scopes)
    return f"{named(rule)} stands in several places. Say which: add {options}."


def verdict(tool: str, effect: Effect, level: str, reason: str, rule: PermissionRule | None) -> str:
    """What the gate says of a call, who spoke, and because of what."""
    says = {"allow": "runs without asking", "ask": "asks", "deny": "is denied"}[effect]
    lines = [f"In a new thread here this call of {_name(tool)} *{says}*: {_SPOKE.get(level, level)}."]
    lines.append(f"{named(rule)} (`#{rule.id}`)" if rule else f"Because {_plain(reason, 400)}.")
    return "\n".join(lines)


def unread(tool: str, fields: Sequence[str]) -> str:
    """What was typed is neither JSON nor the one text that this tool is about. fields: the arguments that it needs."""
    example = "{" + ", ".join(f'"{field}": …' for field in fields) + "}"
    return f"These are no arguments of {_name(tool)}. Type {inline.code(f'/harness why {tool} {example}')}, as JSON."


def would_fail(tool: str, problem: str) -> str:
    """A call that is not judged, because it could not work."""
    return f"{_name(tool)} would not take these arguments: {_plain(problem)}"


# -- pieces ------------------------------------------------------------------------------------------------------------


def _subject(rule: PermissionRule) -> str:
    what = rule.arguments if rule.arguments is not None else rule.pattern
    several = f" ({rule.people} people must approve)" if rule.people > 1 else ""
    return f"{_name(rule.tool)} " + ("(any arguments)" if what is None else _code(what)) + several


def _name(tool: str) -> str:
    return escape(shown_line(tool, _NAME))


def _code(text: str) -> str:
    return inline.code(shown_line(text, _PATTERN, strict=True))


def _plain(text: str, most: int = _PATTERN) -> str:
    return escape(shown_line(text, most))


def _thread(ts: str) -> str:
    return f"the thread of {moment(float(ts))}" if ts else "one thread"


def _at(at: float) -> str:
    return f" {moment(at)}" if at else ""


def _until(until: float | None) -> str:
    return "" if until is None else f", until {moment(until)}"
