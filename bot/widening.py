"""*Always allow* that goes further than this thread and this call: what is offered, to whom, and what becomes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from bot import approvers, words
from bot.approvers import Who
from bot.facts import StandingRuleAdded
from bot.heard import Reach
from bot.ids import Thread
from bot.modals import Wider
from bot.rule_commands import RuleCommands
from bot.shown import shown_line
from harness_core.engine import HarnessEngine
from harness_core.events import ReasonEnd
from harness_core.hitl import HITLTask
from harness_core.permissions.offer import offered, would_run
from harness_core.permissions.paths import World
from harness_core.permissions.rule import PermissionRule
from harness_core.types import Args, canonical, digest, same

MOST_CALLS: Final = 300  # recorded calls that a wider rule is tried on
MOST_THREADS: Final = 50  # threads that they are taken from, the newest first: the form has three seconds to open
LINE: Final = 150  # characters of a call that is shown as an example


class Widening:
    """What an administrator may allow beyond exactly this call in this thread."""

    def __init__(self, engine: HarnessEngine, rules: RuleCommands) -> None:
        self._engine, self._rules = engine, rules

    async def choices(self, thread: Thread, task: HITLTask, who: Who) -> Wider | None:
        """What the form offers to this person, and what it would have let run so far; None for nothing more."""
        if approvers.may_administer(who.person, who.place, who.access):
            return None
        prefixes = await self._prefixes(thread, task)
        calls = await self._recorded(thread, task.tool_name)
        matched = would_run(prefixes, task.tool_name, calls, await self._elsewhere(thread)) if prefixes else ()
        counted = Counter(_line(args) for args in matched)
        return Wider(
            prefixes,
            _name(prefixes),
            len(calls),
            sum(same(args, task.args) for args in calls),
            tuple(counted.most_common()),
        )

    async def chosen(self, thread: Thread, task: HITLTask, who: Who, reach: Reach) -> Sequence[PermissionRule] | str:
        """The rules that somebody chose beside the usual one, or why they may not, now that they submit."""
        if reach == Reach():
            return ()
        if refusal := approvers.may_administer(who.person, who.place, who.access):
            return refusal.why
        if not reach.prefixes:
            return (PermissionRule.exactly(task.tool_name, task.args),)
        prefixes = await self._prefixes(thread, task)
        return prefixes if reach.prefixes == _name(prefixes) else words.NOT_OFFERED

    async def make(
        self, thread: Thread, task: HITLTask, by: str, rules: Sequence[PermissionRule], *, channel: bool
    ) -> None:
        """Make these rules, for the channel or for the thread alone. Raises StoreError."""
        why = f"always allow #{task.short_id}"
        for rule in rules:
            if channel:
                fact = StandingRuleAdded(rule, by, thread.channel, why, card=task.fingerprint)
                await self._rules.add(fact, f"always:{task.fingerprint}:{rule.id}")
            else:
                await self._engine.change_rule(thread.session_id, rule, by=by, why=why)

    async def _prefixes(self, thread: Thread, task: HITLTask) -> tuple[PermissionRule, ...]:
        trace = await self._engine.trace(thread.session_id)
        state = trace.of(task.call_uuid)
        gate = (await self._engine.policy(thread.session_id)).gate
        return offered(task.tool_name, task.args, gate.world(state.inspection(task.args) if state else None))

    async def _elsewhere(self, thread: Thread) -> World:
        """The world of calls of the past: nobody looks again where their paths led."""
        gate = (await self._engine.policy(thread.session_id)).gate
        return World(gate.workspace, gate.home)

    async def _recorded(self, thread: Thread, tool: str) -> Sequence[Args]:
        """The calls of a tool that models made in this channel, the newest threads first."""
        found: list[Args] = []
        channel = f"slack:{thread.home}:{thread.channel}:"
        for session_id in sorted(await self._engine.store.sessions(channel), reverse=True)[:MOST_THREADS]:
            said = (fact for fact in await self._engine.store.read(session_id) if isinstance(fact, ReasonEnd))
            calls = [call.args for fact in said for call in fact.calls if call.name == tool and not call.problem]
            found += reversed(calls)
            if len(found) >= MOST_CALLS:
                break
        return found[:MOST_CALLS]


def _name(prefixes: Sequence[PermissionRule]) -> str:
    """Hex digits that stand for exactly these rules; "" for none."""
    return digest(repr([(rule.tool, rule.pattern) for rule in prefixes]))[:16] if prefixes else ""


def _line(args: Args) -> str:
    command = args.get("command")
    return shown_line(command if isinstance(command, str) else canonical(args), LINE)
