"""A Slack-compatible server elsewhere, with the verbs of the local workspace, over its HTTP control interface alone.

The bot is in this process, and the server is not: looking waits for the server, acting also for the bot, which
acknowledges meanwhile. So looks are plain calls, and acts are awaited.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import aiohttp
import pytest

from bot.app import Bot, Parts
from bot.approvers import Access
from bot.config import Settings, SlackSettings
from bot.local import Answer, Call, PersonCannot, people
from tests.conftest import PATIENCE

T = TypeVar("T")
JSON = dict[str, Any]
LOOK: Final = 0.02  # seconds between two looks at the server's log
ANYWAY: Final = 0.2  # seconds until a condition is tried again though the log says nothing


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where the server is. control: the address of its control interface, with `?key=SECRET`."""

    slack: SlackSettings
    control: str

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Elsewhere | None:
        """None unless all four settings are there."""
        names = ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_API_URL", "HARNESS_TEST_CONTROL")
        found = [env.get(name, "") for name in names]
        return cls(SlackSettings(*found[:3]), found[3]) if all(found) else None


needs_this_process = pytest.mark.skipif(
    Elsewhere.from_env() is not None, reason="holds or watches calls: only the workspace in this process can do it"
)


def skip(what: str) -> NoReturn:
    pytest.skip(f"{what}: only the workspace in this process can do it")


class RemoteSlack:
    """See LocalWorkspace, whose names these are. What it has and this has not skips the test that asks for it."""

    def __init__(self, where: Elsewhere) -> None:
        parts = urlsplit(where.control)
        self._base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/"
        self._headers = {"Authorization": f"Bearer {parse_qs(parts.query)['key'][0]}"}
        self.bot_token, self.app_token = where.slack.bot_token, where.slack.app_token
        self.api_url = where.slack.api_url
        self._began = 0

    def __getattr__(self, name: str) -> NoReturn:
        skip(name)

    async def start(self, *, anew: bool) -> None:
        """anew: forget what was said before."""
        if anew:
            self._post_now("reset")
        self._began = int(self._get("log?since=999999999999")["next"])

    # -- people --------------------------------------------------------------------------------------------------------

    async def say(self, user: str, channel: str, text: str, thread_ts: str | None = None, **more: Any) -> JSON:
        sent = await self._post("message", user=user, channel=channel, text=text, thread_ts=thread_ts, **more)
        message: JSON = sent["message"]
        return message

    async def edit(self, user: str, channel: str, ts: str, text: str, **more: Any) -> JSON:
        sent = await self._post("message", user=user, channel=channel, edit_ts=ts, text=text, **more)
        message: JSON = sent["message"]
        return message

    async def delete(self, user: str, channel: str, ts: str, **more: Any) -> None:
        await self._post("message", user=user, channel=channel, delete_ts=ts, **more)

    async def notice(self, user: str, channel: str, subtype: str, text: str = "") -> JSON:
        sent = await self._post("message", user=user, channel=channel, subtype=subtype, text=text)
        message: JSON = sent["message"]
        return message

    async def command(self, user: str, channel: str, command: str, text: str = "", **more: Any) -> Answer:
        return _answer(await self._post("command", user=user, channel=channel, command=command, text=text, **more))

    async def click(self, user: str, channel: str, message_ts: str, action_id: str, **more: Any) -> Answer:
        where = {"user": user, "channel": channel, "message_ts": message_ts, "action_id": action_id}
        return _answer(await self._post("interact", **where, **more))

    async def submit(self, user: str, values: JSON, *, view_id: str | None = None) -> Answer:
        return _answer(await self._post("submit", user=user, values=values, view_id=view_id))

    async def close_view(self, user: str, view_id: str | None = None, *, clear: bool = False) -> Answer:
        return _answer(await self._post("close", user=user, view_id=view_id, clear=clear))

    async def join(self, user: str, channel: str) -> None:
        await self._post("join", user=user, channel=channel)

    async def leave(self, user: str, channel: str) -> None:
        await self._post("leave", user=user, channel=channel)

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def fail(self, method: str, **how: Any) -> None:
        if any(isinstance(value, float) and value != value for value in how.values()):
            skip("a number that JSON does not have")
        self._post_now("fail", method=method, **how)

    def disconnect(self, reason: str = "refresh_requested") -> None:
        self._post_now("disconnect", reason=reason)

    def redeliver_now(self) -> None:
        self._post_now("redeliver")

    def replay(self, ts: str) -> int:
        return int(self._post_now("replay", ts=ts)["events"])

    def change_person(self, user: str, **facts: object) -> JSON:
        changed: JSON = self._post_now("person", user=user, facts=facts)["user"]
        return changed

    # -- what stands where ---------------------------------------------------------------------------------------------

    def messages(self, channel: str, thread_ts: str | None = None) -> list[JSON]:
        everything: list[JSON] = self.state()["channels"][channel]["messages"]
        return [m for m in everything if thread_ts in (None, m["ts"], m.get("thread_ts"))]

    def ephemerals(self, user: str, channel: str | None = None) -> list[JSON]:
        channels = self.state()["channels"]
        told = (one for key in ([channel] if channel else channels) for one in channels[key]["ephemerals"])
        return [one["message"] for one in told if one["user"] == user]

    def views(self, user: str) -> list[JSON]:
        shown = self.state()["views"].values()
        return [one["view"] for one in shown if one["user"] == user and one["view"]["type"] == "modal"]

    def state(self) -> JSON:
        return self._get("state")

    @property
    def connections(self) -> int:
        return int(self.state()["connections"])

    @property
    def log(self) -> list[JSON]:
        """What happened since this test began."""
        entries: list[JSON] = self._get(f"log?since={self._began}")["log"]
        return entries

    @property
    def calls(self) -> list[Call]:
        """The calls of the Web API, as far as a log over HTTP tells of them."""
        return [
            Call(e["method"], e["arguments"], e["at"], "", e["ok"], e["error"], 0.0, {})
            for e in self.log
            if e["kind"] == "call"
        ]

    async def wait_for(self, look: Callable[[Any], T], timeout: float = PATIENCE) -> T:  # noqa: ASYNC109
        """Poll the log, and look whenever something happened."""
        loop = asyncio.get_running_loop()
        seen, again = -1, 0.0
        async with asyncio.timeout(timeout):
            while True:
                now = int(self._get("log?since=999999999999")["next"])
                if now != seen or loop.time() >= again:
                    seen, again = now, loop.time() + ANYWAY
                    if found := look(self):
                        return found
                await asyncio.sleep(LOOK)  # nobody tells this process what happens in another

    # -- over HTTP -----------------------------------------------------------------------------------------------------

    async def _post(self, verb: str, **sent: Any) -> JSON:
        async with (
            aiohttp.ClientSession(headers=self._headers) as session,
            session.post(self._base + verb, json={k: v for k, v in sent.items() if v is not None}) as reply,
        ):
            return _good(verb, await reply.json())

    def _post_now(self, verb: str, **sent: Any) -> JSON:
        return self._ask(verb, json.dumps(sent).encode())

    def _get(self, noun: str) -> JSON:
        return self._ask(noun, None)

    def _ask(self, what: str, body: bytes | None) -> JSON:
        request = Request(self._base + what, body, {**self._headers, "Content-Type": "application/json"})
        with urlopen(request, timeout=PATIENCE) as reply:
            return _good(what, json.load(reply))


def _good(what: str, told: JSON) -> JSON:
    if told.get("error") == "person_cannot":
        raise PersonCannot(told["detail"])
    assert told["ok"], f"{what}: {told}"
    return told


def _answer(told: JSON) -> Answer:
    fields = {name: told[name] for name in ("error", "envelope_id", "payload", "errors")}
    return Answer(told["answered"], **fields)


class RemoteBot:
    """The bot of this process in a workspace elsewhere; see LocalBot."""

    def __init__(self, settings: Settings, parts: Parts, where: Elsewhere) -> None:
        self.settings, self._parts, self._where = settings, parts, where
        self.workspace = RemoteSlack(where)

    def made(self) -> Bot:
        given = Access(
            self.settings.admins or frozenset({people.ADA}),
            self.settings.approvers,
            frozenset({people.GENERAL, people.OPS, people.PRIVATE}),
        )
        slack = self._where.slack
        return Bot(replace(self.settings, slack=slack), slack, given, self._parts)

    async def __aenter__(self) -> RemoteBot:
        # A new bot meets a new workspace; one that goes on meets what was said before.
        await self.workspace.start(anew=not any(self.settings.data.glob("*.db")))
        self.bot = self.made()
        await self.bot.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.bot.stop()
