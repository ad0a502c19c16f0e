"""One Socket Mode connection: what waits to be sent on it, and Slack's own frames."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from bot.local import people

CLOSE: Final = ""  # in an outbox: close the connection


@dataclass(slots=True)
class Socket:
    """One connection of the app."""

    number: int
    outbox: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    response: web.WebSocketResponse = field(default_factory=lambda: web.WebSocketResponse(timeout=1.0, max_msg_size=0))


def frame_hello(connections: int) -> str:
    """The first frame on a connection.  In: how many connections the app has now, this one included."""
    debug = {"host": "local", "build_number": 1, "approximate_connection_time": 18060}
    app = {"app_id": people.APP_ID}
    return json.dumps({"type": "hello", "num_connections": connections, "debug_info": debug, "connection_info": app})


def frame_disconnect(reason: str) -> str:
    """The frame that says that this connection will end, and why."""
    return json.dumps({"type": "disconnect", "reason": reason, "debug_info": {"host": "local"}})


async def send_all(socket: Socket) -> None:
    """Send what comes into the outbox, in order, until told to close or cancelled."""
    with suppress(ConnectionError):  # the reader notices the lost connection and hands its envelopes on
        while True:
            frame = await socket.outbox.get()
            if frame == CLOSE:
                await socket.response.close()
                return
            await socket.response.send_str(frame)
