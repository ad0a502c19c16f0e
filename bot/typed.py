"""What a person typed, byte for byte, out of what Slack made of it.  Pure.

Slack escapes and links what people type: `a && ping x.io` arrives as `a &amp;&amp; ping <http://x.io|x.io>`. The bytes
that were typed are the bytes that may run, so they are put back: from the rich text if there is any, else from `text`.
Half a character (a lone surrogate) is none that anybody typed, and no store takes it: it becomes `?`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from bot.fields import maps_of, valid_text
from bot.limits import escape

_TOKEN: Final = re.compile(r"<([@#!][^<>\n]+|[A-Za-z][A-Za-z0-9+.-]*:[^<>\n]+)>")
_ENTITY: Final = re.compile(r"&(amp|lt|gt);")
_ENTITIES: Final = {"amp": "&", "lt": "<", "gt": ">"}
# The characters that make a style in Slack's composer, outermost first.
_MARKERS: Final = (("bold", "*"), ("italic", "_"), ("strike", "~"), ("code", "`"))
# Clients put a no-break space behind a completed mention; it parts the mention from the text and is not part of it.
_AFTER_MENTION: Final = " \u00a0\t\n"
_MENTION: Final = re.compile(r"<(?:@|!subteam\^)([A-Za-z0-9]+)>")
DEEPEST: Final = 20  # levels of nested rich text that are read; Slack has three


def typed(message: Mapping[str, Any], bot_user_id: str = "") -> str:
    """The text of a message as it was typed. A mention of the bot that it opens with is left out."""
    return without_mention(_typed(message), bot_user_id)


def typed_command(text: str) -> str:
    """The text of a slash command as it was typed."""
    return valid_text(_from_text(text))


def without_mention(text: str, bot_user_id: str) -> str:
    """The text without the bot's own mention at its beginning."""
    mention = f"<@{bot_user_id}>"
    stripped = text.lstrip(_AFTER_MENTION)
    if bot_user_id and stripped.startswith(mention):
        return stripped[len(mention) :].lstrip(_AFTER_MENTION)
    return text


def mentions(message: Mapping[str, Any], user_id: str) -> bool:
    """Whether the message mentions this person anywhere."""
    return bool(user_id) and f"<@{user_id}>" in _typed(message)


def opens_for_others(message: Mapping[str, Any], bot_user_id: str) -> bool:
    """Whether the message opens with mentions, none of which is the bot's: it is meant for somebody else."""
    rest, others = _typed(message).lstrip(_AFTER_MENTION), False
    while found := _MENTION.match(rest):
        if found[1] == bot_user_id:
            return False
        others, rest = True, rest[found.end() :].lstrip(_AFTER_MENTION + ",")
    return others


def _typed(message: Mapping[str, Any]) -> str:
    text = message.get("text")
    plain = text if isinstance(text, str) else ""
    rich = [block for block in maps_of(message.get("blocks")) if block.get("type") == "rich_text"]
    parts = (part for block in rich for part in _parts(block.get("elements"), plain, DEEPEST))
    return valid_text("".join(_lines(parts)) or _from_text(plain))


# -- rich text ---------------------------------------------------------------------------------------------------------


def _parts(elements: Any, plain: str, depth: int) -> Iterator[str]:
    """The text of each block-like element: a paragraph, a list, a quote, preformatted text."""
    for element in maps_of(elements) if depth else ():
        kind, inner = element.get("type"), element.get("elements")
        if kind == "rich_text_list":
            yield _list(element, plain, depth)
        elif kind == "rich_text_quote":
            yield "\n".join(f"> {line}" for line in _inline(inner, plain).split("\n"))
        elif kind == "rich_text_preformatted":
            yield f"```\n{_inline(inner, plain)}\n```"
        else:
            yield _inline(inner, plain)


def _list(element: Mapping[str, Any], plain: str, depth: int) -> str:
    indent, offset = _count(element.get("indent")), _count(element.get("offset"))
    lines = []
    for number, item in enumerate(_parts(element.get("elements"), plain, depth - 1), start=offset + 1):
        mark = f"{number}." if element.get("style") == "ordered" else "-"
        lines.append(f"{'    ' * indent}{mark} {item}")
    return "\n".join(lines)


def _lines(parts: Iterable[str]) -> Iterator[str]:
    """Each part on a line of its own; a paragraph before a list often ends with its line break already."""
    ended = True
    for part in parts:
        if not ended:
            yield "\n"
        yield part
        ended = part.endswith("\n")


def _inline(elements: Any, plain: str) -> str:
    """A run of text, with the characters that made its styles. Neighbours of one style share their markers."""
    written: list[str] = []
    open_marks: tuple[str, ...] = ()
    for element in maps_of(elements):
        marks = _marks(element.get("style"))
        common = _common(open_marks, marks)
        written += [*reversed(open_marks[common:]), *marks[common:], _word(element, plain)]
        open_marks = marks
    return "".join([*written, *reversed(open_marks)])


def _marks(style: Any) -> tuple[str, ...]:
    return tuple(mark for name, mark in _MARKERS if style.get(name) is True) if isinstance(style, Mapping) else ()


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _word(element: Mapping[str, Any], plain: str) -> str:
    match element:
        case {"type": "text", "text": str(text)}:
            return _raw(text, plain)
        case {"type": "link", "url": str(url)}:
            label = element.get("text")
            return _link(url, label if isinstance(label, str) else "")
        case {"type": "user", "user_id": str(user)}:
            return f"<@{user}>"
        case {"type": "usergroup", "usergroup_id": str(group)}:
            return f"<!subteam^{group}>"
        case {"type": "channel", "channel_id": str(channel)}:
            return f"<#{channel}>"
        case {"type": "emoji", "name": str(name)}:
            tone = element.get("skin_tone")
            return f":{name}:" + (f":skin-tone-{tone}:" if isinstance(tone, int) else "")
        case {"type": "broadcast", "range": str(everybody)}:
            return f"@{everybody}"
        case {"type": "color", "value": str(colour)}:
            return colour
        case {"fallback": str(text)} | {"text": str(text)}:
            return text
    return ""


def _raw(text: str, plain: str) -> str:
    """Rich text comes unescaped. Where it was escaped all the same, `text`, which always is, gives it away."""
    if "&" in text and text in plain and escape(text) not in plain:
        return _unescaped(text)
    return text


# -- text --------------------------------------------------------------------------------------------------------------


def _from_text(text: str) -> str:
    parts, end = [], 0
    for found in _TOKEN.finditer(text):
        parts += [_unescaped(text[end : found.start()]), _token(found[1])]
        end = found.end()
    return "".join([*parts, _unescaped(text[end:])])


def _token(inner: str) -> str:
    target, bar, label = inner.partition("|")
    if target.startswith(("@", "#", "!subteam^")):
        return f"<{target}>"
    if target.startswith("!date^"):
        return _unescaped(label)
    if target.startswith("!"):
        return f"@{target[1:]}"
    return _link(_unescaped(target), _unescaped(label) if bar else "")


def _link(url: str, label: str) -> str:
    """A link as it was typed: Slack adds a scheme to what looks like an address, and keeps what was typed as label."""
    if not label or label == url:
        return url
    bare = re.sub(r"^(?:[a-z][a-z0-9+.-]*://|mailto:|tel:)", "", url, flags=re.IGNORECASE)
    if unquote(label).rstrip("/") in (unquote(bare).rstrip("/"), unquote(url).rstrip("/")):
        return label
    return f"[{label}]({url})"


def _unescaped(text: str) -> str:
    # One pass: what was typed as `&amp;lt;` stays `&lt;`.
    return _ENTITY.sub(lambda found: _ENTITIES[found[1]], text)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 100 else 0
