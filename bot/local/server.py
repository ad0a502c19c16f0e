"""The HTTP side: the Web API, response addresses and the socket, each request noted and faults put in its way."""

import asyncio
import time
from collections import deque
from typing import Final

from aiohttp import web

from bot.local import api
from bot.local.guard import Guard
from bot.local.responses import by_url
from bot.local.shapes import JSON, Call, Fault, SlackError
from bot.local.world import World

CALLS_KEPT: Final = 50_000  # ours: a long load run shall not fill the memory
_BODY: Final = 32 * 1024 * 1024


class Server:
    """Serves one world on the loopback interface."""

    def __init__(self, world: World, host: str, port: int) -> None:
        self.world = world
        self.guard = Guard(world.secrets["secret"])
        self.calls: deque[Call] = deque(maxlen=CALLS_KEPT)
        self._host, self._port = host, port
        self.app = web.Application(middlewares=[self.guard.middleware], client_max_size=_BODY)
        self.app.router.add_route("*", "/api/{method}", self._call)
        self.app.router.add_post("/_response/{key}", self._respond)
        self.app.router.add_get("/_socket", self._socket)
        self._runner = web.AppRunner(self.app, access_log=None, shutdown_timeout=1.0)  # addresses hold secrets

    async def start(self) -> None:
        """Listen.  The world then knows its address."""
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        self.guard.port = int(self._runner.addresses[0][1])
        shown = f"[{self._host}]" if ":" in self._host else self._host
        self.world.address = f"http://{shown}:{self.guard.port}"

    async def stop(self) -> None:
        """End all connections, and with them all that they wait for."""
        await self.world.hub.close()
        await self._runner.cleanup()

    async def _call(self, request: web.Request) -> web.StreamResponse:
        started = time.perf_counter()
        method, world = request.match_info["method"], self.world
        arguments, token, broken = await _read(request)
        if world.settings.delay:
            await asyncio.sleep(world.settings.delay)
        if method in world.settings.gates:
            world.log.note("held", method=method)
            await world.settings.gates[method].wait()
        fault = self._fault(method, arguments)
        if fault and not fault.after_effect:
            reply: JSON = {"ok": False, "error": fault.error or "ratelimited"}
        elif broken:
            reply = {"ok": False, "error": broken}
        else:
            reply = api.answer(world, method, arguments, token)
        peer = request.transport.get_extra_info("peername") if request.transport else ""
        shown = "ratelimited" if fault and fault.retry_after is not None else str(reply.get("error", ""))
        if fault:
            shown = "connection_cut" if fault.cuts else fault.error or shown or f"http_{fault.http_status}"
        seconds = time.perf_counter() - started
        ok = bool(reply["ok"]) and not fault
        kept = reply if method != "apps.connections.open" else {"ok": reply["ok"]}  # a ticket is a secret too
        self.calls.append(Call(method, arguments, world.clock(), _peer(peer), ok, shown, seconds, kept))
        world.log.note("call", method=method, ok=ok, error=shown, arguments=arguments)
        return _faulty(request, fault) if fault else web.json_response(reply, headers=api.scopes_header(world))

    def _fault(self, method: str, arguments: JSON) -> Fault | None:
        """The next fault for this call, if one was ordered."""
        queue = self.world.settings.faults.get(method, [])
        fault = next((one for one in queue if one.meets(arguments)), None)
        if fault:
            fault.times -= 1
            if fault.times <= 0:
                queue.remove(fault)
        return fault

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        arguments, _, broken = await _read(request)
        fault = self._fault("response_url", arguments)
        if fault and not fault.after_effect:
            return _faulty(request, fault)
        status, text = (400, broken) if broken else by_url(self.world, request.match_info["key"], arguments)
        return _faulty(request, fault) if fault else web.Response(status=status, text=text)

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if not self.world.hub.admits(request.query.get("ticket", "")):
            raise web.HTTPForbidden(text="a ticket opens one connection, once, and soon")
        return await self.world.hub.serve(request)


def _peer(name: object) -> str:
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else ""


async def _read(request: web.Request) -> tuple[JSON, str, str]:
    """Arguments without the token, the token, and the error if the body cannot be read."""
    header = request.headers.get("Authorization", "").removeprefix("Bearer ")
    json_sent = request.content_type == "application/json"
    body = await request.read() if json_sent else b""
    form = {} if json_sent else {key: str(value) for key, value in (await request.post()).items()}
    try:
        arguments = api.decode(request.content_type, body, request.query, form)
    except SlackError as error:
        return {}, header, error.code
    token = arguments.pop("token", "") or header
    return arguments, str(token), ""


def _faulty(request: web.Request, fault: Fault) -> web.StreamResponse:
    if fault.cuts:
        if request.transport:
            request.transport.abort()
        return web.Response()  # reaches nobody
    if fault.retry_after is not None:
        body = {"ok": False, "error": fault.error or "ratelimited"}
        return web.json_response(body, status=429, headers={"Retry-After": f"{fault.retry_after:g}"})
    if fault.http_status is not None and fault.error is None:
        return web.Response(status=fault.http_status, text="upstream connect error")
    return web.json_response({"ok": False, "error": fault.error}, status=fault.http_status or 200)
