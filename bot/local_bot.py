"""The bot and a workspace of its own, in one process: the demo, and the target of tests."""

from __future__ import annotations

import errno
import sqlite3
from dataclasses import replace
from typing import Self

from bot.app import Bot, Parts
from bot.approvers import Access
from bot.config import Settings, SlackSettings
from bot.folders import DATABASE, LOCAL_DATABASE, not_emptied
from bot.local import LocalWorkspace, people
from harness_core.errors import ConfigError, StoreError


class LocalBot:
    """The bot in a workspace of its own, in this process: the demo, and the target of tests."""

    def __init__(self, settings: Settings, parts: Parts | None = None, *, in_memory: bool = False) -> None:
        self.settings = settings
        path = ":memory:" if in_memory else settings.data / LOCAL_DATABASE
        not_emptied(settings.data / DATABASE, settings.data / LOCAL_DATABASE)
        not_emptied(settings.data / LOCAL_DATABASE, settings.data / DATABASE)
        self.workspace = LocalWorkspace(path, port=settings.local_port)
        self._parts = parts or Parts()

    def made(self) -> Bot:
        """A bot for this workspace, not started yet."""
        agent = self.workspace.settings.agents == "ok"
        slack = SlackSettings(self.workspace.bot_token, self.workspace.app_token, self.workspace.api_url, agent)
        # The local workspace starts switched on, with one administrator.
        given = Access(
            self.settings.admins or frozenset({people.ADA}),
            self.settings.approvers,
            frozenset({people.GENERAL, people.OPS, people.PRIVATE}),
        )
        return Bot(replace(self.settings, slack=slack), slack, given, self._parts)

    async def __aenter__(self) -> Self:
        await self._opened()
        try:
            self.bot = self.made()
            await self.bot.start()
        except BaseException:
            await self.workspace.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.bot.stop()
        await self.workspace.stop()

    async def _opened(self) -> None:
        """Start the workspace; what stands in the way is said in words."""
        port = self.settings.local_port
        try:
            await self.workspace.start()
        except sqlite3.Error as error:
            path = self.settings.data / LOCAL_DATABASE
            raise StoreError(
                f"{path} cannot be used: {error}. It was left as it is; if the disk is not full, move the file away, "
                "and the local workspace begins anew."
            ) from error
        except BlockingIOError as error:
            raise ConfigError(
                f"Another local harness-bot works in {self.settings.data.resolve()}. Stop it, or give this one a "
                "folder of its own with HARNESS_DATA."
            ) from error
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                why = "is taken, perhaps by another harness-bot"
            elif error.errno == errno.EACCES and 0 < port < 1024:
                why = "is for the administrator of this machine alone"
            else:
                raise
            raise ConfigError(f"Port {port} {why}; set HARNESS_LOCAL_PORT (0: any that is free).") from error
