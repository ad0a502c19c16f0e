"""What to do next: every standing of a call, every end of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from harness_core.events import (
    Event,
    HITLDecided,
    HITLSubmitted,
    Inspected,
    ModelFailed,
    PromptAmended,
    Prompted,
    RuleChanged,
    RunStart,
    StopRequested,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import Approve, Decision, Expired, Happened, HITLTask, Reject, Rerun, Skip
from harness_core.hooks import Deny, Rewrite
from harness_core.permissions.judge import Gate
from harness_core.permissions.rule import PermissionRule
from harness_core.react import needs_start, next_step
from harness_core.session import fold
from harness_core.steps import Act, Apply, Begin, Close, End, Expiry, Look, Policy, Reason, Rest, Settle, Step, Suspend
from harness_core.testing import NOON, RecordingTool, ended, history, pending, reasoned, submitted, task, tool_call
from harness_core.types import Inspection, ToolCall, canonical, digest

LOOK = RecordingTool("look", read_only=True, repeatable=True)
CHANGE = RecordingTool("change")
NOTE = RecordingTool("note", read_only=True)
EDIT = RecordingTool("edit", inspect=lambda args: Inspection("a preview"))
TOOLS = {tool.spec.name: tool for tool in (LOOK, CHANGE, NOTE, EDIT)}

L1, L2, L3 = (tool_call("look", uuid=f"l{n}", n=n) for n in (1, 2, 3))
W1, W2, W3 = (tool_call("change", uuid=f"w{n}", n=n) for n in (1, 2, 3))
N1, N2 = (tool_call("note", uuid=f"n{n}", n=n) for n in (1, 2))
E1 = tool_call("edit", uuid="e1", n=1)


def policy(*rules: PermissionRule, hooks: Sequence[Any] = (), **more: Any) -> Policy:
    return Policy(Gate(TOOLS, rules, tuple(hooks)), **more)


def step(*facts: Event, by: Policy | None = None, now: float = NOON) -> Step:
    return next_step(fold(history(Prompted("hi", "U1"), RunStart("r", requested_by="U1"), *facts)), by or policy(), now)


def decided(asked: ToolCall | HITLTask, decision: Decision, *, by: str = "U2") -> tuple[Event, Event]:
    args = asked.args
    applied = HITLDecided(asked.call_uuid, "", decision, by, "", args, args, args)
    return submitted(asked, decision, by=by), applied


def uuids(acting: Step) -> list[str]:
    assert isinstance(acting, Act)
    return [c.call.call_uuid for c in acting.cleared]


def closed(step: Step) -> ToolCallEnd:
    assert isinstance(step, Close), step
    return step.end


# -- a run -------------------------------------------------------------------------------------------------------------


def test_nothing_is_to_be_done_in_an_empty_session() -> None:
    assert next_step(fold(()), policy(), NOON) == Rest()


def test_the_oldest_prompt_begins_a_run() -> None:
    trace = fold(history(Prompted("second", "U2", sent_at=2.0), Prompted("first", "U1", sent_at=1.0)))

    begin = next_step(trace, policy(), NOON)

    assert isinstance(begin, Begin)
    assert begin.prompt.by == "U1"


def test_a_run_asks_the_model_then_completes_with_its_words() -> None:
    assert step() == Reason(1, 1)
    assert step(reasoned("hello")) == End("completed", "hello")


def test_a_prompt_that_no_request_has_held_forbids_completion() -> None:
    assert step(reasoned("hello", upto=2), Prompted("wait", "U1")) == Reason(2, 1)


def test_a_prompt_withdrawn_before_anybody_read_it_asks_no_model() -> None:
    facts = history(Prompted("oops", "U1", ref="k"), RunStart("r"), PromptAmended("k"))

    ending = next_step(fold(facts), policy(), NOON)

    assert isinstance(ending, End)
    assert ending.status == "stopped"
    assert "withdrawn" in ending.answer


def test_a_failure_that_may_pass_is_tried_again_up_to_the_limit() -> None:
    failures = [ModelFailed("server", n, 1, "down") for n in (1, 2, 3)]

    assert step(failures[0]) == Reason(1, 2)
    assert step(*failures[:2]) == Reason(1, 3)
    ending = step(*failures)
    assert isinstance(ending, End)
    assert ending.status == "failed"
    assert "down" in ending.answer


@pytest.mark.parametrize("kind", ["auth", "unknown_model", "overflow"])
def test_a_failure_that_only_a_person_can_cure_fails_the_run_at_once(kind: Any) -> None:
    ending = step(ModelFailed(kind, 1, 1))

    assert isinstance(ending, End)
    assert ending.status == "failed"


def test_failures_are_counted_since_the_last_message() -> None:
    assert step(ModelFailed("server", 1, 1), ModelFailed("server", 2, 1), reasoned(L1), ended(L1)) == Reason(2, 1)


def test_the_step_limit_leaves_one_last_message_and_ends_with_what_was_said_so_far() -> None:
    before = [reasoned("half done", L1), ended(L1)]

    last = step(*before, by=policy(max_steps=1))
    assert isinstance(last, Reason)
    assert (last.step, last.limit) == (2, "steps")
    told = [*before, *last.rulings]

    for said, found in ((replace(reasoned("It is 3."), limit="steps"), "It is 3."),
                        (replace(reasoned(L2), limit="steps"), "half done"),
                        (ModelFailed("server", 1, 2, limit="steps"), "half done")):  # fmt: skip
        ending = step(*told, said, by=policy(max_steps=1))
        assert isinstance(ending, End)
        assert (ending.status, ending.limit) == ("limited", "steps")
        assert ending.answer == f"Stopped at the limit of 1 steps.\n\nSo far: {found}"
        assert [end.outcome for end in ending.ends] == ["not_run"] * len(getattr(said, "calls", ()))


def test_the_step_limit_does_not_cut_the_batch_that_the_last_step_opened() -> None:
    assert uuids(step(reasoned(L1), by=policy(max_steps=1))) == ["l1"]


def test_three_takeovers_without_a_new_fact_fail_the_run_and_answer_its_calls() -> None:
    taken = [RunStart("r", attempt=n) for n in (2, 3, 4)]

    assert isinstance(step(reasoned(W1, L1), ToolCallStart(W1), *taken[:2]), Suspend)
    ending = step(reasoned(W1, L1), ToolCallStart(W1), *taken)
    assert isinstance(ending, End)
    assert ending.status == "failed"
    assert [e.outcome for e in ending.ends] == ["unknown", "not_run"]
    assert step(*taken, ModelFailed("server", 1, 1)) == Reason(1, 2)


def test_a_stop_names_who_stopped_it_answers_all_calls_and_withdraws_what_was_queued() -> None:
    queued = Prompted("more", "U3", ref="k")
    facts = [reasoned(W1, W2, L1), ended(W1), ToolCallStart(W2), queued, StopRequested("r", "Ann")]
    facts.append(Prompted("new", "U3", ref="later"))  # is answered once the run is over

    ending = step(*facts)

    assert isinstance(ending, End)
    assert ending.status == "stopped"
    assert "Ann" in ending.answer
    assert [(e.call_uuid, e.outcome) for e in ending.ends] == [("w2", "unknown"), ("l1", "not_run")]
    assert ending.withdrawn == ("k",)


def test_a_stop_comes_before_everything_else() -> None:
    waiting = [reasoned(W1), pending(W1), *decided(W1, Approve()), StopRequested("r", "Ann")]

    ending = step(*waiting)

    assert isinstance(ending, End)
    assert [e.outcome for e in ending.ends] == ["not_run"]


def test_a_call_that_was_to_be_rerun_is_not_said_to_have_never_run() -> None:
    asked = task(W1, kind="unknown")
    facts = [reasoned(W1), ToolCallStart(W1), pending(asked), submitted(asked, Rerun()), StopRequested("r", "Ann")]

    ending = step(*facts)

    assert isinstance(ending, End)
    assert [e.outcome for e in ending.ends] == ["unknown"]


# -- a batch that has not begun ----------------------------------------------------------------------------------------


def test_calls_that_only_read_run_together_up_to_the_first_that_may_not_be_repeated() -> None:
    assert uuids(step(reasoned(L1, L2, N1, L3))) == ["l1", "l2"]
    assert uuids(step(reasoned(N1, N2))) == ["n1"]


@pytest.mark.parametrize("calls", list(permutations((L1, W1, N1))))
def test_nothing_runs_while_anything_must_be_asked(calls: tuple[ToolCall, ...]) -> None:
    asking = step(reasoned(*calls))

    assert isinstance(asking, Suspend)
    assert [t.call_uuid for t in asking.tasks] == ["w1"]
    assert step(reasoned(*calls), pending(W1)) == Rest()


def test_every_call_that_asks_becomes_a_task_of_its_own() -> None:
    asking = step(reasoned(W1, replace(W1, call_uuid="w9"), W2))

    assert isinstance(asking, Suspend)
    assert [t.call_uuid for t in asking.tasks] == ["w1", "w9", "w2"]
    assert len({t.fingerprint for t in asking.tasks}) == 3
    assert {t.requested_by for t in asking.tasks} == {"U1"}
    assert {t.run_id for t in asking.tasks} == {"r"}


def test_a_task_is_not_asked_twice_and_the_undecided_rest() -> None:
    assert step(reasoned(W1, W2), pending(W1, W2), submitted(W1, Approve())) == Rest()


def test_the_session_rests_until_the_first_expiry() -> None:
    asked = [task(W1, expires_at=NOON + 50), task(W2, expires_at=NOON + 20), task(W3)]

    assert step(reasoned(W1, W2, W3), pending(*asked)) == Rest(NOON + 20)


def test_a_call_of_no_tool_and_one_that_does_not_fit_are_answered_and_nobody_is_asked() -> None:
    broken = replace(W1, problem="The arguments are not a JSON object.")

    assert "There is no tool" in closed(step(reasoned(tool_call("__class__")))).content
    assert closed(step(reasoned(broken))).content == broken.problem
    assert closed(step(reasoned(broken))).outcome == "error"


def test_the_world_is_looked_at_before_anything_is_judged() -> None:
    looking = step(reasoned(L1, E1))
    seen = Inspected("e1", digest(canonical(E1.args)), Inspection("a preview"))

    asking = step(reasoned(L1, E1), seen)

    assert looking == Look(((E1, E1.args),))
    assert isinstance(asking, Suspend)
    assert asking.tasks[0].preview == "a preview"


def test_a_call_that_cannot_work_is_not_put_to_anybody() -> None:
    seen = Inspected("e1", digest(canonical(E1.args)), Inspection(problem="no such file"))

    assert closed(step(reasoned(E1), seen)).content == "no such file"


def test_a_refusal_on_record_does_not_close_the_question_about_its_siblings() -> None:
    asking = step(reasoned(W1, W2), ended(W1, "no", "denied"))

    assert isinstance(asking, Suspend)
    assert [t.call_uuid for t in asking.tasks] == ["w2"]


def test_with_approvals_off_what_would_ask_is_denied_and_says_so() -> None:
    end = closed(step(reasoned(W1), by=policy(can_ask=False)))

    assert end.outcome == "denied"
    assert "approvals are off" in end.content


def test_a_denied_call_is_answered_while_its_siblings_are_asked_about() -> None:
    deny = policy(PermissionRule.deny("note"))

    assert isinstance(step(reasoned(N1, W1), by=deny), Suspend)


REFUSALS: dict[str, tuple[Policy, Sequence[Event], ToolCall]] = {
    "approvals are off": (policy(can_ask=False), (), W1),
    "a rule denies it": (policy(PermissionRule.deny("change")), (), W1),
    "there is no such tool": (policy(), (), tool_call("change_", uuid="w1")),
    "it was rejected before": (
        policy(),
        [reasoned(W2), pending(W2), *decided(W2, Reject(end=False)), ended(W2, "no", "rejected")],
        replace(W2, call_uuid="w1"),
    ),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_what_is_refused_is_answered_before_anything_runs_so_that_nothing_can_widen_meanwhile(why: str) -> None:
    # If it were answered after the first call, a change of policy in between would find asking over, and run it.
    by, before, refused = REFUSALS[why]

    end = closed(step(*before, reasoned(N1, refused), by=by))

    assert end.call_uuid == "w1"
    assert end.outcome != "ok"


def test_once_a_call_has_started_asking_is_over_and_deny_is_not() -> None:
    begun = [reasoned(N1, W1), ToolCallStart(N1), ended(N1)]

    assert uuids(step(*begun)) == ["w1"]
    assert closed(step(*begun, by=policy(PermissionRule.deny("change")))).outcome == "denied"


# -- decisions ---------------------------------------------------------------------------------------------------------


def test_a_decision_is_put_on_record_before_it_takes_effect() -> None:
    edit = Approve(modified_args={"n": 7}, comment="seven")

    applying = step(reasoned(W1), pending(W1), submitted(W1, edit, by="Ann"))

    assert isinstance(applying, Apply)
    (fact,) = applying.facts
    assert (fact.by, fact.comment, fact.is_approved) == ("Ann", "seven", True)
    assert (fact.proposed, fact.approved, fact.effective) == ({"n": 1}, {"n": 7}, {"n": 7})


def test_an_approved_call_runs_with_what_was_approved_and_the_model_is_told_of_an_edit() -> None:
    plain = step(reasoned(W1), pending(W1), *decided(W1, Approve()))
    merged = step(reasoned(W1), pending(W1), *decided(W1, Approve(modified_args={"m": 2}), by="Ann"))
    replaced = step(reasoned(W1), pending(W1), *decided(W1, Approve(modified_args={}, replace_args=True)))

    assert isinstance(plain, Act)
    assert (plain.cleared[0].args, plain.cleared[0].note) == ({"n": 1}, "")
    assert isinstance(merged, Act)
    assert merged.cleared[0].args == {"n": 1, "m": 2}
    assert "Ann changed the arguments" in merged.cleared[0].note
    assert isinstance(replaced, Act)
    assert replaced.cleared[0].args == {}


def test_a_hook_cannot_rewrite_what_was_approved() -> None:
    class Halve:
        def before_tool(self, trace: Any, call: ToolCall) -> Rewrite | None:
            return Rewrite({"n": 0}) if call.name == "change" else None

    acting = step(reasoned(W1), pending(W1), *decided(W1, Approve(modified_args={"n": 9})), by=policy(hooks=[Halve()]))

    assert isinstance(acting, Act)
    assert acting.cleared[0].args == {"n": 9}


def test_a_deny_that_came_after_the_approval_wins() -> None:
    class Guard:
        def before_tool(self, trace: Any, call: ToolCall) -> Deny | None:
            return Deny("not today") if call.name == "change" else None

    approved = [reasoned(W1), pending(W1), *decided(W1, Approve())]
    by_session_rule = step(*approved, RuleChanged("added", PermissionRule.deny("change")))

    assert closed(by_session_rule).outcome == "denied"
    assert closed(step(*approved, by=policy(hooks=[Guard()]))).content == "Denied: not today"


def test_a_call_that_hooks_made_unusable_has_their_ruling_on_record() -> None:
    class Renamer:
        def before_tool(self, trace: Any, call: ToolCall) -> Rewrite:
            return Rewrite({"n": 2}, "the second one")

    seen = Inspected("e1", digest(canonical({"n": 2})), Inspection(problem="no such file"))
    closing = step(reasoned(E1), seen, by=policy(hooks=[Renamer()]))

    assert closed(closing).content == "no such file"
    assert isinstance(closing, Close)
    assert [ruling.reason for ruling in closing.rulings] == ["the second one"]


def test_an_ask_rule_that_came_after_the_approval_does_not_reopen_it() -> None:
    approved = [reasoned(W1), pending(W1), *decided(W1, Approve())]

    assert uuids(step(*approved, by=policy(PermissionRule.ask("change")))) == ["w1"]
    assert uuids(step(*approved, by=policy(can_ask=False))) == ["w1"]


def test_a_reject_or_skip_stands_whatever_rules_allow_later() -> None:
    allow = policy(PermissionRule.allow("change"))

    rejected = step(reasoned(W1), pending(W1), *decided(W1, Reject("no", end=False)), by=allow)
    skipped = step(reasoned(W1), pending(W1), *decided(W1, Skip()), by=allow)

    assert closed(rejected).outcome == "rejected"
    assert closed(skipped).outcome == "skipped"


def test_a_single_reject_ends_the_run_with_the_comment_and_its_siblings_are_not_run() -> None:
    ending = step(reasoned(L1, W1), pending(W1), *decided(W1, Reject("too dear"), by="Ann"))

    assert isinstance(ending, End)
    assert (ending.status, ending.answer, ending.quiet) == ("rejected", "too dear", True)
    assert [e.outcome for e in ending.ends] == ["not_run", "rejected"]


@pytest.mark.parametrize("comment", ["", "  ", None])
def test_an_empty_comment_gets_a_default_that_names_who(comment: str | None) -> None:
    ending = step(reasoned(W1), pending(W1), *decided(W1, Reject(comment), by="Ann"))

    assert isinstance(ending, End)
    assert "Ann" in ending.answer


def test_with_several_tasks_a_reject_is_told_and_the_run_goes_on() -> None:
    both = [reasoned(W1, W2), pending(W1, W2), *decided(W1, Reject("no", end=None)), *decided(W2, Approve())]

    assert "no" in closed(step(*both)).content
    assert uuids(step(*both, ended(W1, "no", "rejected"))) == ["w2"]


def test_a_reject_that_ends_ends_though_siblings_are_undecided_or_approved() -> None:
    facts = [
        reasoned(W1, W2, W3),
        pending(W1, W2, W3),
        submitted(W2, Approve()),
        *decided(W1, Reject("stop", end=True)),
    ]

    ending = step(*facts)

    assert isinstance(ending, End)
    assert [e.outcome for e in ending.ends] == ["rejected", "not_run", "not_run"]


def test_a_reject_that_does_not_end_lets_siblings_run() -> None:
    facts = [reasoned(L1, W1), pending(W1), *decided(W1, Reject("no", end=False))]

    assert closed(step(*facts)).outcome == "rejected"
    assert uuids(step(*facts, ended(W1, "no", "rejected"))) == ["l1"]


REJECTED = [reasoned(W1), pending(W1), *decided(W1, Reject("no", end=False), by="Ann"), ended(W1, "no", "rejected")]


def test_what_was_rejected_in_this_run_is_refused_again_without_a_card() -> None:
    again = replace(W1, call_uuid="w9")

    end = closed(step(*REJECTED, reasoned(again)))

    assert (end.call_uuid, end.outcome) == ("w9", "rejected")
    assert "Ann" in end.content


def test_another_spelling_is_another_effect_and_a_word_from_a_person_opens_it_again() -> None:
    again = replace(W1, call_uuid="w9")

    assert isinstance(step(*REJECTED, reasoned(replace(again, args={"n": 1, "why": "please"}))), Suspend)
    assert isinstance(step(*REJECTED, Prompted("do it", "U1"), reasoned(again)), Suspend)


def test_a_skip_tells_done_by_hand_from_left_out() -> None:
    done = closed(step(reasoned(W1), pending(W1), *decided(W1, Skip("it is 1", done=True), by="Ann")))
    left_out = closed(step(reasoned(W1), pending(W1), *decided(W1, Skip(), by="Ann")))

    assert "Done by hand by Ann" in done.content
    assert "it is 1" in done.content
    assert "nothing was done" in left_out.content


# -- the clock and the rules -------------------------------------------------------------------------------------------


def test_nobody_deciding_in_time_is_an_outcome_of_its_own() -> None:
    due = pending(task(W1, expires_at=NOON + 10))
    expired = submitted(task(W1), Expired(), by="clock")
    applied = HITLDecided("w1", "change", Expired(), "clock")

    assert step(reasoned(W1), due, now=NOON + 9.9) == Rest(NOON + 10)
    settling = step(reasoned(W1), due, now=NOON + 10)
    told = closed(step(reasoned(W1), due, expired, applied, now=NOON + 11))
    halted = step(reasoned(L1, W1), due, expired, by=policy(expiries={"change": Expiry(10, "halt")}), now=NOON + 11)

    assert isinstance(settling, Settle)
    assert [type(f.decision) for f in settling.facts if isinstance(f, HITLSubmitted)] == [Expired]
    assert told.outcome == "expired"
    assert isinstance(halted, End)
    assert halted.status == "stopped"
    assert [e.outcome for e in halted.ends] == ["not_run", "expired"]


def test_a_waiting_call_is_released_only_if_judging_it_afresh_allows_it() -> None:
    waiting = [reasoned(W1, W2), pending(W1, W2)]

    released = step(*waiting, RuleChanged("added", rule := PermissionRule.exactly("change", {"n": 1})))

    assert isinstance(released, Settle)
    (fact,) = released.facts
    assert isinstance(fact, HITLSubmitted)
    assert (fact.by, fact.via) == (f"rule {rule.id}", "release")
    assert step(*waiting, RuleChanged("added", PermissionRule.ask("change"))) == Rest()


def test_a_waiting_call_is_not_released_for_arguments_that_nobody_was_shown() -> None:
    class Halve:
        def before_tool(self, trace: Any, call: ToolCall) -> Rewrite:
            return Rewrite({"n": 0})

    allowed_if_halved = policy(PermissionRule.exactly("change", {"n": 0}), hooks=[Halve()])

    assert step(reasoned(W1), pending(W1), by=allowed_if_halved) == Rest()


def test_a_deny_closes_waiting_calls_at_once() -> None:
    closing = step(reasoned(W1), pending(W1), RuleChanged("added", PermissionRule.deny("change")))

    assert isinstance(closing, Settle)
    (end,) = closing.facts
    assert isinstance(end, ToolCallEnd)
    assert end.outcome == "denied"


def test_switching_approvals_off_leaves_waiting_tasks_open() -> None:
    assert step(reasoned(W1), pending(W1), by=policy(can_ask=False)) == Rest()


def test_an_expired_task_is_not_released_by_a_rule() -> None:
    due = pending(task(W1, expires_at=NOON + 10))

    settling = step(reasoned(W1), due, by=policy(PermissionRule.allow("change")), now=NOON + 20)

    assert isinstance(settling, Settle)
    assert isinstance(settling.facts[0], HITLSubmitted)
    assert settling.facts[0].decision == Expired()


# -- outcomes that nobody saw ------------------------------------------------------------------------------------------


def test_a_started_read_is_repeated_and_a_started_write_is_put_to_a_person() -> None:
    asking = step(reasoned(W1, L1), ToolCallStart(W1, {"n": 5}))

    assert uuids(step(reasoned(L1), ToolCallStart(L1))) == ["l1"]
    assert isinstance(asking, Suspend)
    (asked,) = asking.tasks
    assert (asked.kind, asked.call_uuid, asked.args) == ("unknown", "w1", {"n": 5})
    assert not asked.may_always


def test_where_nobody_can_be_asked_the_model_is_told_that_the_outcome_is_unknown() -> None:
    end = closed(step(reasoned(W1), ToolCallStart(W1), by=policy(can_ask=False)))

    assert end.outcome == "unknown"


def test_an_allow_rule_does_not_answer_what_came_of_a_call() -> None:
    allow = policy(PermissionRule.allow("change"))
    asked = task(W1, kind="unknown")

    assert isinstance(step(reasoned(W1), ToolCallStart(W1), by=allow), Suspend)
    assert step(reasoned(W1), ToolCallStart(W1), pending(asked), by=allow) == Rest()


def test_a_rerun_that_is_lost_too_is_asked_again_as_another_question() -> None:
    first = task(W1, kind="unknown")
    lost = [reasoned(W1), ToolCallStart(W1), pending(first), *decided(first, Rerun()), ToolCallStart(W1)]

    asking = step(*lost)

    assert isinstance(asking, Suspend)
    (second,) = asking.tasks
    assert second.kind == "unknown"
    assert second.fingerprint != first.fingerprint
    assert uuids(step(*lost[:-1])) == ["w1"]


def test_the_answer_to_an_earlier_question_does_not_answer_a_later_one() -> None:
    first, second = task(W1, kind="unknown"), task(W1, kind="unknown", ask_count=1)
    lost = [reasoned(W1), ToolCallStart(W1), pending(first), *decided(first, Rerun()), ToolCallStart(W1)]

    assert step(*lost, pending(second), submitted(first, Rerun())) == Rest()


def test_the_result_of_what_happened_is_what_the_person_says() -> None:
    asked = task(W1, kind="unknown")
    facts = [reasoned(W1), ToolCallStart(W1), pending(asked), *decided(asked, Happened("it is 1 now"))]

    end = closed(step(*facts))

    assert end.outcome == "ok"
    assert "it is 1 now" in end.content


UNSEEN_ENDS: list[tuple[Decision, str]] = [
    (Reject("leave it", end=False), "rejected"),
    (Skip("leave it"), "skipped"),
    (Expired(), "expired"),
]


@pytest.mark.parametrize(("decision", "outcome"), UNSEEN_ENDS)
def test_nobody_is_told_that_a_started_call_was_not_run(decision: Decision, outcome: str) -> None:
    asked = task(W1, kind="unknown")

    end = closed(step(reasoned(W1), ToolCallStart(W1), pending(asked), *decided(asked, decision)))

    assert end.outcome == outcome
    assert "may or may not have happened" in end.content
    assert "not run" not in end.content
    assert "nothing was done" not in end.content


def test_a_rerun_of_an_edited_call_still_tells_the_model_of_the_edit() -> None:
    asked, edit = task(W1), Approve(modified_args={"n": 7})
    unknown = task(replace(W1, args={"n": 7}), kind="unknown", ask_count=1)
    facts = [reasoned(W1), pending(asked), *decided(asked, edit), ToolCallStart(W1, {"n": 7}), pending(unknown)]

    acting = step(*facts, *decided(unknown, Rerun()))
    happened = closed(step(*facts, *decided(unknown, Happened("fine"))))

    assert isinstance(acting, Act)
    assert acting.cleared[0].args == {"n": 7}
    assert '{"n":7}' in acting.cleared[0].note
    assert '{"n":7}' in happened.content


def test_a_rerun_that_a_rule_denies_is_not_said_to_have_never_run() -> None:
    asked = task(W1, kind="unknown")
    facts = [reasoned(W1), ToolCallStart(W1), pending(asked), *decided(asked, Rerun())]

    end = closed(step(*facts, by=policy(PermissionRule.deny("change"))))

    assert end.outcome == "unknown"
    assert "denies" in end.content


def test_a_deny_does_not_pretend_to_know_what_came_of_a_call() -> None:
    deny = policy(PermissionRule.deny("change"), PermissionRule.deny("look"))

    assert isinstance(step(reasoned(W1), ToolCallStart(W1), by=deny), Suspend)
    repeatable = closed(step(reasoned(L1), ToolCallStart(L1), by=deny))
    assert repeatable.outcome == "unknown"
    assert "started once, and may not be run again: The rule “deny look”" in repeatable.content


# -- odd tools and hooks -----------------------------------------------------------------------------------------------


class Broken(RecordingTool):
    """A tool whose own words about its calls fail, in the named methods."""

    def __init__(self, *methods: str) -> None:
        super().__init__("broken")
        for method in methods:
            setattr(self, method, self._fail)

    def _fail(self, args: Any) -> Any:
        raise KeyError("path")


@pytest.mark.parametrize("method", ["check", "subject", "read_only", "repeatable"])
def test_a_tool_that_fails_to_describe_its_call_never_runs_unasked_and_never_stops_the_session(method: str) -> None:
    broken = tool_call("broken", uuid="b1")
    by = Policy(Gate({"broken": Broken(method)}))  # type: ignore[dict-item]

    assert not isinstance(step(reasoned(broken), by=by), Act)
    assert step(reasoned(broken), pending(broken), by=by) is not None
    assert step(reasoned(broken), pending(broken), *decided(broken, Approve()), by=by) is not None
    assert step(reasoned(broken), ToolCallStart(broken), by=by) is not None


JUNK: list[Any] = [None, "text", {"x": {1, 2}}, {"x": float("nan")}, {"x": "\ud800"}, {1: 2}]


@pytest.mark.parametrize("args", JUNK)
def test_a_rewrite_to_what_is_no_arguments_asks_about_the_call_as_it_was(args: Any) -> None:
    class Odd:
        def before_tool(self, trace: Any, call: ToolCall) -> Rewrite:
            return Rewrite(args)

    asking = step(reasoned(L1), by=policy(hooks=[Odd()]))

    assert isinstance(asking, Suspend)
    assert asking.tasks[0].args == {"n": 1}


def test_a_run_records_that_it_goes_on_only_when_it_does() -> None:
    trace = fold(history(Prompted("hi"), RunStart("r"), reasoned(W1), pending(W1)))
    running = fold(history(Prompted("hi"), RunStart("r")))

    assert not needs_start(Rest(), trace.run, False)
    assert not needs_start(End("stopped"), trace.run, False)
    assert not needs_start(Settle(()), trace.run, False)
    assert needs_start(Apply(()), trace.run, True)
    assert needs_start(Reason(1, 1), running.run, False)
    assert not needs_start(Reason(1, 1), running.run, True)
