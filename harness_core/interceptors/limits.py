"""How long a run may be.  Pure; the loop itself keeps these limits, so there is nothing to ask at any point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from harness_core.interceptors.fields import KNOWN_ONLY, Count, Seconds
from harness_core.verdicts import RuleClass


@dataclass(frozen=True, slots=True)
class Limits:
    """steps: model messages of a run. seconds: of work; waiting for people is not charged. None: what the engine's
    options say.
    """

    __pydantic_config__: ClassVar[Any] = KNOWN_ONLY
    rule_class: ClassVar[RuleClass] = "termination"
    name: ClassVar[str] = "limits"
    steps: Count | None = None
    seconds: Seconds | None = None
