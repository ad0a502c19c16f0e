"""A workspace per test, a clock that stands still, and the real Bolt app that some tests connect."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aiohttp
import pytest
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.local import LocalWorkspace

Connect = Callable[[AsyncApp], AbstractAsyncContextManager[AsyncSocketModeHandler]]


class Clock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def payloads() -> None:
    """These tests send, on purpose, what Slack refuses."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def workspace(clock: Clock) -> AsyncIterator[LocalWorkspace]:
    async with LocalWorkspace(":memory:", clock=clock) as made:
        yield made


@pytest.fixture
def client(workspace: LocalWorkspace) -> AsyncWebClient:
    return AsyncWebClient(token=workspace.bot_token, base_url=workspace.api_url)


@pytest.fixture
def app(client: AsyncWebClient) -> AsyncApp:
    return AsyncApp(client=client)


@pytest.fixture
def connect(workspace: LocalWorkspace) -> Connect:
    """Connects an app as the bot does; the test goes on once the workspace said hello."""

    @asynccontextmanager
    async def connected(app: AsyncApp) -> AsyncIterator[AsyncSocketModeHandler]:
        web_client = AsyncWebClient(token=workspace.app_token, base_url=workspace.api_url)
        handler = AsyncSocketModeHandler(app, workspace.app_token, web_client=web_client)
        before = workspace.connections
        await handler.connect_async()  # type: ignore[no-untyped-call]
        await workspace.wait_for(lambda w: w.connections > before)
        try:
            yield handler
        finally:
            await handler.close_async()  # type: ignore[no-untyped-call]

    return connected


class RawApp:
    """An app that speaks Socket Mode by hand: takes frames and acknowledges only when told to."""

    def __init__(self, workspace: LocalWorkspace, session: aiohttp.ClientSession) -> None:
        self.workspace, self.session = workspace, session
        self.sockets: list[aiohttp.ClientWebSocketResponse] = []  # a forgotten connection would close itself

    async def connect(self) -> aiohttp.ClientWebSocketResponse:
        """A new connection, its hello read."""
        headers = {"Authorization": f"Bearer {self.workspace.app_token}"}
        async with self.session.post(self.workspace.api_url + "apps.connections.open", headers=headers) as reply:
            url = (await reply.json())["url"]
        socket = await self.session.ws_connect(url)
        self.sockets.append(socket)
        self.hello = await socket.receive_json()
        return socket


@pytest.fixture
async def raw(workspace: LocalWorkspace) -> AsyncIterator[RawApp]:
    async with aiohttp.ClientSession() as session:
        yield RawApp(workspace, session)
