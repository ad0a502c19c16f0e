"""What a policy is, for the record: whatever changes it makes another one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.interceptors.terminal import Terminal
from harness_core.permissions.judge import Gate
from harness_core.permissions.rule import PermissionRule
from harness_core.policy_record import content_of, content_parts, recorded
from harness_core.steps import Expiry, Policy
from harness_core.testing import RecordingTool

GATE = Gate({"look": RecordingTool("look")}, (), (Terminal(),))
POLICY = Policy(GATE)
OTHERS = {
    "agent": replace(POLICY, agent="reviewer"),
    "can_ask": replace(POLICY, can_ask=False),
    "rules": replace(POLICY, gate=replace(GATE, rules=(PermissionRule.deny("look"),))),
    "hooks": replace(POLICY, gate=replace(GATE, hooks=(Terminal(tools=("look",)),))),
    "strategies": replace(POLICY, gate=replace(GATE, strategies={"look": lambda trace, args: None})),
    "tools": replace(POLICY, gate=replace(GATE, tools={})),
    "limits": replace(POLICY, max_steps=1),
    "seconds": replace(POLICY, max_seconds=1.0),
    "attempts": replace(POLICY, model_attempts=1),
    "expiries": replace(POLICY, expiries={"look": Expiry(60.0)}),
    "compression": replace(POLICY, compression=ContextCompressionInterceptor()),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_policy_that_differs_in_anything_is_told_from_the_one_before(other: Policy) -> None:
    assert recorded(other)[0].digest != recorded(POLICY)[0].digest
    assert content_parts(other) != content_parts(POLICY), "its digest would be taken for that of the one before"


def test_nothing_of_a_policy_is_left_out_of_the_policies_above() -> None:
    assert content_of(POLICY).keys() <= OTHERS.keys()
