"""What people say: messages, edits, deletions, commands, and what happens around a channel."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from bot.local import people
from bot.local.messages import bot_profile, delete, kind, mention, person_message, publish, replace, thread_facts
from bot.local.payloads import command as command_payload
from bot.local.posted import kept_text, text_blocks
from bot.local.responses import respond
from bot.local.shapes import JSON, Answer, PersonCannot, SlackError
from bot.local.typed import Names, Said, inline, rich_text, typed
from bot.local.world import World


def may_act(world: World, user: str, channel: str, force: bool) -> None:
    """PersonCannot unless this person is active and in the channel."""
    if user not in world.people:
        raise PersonCannot(f"no such person: {user}")
    if channel not in world.channels:
        raise PersonCannot(f"no such channel: {channel}")
    if force:
        return
    if world.people[user]["deleted"]:
        raise PersonCannot(f"{user} is deactivated")
    if not world.is_in(user, channel):
        raise PersonCannot(f"{user} is not in {channel}")


def say(
    world: World, user: str, channel: str, text: str, thread_ts: str | None = None, *,
    files: Sequence[Mapping[str, Any]] = (), raw: bool = False, broadcast: bool = False, force: bool = False,
    client_msg_id: str | None = None,
) -> JSON:  # fmt: skip
    """A person writes.  Out: the message.  `raw`: the text is in Slack's escaped form already and has no blocks.

    `client_msg_id`: the client's own id, by which it finds the message again; made up where there is none."""
    may_act(world, user, channel, force)
    if thread_ts and not world.board.known(channel, thread_ts):
        raise PersonCannot(f"no such thread: {thread_ts}")
    if not text.strip() and not files:
        raise PersonCannot("there is nothing to send")
    if world.people[user]["is_bot"]:
        return bot_says(world, user, channel, text, thread_ts)
    said = Said(text, []) if raw else typed(text.strip(), world.names())  # the client trims
    message = person_message(world, user, channel, said, thread_ts, [_file(user, each) for each in files])
    if client_msg_id:
        message["client_msg_id"] = client_msg_id
    if raw:
        message.pop("blocks", None)
    if broadcast and thread_ts:
        root = world.board.find(channel, thread_ts)
        message |= {"subtype": "thread_broadcast", "root": root and root["message"]}
    publish(world, channel, message)
    return message


def bot_says(world: World, user: str, channel: str, text: str, thread_ts: str | None) -> JSON:
    """Another app's bot writes: a message with bot_id and app_id, and no subtype, as bots with a token do."""
    profile = bot_profile(world, user)
    message = {
        "user": user, "type": "message", "ts": world.stamps.next(), "bot_id": profile["id"],
        "app_id": profile["app_id"], "text": kept_text(text), "team": people.TEAM_ID, "bot_profile": profile,
        "blocks": text_blocks(text),
    } | thread_facts(world, channel, thread_ts)  # fmt: skip
    publish(world, channel, message)
    return message


def notice(world: World, channel: str, subtype: str, user: str, text: str = "", **facts: object) -> JSON:
    """A message with a subtype: channel_join, channel_topic, me_message, bot_message and their like."""
    message: JSON = {"type": "message", "subtype": subtype, "user": user, "text": text, "ts": world.stamps.next()}
    if subtype == "channel_join" and not text:
        message["text"] = f"<@{user}> has joined the channel"
    if subtype == "bot_message":
        del message["user"]
        message |= {"bot_id": people.OTHER_BOT_ID, "username": "webhook", "icons": {}}
    message |= facts
    publish(world, channel, message, mentionable=subtype in ("bot_message", "me_message"))
    return message


def _file(user: str, given: Mapping[str, Any]) -> JSON:
    name = str(given.get("name", "file.txt"))
    blank = {
        "id": f"F{uuid.uuid4().hex[:9].upper()}", "created": people.CREATED, "timestamp": people.CREATED,
        "name": name, "title": name, "mimetype": "text/plain", "filetype": "text", "pretty_type": "Plain Text",
        "user": user, "editable": False, "size": 0, "mode": "hosted", "is_external": False, "external_type": "",
        "is_public": True, "public_url_shared": False, "display_as_bot": False, "username": "",
        "url_private": f"https://files.slack.com/files-pri/{name}", "permalink": f"https://files.slack.com/{name}",
        "url_private_download": f"https://files.slack.com/files-pri/download/{name}", "file_access": "visible",
    }  # fmt: skip
    return blank | dict(given)


def edit(world: World, user: str, channel: str, ts: str, text: str, *, force: bool = False) -> JSON:
    """A person changes a message of theirs.  Out: the message afterwards."""
    record = _theirs(world, user, channel, ts, force)
    said = typed(text, world.names())
    old: JSON = record["message"]
    fresh = old | {
        "text": said.text, "blocks": rich_text(said, uuid.uuid4().hex[:5]),
        "edited": {"user": user, "ts": world.stamps.next()},
    }  # fmt: skip
    replace(world, record, fresh)
    if f"<@{people.BOT_USER}>" not in old.get("text", ""):
        mention(world, channel, fresh)  # a mention that was added by the edit
        world.file.flush()
    return fresh


def erase(world: World, user: str, channel: str, ts: str, *, force: bool = False) -> None:
    """A person deletes a message of theirs."""
    delete(world, _theirs(world, user, channel, ts, force))


def _theirs(world: World, user: str, channel: str, ts: str, force: bool) -> JSON:
    may_act(world, user, channel, force)
    record = world.board.find(channel, ts)
    if record is None:
        raise PersonCannot(f"no such message: {ts}")
    if not force and record["message"].get("user") != user:
        raise PersonCannot(f"{ts} was not written by {user}")
    return record


def join(world: World, user: str, channel: str) -> None:
    """A person, or the app's bot, comes into a channel."""
    world.channels[channel] = world.channels[channel] | {"members": [*world.members(channel), user]}
    stamp = world.stamps.next()
    event = {
        "type": "member_joined_channel", "user": user, "channel": channel, "team": world.people[user]["team_id"],
        "channel_type": "G" if kind(world, channel) == "group" else "C", "inviter": people.ADA, "event_ts": stamp,
    }  # fmt: skip
    world.emit(event, channel)
    notice(world, channel, "channel_join", user, inviter=people.ADA)


def leave(world: World, user: str, channel: str) -> None:
    """A person goes out of a channel, or the app's bot is removed."""
    here = [member for member in world.members(channel) if member != user]
    world.channels[channel] = world.channels[channel] | {"members": here}
    notice(world, channel, "channel_leave", user, f"<@{user}> has left the channel")


async def command(
    world: World, user: str, channel: str, name: str, text: str, thread_ts: str | None = None, *, force: bool = False
) -> Answer:
    """A person sends a slash command.  Out: what came of it, once the app acknowledged or did not in time."""
    may_act(world, user, channel, force)
    if thread_ts:
        world.log.saw(user, "not_supported_in_threads", command=name)
        return Answer(False, "not_supported_in_threads")
    if name not in world.settings.commands:
        world.log.saw(user, "invalid_command", command=name)
        return Answer(False, "invalid_command")
    payload = command_payload(world, user, channel, name, escaped(text, world.names()))
    key = world.hub.offer("slash_commands", payload, accepts=True, user=user)
    answer = await world.hub.answer(key)
    if answer.ok and answer.payload:
        try:
            respond(world, {"channel": channel, "user": user, "ts": None}, answer.payload)
        except SlackError as error:
            world.log.saw(user, error.code, command=name)
    return answer


def escaped(text: str, names: Names) -> str:
    """A command's text with should_escape: names become ids with their label, addresses become links."""
    labels = {user: name for name, user in names.users.items() if name != user.lower()}
    # A command is one run of text: no lists, quotes or fences are made of it.
    marked = inline(text, names, {}).text
    for user, name in labels.items():
        marked = marked.replace(f"<@{user}>", f"<@{user}|{name}>")
    return marked
