"""Demands that nothing allows, everywhere and by channel; and what the log says of a fight."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from bot.facts import StandingRuleAdded
from bot.quarrels import Quarrels, dead_ends_in, fields_of, warn
from bot.settings import InForce
from harness_core.conflicts import Fight
from harness_core.events import Event, HookRuled, Prompted, ReasonEnd, RunStart
from harness_core.guards import guards_from
from harness_core.permissions.judge import Gate
from harness_core.permissions.rule import PermissionRule
from harness_core.policy_file import PolicyFile, StandingRule
from harness_core.results import denied
from harness_core.steps import Policy
from harness_core.store.memory import MemoryStore
from harness_core.testing import RecordingTool, tool_call

POLICY = Policy(Gate({"report": RecordingTool("report"), "read": RecordingTool("read", read_only=True)}))
GUARDS = guards_from({"finish": {"requires": ["report"]}})
DENY = PermissionRule.deny("report")
SESSION = "slack:T1:C1:1772357400.000100"


def test_a_rule_of_a_channel_shuts_what_is_open_elsewhere() -> None:
    everywhere = PolicyFile((StandingRule(DENY),))
    here = PolicyFile((StandingRule(DENY, channel="C1"),))

    [wide] = dead_ends_in(POLICY, GUARDS, everywhere, InForce(), 0.0)
    [narrow] = dead_ends_in(POLICY, GUARDS, here, InForce(), 0.0)

    assert wide.startswith("finish tells the model to call report")
    assert narrow == f"in channel C1: {wide}"
    assert dead_ends_in(POLICY, (), everywhere, InForce(), 0.0) == ()


def test_rules_from_slack_count_and_expired_ones_do_not() -> None:
    added = StandingRuleAdded(DENY, channel="C2", by="U1", until=100.0)
    now = InForce(rules={("C2", DENY): added})

    assert len(dead_ends_in(POLICY, GUARDS, PolicyFile(), now, 50.0)) == 1
    assert dead_ends_in(POLICY, GUARDS, PolicyFile(), now, 150.0) == ()


def test_each_is_told_once_and_again_only_when_it_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    known = warn(["a", "b"])
    known = warn(["b", "c"], known)
    warn(["a"], known)

    assert [record.getMessage() for record in caplog.records] == ["a", "b", "c", "a"]


def test_the_log_holds_no_pattern_of_a_rule() -> None:
    fight = Fight(9, "r1", 4, "bash", "rule “deny bash curl secret.example *”", "lookup", 2)

    assert fields_of(SESSION, fight)["refuses"] == "rule deny bash …"
    assert fields_of(SESSION, fight)["demands"] == "lookup"


def tried(step: int) -> list[Event]:
    """A call that one rule refuses, and another that demands it."""
    call = tool_call("report", uuid=f"c{step}")
    ruled = HookRuled("before_tool", "terminal", "termination", "Deny", "over", step, call.call_uuid, run_id="r1")
    told = HookRuled(
        "before_stop", "finish", "termination", "Continue", "not yet", step, suggests="report", run_id="r1"
    )
    return [ReasonEnd("", (call,), step=step), ruled, denied(call, "over"), told]


async def listening(store: MemoryStore) -> Quarrels:
    """Quarrels that are told of a run as it goes on."""
    quarrels = Quarrels(store)
    store.changed(quarrels.take)
    await store.append(SESSION, [Prompted("go"), RunStart("r1")])
    return quarrels


async def test_a_fight_is_told_with_the_fact_that_makes_it_one(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    quarrels = await listening(store)

    with caplog.at_level(logging.WARNING):
        for step in (1, 2, 3):
            await store.append(SESSION, tried(step))
            await quarrels.idle()

    assert [record.getMessage() for record in caplog.records] == ["two rules fight"]
    await quarrels.close()


async def test_a_fight_is_told_once_though_the_store_is_slow_to_show_it(caplog: pytest.LogCaptureFixture) -> None:
    class Slow(MemoryStore):
        shown = asyncio.Event()

        async def open(self, session_id: str) -> Sequence[Event]:
            await self.shown.wait()
            return await super().open(session_id)

    store = Slow()
    quarrels = await listening(store)

    with caplog.at_level(logging.WARNING):
        for step in (1, 2, 3):
            await store.append(SESSION, tried(step))
        store.shown.set()
        await quarrels.idle()

    assert [record.getMessage() for record in caplog.records] == ["two rules fight"]
    await quarrels.close()
