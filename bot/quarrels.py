"""Rules that stand in each other's way, told to whoever runs the bot: at the start, when rules change, during runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from bot.ids import Thread, thread_of
from bot.settings import InForce, adjusted
from harness_core.conflicts import Fight, dead_ends, fights, moves_of
from harness_core.errors import StoreError
from harness_core.events import Event, HookRuled, ToolCallEnd
from harness_core.guarding import guarded
from harness_core.journal_ids import root_of
from harness_core.policy_file import PolicyFile
from harness_core.ports import SessionStore
from harness_core.steps import Policy

log = logging.getLogger(__name__)

ANY_CHANNEL: Final = "C0"  # of which no rule speaks in particular


def dead_ends_in(policy: Policy, guards: Sequence[Any], file: PolicyFile, now: InForce, moment: float) -> Sequence[str]:
    """What guards and hooks demand and nothing allows, in words: everywhere, and where a channel's own rules forbid it.

    policy: the tools and hooks that there are. Pure.
    """
    told: dict[str, None] = {}
    for channel in (ANY_CHANNEL, *_channels(file, now)):
        here = adjusted(guarded(policy, guards), Thread("T0", channel, "0.0").session_id, now, file, moment)
        for one in map(str, dead_ends(here)):
            if one not in told:
                told[one if channel == ANY_CHANNEL else f"in channel {channel}: {one}"] = None
    return tuple(told)


def _channels(file: PolicyFile, now: InForce) -> Iterator[str]:
    named = {one.channel for one in file.rules} | {channel for channel, _ in now.rules} | {*now.off}
    yield from sorted(named - {""})


class Quarrels:
    """Told of every fact that this process stores. Logs two rules that fight as soon as the facts of a run show it."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._looking: set[asyncio.Task[None]] = set()

    def take(self, journal: str, events: tuple[Event, ...]) -> None:
        """Look at a session again when a rule has refused something there. The facts remember what this does not."""
        refused = [event.seq or 0 for event in events if _refuses(event)]
        if refused and thread_of(root_of(journal)):  # or that of a sub-agent
            self._soon(self._look(journal, range(refused[0], refused[-1] + 1)))

    async def idle(self) -> None:
        """Wait until everything was looked at."""
        while self._looking:
            await asyncio.wait(tuple(self._looking))

    async def close(self) -> None:
        """Stop looking."""
        for task in self._looking:
            task.cancel()
        await asyncio.gather(*self._looking, return_exceptions=True)

    async def _look(self, session_id: str, refused: range) -> None:
        """Tell the fights that these facts made; what came after them has a look of its own."""
        try:
            found = fights(moves_of(await self._store.open(session_id)))
        except StoreError:
            log.exception("a session could not be looked at for rules that fight")
            return
        for fight in found:
            if fight.seq in refused:
                log.warning("two rules fight", extra={"fields": fields_of(session_id, fight)})

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)


def fields_of(session_id: str, fight: Fight) -> Mapping[str, object]:
    """What the log says of a fight: names and numbers, and of a rule no more than its effect and tool."""
    return {
        "session": session_id,
        "run": fight.run_id,
        "tool": fight.tool,
        "refuses": _short(fight.refuses),
        "demands": _short(fight.demands),
        "times": fight.times,
    }


def _short(by: str) -> str:
    if not by.startswith("rule “"):
        return by
    words = by.removeprefix("rule “").rstrip("”").split()
    return " ".join(["rule", *words[:2], *(["…"] if len(words) > 2 else [])])


def _refuses(event: Event) -> bool:
    return (isinstance(event, HookRuled) and event.verdict == "Deny") or (
        isinstance(event, ToolCallEnd) and event.outcome == "denied"
    )


def warn(found: Iterable[str], known: Iterable[str] = ()) -> frozenset[str]:
    """Log each dead end that was not known before. Returns those that there are now."""
    now = frozenset(found)
    for one in sorted(now - {*known}):
        log.warning("%s", one)
    return now
