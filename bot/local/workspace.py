"""A local, Slack-shaped workspace for a real bot: start it, act as its people, see what the bot did."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from bot.local import control, page_files, plain_page
from bot.local.acting import Acting
from bot.local.api_views import home_id, stack
from bot.local.file import File
from bot.local.page_socket import HINTS, PROMPTS, Pages
from bot.local.server import Server
from bot.local.shapes import JSON, Call, Fault
from bot.local.world import Settings, World, wall_clock

T = TypeVar("T")


class LocalWorkspace(Acting):
    """Slack's Web API and Socket Mode on the loopback interface, over a file of its own.

    In: the file (":memory:" for none), a clock in seconds, and where to listen (port 0: any free one); for the page,
    the prompts that a new thread offers, and what may follow each slash command."""

    def __init__(
        self,
        path: Path | str = ":memory:",
        clock: Callable[[], float] = wall_clock,
        port: int = 0,
        host: str = "127.0.0.1",
        prompts: Sequence[str] = PROMPTS,
        hints: Mapping[str, str] = HINTS,
    ) -> None:
        if host not in ("127.0.0.1", "localhost", "::1"):
            raise ValueError("The local workspace listens on the loopback interface only.")
        self._place = (path, clock, host, port)
        self._offers = (tuple(prompts), dict(hints))
        self.settings = Settings()

    async def __aenter__(self) -> "LocalWorkspace":
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:  # fmt: skip
        await self.stop()

    async def start(self) -> None:
        """Open the file and listen."""
        path, clock, host, port = self._place
        self._file = File(path)
        self.world = World(self._file, clock)
        self.world.settings = self.settings
        self._server = Server(self.world, host, port)
        pages = Pages(self.world, *self._offers)
        self._server.app.on_shutdown.append(pages.close)
        self._server.app.router.add_get("/_page", pages.serve)
        self._server.app.add_routes([*control.routes(self), *plain_page.routes(self)])
        self._server.app.add_routes(page_files.routes(lambda: self.cookie))
        try:
            await self._server.start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End all connections and close the file.  What is unacknowledged goes out after the next start."""
        await self._server.stop()
        self._file.close()

    # --- where it is ---

    @property
    def url(self) -> str:
        return self.world.address

    @property
    def api_url(self) -> str:
        """The `base_url` of the bot's web clients."""
        return f"{self.url}/api/"

    @property
    def page_url(self) -> str:
        """The page's address, key included: for the person at this machine, not for a log."""
        return f"{self.url}/?key={self.secret}"

    @property
    def control_url(self) -> str:
        return f"{self.url}/_control/"

    @property
    def bot_token(self) -> str:
        return str(self.world.secrets["bot_token"])

    @property
    def app_token(self) -> str:
        return str(self.world.secrets["app_token"])

    @property
    def secret(self) -> str:
        """What control requests carry: `Authorization: Bearer SECRET`."""
        return str(self.world.secrets["secret"])

    @property
    def cookie(self) -> str:
        return self._server.guard.cookie

    @property
    def delay(self) -> float:
        """Seconds added to every Web API call."""
        return self.settings.delay

    @delay.setter
    def delay(self, seconds: float) -> None:
        self.settings.delay = seconds

    # --- what happened ---

    @property
    def calls(self) -> list[Call]:
        """Every Web API call, in order."""
        return list(self._server.calls)

    @property
    def log(self) -> list[JSON]:
        """Everything that happened, in order.

        Kinds: call, held, sent, ack, retry, gave_up, saw, view, response, connected, disconnected, disconnect."""
        return list(self.world.log.entries)

    @property
    def connections(self) -> int:
        """Socket Mode connections open now."""
        return len(self.world.hub.sockets)

    def messages(self, channel: str, thread_ts: str | None = None) -> list[JSON]:
        """What a channel (or one of its threads) shows to everybody, replies included, in order."""
        board = self.world.board
        if thread_ts:
            return [board.seen(record) for record in board.replies(channel, thread_ts)]
        shown = (item for item in board.everything(channel) if not item["deleted"] and not item["only_for"])
        return [board.seen(record) for record in shown]

    def ephemerals(self, user: str, channel: str | None = None) -> list[JSON]:
        """What only this person was shown."""
        channels = [channel] if channel else list(self.world.channels)
        records = (record for key in channels for record in self.world.board.everything(key))
        return [item["message"] for item in records if item["only_for"] == user and not item["deleted"]]

    def views(self, user: str) -> list[JSON]:
        """A person's open modals, the bottom one first."""
        return [self.world.views[key]["view"] for key in stack(self.world, user)]

    def home(self, user: str) -> JSON | None:
        """What the bot published to a person's Home tab."""
        found = self.world.views.get(home_id(user))
        return found["view"] if found else None

    def state(self) -> JSON:
        """People, channels with messages and ephemerals, views, sessions and pending envelopes, as JSON."""
        world = self.world
        channels = {
            key: {**item, "messages": self.messages(key), "ephemerals": [
                {"user": record["only_for"], "message": record["message"]}
                for record in world.board.everything(key) if record["only_for"] and not record["deleted"]
            ]}
            for key, item in world.channels.items()
        }  # fmt: skip
        return {
            "people": dict(world.people), "channels": channels, "views": dict(world.views),
            "sessions": dict(world.sessions), "pending": dict(world.hub.pending), "connections": self.connections,
        }  # fmt: skip

    async def wait_for(self, look: Callable[["LocalWorkspace"], T], timeout: float = 60.0) -> T:  # noqa: ASYNC109
        """Wait until `look(workspace)` gives something true, and return that.  TimeoutError otherwise."""
        async with asyncio.timeout(timeout):
            while True:
                change = self.world.log.change
                found = look(self)
                if found:
                    return found
                await change.wait()

    # --- what goes wrong ---

    def fail(
        self, method: str, *, error: str | None = None, http_status: int | None = None,
        retry_after: float | None = None, times: int = 1, after_effect: bool = False, only: JSON | None = None,
    ) -> None:  # fmt: skip
        """The next `times` calls of a method fail: with Slack's `error`, an HTTP status, or 429 with `retry_after`;

        with none of these the connection is cut.  `after_effect`: the call is carried out, only its reply is lost.
        `only`: arguments that a call must have to fail; others of the method go on."""
        fault = Fault(error, http_status, retry_after, times, after_effect, only or {})
        self.settings.faults.setdefault(method, []).append(fault)

    def hold(self, method: str) -> asyncio.Event:
        """Calls of this method wait, nothing done yet, until the event that is given back is set."""
        gate = self.settings.gates[method] = asyncio.Event()
        return gate

    def disconnect(self, reason: str = "refresh_requested") -> None:
        """Tell all connections to end.  In: one of Slack's reasons, or "cut" to end them without a word."""
        self.world.hub.disconnect(reason)

    def redeliver_now(self) -> None:
        """Treat all that is unacknowledged as timed out, and skip the pauses between retries."""
        self.world.hub.tick(hurry=True)

    def replay(self, ts: str) -> int:
        """Send the events of a message once more, as Slack at times does minutes later.  Out: how many."""
        seen: dict[str, JSON] = {}
        for entry in self.log:
            payload = entry["frame"]["payload"] if entry["kind"] == "sent" else {}
            if payload.get("event", {}).get("ts") == ts:
                seen[payload["event_id"]] = payload
        for payload in seen.values():
            self.world.hub.offer("events_api", payload, accepts=False)
        return len(seen)

    def tick(self) -> None:
        """Do what the clock says is due.  Needed only where the clock is not the wall's."""
        self.world.hub.tick()

    def change_person(self, user: str, **facts: object) -> JSON:
        """Deactivate somebody, make a guest of them: fields of users.info."""
        self.world.people[user] = self.world.people[user] | facts
        self.world.file.flush()
        self.world.log.changed()
        return self.world.people[user]

    async def reset(self) -> None:
        """Forget all that was said; people and channels as in the beginning, tokens and connections as they are."""
        self.world.reset()
