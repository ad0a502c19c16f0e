"""May these block elements and text objects be sent?  Slack's limits, element by element."""

from collections.abc import Callable
from typing import Any, Final

from bot.local import rules
from bot.local.notes import Notes
from bot.local.shapes import JSON

CONTEXT_ELEMENTS: Final = frozenset({"image", "plain_text", "mrkdwn"})
_PICKERS: Final = ("users", "conversations", "channels", "external", "static")
_SELECTS: Final = frozenset(f"{many}{kind}_select" for kind in _PICKERS for many in ("", "multi_"))
_INPUTS: Final = frozenset(
    [
        "plain_text_input",
        "email_text_input",
        "url_text_input",
        "number_input",
        "rich_text_input",
        "file_input",
        "datepicker",
        "timepicker",
        "datetimepicker",
        "checkboxes",
        "radio_buttons",
    ]
)
INPUT_ELEMENTS: Final = _SELECTS | _INPUTS
_DISPATCHING: Final = (
    _SELECTS | INPUT_ELEMENTS | {"button", "overflow", "icon_button", "feedback_buttons", "workflow_button"}
)
_COMMON: Final = ("type", "action_id", "confirm", "focus_on_load", "placeholder")


def text_object(part: Any, notes: Notes, at: str, most: int = rules.TEXT_OBJECT) -> None:
    """A plain_text or mrkdwn object of 1 to `most` characters."""
    if not isinstance(part, dict) or part.get("type") not in ("plain_text", "mrkdwn"):
        notes.add(at, "must provide an object of type plain_text or mrkdwn")
        return
    notes.only(part, ("type", "text", "emoji" if part["type"] == "plain_text" else "verbatim"), at)
    notes.length(part, "text", at, most, low=1, required=True)


def plain(part: Any, notes: Notes, at: str, most: int) -> None:
    """A text object that may hold no markup."""
    if isinstance(part, dict) and part.get("type") == "mrkdwn":
        notes.add(f"{at}/type", "must be plain_text")
        return
    text_object(part, notes, at, most)


def text_or_short(part: Any, notes: Notes, at: str, most: int) -> None:
    """Newer blocks take a string or a text object; None is well."""
    if isinstance(part, str):
        notes.size(part, at, most)
    elif part is not None:
        text_object(part, notes, at, most)


def listed(part: JSON, key: str, notes: Notes, at: str, most: int | None, *, low: int = 0) -> list[Any]:
    """The list under a key, at most `most` long; what is out of bounds is noted."""
    found = part.get(key, [])
    if not isinstance(found, list):
        notes.add(f"{at}/{key}", "must be an array")
        return []
    if most is not None and len(found) > most:
        notes.add(f"{at}/{key}", f"no more than {most} items allowed")
    if len(found) < low:
        notes.add(f"{at}/{key}", f"must provide at least {low} item")
    return found


def elements(parts: list[Any], notes: Notes, at: str, allowed: frozenset[str] | None) -> None:
    """Every element by its own rules.  In: the types that this place takes; None: all that a person can use."""
    for number, part in enumerate(parts):
        below = f"{at}/{number}" if len(parts) > 1 or at.endswith("s") else at
        kind = part.get("type") if isinstance(part, dict) else None
        known = allowed if allowed is not None else _DISPATCHING | {"image"}
        if kind not in known:
            notes.add(f"{below}/type", f"unsupported type: {kind}")
        elif kind in ("plain_text", "mrkdwn"):
            text_object(part, notes, below)
        else:
            _element(part, notes, below)


def _element(part: JSON, notes: Notes, at: str) -> None:
    notes.length(part, "action_id", at, rules.IDENTIFIER, low=1)
    if "placeholder" in part:
        plain(part["placeholder"], notes, f"{at}/placeholder", rules.PLACEHOLDER)
    if "confirm" in part:
        _confirm(part["confirm"], notes, f"{at}/confirm")
    inspect = _CHECKS.get(part["type"])
    if inspect:
        keys, check = inspect
        notes.only(part, (*_COMMON, *keys), at)
        check(part, notes, at)


def _confirm(part: Any, notes: Notes, at: str) -> None:
    if not isinstance(part, dict):
        notes.add(at, "must be an object")
        return
    text_object(part.get("text"), notes, f"{at}/text", rules.CONFIRM_TEXT)
    for key, most in (
        ("title", rules.CONFIRM_TITLE),
        ("confirm", rules.CONFIRM_BUTTON),
        ("deny", rules.CONFIRM_BUTTON),
    ):
        plain(part.get(key), notes, f"{at}/{key}", most)


def _button(part: JSON, notes: Notes, at: str) -> None:
    plain(part.get("text"), notes, f"{at}/text", rules.BUTTON_TEXT)
    notes.length(part, "value", at, rules.BUTTON_VALUE)
    notes.length(part, "url", at, rules.URL)
    notes.length(part, "accessibility_label", at, rules.BUTTON_TEXT)
    if part.get("style", "primary") not in ("primary", "danger"):
        notes.add(f"{at}/style", "must be primary or danger")
    listed(part, "visible_to_user_ids", notes, at, rules.VISIBLE_TO)


def _options(most: int) -> Callable[[JSON, Notes, str], None]:
    def check(part: JSON, notes: Notes, at: str) -> None:
        groups = listed(part, "option_groups", notes, at, rules.OPTIONS)
        options = list(listed(part, "options", notes, at, most, low=0 if groups else 1))
        for number, group in enumerate(groups):
            plain(group.get("label"), notes, f"{at}/option_groups/{number}/label", rules.OPTION_TEXT)
            options += listed(group, "options", notes, f"{at}/option_groups/{number}", rules.OPTIONS, low=1)
        for number, option in enumerate(options):
            _option(option, notes, f"{at}/options/{number}", part["type"])
        values = [option.get("value") for option in options if isinstance(option, dict)]
        if len(set(values)) != len(values):
            notes.add(f"{at}/options", "option values must be unique")
        first = [part["initial_option"]] if "initial_option" in part else part.get("initial_options", [])
        if any(option not in options for option in first):
            notes.add(at, "initial option must exactly match one of the options")

    return check


def _option(option: Any, notes: Notes, at: str, kind: str) -> None:
    if not isinstance(option, dict):
        notes.add(at, "must be an object")
        return
    notes.only(option, ("text", "value", "description", "url"), at)
    free = kind in ("checkboxes", "radio_buttons")  # only these two take markup
    (text_object if free else plain)(option.get("text"), notes, f"{at}/text", rules.OPTION_TEXT)
    notes.length(option, "value", at, rules.OPTION_VALUE, low=1, required=True)
    if "description" in option:
        (text_object if free else plain)(option["description"], notes, f"{at}/description", rules.OPTION_TEXT)


def _text_input(part: JSON, notes: Notes, at: str) -> None:
    most = part.get("max_length", rules.INPUT_TEXT)
    if not isinstance(most, int) or not 1 <= most <= rules.INPUT_TEXT:
        notes.add(f"{at}/max_length", f"must be between 1 and {rules.INPUT_TEXT}")
        most = rules.INPUT_TEXT
    least = part.get("min_length", 0)
    if not isinstance(least, int) or not 0 <= least <= most:
        notes.add(f"{at}/min_length", f"must be between 0 and {most}")
    notes.length(part, "initial_value", at, most)


def _number(part: JSON, notes: Notes, at: str) -> None:
    if "is_decimal_allowed" not in part:
        notes.add(at, "missing required field: is_decimal_allowed")


def _image(part: JSON, notes: Notes, at: str) -> None:
    notes.length(part, "image_url", at, rules.URL, low=1, required="slack_file" not in part)
    notes.length(part, "alt_text", at, rules.ALT_TEXT, required=True)


_CHOICE: Final = ("options", "initial_option", "initial_options")
_SELECT: Final = (*_CHOICE, "option_groups", "max_selected_items")
_CHECKS: Final[dict[str, tuple[tuple[str, ...], Callable[[JSON, Notes, str], None]]]] = {
    "button": (
        ("text", "url", "value", "style", "accessibility_label", "visible_to_user_ids", "agent_prompt"), _button
    ),
    "static_select": (_SELECT, _options(rules.OPTIONS)),
    "multi_static_select": (_SELECT, _options(rules.OPTIONS)),
    "checkboxes": (_CHOICE, _options(rules.CHOICES)),
    "radio_buttons": (_CHOICE, _options(rules.CHOICES)),
    "overflow": (("options",), _options(rules.OVERFLOW)),
    "plain_text_input": (
        ("initial_value", "multiline", "min_length", "max_length", "dispatch_action_config"), _text_input
    ),
    "number_input": (
        ("is_decimal_allowed", "initial_value", "min_value", "max_value", "dispatch_action_config"), _number
    ),
    "image": (("image_url", "alt_text", "slack_file"), _image),
}  # fmt: skip
