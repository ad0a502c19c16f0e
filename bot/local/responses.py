"""Answers without a token: by a response_url, or along with the acknowledgement of a command."""

from collections.abc import Mapping

from bot.local.api_chat import changed, content
from bot.local.arguments import Arguments
from bot.local.messages import app_message, delete, publish, replace, thread_facts, whisper
from bot.local.shapes import JSON, SlackError
from bot.local.world import World


def by_url(world: World, key: str, sent: JSON) -> tuple[int, str]:
    """Use a response_url.  Out: HTTP status and body, as Slack's hooks answer."""
    grant = world.urls.get(key)
    if grant is None or grant["left"] <= 0:
        return 404, "used_url" if grant else "invalid_url"
    if world.clock() > grant["until"]:
        return 404, "expired_url"
    world.urls[key] = grant | {"left": grant["left"] - 1}
    try:
        respond(world, grant, sent)
    except SlackError as error:
        return (404 if error.code == "message_not_found" else 400), error.code
    finally:
        world.file.flush()
        world.log.note("response", user=grant["user"], channel=grant["channel"], arguments=sent)
    return 200, "ok"


def respond(world: World, grant: Mapping[str, object], sent: JSON) -> None:
    """Post, replace or delete as the app asked.  In: whom and which message the answer is for."""
    arguments = Arguments(sent)
    channel, user, ts = str(grant["channel"]), str(grant["user"]), grant["ts"]
    original = world.board.find(channel, str(ts), ephemeral=True) if ts else None
    if arguments.flag("delete_original") or arguments.flag("replace_original"):
        if original is None:
            raise SlackError("message_not_found")
        return _rework(world, original, arguments)
    text, blocks, extra = content(world, arguments)
    thread = arguments.thread(world, channel)
    if arguments.text("response_type") == "in_channel":
        extra |= thread_facts(world, channel, thread)
        publish(world, channel, app_message(world, text, blocks, **extra), own_blocks=bool(blocks))
    else:
        whisper(world, channel, user, text, blocks, thread)
    return None


def _rework(world: World, original: JSON, arguments: Arguments) -> None:
    if original["only_for"]:  # nobody but the one reader learns of it, so there is no event
        if arguments.flag("delete_original"):
            world.board.remove(original)
        else:
            world.board.change(original, changed(world, original, arguments))
        world.log.changed()
    elif arguments.flag("delete_original"):
        delete(world, original)
    else:
        replace(world, original, changed(world, original, arguments))
