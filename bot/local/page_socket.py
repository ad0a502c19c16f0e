"""The page's own connection: what changed goes out, what a person does comes in."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from aiohttp import WSCloseCode, WSMsgType, web

from bot.local import people, rules
from bot.local.page_state import Reader
from bot.local.page_verbs import carry_out
from bot.local.shapes import JSON
from bot.local.world import World

PROMPTS: Final = (
    "run `echo hello | tee hello.txt`",
    "write `# Plan` to plan.md",
    "run `mkdir -p notes` and run `date > notes/today`",
)
HINTS: Final[Mapping[str, str]] = {"/harness": "help"}


class Pages:
    """Serves `/_page?as=NAME`, one connection per browser tab, each for its own person.

    In: the world, the prompts a new thread offers, and what may follow each slash command."""

    def __init__(self, world: World, prompts: Sequence[str], hints: Mapping[str, str]) -> None:
        self._world, self._prompts, self._hints = world, prompts, hints
        self._open: set[web.WebSocketResponse] = set()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One connection from hello to its end."""
        user = self._who(request.query.get("as", ""))
        number = request.query.get("number", "0")
        reader = Reader(self._world, user, request.query.get("epoch", ""), int(number) if number.isdecimal() else 0)
        # On one machine there is nothing to win by compressing.
        socket = web.WebSocketResponse(heartbeat=rules.PAGE_HEARTBEAT_SECONDS, timeout=1.0, compress=False)
        await socket.prepare(request)
        self._open.add(socket)
        # Hello first: whatever is answered or told afterwards is for a page that knows who it acts as.
        await socket.send_str(json.dumps(self._hello(user)))
        try:
            async with asyncio.TaskGroup() as tasks:
                telling = tasks.create_task(self._tell(socket, reader))
                async for message in socket:
                    if message.type == WSMsgType.TEXT:
                        tasks.create_task(self._do(socket, user, message.data))
                telling.cancel()
        finally:
            self._open.discard(socket)
        return socket

    async def close(self, _: object = None) -> None:
        """End every connection; the pages will try to come back."""
        for socket in list(self._open):
            await socket.close(code=WSCloseCode.GOING_AWAY)

    def _who(self, name: str) -> str:
        """The person of this name or id, Ada for everybody else."""
        for key, user in self._world.people.items():
            if name in (key, user["name"]) and not user["is_bot"] and key != people.SLACK:
                return key
        return people.ADA

    def _hello(self, user: str) -> JSON:
        commands = {name: self._hints.get(name, "") for name in sorted(self._world.settings.commands)}
        return {"type": "hello", "you": user, "bot": people.BOT_USER, "bot_dm": people.direct_id(user),
                "start": people.GENERAL, "team": people.TEAM_NAME, "prompts": list(self._prompts),
                "commands": commands, "emoji": dict(rules.EMOJI), "stack": rules.VIEW_STACK}  # fmt: skip

    async def _tell(self, socket: web.WebSocketResponse, reader: Reader) -> None:
        """Send changes as they come; several at once where they come faster than the page takes them."""
        with suppress(ConnectionError):  # the reading side notices the end
            while True:
                change = self._world.log.change
                news = reader.news()
                if news is not None:
                    await socket.send_str(json.dumps(news))
                await change.wait()

    async def _do(self, socket: web.WebSocketResponse, user: str, data: str) -> None:
        try:
            sent = json.loads(data)
            number = sent["id"]
        except (ValueError, TypeError, KeyError):
            return  # no page of ours sent this, and nobody waits for an answer
        answer = await carry_out(self._world, user, sent)
        with suppress(ConnectionError):
            await socket.send_str(json.dumps({"type": "answer", "id": number, **answer}))
