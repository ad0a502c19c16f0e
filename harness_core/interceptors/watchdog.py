"""A run in which no tool succeeds any more is told so, then ended with what there is.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from harness_core.interceptors.fields import HARNESS, KNOWN_ONLY, Count
from harness_core.session import Trace
from harness_core.verdicts import Inject, RuleClass, Stop


@dataclass(frozen=True, slots=True)
class Watchdog:
    """nudge_after, end_after: model messages since a tool last succeeded, or a person last spoke."""

    __pydantic_config__: ClassVar[Any] = KNOWN_ONLY
    rule_class: ClassVar[RuleClass] = "termination"
    name: ClassVar[str] = "watchdog"
    nudge_after: Count = 6
    end_after: Count = 10

    def __post_init__(self) -> None:
        if self.end_after <= self.nudge_after:
            raise ValueError("end_after must be more than nudge_after")

    def before_model(self, trace: Trace) -> Inject | Stop | None:
        """Once a word, later the end. The first success begins the count anew."""
        idle = idle_steps(trace)
        if idle >= self.end_after:
            return Stop(f"Stopped: no tool has succeeded in the last {idle} steps.", "watchdog")
        if idle == self.nudge_after:
            return Inject(_NUDGE.format(steps=idle), f"no tool has succeeded for {idle} steps")
        return None


def idle_steps(trace: Trace) -> int:
    """Model messages since the last progress: a tool that succeeded, or something that a person said."""
    run = trace.run
    return run.steps - max(run.heard, *run.succeeded.values(), 0) if run else 0


_NUDGE = (
    f"{HARNESS} No tool has succeeded in your last {{steps}} messages. Try one other way that "
    "is likely to work, or finish now: say what you have found so far, what you could not do, and why."
)
