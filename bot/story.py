"""What a session's facts look like to people: cards, answers, notices, and whether somebody waits.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from bot import limits, words
from bot.view import Answer, Card, Closed, Decided, Lapsed, Notice, Ran, State, Waiting
from harness_core.events import (
    Event,
    HITLPending,
    HITLSubmitted,
    HITLVoted,
    PromptAmended,
    Prompted,
    ReasonEnd,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
)
from harness_core.hitl import Approve, Expired, HITLTask, Reject, edited, lets_run
from harness_core.masking import mask
from harness_core.session import Asked
from harness_core.types import Args, effect

_EXIT: Final = re.compile(r"^exit code (-?\d+)$", re.MULTILINE)
# Moods: the reactions that say what becomes of a prompt.
SEEN: Final = "eyes"
WAITING: Final = "hourglass_flowing_sand"


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A queued prompt was put aside by a stop; its author is told in private."""

    by: str


@dataclass(frozen=True, slots=True)
class Story:
    """Everything to show: cards by fingerprint, all else by the id of its post. Cards carry no approvers yet.

    since: the fact that a card, or what is said, came with; it gives the order in the thread.
    prompt_ts: the message that began the newest run. mood: the reaction that it should have. over: no run goes
    on and no prompt waits, so that nothing that came before changes any more. seq: of the last fact. asker: who began
    the newest run.
    """

    cards: Mapping[str, Card] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    says: Mapping[str, Answer | Notice | Withdrawn] = field(default_factory=dict)
    prompt_ts: str = ""
    mood: str = ""
    over: bool = True
    seq: int = 0
    asker: str = ""


@dataclass
class _Asked:
    """A task and what became of it."""

    task: HITLTask
    batch: int
    says: str
    votes: list[str] = field(default_factory=list)
    submitted: HITLSubmitted | None = None
    end: ToolCallEnd | None = None
    stopped_by: str = ""


def told(session_id: str, facts: Iterable[Event]) -> Story:
    """The story that these facts tell. They may begin at any end of a run."""
    teller = _Teller()
    for fact in facts:
        teller.add(fact)
    return teller.story(session_id)


class _Teller:
    def __init__(self) -> None:
        self._asked: dict[str, _Asked] = {}
        self._since: dict[str, int] = {}
        self._says: dict[str, Answer | Notice | Withdrawn] = {}
        self._prompts: dict[str, Prompted] = {}
        self._inbox: list[Prompted] = []
        self._prompt: Prompted | None = None
        self._batch, self._text = 0, ""
        self._stop: StopRequested | None = None
        self._last: ReasonEnd | None = None
        self._running = False
        self._seq = 0

    def story(self, session_id: str) -> Story:
        cards = {one.task.fingerprint: card for one in self._asked.values() for card in [self._card(session_id, one)]}
        waiting = any(isinstance(card.state, Waiting) for card in cards.values())
        mood = (WAITING if waiting else SEEN) if self._running else ""
        ts = self._prompt.ref.rpartition(":")[2] if self._prompt else ""
        over, asker = not self._running and not self._inbox, self._prompt.by if self._prompt else ""
        return Story(cards, self._since, self._says, ts, mood, over, self._seq, asker)

    def add(self, fact: Event) -> None:
        self._seq = fact.seq or self._seq
        match fact:
            case Prompted():
                self._prompts[fact.ref] = fact
                self._inbox.append(fact)
            case PromptAmended(text=None):
                self._inbox = [p for p in self._inbox if p.ref != fact.ref]
            case RunStart() if not self._running:
                self._running = True
                self._prompt = min(self._inbox, key=lambda p: (p.sent_at, p.seq or 0), default=None)
            case ReasonEnd():
                self._answered_already()
                self._last = fact
                self._batch, self._text = fact.step, fact.text
                self._inbox = [p for p in self._inbox if (p.seq or 0) > fact.upto]
            case HITLPending():
                for task in fact.tasks:
                    # What the agent of the thread said is not what a sub-agent says, nor is its batch the same.
                    batch, says = (self._seq, "") if task.session else (self._batch, self._text)
                    self._asked[task.fingerprint] = _Asked(task, batch, says)
                    self._since[task.fingerprint] = self._seq
            case HITLVoted() if fact.fingerprint in self._asked:
                self._asked[fact.fingerprint].votes.append(fact.by)
            case HITLSubmitted() if fact.fingerprint in self._asked:
                self._asked[fact.fingerprint].submitted = fact
            case ToolCallEnd():
                if asked := self._newest(fact.call_uuid):
                    asked.end = fact
                    asked.stopped_by = self._stop.by if self._stop else asked.stopped_by
            case StopRequested():
                self._stop = fact
            case RunEnd():
                self._ended(fact)

    def _newest(self, call_uuid: str) -> _Asked | None:
        """The newest task of a call; an older one of the same call has been answered before."""
        return next((one for one in reversed(self._asked.values()) if one.task.call_uuid == call_uuid), None)

    # -- endings -------------------------------------------------------------------------------------------------------

    def _answered_already(self) -> None:
        """A message without calls answers somebody. Where another prompt came in meanwhile the run goes on after it,
        and its end brings only the last one.
        """
        if self._last and self._last.text.strip() and not self._last.calls:
            post = f"said:{self._last.seq}"
            self._says[post], self._since[post] = self._answer(self._last.text), self._last.seq or 0
        self._last = None

    def _ended(self, fact: RunEnd) -> None:
        if self._last and self._last.text.strip() not in fact.answer:
            self._answered_already()
        self._last = None
        post = f"end:{fact.seq}"
        self._says[post], self._since[post] = self._ending(fact), self._seq
        for ref in fact.withdrawn:
            if ref in self._prompts:
                self._says[f"withdrawn:{ref}"] = Withdrawn(self._prompts[ref].by)
        self._inbox = [p for p in self._inbox if p.ref not in fact.withdrawn and p is not self._prompt]
        self._running, self._stop = False, None

    def _ending(self, fact: RunEnd) -> Answer | Notice:
        asker = self._prompt
        late = asker is not None and fact.at - asker.sent_at > limits.MENTION_AFTER
        mention = asker.by if asker and late else ""
        match fact.status:
            case "completed":
                return self._answer(fact.answer or "_(no answer)_", mention)
            case "rejected":
                return self._rejection()
            case "stopped" if self._stop:
                return Notice("stopped this run.", self._stop.by)
            case _:
                return self._answer(fact.answer, mention)

    def _answer(self, text: str, mention: str = "") -> Answer:
        asked = {prompt.by for prompt in self._prompts.values()}
        decided = {one.submitted.by for one in self._asked.values() if one.submitted}
        voted = {by for one in self._asked.values() for by in one.votes}
        return Answer(mask(text), mention, frozenset(asked | decided | voted))

    def _rejection(self) -> Notice:
        """Who ended the run, and why: the newest reject that says so, or else the newest."""
        decided = [one.submitted for one in self._asked.values() if one.submitted]
        rejects = [(one.decision, one.by) for one in decided if isinstance(one.decision, Reject)]
        if not rejects:
            return Notice("It was rejected, so I stopped here.")
        decision, by = next((one for one in reversed(rejects) if one[0].end), rejects[-1])
        said = mask((decision.comment or "").strip())
        return Notice("rejected it, so I stopped here." + (f" Reason: {said}" if said else ""), by)

    # -- cards ---------------------------------------------------------------------------------------------------------

    def _card(self, session_id: str, one: _Asked) -> Card:
        batch = [other for other in self._asked.values() if self._run_batch(other) == self._run_batch(one)]
        same = [other for other in batch if _effect(other) == _effect(one)]
        alike = (same.index(one) + 1, len(same)) if len(same) > 1 else None
        card = Card(
            session_id, one.task, batch.index(one) + 1, len(batch), alike, agent_says=one.says, approved_args=_edit(one)
        )
        undecided = sum(1 for other in batch if _waits(other))
        return replace(card, decided=len(batch) - undecided, state=_state(one, undecided))

    @staticmethod
    def _run_batch(one: _Asked) -> tuple[str, int]:
        return one.task.run_id, one.batch


def _effect(one: _Asked) -> str:
    return effect(one.task.tool_name, one.task.args)


def _waits(one: _Asked) -> bool:
    return one.submitted is None and one.end is None


def _edit(one: _Asked) -> Args | None:
    """The approved arguments, where a person changed them."""
    decision = one.submitted.decision if one.submitted else None
    if not isinstance(decision, Approve) or decision.modified_args is None:
        return None
    return edited(one.task.args, decision)


def _state(one: _Asked, still_waiting: int) -> State:
    if one.submitted is None:
        return Waiting(tuple(one.votes)) if one.end is None else Closed(one.end.content, one.stopped_by)
    decision, submitted = one.submitted.decision, one.submitted
    if isinstance(decision, Expired):
        return Lapsed()
    released = submitted.released
    rule = (getattr(decision, "comment", "") or "a rule") if released else ""
    if released and isinstance(decision, Approve):
        decision = replace(decision, comment=None)
    votes = tuple(one.votes) if lets_run(decision) and not released else ()
    decided = Decided("" if released else submitted.by, submitted.at, decision, still_waiting, rule, votes)
    if one.end is None:
        return decided
    if lets_run(decision):
        found = _EXIT.findall(one.end.content)
        code = int(found[-1]) if found and one.task.tool_name == "bash" else None
        return Ran(replace(decided, waits_for=0), one.end.outcome, code, one.end.seconds)
    return replace(decided, waits_for=0)


def status(story: Story, waiting: Sequence[Asked], queued: int) -> str:
    """How things stand, for whoever asks."""
    if story.over:
        return "Nothing is running in this thread."
    if not waiting:
        return "A run is going on. `!stop` stops it."
    lines = [words.waiting(one) for one in waiting[:20]]
    more = f"\n{queued} more message{'s' if queued > 1 else ''} will be read after that." if queued else ""
    return "Waiting for a decision on:\n" + "\n".join(lines) + more
