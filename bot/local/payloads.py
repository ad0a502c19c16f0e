"""The payloads of interactions and commands, in Slack's shape."""

from typing import Any

from bot.local import people
from bot.local.shapes import JSON
from bot.local.views import chosen, initial_values
from bot.local.world import World


def frame(world: World, kind: str, user: str) -> JSON:
    """What every interaction has: its type, who, where from, and for which app."""
    person = world.people[user]
    return {
        "type": kind, "token": "local", "api_app_id": people.APP_ID, "enterprise": None,
        "is_enterprise_install": False, "team": {"id": people.TEAM_ID, "domain": people.TEAM_DOMAIN},
        "user": {"id": user, "username": person["name"], "name": person["name"], "team_id": person["team_id"]},
    }  # fmt: skip


def channel_name(info: JSON) -> str:
    """A channel's name in payloads: direct messages and private channels do not give theirs away."""
    return "directmessage" if info.get("is_im") else "privategroup" if info.get("is_private") else str(info["name"])


def action(world: World, part: JSON, value: Any) -> JSON:
    """One entry of `actions`.  In: the element as it was shown, and what the person chose or typed."""
    stamp = f"{world.clock():.6f}"
    acted: JSON = {"action_id": part["action_id"], "block_id": part["block_id"], "type": part["type"]}
    if part["type"] == "button":
        acted |= {key: part[key] for key in ("text", "value", "style", "url") if key in part}
        if value is not None:
            acted["value"] = value
    elif part["type"] in ("feedback_buttons", "icon_button"):
        acted["value"] = value
    else:
        acted |= chosen(part, value)
        if "placeholder" in part:
            acted["placeholder"] = part["placeholder"]
    return acted | {"action_ts": stamp}


def message_click(world: World, user: str, record: JSON, acted: JSON) -> JSON:
    """block_actions from a message or an ephemeral message."""
    channel, message = record["channel"], record["message"]
    container: JSON = {
        "type": "message", "message_ts": message["ts"], "channel_id": channel,
        "is_ephemeral": bool(record["only_for"]),
    }  # fmt: skip
    if "thread_ts" in message:
        container["thread_ts"] = message["thread_ts"]
    payload = frame(world, "block_actions", user) | {
        "container": container, "trigger_id": world.trigger(user), "state": {"values": _state(message, acted)},
        "channel": {"id": channel, "name": channel_name(world.info(channel))},
        "response_url": world.response_url(user, channel, message["ts"]), "actions": [acted],
    }  # fmt: skip
    if not record["only_for"]:  # Slack does not send ephemeral messages along
        payload["message"] = world.board.seen(record)
    return payload


def _state(message: JSON, acted: JSON) -> JSON:
    values = initial_values(message.get("blocks", []))
    return _with(values, acted)


def _with(values: JSON, acted: JSON) -> JSON:
    block, name = acted["block_id"], acted["action_id"]
    if name in values.get(block, {}):
        known = {key: value for key, value in acted.items() if key in values[block][name]}
        values[block][name] = values[block][name] | known
    return values


def view_click(world: World, user: str, view_id: str, acted: JSON) -> JSON:
    """block_actions from a modal or a Home tab: no channel, no message, no response_url."""
    view = world.views[view_id]["view"]
    _with(view["state"]["values"], acted)
    world.views.touch(view_id)
    return frame(world, "block_actions", user) | {
        "container": {"type": "view", "view_id": view_id}, "view": view, "state": view["state"],
        "trigger_id": world.trigger(user, view_id if view["type"] == "modal" else None), "actions": [acted],
    }  # fmt: skip


def submission(world: World, user: str, view: JSON) -> JSON:
    trigger = world.trigger(user, view["id"])
    return frame(world, "view_submission", user) | {"trigger_id": trigger, "view": view, "response_urls": []}


def closed(world: World, user: str, view: JSON, *, cleared: bool) -> JSON:
    return frame(world, "view_closed", user) | {"view": view, "is_cleared": cleared}


def command(world: World, user: str, channel: str, name: str, text: str) -> JSON:
    """A slash command.  In: its text as Slack escapes it."""
    return {
        "token": "local", "team_id": people.TEAM_ID, "team_domain": people.TEAM_DOMAIN, "channel_id": channel,
        "channel_name": channel_name(world.info(channel)), "user_id": user, "user_name": world.people[user]["name"],
        "command": name, "text": text, "api_app_id": people.APP_ID, "is_enterprise_install": "false",
        "response_url": world.response_url(user, channel, None), "trigger_id": world.trigger(user),
    }  # fmt: skip
