"""Which session somebody means, and which are near it."""

from __future__ import annotations

import pytest

from bot.sessions import NoSuchSession, find_session

KNOWN = [f"slack:T1:C{n}:17723574{n:02}.000100" for n in range(12)]


@pytest.mark.parametrize(
    "named", ["", "x", "T1:C", "https://[", "C99:1772357400.000100", "https://a.slack.com/archives/C3/p1"]
)
def test_what_names_no_session_or_several_is_refused(named: str) -> None:
    with pytest.raises(NoSuchSession):
        find_session(named, KNOWN)


def test_near_ones_are_offered_a_few_at_most() -> None:
    with pytest.raises(NoSuchSession) as misspelt:
        find_session("slack:T1:C3:1772357403.000101", KNOWN)
    with pytest.raises(NoSuchSession) as several:
        find_session("slack:T1", KNOWN)

    assert KNOWN[3] in str(misspelt.value)
    assert str(several.value).count("\n") == 5


def test_a_part_that_only_one_session_has_is_enough() -> None:
    assert find_session("1772357407", KNOWN) == KNOWN[7]
    assert find_session(KNOWN[1], KNOWN) == KNOWN[1]


def test_a_thread_is_found_though_sub_agents_worked_in_it() -> None:
    known = [f"{KNOWN[7]}/r1-1-1", f"{KNOWN[7]}/r1-2-1", *KNOWN]

    assert find_session("1772357407", known) == KNOWN[7]
    assert find_session("1772357407.000100/r1-2", known) == known[1]
