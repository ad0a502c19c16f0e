"""What Bolt calls: store, acknowledge, hand over.  No logic."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from bot import kit, limits, modals, words
from bot.heard import Configure, Decide, Edit, Ignore, Inbound, OpenModal, Origin
from bot.ids import SHORT_ID, Identity
from bot.inbound import parse
from bot.inbox import Inbox
from bot.logs import about

log = logging.getLogger(__name__)

ACK_BY: Final = limits.ACK - 0.5  # seconds after which a click is acknowledged in any case
ANY: Final = re.compile(r"[\s\S]*")
Next = Callable[[], Awaitable[Any]]


def bolt_app(token: str, base_url: str, us: Identity, inbox: Inbox) -> AsyncApp:
    """A Bolt app whose listeners hand everything to the inbox."""

    async def authorize(**_: object) -> AuthorizeResult:
        # We know who we are since the start; asking Slack again would make the first messages wait.
        return AuthorizeResult(
            enterprise_id=us.enterprise_id or None,
            team_id=us.team_id,
            bot_user_id=us.bot_user_id,
            bot_id=us.bot_id,
            bot_token=token,
        )

    # Bolt would drop all that is about our own messages, also that one was deleted; `inbound` says which start nothing.
    app = AsyncApp(client=AsyncWebClient(base_url=base_url), authorize=authorize, ignoring_self_events_enabled=False)

    # Bolt acknowledges an event when its listener starts, and awaits global middleware before: so a message is on disk
    # before Slack hears that we have it. If storing fails there is no acknowledgement, and Slack delivers it again.
    @app.middleware
    async def store_messages(body: Mapping[str, Any], next: Next) -> None:
        if body.get("type") == "event_callback":
            heard = parse(body, us)
            with about(**_ids(heard)):
                await inbox.take(heard)
        await next()

    @app.event(ANY)
    async def on_event() -> None:
        """Done above; without a listener Bolt would not acknowledge."""

    @app.action(ANY)
    async def on_action(ack: AsyncAck, body: Mapping[str, Any]) -> None:
        heard = parse(body, us)
        with about(**_ids(heard)):
            await _click(ack, heard, inbox)

    @app.view(ANY)
    async def on_view(ack: AsyncAck, body: Mapping[str, Any]) -> None:
        heard = parse(body, us)
        with about(**_ids(heard)):
            await _submission(ack, heard, inbox)

    @app.command(ANY)
    async def on_command(ack: AsyncAck, respond: AsyncRespond, body: Mapping[str, Any]) -> None:
        await _command(ack, respond, parse(body, us), inbox)

    @app.view_closed(ANY)
    async def on_closed(ack: AsyncAck) -> None:
        await ack()

    return app


async def _click(ack: AsyncAck, heard: Inbound, inbox: Inbox) -> None:
    # Acknowledged once it is stored; but a Slack that is slow to say who somebody is must not fail the click.
    clicked = asyncio.ensure_future(_clicked(heard, inbox))
    await asyncio.wait({clicked}, timeout=ACK_BY)
    await ack()
    await clicked


async def _submission(ack: AsyncAck, heard: Inbound, inbox: Inbox) -> None:
    submitted = asyncio.ensure_future(_submitted(heard, inbox))
    await asyncio.wait({submitted}, timeout=ACK_BY)
    if not submitted.done():
        await ack(response_action="update", view=modals.message("One moment", words.SLOW_FORM))
        _tell_late(heard, await submitted, inbox)
        return
    told = submitted.result()
    if isinstance(told, str) and told:
        await ack(response_action="update", view=modals.message("Not decided", told))
    elif told:
        await ack(response_action="errors", errors=dict(told))
    else:
        await ack()


async def _command(ack: AsyncAck, respond: AsyncRespond, heard: Inbound, inbox: Inbox) -> None:
    answering = asyncio.ensure_future(_commanded(heard, inbox))
    await asyncio.wait({answering}, timeout=ACK_BY)
    late = not answering.done()
    if late:
        await ack(**kit.private(words.SLOW_COMMAND), response_type="ephemeral")
    text = await answering
    if late and text:
        await respond(**kit.private(text), response_type="ephemeral")
    elif not late:
        await (ack(**kit.private(text), response_type="ephemeral") if text else ack())


async def _clicked(heard: Inbound, inbox: Inbox) -> None:
    """Nobody's click stays without an answer, and none that comes to nothing without a line in the log."""
    match heard:
        case Decide(origin=origin):
            told = await inbox.decisions.decide(heard)
        case OpenModal(action="view", origin=origin):
            told = await inbox.decisions.show_whole(heard)
        case OpenModal(origin=origin):
            told = await inbox.decisions.open_form(heard)
        case Ignore(why, told, Origin() as origin):
            log.warning("a click was not read: %s", why)
        case _:
            log.warning("a click was dropped: %s", heard.why if isinstance(heard, Ignore) else type(heard).__name__)
            return
    if told:
        log.warning("a click of %s came to nothing: %s", origin.user, told)
        inbox.whisper(origin, told)


async def _submitted(heard: Inbound, inbox: Inbox) -> str | Mapping[str, str]:
    match heard:
        case Decide():
            return await inbox.decisions.decide(heard)
        case Edit():
            return await inbox.decisions.edit(heard)
        case _:
            return _tell(heard)


def _tell_late(heard: Inbound, told: str | Mapping[str, str], inbox: Inbox) -> None:
    """What came of a submission whose form is gone: in private, where it did not decide."""
    text = told if isinstance(told, str) else words.refused("; ".join(told.values()))
    origin = getattr(heard, "origin", None)
    if text and origin is not None:
        log.warning("a form of %s came to nothing: %s", origin.user, text)
        inbox.whisper(origin, text)


async def _commanded(heard: Inbound, inbox: Inbox) -> str:
    return await inbox.configure(heard) if isinstance(heard, Configure) else _tell(heard)


def _ids(heard: Inbound) -> Mapping[str, str]:
    task = getattr(heard, "task", None)
    return {"session": getattr(heard, "session_id", ""), "task": task.fingerprint[:SHORT_ID] if task else ""}


def _tell(heard: Inbound) -> str:
    return heard.tell if isinstance(heard, Ignore) else ""
