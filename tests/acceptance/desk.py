"""A desk to test the whole bot at: the real Bolt app over a real websocket, in a local workspace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bot.app import LocalBot, Parts
from bot.config import Settings
from bot.local import Answer, LocalWorkspace, people
from harness_core.ports import ChatModel, Tool

CHANNEL = people.GENERAL


class Desk:
    """One bot and its workspace. `restart` stops the bot and starts it again on the same files."""

    def __init__(self, folder: Path, model: ChatModel, tools: Sequence[str | Tool], **parts: Any) -> None:
        self.folder, self._parts = folder, Parts(model=model, tools=[*tools, "hitl"], **parts)
        self.local = LocalBot(Settings(data=folder, local_port=0), self._parts)

    @property
    def slack(self) -> LocalWorkspace:
        return self.local.workspace

    @property
    def bot(self) -> Any:
        return self.local.bot

    async def __aenter__(self) -> Desk:
        await self.local.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.local.__aexit__()

    async def restart(self) -> None:
        await self.local.__aexit__()
        self.local = LocalBot(Settings(data=self.folder, local_port=0), self._parts)
        await self.local.__aenter__()

    # -- people --------------------------------------------------------------------------------------------------------

    async def ask(self, text: str, user: str = people.ADA, channel: str = CHANNEL, thread: str | None = None) -> str:
        """Say it to the bot; the ts of the message."""
        message = await self.slack.say(user, channel, f"@harness {text}", thread)
        return str(message["ts"])

    def thread(self, ts: str, channel: str = CHANNEL) -> list[dict[str, Any]]:
        """The bot's messages in a thread."""
        return [m for m in self.slack.messages(channel, ts) if m.get("bot_id") and m["ts"] != ts]

    def cards(self, ts: str, channel: str = CHANNEL) -> list[dict[str, Any]]:
        return [m for m in self.thread(ts, channel) if m.get("blocks") and any("task:" in str(b) for b in m["blocks"])]

    def texts(self, ts: str, channel: str = CHANNEL) -> list[str]:
        return [m["text"] for m in self.thread(ts, channel) if m not in self.cards(ts, channel)]

    async def card(self, ts: str, number: int = 1, channel: str = CHANNEL) -> dict[str, Any]:
        """The n-th card of a thread, as soon as it stands there."""
        return (await self.slack.wait_for(lambda _: self.cards(ts, channel)[number - 1 :]))[0]

    async def click(self, card: dict[str, Any], action: str, user: str = people.ADA, **more: Any) -> Answer:
        return await self.slack.click(user, more.pop("channel", CHANNEL), card["ts"], action, **more)

    async def answer(self, ts: str, containing: str, channel: str = CHANNEL) -> str:
        """A text of the bot's in the thread that contains this, as soon as it stands there."""
        return (await self.slack.wait_for(lambda _: [t for t in self.texts(ts, channel) if containing in t]))[0]

    async def told(self, user: str, containing: str) -> str:
        """A private notice."""
        found = await self.slack.wait_for(
            lambda _: [m["text"] for m in self.slack.ephemerals(user) if containing in m["text"]]
        )
        return str(found[0])

    async def settled(self) -> None:
        """Wait until nothing moves any more."""
        await self.bot.engine.idle()
        await self.bot.presenter.idle()


def buttons(card: dict[str, Any]) -> list[str]:
    """The action ids of a card's buttons."""
    return [e["action_id"] for b in card["blocks"] if b["type"] == "actions" for e in b["elements"]]


def reading(card: dict[str, Any]) -> str:
    """All that stands on a card."""
    return str(card["blocks"])
