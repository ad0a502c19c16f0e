"""The arguments of a Web API call, read once and by what they mean: text, flag, number, JSON, channel, message."""

import json
import re
from typing import Any, Final

from bot.local import people, rules
from bot.local.blocks import check_message_blocks
from bot.local.shapes import JSON, SlackError
from bot.local.world import World

_TS: Final = re.compile(r"\d+\.\d{6}")


def need(world: World, scope: str) -> None:
    """SlackError unless the app was given this scope."""
    if scope not in world.settings.scopes:
        raise SlackError("missing_scope", needed=scope, provided=",".join(sorted(world.settings.scopes)))


class Arguments:
    """Arguments as sent: form fields are text, JSON bodies have types; both read alike."""

    def __init__(self, sent: JSON) -> None:
        self._sent = {key: value for key, value in sent.items() if value is not None}

    def has(self, key: str) -> bool:
        return key in self._sent

    def text(self, key: str, missing: str = "") -> str:
        """A text; `missing` is the error when there is none."""
        value = self._sent.get(key, "")
        if value == "" and missing:
            raise SlackError(missing)
        if not isinstance(value, str | int | float):
            raise SlackError("invalid_arguments", [f"[ERROR] must be a string [json-pointer:/{key}]"])
        return str(value)

    def flag(self, key: str, default: bool = False) -> bool:
        return str(self._sent.get(key, default)).lower() in ("true", "1")

    def number(self, key: str, default: int) -> int:
        try:
            return int(self._sent.get(key, default))
        except (TypeError, ValueError):
            raise SlackError("invalid_arguments", [f"[ERROR] must be an integer [json-pointer:/{key}]"]) from None

    def decoded(self, key: str, broken: str) -> Any:
        """A structure, sent as JSON or as a text that holds JSON; `broken` is the error when it is neither."""
        value = self._sent.get(key)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise SlackError(broken) from None

    def blocks(self) -> list[JSON] | None:
        """The blocks of a message, checked; None when there are none, so that [] can mean: take them away."""
        blocks = self.decoded("blocks", "invalid_blocks_format")
        return None if blocks is None else check_message_blocks(blocks)

    def thread(self, world: World, channel: str) -> str | None:
        """The thread to answer in, or SlackError where there is no such thread."""
        if not self.has("thread_ts"):
            return None
        ts = self.text("thread_ts")
        if not _TS.fullmatch(ts) or not world.board.known(channel, ts):
            raise SlackError("invalid_thread_ts")
        record = world.board.find(channel, ts, deleted=True)
        root = record["message"] if record else {"subtype": "ephemeral"}
        if root.get("thread_ts", ts) != ts or root.get("subtype", "") in rules.NO_REPLIES:
            raise SlackError("cannot_reply_to_message")
        return ts

    def channel(self, world: World, *, member: bool = True, people_too: bool = False) -> str:
        """The channel's id.  `member`: the app must be in it; `people_too`: a person stands for the direct messages."""
        key = self.text("channel", "channel_not_found")
        if people_too and key in world.people:
            key = people.direct_id(key)
        elif key not in world.channels:
            key = world.names().channels.get(key.removeprefix("#"), key)
        if key not in world.channels:
            raise SlackError("channel_not_found")
        info = world.info(key)
        if not world.is_in(people.BOT_USER, key):
            if info.get("is_private") or info.get("is_im"):
                raise SlackError("channel_not_found")
            if member:
                raise SlackError("not_in_channel")
        if member and info.get("is_archived"):
            raise SlackError("is_archived")
        return key

    def scoped(self, world: World, channel: str, what: str) -> None:
        """SlackError unless the app has the scope for this kind of channel.  In: `history` or `read`."""
        need(world, f"{people.SCOPE_OF_KIND[people.kind_of(world.info(channel))]}:{what}")

    def whole_text(self) -> str:
        """A message's text, cut where Slack cuts it without a word."""
        return self.text("text")[: rules.TEXT_CUT]
