"""*Always allow* that goes further than this thread and this call: what is offered, to whom, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from bot import approvers, words
from bot.approvers import Who
from bot.facts import StandingRuleAdded
from bot.heard import Reach
from bot.ids import Thread, threads_of
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
MOST_THREADS: Final = 50  # threads that they are taken from, the newest first
SECONDS: Final = 1.5  # that this may take: the form has three to open
AT_ONCE: Final = 20  # calls that are tried without a pause
LINE: Final = 150  # characters of a call that is shown as an example


class Widening:
    """What an administrator may allow beyond exactly this call in this thread."""

    def __init__(self, engine: HarnessEngine, rules: RuleCommands) -> None:
        self._engine, self._rules = engine, rules

    async def choices(self, thread: Thread, task: HITLTask, who: Who) -> Wider | None:
        """What the form offers to this person, and what it would have let run so far; None for nothing more."""
        if approvers.may_administer(who):
            return None
        until = self._engine.clock.monotonic() + SECONDS
        prefixes = await self._prefixes(thread, task)
        calls = await self._recorded(thread, task.tool_name, until)
        tried, begin = await self._tried(thread, task.tool_name, prefixes, calls, until)
        exactly = sum(same(args, task.args) for args in calls[:tried])
        return Wider(prefixes, _name(prefixes), tried, exactly, tuple(begin.most_common()))

    async def _tried(
        self, thread: Thread, tool: str, prefixes: Sequence[PermissionRule], calls: Sequence[Args], until: float
    ) -> tuple[int, Counter[str]]:
        """How many of the calls were tried while there was time, and which the prefixes would have let run."""
        gate = (await self._engine.policy(thread.session_id)).gate
        world = World(gate.workspace, gate.home)  # nobody looks again where the paths of the past led
        begin: Counter[str] = Counter()
        for place, args in enumerate(calls):
            if place % AT_ONCE == 0:
                await asyncio.sleep(0)  # others get a turn
                if self._engine.clock.monotonic() > until:
                    return place, begin
            begin.update(_line(args) for args in would_run(prefixes, tool, [args], world))
        return len(calls), begin

    async def chosen(self, thread: Thread, task: HITLTask, who: Who, reach: Reach) -> Sequence[PermissionRule] | str:
        """The rules that somebody chose beside the usual one, or why they may not, now that they submit."""
        if reach == Reach():
            return ()
        if refusal := approvers.may_administer(who):
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
        trace = await self._engine.trace(task.session or thread.session_id)
        state = trace.of(task.call_uuid)
        gate = (await self._engine.policy(task.session or thread.session_id)).gate
        return offered(task.tool_name, task.args, gate.world(state.inspection(task.args) if state else None))

    async def _recorded(self, thread: Thread, tool: str, until: float) -> Sequence[Args]:
        """The calls of a tool that models made in this channel, the newest threads first."""
        found: list[Args] = []
        sessions = await self._engine.store.sessions(threads_of(thread.home, thread.channel))
        for session_id in sorted(sessions, reverse=True)[:MOST_THREADS]:
            said = (fact for fact in await self._engine.store.read(session_id) if isinstance(fact, ReasonEnd))
            calls = [call.args for fact in said for call in fact.calls if call.name == tool and not call.problem]
            found += reversed(calls)
            if len(found) >= MOST_CALLS or self._engine.clock.monotonic() > until:
                break
        return found[:MOST_CALLS]


def _name(prefixes: Sequence[PermissionRule]) -> str:
    """Hex digits that stand for exactly these rules; "" for none."""
    return digest(repr([(rule.tool, rule.pattern) for rule in prefixes]))[:16] if prefixes else ""


def _line(args: Args) -> str:
    command = args.get("command")
    return shown_line(command if isinstance(command, str) else canonical(args), LINE)
