"""Who may start, speak, decide and administer.  Pure, and one place for messages, clicks, modals and commands alike.

It fails closed: what Slack does not say plainly is refused, and an empty list means nobody. Slack's own administrators
are not ours. Every question is asked again at every click, with people and places as Slack describes them now.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Final

from bot import words
from bot.fields import map_of
from bot.ids import SLACK_ITSELF, Identity, is_slack_id

# In the list of approvers: whoever began a run decides its calls too.
REQUESTER: Final = "requester"


@dataclass(frozen=True, slots=True)
class Refusal:
    """No, and why, in a sentence for the person who asked."""

    why: str


@dataclass(frozen=True, slots=True)
class Person:
    """A person as users.info describes them. guest: restricted in either way. stranger: of another organisation."""

    id: str
    bot: bool = False
    deleted: bool = False
    guest: bool = False
    stranger: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A conversation as conversations.info describes it. shared_outside: with another organisation, or soon."""

    id: str
    direct: bool = False
    shared_outside: bool = False

    def hinted(self, shared_outside: bool) -> Place:
        """The same place, given what an event's envelope says about it: it can only make things stricter."""
        return replace(self, shared_outside=self.shared_outside or shared_outside)


@dataclass(frozen=True, slots=True)
class Access:
    """The settings that access rests on: ids of people, and of the channels that are switched on."""

    admins: Set[str] = frozenset()
    approvers: Set[str] = frozenset()
    channels: Set[str] = frozenset()

    @property
    def deciders(self) -> Set[str]:
        """The ids of those who decide whatever anybody began."""
        return self.admins | (self.approvers - {REQUESTER})

    @property
    def most_who_decide(self) -> int:
        """How many people can decide one call; whoever asked for it may be one more."""
        return len(self.deciders) + (REQUESTER in self.approvers)


@dataclass(frozen=True, slots=True)
class Who:
    """A person at a place, under the settings of now."""

    person: Person | None
    place: Place | None
    access: Access

    @property
    def decides(self) -> bool:
        """Whether this person decides whatever anybody began."""
        return self.person is not None and self.person.id in self.access.deciders


def person_of(user: object, us: Identity) -> Person | None:
    """The `user` of users.info. None if what we must know is not there: then nothing may be done for them."""
    if not isinstance(user, Mapping):
        return None
    match user:
        case {
            "id": str(name),
            "deleted": bool(deleted),
            "is_bot": bool(bot),
            "is_restricted": bool(restricted),
            "is_ultra_restricted": bool(ultra),
        } if is_slack_id(name):
            machine = bot or user.get("is_workflow_bot") is True or user.get("is_connector_bot") is True
            stranger = _is_stranger(user, us)
            return Person(name, machine or name in SLACK_ITSELF, deleted, restricted or ultra, stranger)
        case {"id": str(name), "deleted": True} if is_slack_id(name):
            return Person(name, deleted=True)  # of a deactivated account Slack tells little more
    return None


def place_of(channel: object) -> Place | None:
    """The `channel` of conversations.info. None if it does not say whether it is shared with others."""
    if not isinstance(channel, Mapping):
        return None
    match channel:
        case {"id": str(name), "is_im": True} if is_slack_id(name):
            return Place(name, direct=True, shared_outside=_any(channel, "is_ext_shared", "is_pending_ext_shared"))
        case {"id": str(name), "is_ext_shared": bool(shared)} if is_slack_id(name):
            return Place(name, shared_outside=shared or _any(channel, "is_pending_ext_shared"))
    return None


def may_speak(who: Who) -> Refusal | None:
    """Whether what they say may begin a run here, or reach the agent in a thread of ours: members in channels that are
    on; in direct messages those who decide. Speaking gives no right to decide.
    """
    if refusal := _refused(who):
        return refusal
    if who.place and who.place.direct and not who.decides:
        return Refusal(words.NO_DIRECT)
    return None


def may_decide(who: Who, requester: str) -> Refusal | None:
    """Whether they may decide a task of a run that `requester` began, now and here."""
    if refusal := _refused(who):
        return refusal
    own = who.person is not None and who.person.id == requester and REQUESTER in who.access.approvers
    return None if who.decides or own else Refusal(words.NOT_AN_APPROVER)


def may_administer(who: Who) -> Refusal | None:
    """Whether they may change settings and rules from here. The channel need not be on: they may be switching it on."""
    if refusal := may_look(who):
        return refusal
    if who.person is None or who.person.id not in who.access.admins:
        return Refusal(words.NOT_AN_ADMIN if who.access.admins else words.NOBODY_ADMINISTERS)
    return None


def may_look(who: Who) -> Refusal | None:
    """Whether they may see how things are set here, and so who decides: members, whether or not the channel is on."""
    return _unfit(who.person) or _outside(who.place)


def may_claim(who: Who) -> Refusal | None:
    """Whether they may become the first administrator, if their code is right: only while there is none."""
    if refusal := may_look(who):
        return refusal
    return Refusal(words.NOT_AN_ADMIN) if who.access.admins else None


def _refused(who: Who) -> Refusal | None:
    """What holds for everybody who wants anything of the agent."""
    if refusal := may_look(who):
        return refusal
    if not who.access.admins:
        return Refusal(words.NOBODY_ADMINISTERS)
    if who.place is None or not (who.place.direct or who.place.id in who.access.channels):
        return Refusal(words.SWITCHED_OFF)
    return None


def _unfit(person: Person | None) -> Refusal | None:
    if person is None:
        return Refusal(words.UNREADABLE_PERSON)
    unfit = (
        (person.deleted, words.DEACTIVATED),
        (person.bot, words.A_BOT),
        (person.stranger, words.STRANGER),
        (person.guest, words.GUEST),
    )
    return next((Refusal(why) for holds, why in unfit if holds), None)


def _outside(place: Place | None) -> Refusal | None:
    if place is None:
        return Refusal(words.UNREADABLE_PLACE)
    return Refusal(words.SHARED_OUTSIDE) if place.shared_outside else None


def _is_stranger(user: Mapping[str, Any], us: Identity) -> bool:
    """Of another organisation. A colleague in another workspace of our Enterprise Grid is none."""
    if user.get("is_stranger") is True:
        return True
    grid = map_of(user.get("enterprise_user"))
    teams = grid.get("teams")
    at_home = user.get("team_id") == us.team_id or (isinstance(teams, list) and us.team_id in teams)
    colleague = bool(us.enterprise_id) and grid.get("enterprise_id") == us.enterprise_id
    return not ((bool(us.team_id) and at_home) or colleague)


def _any(mapping: Mapping[str, Any], *names: str) -> bool:
    """Whether any of these is there and is not plainly false."""
    return any(mapping.get(name, False) is not False for name in names)
