"""The Web API's door: who calls, may the app do that, and which method answers."""

import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from bot.local import api_chat, api_conversations, api_rest, api_views, people, rules
from bot.local.arguments import Arguments, need
from bot.local.shapes import JSON, SlackError
from bot.local.world import World

METHODS: Final[Mapping[str, Callable[[World, Arguments], JSON]]] = {
    **api_chat.METHODS,
    **api_conversations.METHODS,
    **api_rest.METHODS,
    **api_views.METHODS,
}


def answer(world: World, method: str, arguments: JSON, token: str) -> JSON:
    """What Slack answers to a call; never raises.  In: decoded arguments, and the token wherever it was sent."""
    try:
        _admit(world, method, token)
        return {"ok": True, **METHODS[method](world, Arguments(arguments))}
    except SlackError as error:
        return {"ok": False, "error": error.code, **error.extra}
    finally:
        world.file.flush()


def _admit(world: World, method: str, token: str) -> None:
    if method not in METHODS:
        raise SlackError("unknown_method", req_method=method)
    if not token:
        raise SlackError("not_authed")
    app_level = method == "apps.connections.open"
    if not same(token, world.secrets["app_token" if app_level else "bot_token"]):
        other = world.secrets["bot_token" if app_level else "app_token"]
        raise SlackError("not_allowed_token_type" if same(token, other) else "invalid_auth")
    scope = rules.METHOD_SCOPES[method]
    if not app_level and scope and ":" in scope:
        need(world, scope)


def same(given: str, wanted: str) -> bool:
    """Are two secrets equal?  Takes as long for a near miss as for a far one."""
    # A header may hold bytes that are no text; they shall be wrong, not an error.
    return hmac.compare_digest(given.encode(errors="backslashreplace"), wanted.encode())


def decode(content_type: str, body: bytes, query: Mapping[str, str], form: Mapping[str, str]) -> JSON:
    """All arguments of a call, however they were sent."""
    arguments: dict[str, Any] = {**query, **form}
    if content_type.startswith("application/json") and body:
        try:
            sent = json.loads(body)
        except ValueError:
            raise SlackError("invalid_json") from None
        if not isinstance(sent, dict):
            raise SlackError("json_not_object")
        arguments |= sent
    return arguments


def scopes_header(world: World) -> dict[str, str]:
    """The headers by which Slack says what the app may do."""
    return {"x-oauth-scopes": ",".join(sorted(world.settings.scopes)), "x-slack-app": people.APP_ID}
