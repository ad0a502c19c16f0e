"""Which recorded session somebody means: its id, a permalink of Slack's, or `channel:ts`.  Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qs, urlsplit

from bot.ids import is_ts, thread_of
from harness_core.errors import HarnessError

NEAR: Final = 5  # sessions that are offered in place of one that there is not
_PERMALINK: Final = re.compile(r"/archives/([A-Za-z0-9]+)/p(\d{7,16})(?!\d)", re.ASCII)
_FRACTION: Final = 6  # digits behind the point of a ts, which a permalink leaves out


class NoSuchSession(HarnessError):
    """Nothing recorded fits what was asked for."""


def find_session(named: str, known: Sequence[str]) -> str:
    """The id of the session that is meant. known: all ids, the newest first. Raises NoSuchSession, with near ones."""
    if named in known:
        return named
    if place := _place(named):
        for session_id in known:
            thread = thread_of(session_id)
            if thread and (thread.channel, thread.ts) == place:
                return session_id
    # A thread's own session before those of its sub-agents, whose ids begin with it.
    fits = [session_id for session_id in known if named and named in session_id]
    near = ([one for one in fits if "/" not in one or "/" in named] or fits)[:NEAR]
    near = near or difflib.get_close_matches(named, known, NEAR, 0.6)
    if len(near) == 1 and named in near[0]:
        return near[0]
    told = "\n".join(f"  {session_id}" for session_id in near)
    raise NoSuchSession(
        f"There is no session {named[:200]!r}." + (f" Near it:\n{told}" if near else " `harness-bot trace` lists them.")
    )


def _place(named: str) -> tuple[str, str] | None:
    """(channel, ts of the thread) that a permalink or `channel:ts` names."""
    try:
        link = urlsplit(named)
    except ValueError:
        return None
    if found := _PERMALINK.search(link.path):
        digits = found[2]
        thread = parse_qs(link.query).get("thread_ts", [f"{digits[:-_FRACTION]}.{digits[-_FRACTION:]}"])
        return found[1], thread[0]
    channel, _, ts = named.rpartition(":")
    return (channel.rpartition(":")[2], ts) if channel and is_ts(ts) else None
