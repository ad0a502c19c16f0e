"""What a rule matches, per kind of tool.  Allow narrows, deny and ask widen: every doubt is settled that way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness_core.permissions import everywhere, patterns, urls
from harness_core.permissions.flags import Refused
from harness_core.permissions.paths import World, covers, has_wildcard, placed, protected, unescaped, unusual, within
from harness_core.permissions.reach import beyond
from harness_core.permissions.readonly import Verdict, classify, harmless_redirect, judged, look, moved
from harness_core.permissions.rule import Effect, PermissionRule
from harness_core.permissions.shell import Command, Reading, read
from harness_core.permissions.text import invisible, listed
from harness_core.permissions.wrappers import STATEFUL
from harness_core.types import Args, canonical

Kind = Literal["bash", "path", "url", "other"]

# Which tools have a subject with a grammar of its own. All others are matched by their arguments as a whole.
KINDS: Final[Mapping[str, Kind]] = {
    "bash": "bash", "write": "path", "edit": "path", "read": "path", "ls": "path", "webfetch": "url",
}  # fmt: skip
_SUBJECTS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "bash": ("command",),
    "path": ("path", "file_path"),
    "url": ("url",),
}
# Arguments beside the subject that change nothing about what it means.
_HARMLESS: Final[Mapping[Kind, frozenset[str]]] = {
    "bash": frozenset({"timeout", "description"}),
    "path": listed("content old new all old_string new_string replace_all offset limit edits description"),
    "url": frozenset({"timeout", "description", "prompt", "max_chars", "format"}),
}
_PATH_KEYS: Final = listed("path file_path filepath file filename target destination dest notebook_path")


@dataclass(frozen=True, slots=True)
class Ruling:
    """What rules and the read-only table say of one call. rule: which one spoke, if one did."""

    effect: Literal["allow", "ask", "deny"]
    reason: str = ""
    rule: PermissionRule | None = None


def check_rules(rules: Sequence[PermissionRule], tool: str, args: Args, world: World) -> Ruling:
    """Deny, then ask, then allow, then the default: bash runs what only reads, all else asks. Never raises."""
    try:
        if rule := speaking(rules, "deny", tool, args, world):
            return Ruling("deny", f"the rule “{rule}” denies it", rule)
        if rule := speaking(rules, "ask", tool, args, world):
            return Ruling("ask", f"the rule “{rule}” asks", rule)
        if rule := speaking(rules, "allow", tool, args, world):
            return Ruling("allow", f"the rule “{rule}” allows it", rule)
        if KINDS.get(tool) == "bash":
            verdict = unasked(rules, tool, args, world)
            return Ruling(verdict.effect, verdict.reason)
    except Exception as error:  # a fault of the gate must not become a permission
        return Ruling("ask", f"the call could not be judged ({type(error).__name__})")
    return Ruling("ask", f"{tool} may change something")


def speaking(
    rules: Sequence[PermissionRule], effect: Effect, tool: str, args: Args, world: World
) -> PermissionRule | None:
    """The first rule of this effect that speaks about the call; None if none does.

    All rules are needed, also to allow: several may allow one compound command, and a deny rule that cannot see what a
    command will run keeps every allow rule from it. An allow rule is not found for a call that cannot be judged; a
    deny rule that fails at it speaks when asked about "ask".
    """
    mine = [rule for rule in rules if rule.effect == effect and names(rule, tool)]
    if effect == "deny":
        return next((rule for rule in mine if _struck(rule, tool, args, world) == "yes"), None)
    if effect == "ask":
        denying = [rule for rule in rules if rule.effect == "deny" and names(rule, tool)]
        found = (rule for rule in denying if _struck(rule, tool, args, world) == "unknown")
        return next((rule for rule in mine if _struck(rule, tool, args, world) != "no"), None) or next(found, None)
    if not mine:
        return None
    try:
        return _allowing(rules, mine, tool, args, world)
    except Exception:  # no permission comes of a fault
        return None


def unasked(rules: Sequence[PermissionRule], tool: str, args: Args, world: World) -> Verdict:
    """Whether a bash call runs without any rule: it only reads, and no deny or ask rule is left in the dark."""
    command = subject_of("bash", args)
    if command is None:
        return Verdict("ask", "the arguments are not the plain ones of a command")
    if hidden := _hidden(rules, tool, command):
        return Verdict("ask", hidden)
    return classify(command, world)


# -- names of tools ----------------------------------------------------------------------------------------------------


def names(rule: PermissionRule, tool: str) -> bool:
    """Whether the rule's tool is this one. `*` stays between the `__` of a name; alone it is every tool."""
    wide = rule.effect != "allow"
    if not tool or (not wide and (not tool.isascii() or invisible(tool))):
        return wide and rule.tool == "*"
    if rule.tool == "*":
        return True
    flags = re.I if wide else 0
    wanted, given = (name.split("__") for name in (rule.tool, tool))
    return len(wanted) == len(given) and all(_star(one, other, flags) for one, other in zip(wanted, given, strict=True))


def _star(pattern: str, name: str, flags: int) -> bool:
    return bool(re.fullmatch(".*".join(re.escape(piece) for piece in pattern.split("*")), name, re.S | flags))


# -- deny and ask ------------------------------------------------------------------------------------------------------


def _struck(rule: PermissionRule, tool: str, args: Args, world: World) -> Literal["yes", "no", "unknown"]:
    try:
        return "yes" if strikes(rule, tool, args, world) else "no"
    except Exception:  # what a rule cannot judge is put to a person, whether it denies or asks
        return "unknown"


def strikes(rule: PermissionRule, tool: str, args: Args, world: World) -> bool:
    """Whether a deny or ask rule that names the tool matches these arguments, in any reading of them."""
    if rule.arguments is not None:
        return rule.arguments == canonical(args)
    if rule.pattern is None or rule.pattern == "":
        return True
    kind = KINDS.get(tool.casefold(), "other")
    if kind == "bash":
        return any(_strikes_command(rule.pattern, text) for text in _texts(args))
    if kind == "path":
        return _strikes_path(rule.pattern, args, world)
    if kind == "url":
        found = [*_texts(args), *world.redirects]
        return any(urls.denies(rule.pattern, text, world.addresses) for text in found)
    return _same_json(rule.pattern, args) or any(
        rule.pattern == text for text in args.values() if isinstance(text, str)
    )


def _texts(value: object) -> list[str]:
    """Every text in the arguments; a list of words is a command too."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list | tuple):
        words = [text for item in value for text in _texts(item)]
        return [*words, " ".join(words)] if words else []
    return []


def _strikes_command(pattern: str, command: str) -> bool:
    if patterns.exact_text(pattern) == command.strip():
        return True
    found = _found(command)
    return any(patterns.strikes(pattern, argv) == "yes" for argv in found.commands if argv)


def _found(command: str) -> everywhere.Found:
    return everywhere.commands_in(command)


def _strikes_path(pattern: str, args: Args, world: World) -> bool:
    named = [placed(path, world) for path in _every_path(args)]
    return any(covers(pattern, path, world, wide=True) for path in (*named, *(world.paths or ())))


def _every_path(value: object, key: str = "") -> list[str]:
    if isinstance(value, Mapping):
        return [path for name, item in value.items() for path in _every_path(item, str(name))]
    if isinstance(value, list | tuple):
        return [path for item in value for path in _every_path(item, key)]
    return [value] if isinstance(value, str) and key.casefold() in _PATH_KEYS else []


def _hidden(rules: Iterable[PermissionRule], tool: str, command: str) -> str:
    """What keeps a scoped deny or ask rule from seeing all that a command runs; "" if nothing does."""
    scoped = [r for r in rules if r.effect in ("deny", "ask") and names(r, tool) and (r.pattern or r.arguments)]
    if not scoped:
        return ""
    found = _found(command)
    if found.opaque:
        return f"{found.opaque}, and there are rules against some commands"
    for rule in scoped:
        if rule.pattern and any(patterns.strikes(rule.pattern, argv) == "maybe" for argv in found.commands if argv):
            return f"whether the rule “{rule}” speaks of it is only known when it runs"
    return ""


# -- allow -------------------------------------------------------------------------------------------------------------


def _allowing(
    rules: Sequence[PermissionRule], mine: Sequence[PermissionRule], tool: str, args: Args, world: World
) -> PermissionRule | None:
    kind = KINDS.get(tool, "other")
    if kind == "other":
        return next((rule for rule in mine if _allows_json(rule, args)), None)
    exact = [rule for rule in mine if rule.arguments is not None and rule.arguments == canonical(args)]
    scoped = [rule for rule in mine if rule.arguments is None]
    if kind == "bash":
        return _allows_command(rules, exact, scoped, tool, args, world)
    if kind == "path":
        return _allows_path(exact, scoped, args, world)
    return _allows_url(exact, scoped, args, world)


def subject_of(kind: Kind, args: Args) -> str | None:
    """The one subject of plain arguments; None if there is another, none, or anything that is not known."""
    keys = [key for key in _SUBJECTS[kind] if key in args]
    if len(keys) != 1 or not set(args) <= {keys[0], *_HARMLESS[kind]}:
        return None
    value = args[keys[0]]
    return value if isinstance(value, str) else None


def _same_json(pattern: str, args: Args) -> bool:
    try:
        wanted = json.loads(pattern)
    except ValueError:
        return False
    return isinstance(wanted, dict) and canonical(wanted) == canonical(args)


def _allows_json(rule: PermissionRule, args: Args) -> bool:
    if rule.arguments is not None:
        return rule.arguments == canonical(args)
    return rule.pattern is None or _same_json(rule.pattern, args)


# bash


def _allows_command(
    rules: Sequence[PermissionRule],
    exact: Sequence[PermissionRule],
    scoped: Sequence[PermissionRule],
    tool: str,
    args: Args,
    world: World,
) -> PermissionRule | None:
    command = subject_of("bash", args)
    if command is None:
        return None
    reading = read(command)
    if not reading.parses or _hidden(rules, tool, command):
        return None
    text = command.strip(" \t\n")
    whole = [*exact, *(rule for rule in scoped if rule.pattern is None)]
    whole += [rule for rule in scoped if rule.pattern and patterns.exact_text(rule.pattern) == text]
    return whole[0] if whole else _by_parts(reading, scoped, world)


def _by_parts(reading: Reading, rules: Sequence[PermissionRule], world: World) -> PermissionRule | None:
    """Every part by a rule or by the table; the first rule that took part."""
    if reading.problem:
        return None
    used: list[PermissionRule] = []
    away = moved(reading, world) is not None

    def allowed(part: Command, places: Sequence[str]) -> bool:
        if len(reading.commands) > 1 and part.words[0].text in STATEFUL:
            return False  # it may change what the other parts mean
        if part.negated or (away and part is not reading.commands[0]):
            return False  # a rule was made for commands that start in the workspace
        if not all(harmless_redirect(redirect) for redirect in part.redirects):
            return False
        rule = next((rule for rule in rules if _covers_part(rule, part, places, world, by_itself)), None)
        used.extend([rule] if rule else [])
        return rule is not None

    def by_itself(part: Command, places: Sequence[str]) -> bool:
        if allowed(part, places):
            return True
        try:
            look(part, places, world, first=False, only=False)
        except Refused:
            return False
        return True

    verdict = judged(reading, world, allowed)
    return used[0] if used and verdict.effect == "allow" else None


def _covers_part(rule: PermissionRule, part: Command, places: Sequence[str], world: World, by_itself: Any) -> bool:
    pattern = rule.pattern or ""
    if patterns.same_argv(pattern, part):
        return True
    if patterns.exact_text(pattern) is not None:
        return False
    covered = patterns.covered(pattern, part)
    return covered is not None and not beyond(part, covered, places, world, by_itself)


# paths


def _allows_path(
    exact: Sequence[PermissionRule], scoped: Sequence[PermissionRule], args: Args, world: World
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
    used = [next((r for r in scoped if _allows_file(r, one, other, world)), None) for one, other in both]
    return used[0] if all(used) else None


def paths_of(args: Args) -> list[str] | None:
    """The paths of plain arguments: one, or one per edit. None for anything else."""
    edits = args.get("edits")
    if edits is None:
        path = subject_of("path", args)
        return None if path is None else [path]
    if not isinstance(edits, list | tuple) or not all(isinstance(edit, Mapping) for edit in edits):
        return None
    outer = [key for key in _SUBJECTS["path"] if key in args]
    if not set(args) <= {*outer, *_HARMLESS["path"]}:
        return None
    found = [args[key] for key in outer]
    for edit in edits:
        keys = [key for key in _SUBJECTS["path"] if key in edit]
        if len(keys) > 1 or not (keys or outer) or not set(edit) <= {*keys, *_HARMLESS["path"]}:
            return None
        found.extend(edit[key] for key in keys)
    return found if len(outer) <= 1 and all(isinstance(path, str) for path in found) else None


def _allows_file(rule: PermissionRule, lexical: str, real: str, world: World) -> bool:
    return all(_allows_one(rule.pattern, path, world) for path in (lexical, real))


def _allows_one(pattern: str | None, path: str, world: World) -> bool:
    if pattern is not None and not has_wildcard(pattern) and pattern:
        return placed(unescaped(pattern), world) == path
    below = path[len(world.workspace) :] if within(path, world.workspace) else path
    if protected(below):
        return False
    return pattern is None or covers(pattern, path, world, wide=False)


# URLs


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
    return next((rule for rule in (*exact, *(r for r in scoped if urls.allows(r.pattern, url)))), None)


def _private(address: str) -> bool:
    found = urls.address_of(address)
    return found is None or urls.private(found)
