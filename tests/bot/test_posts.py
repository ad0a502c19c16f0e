"""What stands where, folded from facts; and when what stands is drawn anew."""

from __future__ import annotations

from dataclasses import replace

from bot.blocks import card_message
from bot.drafts import Draft
from bot.facts import Posted, PostGone, PostIntended
from bot.pace import Urgency
from bot.posts import Post, Posts
from bot.redraws import COUNT_EACH, COUNTS, SETTLE, Redraws, only_counts
from bot.view import Card, Decided, State, Waiting
from harness_core.hitl import Approve, Reject
from harness_core.testing import task, tool_call

CARD = Card("slack:T1:C1:1.1", task(tool_call("change", a=1)), of=3)


def draft(state: State, decided: int = 0) -> Draft:
    card = replace(CARD, state=state, decided=decided)
    return Draft("card:x", card_message(card), Urgency.CARD, card)


def standing(one: Draft) -> Post:
    return Post(one.digest, "1.2", core=one.core)


def test_a_message_that_is_gone_stands_nowhere_until_it_is_posted_anew():
    there = Posts().plus([PostIntended("card:x", "d"), Posted("card:x", "d", "1.2")])

    gone = there.plus([PostGone("card:x", "1.2")])
    anew = gone.plus([Posted("card:x", "d", "1.9"), PostGone("card:x", "1.2")])  # told twice, and late

    assert gone.by_id["card:x"] == Post("", gone=True)
    assert anew.by_id["card:x"] == Post("d", "1.9")
    assert Posts().plus([PostGone("card:y", "1.2")]).by_id == {}


def test_a_message_that_was_sought_and_not_found_is_gone():
    posts = Posts().plus([PostIntended("card:x", "d"), PostGone("card:x")])

    assert posts.by_id["card:x"].gone


def test_counts_of_others_are_drawn_a_few_at_once_and_then_one_every_few_seconds():
    redraws, stands, now = Redraws(), standing(draft(Waiting())), 1_000.0
    changed = draft(Waiting(), decided=1)
    assert only_counts(changed, stands)

    for _ in range(COUNTS):
        assert redraws.wait("s", changed, stands, now) == 0
        redraws.drawn("s", changed, stands, now)

    assert redraws.wait("s", changed, stands, now) == COUNT_EACH
    assert redraws.wait("s", changed, stands, now + COUNT_EACH) == 0
    assert redraws.wait("another", changed, stands, now) == 0
    redraws.forget("s")
    assert redraws.wait("s", changed, stands, now) == 0


def test_a_decision_that_the_batch_still_waits_for_is_drawn_at_once_and_then_counts_alone():
    waits = draft(Decided("U1", 1_000.0, Approve(), waits_for=2))

    assert Redraws().wait("s", waits, standing(draft(Waiting())), 1_000.0) == 0
    assert only_counts(draft(Decided("U1", 1_000.0, Approve(), waits_for=1)), standing(waits))
    assert not only_counts(draft(Decided("U1", 1_000.0, Approve())), standing(waits))


def test_the_last_approval_waits_a_moment_for_its_result_and_a_rejection_does_not():
    stands = standing(draft(Waiting()))

    assert Redraws().wait("s", draft(Decided("U1", 1_000.0, Approve())), stands, 1_000.2) == 1_000.0 + SETTLE - 1_000.2
    assert Redraws().wait("s", draft(Decided("U1", 1_000.0, Approve())), stands, 1_001.0) == 0
    assert Redraws().wait("s", draft(Decided("U1", 1_000.0, Reject("no"))), stands, 1_000.2) == 0
    assert Redraws().wait("s", draft(Decided("U1", 9_000.0, Approve())), stands, 1_000.0) == SETTLE


def test_of_what_an_older_version_posted_every_change_is_drawn_at_once():
    assert not only_counts(draft(Waiting(), decided=1), replace(standing(draft(Waiting())), core=""))
