"""The slash command `/harness`: settings, and the rules that *always allow* left behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from bot import approvers, rule_words, words
from bot.approvers import REQUESTER, Who
from bot.facts import ApprovalsSwitched, ApproverChanged, ChannelSwitched, NetworkSwitched, Paused, SensitiveChanged
from bot.heard import Configure
from bot.ids import PERSON, thread_of, threads_of
from bot.rule_commands import RuleCommands
from bot.settings import EVERYWHERE, OFF_SECONDS, InForce, SettingsBook
from bot.shown import shown_line
from harness_core.engine import HarnessEngine
from harness_core.events import Event, RuleChanged

MOST_LISTED: Final = 20  # rules or tasks that one answer names
MOST_SEARCHED: Final = 200  # threads that are looked through for what waits, the newest first
_NAMED: Final = re.compile(rf"<@({PERSON})(?:\|[^>]*)?>|@?({PERSON})")


class Commands:
    """Carries out what somebody may configure. Every answer is private; every change is stored with who and when."""

    def __init__(self, engine: HarnessEngine, settings: SettingsBook, rules: RuleCommands) -> None:
        self._engine, self._settings, self._rules = engine, settings, rules

    async def carry_out(self, command: Configure, who: Who) -> str:
        """The private answer. Raises StoreError."""
        match command.verb:
            case "on" | "off" | "sensitive" | "approvers" | "hitl" | "network" | "pause" | "resume":
                return await self._administer(command, who)
            case "claim":
                return await self._claim(command, who)
            case "status":
                return await self._status(command, who)
            case "pending":
                return await self._pending(command, who)
            case "allow" | "ask" | "deny" as effect:
                return await self._rules.make(effect, command, who)
            case "rules":
                return await self._rules.rules(command, who)
            case "revoke":
                return await self._rules.revoke(command, who)
            case "why":
                return await self._rules.why(command, who)
            case "allowed":
                return await self._allowed(command, who)
            case "help":
                return helped(command.rest.strip().casefold())
            case verb:
                return words.unknown_verb(verb)

    async def _status(self, command: Configure, who: Who) -> str:
        if refusal := approvers.may_look(who):
            return refusal.why
        now, channel = await self._settings.in_force(), command.origin.channel
        lines = [words.standing(channel in now.access.channels, now.access.admins, now.access.approvers)]
        if tools := now.sensitive_in(channel):
            lines.append(words.sensitive_here(tools))
        if off := now.off_in(channel, self._engine.clock.now()):
            lines.append(words.approvals_off(off.by, off.why, off.until, everywhere=off.channel == EVERYWHERE))
        if now.paused_by:
            lines.append(words.paused(now.paused_by))
        if self._engine.token_counter == "estimate":
            lines.append(words.ESTIMATED)
        lines.append(words.boundary(self._settings.boundary, online=channel in now.online))
        return "\n".join(lines)

    # -- what administrators change ------------------------------------------------------------------------------------

    async def _administer(self, command: Configure, who: Who) -> str:
        given = command.rest.split()
        everywhere = "--workspace" in given
        said = [word for word in given if word != "--workspace"]
        if refusal := approvers.may_look(who):
            return refusal.why
        now = await self._settings.in_force()
        channel = EVERYWHERE if everywhere else command.origin.channel
        if command.verb == "sensitive" and said in ([], ["list"]):
            return words.sensitive_here(now.sensitive_in(command.origin.channel))
        if command.verb == "approvers" and said in ([], ["list"]):
            return words.standing(
                command.origin.channel in now.access.channels, now.access.admins, now.access.approvers
            )
        if refusal := approvers.may_administer(who):
            return refusal.why
        made = self._change(command, said, channel, now)
        if isinstance(made, str):
            return made
        fact, answer = made
        await self._settings.change(fact, command.key)
        await self._take_effect(command)
        return answer

    def _change(self, command: Configure, said: Sequence[str], channel: str, now: InForce) -> tuple[Event, str] | str:
        """The fact that a command makes and what to answer, or why it makes none."""
        by = command.origin.user
        match command.verb, *said:
            case ("on" | "off") as verb, *_:
                return ChannelSwitched(command.origin.channel, verb == "on", by), words.switched(verb == "on")
            case "sensitive", ("add" | "remove") as verb, tool:
                if self._engine.spec(tool) is None:
                    return words.no_such_tool(tool, self._engine.tools)
                fact = SensitiveChanged(tool, verb == "add", by, channel)
                other = command.origin.channel if channel == EVERYWHERE else EVERYWHERE
                left = tool in now.sensitive.get(other, ())
                everywhere = channel == EVERYWHERE
                return fact, words.sensitive_changed(tool, verb == "add", everywhere=everywhere, elsewhere=left)
            case "approvers", ("add" | "remove") as verb, name:
                who = _named(name)
                if not who:
                    return words.nobody_named(name)
                return ApproverChanged(who, verb == "add", by), words.approver_changed(who, verb == "add")
            case "hitl", "on":
                still = channel != EVERYWHERE and now.off_in(EVERYWHERE, self._engine.clock.now()) is not None
                return ApprovalsSwitched(True, by, channel), words.approvals_on(still=still)
            case "hitl", "off", *why if why:
                until = self._engine.clock.now() + OFF_SECONDS
                reason = " ".join(why)
                told = words.approvals_off(by, reason, until, everywhere=channel == EVERYWHERE)
                return ApprovalsSwitched(False, by, channel, reason, until), told
            case "network", ("on" | "off") as switched:
                opened = NetworkSwitched(command.origin.channel, switched == "on", by)
                return opened, words.network(switched == "on", self._settings.boundary)
            case "pause", *_:
                return Paused(True, by), words.PAUSED
            case "resume", *_:
                return Paused(False, by), words.RESUMED
        return words.USAGE.get(command.verb, words.HELP)

    async def _take_effect(self, command: Configure) -> None:
        """Runs look at the change now, and not only at their next step; a pause stops them."""
        for session_id in await self._engine.store.sessions(threads_of(self._settings.home)):
            if thread_of(session_id) is None:
                continue  # a sub-agent's, which goes on and is stopped with its thread's
            if command.verb == "pause":
                await self._engine.stop(session_id, by=command.origin.user)
            else:
                self._engine.wake(session_id)

    # -- what waits ----------------------------------------------------------------------------------------------------

    async def _pending(self, command: Configure, who: Who) -> str:
        if refusal := approvers.may_speak(who):
            return refusal.why
        here = threads_of(self._settings.home, command.origin.channel)
        asked = await self._engine.store.find("HITLPending", here)
        newest = sorted({fact.session_id: fact.at for fact in asked}.items(), key=lambda item: -item[1])
        lines: list[str] = []
        for session_id, _ in newest[:MOST_SEARCHED]:
            if thread := thread_of(session_id):  # what a sub-agent asks is asked in its thread, too
                lines += [words.waiting(one, thread.ts) for one in (await self._engine.trace(session_id)).waiting]
        return "\n".join([words.PENDING, *lines[:MOST_LISTED]]) if lines else words.NOTHING_PENDING

    async def _claim(self, command: Configure, who: Who) -> str:
        if refusal := approvers.may_claim(who):
            return refusal.why
        return words.CLAIM[await self._settings.claim(command.rest, command.origin.user, command.key)]

    # -- what always runs ----------------------------------------------------------------------------------------------

    async def _allowed(self, command: Configure, who: Who) -> str:
        """List the rules of this channel's threads, or take one back."""
        if refusal := approvers.may_speak(who):
            return refusal.why
        channel, by = command.origin.channel, command.origin.user
        match command.rest.split():
            case [] | ["list"]:
                return listed(await self._rules.of_threads(channel))
            case ["revoke", name]:
                if not who.decides:
                    return words.NOT_AN_APPROVER
                rule_id = name.lstrip("#").lower()
                threads = await self._rules.revoke_in_threads(rule_id, channel, by, "/harness allowed revoke")
                return words.revoked(rule_id, threads)
            case _:
                return words.ALLOWED_USAGE


def _named(word: str) -> str:
    """The person that a word of a command names, or `requester`; "" for nobody."""
    if word.casefold() == REQUESTER:
        return REQUESTER
    found = _NAMED.fullmatch(word)
    return (found[1] or found[2]) if found else ""


def helped(verb: str) -> str:
    """How one command is typed, or all of them."""
    match verb:
        case "allow" | "ask" | "deny" as effect:
            return rule_words.usage(effect)
        case "revoke":
            return rule_words.REVOKE_USAGE
        case "why":
            return rule_words.WHY_USAGE
    return words.USAGE.get(verb, words.HELP)


def listed(rules: Sequence[RuleChanged]) -> str:
    """The rules, one a line: id, what it allows, who allowed it and where."""
    if not rules:
        return words.NOTHING_ALLOWED
    lines = []
    for fact in sorted(rules, key=lambda fact: -fact.at)[:MOST_LISTED]:
        what = fact.rule.arguments or fact.rule.pattern or "(any arguments)"
        thread = thread_of(fact.session_id)
        tool, shown = shown_line(fact.rule.tool, 60), shown_line(what, 200, strict=True)
        lines.append(words.allowed(fact.rule.id, tool, shown, fact.by, thread.ts if thread else ""))
    more = len(rules) - len(lines)
    return "\n".join([words.ALLOWED, *lines, *([f"… and {more} more"] if more else [])])
