"""The pieces of Block Kit that we use.  Pure: what goes in must already be safe to show and short enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from bot import limits
from bot.limits import clip

Block = dict[str, Any]
View = dict[str, Any]

# Nothing in what we post is to be unfurled, or to be made a mention or a link that we did not write.
QUIET: Final[Mapping[str, Any]] = {"unfurl_links": False, "unfurl_media": False, "parse": "none"}


def mrkdwn(text: str) -> Block:
    """Text that Slack formats; it links and mentions nothing that is not written as a link or a mention."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def plain(text: str) -> Block:
    """Text that Slack shows as it is."""
    return {"type": "plain_text", "text": text, "emoji": False}


def section(text: str) -> Block:
    """A paragraph that is never folded away."""
    return {"type": "section", "text": mrkdwn(text), "expand": True}


def private(text: str) -> Block:
    """A message to one person, formatted: nothing in it becomes a link or a mention but what is written as one.

    Slack links whatever looks like an address in a bare text, in code too, but for blocks it can be told not to. What
    is too long for blocks goes without.
    """
    parts = limits.lines_within(text, limits.SECTION_TEXT)
    blocks = [section(part) for part in parts]
    fits = all(part.strip() and limits.units(part) <= limits.SECTION_TEXT for part in parts)
    return {"text": text, **({"blocks": blocks} if fits and limits.weight(blocks) <= limits.MESSAGE else {})}


def preformatted(text: str) -> Block:
    """Text in a fixed width, in which Slack parses nothing. An empty one is refused, so it becomes a blank."""
    return {
        "type": "rich_text",
        "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text or " "}]}],
    }


def context(*elements: Block) -> Block:
    """A small line."""
    return {"type": "context", "elements": list(elements)}


def button(action: str, label: str, value: str, style: Literal["primary", "danger"] | None = None) -> Block:
    """A button; Slack shows one style of each at most."""
    made = {
        "type": "button",
        "action_id": action,
        "text": plain(clip(label, limits.BUTTON_TEXT)),
        "value": value,
    }
    return {**made, "style": style} if style else made


def text_input(name: str, label: str, *, hint: str = "", optional: bool = True) -> Block:
    """A field for several lines. block_id and action_id are both its name."""
    field = {
        "type": "plain_text_input",
        "action_id": name,
        "multiline": True,
        "max_length": limits.COMMENT_INPUT,
    }
    block = {"type": "input", "block_id": name, "optional": optional, "label": plain(label), "element": field}
    return {**block, "hint": plain(hint)} if hint else block


def radio_input(name: str, label: str, options: Iterable[tuple[str, str]], preselected: str) -> Block:
    """A choice of one. options: (value, text). block_id and action_id are both its name."""
    made = {value: {"text": plain(clip(text, limits.OPTION_TEXT)), "value": value} for value, text in options}
    return {
        "type": "input",
        "block_id": name,
        "label": plain(label),
        "element": {
            "type": "radio_buttons",
            "action_id": name,
            "options": list(made.values()),
            "initial_option": made[preselected],
        },
    }


def modal(callback: str, title: str, blocks: list[Block], *, submit: str = "", metadata: str = "") -> View:
    """A modal. Without `submit` it can only be closed."""
    view = {
        "type": "modal",
        "callback_id": callback,
        "title": plain(clip(title, limits.VIEW_TITLE)),
        "close": plain("Cancel" if submit else "Close"),
        "blocks": blocks,
    }
    if submit:
        view["submit"] = plain(clip(submit, limits.VIEW_TITLE))
    return {**view, "private_metadata": metadata} if metadata else view
