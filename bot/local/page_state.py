"""What one person sees, as small documents, and which of them changed since their page last looked."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from bot.local import people, rules
from bot.local.shapes import JSON
from bot.local.world import World

_MESSAGE: Final = (
    "ts", "thread_ts", "user", "bot_id", "username", "text", "blocks", "attachments", "reactions", "edited", "subtype",
    "files", "client_msg_id",
)  # fmt: skip
_VIEW: Final = (
    "id", "type", "title", "blocks", "submit", "close", "hash", "previous_view_id", "root_view_id", "submit_disabled",
)  # fmt: skip

Documents = dict[str, JSON | None]  # by "kind:id"; None: gone


class Reader:
    """One person's page.  In: the world, who they are, and what their page has already (epoch and number)."""

    def __init__(self, world: World, user: str, epoch: str = "", number: int = 0) -> None:
        self._world, self._user = world, user
        self._number: int | None = number if epoch == world.file.changes.epoch else None
        self._shown: JSON = {}  # sessions and connections as last told

    def news(self) -> JSON | None:
        """What the page does not have yet, or None.  `reset`: it starts from nothing."""
        changes, passing = self._world.file.changes, self._passing()
        reset = self._number is None
        if not reset and self._number == changes.number and passing == self._shown:
            return None
        documents = whole(self._world, self._user) if self._number is None else self._since(self._number)
        self._number, self._shown = changes.number, passing
        return {"type": "state", "reset": reset, "epoch": changes.epoch, "number": changes.number,
                "documents": documents, **passing}  # fmt: skip

    def _since(self, number: int) -> Documents:
        found: Documents = {}
        for kind, key in self._world.file.changes.since(number):
            found |= document(self._world, self._user, kind, key)
        return found

    def _passing(self) -> JSON:
        """What is in no file: what the app says it is doing, and whether it is there."""
        sessions = {
            key: dict(facts)
            for key, facts in self._world.sessions.items()
            if self._world.is_in(self._user, key.split(":")[0])
        }
        return {"sessions": sessions, "connections": len(self._world.hub.sockets)}


def whole(world: World, user: str) -> Documents:
    """Everything that a person sees."""
    found: Documents = {}
    for key in world.people:
        found |= document(world, user, "person", key)
    for key in world.channels:
        if world.is_in(user, key):
            found |= document(world, user, "channel", key)
    for key, item in world.views.items():
        if item["user"] == user:
            found |= document(world, user, "view", key)
    return found


def document(world: World, user: str, kind: str, key: str) -> Documents:
    """A document as this person sees it; nothing where they do not."""
    match kind:
        case "person":
            return {f"person:{key}": _person(world.people[key]) if key in world.people else None}
        case "channel":
            return _channel(world, user, key)
        case "message":
            return _message(world, user, key)
        case _:
            item = world.views.get(key)
            mine = item is not None and item["user"] == user
            return {f"view:{key}": _view(item) if item and mine else None}


def _person(user: JSON) -> JSON:
    return {
        "id": user["id"], "name": user["name"], "real_name": user["real_name"], "bot": user["is_bot"],
        "deleted": user["deleted"], "admin": user["is_admin"], "guest": user["is_restricted"],
        "stranger": bool(user.get("is_stranger")), "nobody": user["id"] == people.SLACK,
    }  # fmt: skip


def _channel(world: World, user: str, key: str) -> Documents:
    if not world.is_in(user, key):
        return {f"channel:{key}": None}
    info = world.info(key)
    found: Documents = {f"channel:{key}": {
        "id": key, "name": info.get("name", ""), "kind": people.kind_of(info), "with": info.get("user", ""),
        "shared": bool(info.get("is_ext_shared")), "members": world.members(key),
    }}  # fmt: skip
    # Whoever just came in sees what was said before.
    records = list(world.board.everything(key))
    for record in records[-rules.PAGE_MESSAGES :] + list(_roots(records)):
        found |= _message(world, user, f"{key}:{record['message']['ts']}")
    return found


def _roots(records: list[JSON]) -> Iterable[JSON]:
    """The messages that begin the threads of the newest ones, so that no reply stands alone."""
    cut = len(records) - rules.PAGE_MESSAGES
    if cut <= 0:
        return ()
    wanted = {record["message"].get("thread_ts") for record in records[cut:]}
    return (record for record in islice(records, cut) if record["message"]["ts"] in wanted)


def _message(world: World, user: str, key: str) -> Documents:
    record = world.board.kept(key)
    channel = key.split(":")[0]
    if not world.is_in(user, channel) or (record and record["only_for"] not in (None, user)):
        return {}
    if record is None or record["deleted"]:
        return {f"message:{key}": None}
    said = {name: record["message"][name] for name in _MESSAGE if name in record["message"]}
    if said.get("bot_id") and not record["own_blocks"]:
        said.pop("blocks", None)  # made of its text, which the page reads better by itself
    return {f"message:{key}": said | {"channel": channel, "notice": bool(record["only_for"])}}


def _view(item: JSON) -> JSON:
    view = item["view"]
    shown = {name: view[name] for name in _VIEW if name in view}
    return shown | {"values": view["state"]["values"], "errors": item.get("errors", {})}
