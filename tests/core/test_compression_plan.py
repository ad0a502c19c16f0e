"""Where a context is cut: what always stays, what stays together, and how small it becomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.compression.limits import Limits, reserve
from harness_core.compression.notes import DONE, EARLIER, HEAD, done, note, told
from harness_core.compression.plan import compressed, fits, plan, replaced, shown
from harness_core.compression.room import Context, room_for
from harness_core.compression.shape import fitted, groups, sized, whole
from harness_core.errors import ConfigError
from harness_core.types import Message, ToolCall

SMALL = Limits(max_messages=10)


@cache
def count(text: str) -> int:
    """A token per word, and one per ten letters in it."""
    return sum(1 + len(word) // 10 for word in text.split())


def size(message: Message) -> int:
    return sized(message, count)


def user(text: str) -> Message:
    return Message("user", text)


def says(text: str) -> Message:
    return Message("assistant", text)


def acts(*uuids: str, text: str = "", result: str = "done", **args: Any) -> list[Message]:
    """A model message with calls, and their results."""
    calls = tuple(ToolCall(uuid, "tool", {"for": uuid, **args}) for uuid in uuids)
    return [Message("assistant", text, calls), *(Message("tool", result, call_uuid=uuid) for uuid in uuids)]


def steps(many: int, start: int = 0, words: int = 1) -> list[Message]:
    return [m for n in range(start, start + many) for m in acts(f"c{n}", result="word " * words)]


def context(messages: Sequence[Message], goal: int | None = None, **more: Any) -> Context:
    return Context(tuple(messages), size, count, goal, **more)


def after(given: Context, limits: Limits = SMALL, text: str = "", forced: int = 0) -> Context:
    """The context after compression; the same where there is none."""
    given = replace(given, messages=shown(given, limits))
    made = plan(given, limits, forced)
    if made is None:
        return given
    messages, goal = compressed(given, made, text)
    return replace(given, messages=messages, goal=goal)


def paired(messages: Sequence[Message]) -> bool:
    return whole(messages) == tuple(messages)


def kept(before: Context, now: Context) -> list[Message]:
    return [m for m in now.messages if m in before.messages and m is not _goal(before)]


def _goal(given: Context) -> Message | None:
    return None if given.goal is None else given.messages[given.goal]


# -- parameters --------------------------------------------------------------------------------------------------------


def test_the_defaults_are_those_of_the_interceptor_alone() -> None:
    limits = Limits()

    assert (limits.max_messages, limits.max_context_ratio, limits.max_retries) == (15, 0.75, 3)
    assert (limits.message_trigger_factor, limits.min_reserved_messages, limits.per_message_cap) == (1.0, 0, 0)
    assert limits.default_context_length == 128_000


def test_numbers_that_are_too_small_are_raised() -> None:
    limits = Limits(max_messages=6, max_retries=0, min_reserved_messages=1, per_message_cap=-1)

    assert (limits.max_messages, limits.max_retries, limits.min_reserved_messages, limits.per_message_cap) == (
        10,
        1,
        3,
        0,
    )
    assert Limits(min_reserved_messages=-4).min_reserved_messages == 0


@pytest.mark.parametrize("ratio", [0, -0.1, 1.01, math.nan, math.inf])
def test_a_ratio_without_meaning_is_refused(ratio: float) -> None:
    with pytest.raises(ConfigError, match="max_context_ratio"):
        Limits(max_context_ratio=ratio)


@pytest.mark.parametrize("factor", [0, 0.99, -1, math.nan, math.inf])
def test_a_trigger_factor_without_meaning_is_refused(factor: float) -> None:
    with pytest.raises(ConfigError, match="message_trigger_factor"):
        Limits(message_trigger_factor=factor)


@pytest.mark.parametrize("length", [0, -1])
def test_a_window_without_meaning_is_refused(length: int) -> None:
    with pytest.raises(ConfigError, match="default_context_length"):
        Limits(default_context_length=length)


def test_the_ends_of_the_ranges_are_taken() -> None:
    assert Limits(max_context_ratio=1, message_trigger_factor=1, default_context_length=1)


@pytest.mark.parametrize(
    ("length", "ratio", "threshold"),
    [(100_000, 0.8, 80_000), (None, 0.8, 102_400), (None, 0.75, 96_000), (0, 0.75, 96_000), (64_000, 0.5, 32_000)],
)
def test_the_threshold_is_a_share_of_the_window(length: int | None, ratio: float, threshold: int) -> None:
    assert Limits(max_context_ratio=ratio).threshold(length) == threshold


@pytest.mark.parametrize(("threshold", "kept_free"), [(10_000, 500), (100_000, 2_000), (1_000, 256)])
def test_something_is_kept_free_for_what_a_request_adds(threshold: int, kept_free: int) -> None:
    assert reserve(threshold) == kept_free


@pytest.mark.parametrize(
    ("limits", "cap"),
    [
        (Limits(), 48_000),
        (Limits(min_reserved_messages=10), 19_200),
        (Limits(per_message_cap=500), 500),
        (Limits(default_context_length=100), 2_000),
    ],
)
def test_one_message_may_have_a_share_of_the_threshold(limits: Limits, cap: int) -> None:
    assert limits.cap(limits.threshold(None)) == cap


# -- when --------------------------------------------------------------------------------------------------------------


def test_a_context_within_its_limits_is_left_alone() -> None:
    assert plan(context([user(f"m {n}") for n in range(10)]), SMALL) is None


def test_more_messages_than_allowed_are_compressed_but_the_goal_does_not_count() -> None:
    eleven = [user(f"m {n}") for n in range(11)]

    assert plan(context(eleven), SMALL) is not None
    assert plan(context(eleven, goal=3), SMALL) is None


def test_the_trigger_factor_delays_and_the_target_is_below_what_triggers() -> None:
    patient = Limits(max_messages=10, message_trigger_factor=1.5)
    fifteen = context([user(f"m {n}") for n in range(15)])
    sixteen = context([user(f"m {n}") for n in range(16)])

    assert plan(fifteen, patient) is None
    assert len(after(sixteen, patient).messages) <= 10


def test_more_tokens_than_allowed_are_compressed() -> None:
    limits = Limits(max_messages=100, default_context_length=1_000)
    made = plan(context([user("word " * 200) for _ in range(5)]), limits)

    assert made is not None
    assert "tokens" in made.why


def test_prompts_and_whatever_is_fixed_count_against_the_threshold() -> None:
    limits = Limits(max_messages=100, default_context_length=1_000)
    few = [user("word " * 100), *steps(4, words=20)]

    assert plan(context(few), limits) is None
    assert plan(context(few, fixed=500), limits) is not None
    assert plan(context(few, inbox=[user("word " * 500)]), limits) is not None


@pytest.mark.parametrize("limits", [Limits(max_messages=10), Limits(max_messages=100, default_context_length=2_000)])
def test_the_step_after_a_compression_does_not_need_another(limits: Limits) -> None:
    now = context([user("goal"), *steps(60, words=30)], goal=0)

    now = after(now, limits)
    now = replace(now, messages=[*now.messages, *steps(1, 90, words=30)])

    assert plan(now, limits) is None


# -- what stays --------------------------------------------------------------------------------------------------------


def test_the_goal_stays_where_it_was_asked_before_everything_that_was_cut() -> None:
    given = context([user("the goal"), *(says(f"m {n}") for n in range(25))], goal=0)

    now = after(given)

    assert now.messages[0] == user("the goal")
    assert now.goal == 0
    assert 4 < len(now.messages) <= 11


def test_only_the_current_goal_stays_what_was_asked_before_may_go() -> None:
    given = context([user("an old question"), *(says(f"m {n}") for n in range(20)), user("now this"), *steps(5)], 21)

    now = after(given, text="they asked something")

    assert user("an old question") not in now.messages
    assert now.goal is not None
    assert now.messages[now.goal] == user("now this")


def test_a_goal_within_what_stays_keeps_its_place() -> None:
    given = context([*(says(f"m {n}") for n in range(20)), user("now this"), *steps(1)], goal=20)

    now = after(given, text="what was before")

    assert [m.role for m in now.messages[-3:]] == ["user", "assistant", "tool"]
    assert now.goal == len(now.messages) - 3
    assert now.messages[0].summary


def test_a_cut_never_falls_between_a_call_and_its_results() -> None:
    messages = [user("goal"), *acts("a"), *acts(*"bcdefgh"), *acts("i"), *acts("j"), *acts("k")]
    now = after(context(messages, goal=0))

    assert paired(now.messages)


def test_what_the_model_said_just_before_the_cut_is_kept() -> None:
    messages = [m for n in range(8) for m in (says(f"thought {n}"), *acts(f"c{n}"))]
    now = after(context(messages))

    assert next(m for m in now.messages if not m.summary).content.startswith("thought")


def test_without_a_strategy_so_many_short_messages_stay() -> None:
    twenty = context([user(f"m {n}") for n in range(20)])

    for length in (None, 1_000_000):
        now = after(replace(twenty, length=length))
        assert 3 < len(now.messages) <= 10
        assert now.messages[-1] == user("m 19")


def test_forty_tiny_messages_in_a_large_window_leave_more_than_three() -> None:
    assert 3 < len(after(context([user("hi")] * 40, length=1_000_000)).messages) <= 22


@pytest.mark.parametrize("limits", [SMALL, replace(SMALL, default_context_length=8_000)])
def test_of_huge_messages_at_least_three_stay_cut_to_fit(limits: Limits) -> None:
    now = after(context([user(f"{n} " + "word " * 40_000) for n in range(15)]), limits)

    assert len([m for m in now.messages if not m.summary]) >= 3
    assert now.tokens <= limits.threshold(None)


def test_of_huge_messages_as_many_stay_as_were_reserved() -> None:
    limits = Limits(max_messages=10, min_reserved_messages=5)
    now = after(context([user(f"{n} " + "word " * 40_000) for n in range(30)]), limits)

    assert [m.content.split()[0] for m in now.messages if not m.summary] == ["25", "26", "27", "28", "29"]
    assert now.tokens <= 96_000


# -- large messages ----------------------------------------------------------------------------------------------------


def test_a_huge_result_keeps_its_head_and_its_tail() -> None:
    huge = "first " + "word " * 100_000 + "last"
    given = context([user("goal"), *acts("a", result=huge)], goal=0)

    cut = shown(given, SMALL)[-1].content

    assert cut.startswith("first")
    assert cut.endswith("last")
    assert "left out" in cut
    assert count(cut) <= 48_000


def test_a_huge_goal_is_left_as_it_is_and_a_huge_later_message_is_not() -> None:
    huge = user("word " * 100_000)

    goal, later = shown(context([huge, huge], goal=0), SMALL)

    assert goal == huge
    assert size(later) <= 48_000


def test_a_message_with_calls_is_never_cut_it_goes_with_its_results_or_not_at_all() -> None:
    big = acts("big", text="thinking " * 60_000)
    early = after(context([user("goal"), *big, *steps(10)], goal=0))
    late = after(context([user("goal"), *steps(10), *big], goal=0))

    for now in (early, late):
        assert paired(now.messages)
        assert (big[0] in now.messages) == (big[1] in now.messages)
    assert big[0] in late.messages


def test_a_cap_of_ones_own_is_kept() -> None:
    given = context(acts("a", result="word " * 10_000))

    assert size(shown(given, Limits(per_message_cap=500))[1]) <= 500


def test_what_is_shown_is_the_same_at_each_request() -> None:
    limits = Limits(per_message_cap=100)
    given = context([*acts("a", result="word " * 10_000), user("more")])

    once = shown(given, limits)

    assert shown(replace(given, messages=(*given.messages, user("and more"))), limits)[:3] == once
    assert shown(replace(given, messages=once), limits) == once


@given(st.text(max_size=400), st.integers(0, 200))
def test_a_fitted_text_never_has_more_than_its_budget(text: str, budget: int) -> None:
    assert count(fitted(text, budget, count)) <= max(budget, 0)


# -- forced ------------------------------------------------------------------------------------------------------------


def test_the_first_time_a_model_refuses_four_fifths_stay() -> None:
    made = plan(context([user(f"m {n}") for n in range(20)]), SMALL, forced=1)

    assert made is not None
    assert made.cut == 4


def test_each_time_a_model_refuses_less_stays_whatever_we_believe_of_its_window() -> None:
    now = context([user("goal"), *steps(40, words=100)], goal=0, length=1_000_000)
    limits = Limits(max_messages=100)

    sizes = [now.tokens]
    for forced in (1, 2, 3, 4):
        now = after(now, limits, forced=forced)
        sizes.append(now.tokens)
        assert now.messages[0] == user("goal")
        assert paired(now.messages)

    assert all(larger > smaller for larger, smaller in pairwise(sizes))
    assert sizes[-1] < 0.1 * sizes[0] + 400


def test_forced_a_group_stays_whole_or_goes_and_the_order_stays() -> None:
    messages = [*(user(f"{n} " + "word " * 500) for n in range(8)), *acts("a", "b"), user("last")]

    now = after(context(messages, length=6_000), forced=1)

    assert paired(now.messages)
    assert [m for m in messages if m in now.messages] == [m for m in now.messages if not m.summary]


def test_a_giant_goal_alone_leaves_room_for_nothing_else_and_says_so() -> None:
    given = context([user("word " * 200_000), *steps(3)], goal=0)
    made = plan(given, SMALL, forced=1)

    assert made is not None
    assert not made.reachable
    assert "alone" in made.why
    messages, goal = compressed(given, made, "")
    assert messages[0] == given.messages[0]
    assert goal == 0


def test_where_nothing_can_be_left_out_there_is_no_plan() -> None:
    assert plan(context([user("goal")], goal=0), SMALL, forced=1) is None
    assert plan(context([]), SMALL, forced=1) is None


def test_a_threshold_that_prompt_and_tools_are_above_already_is_not_chased() -> None:
    limits = Limits(max_messages=100)
    given = context([user("goal"), *steps(3, words=100)], goal=0, fixed=100_000)
    long = context([user("goal"), *steps(30, words=600)], goal=0, fixed=100_000)

    assert plan(given, limits) is None, "there is room in the window"
    now = after(long, limits)
    assert len(now.messages) < len(long.messages)
    assert plan(now, limits) is None


def test_what_is_left_free_is_free_after_a_compression_and_triggers_none() -> None:
    limits = Limits(max_messages=100, default_context_length=2_000)
    full = context([user("word " * 100) for _ in range(14)], reserve=256)

    assert full.tokens < 1_500
    assert plan(full, limits) is None
    assert after(context([user("word " * 100) for _ in range(20)], reserve=256), limits).tokens <= 1_500 - 256


# -- what cannot be sent -----------------------------------------------------------------------------------------------


def test_what_no_provider_takes_is_left_out() -> None:
    result = Message("tool", "x", call_uuid="a")
    asking = acts("a", "b")

    assert whole([user("q"), result]) == (user("q"),), "a result of no call"
    assert whole([user("q"), *acts("a")[:1]]) == (user("q"),), "a call without a result"
    assert whole([asking[0], asking[1], user("q")]) == (user("q"),), "one of two results"
    assert whole([*acts("a"), Message("tool", "y", call_uuid="a")]) == (), "two results for one call"
    assert whole([*acts("a"), Message("tool", "y", call_uuid="z")]) == tuple(acts("a")), "a stranger among results"
    assert whole([says(""), says(" "), says("x")]) == (says("x"),), "messages that say nothing"
    assert whole(acts("a", "a")) == (), "one id for two calls"


def test_an_id_that_is_used_again_later_belongs_to_its_own_results() -> None:
    again = [*acts("a", result="one"), user("q"), *acts("a", result="two")]

    assert whole(again) == tuple(again)


# -- what stands for the rest ------------------------------------------------------------------------------------------


def test_a_summary_says_what_it_is_and_lists_the_calls_that_were_made() -> None:
    given = context([user("goal"), *steps(12)], goal=0)

    now = after(given, text="so far so good")

    said = now.messages[1]
    assert said.summary
    assert said.role == "user"
    assert said.content.startswith(HEAD)
    assert "so far so good" in said.content
    assert told([said]) == "so far so good"
    listed = [m.calls[0].call_uuid for m in given.messages if m.calls and m not in now.messages]
    assert [line.split('"')[3] for line in done([said])] == listed


def test_calls_that_were_made_stay_listed_however_often_the_context_is_compressed() -> None:
    now = context([user("goal"), *acts("deploy", result="deployed to production"), *steps(12)], goal=0)

    for n in range(5):
        now = after(replace(now, messages=[*now.messages, *steps(10, 20 + 10 * n)]), text=f"summary {n}")

    (said,) = [m for m in now.messages if m.summary]
    assert "deployed to production" in said.content
    assert said.content.count(DONE) == 1
    assert "summary 4" in said.content
    assert "summary 3" not in said.content


def test_too_many_calls_to_list_leave_out_the_oldest_and_say_so() -> None:
    said = note("", steps(500), 300, count)

    assert said is not None
    assert EARLIER in said.content
    assert '"c499"' in said.content
    assert '"c0"' not in said.content
    assert size(said) <= 320
    again = note("", [said, *steps(1, 600)], 300, count)
    assert again is not None
    assert again.content.count(EARLIER) == 1
    roomy = note("", [said, *steps(1, 600)], 3_000, count)
    assert roomy is not None
    assert roomy.content.count(EARLIER) == 1, "also where there is room for all that are known"
    assert note("", [Message("user", f"{HEAD}\n\n{DONE}\n{EARLIER}", summary=True)], 300, count) is not None


def test_a_huge_result_and_a_huge_summary_do_not_come_back() -> None:
    given = context([user("goal"), *acts("a", result="secret " * 200_000), *steps(12)], goal=0)

    now = after(given, text="word " * 120_000)

    (said,) = [m for m in now.messages if m.summary]
    assert size(said) <= 4_050
    assert len(done([said])[0]) < 400
    assert now.tokens <= 96_000


def test_a_summary_that_finds_no_room_is_left_out() -> None:
    assert note("text", [], 5, count) is None
    assert note("", [user("x")], 500, count) is None


def test_the_goal_is_not_among_what_is_replaced() -> None:
    given = context([says("before"), user("goal"), *steps(20)], goal=1)
    made = plan(given, SMALL)

    assert made is not None
    assert says("before") in replaced(given, made)
    assert user("goal") not in replaced(given, made)


# -- whatever there is -------------------------------------------------------------------------------------------------

WORDS = st.integers(0, 400).map(lambda n: "word " * n + "end")


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    messages: list[Message] = []
    for n in range(draw(st.integers(0, 25))):
        match draw(st.sampled_from(["user", "says", "acts", "acts"])):
            case "user":
                messages.append(user(draw(WORDS)))
            case "says":
                messages.append(says(draw(WORDS)))
            case _:
                uuids = [f"c{n}-{i}" for i in range(draw(st.integers(1, 4)))]
                messages += acts(*uuids, text=draw(WORDS), result=draw(WORDS), of=draw(WORDS))
    asked = [at for at, message in enumerate(messages) if message.role == "user"]
    goal = draw(st.sampled_from([None, *asked]))
    inbox = [user(draw(WORDS))] if draw(st.booleans()) else []
    length = draw(st.sampled_from([None, 400, 1_500, 4_000]))
    return context(
        messages,
        goal,
        inbox=inbox,
        fixed=draw(st.integers(0, 600)),
        reserve=draw(st.sampled_from([0, 100])),
        length=length,
    )


LIMITS = st.builds(
    Limits,
    max_messages=st.integers(0, 40),
    max_context_ratio=st.sampled_from([0.25, 0.75, 1.0]),
    message_trigger_factor=st.sampled_from([1.0, 1.5]),
    min_reserved_messages=st.sampled_from([0, 0, 3, 8]),
    per_message_cap=st.sampled_from([0, 100]),
)


@settings(max_examples=200, deadline=None)
@given(contexts(), LIMITS, st.sampled_from([0, 0, 1, 2, 3, 4, 9]), st.sampled_from(["", "a summary", "word " * 500]))
def test_whatever_is_compressed_stays_valid_keeps_its_goal_and_fits(
    given: Context, limits: Limits, forced: int, text: str
) -> None:
    given = replace(given, messages=shown(given, limits))
    made = plan(given, limits, forced)
    if made is None:
        if not forced and made is None and given.tokens > limits.threshold(given.length):
            history = sum(size(m) for at, m in enumerate(given.messages) if at != given.goal)
            base = given.reserve + given.tokens - history
            nothing_left = not [m for at, m in enumerate(given.messages) if at != given.goal and not m.summary]
            assert base >= limits.threshold(given.length) or nothing_left
        return
    messages, goal = compressed(given, made, text)
    now = replace(given, messages=messages, goal=goal)

    assert paired(messages)
    assert (goal is None) == (given.goal is None)
    if goal is not None:
        assert messages[goal] is _goal(given)
    assert now.tokens + given.reserve <= made.limit or not made.reachable
    ours = [m for m in messages if not m.summary and m is not _goal(given)]
    assert [m.role for m in ours] == [m.role for m in given.messages if m is not _goal(given)][
        len(given.messages) - (given.goal is not None) - len(ours) :
    ]
    assert sum(m.summary for m in messages) <= 1
    if forced:
        assert now.tokens < given.tokens + 210
    lost = {c.call_uuid for m in given.messages for c in m.calls} - {c.call_uuid for m in messages for c in m.calls}
    listed = [line for m in messages if m.summary for line in done([m])]
    if lost and made.note > 200 and EARLIER not in listed:
        assert all(any(f'"{uuid}"' in line for line in listed) for uuid in lost)


@settings(max_examples=100, deadline=None)
@given(contexts(), LIMITS)
def test_compressing_comes_to_an_end(given: Context, limits: Limits) -> None:
    now = given
    for _ in range(4):
        before, now = now, after(now, limits, "a summary")
        if now.messages == before.messages:
            break
    now = replace(now, messages=shown(now, limits))
    made = plan(now, limits)

    assert made is None or not made.reachable or now.variable > limits.trigger


def test_a_compressed_context_says_whether_it_fits() -> None:
    given = context([user(f"m {n}") for n in range(20)])
    made = plan(given, SMALL)

    assert made is not None
    assert not fits(given, SMALL, made)
    assert fits(after(given), SMALL, made)


def test_groups_cover_everything_once() -> None:
    messages = [user("a"), *acts("b", "c"), says("d"), *acts("e")]

    assert [list(group) for group in groups(messages)] == [[0], [1, 2, 3], [4], [5, 6]]


@pytest.mark.parametrize(("time", "share"), [(1, 0.8), (2, 0.6), (3, 0.4), (4, 0.25), (5, 0.25)])
def test_each_time_that_a_model_refuses_a_context_less_of_it_stays(time: int, share: float) -> None:
    given = context([user(f"message {n} " + "x" * 2_000) for n in range(40)], length=100_000)

    room = room_for(given, SMALL, time)

    total = given.tokens
    assert room.keep == math.ceil(40 * share)
    assert room.window + room.note == int(min(total, room.limit) * share) - given.fixed - given.reserve - 3


def test_what_stands_for_older_messages_may_have_200_tokens_or_a_tenth_of_the_room() -> None:
    def note(length: int) -> int:
        return room_for(context([user("m")], length=length), Limits(max_messages=10)).note

    assert note(1_500) == 200
    assert 200 < note(20_000) <= 20_000 * 0.75 / 10
