"""A call that was refused and comes again as it was: first a word, then the end.  Pure, counted from facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from harness_core.events import Run
from harness_core.interceptors.fields import HARNESS, KNOWN_ONLY, Count
from harness_core.session import Trace
from harness_core.verdicts import Inject, RuleClass, Stop

REFUSED: Final = ("denied", "rejected")


@dataclass(frozen=True, slots=True)
class Refused:
    """nudge_after, end_after: in how many batches the same effect was refused, without running in between, since a
    person last spoke. Several in one batch count once.
    """

    __pydantic_config__: ClassVar[Any] = KNOWN_ONLY
    rule_class: ClassVar[RuleClass] = "repetition"
    name: ClassVar[str] = "refused"
    nudge_after: Count = 2
    end_after: Count = 5

    def __post_init__(self) -> None:
        if self.end_after <= self.nudge_after:
            raise ValueError("end_after must be more than nudge_after")

    def before_model(self, trace: Trace) -> Inject | Stop | None:
        """Look at what the last batch was refused: once a word, later the end."""
        if trace.run is None:
            return None
        times, tool = max(refusals(trace.run).values(), default=(0, ""))
        if times >= self.end_after:
            return Stop(f"Stopped: {tool} was asked for {times} times with the same arguments, and refused.", "refused")
        if times == self.nudge_after:
            return Inject(_NUDGE.format(tool=tool, times=times), f"{tool} was refused {times} times")
        return None


def refusals(run: Run) -> dict[str, tuple[int, str]]:
    """Per effect that the last batch asked for in vain: in how many batches it was refused in a row, and its tool.

    What a gate refuses that only guesses is left out: who asks for it often enough is right to do so.
    """
    found = {}
    guessed = {effect for known in run.refused.values() for effect in known.effects}
    for last in run.recent:
        if last.step == run.steps and last.outcome in REFUSED and last.effect not in guessed:
            same = [done for done in run.recent if done.effect == last.effect]
            ran = max((done.step for done in same if done.outcome not in REFUSED), default=0)
            found[last.effect] = (len({done.step for done in same if done.step > ran}), last.tool)
    return found


_NUDGE = (
    f"{HARNESS} {{tool}} was refused {{times}} times with these same arguments. The result says "
    "why, and asking again changes nothing. Do what the result tells you to do instead, take another way, or finish: "
    "say what you have, what was refused, and what a person would have to decide."
)
