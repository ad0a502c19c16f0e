"""The control interface: scripts do over HTTP what people do with the client.  JSON in, JSON out."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aiohttp import web

from bot.local.shapes import JSON, Answer, PersonCannot

if TYPE_CHECKING:
    from bot.local.workspace import LocalWorkspace

Verb = Callable[["LocalWorkspace", JSON], Awaitable[JSON]]


def routes(workspace: "LocalWorkspace") -> list[web.RouteDef]:
    """All routes under /_control.  The guard has checked the key and the content type before they are reached."""
    made = [web.post(f"/_control/{name}", _post(workspace, verb)) for name, verb in _VERBS.items()]

    async def log(request: web.Request) -> web.StreamResponse:
        since, kept = request.query.get("since", "0"), workspace.world.log
        if not (since.isascii() and since.isdigit() and len(since) < 16):
            raise web.HTTPBadRequest(text="since is the number that the answer before called `next`")
        return web.json_response({"ok": True, "log": kept.since(int(since)), "next": kept.next})

    async def state(request: web.Request) -> web.StreamResponse:
        return web.json_response({"ok": True, **workspace.state()})

    return [*made, web.get("/_control/log", log), web.get("/_control/state", state)]


def _post(workspace: "LocalWorkspace", verb: Verb) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            sent = await request.json()
            return web.json_response({"ok": True, **await verb(workspace, sent)})
        except PersonCannot as error:
            return web.json_response({"ok": False, "error": "person_cannot", "detail": str(error)}, status=409)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            detail = f"{type(error).__name__}: {error}"
            return web.json_response({"ok": False, "error": "bad_request", "detail": detail}, status=400)

    return handle


def _some(sent: JSON, *keys: str) -> dict[str, Any]:
    return {key: sent[key] for key in keys if sent.get(key) is not None}


def _told(answer: Answer) -> JSON:
    """`ok` of a control reply says that the verb was carried out; `answered` says whether the app acknowledged."""
    told = asdict(answer)
    return {"answered": told.pop("ok"), **told}


async def _message(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    user, channel = sent["user"], sent["channel"]
    if "delete_ts" in sent:
        await workspace.delete(user, channel, sent["delete_ts"], **_some(sent, "force"))
        return {"ts": sent["delete_ts"]}
    if "edit_ts" in sent:
        message = await workspace.edit(user, channel, sent["edit_ts"], sent["text"], **_some(sent, "force"))
    elif "subtype" in sent:
        message = await workspace.notice(user, channel, sent["subtype"], sent.get("text", ""))
    else:
        extra = _some(sent, "thread_ts", "files", "raw", "broadcast", "force", "as_bot")
        message = await workspace.say(user, channel, sent.get("text", ""), **extra)
    return {"ts": message["ts"], "message": message, "channel": channel}


async def _command(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    extra = _some(sent, "thread_ts", "force")
    return _told(await workspace.command(sent["user"], sent["channel"], sent["command"], sent.get("text", ""), **extra))


async def _interact(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    extra = _some(sent, "block_id", "force", "team_id", "api_app_id")
    value = sent.get("value", sent.get("selected_option", sent.get("selected_options")))
    if isinstance(value, dict):
        value = value["value"]
    if "message_ts" in sent:
        user, channel = sent["user"], sent["channel"]
        return _told(await workspace.click(user, channel, sent["message_ts"], sent["action_id"], value=value, **extra))
    extra = _some(sent, "block_id", "view_id")
    return _told(await workspace.click_view(sent["user"], sent["action_id"], value=value, **extra))


async def _submit(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    return _told(await workspace.submit(sent["user"], sent.get("values", {}), view_id=sent.get("view_id")))


async def _close(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    return _told(await workspace.close_view(sent["user"], sent.get("view_id"), clear=sent.get("clear", False)))


async def _open_home(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    await workspace.open_home(sent["user"], sent.get("tab", "home"))
    return {}


async def _reset(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    await workspace.reset()
    return {}


async def _redeliver(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    workspace.redeliver_now()
    return {}


async def _replay(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    return {"events": workspace.replay(sent["ts"])}


async def _disconnect(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    workspace.disconnect(sent.get("reason", "refresh_requested"))
    return {}


async def _fail(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    how = _some(sent, "error", "http_status", "retry_after", "times", "after_effect", "only")
    workspace.fail(sent["method"], **how)
    return {}


async def _join(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    await workspace.join(sent["user"], sent["channel"])
    return {}


async def _leave(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    await workspace.leave(sent["user"], sent["channel"])
    return {}


async def _person(workspace: "LocalWorkspace", sent: JSON) -> JSON:
    return {"user": workspace.change_person(sent["user"], **sent.get("facts", {}))}


_VERBS: dict[str, Verb] = {
    "message": _message,
    "command": _command,
    "interact": _interact,
    "submit": _submit,
    "close": _close,
    "open-home": _open_home,
    "reset": _reset,
    "redeliver": _redeliver,
    "replay": _replay,
    "disconnect": _disconnect,
    "fail": _fail,
    "person": _person,
    "join": _join,
    "leave": _leave,
}
