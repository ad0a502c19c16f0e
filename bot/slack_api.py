"""The only user of Slack's Web API: paced, one connection pool, and errors named by who must act."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot import kit
from bot.fields import map_of, maps_of, text_of
from bot.pace import Pace, Urgency
from harness_core.errors import HarnessError
from harness_core.masking import mask

log = logging.getLogger(__name__)

TRIES: Final = 5  # of one call that Slack puts off; together with its own waits that is some minutes
TRIES_OF_LOOKS: Final = 2  # at who somebody is: a click, or a message that is not acknowledged, waits for it
LONGEST_WAIT: Final = 60.0  # seconds; Slack has been seen to ask for 30
TIMEOUT: Final = 20  # seconds for one call
# these take no JSON
READS: Final = frozenset({"bots.info", "users.info", "conversations.info", "conversations.replies"})
REPLIES: Final = 200  # messages of one page of a thread


# What to do about it, by Slack's own word.
CURES: Final[Mapping[str, str]] = {
    "not_in_channel": "The bot is not in this channel any more: /invite it, and write in the thread.",
    "channel_not_found": "The bot cannot see this channel any more: /invite it, and write in the thread.",
    "is_archived": "The channel is archived.",
    "not_allowed_token_type": "SLACK_BOT_TOKEN must be the bot's token, xoxb-….",
    "restricted_action": "A preference of this workspace forbids it: ask its owners.",
    "missing_scope": "Reinstall the app with manifest.yml as it is now.",
    "invalid_auth": "Copy the token anew.",
    "token_revoked": "Reinstall the app, and copy the token anew.",
    "account_inactive": "The app was removed from the workspace: install it again, and copy the token anew.",
}


# What Slack says where the bot, or whoever is meant, is not in a channel any more.
AWAY: Final = frozenset({"not_in_channel", "channel_not_found", "user_not_in_channel", "is_archived"})


# What it says of a place that is gone; of another it may hear us.
NOWHERE: Final = AWAY | {"invalid_thread_ts", "thread_not_found", "message_not_found"}


class SlackRefused(HarnessError):
    """Slack refused a call, and would again. code: Slack's own word for it."""

    def __init__(self, method: str, code: str, needed: str = "") -> None:
        lacks = f" (the app lacks the scope {needed})" if needed else ""
        cure = f". {CURES[code]}" if code in CURES else ""
        super().__init__(f"Slack refused {method}: {code}{lacks}{cure}")
        self.code = code


class SlackUnreachable(HarnessError):
    """Slack did not answer. Whether the call had its effect is not known."""


class SlackPutOff(HarnessError):
    """Slack did nothing, and wants to be asked later: a turn comes when it may be."""


class SlackApi:
    """What the bot asks of Slack. Every text is masked here, whatever was done before."""

    def __init__(self, token: str, base_url: str, *, tries: int = TRIES) -> None:
        self._token, self._base_url, self._tries = token, base_url, tries
        self._session: aiohttp.ClientSession | None = None
        self._client: AsyncWebClient | None = None
        self._paces: dict[str, Pace] = {}

    @property
    def client(self) -> AsyncWebClient:
        """The web client. One session, so that connections are reused; retries are ours alone."""
        if self._client is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT))
            self._client = AsyncWebClient(
                token=self._token, base_url=self._base_url, session=self._session, retry_handlers=[], timeout=TIMEOUT
            )
        return self._client

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    # -- who and where -------------------------------------------------------------------------------------------------

    async def auth_test(self) -> Mapping[str, Any]:
        """Who we are."""
        return await self._call("auth.test")

    async def scopes(self) -> frozenset[str]:
        """What our token may do, as the answer's header says."""
        response = await self._respond("auth.test", again=True)
        return frozenset(str(response.headers.get("x-oauth-scopes", "")).replace(" ", "").split(",")) - {""}

    async def socket_address(self) -> str:
        """Where to open a socket; this wants the app token."""
        url = (await self._call("apps.connections.open", again=True)).get("url")
        if not isinstance(url, str) or not url.startswith(("wss://", "ws://")):
            raise SlackUnreachable("apps.connections.open: an answer without the address of a socket")
        return url

    async def app_of(self, bot: str) -> str:
        """The id of the app that a bot belongs to; "" if Slack does not say."""
        return text_of(map_of((await self._known("bots.info", bot=bot)).get("bot")), "app_id")

    async def user(self, user: str) -> object:
        """A person, as Slack describes them; None for one that it does not know."""
        return (await self._known("users.info", user=user)).get("user")

    async def conversation(self, channel: str) -> object:
        """A channel, as Slack describes it; None for one that it does not know."""
        return (await self._known("conversations.info", channel=channel)).get("channel")

    async def _known(self, method: str, **which: Any) -> Mapping[str, Any]:
        """What Slack says about something; nothing about what it does not know. Somebody waits for it."""
        try:
            return await self._call(method, again=True, tries=TRIES_OF_LOOKS, **which)
        except SlackRefused as refused:
            log.warning("%s", refused)
            return {}

    # -- messages ------------------------------------------------------------------------------------------------------

    def turn(self, channel: str, urgency: Urgency) -> asyncio.Future[None]:
        """Ask for a turn to post in a channel: done when it has come."""
        return self._pace(channel).turn(urgency)

    async def post(self, channel: str, thread_ts: str, message: Mapping[str, Any]) -> str:
        """Post into a thread, when it is our turn. Its ts. Raises SlackPutOff if there must be another turn for it, and
        SlackUnreachable if nobody knows whether it stands there.
        """
        where: dict[str, Any] = {"channel": channel, "thread_ts": thread_ts}
        reply = await self._call("chat.postMessage", patient=False, **where, **_masked(message))
        if not isinstance(ts := reply.get("ts"), str) or not ts:
            raise SlackUnreachable("chat.postMessage: an answer that cannot be read")
        return ts

    async def update(self, channel: str, ts: str, message: Mapping[str, Any]) -> None:
        """Draw a message anew. Doing so twice is as good as once, so an unknown outcome is tried again."""
        more = {name: value for name, value in _masked(message).items() if not name.startswith("unfurl")}
        await self._call("chat.update", again=True, channel=channel, ts=ts, **more)

    async def whisper(self, channel: str, user: str, text: str, thread_ts: str = "") -> None:
        """Say something to one person in private; where the bot is not in the channel any more, in a direct message.

        It is a courtesy: failing to is logged, and changes nothing.
        """
        where: dict[str, Any] = {"thread_ts": thread_ts} if thread_ts else {}
        try:
            await self._call("chat.postEphemeral", channel=channel, user=user, parse="none", **_private(text), **where)
        except SlackRefused as refused:
            log.warning("a private notice was not delivered: %s", refused)
            if refused.code in AWAY:
                await self._write_to(user, f"About <#{channel}>: {text}")
        except SlackUnreachable as error:
            log.warning("a private notice was not delivered: %s", error)

    async def _write_to(self, user: str, text: str) -> None:
        try:
            await self._call("chat.postMessage", channel=user, **_private(text), **kit.QUIET)
        except (SlackRefused, SlackUnreachable) as error:
            log.warning("a direct message was not delivered: %s", error)

    async def replies(self, channel: str, thread_ts: str) -> Sequence[Mapping[str, Any]]:
        """The messages of a thread, the oldest first, our own with their metadata."""
        found: list[Mapping[str, Any]] = []
        page: dict[str, Any] = {}
        while True:
            reply = await self._call(
                "conversations.replies",
                again=True,
                channel=channel,
                ts=thread_ts,
                limit=REPLIES,
                include_all_metadata="true",
                **page,
            )
            found += maps_of(reply.get("messages"))
            cursor = text_of(map_of(reply.get("response_metadata")), "next_cursor")
            if not cursor:
                return found
            page = {"cursor": cursor}

    async def react(self, channel: str, ts: str, name: str, *, add: bool) -> None:
        """Add or remove a reaction. That it is (or is not) there already is as good."""
        method = "reactions.add" if add else "reactions.remove"
        try:
            await self._call(method, again=True, channel=channel, timestamp=ts, name=name)
        except SlackRefused as refused:
            if refused.code not in ("already_reacted", "no_reaction", "message_not_found"):
                raise

    async def set_status(self, channel: str, thread_ts: str, status: str) -> None:
        """Say what the agent of a thread is at. Saying so twice is as good as once."""
        where: dict[str, Any] = {"channel_id": channel, "thread_ts": thread_ts}
        await self._call("agents.sessions.setStatus", again=True, status=status, **where)

    async def open_view(self, trigger_id: str, view: Mapping[str, Any]) -> None:
        """Open a modal. Its trigger lives three seconds."""
        await self._call("views.open", trigger_id=trigger_id, view=view)

    # -- the call ------------------------------------------------------------------------------------------------------

    async def _call(
        self, method: str, *, again: bool = False, patient: bool = True, tries: int | None = None, **arguments: Any
    ) -> Mapping[str, Any]:
        """What Slack answers to a call."""
        data = (await self._respond(method, again=again, patient=patient, tries=tries, **arguments)).data
        return data if isinstance(data, dict) else {}

    async def _respond(
        self, method: str, *, again: bool, patient: bool = True, tries: int | None = None, **arguments: Any
    ) -> AsyncSlackResponse:
        """Call, wait when Slack says so (if patient), and try again what it surely did not do (with `again`, may do
        twice), `tries` times in all.
        """
        most = min(tries or self._tries, self._tries)
        for attempt in range(1, most + 1):
            try:
                how: dict[str, Any] = (
                    {"http_verb": "GET", "params": arguments} if method in READS else {"json": arguments}
                )
                return await self.client.api_call(method, **how)
            except SlackApiError as error:
                channel = str(arguments.get("channel", ""))
                await self._put_off(method, error, attempt, channel, again=again and attempt < most, patient=patient)
            except (aiohttp.ClientConnectorError, ConnectionRefusedError) as error:  # it never got there
                if attempt == most:
                    raise SlackUnreachable(f"{method}: {type(error).__name__}") from error
                await asyncio.sleep(_backoff(attempt))
            # An answer that is no JSON object makes slack_sdk stumble over its own `.get`.
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError, AttributeError) as error:
                if not again or attempt == most:
                    unread = isinstance(error, ValueError | AttributeError)
                    what = "an answer that cannot be read" if unread else type(error).__name__
                    raise SlackUnreachable(f"{method}: {what}") from error
                await asyncio.sleep(_backoff(attempt))
        raise SlackUnreachable(f"{method}: put off {most} times")

    async def _put_off(
        self, method: str, error: SlackApiError, attempt: int, channel: str, *, again: bool, patient: bool
    ) -> None:
        """Wait before another attempt, or raise what stands in the way."""
        response = error.response
        data = response.data if isinstance(response.data, dict) else {}
        code, status = str(data.get("error", "") or ""), int(getattr(response, "status_code", 0) or 0)
        if status == 429 or code == "ratelimited":
            wait = _asked_wait(response.headers)
            log.warning("Slack puts %s off for %.0f s", method, wait)
            if method == "chat.postMessage":
                self._pace(channel).hold(wait)
            if not patient:
                raise SlackPutOff(f"{method}: {wait:.0f} s") from error
            await asyncio.sleep(wait)
        elif status >= 500 or code in ("internal_error", "fatal_error", "service_unavailable", "request_timeout"):
            if not again:
                raise SlackUnreachable(f"{method}: {code or status}") from error
            await asyncio.sleep(_backoff(attempt))
        elif not code:
            raise SlackUnreachable(f"{method}: an answer that cannot be read (HTTP {status})") from error
        else:
            raise SlackRefused(method, code, str(data.get("needed", "") or "")) from error

    def _pace(self, channel: str) -> Pace:
        return self._paces.setdefault(channel, Pace(time.monotonic))


def _backoff(attempt: int) -> float:
    return min(0.5 * float(2 ** (attempt - 1)), 5.0)


def _asked_wait(headers: Mapping[str, Any]) -> float:
    """The seconds that Slack asks for. It may answer anything, so what cannot be read is a second."""
    try:
        wait = float(headers.get("Retry-After", 1))
    except (TypeError, ValueError):
        return 1.0
    return min(wait, LONGEST_WAIT) if wait >= 0 else 1.0


def _private(text: str) -> dict[str, Any]:
    return kit.private(mask(text))


def _masked(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: mask(value) if name == "text" else value for name, value in message.items()}
