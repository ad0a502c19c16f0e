"""chat.*: what an app posts, changes and deletes."""

from collections.abc import Callable, Mapping
from typing import Final

from bot.local import people, rules
from bot.local.arguments import Arguments
from bot.local.messages import app_message, delete, publish, replace, thread_facts, whisper
from bot.local.posted import kept_blocks, kept_text, text_blocks
from bot.local.shapes import JSON, SlackError
from bot.local.world import World


def content(world: World, arguments: Arguments) -> tuple[str, list[JSON] | None, JSON]:
    """Text, blocks and the rest of a message to post, or SlackError."""
    text, blocks, extra = arguments.whole_text(), arguments.blocks(), {}
    attachments = arguments.decoded("attachments", "invalid_attachments")
    if arguments.has("markdown_text"):
        if text or blocks:
            raise SlackError("markdown_text_conflict")
        text = arguments.text("markdown_text", "no_text")
        if len(text) > rules.MARKDOWN_TOTAL:
            raise SlackError("msg_too_long")
        blocks = [{"type": "markdown", "text": text}]
    if not text.strip() and not blocks and not attachments:
        raise SlackError("no_text")
    if attachments:
        extra["attachments"] = attachments
    if arguments.has("metadata"):
        extra["metadata"] = arguments.decoded("metadata", "invalid_metadata_format")
    return text, blocks, extra


def post_message(world: World, arguments: Arguments) -> JSON:
    channel = arguments.channel(world, people_too=True)
    thread = arguments.thread(world, channel)
    text, blocks, extra = content(world, arguments)
    extra |= thread_facts(world, channel, thread)
    if thread and arguments.flag("reply_broadcast"):
        extra |= {"subtype": "thread_broadcast", "root": world.board.find(channel, thread, deleted=True)}
        extra["root"] = extra["root"] and extra["root"]["message"]
    records = [
        publish(world, channel, app_message(world, part, blocks, **extra), own_blocks=bool(blocks))
        for part in parts(text, whole=bool(blocks))
    ]
    first = records[0]["message"]
    return {"channel": channel, "ts": first["ts"], "message": first}


def parts(text: str, *, whole: bool) -> list[str]:
    """A long text becomes several messages, unless blocks show what there is to see."""
    if whole or len(text) <= rules.TEXT_UNSPLIT:
        return [text]
    return [text[start : start + rules.TEXT_PART] for start in range(0, len(text), rules.TEXT_PART)]


def own(world: World, channel: str, ts: str, refusal: str) -> JSON:
    """The record of a message of ours, or SlackError."""
    record = world.board.find(channel, ts)
    if record is None:
        raise SlackError("message_not_found")
    if record["message"].get("bot_id") != people.BOT_ID:
        raise SlackError(refusal)
    return record


def update(world: World, arguments: Arguments) -> JSON:
    channel = arguments.channel(world)
    record = own(world, channel, arguments.text("ts", "message_not_found"), "cant_update_message")
    if len(arguments.text("text")) > rules.UPDATE_TEXT:
        raise SlackError("msg_too_long")
    message = changed(world, record, arguments)
    replace(world, record, message, own_blocks=bool(arguments.decoded("blocks", "invalid_blocks_format")))
    return {"channel": channel, "ts": message["ts"], "text": message["text"], "message": message}


def changed(world: World, record: JSON, arguments: Arguments) -> JSON:
    """What a message of ours says after this update."""
    text, blocks = arguments.text("text"), arguments.blocks()
    attachments = arguments.decoded("attachments", "invalid_attachments")
    if not text.strip() and not blocks and not attachments:
        raise SlackError("no_text")
    old: JSON = record["message"]
    if world.settings.keep_rich_text and record["own_blocks"] and blocks and rich(old["blocks"]) and not rich(blocks):
        raise SlackError("block_mismatch")
    message = old | {"text": kept_text(text) if arguments.has("text") else old["text"]}
    # Text alone takes the old blocks away; only such an update shows "(edited)".
    if blocks:
        message["blocks"] = kept_blocks(blocks)
    elif arguments.has("text") or blocks is not None:
        message["blocks"] = text_blocks(text)
    if not blocks:
        message["edited"] = {"user": people.BOT_USER, "ts": world.stamps.next()}
    if attachments is not None:
        message["attachments"] = attachments
    if arguments.has("metadata"):
        message["metadata"] = arguments.decoded("metadata", "invalid_metadata_format")
    return message


def rich(blocks: list[JSON]) -> bool:
    return any(block.get("type") == "rich_text" for block in blocks)


def post_ephemeral(world: World, arguments: Arguments) -> JSON:
    channel = arguments.channel(world)
    user = arguments.text("user", "user_not_in_channel")
    if not world.is_in(user, channel):
        raise SlackError("user_not_in_channel")
    thread = arguments.thread(world, channel)
    text, blocks, _ = content(world, arguments)
    record = whisper(world, channel, user, text, blocks, thread)
    return {"message_ts": record["message"]["ts"]}


def delete_message(world: World, arguments: Arguments) -> JSON:
    channel = arguments.channel(world)
    record = own(world, channel, arguments.text("ts", "message_not_found"), "cant_delete_message")
    delete(world, record)
    return {"channel": channel, "ts": record["message"]["ts"]}


def permalink(world: World, arguments: Arguments) -> JSON:
    channel = arguments.channel(world, member=False)
    record = world.board.find(channel, arguments.text("message_ts"))
    if record is None:
        raise SlackError("message_not_found")
    message = record["message"]
    link = f"https://{people.TEAM_DOMAIN}.slack.com/archives/{channel}/p{message['ts'].replace('.', '')}"
    root = message.get("thread_ts", message["ts"])
    if root != message["ts"]:
        link += f"?thread_ts={root}&cid={channel}"
    return {"channel": channel, "permalink": link}


METHODS: Final[Mapping[str, Callable[[World, Arguments], JSON]]] = {
    "chat.postMessage": post_message,
    "chat.update": update,
    "chat.postEphemeral": post_ephemeral,
    "chat.delete": delete_message,
    "chat.getPermalink": permalink,
}
