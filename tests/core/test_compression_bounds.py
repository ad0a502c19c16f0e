"""How much stays of a context: at the limit, where prompt and goal alone are above it, and when a model refuses it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.compression.limits import Limits
from harness_core.compression.notes import DONE
from harness_core.compression.plan import compressed, fits, plan, shown
from harness_core.compression.room import FORCED, LEAST_FORCED, LEAST_KEPT, LEAST_NOTE, Context, room_for
from harness_core.compression.shape import OF_A_REQUEST
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.types import Message
from tests.core.test_compression_plan import (
    LIMITS,
    SMALL,
    acts,
    after,
    context,
    contexts,
    paired,
    says,
    size,
    steps,
    user,
)

MANY = Limits(max_messages=100, default_context_length=1_000)  # so that 750 tokens are the threshold


def of_tokens(tokens: int, limits: Limits = MANY) -> Context:
    """A context of exactly so many tokens, with one message that they are filled up with."""
    given = context([user("goal"), *steps(6, words=20)], goal=0)
    return replace(given, fixed=tokens - given.tokens)


def test_a_context_of_exactly_its_threshold_is_left_alone_and_one_token_more_is_too_much() -> None:
    assert of_tokens(750).tokens == 750
    assert plan(of_tokens(750), MANY) is None
    assert plan(of_tokens(751), MANY) is not None


def test_a_window_that_makes_no_sense_is_not_believed() -> None:
    assert Limits().threshold(-5) == Limits().threshold(None) == 96_000
    assert Limits().threshold(1) == 0


def test_a_compression_fits_only_if_both_its_tokens_and_its_messages_do() -> None:
    made = plan(of_tokens(751), MANY)
    assert made is not None
    made, few = replace(made, limit=750), Limits(max_messages=10)

    assert fits(of_tokens(750), MANY, made)
    assert not fits(of_tokens(751), MANY, made)
    assert fits(context([user("m")] * 10), few, replace(made, limit=10**6))
    assert not fits(context([user("m")] * 11), few, replace(made, limit=10**6))


def test_a_goal_at_the_very_cut_stays_once() -> None:
    for place in range(1, 30):
        messages = [*(says(f"before {n}") for n in range(place)), user("the goal"), *steps(12)]
        now = after(context(messages, goal=place), text="a summary")

        assert [m.content for m in now.messages].count("the goal") == 1
        assert now.goal is not None
        assert now.messages[now.goal].content == "the goal"


def test_without_a_summary_nothing_is_said_for_older_messages_but_what_was_done() -> None:
    interceptor = ContextCompressionInterceptor(10)
    given = context([user("goal"), says("a long story"), *steps(12)], goal=0)
    made = interceptor.plan(given)
    assert made is not None

    now = interceptor.compressed(given, made, None)

    (said,) = [m for m in now.messages if m.summary]
    assert DONE in said.content
    assert "a long story" not in said.content
    again = interceptor.plan(replace(now, messages=(*now.messages, *steps(12, 20))))
    assert again is not None


# -- prompt and goal alone are too large -------------------------------------------------------------------------------


def test_where_prompt_and_goal_alone_are_above_the_threshold_half_of_what_they_leave_is_history() -> None:
    given = context([user("goal"), *steps(200, words=100)], goal=0, fixed=100_000)

    room = room_for(given, Limits(max_messages=1_000))

    base = 100_000 + OF_A_REQUEST + size(user("goal"))
    assert not room.reachable
    assert room.limit == base + (128_000 - base) // 2
    assert "alone are 100,0" in room.why
    assert "above the threshold of 96,000" in room.why


def test_where_they_are_above_the_window_some_history_stays_all_the_same() -> None:
    given = context([user("goal"), *steps(100, words=100)], goal=0, fixed=200_000)

    now = after(given, Limits(max_messages=1_000))

    history = now.tokens - 200_000
    assert LEAST_KEPT // 2 < history <= LEAST_KEPT + 2 * LEAST_NOTE
    assert paired(now.messages)
    assert now.messages[-1] == given.messages[-1]


def test_nobody_is_told_of_prompt_and_goal_where_they_are_not_the_trouble() -> None:
    assert "alone" not in room_for(of_tokens(10_000), Limits(default_context_length=12_000)).why
    assert "alone" not in room_for(context([user("m")] * 20), SMALL).why
    assert "alone" in room_for(replace(of_tokens(10_000), fixed=100_000), SMALL).why


def test_where_only_prompt_and_goal_fit_the_newest_history_goes_and_what_stands_for_it_stays() -> None:
    limits = Limits(max_messages=100, default_context_length=2_000)
    large = [m for n in range(4) for m in acts(f"c{n}", of="word " * 900)]
    given = context([user("goal"), *large], goal=0, fixed=900)

    now = after(given, limits, text="what was done")

    assert [m.role for m in now.messages] == ["user", "user"]
    assert now.messages[0].content == "goal"
    assert "what was done" in now.messages[1].content
    assert now.tokens <= 1_500


# -- a model refuses ---------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(contexts(), LIMITS, st.integers(1, 6), st.sampled_from(["", "a summary", "word " * 500]))
def test_what_a_model_refused_as_too_long_comes_to_its_share_of_what_it_was(
    given: Context, limits: Limits, forced: int, text: str
) -> None:
    made = plan(given, limits, forced)
    if made is None:
        return
    messages, goal = compressed(given, made, text)
    now = replace(given, messages=messages, goal=goal)

    share = FORCED[min(forced, len(FORCED)) - 1]
    goal_alone = 0 if goal is None else size(messages[goal])
    base = given.fixed + given.reserve + OF_A_REQUEST + goal_alone + sum(map(size, given.inbox))
    least = min(LEAST_FORCED, limits.threshold(given.length))
    wanted = max(least, int(min(given.tokens, made.limit) * share))
    assert now.tokens + given.reserve <= max(wanted, base + LEAST_NOTE)


@pytest.mark.parametrize("forced", [1, 2, 3, 4])
def test_of_short_messages_that_a_model_refused_the_newest_share_stays(forced: int) -> None:
    given = context([user(f"m {n}") for n in range(100)], length=10**6)

    now = after(given, Limits(max_messages=100), forced=forced)

    assert [m.content for m in now.messages if not m.summary][-1] == "m 99"
    assert len([m for m in now.messages if not m.summary]) <= 100 * FORCED[forced - 1] + 1


# -- a history that no engine would write ------------------------------------------------------------------------------

TEXT = st.sampled_from(["", " ", "word", "word " * 60, "word " * 2_000])
IDS = st.sampled_from(["a", "b", "c", ""])
ANYTHING = st.one_of(
    st.builds(user, TEXT),
    st.builds(says, TEXT),
    st.builds(lambda text: Message("user", text, summary=True), TEXT),
    st.builds(lambda uuid, text: Message("tool", text, call_uuid=uuid), IDS, TEXT),
    st.builds(lambda ids, text: acts(*ids, text=text)[0], st.lists(IDS, min_size=1, max_size=3), TEXT),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ANYTHING, max_size=25), st.data(), LIMITS, st.sampled_from([0, 0, 1, 4]))
def test_whatever_a_history_holds_a_compressed_one_is_what_a_provider_takes(
    messages: list[Message], data: st.DataObject, limits: Limits, forced: int
) -> None:
    asked = [at for at, message in enumerate(messages) if message.role == "user" and message.content.strip()]
    goal = data.draw(st.sampled_from([None, *asked]))
    before = context(messages, goal, length=data.draw(st.sampled_from([None, 600])))
    before = replace(before, messages=shown(before, limits))
    if plan(before, limits, forced) is None:
        return

    now = after(before, limits, "a summary", forced)

    assert paired(now.messages)
    assert all(m.content.strip() or m.calls or m.role == "tool" for m in now.messages), "a fold has no empty result"
    assert goal is None or [m is messages[goal] for m in now.messages].count(True) == 1
    assert goal is None or now.goal is not None
