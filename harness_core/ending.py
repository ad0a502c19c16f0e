"""How a run ends that a limit, a hook or the clock ends: with what was found so far, and a word about why.  Pure.

A limit leaves the model one last message: it is told so after all results, is asked with the same table of tools and
the same system prompt as ever, and what it calls then is not carried out. The last part of a run's time is kept for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from harness_core.batch import left_open
from harness_core.events import Halt, HookRuled, Run, RunEnd
from harness_core.hooks import run_point
from harness_core.session import Trace, after
from harness_core.steps import Close, End, Policy, Reason, Step
from harness_core.verdicts import Stop

Rulings = tuple[HookRuled, ...]

LAST_SECONDS: Final = 60.0  # of a run's time that are kept for its last message, but never more than this share:
LAST_SHARE: Final = 0.1
SECONDS: Final = "seconds"
STEPS: Final = "steps"
LIMITS: Final = "limits"  # who rules that the steps or the seconds are used up


def time_left(run: Run, policy: Policy, now: float, *, last: bool = False) -> float:
    """Seconds that are left to this run: for its work, or for its last message."""
    seconds = _seconds(run, policy)
    return seconds - (0.0 if last else _kept(seconds)) - run.elapsed(now)


def _seconds(run: Run, policy: Policy) -> float:
    """Seconds that this run may be worked on; a sub-agent's, those that its session had left for work as it began."""
    seconds = policy.max_seconds
    for spent in run.spent:
        seconds = max(seconds - _kept(seconds) - spent, 0.0)
    return seconds


def _kept(seconds: float) -> float:
    return min(LAST_SECONDS, seconds * LAST_SHARE)


def limit_reached(run: Run, policy: Policy, now: float) -> Halt | None:
    """The limit of steps or of seconds that this run has come to."""
    if time_left(run, policy, now) <= 0:
        return Halt(f"Stopped at the limit of {_seconds(run, policy):.0f} seconds.", SECONDS, "before_model")
    if run.steps >= policy.max_steps:
        return Halt(f"Stopped at the limit of {policy.max_steps} steps.", STEPS, "before_model")
    return None


def ruled_by_limits(halt: Halt, run: Run, trace: Trace) -> HookRuled:
    """The record of a limit that was reached, as if a hook had ruled it."""
    payload = {"answer": halt.answer, "limit": halt.limit}
    return HookRuled(halt.point, LIMITS, "termination", "Stop", halt.limit, run.steps, "", payload, upto=trace.seq)


def halted(trace: Trace, run: Run, halt: Halt, policy: Policy, now: float, rulings: Rulings = ()) -> Step:
    """What to do about a run that is to end. rulings: those that say so, where they are not on record yet."""
    if not _has_last_turn(halt) or _last_turn_was(run) or time_left(run, policy, now, last=True) <= 0:
        return _end(trace, halt, rulings)
    why = f"the run is at its limit of {halt.limit}"
    if ends := left_open(trace, why):  # before the model is asked, each of its calls has a result
        call = next(c.call for c in trace.batch if c.end is None)
        return Close(call, ends[0], rulings)
    return Reason(run.steps + 1, len(run.failures) + 1, rulings, halt.limit)


def closing(step: End, trace: Trace, hooks: Sequence[Any]) -> tuple[RunEnd, Rulings]:
    """The end as it is stored, and what hooks rule on it: they cannot put it off, but what one of class safety failed
    to look at is not taken for well done. trace: at the moment of the end.
    """
    end = RunEnd(step.status, step.answer, step.limit, step.withdrawn, trace.seq)
    ruled = run_point("run_end", hooks, after(trace, (*step.rulings, *step.ends)), end)
    if isinstance(ruled.verdict, Stop) and end.status == "completed":
        end = replace(end, status="stopped", answer=ruled.verdict.answer)
    return end, ruled.rulings


def _has_last_turn(halt: Halt) -> bool:
    """Not where the prompt was blocked, or the model cannot answer anyway."""
    return bool(halt.limit) and halt.point not in ("user_prompt", "model_error")


def _last_turn_was(run: Run) -> bool:
    return bool(run.last and run.last.limit) or any(failed.limit for failed in run.failures)


def _end(trace: Trace, halt: Halt, rulings: Iterable[HookRuled]) -> End:
    found = _found(trace) if halt.limit and halt.point != "user_prompt" else ""
    answer = f"{halt.answer}\n\nSo far: {found}" if found else halt.answer
    ends = left_open(trace, halt.answer.rstrip(". ").lower() or "the run was ended")
    return End("limited" if halt.limit else "stopped", answer, halt.limit, ends, rulings=tuple(rulings))


def _found(trace: Trace) -> str:
    """What the model has said last in this run; if that is nothing, what worked."""
    if trace.run and trace.run.last and trace.run.last.text.strip():
        return trace.run.last.text.strip()
    said = (m.content.strip() for m in trace.messages[trace.goal or 0 :] if m.role == "assistant")
    return next((text for text in reversed(list(said)) if text), "") or _worked(trace)


def _worked(trace: Trace) -> str:
    ended = [d.tool for d in trace.run.recent if d.outcome == "ok"] if trace.run else []
    times = Counter([*ended, *(c.call.name for c in trace.batch if c.end and c.end.outcome == "ok")])
    if not times:
        return ""
    told = (tool if count == 1 else f"{tool} ({count} times)" for tool, count in times.items())
    return f"the model has said nothing about it yet. What worked: {', '.join(told)}."
