"""What Slack makes of a mrkdwn text: its links, mentions and broadcasts, and which of them nobody meant.

Source: docs.slack.dev/messaging/formatting-message-text. Whatever stands between `<` and `>` is markup, in code too;
`&amp;`, `&lt;` and `&gt;` are the only entities.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from html import unescape
from typing import Final
from urllib.parse import urlsplit

HOSTILE: Final = (
    "<https://evil.io/a>",
    "<https://evil.io/a|Approve>",
    "<HTTPS://evil.io>",
    "<@U0BEN>",
    "<@U0BEN|ada>",
    "<!channel>",
    "<!here|here>",
    "<!subteam^S1|ops>",
    "<#C0ROOM|room>",
    "<!date^1^{date}^https://evil.io|today>",
    "<mailto:a@evil.io|ada>",
    "<tel:123>",
    "&lt;!channel&gt;",
    "&#60;!channel&#62;",
    "https://evil.io",
    "www.evil.io",
    "a@evil.io",
    ":warning:",
    "@channel",
)
MARKS: Final = ("`", "``", "```", "*", "**", "_", "~", "~~", "<", ">", "&", "\\", "|", "\n", "\u2028", " ", "'", '"')

_MARKUP: Final = re.compile(r"<([^>]*)>")
_MENTION: Final = re.compile(r"@([UW][A-Z0-9]+)")
_DATE: Final = re.compile(r"!date\^\d+\^[{}a-z_ ]+\|[\w .:-]+")


def unmeant(text: str, people: Collection[str] = (), *, links: bool = False) -> list[str]:
    """The pieces of markup in a text that we did not mean. people: who may be mentioned. links: web addresses may be
    links if one can read where they lead; the quote marks that begin a line are meant then, too.
    """
    wrong = [found[0] for found in _MARKUP.finditer(text) if not _meant(found, text, people, links)]
    bare = _MARKUP.sub("", text)
    bare = re.sub(r"(?m)^(> ?)+", "", bare) if links else bare
    return wrong + re.findall(r"[<>]|&(?!amp;|lt;|gt;)", bare)


def _meant(found: re.Match[str], text: str, people: Collection[str], links: bool) -> bool:
    inside = found[1]
    if mention := _MENTION.fullmatch(inside):
        return mention[1] in people
    if _DATE.fullmatch(inside):
        return True
    address, _, label = inside.partition("|")
    host = urlsplit(unescape(address)).hostname or ""
    shown = f" ({host.encode('idna').decode()})"
    readable = not label or text.startswith(shown, found.end())
    return links and readable and re.match(r"(?i)https?://", address) is not None and not re.search(r"[<\s]", address)
