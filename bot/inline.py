"""Pieces of mrkdwn that may hold anything and still are what we meant: a person, code, a moment.  Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from bot.ids import PERSON
from bot.limits import escape

_LAST_DATE: Final = 4_000_000_000.0  # seconds since the epoch; beyond it Slack shows no date
DATE: Final = "{date_short_pretty} {time}"


def mention(user: str) -> str:
    """A person by name, which notifies them; what is no id of Slack's stands there as text."""
    return f"<@{user}>" if re.fullmatch(PERSON, user) else escape(user[:60])


def code(seen: str) -> str:
    """A text as code. It must be shown safely already, and be on one line."""
    # Slack has no way to write a grave accent inside code: it would end it. This one only looks like it.
    return f"`{escape(seen.replace('`', 'ˋ'))}`"


def moment(at: float, shape: str = DATE) -> str:
    """A moment (seconds since the epoch) in the reader's own time, and in UTC where Slack cannot show it; "" for none.

    shape: which parts of it, in the words of Slack's date formatting.
    """
    if not 0 < at < _LAST_DATE:
        return ""
    return f"<!date^{int(at)}^{shape}|{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M UTC}>"
