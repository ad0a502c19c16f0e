"""The page's files, and how the key in the printed address becomes a cookie."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_FOLDER: Final = Path(__file__).parent / "page"
_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_MOVED: Final = (
    '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">'
    '<meta http-equiv="refresh" content="0;url=/"><a href="/">Go on</a>'
)


def routes(cookie: Callable[[], str]) -> list[web.RouteDef]:
    """`/` and `/page/NAME`.  In: gives the cookie's name, which is known once the server listens."""
    files = {path.name: path.read_bytes() for path in _FOLDER.iterdir() if path.suffix in _TYPES}

    async def index(request: web.Request) -> web.StreamResponse:
        if "key" not in request.query:
            return _file(files, "index.html")
        # The key moves from the address, which ends up in histories, to a cookie that no script can read.
        # Not a redirect: after a click on a foreign page (a mail, say) browsers would not send the cookie along.
        moved = web.Response(text=_MOVED, content_type="text/html")
        moved.set_cookie(cookie(), request.query["key"], httponly=True, samesite="Strict", path="/")
        return moved

    async def file(request: web.Request) -> web.StreamResponse:
        return _file(files, request.match_info["name"])

    return [web.get("/", index), web.get("/page/{name}", file)]


def _file(files: dict[str, bytes], name: str) -> web.StreamResponse:
    if name not in files:
        raise web.HTTPNotFound(text="no such file")
    return web.Response(body=files[name], content_type=_TYPES[Path(name).suffix], charset="utf-8")
