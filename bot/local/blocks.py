"""May these blocks be sent?  Slack's documented limits, block by block; slack_sdk's models are asked as well."""

import json
import logging
from collections.abc import Callable
from typing import Any, Final

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block

from bot.local import rules
from bot.local.elements import CONTEXT_ELEMENTS, INPUT_ELEMENTS, elements, listed, plain, text_object, text_or_short
from bot.local.notes import Notes
from bot.local.shapes import JSON, SlackError

_ANY: Final = ("type", "block_id")
_log: Final = logging.getLogger(__name__)


def check_message_blocks(blocks: Any) -> list[JSON]:
    """Blocks of a message, or SlackError.  In: what the app sent, already decoded."""
    if not isinstance(blocks, list):
        raise SlackError("invalid_blocks_format")
    notes = Notes()
    if len(blocks) > rules.MESSAGE_BLOCKS:
        notes.add("/blocks", f"no more than {rules.MESSAGE_BLOCKS} items allowed")
    check_blocks(blocks, notes, "message")
    if notes.found:
        raise SlackError("invalid_blocks", notes.found)
    if len(json.dumps(blocks, ensure_ascii=False, separators=(",", ":"))) > rules.MESSAGE_BLOCKS_JSON:
        raise SlackError("msg_blocks_too_long")
    return blocks


def check_blocks(blocks: list[Any], notes: Notes, surface: str) -> None:
    """Note everything that Slack would refuse.  In: the surface, message, modal or home."""
    seen: set[str] = set()
    markdown = 0
    for number, block in enumerate(blocks):
        at = f"/blocks/{number}"
        if not notes.shaped(block, at):
            continue
        block_id = block.get("block_id")
        if block_id in seen:
            notes.add(at, f'`block_id` "{block_id}" already exists')
        if block_id:
            seen.add(block_id)
        check_block(block, notes, at, surface)
        markdown += len(str(block.get("text", ""))) if block.get("type") == "markdown" else 0
    if markdown > rules.MARKDOWN_TOTAL:
        notes.add("/blocks", f"markdown blocks together must be less than {rules.MARKDOWN_TOTAL + 1} characters")
    if not notes.found:
        second_opinion(blocks, notes)


def check_block(block: JSON, notes: Notes, at: str, surface: str) -> None:
    check = _CHECKS.get(block.get("type", ""))
    if check is None or (block["type"] in _MESSAGE_ONLY and surface != "message"):
        notes.add(f"{at}/type", f"unsupported type: {block.get('type')}")
        return
    keys, inspect = check
    notes.length(block, "block_id", at, rules.IDENTIFIER, low=1)
    notes.only(block, (*_ANY, *keys), at)
    inspect(block, notes, at)
    ids = [found for found in _action_ids(block) if found]
    for twice in {found for found in ids if ids.count(found) > 1}:
        notes.add(at, f'`action_id` "{twice}" already exists for `block_id` "{block.get("block_id", "")}"')


def _action_ids(block: JSON) -> list[Any]:
    parts = [*block.get("elements", ()), *block.get("actions", ()), block.get("accessory"), block.get("element")]
    return [part.get("action_id") for part in parts if isinstance(part, dict)]


def second_opinion(blocks: list[JSON], notes: Notes) -> None:
    """Whatever slack_sdk's own models refuse is refused here as well."""
    for number, block in enumerate(blocks):
        try:
            parsed = Block.parse(block)
            if parsed is not None:
                parsed.to_dict()
        except SlackObjectFormationError as error:
            notes.add(f"/blocks/{number}", str(error))
        except (TypeError, AttributeError, KeyError, ValueError) as error:
            _log.debug("slack_sdk cannot read a %s block: %s", block.get("type"), error)


def _section(block: JSON, notes: Notes, at: str) -> None:
    if not block.get("text") and not block.get("fields"):
        notes.add(at, "missing required field: text")
    if "text" in block:
        text_object(block["text"], notes, f"{at}/text")
    for number, field in enumerate(listed(block, "fields", notes, at, rules.FIELDS)):
        text_object(field, notes, f"{at}/fields/{number}", rules.FIELD_TEXT)
    if "accessory" in block:
        elements([block["accessory"]], notes, f"{at}/accessory", None)


def _header(block: JSON, notes: Notes, at: str) -> None:
    plain(block.get("text"), notes, f"{at}/text", rules.HEADER_TEXT)


def _image(block: JSON, notes: Notes, at: str) -> None:
    if "image_url" not in block and "slack_file" not in block:
        notes.add(at, "missing required field: image_url")
    notes.length(block, "image_url", at, rules.URL, low=1)
    notes.length(block, "alt_text", at, rules.ALT_TEXT, required=True)
    if "title" in block:
        plain(block["title"], notes, f"{at}/title", rules.ALT_TEXT)


def _actions(block: JSON, notes: Notes, at: str) -> None:
    elements(listed(block, "elements", notes, at, rules.ACTIONS, low=1), notes, f"{at}/elements", None)


def _context(block: JSON, notes: Notes, at: str) -> None:
    parts = listed(block, "elements", notes, at, rules.CONTEXT, low=1)
    elements(parts, notes, f"{at}/elements", CONTEXT_ELEMENTS)


def _context_actions(block: JSON, notes: Notes, at: str) -> None:
    parts = listed(block, "elements", notes, at, rules.CONTEXT_ACTIONS, low=1)
    elements(parts, notes, f"{at}/elements", frozenset({"feedback_buttons", "icon_button"}))


def _input(block: JSON, notes: Notes, at: str) -> None:
    plain(block.get("label"), notes, f"{at}/label", rules.LABEL)
    if "hint" in block:
        plain(block["hint"], notes, f"{at}/hint", rules.LABEL)
    elements([block.get("element")], notes, f"{at}/element", INPUT_ELEMENTS)


def _rich_text(block: JSON, notes: Notes, at: str) -> None:
    for number, part in enumerate(listed(block, "elements", notes, at, None, low=1)):
        _rich_part(part, notes, f"{at}/elements/{number}")


def _rich_part(part: Any, notes: Notes, at: str) -> None:
    kinds = ("rich_text_section", "rich_text_preformatted", "rich_text_quote", "rich_text_list")
    if not isinstance(part, dict) or part.get("type") not in kinds:
        notes.add(at, "unsupported rich text element")
        return
    for number, leaf in enumerate(listed(part, "elements", notes, at, None)):
        below = f"{at}/elements/{number}"
        if part["type"] == "rich_text_list":
            _rich_part(leaf, notes, below)
        elif not isinstance(leaf, dict) or leaf.get("type") not in _LEAVES:
            notes.add(below, "unsupported rich text element")
        elif leaf["type"] not in _LEAVES_OF.get(part["type"], _LEAVES):
            notes.add(f"{below}/type", f"{leaf['type']} is not allowed in {part['type']}")
        else:
            notes.length(leaf, _LEAVES[leaf["type"]], below, None, low=1, required=True)


def _markdown(block: JSON, notes: Notes, at: str) -> None:
    notes.length(block, "text", at, rules.MARKDOWN_TOTAL, low=1, required=True)


def _table(block: JSON, notes: Notes, at: str) -> None:
    total = 0
    for number, row in enumerate(listed(block, "rows", notes, at, rules.TABLE_ROWS, low=1)):
        if not isinstance(row, list) or len(row) > rules.TABLE_COLUMNS:
            notes.add(f"{at}/rows/{number}", f"no more than {rules.TABLE_COLUMNS} items allowed")
            continue
        for column, cell in enumerate(row):
            if not isinstance(cell, dict) or (cell.get("type") == "raw_text" and not cell.get("text")):
                notes.add(f"{at}/rows/{number}/{column}", "must be more than 0 characters")
            total += len(str(cell.get("text", "")))
    if total > rules.TABLE_TEXT:
        notes.add(at, f"must be less than {rules.TABLE_TEXT + 1} characters")


def _card(block: JSON, notes: Notes, at: str) -> None:
    for key, most in (("title", rules.CARD_TEXT), ("subtitle", rules.CARD_TEXT), ("body", rules.CARD_BODY)):
        text_or_short(block.get(key), notes, f"{at}/{key}", most)
    elements(listed(block, "actions", notes, at, rules.CARD_ACTIONS), notes, f"{at}/actions", frozenset({"button"}))


def _alert(block: JSON, notes: Notes, at: str) -> None:
    text_or_short(block.get("text"), notes, f"{at}/text", rules.ALERT_TEXT)


def _container(block: JSON, notes: Notes, at: str) -> None:
    text_or_short(block.get("title"), notes, f"{at}/title", rules.CONTAINER_TITLE)
    for key in ("child_blocks", "blocks"):
        for number, child in enumerate(listed(block, key, notes, at, rules.CONTAINER_BLOCKS)):
            check_block(child, notes, f"{at}/{key}/{number}", "message")


def _nothing(block: JSON, notes: Notes, at: str) -> None:
    """slack_sdk's model is the only opinion on this block."""


_LEAVES: Final = {
    "text": "text", "link": "url", "user": "user_id", "channel": "channel_id", "usergroup": "usergroup_id",
    "emoji": "name", "broadcast": "range", "color": "value", "team": "team_id", "date": "format",
}  # fmt: skip
_LEAVES_OF: Final = {"rich_text_preformatted": frozenset({"text", "link"})}
_MESSAGE_ONLY: Final = frozenset(
    ["markdown", "table", "context_actions", "card", "carousel", "alert", "container", "task_card", "plan", "file"]
)

Inspect = Callable[[JSON, Notes, str], None]
_CHECKS: Final[dict[str, tuple[tuple[str, ...], Inspect]]] = {
    "section": (("text", "fields", "accessory", "expand"), _section),
    "header": (("text", "level"), _header),
    "divider": ((), _nothing),
    "image": (("image_url", "alt_text", "title", "slack_file"), _image),
    "actions": (("elements",), _actions),
    "context": (("elements",), _context),
    "context_actions": (("elements",), _context_actions),
    "input": (("label", "element", "hint", "optional", "dispatch_action"), _input),
    "rich_text": (("elements",), _rich_text),
    "markdown": (("text",), _markdown),
    "table": (("rows", "column_settings"), _table),
    "card": (("*",), _card),
    "alert": (("*",), _alert),
    "container": (("*",), _container),
    "carousel": (("*",), _nothing),
    "task_card": (("*",), _nothing),
    "plan": (("*",), _nothing),
    "video": (("*",), _nothing),
    "file": (("*",), _nothing),
    "call": (("*",), _nothing),
}
