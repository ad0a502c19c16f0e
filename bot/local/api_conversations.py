"""conversations.* and reactions.*: reading channels and threads, and the small signs on messages."""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Final

from bot.local import people, rules
from bot.local.arguments import Arguments
from bot.local.shapes import JSON, SlackError
from bot.local.world import World


def info(world: World, arguments: Arguments) -> JSON:
    channel = arguments.channel(world, member=False)
    arguments.scoped(world, channel, "read")
    found = dict(world.info(channel))
    if not found.get("is_im"):
        found["is_member"] = world.is_in(people.BOT_USER, channel)
    if arguments.flag("include_num_members"):
        found["num_members"] = len(world.members(channel))
    return {"channel": found}


def members(world: World, arguments: Arguments) -> JSON:
    channel = arguments.channel(world, member=False)
    arguments.scoped(world, channel, "read")
    page, cursor = paged(world.members(channel), arguments, 100)
    return {"members": page, "response_metadata": {"next_cursor": cursor}}


def opened(world: World, arguments: Arguments) -> JSON:
    users = [user for user in arguments.text("users").split(",") if user]
    if arguments.has("channel"):
        channel = arguments.channel(world)
    elif len(users) != 1:
        raise SlackError("users_list_not_supplied" if not users else "method_not_supported_for_channel_type")
    elif people.direct_id(users[0]) not in world.channels:
        raise SlackError("cannot_dm_bot" if users[0] in world.people else "user_not_found")
    else:
        channel = people.direct_id(users[0])
    if arguments.flag("return_im"):
        return {"channel": world.info(channel), "no_op": True, "already_open": True}
    return {"channel": {"id": channel}}


def history(world: World, arguments: Arguments) -> JSON:
    channel = arguments.channel(world)
    arguments.scoped(world, channel, "history")
    found = [record for record in world.board.history(channel) if _within(record, arguments)]
    page, cursor = paged(found[::-1], arguments, 100)
    return _read(world, page, cursor, arguments) | {"pin_count": 0, "channel_actions_ts": None}


def replies(world: World, arguments: Arguments) -> JSON:
    channel = arguments.channel(world)
    arguments.scoped(world, channel, "history")
    root = arguments.text("ts", "thread_not_found")
    found = list(world.board.replies(channel, root))
    if not found:
        raise SlackError("thread_not_found")
    later = [record for record in found[1:] if _within(record, arguments)]
    page, cursor = paged([found[0], *later], arguments, 1000)
    return _read(world, page, cursor, arguments)


def _read(world: World, page: list[JSON], cursor: str, arguments: Arguments) -> JSON:
    messages = [dict(world.board.seen(record)) for record in page]
    if not arguments.flag("include_all_metadata"):
        for message in messages:
            message.pop("metadata", None)
    found: JSON = {"messages": messages, "has_more": bool(cursor)}
    return found | ({"response_metadata": {"next_cursor": cursor}} if cursor else {})


def _within(record: JSON, arguments: Arguments) -> bool:
    moment = float(record["message"]["ts"])
    oldest, latest = float(arguments.text("oldest") or 0), float(arguments.text("latest") or "inf")
    if arguments.flag("inclusive"):
        return oldest <= moment <= latest
    return oldest < moment < latest


def paged(items: list[Any], arguments: Arguments, default: int) -> tuple[list[Any], str]:
    """One page of a list, and the cursor of the next ("" at the end)."""
    limit = arguments.number("limit", default)
    if not 1 <= limit <= 1000:
        raise SlackError("invalid_limit")
    try:
        start = int(base64.b64decode(arguments.text("cursor") or "MA==").removeprefix(b"next:"))
    except (ValueError, binascii.Error):
        raise SlackError("invalid_cursor") from None
    end = start + limit
    return items[start:end], base64.b64encode(b"next:%d" % end).decode() if end < len(items) else ""


def _item(world: World, arguments: Arguments) -> tuple[JSON, str, list[JSON]]:
    """The message that a reaction is about, the reaction's name, and the reactions there."""
    name = arguments.text("name", "invalid_name").strip(":")
    if not arguments.has("channel") or not arguments.has("timestamp"):
        raise SlackError("no_item_specified")
    record = world.board.find(arguments.channel(world), arguments.text("timestamp"))
    if record is None:
        raise SlackError("message_not_found")
    if not name.replace("_", "").replace("-", "").replace("+", "").replace("'", "").replace(":", "").isalnum():
        raise SlackError("invalid_name")
    return record, name, list(record["message"].get("reactions", ()))


def add_reaction(world: World, arguments: Arguments) -> JSON:
    record, name, reactions = _item(world, arguments)
    mine = [item["name"] for item in reactions if people.BOT_USER in item["users"]]
    if name in mine:
        raise SlackError("already_reacted")
    if len(mine) >= rules.REACTIONS_EACH:
        raise SlackError("too_many_reactions")
    return _react(world, record, react(reactions, name, people.BOT_USER))


def remove_reaction(world: World, arguments: Arguments) -> JSON:
    record, name, reactions = _item(world, arguments)
    if not any(item["name"] == name and people.BOT_USER in item["users"] for item in reactions):
        raise SlackError("no_reaction")
    return _react(world, record, unreact(reactions, name, people.BOT_USER))


def _react(world: World, record: JSON, reactions: list[JSON]) -> JSON:
    message = {key: value for key, value in record["message"].items() if key != "reactions"}
    world.board.change(record, message | ({"reactions": reactions} if reactions else {}))
    world.log.changed()
    return {}


def react(reactions: list[JSON], name: str, user: str) -> list[JSON]:
    """The reactions of a message after one more."""
    users: list[str] = next((item["users"] for item in reactions if item["name"] == name), [])
    fresh = {"name": name, "users": [*users, user], "count": len(users) + 1}
    if not users:
        return [*reactions, fresh]
    return [fresh if item["name"] == name else item for item in reactions]


def unreact(reactions: list[JSON], name: str, user: str) -> list[JSON]:
    """The reactions of a message after one was taken away."""
    fewer = [
        item | {"users": [each for each in item["users"] if each != user], "count": item["count"] - 1}
        if item["name"] == name
        else item
        for item in reactions
    ]
    return [item for item in fewer if item["count"]]


METHODS: Final[Mapping[str, Callable[[World, Arguments], JSON]]] = {
    "conversations.info": info,
    "conversations.members": members,
    "conversations.open": opened,
    "conversations.history": history,
    "conversations.replies": replies,
    "reactions.add": add_reaction,
    "reactions.remove": remove_reaction,
}
