"""What Slack sent, in our own words.  Pure: nothing behind this door reads a payload, and nothing in a payload raises.

Events, clicks, submitted modals and slash commands become one of our values. Only shape is judged here; who may do
what is judged by `approvers`, against what Slack says when asked, never against the hints that a payload carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bot import ids, words
from bot.fields import is_map, map_of, maps_of, text_of
from bot.heard import (
    Amend,
    Decide,
    File,
    Ignore,
    Inbound,
    Origin,
    Prompt,
    Removed,
    Status,
    Stop,
    Why,
)
from bot.ids import Identity, Thread, thread_of
from bot.interactions import click, command, submission
from bot.typed import mentions, opens_for_others, typed
from harness_core.hitl import Approve, Decision, Reject

# Kinds of message that somebody says something with; all other subtypes report that something changed.
SAID: Final = frozenset({"", "file_share", "thread_broadcast", "me_message"})


def parse(payload: object, us: Identity) -> Inbound:
    """A payload of Slack's, whatever it holds, as one of our words. `us` is the installation that our token is for."""
    if not is_map(payload):
        return Ignore("it is no payload that we know")
    match payload:
        case {"type": "event_callback", "event": {"type": str()} as event}:
            return _event(payload, event, us) if _ours(payload, us) else Ignore("it is for another installation")
        case {"type": "block_actions"}:
            return click(payload, us) if _our_app(payload, us) else Ignore("it is for another app")
        case {"type": "view_submission", "view": {"callback_id": str()} as view}:
            return submission(payload, view, us) if _our_app(payload, us) else Ignore("it is for another app")
        case {"command": str(), "text": str(text)}:
            return command(payload, text) if _our_app(payload, us) else Ignore("it is for another app")
        case {"type": str(kind)}:
            return Ignore(f"nothing is done on {kind[:40]}")
    return Ignore("it is no payload that we know")


# -- events ------------------------------------------------------------------------------------------------------------


def _event(payload: Mapping[str, Any], event: Mapping[str, Any], us: Identity) -> Inbound:
    shared = payload.get("is_ext_shared_channel") is True
    match event:
        case {"type": "app_mention" | "message", "subtype": "message_changed", "message": {} as now}:
            return _edited(event, now, map_of(event.get("previous_message")), shared, us)
        case {"type": "message", "subtype": "message_deleted", "previous_message": {} as before}:
            return _deleted(event, before, text_of(event, "deleted_ts") or text_of(before, "ts"), shared, us)
        case {"type": "app_mention" | "message"}:
            return _message(event, shared, us)
        case {"type": "agent_session_stopped", "channel": str(channel), "thread_ts": str(ts), "user": str(user)}:
            if not ids.addressable(channel, user, ts):
                return Ignore("the event is malformed")
            # When it was pressed, in a message's place: what is delivered late, or twice, must stop no later run.
            at = text_of(event, "event_ts")
            origin = Origin(user, channel, ts, at if ids.is_ts(at) else "", shared_outside=shared)
            return Stop(origin.session_id(us), origin)
    return Ignore(f"nothing is done on {text_of(event, 'type')[:40]}")


def _message(event: Mapping[str, Any], shared: bool, us: Identity) -> Inbound:
    if why := _not_a_person(event, us):
        return Ignore(why)
    if text_of(event, "subtype") not in SAID or event.get("hidden") is True:
        return Ignore("the message reports a change")
    origin = _origin(event, event, shared)
    if origin is None:
        return Ignore("the message is malformed")
    kind = text_of(event, "channel_type")
    direct = kind == "im" or (not kind and origin.channel.startswith("D"))
    addressed = direct or event.get("type") == "app_mention" or mentions(event, us.bot_user_id)
    if not direct and opens_for_others(event, us.bot_user_id):
        return Ignore("the message is for somebody else")
    if not addressed and not origin.thread_ts:
        return Ignore("nobody addressed the bot")

    said = typed(event, us.bot_user_id)
    session_id, key = origin.session_id(us), ids.claim_key(us.home, origin.channel, origin.message_ts)
    if (word := _word(said, session_id, origin, key)) is not None:
        return word
    files = _files(event)
    if not said.strip() and not files:
        return Status(session_id, origin, key) if addressed else Ignore("the message is empty")
    return Prompt(key, session_id, said, origin, float(origin.message_ts), addressed, direct, files)


def _edited(
    event: Mapping[str, Any], now: Mapping[str, Any], before: Mapping[str, Any], shared: bool, us: Identity
) -> Inbound:
    if now.get("subtype") == "tombstone":  # the deleted root of a thread that has replies
        return _deleted(event, {**before, "ts": now.get("ts")}, text_of(now, "ts"), shared, us)
    if why := _not_a_person(now, us):
        return Ignore(why)
    # Slack also reports a change when it unfurls a link or counts a reply: then the text is what it was.
    if not isinstance(now.get("edited"), Mapping) or (before and _same(now, before)):
        return Ignore("the text did not change")
    origin = _origin(event, now, shared)
    if origin is None:
        return Ignore("the edit is malformed")
    key = ids.claim_key(us.home, origin.channel, origin.message_ts)
    return Amend(key, origin.session_id(us), typed(now, us.bot_user_id), origin)


def _deleted(event: Mapping[str, Any], before: Mapping[str, Any], ts: str, shared: bool, us: Identity) -> Inbound:
    if us.bot_id and before.get("bot_id") == us.bot_id and ids.is_ts(ts):
        thread = Thread(us.home, text_of(event, "channel"), text_of(before, "thread_ts") or ts)
        return Removed(thread.session_id, ts) if thread_of(thread.session_id) else Ignore("the deletion is malformed")
    if why := _not_a_person(before, us):
        return Ignore(why)
    origin = _origin(event, {**before, "ts": ts}, shared)
    if origin is None:
        return Ignore("the deletion is malformed")
    return Amend(ids.claim_key(us.home, origin.channel, ts), origin.session_id(us), None, origin)


def _same(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    return typed(now) == typed(before)


def _word(said: str, session_id: str, origin: Origin, key: str) -> Inbound | None:
    """The thread word that a message consists of, if it does. A plain "yes" is none, and never approves."""
    match said.split(maxsplit=2):
        case [word, *_] if word.casefold() == "!stop":
            return Stop(session_id, origin, key)
        case [word, *_] if word.casefold() == "!status":
            return Status(session_id, origin, key)
        case [word, *_] if word.casefold() == "!why":
            return Why(session_id, origin, key)
        case [word, *rest] if word.casefold() in ("!approve", "!reject"):
            task = ids.typed_ref(rest[0]) if rest else None
            approve, why = word.casefold() == "!approve", rest[1].strip() if len(rest) > 1 else ""
            if task is None:
                return Ignore("the word names no task", words.NO_ID, origin)
            if approve and why:  # an approval with a condition is none
                return Ignore("the approval says more than the id", words.APPROVE_ALONE, origin)
            decision: Decision = Approve() if approve else Reject(why or None)
            return Decide(session_id, task, decision, origin, "word", key=key)
    return None


# -- who and where -----------------------------------------------------------------------------------------------------


def _ours(payload: Mapping[str, Any], us: Identity) -> bool:
    """Whether our token can answer it: one socket carries the events of every workspace that has the app."""
    who = maps_of(payload.get("authorizations"))
    teams, organisations = ({text_of(one, name) for one in who} for name in ("team_id", "enterprise_id"))
    ours = not who or us.team_id in teams or (us.org_wide and us.enterprise_id in organisations)
    return ours and _our_app(payload, us)


def _our_app(payload: Mapping[str, Any], us: Identity) -> bool:
    """Whether it names our app. Slack always names one, so what names none is not from Slack."""
    return bool(us.app_id) and text_of(payload, "api_app_id") == us.app_id


def _not_a_person(message: Mapping[str, Any], us: Identity) -> str:
    """Why this message is no person's, or ""."""
    user = text_of(message, "user")
    if user in (us.bot_user_id, *ids.SLACK_ITSELF):
        return "the bot or Slack itself said it"
    if message.get("bot_id") or message.get("app_id") or message.get("bot_profile") or message.get("is_bot"):
        return "a bot said it"
    return "" if ids.is_slack_id(user) else "nobody is named as its author"


def _origin(event: Mapping[str, Any], message: Mapping[str, Any], shared: bool) -> Origin | None:
    """Who wrote a message and where. The channel stands in the event, the rest in the message."""
    channel = text_of(event, "channel") or text_of(message, "channel")
    user, ts, thread_ts = (text_of(message, name) for name in ("user", "ts", "thread_ts"))
    if not ids.addressable(channel, user, ts) or (thread_ts and not ids.is_ts(thread_ts)):
        return None
    team = text_of(message, "user_team") or text_of(message, "source_team") or text_of(message, "team")
    return Origin(user, channel, thread_ts, ts, team=team, shared_outside=shared)


def _files(event: Mapping[str, Any]) -> tuple[File, ...]:
    found = maps_of(event.get("files"))
    return tuple(File(text_of(one, "id"), text_of(one, "name")) for one in found if ids.is_slack_id(text_of(one, "id")))
