"""Messages: who said what where, what they looked like before, and which thread they are in."""

from collections.abc import Callable, Iterator

from bot.local.file import Shelf
from bot.local.shapes import JSON


class Stamps:
    """Message timestamps: never twice, always later than the one before."""

    def __init__(self, clock: Callable[[], float], last: str = "0.0") -> None:
        self._clock = clock
        self._last = int(last.replace(".", ""))

    def next(self) -> str:
        self._last = max(int(self._clock() * 1_000_000), self._last + 1)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"


class Board:
    """All messages.  A record holds the message in Slack's shape and what only Slack itself knows of it:

    `own_blocks` (the app sent blocks), `elements` (every control that was ever on it), `deleted`, and
    `only_for` (whom an ephemeral message is for)."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._channels: dict[str, dict[str, JSON]] = {}
        self._threads: dict[tuple[str, str], list[str]] = {}
        for record in shelf.values():
            self._index(record)

    def add(self, channel: str, message: JSON, *, own_blocks: bool = False, only_for: str | None = None) -> JSON:
        """Keep a new message.  Out: its record."""
        record: JSON = {"channel": channel, "message": message, "own_blocks": own_blocks, "elements": {},
                        "deleted": False, "only_for": only_for}  # fmt: skip
        self._index(record)
        self._remember(record)
        return record

    def change(self, record: JSON, message: JSON, *, own_blocks: bool | None = None) -> None:
        """Replace what a message says."""
        record["message"] = message
        if own_blocks is not None:
            record["own_blocks"] = own_blocks
        self._remember(record)

    def remove(self, record: JSON) -> None:
        """Delete a message.  Its controls are remembered for clicks from stale clients."""
        record["deleted"] = True
        self._remember(record)

    def clear(self) -> None:
        for key in list(self._shelf):
            del self._shelf[key]
        self._channels.clear()
        self._threads.clear()

    def find(self, channel: str, ts: str, *, deleted: bool = False, ephemeral: bool = False) -> JSON | None:
        """The record of a message, unless it is deleted or ephemeral and that was not asked for."""
        record = self._channels.get(channel, {}).get(ts)
        if record is None or (record["deleted"] and not deleted) or (record["only_for"] and not ephemeral):
            return None
        return record

    def kept(self, key: str) -> JSON | None:
        """The record under its document's id, whatever became of it."""
        return self._shelf.get(key)

    def known(self, channel: str, ts: str) -> bool:
        return ts in self._channels.get(channel, {})

    def last(self) -> str:
        return max((ts for messages in self._channels.values() for ts in messages), key=_number, default="0.0")

    def history(self, channel: str) -> Iterator[JSON]:
        """Messages of a channel in their order, replies left out unless they were sent to the channel as well."""
        for record in self._visible(channel):
            message = record["message"]
            root = message.get("thread_ts", message["ts"])
            if root == message["ts"] or message.get("subtype") == "thread_broadcast":
                yield record

    def replies(self, channel: str, root: str) -> Iterator[JSON]:
        """A thread in its order, the root first."""
        for ts in (root, *self._threads.get((channel, root), ())):
            record = self.find(channel, ts)
            if record:
                yield record

    def everything(self, channel: str) -> Iterator[JSON]:
        """Every record of a channel in order: replies, ephemeral and deleted ones too."""
        yield from self._channels.get(channel, {}).values()

    def seen(self, record: JSON) -> JSON:
        """A message as Slack gives it back: with what its thread adds up to."""
        message: JSON = record["message"]
        replies = [reply["message"] for reply in self.replies(record["channel"], message["ts"])][1:]
        if message.get("thread_ts", message["ts"]) != message["ts"] or not replies:
            return message
        users = list(dict.fromkeys(str(reply.get("user", reply.get("bot_id"))) for reply in replies))
        return message | {
            "thread_ts": message["ts"], "reply_count": len(replies), "reply_users_count": len(users),
            "latest_reply": replies[-1]["ts"], "reply_users": users[:5], "is_locked": False, "subscribed": False,
        }  # fmt: skip

    def _visible(self, channel: str) -> Iterator[JSON]:
        return (record for record in self.everything(channel) if not record["deleted"] and not record["only_for"])

    def _index(self, record: JSON) -> None:
        channel, message = record["channel"], record["message"]
        self._channels.setdefault(channel, {})[message["ts"]] = record
        root = message.get("thread_ts")
        if root and root != message["ts"] and not record["only_for"]:
            self._threads.setdefault((channel, root), []).append(message["ts"])

    def _remember(self, record: JSON) -> None:
        for block_id, part in controls(record["message"].get("blocks", ())):
            record["elements"][f"{block_id} {part['action_id']}"] = part | {"block_id": block_id}
        self._shelf[f"{record['channel']}:{record['message']['ts']}"] = record


def controls(blocks: list[JSON]) -> Iterator[tuple[str, JSON]]:
    """Whatever a person can use in these blocks: block_id and element."""
    for block in blocks:
        parts = list(block.get("elements", ())) if block["type"] in ("actions", "context_actions") else []
        parts += [*block.get("actions", ())]
        parts += [block[key] for key in ("accessory", "element") if key in block]
        yield from ((block["block_id"], part) for part in parts if "action_id" in part)


def _number(ts: str) -> int:
    return int(ts.replace(".", ""))
