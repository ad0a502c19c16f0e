"""A desk to test the whole bot at: the real Bolt app over a real websocket, in a local workspace; or in one elsewhere,
if the environment says where (see the README, "Another Slack-compatible server").
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bot.app import Bot, Parts
from bot.config import Settings
from bot.local import Answer, LocalWorkspace, people
from bot.local_bot import LocalBot
from harness_core.events import Event
from harness_core.ports import ChatModel, Tool
from harness_core.testing import FakeClock
from tests.acceptance.remote import Elsewhere, RemoteBot
from tests.conftest import PATIENCE

CHANNEL = people.GENERAL
MOMENT = 0.1  # seconds in which something happens while the bot is busy; where it takes longer, more time passes for it
A_LITTLE = 0.25  # seconds of the bot's time: however often they pass, it has looked nobody up again meanwhile
T = TypeVar("T")
E = TypeVar("E", bound=Event)
Message = dict[str, Any]


def clock_of_today() -> FakeClock:
    """A clock for the bot that stands still at the workspace's time: Slack's timestamps are compared with it."""
    return FakeClock(time.time())


class Desk:
    """One bot and its workspace. `restart` ends both and starts them on the same files, `reborn` only the bot."""

    def __init__(
        self,
        folder: Path,
        model: ChatModel,
        tools: Sequence[str | Tool],
        *,
        admins: frozenset[str] = frozenset(),
        approvers: frozenset[str] = frozenset(),
        policy: Path | None = None,
        hooks: Path | None = None,
        agents: Path | None = None,
        grace: float = 0.0,
        **parts: Any,
    ) -> None:
        self._parts = Parts(model=model, tools=[*tools, "hitl"], **parts)
        self._settings = Settings(
            data=folder,
            local_port=0,
            admins=admins,
            approvers=approvers,
            policy=policy,
            hooks=str(hooks or ""),
            agents=agents,
            grace=grace,
        )
        self.local = self._workplace()

    def _workplace(self) -> LocalBot:
        where = Elsewhere.from_env()
        # To whoever uses a desk the two look alike, but for what the one elsewhere cannot do: that skips the test.
        return LocalBot(self._settings, self._parts) if where is None else RemoteBot(self._settings, self._parts, where)  # type: ignore[return-value]

    @property
    def slack(self) -> LocalWorkspace:
        return self.local.workspace

    @property
    def bot(self) -> Bot:
        return self.local.bot

    @property
    def clock(self) -> FakeClock:
        """The bot's clock, in tests that gave it one."""
        assert isinstance(self._parts.clock, FakeClock)
        return self._parts.clock

    async def __aenter__(self) -> Desk:
        await self.local.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.local.__aexit__()

    async def restart(self) -> None:
        await self.local.__aexit__()
        self.local = self._workplace()
        await self.local.__aenter__()

    async def reborn(self) -> None:
        await self.bot.stop()
        self.local.bot = self.local.made()
        await self.bot.start()

    # -- people --------------------------------------------------------------------------------------------------------

    async def ask(self, text: str, user: str = people.ADA, channel: str = CHANNEL, thread: str | None = None) -> str:
        """Say it to the bot; the ts of the message."""
        return await self.say(f"@harness {text}", user, channel, thread)

    async def say(self, text: str, user: str = people.ADA, channel: str = CHANNEL, thread: str | None = None) -> str:
        """Say it to nobody in particular; the ts of the message."""
        return str((await self.slack.say(user, channel, text, thread))["ts"])

    async def click(self, card: Message, action: str, user: str = people.ADA, **more: Any) -> Answer:
        return await self.slack.click(user, more.pop("channel", CHANNEL), card["ts"], action, **more)

    async def fill(self, card: Message, action: str, user: str = people.ADA, **values: str) -> Answer:
        """Press a button that opens a form, fill the form in, and submit it."""
        assert (await self.click(card, action, user)).ok
        await self.form(user)
        return await self.slack.submit(user, values)

    async def form(self, user: str = people.ADA) -> Message:
        """The form that a person has before them, as soon as it is open."""
        views = await self.slack.wait_for(lambda s: s.views(user))
        return views[-1]

    async def late_form(self) -> None:
        """Open the form that rejects a call which is approved before it is submitted."""
        ts = await self.ask("change it")
        card = await self.card(ts)
        await self.click(card, "reject")
        await self.form()
        await self.click(card, "approve")
        await self.answer(ts, "done")

    # -- what stands where ---------------------------------------------------------------------------------------------

    def thread(self, ts: str, channel: str = CHANNEL) -> list[Message]:
        """The bot's messages in a thread."""
        return [m for m in self.slack.messages(channel, ts) if m.get("bot_id") == people.BOT_ID]

    def cards(self, ts: str, channel: str = CHANNEL) -> list[Message]:
        return [m for m in self.thread(ts, channel) if any("task:" in str(b) for b in m.get("blocks", ()))]

    def texts(self, ts: str, channel: str = CHANNEL) -> list[str]:
        cards = self.cards(ts, channel)
        return [m["text"] for m in self.thread(ts, channel) if m not in cards]

    async def card(self, ts: str, number: int = 1, channel: str = CHANNEL, *, showing: str = "") -> Message:
        """The n-th card of a thread, as soon as it stands there and shows this."""

        def found(_: LocalWorkspace) -> list[Message]:
            return [c for c in self.cards(ts, channel)[number - 1 : number] if showing in reading(c)]

        return (await self.slack.wait_for(found))[0]

    async def answer(self, ts: str, containing: str, channel: str = CHANNEL) -> str:
        """A text of the bot's in the thread that contains this, as soon as it stands there."""
        return (await self.slack.wait_for(lambda _: [t for t in self.texts(ts, channel) if containing in t]))[0]

    def notices(self, user: str) -> list[str]:
        """What a person was told in private."""
        return [m["text"] for m in self.slack.ephemerals(user)]

    async def told(self, user: str, containing: str) -> str:
        """A private notice, as soon as it is there."""
        return (await self.slack.wait_for(lambda _: [text for text in self.notices(user) if containing in text]))[0]

    def reactions(self, ts: str, channel: str = CHANNEL) -> list[str]:
        """The bot's reactions on a message."""
        message = next(m for m in self.slack.messages(channel) if m["ts"] == ts)
        return [r["name"] for r in message.get("reactions", ()) if people.BOT_USER in r["users"]]

    async def facts(self, ts: str, kind: type[E], channel: str = CHANNEL) -> list[E]:
        """The facts of the session that hangs from a message."""
        found = await self.bot.store.read(self.session(ts, channel))
        return [fact for fact in found if isinstance(fact, kind)]

    def session(self, ts: str, channel: str = CHANNEL) -> str:
        return f"slack:{people.TEAM_ID}:{channel}:{ts}"

    def calls(self, method: str) -> int:
        """How often the bot called a method of the Web API."""
        return sum(1 for call in self.slack.calls if call.method == method)

    async def settled(self) -> None:
        """Wait until the bot does nothing of its own accord any more."""
        await self.bot.engine.idle()
        await self.bot.presenter.idle()

    async def settle_cards(self) -> None:
        """Wait until nothing is being rendered, though tools may run."""
        await self.bot.presenter.idle()

    async def passing(self, look: Callable[[LocalWorkspace], T], seconds: float = 3.0) -> T:
        """Let the bot's time pass in steps of so many seconds, one whenever nothing happens for a moment, until `look`
        gives something true; return that.
        """
        happened: list[str] = []
        forget = self.bot.store.changed(lambda journal, _: happened.append(journal))
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    before = len(self.slack.log), len(happened)
                    try:
                        return await self.slack.wait_for(look, timeout=MOMENT)
                    except TimeoutError:
                        if before == (len(self.slack.log), len(happened)):
                            self.clock.advance(seconds)
        finally:
            forget()


def buttons(card: Message) -> list[str]:
    """The action ids of a card's buttons."""
    return [e["action_id"] for b in card["blocks"] if b["type"] == "actions" for e in b["elements"]]


def reading(message: Message) -> str:
    """All that stands on a card or in a form."""
    return str(message["blocks"])


def shown(message: Message) -> str:
    """What the preformatted parts of a card or a form show, as one text."""
    return "".join(
        inner["text"]
        for block in message["blocks"]
        if block["type"] == "rich_text"
        for part in block["elements"]
        for inner in part["elements"]
    )


def value_of(card: Message, action: str) -> str:
    """The value of a button."""
    elements = [e for b in card["blocks"] if b["type"] == "actions" for e in b["elements"]]
    return next(str(e["value"]) for e in elements if e["action_id"] == action)
