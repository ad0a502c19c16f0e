"""Socket Mode: hands each envelope to one connection, waits for its acknowledgement, and hands it out again."""

import asyncio
import json
import secrets
import uuid
from collections.abc import Callable

from aiohttp import WSMsgType, web

from bot.local import rules
from bot.local.connection import CLOSE, Socket, frame_disconnect, frame_hello, send_all
from bot.local.file import File, Shelf
from bot.local.log import Log
from bot.local.shapes import JSON, Answer


class Hub:
    """Envelopes and the connections that take them.  Unacknowledged ones are in the file."""

    def __init__(self, file: File, clock: Callable[[], float], log: Log) -> None:
        self._file, self._clock, self._log = file, clock, log
        self.pending = Shelf(file, "envelope")
        self.sockets: list[Socket] = []
        self._tickets: dict[str, float] = {}
        self._keys: dict[str, str] = {}  # envelope_id -> key of the record
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._made = self._turn = self._opened = 0
        self._closing = False
        self._take_over()

    def _take_over(self) -> None:
        """What a killed process left: events go out again, nobody waits for the rest any more."""
        for key, record in list(self.pending.items()):
            self._made = max(self._made, int(key))
            if record["accepts"]:
                self._log.saw(record["user"], "operation_timeout", type=record["type"])
                self._drop(key)
            else:
                self._keys |= dict.fromkeys(record["ids"], key)
                self._wait(key, sent=record["socket"] is not None)
        self._file.flush()

    def ticket(self) -> str:
        """A word that opens one connection, once."""
        ticket = secrets.token_urlsafe(24)
        self._tickets[ticket] = self._clock() + rules.TICKET_SECONDS
        return ticket

    def admits(self, ticket: str) -> bool:
        """May this ticket open a connection?  It is used up by asking."""
        until = self._tickets.pop(ticket, None)
        return until is not None and self._clock() <= until

    def offer(self, kind: str, payload: JSON, *, accepts: bool, user: str = "") -> str:
        """Hand out a payload.  In: events_api, interactive or slash_commands.  Out: a key to ask `answer` with."""
        self._made += 1
        key = f"{self._made:012d}"
        self.pending[key] = {"type": kind, "payload": payload, "accepts": accepts, "user": user, "attempt": 0,
                             "reason": "", "ids": [], "socket": None, "due": None}  # fmt: skip
        if accepts:
            self._waiting[key] = asyncio.get_running_loop().create_future()
        if self.sockets:
            self._send(key)
        elif accepts:
            self._fail(key, "dispatch_failed")
        # On disk before the frame leaves: it leaves in another turn of the loop.
        self._file.flush()
        return key

    async def answer(self, key: str) -> Answer:
        """What the app said to an interaction or a command, or what the person saw instead."""
        try:
            return await self._waiting[key]
        finally:
            self._waiting.pop(key, None)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """One connection from hello to its end."""
        self._opened += 1
        socket = Socket(self._opened)
        await socket.response.prepare(request)
        if len(self.sockets) >= rules.SOCKETS:
            await socket.response.send_str(frame_disconnect("too_many_websockets"))
            await socket.response.close()
            return socket.response
        self.sockets.append(socket)
        socket.outbox.put_nowait(frame_hello(len(self.sockets)))
        self._log.note("connected", socket=socket.number)
        for key in [key for key, record in self.pending.items() if record["socket"] is None and record["due"] is None]:
            self._send(key)
        self._file.flush()
        sender = asyncio.create_task(send_all(socket))
        try:
            async for message in socket.response:
                if message.type == WSMsgType.TEXT:
                    self._received(json.loads(message.data))
        finally:
            sender.cancel()
            self._gone(socket)
        return socket.response

    def disconnect(self, reason: str) -> None:
        """Tell every connection that it will end.  In: a reason of Slack's, or "cut": end without a word."""
        for socket in list(self.sockets):
            if reason == "cut":
                self._gone(socket)
                socket.outbox.put_nowait(CLOSE)
                continue
            socket.outbox.put_nowait(frame_disconnect(reason))
            if reason == "link_disabled":
                socket.outbox.put_nowait(CLOSE)
        self._log.note("disconnect", reason=reason)

    def tick(self, *, now: float | None = None, hurry: bool = False) -> None:
        """Time out and hand out again what is due.  `hurry`: everything unacknowledged is due now."""
        self._disarm()
        moment = self._clock() if now is None else now
        for key, record in list(self.pending.items()):
            if record["due"] is None or (record["due"] > moment and not hurry):
                continue
            if record["accepts"]:
                self._fail(key, "operation_timeout")
            elif record["socket"] is None:
                self._send(key) if self.sockets else self._wait(key, sent=False)
            else:
                self._again(key, moment, hurry)
        self._file.flush()
        self._arm()

    async def close(self) -> None:
        """End every connection.  Whoever waits for an answer learns that none will come."""
        self._closing = True
        self._disarm()
        for future in self._waiting.values():
            if not future.done():
                future.set_result(Answer(False, "dispatch_failed"))
        for socket in list(self.sockets):
            await socket.response.close()

    def clear(self) -> None:
        for key in list(self.pending):
            self._drop(key)

    def _send(self, key: str) -> None:
        record = self.pending[key]
        self._turn += 1
        socket = self.sockets[self._turn % len(self.sockets)]
        envelope_id = str(uuid.uuid4())
        self._keys[envelope_id] = key
        record["ids"].append(envelope_id)
        record |= {"socket": socket.number, "due": self._clock() + rules.ACK_SECONDS}
        self.pending.touch(key)
        frame = {"envelope_id": envelope_id, "payload": record["payload"], "type": record["type"],
                 "accepts_response_payload": record["accepts"]}  # fmt: skip
        if not record["accepts"]:
            frame |= {"retry_attempt": record["attempt"], "retry_reason": record["reason"]}
        socket.outbox.put_nowait(json.dumps(frame))
        self._log.note("sent", socket=socket.number, frame=frame)
        self._arm()

    def _again(self, key: str, now: float, hurry: bool) -> None:
        """An event was not acknowledged in time: three more tries, then never again."""
        record = self.pending[key]
        if record["attempt"] >= len(rules.RETRY_SECONDS):
            self._log.note("gave_up", payload=record["payload"])
            self._drop(key)
            return
        delay = 0.0 if hurry else rules.RETRY_SECONDS[record["attempt"]]
        record |= {"attempt": record["attempt"] + 1, "reason": "timeout", "socket": None, "due": now + delay}
        self.pending.touch(key)
        self._log.note("retry", attempt=record["attempt"], event_id=record["payload"].get("event_id"))
        if not delay and self.sockets:
            self._send(key)

    def _wait(self, key: str, *, sent: bool) -> None:
        """Keep an event until a connection opens.  What went out before may have arrived, so it counts as a retry."""
        record = self.pending[key]
        record |= {"socket": None, "due": None}
        if sent:
            record |= {"attempt": record["attempt"] + 1, "reason": "connection_failed"}
        self.pending.touch(key)

    def _gone(self, socket: Socket) -> None:
        if socket not in self.sockets:
            return
        self.sockets.remove(socket)
        self._log.note("disconnected", socket=socket.number)
        for key, record in list(self.pending.items()):
            # Interactions wait on: their acknowledgement may still come by another connection.
            if record["socket"] == socket.number and not record["accepts"]:
                self._wait(key, sent=True)
                if self.sockets and not self._closing:
                    self._send(key)
        self._file.flush()

    def _received(self, frame: JSON) -> None:
        envelope_id = frame.get("envelope_id", "")
        key = self._keys.get(envelope_id)
        self._log.note("ack", envelope_id=envelope_id, payload=frame.get("payload"), late=key is None)
        if key is None:
            return
        self._settle(key, Answer(True, envelope_id=envelope_id, payload=frame.get("payload")))
        self._file.flush()

    def _fail(self, key: str, error: str) -> None:
        record = self.pending[key]
        self._log.saw(record["user"], error, type=record["type"])
        self._settle(key, Answer(False, error, envelope_id=record["ids"][-1] if record["ids"] else ""))

    def _settle(self, key: str, answer: Answer) -> None:
        self._drop(key)
        future = self._waiting.get(key)
        if future and not future.done():
            future.set_result(answer)

    def _drop(self, key: str) -> None:
        for envelope_id in self.pending[key]["ids"]:
            self._keys.pop(envelope_id, None)
        del self.pending[key]

    def _disarm(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _arm(self) -> None:
        if self._timer is None and not self._closing:
            due = min((record["due"] for record in self.pending.values() if record["due"] is not None), default=None)
            if due is not None:
                wait = max(due - self._clock(), 0.01)
                self._timer = asyncio.get_running_loop().call_later(wait, self.tick)
