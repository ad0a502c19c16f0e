"""A policy with guards among its hooks, and within the limits that they set.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness_core.guards import Limits, StopLoop
from harness_core.hooks import in_order
from harness_core.interceptors.stop_loop import StopLoopInterceptor
from harness_core.steps import Policy


def guarded(policy: Policy, guards: Sequence[Any]) -> Policy:
    """The policy with these guards among its hooks, and within their limits. The loop detector is the guards' own, or
    none where it was switched off.
    """
    limits = next((one for one in guards if isinstance(one, Limits)), Limits())
    hooks = [one.interceptor if isinstance(one, StopLoop) else one for one in guards]
    hooks += [one for one in policy.gate.hooks if not isinstance(one, StopLoopInterceptor)]
    return replace(
        policy,
        gate=replace(policy.gate, hooks=in_order(hooks)),
        max_steps=limits.steps or policy.max_steps,
        max_seconds=limits.seconds or policy.max_seconds,
    )
