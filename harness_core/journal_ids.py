"""What the id of a journal says: whether it is a session, and in which one a sub-agent works.  Pure."""

from __future__ import annotations

from typing import Final

# Journals that are no sessions: settings, and what was shown. They never count as unfinished.
NO_SESSIONS: Final = ("config:", "show:")


def is_session(journal: str) -> bool:
    """Whether the journal is a session, as against settings or what was shown."""
    return not journal.startswith(NO_SESSIONS)


def journal_of(session_id: str, call_uuid: str) -> str:
    """The id of the journal of the sub-agent that works on this call."""
    return f"{session_id}/{call_uuid}"


def outer_of(journal: str) -> tuple[str, str]:
    """The journal in which a sub-agent works, and the call that it works on; ("", id) for a session's own."""
    outer, _, call_uuid = journal.rpartition("/")
    return outer, call_uuid


def root_of(journal: str) -> str:
    """The session that this journal belongs to: itself, or the one that a sub-agent works in."""
    return journal.partition("/")[0]


def depth_of(journal: str) -> int:
    """How many sub-agents deep this journal lies; 0 for a session's own."""
    return journal.count("/")
