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
    at work     it was handed to a sub-agent, and delegate.py says what it needs; nothing else of the batch goes on
    settled     a person, or the clock, decided, and it does not run
    clear       it may run
    ended       it has its result

and the batch as a whole does the first of these that applies, because the order is the safety argument:

    1. a person's end (a reject that ends the run, an expiry that halts;     End
       of a sub-agent's call, too, once that agent has ended)
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

from dataclasses import replace
from typing import Final

from harness_core import results
from harness_core.batch import batch_step, ended_by_decision, left_open
from harness_core.delegate import at_work, down_first, needs_no_start
from harness_core.ending import SECONDS, halted, limit_reached, ruled_by_limits
from harness_core.events import Run
from harness_core.reasoning import before_model, begun, hearing, stop_or_go_on, with_room
from harness_core.session import Trace
from harness_core.steps import Begin, Compress, End, Policy, Reason, Rest, Settle, Step

MAX_TAKEOVERS: Final = 3  # of a run that does not rest, without a new fact in between: something kills whoever takes it


def next_step(trace: Trace, policy: Policy, now: float) -> Step:
    """The one thing to do now. now: seconds since the epoch."""
    trace = trace if trace.now == now else replace(trace, now=now)
    step = _next(trace, policy, now)
    if isinstance(step, Reason) and step.limit and trace.run:  # which may come right after large results
        made = with_room(step, trace, trace.run, policy)
        step = made if isinstance(made, Compress) else step
    return down_first(step, trace, policy)


def _next(trace: Trace, policy: Policy, now: float) -> Step:
    run = trace.run
    if run is None:
        return begun(trace, policy) if trace.inbox else Rest()
    if run.stop:
        return _stopped(trace, run)
    if run.takeovers >= MAX_TAKEOVERS and not at_work(trace):  # a sub-agent counts its own
        text = f"This run was taken over {MAX_TAKEOVERS} times without getting any further, so it was given up."
        return End("failed", text, ends=left_open(trace, "the run was given up"))
    if run.halted:
        return halted(trace, run, run.halted, policy, now)
    limit = limit_reached(run, policy, now)
    if ending := ended_by_decision(trace, policy):  # before a limit, which would have the model asked once more
        return ending
    if trace.batch:
        if limit and limit.limit == SECONDS and not trace.pending:
            return halted(trace, run, limit, policy, now, (ruled_by_limits(limit, run, trace),))
        return batch_step(trace, run, policy, now)
    if not run.steps and not trace.inbox:
        return End("stopped", "The message was withdrawn before anybody read it.")
    if hears := hearing(trace, run, policy, now):
        return hears
    stays, rulings = stop_or_go_on(trace, run, policy)
    if stays:
        return stays
    if limit:
        return halted(trace, run, limit, policy, now, (*rulings, ruled_by_limits(limit, run, trace)))
    return before_model(trace, run, policy, now, rulings)


def needs_start(step: Step, run: Run | None, started: bool) -> bool:
    """Whether the run must record that it goes on before it does this step: after a suspension, and (not `started`)
    when somebody else did the step before. What only closes a run needs no start; else a run that kills whoever takes
    it over could never be given up. But a run whose time seems to be over does: that nobody worked on it is not charged
    to it, and its start says since when somebody does.
    """
    if run is None or isinstance(step, (Begin, Rest, Settle)) or needs_no_start(step, run):
        return False
    if isinstance(step, End) and step.limit != SECONDS:
        return False
    return run.suspended or not started


def _stopped(trace: Trace, run: Run) -> End:
    by = results.who(run.stop.by if run.stop else "")
    last = run.stop.seq or 0 if run.stop else 0
    withdrawn = tuple(p.ref for p in trace.inbox if run.read_upto < (p.seq or 0) < last and p.ref)
    return End("stopped", f"Stopped by {by}.", ends=left_open(trace, f"{by} stopped the run"), withdrawn=withdrawn)
