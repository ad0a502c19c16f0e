"""`harness-bot trace`, `replay` and `backtest`: what happened in recorded sessions, and what would have.

The database is only read, so that all of it works while the bot runs.
"""

from __future__ import annotations

import argparse
from typing import Final

from bot.app import DATABASE
from bot.config import Settings
from bot.facts import CODEC
from bot.sessions import find_session
from bot.timeline import moment, timeline
from harness_core.events import Event
from harness_core.store.reading import JournalReader

NEWEST: Final = 20  # sessions that are listed


def reader(settings: Settings) -> JournalReader:
    """The recorded journals. Raises StoreError if there are none."""
    return JournalReader(settings.data / DATABASE, CODEC)


# -- trace -------------------------------------------------------------------------------------------------------------


def trace_arguments(parser: argparse.ArgumentParser) -> None:
    """What `trace` takes."""
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="id, permalink or channel:ts")


def trace(settings: Settings, given: argparse.Namespace) -> int:
    """Print what happened in a session, or which there are. Returns the exit code."""
    with reader(settings) as journals:
        known = journals.sessions()
        if not given.session:
            for one in known[:NEWEST]:
                print(f"{moment(one.newest)}  {one.facts:>6} facts  {one.session_id}")
            if len(known) > NEWEST:
                print(f"and {len(known) - NEWEST} older ones")
            return 0
        session_id = find_session(given.session, [one.session_id for one in known])
        facts = journals.read(session_id)
    print(heading(session_id, facts))
    for line in timeline(facts):
        print(line)
    return 0


def heading(session_id: str, facts: tuple[Event, ...]) -> str:
    """The first line about a session, and the head of the table."""
    until = f"{moment(facts[0].at)} to {moment(facts[-1].at)} UTC" if facts else "nothing"
    return f"{session_id}: {len(facts)} facts, {until}\n  seq  time      step"
