"""A tool whose result is the answer: when a batch of such calls ends its run, and when the model is asked after all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness_core.events import (
    ContextCompressed,
    Event,
    HITLDecided,
    Prompted,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
)
from harness_core.events import ToolCallStart as Start
from harness_core.hitl import Approve, Happened, Rerun, Skip
from harness_core.hooks import Continue
from harness_core.permissions.judge import Gate
from harness_core.react import needs_start, next_step
from harness_core.replay import replay
from harness_core.results import edited_note
from harness_core.session import Folder, Trace, after, fold
from harness_core.steps import End, Policy, Reason, Step
from harness_core.testing import NOON, ended, history, pending, reasoned, submitted, task, tool_call
from harness_core.types import NO_OUTPUT, Message, Outcome

BEGIN = (Prompted("go", "U1"), RunStart("r"))
A, B = tool_call("show", uuid="a", n=1), tool_call("show", uuid="b", n=2)


def shown(call: Any, content: str, outcome: Outcome = "ok") -> tuple[Event, Event]:
    """A call of a tool that declares its result to be the answer, carried out."""
    return Start(call), replace(ended(call, content, outcome), direct=True)


def step(*facts: Event, by: Policy | None = None) -> Step:
    return next_step(fold(history(*BEGIN, *facts)), by or Policy(), NOON)


def test_the_result_of_a_direct_tool_is_the_answer_and_the_model_is_not_asked_again() -> None:
    then = step(reasoned(A), *shown(A, "42"))

    assert then == End("completed", "42")
    assert not needs_start(then, None, False)


def test_several_results_are_joined_in_the_order_of_the_calls() -> None:
    (start_a, end_a), (start_b, end_b) = shown(A, "one"), shown(B, "two\n")

    assert step(reasoned(A, B), start_a, start_b, end_b, end_a) == End("completed", "one\ntwo\n")


OTHERWISE: dict[str, Sequence[Event]] = {
    "a tool that is not direct": (Start(B), ended(B, "two")),
    "a tool that failed": shown(B, "no", "error"),
    "nothing": shown(B, NO_OUTPUT),
    "blanks": shown(B, " \n"),
    "a denied call": (ended(B, "Denied: no", "denied"),),
    "a rejected call": (ended(B, "Rejected by U2.", "rejected"),),
    "a skipped call": (ended(B, "Left out by U2.", "skipped"),),
    "an expired call": (ended(B, "Nobody decided in time.", "expired"),),
    "a call of unknown outcome": (Start(B), ended(B, "Unknown outcome", "unknown")),
    "a call that was not run": (ended(B, "Not run", "not_run"),),
}


@pytest.mark.parametrize("sibling", OTHERWISE.values(), ids=list(OTHERWISE))
def test_with_anything_else_in_the_batch_the_model_is_asked(sibling: Sequence[Event]) -> None:
    assert isinstance(step(reasoned(A, B), *shown(A, "one"), *sibling), Reason)


@pytest.mark.parametrize("sibling", OTHERWISE.values(), ids=list(OTHERWISE))
def test_and_so_it_is_where_that_is_all(sibling: Sequence[Event]) -> None:
    assert isinstance(step(reasoned(B), *sibling), Reason)


def test_what_a_person_says_of_a_lost_call_is_no_answer() -> None:
    lost = task(A, kind="unknown")
    told = submitted(lost, Happened("it is 42"), by="U2")

    settled = step(reasoned(A), Start(A), pending(lost), told, ended(A, "It had happened already, says U2."))

    assert isinstance(settled, Reason)


def test_a_lost_call_that_is_run_again_brings_the_answer() -> None:
    lost = task(A, kind="unknown")
    applied = HITLDecided("a", "show", Rerun(), "U2")

    settled = step(reasoned(A), Start(A), pending(lost), submitted(lost, Rerun()), applied, *shown(A, "42"))

    assert settled == End("completed", "42")


def test_the_line_about_an_edit_is_for_the_model_and_not_in_the_answer() -> None:
    approved = Approve(modified_args={"n": 2})
    start = Start(A, {"n": 2})
    end = replace(ended(A, edited_note("U2", {"n": 2}) + "two"), direct=True)

    assert step(reasoned(A), pending(A), submitted(A, approved), start, end) == End("completed", "two")
    empty = replace(end, content=edited_note("U2", {"n": 2}) + NO_OUTPUT)
    assert isinstance(step(reasoned(A), pending(A), submitted(A, approved), start, empty), Reason)
    unasked = step(reasoned(A), Start(A), end)  # a text of the tool's own that only looks like it
    assert unasked == End("completed", end.content)


def test_who_has_written_meanwhile_is_answered_by_the_model() -> None:
    assert isinstance(step(reasoned(A), *shown(A, "42"), Prompted("and 43?", "U1")), Reason)
    assert isinstance(step(reasoned(A), Start(A), Prompted("and 43?", "U1"), shown(A, "42")[1]), Reason)


def test_a_stop_is_a_stop() -> None:
    stopped = step(reasoned(A), *shown(A, "42"), StopRequested("r", "U9"))

    assert isinstance(stopped, End)
    assert stopped.status == "stopped"


def test_at_the_limit_of_steps_the_answer_is_still_the_answer() -> None:
    assert step(reasoned(A), *shown(A, "42"), by=Policy(max_steps=1)) == End("completed", "42")


def test_only_the_last_batch_counts() -> None:
    first = (reasoned(A), *shown(A, "42"), Prompted("more", "U1"))

    assert step(*first, reasoned("that was 42")) == End("completed", "that was 42")
    assert isinstance(step(*first, reasoned(B), ended(B, "Left out.", "skipped")), Reason)


class Wants:
    """Puts off the end once."""

    name = "wants"

    def before_stop(self, trace: Trace, answer: str) -> Continue | None:
        return Continue(f"{answer} is not enough") if trace.run and trace.run.steps == 1 else None


def test_a_hook_may_put_off_this_end_as_any_other() -> None:
    by = Policy(Gate(hooks=(Wants(),)))

    put_off = step(reasoned(A), *shown(A, "42"), by=by)

    assert isinstance(put_off, Reason)
    assert [ruled.payload["text"] for ruled in put_off.rulings] == ["42 is not enough"]


def test_it_stays_the_answer_where_the_context_is_shortened_before_the_model_is_asked() -> None:
    facts = history(*BEGIN, reasoned(A), *shown(A, "42"))
    folder = Folder()
    for fact in facts:
        folder.add(fact)
    short = ContextCompressed(0, (Message("user", "[Summary]", summary=True),), folder.ledger(), goal=0, seq=6)

    for trace in (after(fold(facts), [short]), fold([short])):
        assert next_step(trace, Policy(), NOON) == End("completed", "42")


def test_a_replay_under_a_policy_without_the_tool_comes_to_the_same_end() -> None:
    facts = history(*BEGIN, reasoned(A), *shown(A, "42"), RunEnd("completed", "42"))

    assert [r for r in replay(facts, Policy()) if r.point == "run"] == []
    (parted,) = [r for r in replay(facts, Policy(Gate(hooks=(Wants(),)))) if r.point == "run"]
    assert (parted.verdict, parted.recorded) == ("go on", "end completed")


def test_a_journal_of_before_says_nothing_of_it() -> None:
    assert ToolCallEnd("a", "42").direct is False
    assert isinstance(step(reasoned(A), Start(A), ended(A, "42")), Reason)


def test_a_skipped_call_is_no_answer_though_its_tool_is_direct() -> None:
    skipped = submitted(A, Skip("I did it", True))

    assert isinstance(step(reasoned(A), pending(A), skipped, ended(A, "Done by hand", "skipped")), Reason)
