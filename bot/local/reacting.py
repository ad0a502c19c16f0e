"""Reactions of people: a small sign under a message, set and taken away with the same button."""

from bot.local import rules
from bot.local.api_conversations import react, unreact
from bot.local.messages import kind
from bot.local.shapes import JSON, PersonCannot
from bot.local.speaking import may_act
from bot.local.world import World


def toggle(world: World, user: str, channel: str, ts: str, name: str) -> JSON:
    """A person adds a reaction, or takes theirs away.  In: an emoji's name.  Out: the message afterwards."""
    may_act(world, user, channel, force=False)
    record = world.board.find(channel, ts)
    if record is None:
        raise PersonCannot(f"no such message: {ts}")
    if name not in rules.EMOJI:
        raise PersonCannot(f"no such emoji: {name}")
    before: list[JSON] = list(record["message"].get("reactions", ()))
    gone = any(item["name"] == name and user in item["users"] for item in before)
    after = unreact(before, name, user) if gone else react(before, name, user)
    message = {key: value for key, value in record["message"].items() if key != "reactions"}
    world.board.change(record, message | ({"reactions": after} if after else {}))
    item = {"type": "message", "channel": channel, "ts": ts}
    world.emit(
        {"type": "reaction_removed" if gone else "reaction_added", "user": user, "reaction": name, "item": item,
         "item_user": message.get("user", ""), "event_ts": world.stamps.next(), "channel_type": kind(world, channel)},
        channel,
    )  # fmt: skip
    world.file.flush()
    world.log.changed()
    return record["message"]  # type: ignore[no-any-return]
