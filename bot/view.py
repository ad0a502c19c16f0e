"""What is shown of a session: cards, answers and notices, as values.  Pure; `blocks` draws them.

A card is one task at one moment. It is made from our own record each time, never from what stands in Slack.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

from bot import ids, shown
from bot.ids import TaskRef
from harness_core.hitl import Decision, HITLTask
from harness_core.types import Args, Outcome

Feature = Literal["always", "edit", "view"]
FEATURES: Set[Feature] = frozenset({"always", "edit", "view"})  # what cards offer beyond deciding


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nobody has decided. votes: who approved so far, where a rule wants several people."""

    votes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decided:
    """Somebody, or a rule (its text, with by ""), decided. at: seconds since the epoch. waits_for: tasks of the same
    batch that are still undecided, so that nothing runs yet. votes: all who approved, where a rule wanted several.
    """

    by: str
    at: float
    decision: Decision
    waits_for: int = 0
    rule: str = ""
    votes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ran:
    """The approved call is over. exit: the exit code, where there is one. seconds: how long it took."""

    decided: Decided
    outcome: Outcome
    exit: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Closed:
    """Nobody needs to decide any more, and why: a stop, a deny, the end of the run. by: who stopped the run, or ""."""

    why: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Lapsed:
    """Nobody decided in time. That is no rejection."""


State = Waiting | Decided | Ran | Closed | Lapsed


@dataclass(frozen=True, slots=True)
class Card:
    """All that drawing one task needs.

    index, of: its place among the tasks of the batch, from 1. decided: how many of those are.
    alike: (k, n) if n of them would do the same.
    approvers: whom to mention, on the first card of a batch only. approved_args: what an edit made of the arguments.
    revision: how often the card was drawn before. features: what may be offered beyond deciding.
    """

    session_id: str
    task: HITLTask
    index: int = 1
    of: int = 1
    alike: tuple[int, int] | None = None
    decided: int = 0
    approvers: tuple[str, ...] = ()
    agent_says: str = ""
    state: State = Waiting()
    revision: int = 0
    approved_args: Args | None = None
    features: Set[Feature] = FEATURES

    @property
    def ref(self) -> TaskRef:
        """The task as buttons and modals name it."""
        return TaskRef(self.task.fingerprint, self.task.call_uuid)

    @property
    def block_id(self) -> str:
        """By which this drawing of the card is found again in its thread."""
        return ids.block_id(self.task.fingerprint, self.revision)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the agent says at the end. mention: whom to notify, because the answer came late; "" for nobody.

    people: who took part, by id. The agent may name them; it was told who asked and who decided.
    """

    text: str
    mention: str = ""
    people: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Notice:
    """A line of our own in the thread: who stopped the run, or rejected a call. by: it begins with this person's name;
    "" for nobody. text: shown as it is.
    """

    text: str
    by: str = ""


def several(card: Card) -> bool:
    """Whether several people must approve the same. Where a rule that came after the card wants it, a vote shows it."""
    return card.task.people > 1 or (isinstance(card.state, Waiting) and bool(card.state.votes))


def may_always(card: Card) -> bool:
    """Whether *always allow* is offered: it would work, and what the rule would hold can be read to the character."""
    task = card.task
    offered = "always" in card.features and task.may_always and task.kind == "approve" and not several(card)
    return offered and shown.shown_args(task.args).exact and shown.on_card(shown.shown_call(task)).exact
