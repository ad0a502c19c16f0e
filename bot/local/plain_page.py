"""What was said where, as a page without scripts: for text browsers, and for reading only.  All of it is escaped."""

import json
from collections.abc import Awaitable, Callable
from html import escape
from typing import TYPE_CHECKING

from aiohttp import web

from bot.local.shapes import JSON

if TYPE_CHECKING:
    from bot.local.workspace import LocalWorkspace


def routes(workspace: "LocalWorkspace") -> list[web.RouteDef]:
    return [web.get("/plain", _index(workspace))]


def _index(workspace: "LocalWorkspace") -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(text=_page(workspace.state()), content_type="text/html")

    return handle


def _page(state: JSON) -> str:
    names = {key: user["real_name"] for key, user in state["people"].items()}
    sections = "".join(_channel(channel, names) for channel in state["channels"].values())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Local workspace</title></head><body>'
        "<h1>Local workspace</h1><p>A Slack-shaped workspace on this machine. Scripts use it through "
        f"<code>/_control</code>, people through <a href='/'>the page</a>.</p>{sections}</body></html>"
    )


def _channel(channel: JSON, names: dict[str, str]) -> str:
    info = channel["info"]
    title = f"#{info['name']}" if "name" in info else f"Direct messages with {names.get(info['user'], info['user'])}"
    items = "".join(_message(message, names) for message in channel["messages"])
    return f"<section><h2>{escape(title)}</h2><ol>{items or '<li>Nothing yet.</li>'}</ol></section>"


def _message(message: JSON, names: dict[str, str]) -> str:
    who = str(names.get(message.get("user", ""), message.get("username", "somebody")))
    mark = "↳ " if message.get("thread_ts", message["ts"]) != message["ts"] else ""
    text = message.get("text") or json.dumps(message.get("blocks", []), ensure_ascii=False)
    return f"<li><p>{mark}<b>{escape(who)}</b> <time>{escape(message['ts'])}</time><br>{escape(text)}</p></li>"
