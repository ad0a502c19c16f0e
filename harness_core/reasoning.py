"""What comes before the model is asked: prompts are heard, hooks are asked, the context is shortened.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from harness_core.compression.plan import Plan
from harness_core.compression.shape import groups
from harness_core.ending import halted
from harness_core.errors import PASSING_MODEL_ERRORS
from harness_core.events import ContextSize, Event, Halt, HookRuled, ModelFailed, Prompted, PromptHeard, Run
from harness_core.hooks import Ruled, run_point
from harness_core.interceptors.compression import MOST_FORCED, MOST_FUTILE
from harness_core.session import Trace
from harness_core.steps import Begin, Compress, End, Hear, Policy, Reason, Step
from harness_core.tally import notes_of, telling_nothing
from harness_core.types import Message
from harness_core.verdicts import Compress as Shorten
from harness_core.verdicts import Continue, Point, Stop

MOST_CONTINUED: Final = 3  # times in a row that the end is put off while nothing comes of it

Rulings = tuple[HookRuled, ...]


# -- prompts -----------------------------------------------------------------------------------------------------------


def begun(trace: Trace, policy: Policy) -> Begin:
    """Begin with the oldest prompt. What hooks rule on the prompts at hand is stored with the beginning: a run that
    ends before it asks a model leaves its prompts to the next one, and those must not be as they were.
    """
    oldest = trace.inbox[0]
    facts: list[Event] = []
    if not trace.runs and not trace.messages:
        facts += run_point("session_start", policy.gate.hooks, trace, oldest).rulings
    for prompt in _unheard(trace):
        heard, ruled = _heard(trace, policy, prompt)
        facts += heard
        if isinstance(ruled.verdict, Stop):
            break
    return Begin(oldest, tuple(facts))


def hearing(trace: Trace, run: Run, policy: Policy, now: float) -> Step | None:
    """Record what hooks ruled on prompts that joined the run; None if they said nothing."""
    facts: list[Event] = []
    for prompt in _unheard(trace):
        heard, ruled = _heard(trace, policy, prompt)
        if isinstance(ruled.verdict, Stop):
            return halted(trace, run, _halt("user_prompt", ruled.verdict), policy, now, ruled.rulings)
        facts += heard
    return Hear(tuple(facts)) if facts else None


def _unheard(trace: Trace) -> Iterable[Prompted]:
    return (prompt for prompt in trace.inbox if prompt.seq not in trace.heard)


def _heard(trace: Trace, policy: Policy, prompt: Prompted) -> tuple[list[Event], Ruled]:
    ruled = run_point("user_prompt", policy.gate.hooks, trace, prompt)
    if not ruled.rulings or isinstance(ruled.verdict, Stop):
        return [*ruled.rulings], ruled
    return [*ruled.rulings, PromptHeard(prompt.seq or 0, ruled.value.text)], ruled


def _halt(point: Point, stop: Stop) -> Halt:
    return Halt(stop.answer, stop.limit, point)


# -- the end -----------------------------------------------------------------------------------------------------------


def stop_or_go_on(trace: Trace, run: Run, policy: Policy) -> tuple[End | None, Rulings]:
    """The end, if the model is done, or its tools have brought the answer, and no hook puts that off; else what hooks
    say to go on with.
    """
    if run.last is None or (run.last.calls and not run.direct) or trace.inbox:
        return None, ()
    answer = run.direct or run.last.text
    ruled = run_point("before_stop", policy.gate.hooks, trace, answer)
    if isinstance(ruled.verdict, Stop):
        return End("stopped", ruled.verdict.answer, rulings=ruled.rulings), ()
    if not isinstance(ruled.verdict, Continue):
        return End("completed", answer, rulings=ruled.rulings), ()
    if (times := _continued(run)) < MOST_CONTINUED:
        return None, ruled.rulings
    hook = next(r.hook for r in ruled.rulings if r.verdict == "Continue")
    why = ruled.verdict.reason or ruled.verdict.text
    text = f"Stopped: {hook} asked for more {times} times, and nothing came of it. It says: {why}"
    return End("limited", f"{text}\n\nSo far: {answer}" if answer.strip() else text, hook, rulings=ruled.rulings), ()


def _continued(run: Run) -> int:
    """How often the end was put off since a tool last worked, or a person last spoke."""
    since = max(run.heard, *run.succeeded.values(), 0)
    puts_off = {r.step for r in run.rulings if r.point == "before_stop" and r.verdict == "Continue" and r.step > since}
    return len(puts_off)


# -- the request -------------------------------------------------------------------------------------------------------


def before_model(trace: Trace, run: Run, policy: Policy, now: float, rulings: Rulings) -> Step:
    """Ask the model, or what comes before that. rulings: those that had the run go on."""
    point: Point
    for point, about in _points(run):
        ruled = run_point(point, policy.gate.hooks, trace, *about)
        rulings = (*rulings, *ruled.rulings)
        if isinstance(ruled.verdict, Stop):
            return halted(trace, run, _halt(point, ruled.verdict), policy, now, rulings)
        if isinstance(ruled.verdict, Shorten) and (plan := _asked_for(trace, run, policy)):
            return _compress(trace, policy, plan, rulings)
        if about and _hopeless(run, policy):
            return End("failed", f"The model did not answer: {run.failures[-1].message}", rulings=rulings)
    return with_room(Reason(run.steps + 1, len(run.failures) + 1, rulings), trace, run, policy)


def with_room(step: Reason, trace: Trace, run: Run, policy: Policy) -> Step:
    """The request, or what comes before it where the context has no room for it."""
    return _shorten(with_all_that_it_holds(trace, step), run, policy, step.rulings) or step


def _points(run: Run) -> Iterable[tuple[Point, tuple[ModelFailed, ...]]]:
    if run.failures:
        yield "model_error", run.failures[-1:]
    yield "before_model", ()


def _hopeless(run: Run, policy: Policy) -> bool:
    kinds = [failed.kind for failed in run.failures]
    if kinds[-1] == "overflow" and policy.compression and policy.measure:
        return False  # asking again as it is would be, but the context can be made shorter
    if run.compressed > (run.failures[-1].seq or 0):
        return False  # it has been, because a hook wanted it
    passing = sum(kind in PASSING_MODEL_ERRORS for kind in kinds)
    return kinds[-1] not in PASSING_MODEL_ERRORS or passing >= policy.model_attempts


def with_all_that_it_holds(trace: Trace, step: Reason) -> Trace:
    """The session as this request shows it. Its `seq` is the last fact that the request was built from."""
    run = trace.run
    notes = notes_of(step.rulings)
    trace = replace(trace, notes=(*trace.notes, *notes)) if notes else trace
    if not step.limit or run is None:
        return trace
    # The last message of a run answers what the run was about: whoever spoke since then begins the next one.
    later = [p.seq or 0 for p in trace.inbox if (p.seq or 0) > run.read_upto]
    upto = min(later, default=trace.seq + 1) - 1
    return replace(trace, seq=upto, inbox=tuple(p for p in trace.inbox if (p.seq or 0) <= upto))


def sized(trace: Trace, policy: Policy) -> tuple[Sequence[Message], ContextSize]:
    """The messages of the next request, and how large it is."""
    if policy.compression is None or policy.measure is None:
        return trace.context, ContextSize(len(trace.context))
    context = policy.compression.context(trace, policy.measure)
    messages = (*context.messages, *context.inbox)
    return messages, ContextSize(len(messages), context.tokens, counter=policy.measure.counter)


# -- the context -------------------------------------------------------------------------------------------------------


def _asked_for(trace: Trace, run: Run, policy: Policy) -> Plan | None:
    """The compression that a hook wants; heeded once for each message or failure, and for so many failures in a row."""
    compression, measure = policy.compression, policy.measure
    since = run.failures[-1].seq if run.failures else run.last.seq if run.last else run.began
    if not compression or not measure or run.compressed > (since or 0) or len(run.failures) > MOST_FORCED:
        return None
    return compression.plan(compression.context(trace, measure), max(len(run.failures), 1))


def _shorten(trace: Trace, run: Run, policy: Policy, rulings: Rulings) -> Compress | End | None:
    """Compress the context if it is too large, or because the model has refused it as too long: then each time more."""
    compression, measure = policy.compression, policy.measure
    if compression is None or measure is None:
        return None
    context = compression.context(trace, measure)
    refused = [failed for failed in run.failures if failed.kind == "overflow"]
    if refused and run.compressed <= (refused[-1].seq or 0):
        plan = compression.plan(context, len(refused)) if len(refused) <= MOST_FORCED else None
        if plan is None:
            return _too_long(refused[-1].message, len(refused) - 1, rulings)
        return _compress(trace, policy, plan, rulings)
    if run.futile >= MOST_FUTILE:
        return None
    plan = compression.plan(context)
    return _compress(trace, policy, plan, rulings) if plan else None


def _compress(trace: Trace, policy: Policy, plan: Plan, rulings: Rulings) -> Compress:
    # What tells the model something is asked again before the request: only that which holds it is stored with it.
    ruled = run_point("before_compress", policy.gate.hooks, trace, plan)
    return Compress(_whole(trace, ruled.value), (*telling_nothing(rulings), *ruled.rulings))


def _whole(trace: Trace, plan: Plan) -> Plan:
    """The plan with a cut that parts no call from its result, wherever a hook wants it."""
    starts = (*(group.start for group in groups(trace.messages)), len(trace.messages))
    cut = max((start for start in starts if start <= plan.cut), default=0)
    return replace(plan, cut=cut, cap=max(plan.cap, 1), note=max(plan.note, 0))


def _too_long(message: str, times: int, rulings: Rulings) -> End:
    often = "" if times == 1 else f" {times} times"
    tried = f"even after it was shortened{often}" if times else "and there is nothing left to leave out"
    text = f"The conversation is too long for the model, {tried}. Begin a new one, or ask for less at once."
    return End("failed", f"{text} The model said: {message}", rulings=rulings)
