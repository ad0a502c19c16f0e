"""The workspace's state in one place, and how an event leaves it for the app."""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.local import people, rules
from bot.local.board import Board, Stamps
from bot.local.file import File, Shelf
from bot.local.log import Log
from bot.local.shapes import JSON, Fault
from bot.local.sockets import Hub
from bot.local.typed import Names


@dataclass(slots=True)
class Settings:
    """How the app is installed: change it and the workspace refuses or sends accordingly."""

    scopes: frozenset[str] = rules.BOT_SCOPES
    events: frozenset[str] = rules.BOT_EVENTS
    commands: frozenset[str] = rules.COMMANDS
    agents: str = "not_authorized"  # what agents.sessions.* answers: "ok", or one of Slack's error codes
    keep_rich_text: bool = True  # chat.update refuses to take all rich_text away (block_mismatch)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)  # calls of a method wait until its gate opens
    delay: float = 0.0  # seconds added to every Web API call


class World:
    """People, channels, messages, views, and what is on its way to the app."""

    def __init__(self, file: File, clock: Callable[[], float]) -> None:
        self.file, self.clock = file, clock
        self.settings = Settings()
        self.log = Log(clock)
        self.people, self.channels = Shelf(file, "person"), Shelf(file, "channel")
        self.views, self.triggers, self.urls = Shelf(file, "view"), Shelf(file, "trigger"), Shelf(file, "url")
        self.sessions: dict[str, JSON] = {}  # status, title and prompts of threads; gone after a restart, as in Slack
        self._meta = Shelf(file, "meta")
        self.board = Board(Shelf(file, "message"))
        self.stamps = Stamps(clock, self.board.last())
        self._seed()
        self.hub = Hub(file, clock, self.log)
        self.address = ""  # http://host:port, once the server listens
        self._named: tuple[int, Names] | None = None

    def _seed(self) -> None:
        if not self.people:
            for user in people.seeded_people():
                self.people[user["id"]] = user
            for channel in people.seeded_channels():
                self.channels[channel["info"]["id"]] = channel
        if "secrets" not in self._meta:
            self._meta["secrets"] = {
                "bot_token": f"xoxb-local-{secrets.token_hex(20)}",
                "app_token": f"xapp-1-{people.APP_ID}-{secrets.token_hex(24)}",
                "secret": secrets.token_urlsafe(24),
            }
        self.file.flush()

    @property
    def secrets(self) -> JSON:
        """bot_token, app_token and secret; the same as long as the file lives."""
        return self._meta["secrets"]

    def names(self) -> Names:
        """Whom @name and #name mean.  A person's id works as a name too."""
        users = {user["name"].lower(): key for key, user in self.people.items()}
        users |= {key.lower(): key for key in self.people}
        channels = {item["info"]["name"]: key for key, item in self.channels.items() if "name" in item["info"]}
        return Names(users, channels)

    def info(self, channel: str) -> JSON:
        info: JSON = self.channels[channel]["info"]
        return info

    def members(self, channel: str) -> list[str]:
        members: list[str] = self.channels[channel]["members"]
        return members

    def is_in(self, user: str, channel: str) -> bool:
        return channel in self.channels and user in self.members(channel)

    def trigger(self, user: str, view: str | None = None) -> str:
        """A new trigger id for what a person just did, perhaps inside a view."""
        now = self.clock()
        for old in [key for key, item in self.triggers.items() if item["until"] < now - 60]:
            del self.triggers[old]
        trigger_id = f"{secrets.randbelow(10**13)}.{secrets.randbelow(10**12)}.{secrets.token_hex(16)}"
        self.triggers[trigger_id] = {"user": user, "until": now + rules.TRIGGER_SECONDS, "used": False, "view": view}
        return trigger_id

    def response_url(self, user: str, channel: str, ts: str | None) -> str:
        """An address by which the app may answer this person for half an hour."""
        key = secrets.token_urlsafe(24)
        until = self.clock() + rules.RESPONSE_URL_SECONDS
        self.urls[key] = {"user": user, "channel": channel, "ts": ts, "left": rules.RESPONSE_URL_USES, "until": until}
        return f"{self.address}/_response/{key}"

    def subscribed(self, event: JSON) -> bool:
        kind = event["type"]
        if kind == "message":
            kind = f"message.{ {'channel': 'channels', 'group': 'groups', 'im': 'im'}[event['channel_type']] }"
        return kind in self.settings.events

    def emit(self, event: JSON, channel: str) -> None:
        """Send an event to the app if it asked for such events and is in the channel."""
        if not self.subscribed(event) or not self.is_in(people.BOT_USER, channel):
            return
        shared = bool(self.info(channel).get("is_ext_shared"))
        authorization = {
            "enterprise_id": None, "team_id": people.TEAM_ID, "user_id": people.BOT_USER, "is_bot": True,
            "is_enterprise_install": False,
        }  # fmt: skip
        payload: JSON = {
            "token": "local", "team_id": people.TEAM_ID, "context_team_id": people.TEAM_ID,
            "context_enterprise_id": None, "api_app_id": people.APP_ID, "event": event, "type": "event_callback",
            "event_id": f"Ev{secrets.token_hex(5).upper()}", "event_time": int(self.clock()),
            "authorizations": [authorization], "is_ext_shared_channel": shared,
            "event_context": f"4-{secrets.token_urlsafe(24)}",
        }  # fmt: skip
        self.hub.offer("events_api", payload, accepts=False)

    def reset(self) -> None:
        """Back to the beginning: people and channels as seeded, nothing said.  Tokens, secret and connections stay."""
        self.hub.clear()
        self.board.clear()
        for shelf in (self.people, self.channels, self.views, self.triggers, self.urls):
            shelf.clear()
        self.sessions.clear()
        self.settings.faults.clear()
        self.log.entries.clear()
        self._seed()
        self.log.changed()


def wall_clock() -> float:
    return time.time()
