"""A model that goes round in circles is told, then refused, then ended; one that gets on is left alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, cycle, islice

import pytest

from harness_core.events import Event, Prompted, RunEnd, RunStart
from harness_core.hitl import Approve
from harness_core.hooks import Deny, Inject, Stop
from harness_core.interceptors.stop_loop import StopLoopInterceptor
from harness_core.session import Trace, fold
from harness_core.testing import ended, history, pending, reasoned, submitted, tool_call
from harness_core.types import Outcome, ToolCall

Said = tuple[str, str] | tuple[str, str, Outcome]  # tool and argument in one word, what came of it


def batches(*steps: Said | list[Said]) -> list[Event]:
    """A run of model messages, each with one call or several, and their results."""
    facts: list[Event] = [Prompted("go"), RunStart("r")]
    uuids = count(1)
    for step in steps:
        calls = [(call(said[0], f"c{next(uuids)}"), *said[1:]) for said in (step if isinstance(step, list) else [step])]
        facts += [reasoned(*(made for made, *_ in calls)), *(ended(*made) for made in calls)]
    return facts


def call(word: str, uuid: str = "open") -> ToolCall:
    return tool_call(word[0], uuid=uuid, of=word[1:])


def trace(*steps: Said | list[Said], then: tuple[str, ...] = ()) -> Trace:
    """The session after these batches; `then` are the calls of the batch that is open."""
    facts = batches(*steps)
    if then:
        facts.append(reasoned(*(call(word, f"open{n}") for n, word in enumerate(then))))
    return fold(history(*facts))


@dataclass(frozen=True)
class Refuse:
    """These calls of the open batch are denied."""

    calls: tuple[str, ...]
    reason: str


def verdict(*steps: Said | list[Said], then: tuple[str, ...] = (), by: StopLoopInterceptor | None = None) -> object:
    """What is made of these results, or of the message with the calls `then` after them."""
    guard = by or StopLoopInterceptor()
    if not then:
        return guard.before_model(trace(*steps))
    opened = trace(*steps, then=then)
    calls = [state.call for state in opened.batch]
    if ending := guard.after_model(trace(*steps), reasoned(*calls)):
        return ending
    denied = {made.call_uuid: said for made in calls if (said := guard.before_tool(opened, made))}
    return Refuse(tuple(denied), next(iter(denied.values())).reason) if denied else None


def nudges(*steps: Said, by: StopLoopInterceptor | None = None) -> list[int]:
    """After which of these steps the model is told something."""
    return [n for n in range(1, len(steps) + 1) if isinstance(verdict(*steps[:n], by=by), Inject)]


A: Said = ("a", "same")
B: Said = ("b", "same")
C: Said = ("c", "same")
D: Said = ("d", "same")
QUIET = StopLoopInterceptor(escalate=False, often=None)


def poll(n: int) -> Said:
    return "a", f"{n} %"


def test_the_defaults_and_the_least_that_is_taken() -> None:
    given, least = StopLoopInterceptor(), StopLoopInterceptor(1, 2)

    assert (given.max_repeat, given.window, given.escalate) == (3, 8, True)
    assert (least.max_repeat, least.window) == (2, 4)
    assert (StopLoopInterceptor(5, 12).max_repeat, StopLoopInterceptor(5, 12).window) == (5, 12)


def test_nothing_is_said_of_nothing() -> None:
    assert StopLoopInterceptor().before_model(Trace()) is None
    assert StopLoopInterceptor().after_model(Trace(), reasoned(call("a"))) is None
    assert verdict() is None
    assert verdict(then=("a",)) is None


def test_the_same_call_with_the_same_result_three_times_is_told() -> None:
    told = verdict(A, A, A)

    assert verdict(A, A) is None
    assert isinstance(told, Inject)
    assert "Loop detected" in told.text
    assert "a brought the same result for the same arguments 3 times" in told.text
    assert "Pause" in told.text


def test_three_different_calls_are_no_loop() -> None:
    assert verdict(A, B, A) is None
    assert verdict(("a1", "same"), ("a2", "same"), ("a1", "same")) is None


def test_a_poll_whose_result_changes_is_no_loop() -> None:
    many = [poll(n) for n in range(20)]

    assert nudges(*many) == []
    assert verdict(*many, then=("a",)) is None


def test_a_result_that_changed_begins_the_count_anew() -> None:
    assert nudges(A, A, ("a", "new"), A, A, by=QUIET) == []
    assert verdict(A, A, A, ("a", "new"), then=("a",)) is None


def test_circles_of_three_with_the_same_results_are_found() -> None:
    assert nudges(A, B, C, A, B, C)[:1] == [6]
    assert nudges(A, B, C, D, A, B, C, D, by=QUIET) == [8]


def test_circles_of_two_are_found_by_counting() -> None:
    assert nudges(A, B, A, B, A, by=QUIET) == [5]


def test_a_circle_with_changing_results_is_none() -> None:
    assert nudges(*(("abc"[n % 3], f"result {n}") for n in range(9)), by=QUIET) == []


def test_the_same_is_told_once_and_again_when_it_came_as_often_once_more() -> None:
    assert nudges(*[A] * 6, by=QUIET) == [3, 6]
    assert nudges(*islice(cycle([A, B, C]), 9), by=QUIET) == [6, 7, 8, 9]


def test_calls_of_one_message_count_each() -> None:
    assert isinstance(verdict([A, B], [A, B], [A, B]), Inject)
    assert isinstance(verdict([A, A, A]), Inject)


def test_what_is_longer_ago_than_the_window_does_not_count() -> None:
    four = StopLoopInterceptor(3, 4, often=None)

    assert verdict(A, B, C, D, A, by=four) is None
    assert verdict(A, B, C, A, A, by=four) is None


def test_one_tool_too_often_is_told_once() -> None:
    reads: list[Said] = [(f"r{n}", f"text {n}") for n in range(6)]

    assert nudges(*reads) == [4]
    assert nudges(reads[0], A, reads[1], B, reads[2], reads[3]) == [6]
    assert nudges(*reads, by=StopLoopInterceptor(often=None)) == []
    assert verdict(*reads, then=("r9",)) is None, "it is told, never refused"


def test_the_fourth_time_is_refused_with_what_to_do_instead() -> None:
    refused = verdict(A, A, A, then=("a", "b"))

    assert isinstance(refused, Refuse)
    assert refused.calls == ("open0",)
    assert "3 times" in refused.reason
    assert "something else" in refused.reason


def test_a_refused_call_that_is_asked_for_again_ends_the_run() -> None:
    ending = verdict(A, A, A, ("a", "Denied: no", "denied"), then=("a",))

    assert isinstance(ending, Stop)
    assert ending.limit == "loop"
    assert ending.answer.startswith("Stopped: a was asked for again")


def test_after_a_refusal_something_else_may_be_tried_and_refusals_push_nothing_out() -> None:
    denied: Said = ("a", "Denied: no", "denied")

    assert verdict(A, A, A, denied, then=("b",)) is None
    assert isinstance(verdict(A, A, A, denied, B, B, B, then=("a",)), Stop)


def test_what_repeats_with_something_new_in_between_is_told_but_not_refused() -> None:
    edits = [m for n in range(3) for m in (("t", "1 failed"), (f"e{n}", "edited"))]

    assert nudges(*edits, by=StopLoopInterceptor(often=None)) == [5]
    assert verdict(*edits, then=("t",)) is None


def test_a_circle_of_three_is_refused_in_the_end() -> None:
    assert isinstance(verdict(*islice(cycle([A, B, C]), 9), then=("a",)), Refuse)


def test_a_call_that_a_rule_refuses_again_and_again_ends_the_run_too() -> None:
    denied: Said = ("a", "Denied: a rule", "denied")

    assert isinstance(verdict(denied, denied, denied, then=("a",)), Refuse)
    assert isinstance(verdict(denied, denied, denied, denied, then=("a",)), Stop)


def test_without_escalation_it_only_tells() -> None:
    only = StopLoopInterceptor(escalate=False)

    assert isinstance(verdict(A, A, A, by=only), Inject)
    assert verdict(A, A, A, A, A, then=("a",), by=only) is None


def test_what_a_person_says_begins_everything_anew() -> None:
    facts = history(*batches(A, A, A), Prompted("try once more"), reasoned(call("a")))

    assert StopLoopInterceptor().before_tool(fold(facts), call("a")) is None


def test_another_run_begins_everything_anew() -> None:
    again = [RunStart("r2"), reasoned(call("a"))]

    facts = history(*batches(A, A, A), Prompted("again"), RunEnd("limited"), *again)
    assert StopLoopInterceptor().before_tool(fold(facts), call("a")) is None


def test_a_persons_approval_is_not_overruled() -> None:
    asked = call("a")
    facts = [*batches(A, A, A), reasoned(asked), pending(asked), submitted(asked, Approve())]
    approved = fold(history(*facts))

    assert StopLoopInterceptor().before_tool(approved, asked) is None


def test_results_of_the_open_batch_do_not_refuse_its_other_calls() -> None:
    open_calls = [call("a", f"o{n}") for n in range(5)]
    facts = [*batches(), reasoned(*open_calls), *(ended(c, "same") for c in open_calls[:4])]

    assert StopLoopInterceptor().before_tool(fold(history(*facts)), open_calls[-1]) is None


@pytest.mark.parametrize("steps", [(A, A, A), (A, A, A, ("a", "Denied: no", "denied"))])
def test_as_a_hook_it_denies_what_it_refuses(steps: tuple[Said, ...]) -> None:
    looping = trace(*steps, then=("a", "b"))

    assert isinstance(StopLoopInterceptor().before_tool(looping, looping.batch[0].call), Deny)
    assert StopLoopInterceptor().before_tool(looping, looping.batch[1].call) is None


def test_nothing_is_refused_of_which_the_model_was_never_told() -> None:
    guard, five = StopLoopInterceptor(3, 8, often=None), [(letter, "same") for letter in "abcde"]
    for length in range(5, 40):
        steps: list[Said] = list(islice(cycle(five), length))
        told = nudges(*steps, by=guard)
        refused = verdict(*steps, then=(five[length % 5][0],), by=guard)
        assert bool(told) or refused is None
