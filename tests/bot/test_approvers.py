"""Who may start, speak, decide and administer: one policy, and it fails closed."""

from __future__ import annotations

from typing import Any

import pytest

from bot import words
from bot.approvers import (
    Access,
    Person,
    Place,
    Refusal,
    Who,
    may_administer,
    may_claim,
    may_decide,
    may_speak,
    person_of,
    place_of,
)
from bot.ids import Identity

US = Identity("T0HOME", enterprise_id="E0ORG", app_id="A0US", bot_user_id="U0BOT")
ADMIN, APPROVER, MEMBER = Person("U0ADA"), Person("U0APP"), Person("U0ANN")
ROOM, OFF, DIRECT = Place("C0ROOM"), Place("C0OFF"), Place("D0ANN", direct=True)
ACCESS = Access(frozenset({"U0ADA"}), frozenset({"U0APP"}), frozenset({"C0ROOM"}))
OWN = Access(frozenset({"U0ADA"}), frozenset({"requester"}), frozenset({"C0ROOM"}))


def user(**fields: Any) -> dict[str, Any]:
    plain = {"deleted": False, "is_bot": False, "is_restricted": False, "is_ultra_restricted": False}
    return {"id": "U0ANN", "team_id": "T0HOME", **plain, **fields}


def channel(**fields: Any) -> dict[str, Any]:
    return {"id": "C0ROOM", "is_im": False, "is_ext_shared": False, "is_pending_ext_shared": False, **fields}


# -- people ------------------------------------------------------------------------------------------------------------


def test_a_member_is_a_member():
    assert person_of(user(), US) == Person("U0ANN")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"deleted": True}, words.DEACTIVATED),
        ({"is_bot": True}, words.A_BOT),
        ({"is_workflow_bot": True}, words.A_BOT),
        ({"id": "USLACKBOT"}, words.A_BOT),
        ({"is_restricted": True}, words.GUEST),
        ({"is_ultra_restricted": True}, words.GUEST),
        ({"is_stranger": True}, words.STRANGER),
        ({"team_id": "T0ELSE"}, words.STRANGER),
        ({"team_id": None}, words.STRANGER),
        ({"team_id": "T0ELSE", "enterprise_user": {"enterprise_id": "E0ELSE", "teams": ["T0ELSE"]}}, words.STRANGER),
        ({"is_stranger": True, "enterprise_user": {"enterprise_id": "E0ORG"}}, words.STRANGER),
    ],
)
@pytest.mark.parametrize(
    "access", [ACCESS, Access(frozenset({"U0ANN", "USLACKBOT"}), frozenset(), frozenset({"C0ROOM"}))]
)
def test_outsiders_and_machines_do_nothing_whatever_list_they_are_on(fields: dict[str, Any], why: str, access: Access):
    person = person_of(user(**fields), US)

    assert may_speak(Who(person, ROOM, access)) == Refusal(why)
    assert may_decide(Who(person, ROOM, access), "U0ANN") == Refusal(why)
    assert may_administer(Who(person, ROOM, access)) == Refusal(why)
    assert may_claim(Who(person, ROOM, access)) == Refusal(why)


@pytest.mark.parametrize(
    "fields",
    [
        {"team_id": "T0ELSE", "enterprise_user": {"enterprise_id": "E0ORG", "teams": ["T0ELSE"]}},
        {"team_id": "T0ELSE", "enterprise_user": {"enterprise_id": "E0ORG", "teams": ["T0ELSE", "T0HOME"]}},
        {"team_id": "E0ORG", "enterprise_user": {"enterprise_id": "E0ORG", "teams": "T0HOME"}},
    ],
)
def test_a_colleague_on_enterprise_grid_is_no_stranger(fields: dict[str, Any]):
    assert person_of(user(**fields), US) == Person("U0ANN")


def test_a_workspace_without_an_organisation_has_no_colleagues_elsewhere():
    alone = Identity("T0HOME")

    assert person_of(user(team_id="T0ELSE", enterprise_user={"enterprise_id": ""}), alone) == Person(
        "U0ANN", stranger=True
    )


@pytest.mark.parametrize("missing", ["id", "deleted", "is_bot", "is_restricted", "is_ultra_restricted"])
def test_a_person_of_whom_slack_says_too_little_may_do_nothing(missing: str):
    person = person_of({k: v for k, v in user().items() if k != missing}, US)

    assert person is None
    assert may_speak(Who(person, ROOM, ACCESS)) == Refusal(words.UNREADABLE_PERSON)
    assert may_decide(Who(person, ROOM, ACCESS), "U0ANN") == Refusal(words.UNREADABLE_PERSON)
    assert may_administer(Who(person, ROOM, ACCESS)) == Refusal(words.UNREADABLE_PERSON)


@pytest.mark.parametrize("junk", [None, [], "U0ANN", {}, {"id": 7}, {"id": "U:1", "deleted": True}])
def test_junk_is_nobody_and_nowhere(junk: object):
    assert person_of(junk, US) is None
    assert place_of(junk) is None


# -- places ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({}, Place("C0ROOM")),
        ({"is_ext_shared": True}, Place("C0ROOM", shared_outside=True)),
        ({"is_pending_ext_shared": True}, Place("C0ROOM", shared_outside=True)),
        ({"is_pending_ext_shared": "?"}, Place("C0ROOM", shared_outside=True)),
        ({"is_org_shared": True}, Place("C0ROOM")),
        ({"is_ext_shared": None}, None),
    ],
)
def test_a_channel_is_read_with_suspicion(fields: dict[str, Any], place: Place | None):
    assert place_of(channel(**fields)) == place


def test_a_direct_message_says_little_about_sharing():
    assert place_of({"id": "D0ANN", "is_im": True}) == DIRECT


def test_what_the_envelope_says_can_only_make_it_stricter():
    assert ROOM.hinted(True).shared_outside
    assert Place("C0ROOM", shared_outside=True).hinted(False).shared_outside


@pytest.mark.parametrize("place", [Place("C0ROOM", shared_outside=True), None])
def test_in_a_channel_shared_outside_or_unreadable_nobody_does_anything(place: Place | None):
    for refusal in (
        may_speak(Who(ADMIN, place, ACCESS)),
        may_decide(Who(ADMIN, place, ACCESS), "U0ADA"),
        may_administer(Who(ADMIN, place, ACCESS)),
        may_claim(Who(MEMBER, place, Access())),
    ):
        assert refusal in (Refusal(words.SHARED_OUTSIDE), Refusal(words.UNREADABLE_PLACE))


# -- what they may do --------------------------------------------------------------------------------------------------


def test_members_start_where_the_bot_is_switched_on():
    assert may_speak(Who(MEMBER, ROOM, ACCESS)) is None
    assert may_speak(Who(MEMBER, OFF, ACCESS)) == Refusal(words.SWITCHED_OFF)
    assert may_speak(Who(ADMIN, OFF, ACCESS)) == Refusal(words.SWITCHED_OFF)


@pytest.mark.parametrize(("person", "refusal"), [(ADMIN, None), (APPROVER, None), (MEMBER, Refusal(words.NO_DIRECT))])
def test_direct_messages_work_for_administrators_and_approvers(person: Person, refusal: Refusal | None):
    assert may_speak(Who(person, DIRECT, ACCESS)) == refusal
    assert may_speak(Who(person, DIRECT, Access(ACCESS.admins, ACCESS.approvers | {"requester"}))) == refusal


@pytest.mark.parametrize("person", [ADMIN, APPROVER])
def test_administrators_and_approvers_decide_their_own_calls_too(person: Person):
    assert may_decide(Who(person, ROOM, ACCESS), "U0ANN") is None
    assert may_decide(Who(person, ROOM, ACCESS), person.id) is None
    assert may_decide(Who(person, DIRECT, ACCESS), person.id) is None


def test_members_decide_nothing_unless_requesters_may():
    assert may_decide(Who(MEMBER, ROOM, ACCESS), "U0ANN") == Refusal(words.NOT_AN_APPROVER)
    assert may_decide(Who(MEMBER, ROOM, OWN), "U0ANN") is None
    assert may_decide(Who(Person("U0BEN"), ROOM, OWN), "U0ANN") == Refusal(words.NOT_AN_APPROVER)


def test_nobody_decides_in_a_channel_that_was_switched_off_meanwhile():
    assert may_decide(Who(ADMIN, OFF, ACCESS), "U0ANN") == Refusal(words.SWITCHED_OFF)


def test_empty_lists_mean_nobody():
    nobody = Access(channels=frozenset({"C0ROOM"}))

    assert may_speak(Who(MEMBER, ROOM, nobody)) == Refusal(words.NOBODY_ADMINISTERS)
    assert may_decide(Who(MEMBER, ROOM, nobody), "U0ANN") == Refusal(words.NOBODY_ADMINISTERS)
    assert may_administer(Who(MEMBER, ROOM, nobody)) == Refusal(words.NOBODY_ADMINISTERS)


def test_a_person_called_requester_is_no_approver():
    assert "requester" not in OWN.deciders


def test_only_administrators_administer_and_they_may_do_so_where_the_bot_is_off():
    assert may_administer(Who(ADMIN, OFF, ACCESS)) is None
    assert may_administer(Who(APPROVER, ROOM, ACCESS)) == Refusal(words.NOT_AN_ADMIN)


def test_the_bot_is_claimed_once():
    assert may_claim(Who(MEMBER, OFF, Access())) is None
    assert may_claim(Who(MEMBER, OFF, ACCESS)) == Refusal(words.NOT_AN_ADMIN)
