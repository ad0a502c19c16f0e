"""Posting, changing and deleting messages, and the events that follow from it."""

import uuid

from bot.local import people
from bot.local.posted import kept_blocks, kept_text, text_blocks
from bot.local.shapes import JSON
from bot.local.typed import Said, rich_text
from bot.local.world import World


def bot_profile(world: World, user: str) -> JSON:
    """The facts about an app's bot that stand in its messages."""
    profile = world.people[user]["profile"]
    icons = dict.fromkeys(("image_36", "image_48", "image_72"), "")
    return {
        "id": profile["bot_id"], "deleted": False, "name": world.people[user]["name"], "updated": people.CREATED,
        "app_id": profile["api_app_id"], "icons": icons, "team_id": people.TEAM_ID,
    }  # fmt: skip


def app_message(world: World, text: str, blocks: list[JSON] | None, **facts: object) -> JSON:
    """A new message of our app.  In: its text, its blocks (None: Slack makes some of the text), and what else."""
    return {
        "user": people.BOT_USER, "type": "message", "ts": world.stamps.next(), "bot_id": people.BOT_ID,
        "app_id": people.APP_ID, "text": kept_text(text), "team": people.TEAM_ID,
        "bot_profile": bot_profile(world, people.BOT_USER),
        "blocks": kept_blocks(blocks) if blocks else text_blocks(text) if text else [],
    } | facts  # fmt: skip


def thread_facts(world: World, channel: str, thread_ts: str | None) -> JSON:
    """thread_ts and parent_user_id, as a reply has them."""
    if not thread_ts:
        return {}
    root = world.board.find(channel, thread_ts)
    parent = root["message"].get("user") if root else None
    return {"thread_ts": thread_ts} | ({"parent_user_id": parent} if parent else {})


def person_message(world: World, user: str, channel: str, said: Said, thread_ts: str | None, files: list[JSON]) -> JSON:
    """A new message that a person typed."""
    team = world.people[user]["team_id"]
    message: JSON = {
        "user": user, "type": "message", "ts": world.stamps.next(), "client_msg_id": str(uuid.uuid4()),
        "text": said.text, "team": team, "blocks": rich_text(said, uuid.uuid4().hex[:5]),
    }  # fmt: skip
    if files:
        message |= {"subtype": "file_share", "files": files, "upload": False, "display_as_bot": False}
        if not said.text:
            del message["blocks"]
    if team != people.TEAM_ID:
        profile = world.people[user]["profile"]
        message |= {"user_team": team, "source_team": team, "user_profile": {
            "name": world.people[user]["name"], "real_name": profile["real_name"], "team": team,
            "first_name": profile["first_name"], "display_name": profile["display_name"], "is_restricted": False,
            "is_ultra_restricted": False, "avatar_hash": "", "image_72": "",
        }}  # fmt: skip
    return message | thread_facts(world, channel, thread_ts)


def publish(world: World, channel: str, message: JSON, *, own_blocks: bool = False, mentionable: bool = True) -> JSON:
    """Keep a new message and tell the app about it: once as a message, and once more if it mentions the app."""
    record = world.board.add(channel, message, own_blocks=own_blocks)
    event = message | {"channel": channel, "event_ts": message["ts"], "channel_type": kind(world, channel)}
    world.emit(event, channel)
    if mentionable:
        mention(world, channel, message)
    if message.get("bot_id") == people.BOT_ID and "thread_ts" in message:
        # An answer ends "is thinking…" by itself: docs.slack.dev/reference/methods/assistant.threads.setStatus
        world.sessions.get(f"{channel}:{message['thread_ts']}", {}).pop("status", None)
    world.file.flush()
    world.log.changed()
    return record


def mention(world: World, channel: str, message: JSON) -> None:
    """The second event of a message that mentions the app.  There is none in direct messages."""
    mine = message.get("user") == people.BOT_USER
    if mine or kind(world, channel) == "im" or f"<@{people.BOT_USER}>" not in message.get("text", ""):
        return
    event = {key: value for key, value in message.items() if key != "subtype"}
    world.emit(event | {"type": "app_mention", "channel": channel, "event_ts": message["ts"]}, channel)


def kind(world: World, channel: str) -> str:
    return people.kind_of(world.info(channel))


def replace(world: World, record: JSON, message: JSON, *, own_blocks: bool | None = None) -> None:
    """Change what a message says; the app is told before and after."""
    before = world.board.seen(record)
    world.board.change(record, message, own_blocks=own_blocks)
    _changed(world, record, world.board.seen(record), before)


def _changed(world: World, record: JSON, after: JSON, before: JSON) -> None:
    ts, channel = world.stamps.next(), record["channel"]
    event = {
        "type": "message", "subtype": "message_changed", "message": after, "previous_message": before,
        "channel": channel, "hidden": True, "ts": ts, "event_ts": ts, "channel_type": kind(world, channel),
    }  # fmt: skip
    world.emit(event, channel)
    world.file.flush()
    world.log.changed()


def delete(world: World, record: JSON) -> None:
    """Delete a message.  One that has replies leaves a tombstone, which Slack reports as a change."""
    channel, before = record["channel"], world.board.seen(record)
    if before.get("reply_count"):
        stone = {
            "type": "message", "subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted.",
            "hidden": True, "ts": before["ts"],
        }  # fmt: skip
        world.board.change(record, stone)
        _changed(world, record, world.board.seen(record), before)
        return
    world.board.remove(record)
    ts = world.stamps.next()
    event = {
        "type": "message", "subtype": "message_deleted", "previous_message": before, "channel": channel,
        "hidden": True, "deleted_ts": before["ts"], "ts": ts, "event_ts": ts, "channel_type": kind(world, channel),
    }  # fmt: skip
    world.emit(event, channel)
    world.file.flush()
    world.log.changed()


def whisper(
    world: World, channel: str, user: str, text: str, blocks: list[JSON] | None, thread_ts: str | None = None
) -> JSON:
    """Show a message to one person only.  Out: its record."""
    message = app_message(world, text, blocks, **({"thread_ts": thread_ts} if thread_ts else {}))
    record = world.board.add(channel, message, own_blocks=bool(blocks), only_for=user)
    world.file.flush()
    world.log.changed()
    return record
