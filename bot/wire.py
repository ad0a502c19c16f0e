"""The socket that Slack speaks through: whether it is alive, and whether others listen with the same token."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from slack_sdk.socket_mode.aiohttp import SocketModeClient

from harness_core.ports import Clock

log = logging.getLogger(__name__)

OURS: Final = 1  # connections that one bot holds
LOOK: Final = 15.0  # seconds between two looks at whether it is alive


class Wire:
    """Watches a socket that its client keeps open: it pings, and connects anew where no pong comes."""

    def __init__(self, client: SocketModeClient, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._was_alive = True
        client.message_listeners.append(self._heard)

    async def alive(self) -> bool:
        """Whether Slack answers on it: connected, and with a pong of late. Silence of people is no fault."""
        return await self._client.is_connected()

    async def watch(self) -> None:
        """Say in the log when it dies and when it is back, until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(LOOK)

    async def look(self) -> None:
        """Say what changed since the last look."""
        alive = await self.alive()
        if alive != self._was_alive:
            self._was_alive = alive
            if alive:
                log.warning("Slack is heard again")
            else:
                log.error("Slack is not heard any more; the socket is opened anew. What is said meanwhile comes later")

    async def _heard(self, client: object, message: Mapping[str, Any], raw: str | None = None) -> None:
        others = connections(message) - OURS
        if others > 0:
            log.warning(
                "Slack counts %d more connection%s of this app: another process listens with the same app token and "
                "takes some of the messages and clicks. Stop it, or give it an app of its own",
                others,
                "s" if others > 1 else "",
            )


def connections(message: Mapping[str, Any]) -> int:
    """How many connections of the app a first word counts; 0 for any other message."""
    count = message.get("num_connections")
    return count if message.get("type") == "hello" and isinstance(count, int) else 0
