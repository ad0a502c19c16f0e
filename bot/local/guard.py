"""Who may talk to the server: loopback names only, our own pages only, and only with a secret."""

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from bot.local.api import same

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS: Final = {
    # The page needs its own style, script and socket, nothing from elsewhere, and nobody may frame it.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
_OWN_SECRET: Final = ("/api/", "/_socket", "/_response/")  # a token, a ticket or an unguessable path


class Guard:
    """Refuses with 403 whatever does not come from this machine's own user.  In: the secret; the port once known."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self.port = 0

    @property
    def cookie(self) -> str:
        return f"local_workspace_{self.port}"  # cookies are shared between ports, so the name is not

    def hosts(self) -> set[str]:
        return {f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        # A page elsewhere can point a name of its own at 127.0.0.1; the Host header gives it away.
        if request.headers.get("Host", "") not in self.hosts():
            raise web.HTTPForbidden(text="wrong host")
        origin = request.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts()}:
            raise web.HTTPForbidden(text="wrong origin")
        if request.path.startswith(_OWN_SECRET):
            return await handler(request)
        if not self._knows(request):
            raise web.HTTPForbidden(text="the key is missing: use the whole printed address")
        if (
            request.path.startswith("/_control")
            and request.method != "GET"
            and request.content_type != "application/json"
        ):
            # A form on a foreign page can send anything but this content type without asking first.
            raise web.HTTPForbidden(text="control requests are application/json")
        response = await handler(request)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    def _knows(self, request: web.Request) -> bool:
        given = (
            request.headers.get("Authorization", "").removeprefix("Bearer "),
            request.cookies.get(self.cookie, ""),
            request.query.get("key", "") if request.path == "/" else "",
        )
        return any(word and same(word, self._secret) for word in given)
