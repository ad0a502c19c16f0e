"""Two rules that people see by the same digits, as somebody can make them who tries long enough."""

from __future__ import annotations

from functools import cache
from itertools import count

from harness_core.permissions.rule import PermissionRule

MANY = 5_000  # each for itself has one id in sixteen million, so that among some thousand of two kinds there is a pair


@cache
def alike() -> tuple[PermissionRule, PermissionRule]:
    """A rule that denies, and another one with its id that allows."""
    denied = {rule.id: rule for n in range(MANY) for rule in [PermissionRule.deny("change", f'{{"n":{n}}}')]}
    allowed = (PermissionRule.allow("bash", f"npm run b{n}") for n in count())
    return next((denied[rule.id], rule) for rule in allowed if rule.id in denied)
