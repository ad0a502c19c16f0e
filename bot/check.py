"""Whether the bot could work with these settings: each line says ok, or what to do.  Changes nothing."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aiohttp

from bot.config import Settings, SlackSettings
from bot.folders import keep_apart, private
from bot.policy import PolicyKeeper, default_path
from bot.slack_api import SlackApi, SlackRefused, SlackUnreachable
from bot.wire import OURS, connections
from harness_core.errors import ConfigError, HarnessError, ModelError
from harness_core.permissions import grammar
from harness_core.ports import ChatModel, ModelReply, ModelRequest
from harness_core.tools.sandbox import Boundary, Sandbox
from harness_core.types import Deadline, Message

# What the manifest asks for; assistant:write comes with agent_view, and costs nothing where it is missing.
SCOPES: Final = frozenset(
    {
        "app_mentions:read",
        "channels:history",
        "channels:read",
        "chat:write",
        "commands",
        "groups:history",
        "groups:read",
        "im:history",
        "reactions:write",
        "users:read",
    }
)
TRIES: Final = 2  # of one call to Slack: somebody waits for the answer
HELLO: Final = 10.0  # seconds that the socket has for its first word
MODEL: Final = 30.0  # seconds that the model has for one word


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at. what: in words; advice: what to do, "" if it is fine."""

    what: str
    advice: str = ""

    def __str__(self) -> str:
        advice = "".join(f"\n      {line}" for line in self.advice.splitlines())
        return f"FIX   {self.what}{advice}" if advice else f"ok    {self.what}"


async def check(settings: Settings, model: ChatModel) -> AsyncIterator[Line]:
    """Look at everything in turn. Failing lines do not end it, unless the rest cannot be looked at."""
    yield folder(settings.data)
    try:
        keep_apart(settings, settings.policy or default_path())
    except ConfigError as error:
        yield Line("HARNESS_WORKSPACE", str(error))
    yield sandbox(await Sandbox(settings.sandbox).boundary())
    yield reader()
    if settings.slack is None:
        yield Line("no Slack tokens: the bot runs in a local workspace")
    else:
        async for line in _slack(settings, settings.slack):
            yield line
    yield await answers(model)


def folder(data: Path) -> Line:
    """Whether the data folder can be written; it is made if it is not there."""
    probe = data / f".check-{uuid4().hex}"
    try:
        private(data)
        try:
            probe.write_text("ok")
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        cure = "make room" if error.errno == errno.ENOSPC else "mend its rights"
        why = "there is a file of that name" if isinstance(error, FileExistsError) else error.strerror
        return Line(f"data folder {data}", f"{why}. Choose another with HARNESS_DATA, or {cure}.")
    return Line(f"data folder {data.resolve()} is writable")


def policy(path: Path | None, tools: Iterable[str] = ()) -> Line:
    """Whether the policy file can be used. tools: those that there are, or () where nobody knows."""
    try:
        keeper = PolicyKeeper(path, tools)
    except ConfigError as error:
        return Line("the policy file cannot be used", str(error))
    if keeper.path is None:
        return Line("no policy file: what only reads runs, everything else asks")
    return Line(f"policy file {keeper.path}: {len(keeper.file.rules)} rules")


def sandbox(boundary: Boundary) -> Line:
    """What stands between commands and this machine."""
    if boundary.refuses:
        return Line(str(boundary), "Install bubblewrap (the program bwrap), or do not set HARNESS_SANDBOX=required.")
    return Line(str(boundary))


def reader() -> Line:
    """Whether commands can be read, so that those that only read run unasked."""
    if grammar.missing():
        return Line(f"every bash command asks: {grammar.MISSING}", "Install tree-sitter and tree-sitter-bash anew.")
    return Line("bash commands can be read: those that only read run unasked")


async def _slack(settings: Settings, slack: SlackSettings) -> AsyncIterator[Line]:
    api = SlackApi(slack.bot_token, slack.api_url, tries=TRIES)
    try:
        reply = await api.auth_test()
        yield Line(f"bot token: {reply.get('user')} in {reply.get('team')}")
        yield _scopes(await api.scopes())
    except SlackRefused as error:
        yield Line("bot token", f"Slack says {error.code}. Copy the Bot User OAuth Token (OAuth & Permissions) anew.")
    except SlackUnreachable as error:
        yield Line("Slack", f"{error}. Is {slack.api_url} right, and the network up?")
        return
    finally:
        await api.close()
    yield await _socket(slack)
    people = settings.admins
    yield (
        Line(f"administrators: {', '.join(sorted(people))}")
        if people
        else Line("no HARNESS_ADMINS: the first administrator claims the bot with the code that it prints at the start")
    )


def _scopes(granted: Collection[str]) -> Line:
    missing = sorted(SCOPES - set(granted))
    if missing:
        return Line(
            f"the app lacks {', '.join(missing)}",
            "Paste manifest.yml (App Manifest) and reinstall the app (Install App).",
        )
    more = sorted(set(granted) - SCOPES - {"assistant:write"})
    return Line("scopes" + (f"; not needed: {', '.join(more)}" if more else ""))


async def _socket(slack: SlackSettings) -> Line:
    """Open a socket, as the bot does, and read its first word."""
    api = SlackApi(slack.app_token, slack.api_url, tries=TRIES)
    try:
        url = await api.socket_address()
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
            hello = await socket.receive_json(timeout=HELLO)
    except SlackRefused as error:
        advice = "Make an app-level token with connections:write (Basic Information), and switch Socket Mode on."
        return Line("app token", f"Slack says {error.code}. {advice}")
    except (SlackUnreachable, aiohttp.ClientError, TimeoutError, TypeError, ValueError) as error:
        return Line("socket", f"it did not open ({type(error).__name__}). Is Socket Mode switched on in the app?")
    finally:
        await api.close()
    return _greeted(hello)


def _greeted(hello: Mapping[str, Any]) -> Line:
    others = connections(hello) - OURS
    if hello.get("type") != "hello":
        return Line("socket", "its first word was not hello. Is this a Slack-compatible server?")
    if others > 0:
        return Line(
            f"app token and socket, with {others} more connection{'s' if others > 1 else ''} open",
            "Another process listens with this app token and takes some of the messages. Stop it, or use a second app.",
        )
    return Line("app token and socket")


async def answers(model: ChatModel) -> Line:
    """Whether the model says a word when it is asked for one."""
    if model.name == "practice":
        return Line("no HARNESS_MODEL: the practice model answers, which needs no network")
    deadline = Deadline(asyncio.get_running_loop().time() + MODEL)
    try:
        async with asyncio.timeout(MODEL):
            async for piece in model.stream(ModelRequest("", (Message("user", "Say ok."),)), deadline):
                if isinstance(piece, ModelReply):
                    return Line(f"model {model.name} answers")
    except (ModelError, TimeoutError) as error:
        return Line(f"model {model.name}", str(error) or f"no answer within {MODEL:.0f} s")
    except HarnessError as error:
        return Line(f"model {model.name}", str(error))
    return Line(f"model {model.name}", "it ended without an answer")
