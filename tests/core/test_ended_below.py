"""What people end by deciding on a sub-agent's call: from the inside out, and nobody's model is asked on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness_core.events import Event, HITLDecided, Prompted, RunEnd, RunStart, StopRequested, ToolCallStart
from harness_core.hitl import Expired, HITLTask, Reject
from harness_core.permissions.judge import Gate
from harness_core.react import needs_start, next_step
from harness_core.session import Trace, fold
from harness_core.steps import Child, Close, End, Expiry, Policy, Report, Rest, Step, Tell, Within
from harness_core.testing import NOON, RecordingTool, ended, history, pending, reasoned, submitted, task, tool_call

HAND, AFTER = tool_call("task", uuid="t1", agent="worker", prompt="x"), tool_call("change", uuid="c2", n=2)
ITS = tool_call("change", uuid="t1-1", n=1)
QUESTION = replace(task(ITS), agent="worker", session="s/t1")
TOOLS = {"change": RecordingTool("change"), "task": RecordingTool("task")}
NO = Reject("not on a Friday", True)


def policy(child: Child | None = None, **more: Any) -> Policy:
    return Policy(Gate(TOOLS), delegate="task", children={"s/t1": child} if child else {}, **more)


def session(*facts: Event, calls: Any = (HAND,)) -> Trace:
    begun = (Prompted("go", "U1"), RunStart("r"), reasoned(*calls), ToolCallStart(HAND, None, "s/t1"))
    return fold(history(*begun, pending(QUESTION), *facts))


def below(*facts: Event) -> Trace:
    asks = (Prompted("x"), RunStart("r1"), reasoned(ITS), pending(task(ITS)))
    return fold(history(*asks, *facts, session_id="s/t1"))


def applied(decision: Any, one: HITLTask = QUESTION) -> HITLDecided:
    return HITLDecided(one.call_uuid, one.tool_name, decision, "U2")


def rejected(decision: Any = NO) -> tuple[Event, ...]:
    return submitted(QUESTION, decision, by="U2"), applied(decision), ended(ITS, "Rejected by U2.", "rejected")


OVER = below(*rejected(), RunEnd("rejected", "not on a Friday"))


def stepped(trace: Trace, child: Child, **more: Any) -> Step:
    return next_step(trace, policy(child, **more), NOON + 20)


def test_it_ends_the_run_with_the_reviewers_reason_once_the_sub_agent_has_ended() -> None:
    step = stepped(session(*rejected()), Child(OVER, Rest()))

    assert isinstance(step, End)
    assert (step.status, step.answer, step.limit, step.quiet) == ("rejected", "not on a Friday", "", True)
    (result,) = step.ends
    assert (result.call_uuid, result.outcome) == ("t1", "error")
    assert "worker did not finish: a person rejected a call of its, and said: not on a Friday" in result.content
    assert not needs_start(step, session(*rejected()).run, False)


def test_the_calls_that_come_after_it_are_not_run() -> None:
    step = stepped(session(*rejected(), calls=(HAND, AFTER)), Child(OVER, Rest()))

    assert isinstance(step, End)
    assert [(end.call_uuid, end.outcome) for end in step.ends] == [("t1", "error"), ("c2", "not_run")]
    assert step.ends[1].content == "Not run: U2 rejected another call and ended the run."


def test_every_step_before_goes_the_way_of_the_decision() -> None:
    """Each is what a process finds that takes over after the one before."""
    submit, decide, end = rejected()
    asks, knows = below(), below(submitted(task(ITS), NO, by="U2"))
    over = Child(OVER, Rest())

    assert isinstance(stepped(session(submit), Child(asks, Rest())), Tell)
    assert isinstance(stepped(session(submit), Child(knows, next_step(knows, policy(), NOON))), Within)
    assert isinstance(stepped(session(submit), over), Report)
    assert isinstance(stepped(session(submit, decide), over), Report)
    assert isinstance(stepped(session(submit, decide, end), over), End)


@pytest.mark.parametrize("decision", [Reject("no"), Reject("no", False)])
def test_a_reject_that_does_not_say_so_ends_the_sub_agent_at_most(decision: Reject) -> None:
    child = below(*rejected(decision), RunEnd("rejected", "no"))

    assert isinstance(stepped(session(*rejected(decision)), Child(child, Rest())), Close)


def test_an_expiry_that_halts_halts_the_session_too() -> None:
    late = submitted(QUESTION, Expired(), by="clock")
    facts = (late, applied(Expired()), ended(ITS, "expired", "expired"))
    child = Child(below(late, ended(ITS, "expired", "expired"), RunEnd("stopped", "halted", "expiry")), Rest())

    halted = stepped(session(*facts), child, expiries={"change": Expiry(5, "halt")})
    told = stepped(session(*facts), child, expiries={"change": Expiry(5, "tell")})

    assert isinstance(halted, End)
    assert (halted.status, halted.limit) == ("stopped", "expiry")
    assert isinstance(told, Close)


def test_it_ends_the_run_though_the_sub_agents_journal_is_gone() -> None:
    submit = rejected()[0]

    reports = next_step(session(submit), policy(), NOON)
    step = next_step(session(submit, ended(ITS, "unknown", "unknown")), policy(), NOON)

    assert isinstance(reports, Report)
    assert isinstance(step, End)
    assert (step.status, step.answer) == ("rejected", "not on a Friday")
    assert step.ends[0].outcome == "error"


@pytest.mark.parametrize("child", [None, Child(Trace(), Rest())], ids=["unknown", "empty"])
def test_a_stop_closes_the_questions_of_a_sub_agent_whose_journal_is_gone(child: Child | None) -> None:
    stopped = (StopRequested("r", "U9"),)

    reports = next_step(session(*stopped), policy(child), NOON)

    assert isinstance(reports, Report)
    assert isinstance(next_step(session(*stopped, *reports.facts), policy(child), NOON), End)


def test_what_a_person_ended_is_no_more_asked_at_the_limit_of_time() -> None:
    step = stepped(session(*rejected()), Child(OVER, Rest()), max_seconds=1.0)

    assert isinstance(step, End)
    assert step.status == "rejected"


def test_it_ends_the_runs_of_two_agents_one_within_the_other() -> None:
    deeper = replace(QUESTION, session="s/t1/u1")
    inner = tool_call("task", uuid="u1", agent="clerk", prompt="y")
    asks = (Prompted("x"), RunStart("r1"), reasoned(inner), ToolCallStart(inner, None, "s/t1/u1"), pending(deeper))
    middle = fold(history(*asks, *rejected(), session_id="s/t1"))
    innermost = fold(history(Prompted("y"), RunStart("r2"), reasoned(ITS), pending(task(ITS)), *rejected(),
                             RunEnd("rejected", "not on a Friday"), session_id="s/t1/u1"))  # fmt: skip
    within = replace(policy(), children={"s/t1/u1": Child(innermost, Rest())})

    ends = next_step(middle, within, NOON + 20)

    assert isinstance(ends, End)
    assert (ends.status, ends.answer) == ("rejected", "not on a Friday")
    assert isinstance(stepped(session(*rejected()), Child(middle, ends)), Within)
