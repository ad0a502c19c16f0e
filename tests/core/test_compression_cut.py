"""Where exactly a context is cut: by count, by room, with the thought before it; and how far the rest is shortened."""

from __future__ import annotations

import pytest

from harness_core.compression.limits import Limits
from harness_core.compression.plan import compressed, plan
from harness_core.compression.room import room_for
from harness_core.types import Message
from tests.core.test_compression_plan import SMALL, acts, context, says, size, user

SNUG = Limits(max_messages=100, default_context_length=1_000)
WINDOW = 360  # tokens of history that stay in SNUG: three quarters of 747 that there are, less 200 for a summary
HARD = 547  # at most, if so many of the newest messages must stay


def of_tokens(tokens: int, text: str = "") -> Message:
    """A prompt of exactly so many tokens."""
    return user(f"{text} " + "w " * (tokens - 4 - len(text.split())))


def cut(messages: list[Message], limits: Limits = SNUG, goal: int | None = None, forced: int = 0) -> int:
    made = plan(context(messages, goal), limits, forced)
    assert made is not None
    return made.cut


def test_the_room_is_what_it_says() -> None:
    room = room_for(context([of_tokens(800)]), SNUG)

    assert (room.limit, room.window, room.hard, room.note) == (750, WINDOW, HARD, 200)


def test_the_newest_messages_stay_as_far_as_there_is_room_to_the_token() -> None:
    assert cut([of_tokens(40)] * 20) == 11
    assert cut([*[of_tokens(40)] * 19, of_tokens(41)]) == 12, "one token too many"
    assert cut([*[of_tokens(40)] * 19, of_tokens(39)]) == 11


def test_the_goal_takes_its_room_beforehand_and_is_no_message_of_the_rest() -> None:
    # 40 tokens for the goal leave 330 to the others: eight of 40, and the goal among them.
    assert cut([of_tokens(40)] * 20, goal=15) == 11
    assert cut([of_tokens(40)] * 20, goal=2) == 12


def test_a_call_with_its_results_stays_or_goes_as_one_though_some_of_it_would_fit() -> None:
    group = acts("a", "b", "c", "d", result="w " * 40)
    whole = sum(map(size, group))
    assert whole < WINDOW < whole + 150

    assert cut([*[of_tokens(40)] * 15, *group, of_tokens(WINDOW - whole)]) == 15
    assert cut([*[of_tokens(40)] * 15, *group, of_tokens(WINDOW - whole + 1), *[of_tokens(10)] * 3]) == 20


def test_at_least_so_many_of_the_newest_stay_though_they_are_above_the_room() -> None:
    large = [of_tokens(150)] * 6
    made = plan(context(large), SNUG)

    assert made is not None
    assert made.cut == 3
    assert HARD >= 3 * 150
    assert compressed(context(large), made, "")[0][-3:] == tuple(large[-3:]), "and none of them is shortened"


# -- the thought before the cut ----------------------------------------------------------------------------------------

NEWEST = [user(f"new {n}") for n in range(6)]  # as many as stay of more than ten
OLDER = [user(f"old {n}") for n in range(8)]


@pytest.mark.parametrize(
    ("before", "stays"),
    [
        ([says("I shall look")], True),
        ([user("please look")], False),
        ([says(" ")], False),
        (acts("a", text="I look"), False),
    ],
    ids=["a thought", "a prompt", "nothing", "a call"],
)
def test_what_the_model_thought_right_before_the_cut_stays_with_what_came_of_it(
    before: list[Message], stays: bool
) -> None:
    assert cut([*OLDER, *before, *NEWEST], SMALL) == len(OLDER) + len(before) - stays


def test_a_thought_that_finds_no_room_goes() -> None:
    limits = Limits(max_messages=10, default_context_length=1_000)
    room = WINDOW - sum(map(size, NEWEST))

    def thought(tokens: int) -> Message:
        return says("w " * (tokens - 4))

    assert cut([*OLDER, thought(room), *NEWEST], limits) == 8
    assert cut([*OLDER, thought(room + 1), *NEWEST], limits) == 9


def test_a_context_that_a_model_refused_is_cut_without_regard_to_thoughts() -> None:
    assert cut([*OLDER[:2], says("I shall look"), *NEWEST, *NEWEST], SMALL, forced=1) == 3


# -- what is shortened to fit ------------------------------------------------------------------------------------------


def caps(*tokens: int) -> int:
    made = plan(context([*[of_tokens(60)] * 5, *map(of_tokens, tokens)]), SNUG)
    assert made is not None
    assert made.cut == 5
    return made.cap


def test_large_messages_share_the_room_evenly_and_small_ones_leave_theirs_to_them() -> None:
    assert caps(700, 700, 700) == HARD // 3
    assert caps(50, 700, 700) == (HARD - 50) // 2
    assert caps(100, 147, 900) == HARD - 247


def test_what_may_not_be_shortened_has_its_room_first() -> None:
    call = acts("a", text="w " * 100, result="x")
    fixed = size(call[0])
    made = plan(context([*[of_tokens(60)] * 5, *call, of_tokens(900)]), SNUG)

    assert made is not None
    assert (made.cut, made.cap) == (5, HARD - fixed - size(call[1]))


def test_the_goal_among_the_newest_is_neither_shortened_nor_does_it_share() -> None:
    made = plan(context([*[of_tokens(60)] * 5, of_tokens(100), of_tokens(700), of_tokens(700)], goal=5), SNUG)

    assert made is not None
    assert (made.cut, made.cap) == (4, (HARD - 100 - 60) // 2)


def test_a_call_too_large_for_all_the_room_goes_with_its_result_and_the_rest_stays() -> None:
    huge = acts("a", of="w " * 700)

    assert cut([*[of_tokens(60)] * 3, *huge, of_tokens(30)]) == 5


def test_where_nothing_would_become_less_there_is_nothing_to_do() -> None:
    summary = Message("user", "so far", summary=True)

    assert plan(context([user("x"), user("y")]), SMALL, forced=1) is None
    assert plan(context([summary, user("y")]), SMALL, forced=1) is None
    assert plan(context([summary, *[user("y")] * 10]), SMALL) is not None
