"""Replayed sessions as text and JSON: one timeline, or what would have changed per rule.  Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bot.shown import shown_line
from bot.timeline import TEXT, called, clock, moment
from harness_core.conflicts import fights, moves_replayed
from harness_core.masking import mask_args
from harness_core.replay import GATE, Ruling

SHOWN_CALLS: Final = 10  # per rule and change, in the table; the JSON has all
PARTED: Final = (
    "       ---- from here on it would have gone another way; what follows holds only if the model had said the same"
)

Replayed = Mapping[str, Sequence[Ruling]]  # by session


# -- one session -------------------------------------------------------------------------------------------------------


def replayed(rulings: Sequence[Ruling]) -> Iterator[str]:
    """The timeline of one session under another policy, and what it comes to."""
    yield "  seq  time      step    point               verdict — by whom: why"
    parted = False
    for ruling in rulings:
        if ruling.conditional and not parted:
            parted = True
            yield PARTED
        yield _line(ruling)
    for fight in fights(moves_replayed(rulings)):
        yield f"{fight.seq:>5}  CONFLICT: {shown_line(str(fight), 2 * TEXT)}"
    yield _sum(rulings)


def _sum(rulings: Sequence[Ruling]) -> str:
    """What it all comes to."""
    different = sum(ruling.differs for ruling in rulings)
    compared = f"{_many(len(rulings), 'verdict')}, {f'{different} not' if different else 'all'} as recorded"
    if first := next((ruling.seq for ruling in rulings if ruling.diverges), None):
        return f"{compared}: from fact {first} on (→) the session would have gone another way."
    return f"{compared}{', but' if different else ':'} the session would have gone the same way."


def _line(ruling: Ruling) -> str:
    mark = "→" if ruling.diverges else "?" if ruling.conditional else " "
    was = f" (recorded: {ruling.recorded})" if ruling.differs else ""
    about = f"  {called(ruling.call.name, ruling.call.args)}" if ruling.call else ""
    who, why = shown_line(ruling.hook, 80), shown_line(ruling.reason, TEXT)
    said = f"{who}: {why}" if why else who
    at = f"{ruling.seq:>5}  {clock(ruling.at)}  {ruling.step:>4}"
    return f"{at}  {mark} {ruling.point:<18}  {ruling.verdict}{was}{about} — {said}"


# -- many sessions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """One call on which the policy says something else than the recording."""

    session_id: str
    ruling: Ruling

    @property
    def words(self) -> str:
        """From what to what."""
        return f"{self.ruling.recorded} → {self.ruling.verdict}"


def changes(sessions: Replayed) -> list[Change]:
    """Every call whose verdict would have been another."""
    found = (Change(session_id, one) for session_id, rulings in sessions.items() for one in rulings)
    return [change for change in found if change.ruling.point == GATE and change.ruling.differs]


def backtested(sessions: Replayed, unused: Sequence[str] = ()) -> Iterator[str]:
    """The table: per rule what it would have changed, and which calls. unused: rules that never decided a call."""
    calls = [one for rulings in sessions.values() for one in rulings if one.point == GATE]
    found = changes(sessions)
    yield f"{_many(len(sessions), 'session')}, {_many(len(calls), 'verdict')} on calls: {len(found)} would be another."
    if found:
        yield ""
        yield f"{'change':<14}  {'calls':>5}  {'certain':>7}  decided by"
    for by, its in _per_rule(found).items():
        for words, same in its.items():
            certain = sum(not one.ruling.conditional for one in same)
            yield f"{words:<14}  {len(same):>5}  {certain:>7}  {shown_line(by, 100)}"
            yield from (_example(one) for one in same[:SHOWN_CALLS])
            if len(same) > SHOWN_CALLS:
                yield f"{'':<16}… and {len(same) - SHOWN_CALLS} more (--json has all)"
    if any(one.ruling.conditional for one in found):
        yield ""
        yield "A call marked ? comes after one that would have changed the course: certain is only what comes before."
    if unused:
        yield ""
        yield "Rules that decided no recorded call: " + "; ".join(shown_line(rule, 100) for rule in unused)


def _per_rule(found: Iterable[Change]) -> Mapping[str, Mapping[str, list[Change]]]:
    """By who decided, then by what it changes; what changes most comes first."""
    rules: dict[str, dict[str, list[Change]]] = defaultdict(lambda: defaultdict(list))
    for change in found:
        rules[change.ruling.hook][change.words].append(change)
    return dict(sorted(rules.items(), key=lambda one: (-sum(map(len, one[1].values())), one[0])))


def _example(change: Change) -> str:
    ruling = change.ruling
    mark = "?" if ruling.conditional else " "
    about = called(ruling.call.name, ruling.call.args) if ruling.call else ""
    return f"{'':<14}{mark} {moment(ruling.at)}  {about}  ({change.session_id} at {ruling.seq})"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


# -- as JSON -----------------------------------------------------------------------------------------------------------


def ruling_json(session_id: str, ruling: Ruling) -> dict[str, Any]:
    """One verdict for programs. Arguments are masked like everywhere."""
    call = ruling.call
    return {
        "session": session_id,
        "seq": ruling.seq,
        "at": ruling.at,
        "run": ruling.run_id,
        "step": ruling.step,
        "point": ruling.point,
        "by": shown_line(ruling.hook, 500),
        "verdict": ruling.verdict,
        "recorded": ruling.recorded or None,
        "reason": shown_line(ruling.reason, 1_000),
        "tool": call.name if call else None,
        "args": mask_args(call.args) if call else None,
        "diverges": ruling.diverges,
        "conditional": ruling.conditional,
    }


def backtest_json(sessions: Replayed, unused: Sequence[str] = ()) -> dict[str, Any]:
    """The whole backtest for programs: per rule the counts, and every call that changes."""
    calls = [one for rulings in sessions.values() for one in rulings if one.point == GATE]
    per_rule = _per_rule(changes(sessions)).items()
    return {
        "sessions": len(sessions),
        "calls": len(calls),
        "rules": {shown_line(by, 500): {words: len(same) for words, same in its.items()} for by, its in per_rule},
        "unused": [shown_line(rule, 500) for rule in unused],
        "changes": [ruling_json(change.session_id, change.ruling) for change in changes(sessions)],
    }
