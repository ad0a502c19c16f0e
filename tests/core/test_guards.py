"""What each guard says about a history, and how a `[guards]` table switches and tunes them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.errors import ConfigError
from harness_core.events import Event, HookRuled, Inspected, Prompted, RunEnd, RunStart, ToolCallEnd, ToolCallStart
from harness_core.guards import GUARDS, OFF, guards_from
from harness_core.hooks import rule_class
from harness_core.interceptors.budget import Budget
from harness_core.interceptors.caps import Caps
from harness_core.interceptors.finish import Finish, promises
from harness_core.interceptors.limits import Limits
from harness_core.interceptors.lookup import Lookup
from harness_core.interceptors.looping import StopLoop
from harness_core.interceptors.refused import Refused
from harness_core.interceptors.terminal import Terminal
from harness_core.interceptors.watchdog import Watchdog
from harness_core.session import Trace, fold
from harness_core.testing import ended, history, reasoned, tool_call
from harness_core.types import ABSENT, Inspection, Outcome, ToolCall, Usage, canonical, digest
from harness_core.verdicts import Continue, Deny, Inject, Stop

BEGUN: tuple[Event, ...] = (Prompted("go", "U1"), RunStart("r"))
NUDGED = HookRuled("before_stop", "finish", "termination", "Continue")


def made(name: str, uuid: str, **args: Any) -> ToolCall:
    return tool_call(name, uuid=uuid, **args)


def ran(*calls: ToolCall, outcome: Outcome = "ok") -> tuple[Event, ...]:
    """A model message of these calls, all of which were carried out."""
    return (reasoned(*calls), *(e for one in calls for e in (ToolCallStart(one), ended(one, "done", outcome))))


def refused(call: ToolCall, outcome: Outcome = "denied") -> tuple[Event, ...]:
    return reasoned(call), ended(call, "no", outcome)


def after(*facts: Event | tuple[Event, ...]) -> Trace:
    """The session once a run has begun and all of this has happened."""
    flat = [fact for one in facts for fact in (one if isinstance(one, tuple) else (one,))]
    return fold(history(*BEGUN, *flat))


def seen(call: ToolCall, *paths: str, digests: tuple[str, ...] = ("f00d",)) -> Inspected:
    return Inspected(call.call_uuid, digest(canonical(call.args)), Inspection(paths=paths, digests=digests))


# -- a terminal tool ---------------------------------------------------------------------------------------------------

ORDER, LOOK = made("order", "a"), made("look", "b")
ENDS = Terminal(("order",))


def test_after_a_terminal_tool_has_succeeded_calls_of_later_messages_are_refused_with_what_to_do_now() -> None:
    later = made("look", "c")

    said = ENDS.before_tool(after(ran(ORDER), reasoned(later)), later)

    assert isinstance(said, Deny)
    assert "Answer now" in said.reason
    assert said.escape_key is None


def test_siblings_of_a_terminal_call_pass_on_whichever_side_of_it_they_stand() -> None:
    before, behind = made("look", "x"), made("look", "y")
    half_way = after(reasoned(before, ORDER, behind), ToolCallStart(ORDER), ended(ORDER))

    assert ENDS.before_tool(half_way, before) is None
    assert ENDS.before_tool(half_way, behind) is None


def test_a_terminal_tool_that_failed_or_was_refused_has_ended_nothing() -> None:
    for facts in (ran(ORDER, outcome="error"), refused(ORDER), refused(ORDER, "rejected")):
        assert ENDS.before_tool(after(facts, reasoned(LOOK)), LOOK) is None


def test_a_person_who_says_something_opens_what_a_terminal_tool_has_closed() -> None:
    assert ENDS.before_tool(after(ran(ORDER), Prompted("and another"), reasoned(LOOK)), LOOK) is None
    assert ENDS.before_tool(Trace(), LOOK) is None


# -- an end with empty hands -------------------------------------------------------------------------------------------


def test_an_empty_answer_is_asked_for_once_more_and_only_so_often() -> None:
    one, two = after(reasoned("")), after(NUDGED, NUDGED, reasoned(""))

    assert isinstance(Finish().before_stop(one, "  \n"), Continue)
    assert Finish().before_stop(two, "") is None
    assert Finish().before_stop(Trace(), "") is None


def test_an_answer_that_only_promises_is_asked_to_act_while_nothing_was_done() -> None:
    promise = "I will look into it. Let me check the file."

    assert isinstance(Finish().before_stop(after(reasoned(promise)), promise), Continue)
    assert Finish().before_stop(after(ran(LOOK), reasoned(promise)), promise) is None
    assert Finish().before_stop(after(refused(LOOK), reasoned(promise)), promise) is None
    assert Finish().before_stop(after(ran(LOOK), Prompted("and?"), reasoned(promise)), promise) is None


def test_a_plain_answer_ends_the_run() -> None:
    assert Finish().before_stop(after(reasoned("It is 4.")), "It is 4.") is None


@pytest.mark.parametrize(
    "answer",
    [
        "Let me check.",
        "Sure! I'll read the file now",
        "OK. I’m going to run the tests…",
        "Now let me first look at it:",
        "我来查一下。",
    ],
)
def test_a_promise_is_recognised(answer: str) -> None:
    assert promises(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Hello! Let me know what you need.",
        "I'll be here.",
        "I will run it once you have told me where.",
        "If you agree, I'll edit the file.",
        "I said I'll check it. It is done.",
        "Shall I look?",
        "The command is `let me`.",
    ],
)
def test_what_is_no_promise_is_left_alone(answer: str) -> None:
    assert not promises(answer)


@given(st.text(max_size=2_000))
def test_no_answer_is_too_odd_to_be_looked_at(answer: str) -> None:
    assert promises(answer) in (True, False)


def test_what_is_required_has_to_succeed_before_the_end() -> None:
    guard = Finish(requires=("order",))
    early = guard.before_stop(after(ran(LOOK), reasoned("done")), "done")

    assert isinstance(early, Continue)
    assert early.suggests == "order"
    assert isinstance(guard.before_stop(after(ran(ORDER, outcome="error"), reasoned("done")), "done"), Continue)
    assert guard.before_stop(after(ran(ORDER), reasoned("done")), "done") is None


# -- the watchdog ------------------------------------------------------------------------------------------------------


def failing(times: int, first: int = 0) -> tuple[Event, ...]:
    return tuple(e for n in range(first, first + times) for e in ran(made("look", f"f{n}", n=n), outcome="error"))


def test_a_run_in_which_nothing_succeeds_is_told_once_and_ended_later() -> None:
    said = [Watchdog(2, 4).before_model(after(failing(n))) for n in range(6)]

    assert [type(one).__name__ for one in said] == ["NoneType", "NoneType", "Inject", "NoneType", "Stop", "Stop"]
    assert isinstance(said[4], Stop)
    assert said[4].limit == "watchdog"


def test_the_first_success_and_a_person_s_word_begin_the_count_anew() -> None:
    success, word = ran(made("look", "ok")), Prompted("try the other one")

    assert Watchdog(2, 4).before_model(after(failing(3), success, failing(1, 10))) is None
    assert Watchdog(2, 4).before_model(after(failing(3), word, failing(1, 10))) is None
    assert isinstance(Watchdog(2, 4).before_model(after(failing(3), success, failing(2, 10))), Inject)
    assert Watchdog(2, 4).before_model(Trace()) is None


# -- caps --------------------------------------------------------------------------------------------------------------


def test_a_tool_is_run_as_often_as_it_may_and_not_once_more() -> None:
    fetches = [made("fetch", f"c{n}", n=n) for n in range(3)]
    cap = Caps({"fetch": 2})

    assert cap.before_tool(after(ran(fetches[0]), reasoned(fetches[1])), fetches[1]) is None
    over = cap.before_tool(after(ran(fetches[0]), ran(fetches[1]), reasoned(fetches[2])), fetches[2])
    assert isinstance(over, Deny)
    assert "2 times" in over.reason
    assert over.escape_key is None
    assert cap.before_tool(after(ran(*fetches), reasoned(LOOK)), LOOK) is None


def test_of_one_message_only_as_many_pass_as_are_left() -> None:
    fetches = [made("fetch", f"c{n}", n=n) for n in range(4)]
    trace = after(reasoned(*fetches))

    said = [Caps({"fetch": 2}).before_tool(trace, one) for one in fetches]

    assert [type(one).__name__ for one in said] == ["NoneType", "NoneType", "Deny", "Deny"]


def test_calls_that_did_not_run_do_not_count_and_those_that_failed_do() -> None:
    one, two, three = (made("fetch", f"c{n}", n=n) for n in range(3))
    cap = Caps({"fetch": 1})

    assert cap.before_tool(after(refused(one), reasoned(two)), two) is None
    assert cap.before_tool(after(reasoned(one, two), ended(one, "no", "denied")), two) is None
    assert isinstance(cap.before_tool(after(ran(one, outcome="error"), reasoned(three)), three), Deny)
    assert isinstance(Caps({"fetch": 0}).before_tool(after(reasoned(one)), one), Deny)


def test_siblings_that_have_run_count_as_much_as_those_that_may_yet_and_other_tools_do_not() -> None:
    one, two, three = (made("fetch", f"c{n}", n=n) for n in range(3))
    half_way = after(reasoned(one, LOOK, two, three), ToolCallStart(one), ended(one))

    assert Caps({"fetch": 2}).before_tool(half_way, two) is None
    assert isinstance(Caps({"fetch": 2}).before_tool(half_way, three), Deny)


def test_before_a_run_begins_nothing_has_been_called_and_only_what_is_never_to_be_called_is_named() -> None:
    cap = Caps({"fetch": 0, "look": 2})

    assert cap.before_tool(Trace(), LOOK) is None
    assert cap.refuses == ("fetch",)


# -- a refused effect that comes again ---------------------------------------------------------------------------------


def again(times: int, outcome: Outcome = "denied") -> list[Event]:
    return [fact for n in range(times) for fact in refused(made("pay", f"p{n}", sum=5), outcome)]


@pytest.mark.parametrize("outcome", ["denied", "rejected"])
def test_what_was_refused_and_comes_again_is_told_and_ends_the_run_in_the_end(outcome: Outcome) -> None:
    said = [Refused(2, 4).before_model(after(*again(n, outcome))) for n in range(5)]

    assert [type(one).__name__ for one in said] == ["NoneType", "NoneType", "Inject", "NoneType", "Stop"]
    assert isinstance(said[4], Stop)
    assert said[4].limit == "refused"
    assert isinstance(said[2], Inject)
    assert "pay was refused 2 times" in said[2].text


def test_only_the_same_effect_counts_and_only_what_the_last_message_asked_for() -> None:
    other = refused(made("pay", "q", sum=6))

    assert Refused(2, 4).before_model(after(refused(made("pay", "p", sum=5)), other)) is None
    assert Refused(2, 4).before_model(after(*again(3), other)) is None
    assert Refused(2, 4).before_model(Trace()) is None
    assert Refused(2, 4).before_model(after(*again(2), reasoned("I give up."))) is None


def test_of_several_that_were_refused_the_one_that_was_refused_most_often_counts() -> None:
    pay, ask = made("pay", "x", sum=5), made("ask", "y")
    both = (reasoned(pay, ask), ended(pay, "no", "denied"), ended(ask, "no", "denied"))

    said = Refused(2, 4).before_model(after(*again(1), both))

    assert isinstance(said, Inject)
    assert "pay was refused 2 times" in said.text


@pytest.mark.parametrize("guard", [Refused, Watchdog])
def test_a_run_is_told_before_it_is_ended(guard: type[Any]) -> None:
    assert guard(nudge_after=2, end_after=3)
    for end_after in (2, 1):
        with pytest.raises(ValueError, match="must be more than nudge_after"):
            guard(nudge_after=2, end_after=end_after)


def test_several_refusals_in_one_message_count_once() -> None:
    pays = [made("pay", f"p{n}", sum=5) for n in range(5)]

    assert Refused(2, 4).before_model(after(reasoned(*pays), *(ended(one, "no", "denied") for one in pays))) is None


def test_what_a_gate_refuses_that_may_be_escaped_does_not_count() -> None:
    def guessed(n: int) -> tuple[Event, ...]:
        one = made("pay", f"p{n}", sum=5)
        ruled = HookRuled("before_tool", "guess", "drift", "Deny", step=n, call_uuid=one.call_uuid, escape_key="sum")
        return reasoned(one), ruled, ended(one, "no", "denied")

    assert Refused(1, 2).before_model(after(*(guessed(n) for n in range(1, 4)))) is None


def test_a_person_s_word_and_a_call_that_ran_after_all_begin_the_count_anew() -> None:
    paid, once_more = ran(made("pay", "ok", sum=5)), refused(made("pay", "z", sum=5))

    assert Refused(2, 4).before_model(after(*again(3), paid, once_more)) is None
    assert Refused(2, 4).before_model(after(*again(3), Prompted("hm"), once_more)) is None


# -- budgets -----------------------------------------------------------------------------------------------------------


def used(*usages: Usage) -> Trace:
    steps = [
        (replace(reasoned(one), usage=usage), ToolCallStart(one), ended(one))
        for n, usage in enumerate(usages)
        for one in [made("look", f"u{n}", n=n)]
    ]
    return after(*steps)


def spend(budget: Budget, *usages: Usage) -> list[str]:
    """What the budget says after each of these messages."""
    return [type(budget.before_model(used(*usages[: n + 1]))).__name__ for n in range(len(usages))]


def test_a_budget_of_tokens_is_told_once_when_it_gets_short_and_ends_the_run_when_it_is_used_up() -> None:
    said = spend(Budget(run_tokens=1_000), *[Usage(200, 50)] * 2, Usage(300, 50), Usage(50, 0), Usage(90, 10))

    assert said == ["NoneType", "NoneType", "Inject", "NoneType", "Stop"]


def test_a_budget_of_dollars_counts_what_the_server_told() -> None:
    said = spend(Budget(run_cost=1.0), *[Usage(10, 1, cost=0.45)] * 3)
    stop = Budget(run_cost=1.0).before_model(used(*[Usage(10, 1, cost=0.45)] * 3))

    assert said == ["NoneType", "Inject", "Stop"]
    assert isinstance(stop, Stop)
    assert (stop.limit, "$1.00" in stop.answer) == ("budget", True)


@pytest.mark.parametrize(
    ("cost", "shown"), [(0.0, "$0.00."), (0.004, "$0.004."), (0.01, "$0.01."), (1234.5, "$1,234.50.")]
)
def test_a_small_budget_of_dollars_is_not_shown_as_none(cost: float, shown: str) -> None:
    stop = Budget(run_cost=cost).before_model(used(Usage(10, 1, cost=9_999.0)))

    assert isinstance(stop, Stop)
    assert stop.answer.endswith(shown)


def test_a_cost_that_nobody_told_is_not_taken_for_nothing() -> None:
    stop = Budget(run_cost=5.0).before_model(used(Usage(10, 1)))

    assert isinstance(stop, Stop)
    assert "does not tell what a request costs" in stop.answer
    assert "input_price" in stop.answer


def test_what_nobody_told_is_counted_by_price() -> None:
    priced = Budget(run_cost=1.0, input_price=2.0, output_price=10.0)

    assert spend(priced, Usage(200_000, 10_000), Usage(10, 1, cost=0.2), Usage(0, 30_000)) == [
        "NoneType",
        "NoneType",
        "Stop",
    ]


def test_a_budget_that_cannot_be_counted_ends_the_run_and_says_so() -> None:
    for budget in (Budget(thread_tokens=10), Budget(run_cost=1.0, input_price=1.0, output_price=1.0)):
        stop = budget.before_model(used(Usage()))
        assert isinstance(stop, Stop)
        assert "how many tokens" in stop.answer
    assert Budget().before_model(used(Usage())) is None


def test_a_thread_has_a_budget_of_its_own_over_all_its_runs() -> None:
    first = replace(reasoned("done"), usage=Usage(900, 50))
    trace = after(
        first,
        RunEnd("completed", "done"),
        Prompted("more"),
        RunStart("r2"),
        replace(reasoned(LOOK), usage=Usage(50, 0)),
    )

    assert Budget(run_tokens=1_000).before_model(trace) is None
    stop = Budget(thread_tokens=1_000).before_model(trace)
    assert isinstance(stop, Stop)
    assert "this thread" in stop.answer


def test_what_the_thread_had_used_before_a_sub_agent_began_counts_against_the_thread_and_not_against_its_run() -> None:
    start = RunStart("r", outside=Usage(2_000_000, 0, cost=None), outside_unpriced=Usage(2_000_000, 0))
    trace = history(Prompted("do it"), start, replace(reasoned(LOOK), usage=Usage(100, 0, cost=0.5)))
    prices = {"input_price": 1.0, "output_price": 1.0}

    assert Budget(run_tokens=1_000).before_model(fold(trace)) is None
    for budget in (Budget(thread_tokens=2_000_050), Budget(thread_cost=2.5, **prices)):
        stop = budget.before_model(fold(trace))
        assert isinstance(stop, Stop)
        assert "this thread" in stop.answer
    assert isinstance(Budget(thread_cost=3.0, **prices).before_model(fold(trace)), Inject)


# -- look before you change --------------------------------------------------------------------------------------------

EDIT = made("edit", "e", path="a.txt", old="x", new="y")


def test_a_file_that_was_not_read_in_this_run_is_not_changed_and_the_model_is_told_to_read_it() -> None:
    said = Lookup().before_tool(after(reasoned(EDIT), seen(EDIT, "a.txt")), EDIT)

    assert isinstance(said, Deny)
    assert said.suggests == "read"
    assert said.escape_key == "lookup a.txt"
    assert "Call read" in said.reason


def test_a_file_that_was_read_or_written_in_this_run_may_be_changed() -> None:
    for tool in ("read", "write"):
        first = made(tool, "r", path="./a.txt")
        read = reasoned(first), seen(first, "a.txt"), ToolCallStart(first), ended(first)
        assert Lookup().before_tool(after(read, reasoned(EDIT), seen(EDIT, "a.txt")), EDIT) is None


def test_reading_it_in_vain_or_reading_another_one_is_no_look() -> None:
    first = made("read", "r", path="a.txt")
    in_vain = reasoned(first), seen(first, "a.txt"), ToolCallStart(first), ended(first, "", "error")
    other = reasoned(first), seen(first, "b.txt"), ToolCallStart(first), ended(first)

    for facts in (in_vain, other):
        assert isinstance(Lookup().before_tool(after(facts, reasoned(EDIT), seen(EDIT, "a.txt")), EDIT), Deny)


def test_a_new_file_and_another_tool_need_no_look_and_nothing_is_said_before_the_tool_has_looked() -> None:
    write, other = made("write", "w", path="n.txt", content=""), made("bash", "b", command="rm a.txt")

    assert Lookup().before_tool(after(reasoned(write), seen(write, "n.txt", digests=(ABSENT,))), write) is None
    assert Lookup().before_tool(after(reasoned(other), seen(other, "a.txt")), other) is None
    assert Lookup().before_tool(after(reasoned(EDIT)), EDIT) is None


# -- settings ----------------------------------------------------------------------------------------------------------


def names(table: Mapping[str, object]) -> list[str]:
    return [guard.name for guard in guards_from(table)]


def test_without_a_table_all_guards_but_the_example_stand_with_their_defaults() -> None:
    assert names({}) == [guard.name for guard in GUARDS if guard.name not in OFF]
    assert guards_from({}) == (Terminal(), Finish(), Watchdog(), Limits(), Budget(), Caps(), Refused(), StopLoop())
    assert {"lookup"} == OFF


def test_a_guard_is_switched_off_on_or_tuned() -> None:
    table = tomllib.loads("""
        [guards]
        watchdog = false
        lookup = true
        finish.nudges = 1
        limits.seconds = 900
        stop_loop = { max_repeat = 4, often = [] }
        terminal.tools = ["order", "summary"]
        [guards.budget]
        run_tokens = 200_000
        thread_cost = 5
        [guards.caps]
        per_run = { webfetch = 10 }
    """)["guards"]

    assert guards_from(table) == (
        Terminal(("order", "summary")),
        Finish(nudges=1),
        Limits(seconds=900.0),
        Budget(run_tokens=200_000, thread_cost=5.0),
        Caps({"webfetch": 10}),
        Refused(),
        StopLoop(max_repeat=4, often=()),
        Lookup(),
    )


def test_one_error_names_all_that_is_wrong_and_where() -> None:
    table = tomllib.loads("""
        watchdgo = false
        lookup = "yes"
        finish.nudges = "3"
        watchdog = { nudge_after = 10, end_after = 5 }
        terminal = { tool = ["order"], tools = "order" }
        refused.nudge_after = 0
        budget = { run_cost = true, warn_at = 1.5, run_tokens = 0.5, thread_cost = nan }
        caps.per_run = { bash = -1, bsh = 3 }
        stop_loop = { often = [4], window = 65 }
    """)

    with pytest.raises(ConfigError) as caught:
        guards_from(table, tools=["bash"])

    lines = str(caught.value).splitlines()
    assert lines[0] == "The guards need correcting:"
    for start in (
        "- guards.watchdgo is not known; there are terminal, finish, watchdog",
        "- guards.lookup must be true, false or a table, not 'yes'",
        "- guards.finish.nudges must be a whole number, not '3'",
        "- guards.watchdog: end_after must be more than nudge_after",
        "- guards.terminal.tool is not known; there are tools",
        "- guards.terminal.tools must be a list, not 'order'",
        "- guards.refused.nudge_after must be greater than or equal to 1, not 0",
        "- guards.budget.run_cost must be a valid number, not True",
        "- guards.budget.warn_at must be less than or equal to 1, not 1.5",
        "- guards.budget.run_tokens must be a whole number, not 0.5",
        "- guards.budget.thread_cost must be a finite number, not nan",
        "- guards.caps.per_run.bash must be greater than or equal to 0, not -1",
        "- guards.stop_loop.window must be less than or equal to 64, not 65",
        "- guards.caps.per_run: there is no tool 'bsh'",
    ):
        assert any(line.startswith(start) for line in lines), (start, lines)
    assert len(lines) == 15


def test_a_share_of_calls_needs_both_numbers() -> None:
    assert StopLoop(often=()).interceptor.often is None
    with pytest.raises(ConfigError, match="two numbers"):
        guards_from({"stop_loop": {"often": [4]}})


def test_a_price_for_one_direction_alone_is_an_error() -> None:
    with pytest.raises(ConfigError, match="input_price and output_price"):
        guards_from({"budget": {"input_price": 1.0}})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["nudge_after", "end_after", "tools", "per_run", "run_tokens", "run_cost", "nudges", "x"])


@given(st.dictionaries(st.sampled_from([g.name for g in GUARDS]), VALUES | st.dictionaries(KEYS, VALUES, max_size=3)))
def test_any_table_gives_guards_or_a_plain_error(table: dict[str, object]) -> None:
    try:
        made = guards_from(table)
    except ConfigError as error:
        said = str(error)
    else:
        said = f"{len(made)} guards"

    assert said.startswith("The guards need correcting:\n- guards.") or said in [
        f"{n} guards" for n in range(len(GUARDS) + 1)
    ]


def test_every_guard_declares_its_class_and_only_what_guesses_can_be_escaped() -> None:
    assert {guard.name: rule_class(guard) for guard in GUARDS} == {
        "terminal": "termination",
        "finish": "termination",
        "watchdog": "termination",
        "limits": "termination",
        "budget": "budget",
        "caps": "budget",
        "refused": "repetition",
        "stop_loop": "repetition",
        "lookup": "drift",
    }


def test_an_end_that_nobody_has_recorded_counts_for_nothing() -> None:
    assert Refused().before_model(after(ToolCallEnd("nowhere", "no", "denied"))) is None
