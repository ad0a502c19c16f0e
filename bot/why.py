"""Why the calls of a thread's newest run asked, were refused or ran: what `!why` answers.  Pure.

What was decided is told from the facts. Of a call that ran unasked they hold no reason, so that one is judged again, by
the rules of now; where these would say something else, the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bot import words
from bot.inline import code, mention
from bot.limits import escape
from bot.shown import one_line, shown_args, shown_line
from harness_core.conflicts import fights, moves_of
from harness_core.events import (
    Event,
    HITLPending,
    HITLSubmitted,
    HITLVoted,
    HookRuled,
    ReasonEnd,
    RunEnd,
    RunStart,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import Approve, HITLTask, lets_run
from harness_core.replay import Ruling, verdicts
from harness_core.types import ToolCall

MOST_CALLS: Final = 8  # the newest ones
MOST_RULINGS: Final = 5
REASON: Final = 240  # characters of one reason
ARGS: Final = 80
NOTHING: Final = "Nothing has been decided in this thread yet."

_DECIDED: Final[Mapping[str, str]] = {
    "approve": "approved",
    "reject": "rejected",
    "skip": "skipped",
    "rerun": "run again",
    "happened": "said to have happened",
    "expired": "expired",
}
_SAID: Final[Mapping[str, str]] = {"allow": "run unasked", "ask": "ask", "deny": "be refused", "error": "not work"}


def newest_run(facts: Sequence[Event]) -> tuple[Event, ...]:
    """The facts from the beginning of the newest run on."""
    begins = [place for place, fact in enumerate(facts) if isinstance(fact, RunStart) and not fact.resumed]
    return tuple(facts[begins[-1] :]) if begins else tuple(facts)


def requester(facts: Sequence[Event]) -> str:
    """Who began the newest run; "" if nobody is known to have."""
    return next((fact.requested_by for fact in reversed(facts) if isinstance(fact, RunStart) and fact.requested_by), "")


def since(facts: Sequence[Event]) -> int:
    """The fact from which on the answer tells of calls; all before need not be judged again."""
    left = MOST_CALLS
    for fact in reversed(newest_run(facts)):
        left -= len(fact.calls) if isinstance(fact, ReasonEnd) else 0
        if left <= 0:
            return fact.seq or 0
    return 0


def why(facts: Sequence[Event], rulings: Sequence[Ruling]) -> str:
    """The answer, for one person in private. facts: of the session; rulings: of its replay by the policy of now."""
    run = newest_run(facts)
    calls = [call for fact in run if isinstance(fact, ReasonEnd) for call in fact.calls]
    again = {ruling.call.call_uuid: ruling for ruling in reversed(verdicts(rulings)) if ruling.call}
    told = _Told(run)
    lines = [told.line(call, again.get(call.call_uuid)) for call in reversed(calls[-MOST_CALLS:])]
    lines += [_hooked(fact) for fact in told.apart[-MOST_RULINGS:][::-1]]
    lines += [_limit(fact) for fact in run if isinstance(fact, RunEnd) and fact.limit]
    lines += [f"• *Conflict:* {_plain(str(fight), 2 * REASON)}." for fight in fights(moves_of(run))]
    if not lines:
        return NOTHING
    more = f"\n… and {len(calls) - MOST_CALLS} earlier calls" if len(calls) > MOST_CALLS else ""
    return "Why, in the newest run of this thread, the newest first:\n" + "\n".join(lines) + more


class _Told:
    """What the facts of one run tell of its calls. apart: rulings that neither refuse a call nor put it to people."""

    def __init__(self, run: Sequence[Event]) -> None:
        self.apart: list[HookRuled] = []
        self._tasks: dict[str, HITLTask] = {}
        self._votes: dict[str, list[str]] = {}
        self._decisions: dict[str, HITLSubmitted] = {}
        self._ends: dict[str, ToolCallEnd] = {}
        self._hooks: dict[str, HookRuled] = {}
        self._started: set[str] = set()
        for fact in run:
            self._add(fact)

    def _add(self, fact: Event) -> None:
        match fact:
            case HITLPending(tasks=tasks):
                self._tasks.update((task.call_uuid, task) for task in tasks)
            case HITLVoted(fingerprint=shown, by=by):
                self._votes.setdefault(shown, []).append(mention(by))
            case HITLSubmitted(fingerprint=shown):
                self._decisions[shown] = fact
            case ToolCallStart(call=call):
                self._started.add(call.call_uuid)
            case ToolCallEnd(call_uuid=uuid):
                self._ends[uuid] = fact
            case HookRuled(call_uuid=uuid, verdict="Deny" | "Ask") if uuid:
                self._hooks[uuid] = fact
            case HookRuled():
                self.apart.append(fact)

    def line(self, call: ToolCall, again: Ruling | None) -> str:
        what = f"• {_plain(call.name, 60)} {code(one_line(shown_args(call.args).text, ARGS))}"
        end, task = self._ends.get(call.call_uuid), self._tasks.get(call.call_uuid)
        hook = self._hooks.get(call.call_uuid)
        by = f" by the hook {_plain(hook.hook, 60)}" if hook else ""
        if task:
            return f"{what} *asked*{by}: {_plain(task.comment)}. {self._outcome(task)}"
        if end and end.outcome == "denied":
            return f"{what} *was refused*{by}: {_plain(end.content.removeprefix('Denied: '))}."
        if end and end.outcome != "ok":
            return f"{what} *came to {end.outcome}*: {_plain(end.content)}."
        return f"{what} {_unasked(again, begun=end is not None or call.call_uuid in self._started)}"

    def _outcome(self, task: HITLTask) -> str:
        decision, votes = self._decisions.get(task.fingerprint), self._votes.get(task.fingerprint, [])
        if decision is None:
            end = self._ends.get(task.call_uuid)
            return f"Closed: {_plain(end.content)}." if end else f"It waits (`#{task.short_id}`){_wanted(task, votes)}."
        if decision.released:
            return f"{_plain(getattr(decision.decision, 'comment', '') or 'Released by a rule')}."
        if decision.decision.action == "expired":
            return "Nobody decided in time."
        people = words.listed(votes if votes and lets_run(decision.decision) else [mention(decision.by)])
        changed = isinstance(decision.decision, Approve) and decision.decision.modified_args is not None
        return f"Then it was {_DECIDED[decision.decision.action]}{' with changes' if changed else ''} by {people}."


def _wanted(task: HITLTask, votes: Sequence[str]) -> str:
    """Who of several people approved a call that waits, and how many more must; "" where one is enough."""
    approved = [f"approved by {words.listed(votes)}"] if votes else []
    return "".join(f"; {part}" for part in (*approved, words.wanted(task, len(votes))) if part)


def _unasked(again: Ruling | None, *, begun: bool) -> str:
    if again is None or not begun:
        return "has not been decided yet."
    named = again.hook == "default" or again.hook.startswith("rule ")  # whose reason says which
    who = "" if named else f" ({_plain(again.hook, 120)})"
    if again.verdict == "allow":
        return f"*ran unasked*: {_plain(again.reason)}{who}."
    return f"*ran unasked*; by the rules of now it would {_SAID[again.verdict]}: {_plain(again.reason)}{who}."


def _hooked(fact: HookRuled) -> str:
    reason = f": {_plain(fact.reason)}." if fact.reason else ""
    return f"• the hook {_plain(fact.hook, 60)} ruled *{escape(fact.verdict)}* ({escape(fact.point)}){reason}"


def _limit(fact: RunEnd) -> str:
    return f"• the run *ended at the limit* {_plain(fact.limit, 60)}."


def _plain(text: str, most: int = REASON) -> str:
    """Untrusted text on one line; escaped, so that it mentions nobody and links nowhere."""
    return escape(shown_line(text, most)).rstrip(".")
