"""Every number of Slack's that the bot heeds, with its source, and our own tighter ones.  Pure.

Sources: [D] docs.slack.dev, [S] the checks of slack_sdk's own block models, [M] measured by others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

# -- Slack: messages ---------------------------------------------------------------------------------------------------

TEXT: Final = 4_000  # [D] chat.update fails beyond it (msg_too_long); chat.postMessage splits beyond 4,040 [M]
MESSAGE: Final = 9_000  # all blocks of a message as JSON: 11,341 characters were refused (slackapi/bolt-js#2867)

# -- Slack: blocks -----------------------------------------------------------------------------------------------------

SECTION_TEXT: Final = 3_000  # [D][S] text of a section, and of any text object
BUTTON_TEXT: Final = 75  # [D][S] text of a button; the client itself cuts near 30
OPTION_TEXT: Final = 75  # [D][S] text of a radio button's option
SELECT_OPTIONS: Final = 100  # [S] options of a select
ERROR: Final = 300  # ours: characters of an error at a field of a form

# -- Slack: views ------------------------------------------------------------------------------------------------------

VIEW_TITLE: Final = 24  # [D][S] title, submit and close
VIEW_BLOCKS: Final = 100  # [D][S]
VIEW_BYTES: Final = 250_000  # [D] view_too_large
PRIVATE_METADATA: Final = 3_000  # [D][S]
INPUT_TEXT: Final = 3_000  # [D] max_length of a plain_text_input

# -- Slack: time -------------------------------------------------------------------------------------------------------

ACK: Final = 3.0  # [D] seconds to acknowledge an event or an interaction, and the life of a trigger_id

# -- ours --------------------------------------------------------------------------------------------------------------

ARGUMENTS: Final = 2_500  # characters of arguments on a card
ARGUMENT_LINES: Final = 25  # lines of arguments on a card: more hides the buttons on a phone
ARGUMENTS_WEIGHT: Final = 4_400  # share of MESSAGE, as `weight` counts: title, reasons and buttons need the rest
REASON: Final = 400  # characters of "Asks because"
REASON_WEIGHT: Final = 800
AGENT_SAYS: Final = 300  # characters of "Agent says": it is persuasion
AGENT_SAYS_WEIGHT: Final = 800
COMMENT: Final = 300  # characters of a person's comment on a decided card
COMMENT_WEIGHT: Final = 800
TOOL_NAME: Final = 60  # characters of a tool's or an agent's name
LINE: Final = 300  # characters of the notification line
MENTIONS: Final = 5  # approvers that a card mentions at most
MENTION_AFTER: Final = 5 * 60.0  # seconds after which an answer mentions the requester: updates notify nobody
COMMENT_INPUT: Final = 1_000  # characters that a person may type as a comment
PIECE_WEIGHT: Final = 2_900  # one preformatted piece of a modal
LINK: Final = 2_000  # characters of a link as it is sent, with its label and its host; longer ones stay text

_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def escape(text: str) -> str:
    """Text that Slack shows as it is: no mention, link or broadcast can come of it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def weight(value: Any) -> int:
    """How long a value can become as JSON at Slack, in characters: ASCII escapes, and entities for `&<>`.

    Slack does not say how it counts, only that what it stores is escaped again; so this counts the worst.
    """
    return len(escape(json.dumps(value, separators=(",", ":"))))


def weights(text: str) -> Iterator[int]:
    """The weight of each character of a text, in order."""
    return (_weigh(char) for char in text)


def _weigh(char: str) -> int:
    if char in _ENTITIES:
        return len(_ENTITIES[char])
    if char.isascii() and char.isprintable() and char not in '"\\':
        return 1
    return len(json.dumps(char)) - 2


def units(text: str) -> int:
    """How long a text is to Slack: like JavaScript it counts a character beyond the basic plane twice."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def within(text: str, most: int, heaviest: int | None = None) -> int:
    """How many characters from the start of a text fit into `most` characters (UTF-16 units) and this weight."""
    left, load = most, heaviest if heaviest is not None else 12 * most
    for place, (char, heavy) in enumerate(zip(text, weights(text), strict=True)):
        left -= 2 if ord(char) > 0xFFFF else 1  # see units
        load -= heavy
        if left < 0 or load < 0:
            return place
    return len(text)


def clip(text: str, most: int, heaviest: int | None = None) -> str:
    """The text, or its beginning and "…", within `most` characters and, if given, within this weight.

    For plain text only: it knows nothing of entities, so clip first and escape afterwards.
    """
    if within(text, most, heaviest) == len(text):
        return text
    return text[: within(text, most - 1, None if heaviest is None else heaviest - 6)] + "…"


def clip_escaped(text: str, most: int) -> str:
    """The text, escaped, within `most` characters, never cut inside an entity."""
    escaped = escape(text)
    if units(escaped) <= most:
        return escaped
    left, kept = most - 1, []
    for char in islice(text, most):
        left -= len(_ENTITIES.get(char, char.encode("utf-16-le", "surrogatepass"))) // (1 if char in _ENTITIES else 2)
        if left < 0:
            break
        kept.append(char)
    return escape("".join(kept)) + "…"


def lines_within(text: str, most: int) -> Sequence[str]:
    """Whole lines of a text, joined to pieces of at most `most` characters. A line that is longer is a piece by itself,
    and too long.
    """
    found: list[str] = []
    for line in text.split("\n"):
        if found and units(joined := f"{found[-1]}\n{line}") <= most:
            found[-1] = joined
        else:
            found.append(line)
    return found


def pieces(text: str, heaviest: int) -> Sequence[str]:
    """The text in pieces of at most this weight, parted at a line's end where one is near. Nothing is left out."""
    found, rest = [], text
    while rest:
        end = within(rest, len(rest) * 2, heaviest)
        if end < len(rest):
            line = rest.rfind("\n", end // 2, end)
            end = line + 1 if line >= 0 else max(end, 1)
        found.append(rest[:end])
        rest = rest[end:]
    return found
