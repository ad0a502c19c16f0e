"""The settings in force: as given at the start, and as people changed them since, on the record with who and when."""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from bot.approvers import Access
from bot.facts import (
    WORKSPACE,
    AdminClaimed,
    ApprovalsSwitched,
    ApproverChanged,
    ChannelSwitched,
    ClaimTried,
    NetworkSwitched,
    Paused,
    SensitiveChanged,
    StandingRuleAdded,
    StandingRuleRevoked,
)
from bot.ids import thread_of
from bot.policy import PolicyKeeper
from harness_core.events import Event
from harness_core.guarding import guarded
from harness_core.journal_ids import root_of
from harness_core.permissions.rule import PermissionRule
from harness_core.policy_file import PolicyFile
from harness_core.ports import Clock, SessionStore
from harness_core.session import Trace
from harness_core.steps import Policy
from harness_core.types import Args

log = logging.getLogger(__name__)

OFF_SECONDS: Final = 8 * 3600.0  # approvals that were switched off come back by themselves: a shift, not a habit
WATCH: Final = 3.0  # seconds between two looks at the policy file, and at the rules that expired meanwhile
CLAIM_SECONDS: Final = 3600.0  # in which tries to claim the bot are counted
CLAIMS_EACH: Final = 5  # tries of one person in that time
CLAIMS: Final = 20  # tries of all together: the code has 32 bits, so that guessing it would take millennia
EVERYWHERE: Final = ""  # the channel of what holds in the whole workspace

Claim = Literal["claimed", "wrong", "too often"]


@dataclass(frozen=True, slots=True)
class InForce:
    """All settings that people can change. sensitive: tools by channel. off: why approvals are off, by channel.

    rules: those that people made in Slack, with their channels, the oldest first.
    online: channels from whose threads boxed commands may reach the network.
    """

    access: Access = Access()  # noqa: RUF009 (frozen)
    sensitive: Mapping[str, frozenset[str]] = field(default_factory=dict)
    off: Mapping[str, ApprovalsSwitched] = field(default_factory=dict)
    paused_by: str = ""
    rules: Mapping[tuple[str, PermissionRule], StandingRuleAdded] = field(default_factory=dict)
    online: frozenset[str] = frozenset()

    def sensitive_in(self, channel: str) -> frozenset[str]:
        """The tools that always ask in a channel."""
        return self.sensitive.get(EVERYWHERE, frozenset()) | self.sensitive.get(channel, frozenset())

    def off_in(self, channel: str, now: float) -> ApprovalsSwitched | None:
        """Who switched approvals off in a channel, and why; None if they are on."""
        found = [self.off[place] for place in (channel, EVERYWHERE) if place in self.off]
        return next((one for one in found if now < one.until), None)

    def rules_in(self, channel: str, now: float) -> tuple[StandingRuleAdded, ...]:
        """The rules from Slack that count in a channel, those of the workspace among them. Expired ones are none."""
        here = (one for (place, _), one in self.rules.items() if place in (EVERYWHERE, channel))
        return tuple(one for one in here if one.until is None or now < one.until)


class SettingsBook:
    """The settings in force, and their changes. Read anew at every question: another process may have changed them.

    home: the workspace that sessions of ours belong to, known once Slack has told who we are. policy: the file that
    holds beside them.
    """

    def __init__(self, store: SessionStore, clock: Clock, given: Access, policy: PolicyKeeper | None = None) -> None:
        self._store, self._clock = store, clock
        self.policy = policy or PolicyKeeper(None)
        self._now = InForce(given)
        self._seq = 0
        self.home, self.boundary = "", ""
        self.claim_code = "" if given.admins else secrets.token_hex(4)

    async def in_force(self) -> InForce:
        """All settings, now."""
        if await self._store.last_seq(WORKSPACE) > self._seq:
            events = await self._store.read(WORKSPACE, self._seq)
            self._now = changed(self._now, events)
            self._seq = events[-1].seq or self._seq
        return self._now

    async def access(self) -> Access:
        """Who may do what, now."""
        return (await self.in_force()).access

    async def online(self, session_id: str) -> bool:
        """Whether the commands of a session may reach the network from their sandbox."""
        thread = thread_of(session_id)
        return thread is not None and thread.channel in (await self.in_force()).online

    async def change(self, fact: Event, key: str) -> None:
        """Put a change on the record. key: of the command, so that a redelivered one counts once."""
        await self._store.append(WORKSPACE, replace(fact, at=self._clock.now()), key=key)

    async def claim(self, code: str, by: str, key: str) -> Claim:
        """Become the first administrator, if the code is the one that was printed at the start. key: of the command."""
        if await self._tried_too_often(by, 1):
            return "too often"
        # On the record before it is looked at: of tries at the same moment each counts the others.
        await self.change(ClaimTried(by), key)
        if await self._tried_too_often(by, 0):
            return "too often"
        given, wanted = code.strip().encode(), self.claim_code.encode()
        if not wanted or not hmac.compare_digest(given, wanted) or (await self.access()).admins:
            return "wrong"
        fact = AdminClaimed(by, at=self._clock.now())
        return "claimed" if await self._store.append(WORKSPACE, fact, key="claim") else "wrong"

    async def _tried_too_often(self, by: str, more: int) -> bool:
        """Whether there were, with so many more, too many tries of late by this person or by all."""
        since = self._clock.now() - CLAIM_SECONDS
        tries = await self._store.find("ClaimTried", WORKSPACE)
        late = [one.by for one in tries if isinstance(one, ClaimTried) and one.at > since]
        return late.count(by) + more > CLAIMS_EACH or len(late) + more > CLAIMS

    async def adjust(self, session_id: str, policy: Policy) -> Policy:
        """The policy of a session under the settings of its channel, asked at every step."""
        policy = guarded(policy, self.policy.guards)
        return adjusted(policy, session_id, await self.in_force(), self.policy.file, self._clock.now())

    async def rules_in(self, channel: str) -> tuple[PermissionRule, ...]:
        """The rules that count in a channel now: those of the file, and those that people made in Slack."""
        return standing_rules(await self.in_force(), self.policy.file, channel, self._clock.now())

    async def watch(self, wake: Callable[[], Awaitable[None]]) -> None:
        """Take up a changed policy file, and wake what may wait for it or for a rule that expired, for ever.

        Commands wake the sessions themselves; this also sees those that another process carried out.
        """
        before: frozenset[object] | None = None
        while True:
            try:
                self.policy.look()
                standing = await self._standing()
                if before is not None and standing != before:
                    await wake()
                before = standing
            except Exception:  # whatever it is: whoever stops looking lets a deny that comes later count for nothing
                log.exception("the rules in force could not be looked at; the next look tries again")
            await self._clock.sleep(WATCH)

    async def _standing(self) -> frozenset[object]:
        """Every rule, and whether it counts now: what is another after a change, or when one has expired."""
        now, moment = await self.in_force(), self._clock.now()
        made = ((key, one.at, one.until is None or moment < one.until) for key, one in now.rules.items())
        filed = ((one, one.until is None or moment < one.until) for one in self.policy.file.rules)
        return frozenset({*made, *filed})


def standing_rules(now: InForce, file: PolicyFile, channel: str, moment: float) -> tuple[PermissionRule, ...]:
    """The rules that count in a channel at this moment: those of the file, and those that people made in Slack."""
    made = (one.rule for one in now.rules_in(channel, moment))
    return (*file.rules_in(channel, moment), *made)


def whys(now: InForce, file: PolicyFile, channel: str, moment: float) -> Mapping[str, str]:
    """Why the rules that count in a channel were made, by their ids, where somebody told."""
    filed = ((one.rule, one.why) for one in file.rules if one.holds(channel, moment))
    made = ((one.rule, one.why) for one in now.rules_in(channel, moment))
    return {rule.id: why for rule, why in (*made, *filed) if why}


def adjusted(policy: Policy, session_id: str, now: InForce, file: PolicyFile, moment: float) -> Policy:
    """The policy of a session under these settings and this file. A sub-agent's goes by the rules of its thread."""
    thread = thread_of(root_of(session_id))
    if thread is None:
        return policy
    tools, off = now.sensitive_in(thread.channel), now.off_in(thread.channel, moment)
    rules = standing_rules(now, file, thread.channel, moment)
    if not tools and not off and not rules:
        return policy
    strategies = {**policy.gate.strategies, **dict.fromkeys(tools, marked_sensitive)}
    told = {**policy.gate.whys, **whys(now, file, thread.channel, moment)}
    gate = replace(policy.gate, strategies=strategies, rules=(*policy.gate.rules, *rules), whys=told)
    return replace(policy, gate=gate, can_ask=policy.can_ask and not off)


def marked_sensitive(trace: Trace, args: Args) -> str:
    """The strategy of a tool that this channel or the workspace marked sensitive."""
    return "this tool is marked sensitive here"


def changed(now: InForce, events: Iterable[Event]) -> InForce:
    """The settings after these facts."""
    for event in events:
        match event:
            case AdminClaimed(by=by):
                now = _with(now, admins=now.access.admins | {by})
            case ChannelSwitched(channel=channel, on=on):
                now = _with(now, channels=_set(now.access.channels, channel, on))
            case ApproverChanged(who=who, on=on):
                now = _with(now, approvers=_set(now.access.approvers, who, on))
            case SensitiveChanged(tool=tool, on=on, channel=channel):
                tools = _set(now.sensitive.get(channel, frozenset()), tool, on)
                now = replace(now, sensitive={**now.sensitive, channel: tools})
            case ApprovalsSwitched(on=True, channel=channel):
                now = replace(now, off={place: one for place, one in now.off.items() if place != channel})
            case ApprovalsSwitched(channel=channel):
                now = replace(now, off={**now.off, channel: event})
            case NetworkSwitched(channel=channel, on=on):
                now = replace(now, online=_set(now.online, channel, on))
            case Paused(on=on, by=by):
                now = replace(now, paused_by=by if on else "")
            case StandingRuleAdded(channel=channel, rule=rule):
                others = {key: one for key, one in now.rules.items() if key != (channel, rule)}
                added = _lasting(event, now.rules.get((channel, rule)))
                now = replace(now, rules={**others, (channel, rule): added})
            case StandingRuleRevoked(channel=channel, rule_id=name):
                gone = {key for key in now.rules if key[0] == channel and key[1].called(name)}
                kept = {key: one for key, one in now.rules.items() if key not in gone}
                now = replace(now, rules=kept)
    return now


def _lasting(added: StandingRuleAdded, before: StandingRuleAdded | None) -> StandingRuleAdded:
    """A rule that is made again, until when it holds: what denies or asks goes on as long as somebody wanted it to."""
    if before is None or added.rule.effect == "allow" or added.until is None:
        return added
    return replace(added, until=None if before.until is None else max(before.until, added.until))


def _with(now: InForce, **changes: Set[str]) -> InForce:
    return replace(now, access=replace(now.access, **changes))


def _set(members: Iterable[str], one: str, on: bool) -> frozenset[str]:
    return frozenset(members) | {one} if on else frozenset(members) - {one}
