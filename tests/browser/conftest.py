"""One browser for all tests of the page; a workspace, an app and as many people as a test wants."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from bot.local import LocalWorkspace
from tests.browser.app import Cards, connected
from tests.conftest import COMPLETE, PATIENCE
from tests.local.conftest import Clock

try:
    from playwright.async_api import Browser, Page, async_playwright, expect
except ImportError:  # told by `browser`, and a failure where every check has to run
    Browser = Page = async_playwright = expect = None

CHROMIUM: Final = Path("/usr/bin/chromium")
ARGUMENTS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
LONG: Final = PATIENCE * 1_000  # milliseconds for anything to appear

__all__ = ["People", "Server", "expect"]


def missing() -> str:
    """What the tests of the page need and this machine does not have."""
    if async_playwright is None:
        return "playwright is not installed (pip install playwright)"
    return "" if CHROMIUM.exists() else f"there is no {CHROMIUM} (apt-get install chromium)"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> "AsyncIterator[Browser]":
    if missing():
        (pytest.fail if COMPLETE else pytest.skip)(missing())
    expect.set_options(timeout=LONG)
    async with async_playwright() as playwright:
        made = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=LONG)
        yield made
        await made.close()


@dataclass
class Server:
    """A workspace with a file and a port of its own, so that it can be killed and started again."""

    path: Path
    clock: Callable[[], float]
    port: int = 0
    now: LocalWorkspace = field(init=False)

    async def start(self) -> LocalWorkspace:
        self.now = LocalWorkspace(self.path, clock=self.clock, port=self.port)
        await self.now.start()
        self.port = int(self.now.url.rsplit(":", 1)[1])
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path, clock: Clock) -> AsyncIterator[Server]:
    made = Server(tmp_path / "workspace.db", clock)
    await made.start()
    yield made
    await made.now.stop()


@pytest.fixture
def workspace(server: Server) -> LocalWorkspace:
    return server.now


@pytest_asyncio.fixture(loop_scope="session")
async def cards(workspace: LocalWorkspace) -> AsyncIterator[Cards]:
    """The app that the tests click at, connected."""
    async with connected(workspace) as app:
        yield app


class People:
    """Opens the page for people.  `wrong` is whatever a browser complained of."""

    def __init__(self, browser: "Browser", workspace: LocalWorkspace) -> None:
        self._browser, self._workspace = browser, workspace
        self._contexts: list[Any] = []
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.goes_away = False  # the workspace will be stopped: a browser may then complain of its connection

    async def open(self, name: str = "ada", **context: Any) -> "Page":
        """A window that acts as this person, in a browser of its own, once it shows the workspace."""
        made = await self._browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | context)
        self._contexts.append(made)
        key = {"name": self._workspace.cookie, "value": self._workspace.secret, "url": self._workspace.url}
        await made.add_cookies([key])
        made.set_default_timeout(LONG)
        page = await made.new_page()
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        await page.goto(f"{self._workspace.url}/#/{name}")
        await expect(page.get_by_test_id("person-switcher")).to_contain_text(name.capitalize())
        return page

    def _said(self, message: Any) -> None:
        away = ("WebSocket connection", "ERR_CONNECTION_REFUSED")
        expected = self.goes_away and any(words in message.text for words in away)
        if message.type in ("error", "warning") and not expected:
            self.wrong.append(f"{message.text} at {message.location['url']}")

    async def close(self) -> None:
        for context in self._contexts:
            await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def people(browser: "Browser", workspace: LocalWorkspace) -> AsyncIterator[People]:
    made = People(browser, workspace)
    yield made
    await made.close()
    assert made.wrong == []
