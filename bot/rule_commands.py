"""The commands about rules: make, list and take back, and say why a call asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from bot import approvers, words
from bot import rule_words as said
from bot.approvers import Who
from bot.facts import StandingRuleAdded, StandingRuleRevoked
from bot.heard import Configure
from bot.ids import Thread, thread_of, threads_of
from bot.rule_asked import RuleAsked, rule_asked
from bot.rule_words import Listed, RuleScope
from bot.settings import EVERYWHERE, SettingsBook
from harness_core.engine import HarnessEngine
from harness_core.errors import InvalidArguments
from harness_core.events import Event, RuleChanged
from harness_core.permissions.book import names
from harness_core.permissions.offer import wider_than_offered
from harness_core.permissions.rule import Effect, PermissionRule
from harness_core.types import Args

MOST_LISTED: Final = 40  # rules that one answer names
LOOKING: Final = 2.0  # seconds that a tool may look at the world for an answer: Slack waits for three
_STRONGER: Final[Mapping[Effect, tuple[Effect, ...]]] = {"allow": ("deny", "ask"), "ask": ("deny",), "deny": ()}
_SCOPES: Final[Mapping[str, RuleScope]] = {"--workspace": "workspace", "--channel": "channel", "--thread": "thread"}
_NOBODY_YET: Final = "0.0"  # the thread that no message began: what holds in it holds in a new one


class RuleCommands:
    """Carries out the commands about rules. Every answer is private; every change is stored with who and when."""

    def __init__(self, engine: HarnessEngine, settings: SettingsBook) -> None:
        self._engine, self._settings = engine, settings

    async def make(self, effect: Effect, command: Configure, who: Who) -> str:
        """Make a rule for this channel, or for the workspace. Raises StoreError."""
        if refusal := approvers.may_administer(who):
            return refusal.why
        if unknown := self._unknown_tool(effect, command.rest):
            return words.no_such_tool(unknown, self._engine.tools)
        asked = rule_asked(effect, command.rest)
        if isinstance(asked, str):
            return asked
        fact = self._fact(asked, command)
        await self.add(fact, command.key)
        now = await self._settings.in_force()
        kept = now.rules.get((fact.channel, fact.rule), fact)
        return said.made(
            asked.rule,
            everywhere=asked.everywhere,
            until=kept.until,
            why=asked.why,
            caution=wider_than_offered(asked.rule) or said.too_few(asked.rule, now.access.most_who_decide),
            beaten=self._beaten(asked.rule, await self._settings.rules_in(command.origin.channel)),
        )

    def _unknown_tool(self, effect: Effect, rest: str) -> str:
        """The tool that a rule is wanted for, if there is none that it could mean: told before what else is wrong."""
        tool = rest.split(maxsplit=1)[0] if rest.strip() else ""
        meant = any(names(PermissionRule(effect, tool), one) for one in self._engine.tools)
        return "" if meant or tool.startswith("--") else tool

    async def add(self, fact: StandingRuleAdded, key: str) -> None:
        """Put a rule on the record, once for a key, and have what waits judged again. Raises StoreError."""
        await self._settings.change(fact, key)
        await self._wake(fact.channel)

    def _fact(self, asked: RuleAsked, command: Configure) -> StandingRuleAdded:
        until = None if asked.seconds is None else self._engine.clock.now() + asked.seconds
        channel = EVERYWHERE if asked.everywhere else command.origin.channel
        return StandingRuleAdded(asked.rule, command.origin.user, channel, asked.why, until)

    def _beaten(self, rule: PermissionRule, others: Iterable[PermissionRule]) -> str:
        """The id of a rule that goes before this one wherever it matches, as far as that is plain."""
        stronger = (one for one in others if one.effect in _STRONGER[rule.effect])
        same = (one for one in stronger if names(one, rule.tool) and one.pattern in (None, rule.pattern))
        return next((one.id for one in same), "")

    async def _wake(self, channel: str) -> None:
        """Have the sessions of a channel looked at now, or all of them for EVERYWHERE."""
        for session_id in await self._engine.store.sessions(threads_of(self._settings.home, channel)):
            self._engine.wake(session_id)

    # -- what holds here -----------------------------------------------------------------------------------------------

    async def rules(self, command: Configure, who: Who) -> str:
        """All rules that hold here. Raises StoreError."""
        if refusal := approvers.may_speak(who):
            return refusal.why
        return said.rules_here(await self._listed(command.origin.channel), MOST_LISTED, self._settings.policy.fault)

    async def _listed(self, channel: str) -> Sequence[Listed]:
        now, moment = await self._settings.in_force(), self._engine.clock.now()
        file = (one for one in self._settings.policy.file.rules if one.holds(channel, moment))
        made = now.rules_in(channel, moment)
        return [
            *(Listed(one.rule, "file", one.by, 0.0, one.why, one.until) for one in file),
            *map(_from_slack, made),
            *map(_of_thread, await self.of_threads(channel)),
        ]

    async def _of_threads(self, channel: str) -> Mapping[str, Mapping[PermissionRule, RuleChanged]]:
        return standing(await self._engine.store.find("RuleChanged", threads_of(self._settings.home, channel)))

    async def revoke(self, command: Configure, who: Who) -> str:
        """Take a rule back: administrators any, who decides those of threads. Raises StoreError."""
        administers = approvers.may_administer(who)
        if administers and (not who.decides or approvers.may_speak(who)):
            return administers.why
        wanted: RuleScope | None
        match command.rest.split():
            case [name]:
                wanted = None
            case [name, option] if option in _SCOPES:
                wanted = _SCOPES[option]
            case _:
                return said.REVOKE_USAGE
        named = name.lstrip("#").casefold()
        found = [one for one in await self._listed(command.origin.channel) if one.rule.called(named)]
        if len(rules := dict.fromkeys(one.rule for one in found)) > 1:
            return said.alike(tuple(rules))
        stands = {one.scope for one in found}
        scopes = {scope for scope in stands if wanted in (None, scope)}
        if not scopes:
            return said.no_such_rule(named)
        if len(scopes - {"file"}) > 1:
            return said.several(found[0].rule, scopes)
        if scopes == {"file"}:
            return said.in_the_file(found[0].rule)
        (scope,) = scopes - {"file"}
        if administers and scope != "thread":
            return administers.why
        threads = await self._revoke(found[0].rule.fingerprint, scope, command)
        return said.revoked(found[0].rule, scope, threads, stands - {scope})

    async def _revoke(self, fingerprint: str, scope: RuleScope, command: Configure) -> int:
        """Take a rule back; in how many threads it stood, for one of threads."""
        channel, by = command.origin.channel, command.origin.user
        if scope == "thread":
            return await self.revoke_in_threads(fingerprint, channel, by, "/harness revoke")
        place = EVERYWHERE if scope == "workspace" else channel
        await self._settings.change(StandingRuleRevoked(fingerprint, by, place), command.key)
        await self._wake(place)
        return 0

    async def revoke_in_threads(self, named: str, channel: str, by: str, why: str) -> int:
        """Take a rule back in all threads of a channel; in how many it stood. Raises StoreError."""
        kept = await self._of_threads(channel)
        found = [(session_id, rule) for session_id, rules in kept.items() for rule in rules if rule.called(named)]
        for session_id, rule in found:
            await self._engine.change_rule(session_id, rule, add=False, by=by, why=why)
        return len({session_id for session_id, _ in found})

    async def of_threads(self, channel: str) -> Sequence[RuleChanged]:
        """The rules that *always allow* left in the threads of a channel. Raises StoreError."""
        return [fact for rules in (await self._of_threads(channel)).values() for fact in rules.values()]

    # -- why -----------------------------------------------------------------------------------------------------------

    async def why(self, command: Configure, who: Who) -> str:
        """What the gate says of a call in a new thread here, and because of what. Raises StoreError."""
        if refusal := approvers.may_speak(who):
            return refusal.why
        tool, _, text = command.rest.partition(" ")
        if not tool or not text.strip():
            return said.WHY_USAGE
        spec = self._engine.spec(tool)
        if spec is None:
            return words.no_such_tool(tool, self._engine.tools)
        args = arguments(text.strip(), spec.schema)
        if args is None:
            return said.unread(tool, spec.schema.get("required") or tuple(spec.schema.get("properties", ())))
        thread = Thread(self._settings.home, command.origin.channel, _NOBODY_YET)
        try:
            async with asyncio.timeout(LOOKING):
                found = await self._engine.judge(thread.session_id, tool, args)
        except InvalidArguments as error:
            return said.would_fail(tool, str(error))
        except TimeoutError:
            return said.TOO_SLOW
        return said.verdict(tool, found.effect, found.level, found.reason, found.rule)


def arguments(text: str, schema: Mapping[str, Any]) -> Args | None:
    """The arguments that somebody typed: JSON, or the one text that the tool is about. None if it is neither."""
    if text.startswith("{"):
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return read if isinstance(read, dict) else None
    fields = schema.get("properties", {})
    texts = [name for name, field in fields.items() if isinstance(field, dict) and field.get("type") == "string"]
    required = [name for name in schema.get("required", ()) if name in texts]
    about = next((name for name in ("command", "path", "url") if name in texts), None)
    about = about or (required[0] if len(required) == 1 else None)
    return {**dict.fromkeys(required, ""), about: text} if about else None


def _from_slack(one: StandingRuleAdded) -> Listed:
    return Listed(one.rule, "channel" if one.channel else "workspace", one.by, one.at, one.why, one.until)


def _of_thread(fact: RuleChanged) -> Listed:
    thread = thread_of(fact.session_id)
    return Listed(fact.rule, "thread", fact.by, fact.at, fact.why, thread_ts=thread.ts if thread else "")


def standing(facts: Iterable[Event]) -> Mapping[str, Mapping[PermissionRule, RuleChanged]]:
    """The rules that are in force, by session, from all changes in order."""
    kept: dict[str, dict[PermissionRule, RuleChanged]] = {}
    for fact in facts:
        if isinstance(fact, RuleChanged) and fact.change == "added":
            kept.setdefault(fact.session_id, {})[fact.rule] = fact
        elif isinstance(fact, RuleChanged):
            kept.get(fact.session_id, {}).pop(fact.rule, None)
    return kept
