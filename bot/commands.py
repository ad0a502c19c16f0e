"""The slash command `/harness`: settings, and the rules that *always allow* left behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bot import approvers, words
from bot.approvers import Access, Person, Place
from bot.heard import Configure
from bot.ids import thread_of
from bot.settings import SettingsBook
from bot.shown import shown_line
from harness_core.engine import HarnessEngine
from harness_core.events import Event, RuleChanged

MOST_LISTED: Final = 20  # rules that one answer names


@dataclass(frozen=True, slots=True)
class Who:
    """A person at a place, under the settings of now."""

    person: Person | None
    place: Place | None
    access: Access

    @property
    def decides(self) -> bool:
        """Whether this person decides whatever anybody began."""
        return self.person is not None and self.access.decides(self.person.id)


class Commands:
    """Carries out what somebody may configure. Every answer is private."""

    def __init__(self, engine: HarnessEngine, settings: SettingsBook) -> None:
        self._engine, self._settings = engine, settings

    async def carry_out(self, command: Configure, who: Who) -> str:
        """The private answer. Raises StoreError."""
        match command.verb:
            case "on" | "off":
                return await self._switch(command, who)
            case "claim":
                return await self._claim(command, who)
            case "status":
                on = command.origin.channel in who.access.channels
                return words.standing(on, who.access.admins, who.access.approvers)
            case "allowed":
                return await self._allowed(command, who)
            case "help":
                return words.HELP
            case verb:
                return words.unknown_verb(verb)

    async def _switch(self, command: Configure, who: Who) -> str:
        if refusal := approvers.may_administer(who.person, who.place, who.access):
            return refusal.why
        on, origin = command.verb == "on", command.origin
        await self._settings.switch(origin.channel, on=on, by=origin.user, key=command.key)
        return words.switched(on)

    async def _claim(self, command: Configure, who: Who) -> str:
        if refusal := approvers.may_claim(who.person, who.place, who.access):
            return refusal.why
        claimed = await self._settings.claim(command.rest, command.origin.user)
        return words.CLAIMED if claimed else words.WRONG_CODE

    # -- what always runs ----------------------------------------------------------------------------------------------

    async def _allowed(self, command: Configure, who: Who) -> str:
        """List the rules of this channel's threads, or take one back."""
        if refusal := approvers.may_speak(who.person, who.place, who.access):
            return refusal.why
        kept = standing(await self._engine.store.find("RuleChanged", self._threads(command)))
        match command.rest.split():
            case [] | ["list"]:
                return listed([fact for rules in kept.values() for fact in rules.values()])
            case ["revoke", rule_id]:
                if not who.decides:
                    return words.NOT_AN_APPROVER
                return await self._revoke(kept, rule_id.lstrip("#").lower(), command.origin.user)
            case _:
                return words.ALLOWED_USAGE

    def _threads(self, command: Configure) -> str:
        return f"slack:{self._settings.home}:{command.origin.channel}:"

    async def _revoke(self, kept: Mapping[str, Mapping[str, RuleChanged]], rule_id: str, by: str) -> str:
        found = [(session_id, rules[rule_id]) for session_id, rules in kept.items() if rule_id in rules]
        for session_id, fact in found:
            await self._engine.change_rule(session_id, fact.rule, add=False, by=by, why="/harness allowed revoke")
        return words.revoked(rule_id, len(found))


def standing(facts: Sequence[Event]) -> Mapping[str, Mapping[str, RuleChanged]]:
    """The rules that are in force, by session and id, from all changes in order."""
    kept: dict[str, dict[str, RuleChanged]] = {}
    for fact in facts:
        if isinstance(fact, RuleChanged) and fact.change == "added":
            kept.setdefault(fact.session_id, {})[fact.rule.id] = fact
        elif isinstance(fact, RuleChanged):
            kept.get(fact.session_id, {}).pop(fact.rule.id, None)
    return kept


def listed(rules: Sequence[RuleChanged]) -> str:
    """The rules, one a line: id, what it allows, who allowed it and where."""
    if not rules:
        return words.NOTHING_ALLOWED
    lines = []
    for fact in sorted(rules, key=lambda fact: -fact.at)[:MOST_LISTED]:
        what = fact.rule.arguments or fact.rule.pattern or "(any arguments)"
        thread = thread_of(fact.session_id)
        tool, shown = shown_line(fact.rule.tool, 60), shown_line(what, 200)
        lines.append(words.allowed(fact.rule.id, tool, shown, fact.by, thread.ts if thread else ""))
    more = len(rules) - len(lines)
    return "\n".join([words.ALLOWED, *lines, *([f"… and {more} more"] if more else [])])
