"""What an app posts, as Slack keeps it and gives it back: escaped text, linked addresses, filled-in block fields."""

import re
import secrets
from typing import Final

from bot.local.shapes import JSON
from bot.local.typed import UNICODE, Names, Said, inline

# What may follow "<" and still be Slack's own markup; every other bracket was meant as a character.
_MARKUP: Final = re.compile(
    r"<(?:@[UW][A-Z0-9]+|\#[CG][A-Z0-9]+|![a-z]+(?:\^[^<>]*)?|(?:https?|mailto|slack|tel):[^<>|\s]+)(?:\|[^<>]*)?>"
)
_ENTITY: Final = re.compile(r"&(?:amp|lt|gt);")
_ADDRESS: Final = re.compile(r"https?://[^\s<>`|]*[^\s<>`|.,;:!?)'\"\]*_~]")
_PIECE: Final = re.compile(f"({_MARKUP.pattern})|({_ENTITY.pattern})|({_ADDRESS.pattern})|([&<>])")
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_NOBODY: Final = Names({}, {})
_CONTROLS: Final = frozenset({"button", "overflow", "checkboxes", "radio_buttons", "plain_text_input", "datepicker"})


def kept_text(text: str, *, verbatim: bool = False) -> str:
    """The text of an app's message as the history gives it back. verbatim: no address becomes a link by itself."""

    def piece(found: re.Match[str]) -> str:
        if found[3]:
            return _escaped(found[3]) if verbatim else f"<{found[3]}>"
        return _ESCAPES[found[4]] if found[4] else found[0]

    kept = _PIECE.sub(piece, text)
    for sign, name in UNICODE.items():
        kept = kept.replace(sign, f":{name}:")
    return kept


def text_blocks(text: str) -> list[JSON]:
    """The rich_text block that Slack makes of an app's message that has only text."""
    elements: list[JSON] = []
    start = 0
    kept = kept_text(text)
    for found in _MARKUP.finditer(kept):
        elements += _plain(kept[start : found.start()])
        elements.append(_element(found[0][1:-1]))
        start = found.end()
    elements += _plain(kept[start:])
    section = {"type": "rich_text_section", "elements": elements}
    return [{"type": "rich_text", "block_id": some_id(), "elements": [section]}]


def _plain(part: str) -> list[JSON]:
    raw = part.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    said: Said = inline(raw, _NOBODY, {}, _NO_LINKS)
    return said.elements


_NO_LINKS: Final = re.compile(
    r"`(?P<code>[^`\n]+)`|(?<![\w*])\*(?P<bold>(?! )[^*\n]+(?<! ))\*(?![\w*])"
    r"|(?<![\w_])_(?P<italic>(?! )[^_\n]+(?<! ))_(?!\w)"
)


def _element(inner: str) -> JSON:
    target, _, label = inner.partition("|")
    if target.startswith("@"):
        return {"type": "user", "user_id": target[1:]}
    if target.startswith("#"):
        return {"type": "channel", "channel_id": target[1:]}
    if target.startswith("!date"):
        stamp, _, layout = target.removeprefix("!date^").partition("^")
        return {"type": "date", "timestamp": int(stamp or 0), "format": layout, "fallback": label}
    if target.startswith("!"):
        return {"type": "broadcast", "range": target[1:]}
    return {"type": "link", "url": target} | ({"text": label} if label else {})


def some_id() -> str:
    """A block_id or action_id such as Slack makes up where an app gave none."""
    return secrets.token_urlsafe(4)[:5]


def kept_blocks(blocks: list[JSON]) -> list[JSON]:
    """An app's blocks as Slack gives them back: ids and defaults filled in, texts escaped.  A copy."""
    return [_kept(block) | {"block_id": block.get("block_id") or some_id()} for block in blocks]


def _kept(value: JSON) -> JSON:
    kind = value.get("type")
    if kind == "rich_text":
        return dict(value)  # its text is not markup, so there is nothing to escape
    if kind in ("plain_text", "mrkdwn") and isinstance(value.get("text"), str):
        defaults: JSON = {"emoji": True} if kind == "plain_text" else {"verbatim": False}
        verbatim = value.get("verbatim") is True  # docs.slack.dev/reference/block-kit/composition-objects/text-object
        text = kept_text(value["text"], verbatim=verbatim) if kind == "mrkdwn" else _escaped(value["text"])
        return defaults | value | {"text": text}
    kept: JSON = {}
    for key, item in value.items():
        if isinstance(item, dict):
            kept[key] = _kept(item)
        elif isinstance(item, list):
            kept[key] = [_kept(part) if isinstance(part, dict) else part for part in item]
        else:
            kept[key] = item
    if (kind in _CONTROLS or str(kind).endswith("_select")) and not kept.get("action_id"):
        kept["action_id"] = some_id()
    return kept


def _escaped(text: str) -> str:
    """Escape what is not an entity yet."""
    return re.sub(r"&(?!(?:amp|lt|gt);)|[<>]", lambda found: _ESCAPES[found[0]], text)
