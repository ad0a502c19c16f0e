"""Finds a model that goes round in circles: first a word, then a refusal, then the end.  Pure, counted from facts.

A fingerprint is a tool, its canonical arguments and what came of it. So a poll whose result changes is no loop, nor is
a test that is run again after an edit: refused and ended is only what repeats with nothing new in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from harness_core.errors import ConfigError
from harness_core.events import RECENT, Done, ReasonEnd
from harness_core.given import listed, whole
from harness_core.hitl import Approve, Rerun
from harness_core.session import CallState, Trace
from harness_core.tally import effect_digest
from harness_core.types import ToolCall
from harness_core.verdicts import Deny, Inject, RuleClass, Stop

SHORTEST_CYCLE: Final = 3  # a shorter one is found by counting
OFTEN: Final = (4, 6)  # calls of one tool among so many

Print = tuple[str, str]  # effect and result


class StopLoopInterceptor:
    """max_repeat: how often in `window` calls the same may come of the same call (at least 2 in 4). escalate: whether
    to refuse and to end, or only to tell. often: (calls of one tool, among so many) that are told once; None for never.
    """

    name = "stop_loop"
    rule_class: RuleClass = "repetition"

    def __init__(
        self,
        max_repeat: int = 3,
        window: int = 8,
        escalate: bool = True,
        *,
        often: tuple[int, int] | None = OFTEN,
    ) -> None:
        whole("max_repeat", max_repeat, least=0)
        whole("window", window, least=0)
        if often is not None:
            for given in listed("often", often):
                whole("often", given)
            if len(often) != 2 or often[0] > often[1]:
                raise ConfigError("often must be two numbers, calls of one tool among so many, or None.")
        self.max_repeat = max(2, max_repeat)
        self.window = min(max(4, window), RECENT)
        self.escalate = escalate
        self.often = often

    def before_model(self, trace: Trace) -> Inject | None:
        """Tell the model what the results of its last batch show, once."""
        run = trace.run
        if run is None or not run.recent or run.recent[-1].step != run.steps:
            return None
        before = [d for d in run.recent if d.step != run.steps]
        known = set(self._signs(before))
        texts = [text for sign, text in self._signs(run.recent).items() if sign not in known]
        return Inject("\n".join((_LOOP, *texts, _ADVICE)), " ".join(texts)) if texts else None

    def after_model(self, trace: Trace, said: ReasonEnd) -> Stop | None:
        """End the run if the model asks again for what was refused to it."""
        over = [call.name for call in said.calls if self._level(trace.run.recent if trace.run else (), call) == 2]
        return Stop(_END.format(tools=_named(over)), "loop", "it goes round in circles") if over else None

    def before_tool(self, trace: Trace, call: ToolCall) -> Deny | None:
        """Refuse a call that has brought the same again and again. A person's approval is not overruled."""
        if trace.run is None or _approved(trace.of(call.call_uuid)):
            return None
        # Results of the open batch do not count: what was let run when it was judged is not refused half-way.
        entries = [d for d in trace.run.recent if d.step < trace.run.steps]
        return Deny(_REFUSED.format(times=self.max_repeat)) if self._level(entries, call) else None

    def _level(self, entries: Sequence[Done], call: ToolCall) -> int:
        """0 to let it run, 1 to refuse it, 2 to end the run: it was refused before, and is asked for again."""
        if not self.escalate or not self._repeats(entries):
            return 0
        effect = effect_digest(call)
        mine = [at for at, d in enumerate(entries) if d.effect == effect]
        came = [at for at in mine if entries[at].outcome != "denied"] or mine
        same = _trailing_same(entries, came)
        if len(same) < self.max_repeat or _something_new(entries[same[-self.max_repeat] :]):
            return 0
        if all(b - a >= self.window for a, b in zip(same, same[self.max_repeat - 1 :], strict=False)):
            return 0  # never so often in one window, so the model was never told
        refused = same[self.max_repeat :] if came is mine else [at for at in mine if at > came[-1]]
        return 2 if refused else 1

    def _repeats(self, entries: Sequence[Done]) -> bool:
        """Whether anything came up often enough: in most runs nothing does, and no call need be looked at closely."""
        return any(count >= self.max_repeat for count in Counter(d.effect for d in entries).values())

    # -- the results ---------------------------------------------------------------------------------------------------

    def _signs(self, recent: Sequence[Done]) -> dict[tuple[object, ...], str]:
        last = recent[-self.window :]
        found: dict[tuple[object, ...], str] = {}
        for done in {d.effect: d for d in last}.values():
            if len(_came(last, done.effect)) >= self.max_repeat:
                times = len(_came(recent, done.effect))
                # Told again each time it has come as often once more.
                found["repeat", _print(done), times // self.max_repeat] = (
                    f"{done.tool} brought the same result for the same arguments {times} times."
                )
        for cycle in self._cycles(last) if not found else ():
            found["cycle", cycle] = f"The last {len(cycle)} calls repeat the ones before, with the same results."
        for tool, count in self._too_often(recent):
            found["often", tool] = f"{tool} was called {count} times in the last {min(len(recent), self._among)} calls."
        return found

    def _cycles(self, last: Sequence[Done]) -> Iterator[frozenset[Print]]:
        prints = [_print(done) for done in last]
        for period in range(SHORTEST_CYCLE, len(prints) // 2 + 1):
            if prints[-period:] == prints[-2 * period : -period] and len(set(prints[-period:])) > 1:
                yield frozenset(prints[-period:])  # wherever it is entered, it is the same circle

    @property
    def _among(self) -> int:
        return self.often[1] if self.often else 0

    def _too_often(self, recent: Sequence[Done]) -> Iterator[tuple[str, int]]:
        if self.often is None:
            return
        last = [d for d in recent[-self.often[1] :] if d.outcome != "denied"]
        for tool in {d.tool: None for d in last}:
            count = sum(_weight([d for d in last if d.effect == effect]) for effect in _effects(last, tool))
            if count >= self.often[0]:
                yield tool, count


def _print(done: Done) -> Print:
    return done.effect, done.result


def _approved(state: CallState | None) -> bool:
    return bool(state and state.submitted and isinstance(state.submitted.decision, Approve | Rerun))


def _trailing_same(entries: Sequence[Done], places: Sequence[int]) -> list[int]:
    """Those of these places, from the last one back, where the result is that of the last one."""
    same: list[int] = []
    for at in reversed(places):
        if entries[at].result != entries[places[-1]].result:
            break
        same.append(at)
    return same[::-1]


def _something_new(entries: Sequence[Done]) -> bool:
    """Whether anything here came up only once: an edit between two runs of a test, say."""
    counts = Counter(_print(d) for d in entries if d.outcome != "denied")
    return any(count == 1 for count in counts.values())


def _came(entries: Sequence[Done], effect: str) -> list[int]:
    """Where this came with the result that it has now: another result in between begins the count anew."""
    return _trailing_same(entries, [at for at, d in enumerate(entries) if d.effect == effect])


def _effects(last: Sequence[Done], tool: str) -> list[str]:
    return list({d.effect: None for d in last if d.tool == tool})


def _weight(calls: Sequence[Done]) -> int:
    """How often these calls of one effect count: a poll, whose result is another each time, counts as one call."""
    return 1 if len({d.result for d in calls}) == len(calls) else len(calls)


def _named(tools: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(tools))


_LOOP: Final = "[Loop detected. This was written by the harness, not by a person.]"
_ADVICE: Final = (
    "Pause this line of thought. Say what you know already and what is still missing; then try another way, "
    "or finish with what you have."
)
_REFUSED: Final = (
    "the same call brought the same result {times} times, and nothing else changed, so it was not run again. "
    "That result stands. Do something else, or finish with what you have"
)
_END: Final = (
    "Stopped: {tools} was asked for again with the same arguments, after it had been refused because it only ever "
    "brought the same result."
)
