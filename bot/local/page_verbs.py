"""What a person's page may ask for in that person's name."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Final

from bot.local import clicking, reacting, speaking
from bot.local.shapes import JSON, Answer, PersonCannot
from bot.local.world import World

Verb = Callable[[World, str, JSON], Awaitable[JSON]]


async def carry_out(world: World, user: str, sent: JSON) -> JSON:
    """Do what a page asked.  Out: `ok`, and what came of it or why not.  Never raises for what was sent."""
    try:
        return await VERBS[sent["verb"]](world, user, sent)
    except PersonCannot as error:
        return {"ok": False, "error": "person_cannot", "detail": str(error)}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return {"ok": False, "error": "bad_request", "detail": f"{type(error).__name__}: {error}"}


def _told(answer: Answer) -> JSON:
    told = asdict(answer)
    return {key: told[key] for key in ("ok", "error", "errors")}


async def _say(world: World, user: str, sent: JSON) -> JSON:
    key, channel = str(sent["key"]), sent["channel"]
    # A page that lost its connection does not know whether its message arrived, and sends it again under the same key.
    message = said(world, channel, key) if sent.get("again") else None
    if message is None:
        message = speaking.say(world, user, channel, sent["text"], sent.get("thread_ts"), client_msg_id=key)
    return {"ok": True, "ts": message["ts"], "thread_ts": message.get("thread_ts")}


def said(world: World, channel: str, key: str) -> JSON | None:
    """The message that a page sent under this key, if it arrived."""
    messages = (record["message"] for record in world.board.everything(channel))
    return next((message for message in messages if message.get("client_msg_id") == key), None)


async def _edit(world: World, user: str, sent: JSON) -> JSON:
    speaking.edit(world, user, sent["channel"], sent["ts"], sent["text"])
    return {"ok": True}


async def _delete(world: World, user: str, sent: JSON) -> JSON:
    speaking.erase(world, user, sent["channel"], sent["ts"])
    return {"ok": True}


async def _react(world: World, user: str, sent: JSON) -> JSON:
    reacting.toggle(world, user, sent["channel"], sent["ts"], sent["name"])
    return {"ok": True}


async def _command(world: World, user: str, sent: JSON) -> JSON:
    channel, thread = sent["channel"], sent.get("thread_ts")
    return _told(await speaking.command(world, user, channel, sent["command"], sent.get("text", ""), thread))


async def _click(world: World, user: str, sent: JSON) -> JSON:
    block, value = sent.get("block_id"), sent.get("value")
    if "view_id" in sent:
        return _told(
            await clicking.click_view(
                world, user, sent["action_id"], view_id=sent["view_id"], block_id=block, value=value
            )
        )
    channel, ts = sent["channel"], sent["ts"]
    return _told(await clicking.click(world, user, channel, ts, sent["action_id"], block_id=block, value=value))


async def _submit(world: World, user: str, sent: JSON) -> JSON:
    return _told(await clicking.submit(world, user, sent["values"], view_id=sent["view_id"]))


async def _close(world: World, user: str, sent: JSON) -> JSON:
    return _told(await clicking.close(world, user, sent["view_id"], clear=bool(sent.get("clear"))))


async def _home(world: World, user: str, sent: JSON) -> JSON:
    clicking.open_home(world, user, "messages" if sent.get("tab") == "messages" else "home")
    return {"ok": True}


VERBS: Final[Mapping[str, Verb]] = {
    "say": _say,
    "edit": _edit,
    "delete": _delete,
    "react": _react,
    "command": _command,
    "click": _click,
    "submit": _submit,
    "close": _close,
    "home": _home,
}
