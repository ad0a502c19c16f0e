"""The loop without its effects: from what is, what to do next.  Pure.

How to read this.  A session is a list of facts, a Trace is their sum, and `next_step` answers one question: *given this
trace, this policy and this moment, what is the one thing to do now?*  The engine does it and appends what came of it,
then asks again.  There is no other state: a restart, a resume after a click, a takeover by another machine and the
first run are the same question put to the same list.

A run moves through its batches.  The model's message opens a batch; each call of it *stands* somewhere:

    broken      it cannot work: no such tool, arguments that do not fit, the tool itself says so
    unseen      judging needs what the tool sees of the world, and it has not looked yet
    refused     a rule, a hook or an earlier reject says no
    held        it must be put to a person, and has not been
    waiting     a person has been asked
    lost        it was started and nobody saw the end
    settled     a person, or the clock, decided, and it does not run
    clear       it may run
    ended       it has its result

and the batch as a whole does the first of these that applies, because the order is the safety argument:

    1. a person's end (a reject that ends the run, an expiry that halts)     End
    2. anything unseen                                                       Look
    3. what rules or the clock settle about waiting calls                    Settle
    4. anything held                                                         Suspend      nothing has run yet
    5. anything waiting                                                      Rest         nothing runs while it waits
    6. decisions not yet on record as applied                                Apply
    7. the first call that will not run                                      Close
    8. the next open call in model order                                     Act

So nothing of a batch runs while anything of it is undecided.  Once its first call has started, asking is over: later
rules may only deny (4 and 5 then arise only from a lost call, which is a new question about the world).  That is why 7
comes before 8: a refusal that was not on record by then could turn into a question that nobody is asked any more.
"""

from __future__ import annotations

from typing import Final

from harness_core import results
from harness_core.batch import batch_step, left_open
from harness_core.errors import PASSING_MODEL_ERRORS
from harness_core.events import Run
from harness_core.interceptors.compression import MOST_FORCED, MOST_FUTILE
from harness_core.session import Trace
from harness_core.steps import Begin, Compress, End, Policy, Reason, Rest, Settle, Step

MAX_TAKEOVERS: Final = 3  # of a run that does not rest, without a new fact in between: something kills whoever takes it


def next_step(trace: Trace, policy: Policy, now: float) -> Step:
    """The one thing to do now. now: seconds since the epoch."""
    run = trace.run
    if run is None:
        return Begin(trace.inbox[0]) if trace.inbox else Rest()
    if run.stop:
        return _stopped(trace, run)
    if run.takeovers >= MAX_TAKEOVERS:
        text = f"This run was taken over {MAX_TAKEOVERS} times without getting any further, so it was given up."
        return End("failed", text, ends=left_open(trace, "the run was given up"))
    if trace.batch:
        return batch_step(trace, run, policy, now)
    if not run.steps and not trace.inbox:
        return End("stopped", "The message was withdrawn before anybody read it.")
    if run.failures and _hopeless(run, policy):
        return End("failed", f"The model did not answer: {run.failures[-1].message}")
    if run.last and not run.last.calls and not trace.inbox:
        return End("completed", run.last.text)
    if run.steps >= policy.max_steps:
        said = run.last.text.strip() if run.last else ""
        text = f"Stopped at the limit of {policy.max_steps} steps." + (f" So far: {said}" if said else "")
        return End("limited", text, limit="steps")
    return _shorten(trace, run, policy) or Reason(run.steps + 1, len(run.failures) + 1)


def needs_start(step: Step, run: Run | None, started: bool) -> bool:
    """Whether the run must record that it goes on before it does this step: after a suspension, and (not `started`)
    when somebody else did the step before. What only closes a run needs no start; else a run that kills whoever takes
    it over could never be given up.
    """
    if run is None or isinstance(step, (Begin, Rest, Settle, End)):
        return False
    return run.suspended or not started


def _stopped(trace: Trace, run: Run) -> End:
    by = results.who(run.stop.by if run.stop else "")
    last = run.stop.seq or 0 if run.stop else 0
    withdrawn = tuple(p.ref for p in trace.inbox if max(run.began, run.upto) < (p.seq or 0) < last and p.ref)
    return End("stopped", f"Stopped by {by}.", ends=left_open(trace, f"{by} stopped the run"), withdrawn=withdrawn)


def _hopeless(run: Run, policy: Policy) -> bool:
    kinds = [failed.kind for failed in run.failures]
    if kinds[-1] == "overflow" and policy.compression and policy.measure:
        return False  # asking again as it is would be, but the context can be made shorter
    passing = sum(kind in PASSING_MODEL_ERRORS for kind in kinds)
    return kinds[-1] not in PASSING_MODEL_ERRORS or passing >= policy.model_attempts


def _shorten(trace: Trace, run: Run, policy: Policy) -> Compress | End | None:
    """Compress the context if it is too large, or because the model has refused it as too long: then each time more."""
    compression, measure = policy.compression, policy.measure
    if compression is None or measure is None:
        return None
    context = compression.context(trace, measure)
    refused = [failed for failed in run.failures if failed.kind == "overflow"]
    if refused and run.compressed <= (refused[-1].seq or 0):
        plan = compression.plan(context, len(refused)) if len(refused) <= MOST_FORCED else None
        return Compress(plan) if plan else _too_long(refused[-1].message, len(refused) - 1)
    if run.futile >= MOST_FUTILE:
        return None
    plan = compression.plan(context)
    return Compress(plan) if plan else None


def _too_long(message: str, times: int) -> End:
    tried = f"even after it was shortened {times} times" if times else "and there is nothing left to leave out"
    text = f"The conversation is too long for the model, {tried}. Begin a new one, or ask for less at once."
    return End("failed", f"{text} The model said: {message}")
