"""What a policy is, as JSON: what its digest is of, and what is kept so that a replay can tell it.  Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from typing import Any

from harness_core.hooks import name_of, rule_class
from harness_core.permissions.rule import PermissionRule
from harness_core.steps import Policy
from harness_core.types import Args, canonical, digest


def recorded(policy: Policy) -> tuple[Policy, Args]:
    """The policy with the digest of its content, and the content."""
    content = content_of(policy)
    return replace(policy, digest=digest(canonical(content))), content


def content_parts(policy: Policy) -> tuple[object, ...]:
    """All that the content is made of: while these are equal, so is the digest."""
    gate = policy.gate
    return (
        policy.agent, policy.can_ask, gate.rules, gate.hooks, gate.strategies, gate.tools, policy.max_steps,
        policy.max_seconds, policy.model_attempts, policy.expiries, policy.compression,
    )  # fmt: skip


def content_of(policy: Policy) -> Args:
    """All that a verdict rests on, but for the code and the session's own rules, which are facts of the session."""
    gate, compression = policy.gate, policy.compression
    limits: dict[str, float] = {"steps": policy.max_steps, "attempts": policy.model_attempts}
    if math.isfinite(policy.max_seconds):
        limits["seconds"] = policy.max_seconds
    return {
        "agent": policy.agent,
        "can_ask": policy.can_ask,
        "rules": sorted((_said(rule) for rule in gate.rules), key=str),
        "hooks": [_hook(one) for one in gate.hooks],
        "strategies": sorted(gate.strategies),
        "tools": sorted(gate.tools),
        "limits": limits,
        "expiries": {tool: asdict(expiry) for tool, expiry in policy.expiries.items()},
        "compression": asdict(compression.limits) if compression else {},
    }


def _said(rule: PermissionRule) -> Mapping[str, Any]:
    """A rule; that it wants one person goes without saying, in what older versions recorded, too."""
    said = asdict(rule)
    return said if rule.people > 1 else {name: value for name, value in said.items() if name != "people"}


def _hook(hook: Any) -> Mapping[str, Any]:
    """Which hook it is, and how it is tuned, as far as it tells."""
    settings = asdict(hook) if is_dataclass(hook) and not isinstance(hook, type) else _plain(hook)
    told = json.loads(json.dumps(settings, default=lambda value: type(value).__name__))
    return {"name": name_of(hook), "class": rule_class(hook), "settings": told}


def _plain(hook: Any) -> Mapping[str, Any]:
    """Attributes that are values; what else there is says nothing that would be the same in another process."""
    values = (bool, int, float, str, tuple, type(None))
    told: Mapping[str, Any] = getattr(hook, "__dict__", {})
    return {name: value for name, value in told.items() if not name.startswith("_") and isinstance(value, values)}
