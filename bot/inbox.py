"""What people said, carried out: prompts, edits, words of the thread, commands.  What they decided: see decisions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final
from weakref import WeakValueDictionary

from bot import approvers, words
from bot.approvers import Who
from bot.commands import Commands
from bot.decisions import Decisions
from bot.heard import (
    Amend,
    Configure,
    Decide,
    Ignore,
    Inbound,
    Origin,
    Prompt,
    Removed,
    Status,
    Stop,
    Why,
)
from bot.people import Directory
from bot.presenter import Presenter
from bot.rule_commands import RuleCommands
from bot.settings import SettingsBook
from bot.slack_api import SlackApi, SlackUnreachable
from bot.story import Story, status, told
from bot.why import requester, since, why
from bot.widening import Widening
from harness_core.engine import HarnessEngine
from harness_core.errors import (
    StoreError,
)
from harness_core.events import Prompted, RunStart
from harness_core.replay import replay
from harness_core.session import Trace

log = logging.getLogger(__name__)

EARLY: Final = 200  # edits kept in memory of messages that nobody has seen yet
REMEMBERED: Final = 2_000  # sessions whose requesters are kept in memory, and messages that were heard


class Inbox:
    """Carries out what people did. What must be told to one person is returned, or whispered where nobody waits."""

    def __init__(
        self,
        engine: HarnessEngine,
        presenter: Presenter,
        directory: Directory,
        settings: SettingsBook,
        api: SlackApi,
    ) -> None:
        self._engine, self._presenter, self._directory = engine, presenter, directory
        self._settings, self._api = settings, api
        rules = RuleCommands(engine, settings)
        self._commands = Commands(engine, settings, rules)
        self.decisions = Decisions(engine, presenter, Widening(engine, rules), api, self._who)
        self._requesters: dict[str, tuple[int, frozenset[str]]] = {}
        self._told: set[tuple[str, str, str]] = set()
        self._heard: dict[tuple[str, str], None] = {}
        self._early: dict[str, Amend] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._later: set[asyncio.Task[None]] = set()

    async def take(self, heard: Inbound) -> None:
        """Carry out what was said in a message; answers are private. Raises what must prevent an acknowledgement."""
        if isinstance(heard, Stop | Status | Why | Decide | Ignore) and not self._first(heard.origin):
            return
        # One after the other in a thread: an edit that comes with its message must find it stored.
        turn = self._turns.setdefault(getattr(heard, "session_id", ""), asyncio.Lock())
        try:
            async with turn:
                await self._take(heard)
        except BaseException:
            if origin := getattr(heard, "origin", None):
                self._heard.pop(_place(origin), None)  # it is delivered again
            raise

    async def _take(self, heard: Inbound) -> None:
        match heard:
            case Prompt():
                await self._prompt(heard)
            case Amend():
                await self._amend(heard)
            case Removed():
                await self._presenter.board.gone(heard.session_id, heard.ts)
            case Stop():
                await self._stop(heard)
            case Why():
                self.whisper(heard.origin, await self._why(heard))
            case Status():
                self.whisper(heard.origin, await self._status(heard))
            case Decide():
                self.whisper(heard.origin, await self._worded(heard))
            case Ignore(tell=tell, origin=Origin() as origin) if tell:
                self.whisper(origin, tell)
            case _:
                pass  # forms and commands do not come as messages

    def _first(self, origin: Origin | None) -> bool:
        """Whether this message was not met before: a mention comes twice, as itself and as a message. What is stored
        needs no such guard; it keeps words from being carried out, and refusals from being told, twice.
        """
        if origin is None:
            return True
        first = _place(origin) not in self._heard or not origin.message_ts
        self._heard[_place(origin)] = None
        if len(self._heard) > REMEMBERED:
            del self._heard[next(iter(self._heard))]
        return first

    def _refuse(self, origin: Origin, why: str) -> None:
        if self._first(origin):
            self.whisper(origin, why)

    def whisper(self, origin: Origin, text: str) -> None:
        """Tell somebody in private, without keeping anybody waiting."""
        if text and origin.channel:
            self._soon(self._api.whisper(origin.channel, origin.user, text, origin.thread_ts))

    async def close(self) -> None:
        """Drop the notices that are on their way."""
        for task in self._later:
            task.cancel()
        await asyncio.gather(*self._later, return_exceptions=True)

    # -- messages ------------------------------------------------------------------------------------------------------

    async def _prompt(self, said: Prompt) -> None:
        if _place(said.origin) in self._heard:
            return  # refused before: what is delivered again does not slip in when the channel is switched on
        known = await self._engine.store.last_seq(said.session_id) > 0
        if not said.addressed and not (known and said.origin.user in await self._asked_before(said.session_id)):
            return
        who = await self._who(said.origin)
        if refusal := approvers.may_speak(who):
            self._refuse(said.origin, refusal.why)
            return
        if by := (await self._settings.in_force()).paused_by:
            self._refuse(said.origin, words.paused(by))
            return
        early = self._early.get(said.key)
        if early and early.origin.user == said.origin.user:
            if early.text is None:
                return
            said = replace(said, text=early.text)
        before = await self._engine.trace(said.session_id) if known else Trace()
        names = tuple(file.name for file in said.files)
        origin = said.origin
        stored = await self._engine.prompt(
            said.session_id, said.text, by=origin.user, key=said.key, sent_at=said.sent_at, files=names
        )
        if stored and before.run:
            self._queued(said, before)

    def _queued(self, said: Prompt, before: Trace) -> None:
        """One private notice per person and wait: their message is read later."""
        waits_for = before.pending[0].fingerprint if before.pending else ""
        once = (said.session_id, said.origin.user, waits_for)
        if once not in self._told:
            if len(self._told) >= REMEMBERED:
                self._told.clear()
            self._told.add(once)
            self.whisper(said.origin, words.QUEUED if waits_for else words.QUEUED_RUNNING)

    async def _amend(self, changed: Amend) -> None:
        facts = await self._engine.store.read(changed.session_id)
        by = next((f.by for f in facts if isinstance(f, Prompted) and f.ref == changed.key), None)
        if by is not None and changed.origin.user == by:
            if changed.text is not None and await self._silenced(changed.origin):
                return  # what was said may be taken back by anybody, but only who may speak may say something else
            await self._engine.amend(changed.session_id, changed.key, changed.text)
        elif by is None:
            self._arrived_early(changed)

    async def _silenced(self, origin: Origin) -> bool:
        who = await self._who(origin)
        paused = (await self._settings.in_force()).paused_by
        return bool(paused) or approvers.may_speak(who) is not None

    def _arrived_early(self, changed: Amend) -> None:
        """Where a message is delivered again after its edit, it comes as it first was: remember what became of it."""
        self._early[changed.key] = changed
        if len(self._early) > EARLY:
            del self._early[next(iter(self._early))]

    async def _stop(self, asked: Stop) -> None:
        who = await self._who(asked.origin)
        if refusal := approvers.may_speak(who):
            self.whisper(asked.origin, refusal.why)
        elif await self._outdated(asked):
            log.info("a stop that was delivered late stops nothing that began after it")
        elif not await self._engine.stop(asked.session_id, by=asked.origin.user):
            self.whisper(asked.origin, "Nothing is running in this thread.")
            await self._presenter.idles(asked.session_id)

    async def _outdated(self, asked: Stop) -> bool:
        """Whether the run that goes on was asked for after this stop: Slack may deliver a message minutes late."""
        if not asked.origin.message_ts:
            return False
        began = (await self._story(asked.session_id)).prompt_ts
        return bool(began) and float(began) > float(asked.origin.message_ts)

    async def _story(self, session_id: str) -> Story:
        posts = await self._presenter.board.posts(session_id)
        return told(session_id, await self._engine.store.read(session_id, posts.upto))

    async def _status(self, asked: Status) -> str:
        who = await self._who(asked.origin)
        if refusal := approvers.may_speak(who):
            return refusal.why
        if await self._engine.store.last_seq(asked.session_id) == 0:
            return words.HELP
        self._presenter.wake(asked.session_id)  # what Slack refused is posted now, if it can be
        trace = await self._engine.trace(asked.session_id)
        return status(await self._story(asked.session_id), trace.waiting, len(trace.inbox))

    async def _why(self, asked: Why) -> str:
        """Why calls of this thread asked, were refused or ran. For who may speak here, or decide what asked."""
        who, facts = await self._who(asked.origin), await self._engine.store.open(asked.session_id)
        refusal = approvers.may_speak(who)
        if refusal and approvers.may_decide(who, requester(facts)):
            return refusal.why
        if not facts:
            return words.HELP
        policy = await self._engine.policy(asked.session_id)
        return why(facts, replay(facts, policy, since(facts)))

    async def _worded(self, asked: Decide) -> str:
        """A decision that was typed. Who may not speak here learns not even which ids there are."""
        who = await self._who(asked.origin)
        refusal = approvers.may_speak(who)
        return refusal.why if refusal else await self.decisions.decide(asked)

    async def _asked_before(self, session_id: str) -> frozenset[str]:
        """Whoever began a run in this thread; their replies need no mention."""
        seq, people = self._requesters.get(session_id, (0, frozenset()))
        facts = await self._engine.store.read(session_id, seq)
        began = {f.requested_by for f in facts if isinstance(f, RunStart)}
        first = {f.by for f in facts if isinstance(f, Prompted) and f.seq == 1}
        if len(self._requesters) >= REMEMBERED:
            self._requesters.clear()
        self._requesters[session_id] = (facts[-1].seq or seq if facts else seq, people | began | first)
        return self._requesters[session_id][1]

    # -- settings ------------------------------------------------------------------------------------------------------

    async def configure(self, command: Configure) -> str:
        """Carry out a slash command. Returns the private answer."""
        try:
            who = await self._who(command.origin)
            return await self._commands.carry_out(command, who)
        except (StoreError, SlackUnreachable):
            log.exception("a command failed")
            return words.FAILED

    async def _who(self, origin: Origin) -> Who:
        person, place = await asyncio.gather(
            self._directory.person(origin.user),
            self._directory.place(origin.channel, shared_outside=origin.shared_outside),
        )
        return Who(person, place, await self._settings.access())

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)


def _place(origin: Origin) -> tuple[str, str]:
    return origin.channel, origin.message_ts
