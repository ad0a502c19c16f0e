"""What somebody did with a card, a form or a command, as one of our words.  Pure; `inbound` says what is for us."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot import ids, words
from bot.fields import map_of, maps_of, text_of
from bot.heard import Configure, Decide, Edit, Ignore, Inbound, OpenModal, Origin, Reach
from bot.ids import Identity
from bot.typed import typed_command
from harness_core.hitl import Approve, Decision, Happened, Reject, Rerun, Skip


def click(payload: Mapping[str, Any], us: Identity) -> Inbound:
    """A button of a card was clicked."""
    clicked = next(iter(maps_of(payload.get("actions"))), {})
    origin = _clicker(payload)
    if origin is None:
        return Ignore("the click is malformed")
    action, ref = ids.action_of(text_of(clicked, "action_id")), ids.ref_of(text_of(clicked, "value"))
    if action is None or ref is None or not ids.addressable(origin.channel, origin.user, origin.message_ts):
        return Ignore("the click names no task of ours", words.UNREADABLE, origin)
    session_id, block = origin.session_id(us), text_of(clicked, "block_id")
    if action == "approve":
        return Decide(session_id, ref, Approve(), origin, "button", block)
    if action == "rerun":
        return Decide(session_id, ref, Rerun(), origin, "button", block)
    return OpenModal(session_id, ref, action, origin, block)


def submission(payload: Mapping[str, Any], view: Mapping[str, Any], us: Identity) -> Inbound:
    """A form was sent."""
    form, meant = ids.form_of(text_of(view, "callback_id")), ids.metadata_of(text_of(view, "private_metadata"))
    origin = _clicker(payload)
    if origin is None:
        return Ignore("the submission is malformed")
    if form is None or meant is None or meant[0].home != us.home:
        return Ignore("the modal names no task of ours", words.UNREADABLE, origin)
    thread, ref = meant
    there = Origin(origin.user, thread.channel, thread.ts, team=origin.team, trigger_id=origin.trigger_id)
    values = map_of(map_of(view.get("state")).get("values"))
    if form == "edit":
        return Edit(thread.session_id, ref, values, there)
    decision, reach = _decision(form, values), _reach(values) if form == "always" else Reach()
    if decision is None or reach is None:
        return Ignore("the modal was filled in with what it did not offer", words.UNREADABLE, origin)
    return Decide(thread.session_id, ref, decision, there, "modal", reach=reach)


def _decision(form: ids.Form, values: Mapping[str, Any]) -> Decision | None:
    comment = text_of(_input(values, ids.COMMENT), "value").strip() or None
    choice = _chosen(values, ids.CHOICE)
    match form, choice:
        case "review", _:
            return Approve()
        case "review_rerun", _:
            return Rerun()
        case "always", _:
            return Approve(always_allow=True)
        case "happened", _:
            return Happened(comment or "")
        case "reject", "stop" | "go_on" | "":
            return Reject(comment, {"stop": True, "go_on": False}.get(choice))
        case "skip", "done" | "left_out":
            return Skip(comment, done=choice == "done")
    return None


def _reach(values: Mapping[str, Any]) -> Reach | None:
    where, what = _chosen(values, ids.WHERE), _chosen(values, ids.WHAT)
    prefixes = ids.prefixes_of(what)
    if where not in ("", "thread", "channel") or not (prefixes or what in ("", "exact")):
        return None
    return Reach(where == "channel", prefixes)


def _chosen(values: Mapping[str, Any], name: str) -> str:
    return text_of(map_of(_input(values, name).get("selected_option")), "value")


def command(payload: Mapping[str, Any], text: str) -> Inbound:
    """A slash command was typed, with this text behind it."""
    user, channel, trigger = (text_of(payload, name) for name in ("user_id", "channel_id", "trigger_id"))
    if not (ids.is_slack_id(user) and ids.is_slack_id(channel) and trigger):
        return Ignore("the command is malformed")
    origin = Origin(user, channel, trigger_id=trigger, response_url=text_of(payload, "response_url"))
    said = typed_command(text).strip()
    verb, _, rest = said.partition(" ")
    return Configure(verb.casefold() or "help", rest.strip(), origin, trigger)


def _clicker(payload: Mapping[str, Any]) -> Origin | None:
    user, container, message = (map_of(payload.get(name)) for name in ("user", "container", "message"))
    channel = text_of(map_of(payload.get("channel")), "id") or text_of(container, "channel_id")
    message_ts = text_of(message, "ts") or text_of(container, "message_ts")
    thread_ts = text_of(message, "thread_ts") or text_of(container, "thread_ts")
    if not ids.is_slack_id(text_of(user, "id")) or (thread_ts and not ids.is_ts(thread_ts)):
        return None
    return Origin(
        text_of(user, "id"),
        channel,
        thread_ts,
        message_ts,
        team=text_of(user, "team_id"),
        trigger_id=text_of(payload, "trigger_id"),
        response_url=text_of(payload, "response_url"),
    )


def _input(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return map_of(map_of(values.get(name)).get(name))
