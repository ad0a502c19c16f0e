"""The composition root: the only place that knows every real part."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final, Self

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_sdk.web.async_client import AsyncWebClient

from bot.approvers import Access
from bot.chronicle import Chronicle
from bot.config import Settings, SlackSettings
from bot.facts import CODEC
from bot.folders import DATABASE, WORKSPACES, kept_files, own_workspace, ready
from bot.foresight import Foresight
from bot.ids import Identity, threads_of
from bot.inbox import Inbox
from bot.listeners import bolt_app
from bot.people import Directory
from bot.policy import PolicyKeeper, default_path
from bot.presenter import Presenter
from bot.quarrels import Quarrels, dead_ends_in, warn
from bot.settings import SettingsBook
from bot.slack_api import SlackApi, SlackUnreachable
from bot.wire import Wire
from harness_core.clock import SystemClock
from harness_core.engine import HarnessEngine
from harness_core.errors import ConfigError
from harness_core.hooks import in_order
from harness_core.masking import register_secret
from harness_core.models.practice import PracticeModel
from harness_core.options import DEFAULT_TOOLS, HarnessOptions
from harness_core.own_hooks import load_hooks
from harness_core.permissions import grammar
from harness_core.permissions.judge import Gate
from harness_core.ports import ChatModel, Clock, SessionStore, Tool
from harness_core.steps import Policy
from harness_core.store.sqlite import SQLiteStore
from harness_core.tools import tool_table
from harness_core.tools.own import load_tools
from harness_core.tools.sandbox import Sandbox
from harness_core.tools.shell import bash_tool

log = logging.getLogger(__name__)

AGENT: Final = "assistant:write"  # the scope of apps that are declared agents: Slack takes a status of theirs alone
PING: Final = 10.0  # seconds between two pings of the socket; after four without a pong it is opened anew
SOCKET: Final = 20.0  # seconds that the first connection has to open


@dataclass(frozen=True, slots=True)
class Parts:
    """What may be replaced, in tests and by a host: anything left None is the real thing."""

    model: ChatModel | None = None
    store: SessionStore | None = None
    clock: Clock | None = None
    tools: Sequence[str | Tool] = DEFAULT_TOOLS
    options: HarnessOptions | None = None


def model_of(settings: Settings) -> ChatModel:
    """The model that the settings name; without one the practice model. Raises ConfigError."""
    wanted = settings.model
    if not wanted.name:
        if wanted.api_key or wanted.base_url:
            given = "OPENAI_API_KEY" if wanted.api_key else "OPENAI_BASE_URL"
            raise ConfigError(f"{given} is set, but HARNESS_MODEL is missing: the name of a model that can call tools.")
        return PracticeModel()
    return _named(settings, wanted.name)


def _named(settings: Settings, name: str) -> ChatModel:
    from harness_core.models.openai import openai_model  # only who uses it pays for importing openai

    return openai_model(name, settings.model.base_url, settings.model.api_key)


class Bot:
    """The bot, connected to one Slack workspace. `async with` starts and stops it."""

    def __init__(self, settings: Settings, slack: SlackSettings, given: Access, parts: Parts = Parts()) -> None:
        self.settings, self.slack = settings, slack
        ready(settings, settings.policy or default_path())
        self.clock: Clock = parts.clock or SystemClock()
        self._own_store = parts.store is None
        self.store: SessionStore = parts.store or SQLiteStore(settings.data / DATABASE, codec=CODEC)
        self.policy = PolicyKeeper(settings.policy or default_path())
        self.book = SettingsBook(self.store, self.clock, given, self.policy)
        self.model = parts.model or model_of(settings)
        self._models = [self.model]
        # Whatever a command does, it reads neither what the bot stores nor the files that its tokens may be in.
        self.sandbox = Sandbox(settings.sandbox, hidden=(settings.data, *kept_files()))
        tools = [*self._tools(parts.tools), *(load_tools(settings.tools) if settings.tools else ())]
        hooks = load_hooks(settings.hooks) if settings.hooks else ()
        self._hooked = Policy(Gate({tool.spec.name: tool for tool in tool_table(tools)}, hooks=in_order(hooks)))
        self._dead: frozenset[str] = frozenset()
        self.engine = HarnessEngine(
            settings.workspace or settings.data / WORKSPACES,
            settings.data,
            model=self.model,
            store=self.store,
            clock=self.clock,
            hitl_enabled=True,
            workspace_for=None if settings.workspace else own_workspace(settings.data),
            tools=tools,
            agents=settings.agents or (),
            models=self._another if settings.model.name else None,
            interceptors=hooks,
            options=replace(parts.options or HarnessOptions(), adjust=self.book.adjust),
        )
        self.policy.know(self.engine.tools)
        self.api = SlackApi(slack.bot_token, slack.api_url)
        for secret in (slack.bot_token, slack.app_token, settings.model.api_key):
            if secret:
                register_secret(secret)

    def _another(self, name: str) -> ChatModel:
        """Another model at the same server, for an agent that wants one."""
        self._models.append(_named(self.settings, name))
        return self._models[-1]

    def _tools(self, named: Sequence[str | Tool]) -> Sequence[str | Tool]:
        """The tools, with bash in its sandbox."""
        return [bash_tool(self.sandbox, self.book.online) if one == "bash" else one for one in named]

    async def start(self) -> None:
        """Find out who we are, take up what is unfinished, and listen. If it cannot, nothing is left open."""
        async with AsyncExitStack() as ending:
            if self._own_store:
                ending.push_async_callback(self.store.close)
            for model in self._models:
                if aclose := getattr(model, "aclose", None):
                    ending.push_async_callback(aclose)
            ending.push_async_callback(self.api.close)
            ending.callback(self.store.changed(Chronicle().take))
            quarrels = Quarrels(self.store)
            ending.push_async_callback(quarrels.close)
            ending.callback(self.store.changed(quarrels.take))
            await self._warned()
            self.us = await self._identity()
            self.book.home = self.us.home
            self.directory = Directory(self.api, self.us, self.clock.monotonic)
            ending.push_async_callback(self.directory.close)
            foresight = Foresight(self.directory, self.book, self.clock)
            self.presenter = Presenter(
                self.store,
                self.api,
                foresight,
                self.book,
                self.clock,
                self.us,
                self.engine.spec,
                takes_status=self.slack.agent and AGENT in await self.api.scopes(),
            )
            ending.push_async_callback(self.presenter.close)
            ending.push_async_callback(self.engine.close, self.settings.grace)
            self.inbox = Inbox(self.engine, self.presenter, self.directory, self.book, self.api)
            ending.push_async_callback(self.inbox.close)
            await self.engine.start()
            ending.push_async_callback(_cancelled, asyncio.create_task(self.presenter.recover()))
            ending.push_async_callback(_cancelled, asyncio.create_task(foresight.watch()))
            ending.push_async_callback(_cancelled, asyncio.create_task(self.book.watch(self._ruled_anew)))
            # Left to itself, the client asks for ever with a token that Slack refuses, and tells nobody.
            address = await self._socket_address()
            socket = self._listening()
            socket.client.wss_uri = address
            self.wire = Wire(socket.client, self.clock)
            ending.push_async_callback(socket.close_async)
            await self._connected(socket)
            ending.push_async_callback(_cancelled, asyncio.create_task(self.wire.watch()))
            self._ending = ending.pop_all()

    async def stop(self) -> None:
        """Stop listening first, then working, then showing."""
        await self._ending.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _warned(self) -> None:
        """Say once what makes commands less safe, or ask more, than they need."""
        boundary = await self.sandbox.boundary()
        self.book.boundary = str(boundary)
        if not boundary.program:
            log.warning("%s", boundary)
        if grammar.missing():
            log.warning("every bash command asks: %s", grammar.MISSING)
        self._dead = warn(await self._dead_ends())

    async def _dead_ends(self) -> Sequence[str]:
        """What guards and hooks demand and the rules as they are now forbid."""
        now = await self.book.in_force()
        return dead_ends_in(self._hooked, self.policy.guards, self.policy.file, now, self.clock.now())

    async def _ruled_anew(self) -> None:
        """Rules changed: say what that shut, and let every session look again."""
        self._dead = warn(await self._dead_ends(), self._dead)
        await self._wake_all()

    async def _identity(self) -> Identity:
        us = identity(await self.api.auth_test())
        # auth.test does not name the app; without its id a click on another app's message could not be told from ours.
        app = us.app_id or await self.api.app_of(us.bot_id)
        if not app:
            raise ConfigError(
                "Slack does not say which app the bot token belongs to (bots.info). Give the app the scope users:read: "
                "paste manifest.yml (App Manifest), and reinstall the app (Install App)."
            )
        return replace(us, app_id=app)

    async def _wake_all(self) -> None:
        for session_id in await self.store.sessions(threads_of(self.us.home)):
            self.engine.wake(session_id)

    async def _socket_address(self) -> str:
        api = SlackApi(self.slack.app_token, self.slack.api_url)
        try:
            return await api.socket_address()
        finally:
            await api.close()

    async def _connected(self, socket: AsyncSocketModeHandler) -> None:
        """Left to itself the client tries an address that does not answer for ever, too."""
        try:
            async with asyncio.timeout(SOCKET):
                await socket.connect_async()  # type: ignore[no-untyped-call]
        except TimeoutError as error:
            raise SlackUnreachable(f"the socket did not open within {SOCKET:.0f} s") from error

    def _listening(self) -> AsyncSocketModeHandler:
        app = bolt_app(self.slack.bot_token, self.slack.api_url, self.us, self.inbox)
        web_client = AsyncWebClient(token=self.slack.app_token, base_url=self.slack.api_url)
        return AsyncSocketModeHandler(app, self.slack.app_token, web_client=web_client, ping_interval=PING)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def identity(reply: object) -> Identity:
    """Who auth.test says that we are. Raises ConfigError if it does not."""
    match reply:
        case {"team_id": str(team), "user_id": str(user), **rest}:
            enterprise = rest.get("enterprise_id")
            return Identity(
                team_id=team,
                enterprise_id=enterprise if isinstance(enterprise, str) else "",
                bot_user_id=user,
                bot_id=str(rest.get("bot_id") or ""),
                app_id=str(rest.get("app_id") or ""),
                org_wide=rest.get("is_enterprise_install") is True,
            )
    raise ConfigError("Slack did not say who this token belongs to. Is SLACK_API_URL a Slack-compatible server?")
