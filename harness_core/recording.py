"""What a recording holds, for who compares another policy with it: calls, rulings, what steps came to.  Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from typing import Final

from harness_core.events import (
    ContextCompressed,
    Event,
    HITLPending,
    HITLSubmitted,
    HookRuled,
    ModelFailed,
    ReasonEnd,
    RuleChanged,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import Approve, HITLTask
from harness_core.types import ToolCall

GATE: Final = "gate"  # the point at which rules, strategies and the default speak
RUN: Final = "run"  # the point at which it is said whether a run goes on
NOTHING: Final = "nothing"

# What a step of a run comes to, but for those of its calls.
OUTCOMES: Final = (ReasonEnd, ModelFailed, ContextCompressed, RunEnd, RunStart)


@dataclass(frozen=True, slots=True)
class Ruling:
    """One verdict. seq: the fact that it came to, or would have come before.

    point: a hook point, GATE or RUN. hook: who ruled: a hook's name, `rule …`, `strategy`, `default`, or a limit.
    verdict: of a hook its kind; of the gate allow, ask, deny, or error for a call that cannot work; of the run, go on
    or end. recorded: what the recording has in its place, "" where it was never decided. differs: the verdict is
    another one; diverges: and so is the course. suggests: the tool that the hook tells the model to call.
    """

    seq: int
    at: float
    run_id: str
    step: int
    point: str
    hook: str
    verdict: str
    reason: str = ""
    call: ToolCall | None = None
    recorded: str = ""
    diverges: bool = False
    conditional: bool = False
    suggests: str = ""

    @property
    def differs(self) -> bool:
        """Whether the recording has another verdict here."""
        return bool(self.recorded) and self.recorded != self.verdict


@dataclass
class Recorded:
    """What became of one call."""

    task: HITLTask | None = None
    submitted: HITLSubmitted | None = None
    started: ToolCallStart | None = None
    end: ToolCallEnd | None = None

    @property
    def verdict(self) -> str:
        """What the gate said, as far as the facts tell: "" for a call that nobody came to judge."""
        if self.task:
            return "ask"
        if self.started:
            return "allow"
        outcome = self.end.outcome if self.end else ""
        return {"denied": "deny", "error": "error", "rejected": "deny"}.get(outcome, "")

    def same_course(self, verdict: str) -> bool:
        """Whether the session would have gone on as it did, had the gate said this."""
        if not self.verdict or verdict == self.verdict:
            return True
        decision = self.submitted.decision if self.submitted else None
        unchanged = isinstance(decision, Approve) and decision.modified_args is None
        return verdict == "allow" and unchanged


class Recording:
    """The facts of a session, looked up. calls: what became of each, by its id."""

    def __init__(self, facts: Sequence[Event]) -> None:
        self.facts = facts
        self.calls: dict[str, Recorded] = defaultdict(Recorded)
        self._asked: dict[str, str] = {}  # the call that a task is about, by its fingerprint
        self._ruled: dict[tuple[str, int, str, str, str], list[HookRuled]] = defaultdict(list)
        for fact in facts:
            self._add(fact)

    def _add(self, fact: Event) -> None:
        match fact:
            case HITLPending(tasks=tasks):
                for task in tasks:
                    if task.kind == "approve":
                        self._asked[task.fingerprint] = task.call_uuid
                        self.calls[task.call_uuid].task = self.calls[task.call_uuid].task or task
            case HITLSubmitted(fingerprint=shown) if shown in self._asked:
                call = self.calls[self._asked[shown]]
                call.submitted = call.submitted or fact
            case ToolCallStart(call=started):
                self.calls[started.call_uuid].started = self.calls[started.call_uuid].started or fact
            case ToolCallEnd(call_uuid=uuid):
                self.calls[uuid].end = fact
            case HookRuled():
                self._ruled[_key(fact)].append(fact)

    def take(self, ruling: HookRuled) -> str:
        """The verdict on record of the same hook at the same place, each once; NOTHING if there is none (any more)."""
        same = self._ruled[_key(ruling)]
        return same.pop(0).verdict if same else NOTHING

    def left_over(self) -> Iterator[HookRuled]:
        """The rulings that nobody took."""
        return (fact for same in self._ruled.values() for fact in same)

    def since(self, place: int) -> Iterator[Event]:
        """The facts from this place on."""
        return (self.facts[later] for later in range(place, len(self.facts)))

    def outcome(self, place: int) -> Event:
        """What the step came to whose first trace on record is the fact at this place."""
        return next((fact for fact in self.since(place) if isinstance(fact, OUTCOMES)), self.facts[place])


def with_rules_of(outer: Iterable[Event], facts: Iterable[Event]) -> tuple[Event, ...]:
    """A sub-agent's facts with the changes, at their time, of the rules of the session that it works in, which hold for
    it, too. outer: the facts of that session.
    """
    changes = [replace(fact, seq=None, session_id="") for fact in outer if isinstance(fact, RuleChanged)]
    return tuple(merge(changes, facts, key=lambda fact: fact.at))


def _key(ruling: HookRuled) -> tuple[str, int, str, str, str]:
    return ruling.run_id, ruling.step, ruling.point, ruling.hook, ruling.call_uuid
