"""When a run compresses its context before it asks the model, and when it gives up."""

from __future__ import annotations

from dataclasses import replace

from harness_core.compression.limits import Limits
from harness_core.events import ContextCompressed, Event, ModelFailed, Prompted, RunStart
from harness_core.interceptors.compression import MOST_FORCED, MOST_FUTILE, ContextCompressionInterceptor, Measure
from harness_core.react import next_step
from harness_core.session import Folder, fold
from harness_core.steps import Compress, End, Policy, Reason
from harness_core.testing import NOON, ended, history, reasoned, tool_call

POLICY = Policy(max_steps=1_000, compression=ContextCompressionInterceptor(10), measure=Measure(len))
REFUSED = ModelFailed("overflow", 1, 1, "maximum context length is 8192 tokens")


def worked(batches: int) -> list[Event]:
    """A run of so many batches, one call each."""
    calls = [tool_call("look", uuid=f"c{n}", n=n) for n in range(batches)]
    return [Prompted("goal"), RunStart("r"), *(fact for made in calls for fact in (reasoned(made), ended(made)))]


def step(*facts: Event, policy: Policy = POLICY) -> object:
    return next_step(fold(history(*facts)), policy, NOON)


def compressed(*facts: Event, fits: bool = True) -> ContextCompressed:
    """A compression after these facts that leaves out nothing, so that only its record counts."""
    folder = Folder()
    for fact in history(*facts):
        folder.add(fact)
    trace = folder.trace()
    return ContextCompressed(0, trace.messages, folder.ledger(), "test", trace.goal, fits=fits)


def test_a_context_that_is_too_large_is_compressed_before_the_model_is_asked() -> None:
    assert isinstance(step(*worked(5)), Reason)
    assert isinstance(step(*worked(6)), Compress)


def test_without_compression_or_a_measure_the_model_is_simply_asked() -> None:
    assert isinstance(step(*worked(50), policy=replace(POLICY, measure=None)), Reason)
    assert isinstance(step(*worked(50), policy=replace(POLICY, compression=None)), Reason)


def test_nothing_is_compressed_while_a_call_has_no_result() -> None:
    open_batch = [*worked(20), reasoned(tool_call("look", uuid="open"))]

    assert not isinstance(step(*open_batch), Compress | Reason)


def test_an_answer_ends_the_run_however_large_the_context_is() -> None:
    ending = step(*worked(20), reasoned("done"))

    assert isinstance(ending, End)
    assert ending.status == "completed"


def test_a_refusal_as_too_long_compresses_then_asks_again_each_time_more() -> None:
    facts = worked(4)
    for times in range(1, MOST_FORCED + 1):
        facts.append(REFUSED)
        shorter = step(*facts)
        assert isinstance(shorter, Compress)
        assert shorter.plan.forced == times
        facts.append(compressed(*facts))
        assert step(*facts) == Reason(5, times + 1)

    over = step(*facts, REFUSED)

    assert isinstance(over, End)
    assert over.status == "failed"
    assert f"shortened {MOST_FORCED} times" in over.answer
    assert "8192" in over.answer


def test_where_nothing_can_be_left_out_a_refusal_ends_the_run_at_once() -> None:
    over = step(Prompted("a long goal"), RunStart("r"), REFUSED)

    assert isinstance(over, End)
    assert "nothing left to leave out" in over.answer


def test_a_refusal_as_too_long_does_not_use_up_the_attempts_of_a_request() -> None:
    busy = ModelFailed("server", 1, 1, "busy")
    facts = [*worked(4), busy, REFUSED]

    facts.append(compressed(*facts))

    assert isinstance(step(*facts, busy, policy=replace(POLICY, model_attempts=3)), Reason)
    assert isinstance(step(*facts, busy, busy, policy=replace(POLICY, model_attempts=3)), End)


def test_without_compression_a_refusal_as_too_long_ends_the_run() -> None:
    over = step(*worked(4), REFUSED, policy=replace(POLICY, compression=None))

    assert isinstance(over, End)
    assert over.status == "failed"


def test_after_two_passes_in_vain_a_run_compresses_no_more_unless_it_is_refused() -> None:
    facts = worked(8)
    for _ in range(MOST_FUTILE):
        assert isinstance(step(*facts), Compress)
        facts.append(compressed(*facts, fits=False))

    assert isinstance(step(*facts), Reason)
    assert isinstance(step(*facts, REFUSED), Compress)


def test_with_other_limits_the_rest_of_an_interceptor_stays() -> None:
    given = ContextCompressionInterceptor(
        20, 0.8, 2, min_reserved_messages=7, per_message_cap=1_500, message_trigger_factor=1.5
    )

    changed = given.with_limits(max_messages=30)

    assert changed.limits == Limits(30, 0.8, 2, 1.5, 7, 1_500, 128_000)
    assert given.limits.max_messages == 20
    assert changed.strategy is given.strategy


def test_other_limits_leave_an_interceptor_what_it_is() -> None:
    class Mine(ContextCompressionInterceptor):
        note = "mine"

    other = Mine(20, 0.5).with_limits(30)

    assert (type(other), other.limits.max_messages, other.limits.max_context_ratio) == (Mine, 30, 0.5)
