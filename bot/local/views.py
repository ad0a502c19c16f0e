"""Modals and Home tabs: what Slack takes as a view, and what a person's input makes of it."""

import json
import secrets
from typing import Any, Final

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.views import View

from bot.local import people, rules
from bot.local.blocks import check_blocks
from bot.local.elements import listed, plain
from bot.local.notes import Notes
from bot.local.posted import kept_blocks
from bot.local.shapes import JSON, SlackError

_KEYS: Final = (
    "type", "title", "submit", "close", "blocks", "private_metadata", "callback_id", "external_id", "clear_on_close",
    "notify_on_close", "submit_disabled",
)  # fmt: skip


def check_view(view: Any, kind: str) -> JSON:
    """A view that Slack would take, or SlackError.  In: `modal` or `home`."""
    if not isinstance(view, dict):
        raise SlackError("invalid_arguments", ["[ERROR] failed to match all allowed schemas [json-pointer:/view]"])
    notes = Notes()
    notes.only(view, _KEYS, "/view")
    if view.get("type") != kind:
        notes.add("/view/type", f"must be {kind}")
    for key in ("title", "submit", "close"):
        if key in view and view[key] is not None:
            plain(view[key], notes, f"/view/{key}", rules.VIEW_TITLE)
    if kind == "modal" and not view.get("title"):
        notes.add("/view", "missing required field: title")
    notes.length(view, "private_metadata", "/view", rules.VIEW_METADATA)
    notes.length(view, "callback_id", "/view", rules.IDENTIFIER)
    notes.length(view, "external_id", "/view", rules.IDENTIFIER)
    blocks = listed(view, "blocks", notes, "/view", rules.VIEW_BLOCKS)
    if "blocks" not in view:
        notes.add("/view", "missing required field: blocks")
    check_blocks(blocks, notes, kind)
    if kind == "modal" and not view.get("submit") and any(block.get("type") == "input" for block in blocks):
        notes.add("/view", "missing required field: submit")
    if not notes.found:
        _second_opinion(view, notes)
    if notes.found:
        raise SlackError("invalid_arguments", notes.found)
    if len(json.dumps(view).encode()) > rules.VIEW_BYTES:
        raise SlackError("view_too_large")
    return view


def _second_opinion(view: JSON, notes: Notes) -> None:
    try:
        View(**view).to_dict()
    except SlackObjectFormationError as error:
        notes.add("/view", str(error))


def kept_view(view: JSON, view_id: str, root: str, previous: str | None, old: JSON | None = None) -> JSON:
    """A view as Slack gives it back.  In: the app's view, its ids, and the version that it replaces."""
    blocks = kept_blocks(view.get("blocks", []))
    kept: JSON = {
        "id": view_id, "team_id": people.TEAM_ID, "type": view["type"], "blocks": blocks,
        "private_metadata": view.get("private_metadata", ""), "callback_id": view.get("callback_id", ""),
        "state": {"values": _carried(blocks, old)}, "hash": f"{secrets.randbelow(10**10)}.{secrets.token_hex(4)}",
        "title": _titled(view.get("title")), "clear_on_close": view.get("clear_on_close", False),
        "notify_on_close": view.get("notify_on_close", False), "close": _titled(view.get("close")),
        "submit": _titled(view.get("submit")), "previous_view_id": previous, "root_view_id": root,
        "app_id": people.APP_ID, "external_id": view.get("external_id", ""),
        "app_installed_team_id": people.TEAM_ID, "bot_id": people.BOT_ID,
        "submit_disabled": view.get("submit_disabled", False),
    }  # fmt: skip
    return kept


def _titled(text: Any) -> JSON | None:
    return {"emoji": True} | text if isinstance(text, dict) else None


def _carried(blocks: list[JSON], old: JSON | None) -> JSON:
    """What was typed stays in an updated view where block_id and action_id stay."""
    fresh = initial_values(blocks)
    before = old["state"]["values"] if old else {}
    return {
        block: {action: before.get(block, {}).get(action, value) for action, value in actions.items()}
        for block, actions in fresh.items()
    }


def stateful(blocks: list[JSON]) -> list[tuple[str, JSON, JSON]]:
    """Elements that hold a value: block_id, the element, and its block."""
    found = []
    for block in blocks:
        parts = [*block.get("elements", ())] if block["type"] == "actions" else []
        parts += [block[key] for key in ("element", "accessory") if key in block]
        found += [(block["block_id"], part, block) for part in parts if part["type"] not in _STATELESS]
    return found


def initial_values(blocks: list[JSON]) -> JSON:
    """state.values before anybody typed anything."""
    values: JSON = {}
    for block_id, part, _ in stateful(blocks):
        values.setdefault(block_id, {})[part["action_id"]] = initial_value(part)
    return values


_STATELESS: Final = frozenset({"button", "overflow", "image", "icon_button", "feedback_buttons", "workflow_button"})
_SIMPLE: Final = {  # where an element's state lies, and what it starts from
    "datepicker": ("selected_date", "initial_date"), "timepicker": ("selected_time", "initial_time"),
    "datetimepicker": ("selected_date_time", "initial_date_time"), "users_select": ("selected_user", "initial_user"),
    "channels_select": ("selected_channel", "initial_channel"), "static_select": ("selected_option", "initial_option"),
    "conversations_select": ("selected_conversation", "initial_conversation"),
    "radio_buttons": ("selected_option", "initial_option"), "external_select": ("selected_option", "initial_option"),
    "checkboxes": ("selected_options", "initial_options"), "rich_text_input": ("rich_text_value", "initial_value"),
    "multi_static_select": ("selected_options", "initial_options"), "overflow": ("selected_option", ""),
    "multi_users_select": ("selected_users", "initial_users"), "file_input": ("files", ""),
    "multi_channels_select": ("selected_channels", "initial_channels"),
    "multi_conversations_select": ("selected_conversations", "initial_conversations"),
}  # fmt: skip


def initial_value(part: JSON) -> JSON:
    key, start = _SIMPLE.get(part["type"], ("value", "initial_value"))
    empty: Any = [] if key.endswith("s") else None
    return {"type": part["type"], key: part.get(start, empty)}


def chosen(part: JSON, value: Any) -> JSON:
    """An element's state when a person enters `value`: text, an option's value, or a list of those.

    ValueError if it has no such option."""
    key, _ = _SIMPLE.get(part["type"], ("value", ""))
    if not key.startswith("selected_option"):
        return {"type": part["type"], key: value}
    groups = [group["options"] for group in part.get("option_groups", ())]
    options = {option["value"]: option for group in [part.get("options", []), *groups] for option in group}
    wanted = [] if value is None else value if isinstance(value, list) else [value]
    names = [item["value"] if isinstance(item, dict) else item for item in wanted]
    if any(name not in options for name in names):
        raise ValueError(f"no such option: {names}, there are {list(options)}")
    picked = [options[name] for name in names]
    return {"type": part["type"], key: picked if key.endswith("s") else picked[0] if picked else None}


def complaints(blocks: list[JSON], values: JSON) -> dict[str, str]:
    """What Slack's client says before it sends a modal, by block_id: required, too long, too short."""
    found: dict[str, str] = {}
    for block_id, part, block in stateful(blocks):
        key, _ = _SIMPLE.get(part["type"], ("value", ""))
        value = values[block_id][part["action_id"]].get(key)
        if not value:
            if block["type"] == "input" and not block.get("optional"):
                found[block_id] = "required"
        elif isinstance(value, str) and len(value) > part.get("max_length", rules.INPUT_TEXT):
            found[block_id] = "too_long"
        elif isinstance(value, str) and len(value) < part.get("min_length", 0):
            found[block_id] = "too_short"
    return found
