"""How patient the loop detector is, as a table sets it.  Pure; stop_loop.py is the detector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from harness_core.interceptors.fields import KNOWN_ONLY, Often, Repeats, Switch, Window
from harness_core.interceptors.stop_loop import OFTEN, StopLoopInterceptor
from harness_core.verdicts import RuleClass


@dataclass(frozen=True, slots=True)
class StopLoop:
    """See StopLoopInterceptor. often: (calls of one tool, among so many), or nothing for never."""

    __pydantic_config__: ClassVar[Any] = KNOWN_ONLY
    rule_class: ClassVar[RuleClass] = "repetition"
    name: ClassVar[str] = "stop_loop"
    max_repeat: Repeats = 3
    window: Window = 8
    escalate: Switch = True
    often: Often = OFTEN

    def __post_init__(self) -> None:
        if len(self.often) not in (0, 2):
            raise ValueError("often must be two numbers, calls of one tool among so many, or an empty list")

    @property
    def interceptor(self) -> StopLoopInterceptor:
        """The detector."""
        often = (self.often[0], self.often[1]) if self.often else None
        return StopLoopInterceptor(self.max_repeat, self.window, self.escalate, often=often)
