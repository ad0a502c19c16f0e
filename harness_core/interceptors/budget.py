"""What a run, and a thread, may cost: tokens and dollars, as the facts have them.  Pure.

A limit that cannot be counted is not passed over: where the server tells neither tokens nor a cost the run ends, and
the answer says what to set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from harness_core.events import Run
from harness_core.interceptors.fields import HARNESS, KNOWN_ONLY, Count, Dollars, Share
from harness_core.session import Trace
from harness_core.tally import added, unpriced
from harness_core.types import Usage
from harness_core.verdicts import Inject, RuleClass, Stop


@dataclass(frozen=True, slots=True)
class _Account:
    """One limit and what counts against it: now, and before the last message."""

    whose: str
    limit: float
    shown: str
    used: float
    before: float


@dataclass(frozen=True, slots=True)
class Budget:
    """None is no limit. *_tokens: read and written together. *_cost: US dollars. warn_at: the share at which the model
    is told. *_price: US dollars for a million tokens, for requests whose cost the server does not tell.
    """

    __pydantic_config__: ClassVar[Any] = KNOWN_ONLY
    rule_class: ClassVar[RuleClass] = "budget"
    name: ClassVar[str] = "budget"
    run_tokens: Count | None = None
    thread_tokens: Count | None = None
    run_cost: Dollars | None = None
    thread_cost: Dollars | None = None
    warn_at: Share = 0.8
    input_price: Dollars | None = None
    output_price: Dollars | None = None

    def __post_init__(self) -> None:
        if (self.input_price is None) != (self.output_price is None):
            raise ValueError("input_price and output_price are only of use together")

    def before_model(self, trace: Trace) -> Inject | Stop | None:
        """End the run that has used up what it may; before it comes to that tell the model, once for each limit."""
        run = trace.run
        accounts = tuple(self._accounts(trace, run)) if run else ()
        if spent := [a for a in accounts if a.used >= a.limit]:
            return Stop(f"Stopped: {spent[0].whose} has used up its budget of {spent[0].shown}.", "budget")
        if run and run.last and (untold := self._untold(run.last.usage)):
            return Stop(f"Stopped: there is a budget, but the model's server does not tell {untold}", "budget")
        near = [a for a in accounts if a.before < self.warn_at * a.limit <= a.used]
        if not near:
            return None
        what = "; ".join(f"{a.whose} has used {a.used / a.limit:.0%} of its budget of {a.shown}" for a in near)
        return Inject(_NEAR.format(what=what), what)

    def _accounts(self, trace: Trace, run: Run) -> Iterator[_Account]:
        last = run.last.usage if run.last else Usage()
        latest = self._cost(last, unpriced(last))
        for whose, tokens, cost, used, untold in (
            ("this run", self.run_tokens, self.run_cost, run.usage, run.unpriced),
            ("this thread", self.thread_tokens, self.thread_cost, *_of_thread(trace, run)),
        ):
            if tokens is not None:
                yield _Account(whose, tokens, f"{tokens:,} tokens", _sum(used), _sum(used) - _sum(last))
            if cost is not None:
                spent = self._cost(used, untold)
                yield _Account(whose, cost, _dollars(cost), spent, spent - latest)

    def _cost(self, used: Usage, untold: Usage) -> float:
        """What was told, and by price what was not."""
        read = untold.input_tokens * (self.input_price or 0.0)
        written = untold.output_tokens * (self.output_price or 0.0)
        return (used.cost or 0.0) + (read + written) / 1_000_000

    def _untold(self, last: Usage) -> str:
        """What the server keeps to itself although a limit needs it; "" if nothing."""
        costs = self.run_cost is not None or self.thread_cost is not None
        priced = self.input_price is not None
        if not _sum(last) and (self.run_tokens or self.thread_tokens or (costs and priced and last.cost is None)):
            return "how many tokens a request used."
        if costs and not priced and last.cost is None:
            return "what a request costs. Set input_price and output_price of the budget, or a budget in tokens."
        return ""


def _of_thread(trace: Trace, run: Run) -> tuple[Usage, Usage]:
    """What the session used, and for a sub-agent also those that it works in: in all, and of unknown price."""
    return added(trace.usage, run.outside), added(trace.unpriced, run.outside_unpriced)


def _dollars(cost: float) -> str:
    return f"${cost:.2g}" if 0 < cost < 0.01 else f"${cost:,.2f}"


def _sum(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


_NEAR: Final = f"{HARNESS} Mind the budget: {{what}}. Do only what is still needed, then finish with what you have."
