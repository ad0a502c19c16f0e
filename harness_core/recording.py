"""What a recording holds, for who compares another policy with it: calls, rulings, what was stored together.
Pure.
"""

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
    PromptHeard,
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

_ON_PROMPTS: Final = ("session_start", "user_prompt")


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
        return said_by(self.end) if self.end else ""

    def same_course(self, verdict: str) -> bool:
        """Whether the session would have gone on as it did, had the gate said this."""
        if not self.verdict or verdict == self.verdict:
            return True
        decision = self.submitted.decision if self.submitted else None
        unchanged = isinstance(decision, Approve) and decision.modified_args is None
        return verdict == "allow" and unchanged


def said_by(end: ToolCallEnd) -> str:
    """What the gate said of a call that came to this end without running, "" if that is not told."""
    return {"denied": "deny", "error": "error", "rejected": "deny"}.get(end.outcome, "")


class Recording:
    """The facts of a session, looked up. calls: what became of each, by its id."""

    def __init__(self, facts: Sequence[Event]) -> None:
        self.calls: dict[str, Recorded] = defaultdict(Recorded)
        self.proposed: set[str] = set()  # calls that the model made here
        self.rewritten: set[str] = set()  # those whose results hooks rewrote
        self._asked: dict[str, str] = {}  # the call that a task is about, by its fingerprint
        self._ruled: dict[tuple[str, int, str, str, str], list[HookRuled]] = defaultdict(list)
        for fact in facts:
            self._add(fact)

    def _add(self, fact: Event) -> None:
        match fact:
            case ReasonEnd(calls=calls):
                self.proposed |= {call.call_uuid for call in calls}
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
                if fact.point == "after_tool" and fact.verdict == "Rewrite":
                    self.rewritten.add(fact.call_uuid)

    def take(self, ruling: HookRuled) -> str:
        """The verdict on record of the same hook at the same place, each once; NOTHING if there is none (any more)."""
        same = self._ruled[_key(ruling)]
        return same.pop(0).verdict if same else NOTHING

    def left_over(self) -> Iterator[HookRuled]:
        """The rulings that nobody took."""
        return (fact for same in self._ruled.values() for fact in same)


# -- what was stored together ------------------------------------------------------------------------------------------


@dataclass
class Append:
    """Facts that were stored together, as far as it matters to hooks: what stands before them is what hooks had seen.

    brought: whether they are results that tools brought.
    """

    facts: list[Event]
    brought: bool = False

    @property
    def first(self) -> Event:
        """Where it begins."""
        return self.facts[0]

    @property
    def outcome(self) -> Event:
        """What it is about: rulings stand before what they led to, and results before the end of the run."""
        if isinstance(self.facts[-1], RunEnd):
            return self.facts[-1]
        return next((fact for fact in self.facts if not isinstance(fact, HookRuled)), self.first)

    @property
    def upto(self) -> int:
        """The last fact that it rests on, 0 where that is not known."""
        return getattr(self.first, "upto", 0) or getattr(self.outcome, "upto", 0)


def appends(facts: Iterable[Event]) -> Sequence[Append]:
    """The facts as they were stored. In older journals, whose rulings and ends do not say what stood before them, what
    has the same moment counts as stored together.
    """
    found: list[Append] = []
    running: set[str] = set()  # calls that a process runs, as far as it is still the same one
    for fact in facts:
        brought = isinstance(fact, ToolCallEnd) and fact.call_uuid in running
        if not found or not _goes_with(found[-1], fact, brought):
            found.append(Append([], brought))
        found[-1].facts.append(fact)
        match fact:
            case ToolCallStart(child=""):
                running.add(fact.call.call_uuid)
            case RunStart():  # where somebody else goes on, what comes of them is not what a tool brings
                running.clear()
            case RunEnd():
                while len(found) > 1 and _ends_with(found[-2], fact):
                    found[-2:] = [Append([*found[-2].facts, *found[-1].facts])]
    return found


def _goes_with(append: Append, fact: Event, brought: bool) -> bool:
    """Whether this fact was stored with those before it."""
    last, outcome = append.facts[-1], append.outcome
    if isinstance(outcome, HookRuled):
        return True
    match outcome, fact:
        case RunStart(), HookRuled():
            return fact.point in _ON_PROMPTS and _seen_before(outcome, fact)
        case PromptHeard(), HookRuled():
            return fact.point in _ON_PROMPTS and fact.upto == append.upto and fact.at == outcome.at
        case ((RunStart() | PromptHeard()), PromptHeard()):
            return isinstance(last, HookRuled)
        case ReasonEnd(), HookRuled():
            return fact.point == "after_model"
        case ContextCompressed(), HookRuled():
            return fact.point not in _ON_PROMPTS and _seen_before(outcome, fact)
        case ToolCallStart(), ToolCallStart():
            return True
        case ToolCallStart(), HookRuled():
            return fact.point == "before_tool" and _seen_before(outcome, fact)
        case ToolCallEnd(), ToolCallEnd():
            return append.brought and brought
        case ToolCallEnd(), HookRuled():
            return append.brought and fact.point == "after_tool"
    return False


def _seen_before(fact: Event, ruling: HookRuled) -> bool:
    """Whether the hook had not seen this fact, which stands before its ruling."""
    return ruling.upto < (fact.seq or 0) if ruling.upto else ruling.at == fact.at


def _ends_with(append: Append, end: RunEnd) -> bool:
    """Whether these are results, and rulings, that were stored with the end of their run."""
    if end.upto:
        return (append.first.seq or 0) > end.upto
    return isinstance(append.facts[-1], ToolCallEnd) and append.first.at == end.at


def with_rules_of(outer: Iterable[Event], facts: Iterable[Event]) -> tuple[Event, ...]:
    """A sub-agent's facts with the changes, at their time, of the rules of the session that it works in, which hold for
    it, too; they have no seq. outer: the facts of that session.
    """
    changes = [replace(fact, seq=None, session_id="") for fact in outer if isinstance(fact, RuleChanged)]
    return tuple(merge(changes, facts, key=lambda fact: fact.at))


def _key(ruling: HookRuled) -> tuple[str, int, str, str, str]:
    return ruling.run_id, ruling.step, ruling.point, ruling.hook, ruling.call_uuid
