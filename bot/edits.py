"""The form that edits a call's arguments: a typed field per argument, and what was typed read back.  Pure.

A value that a form cannot hold to the character (too long, masked, disguised) is kept as it is and shown as kept; only
where the card shows it, so that nothing is approved that neither of them shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from bot import ids, kit, limits
from bot.fields import map_of
from bot.kit import Block, View
from bot.limits import clip
from bot.modals import review
from bot.shown import is_code, on_card, shown, shown_call, shown_line, visible
from bot.view import Card, several
from harness_core.masking import mask_args

MOST_FIELDS: Final = 40  # arguments that a form offers; each takes a block or two of the 100 that a modal has
LONG: Final = 60  # characters from which a text gets a field of several lines
# Arguments that get one even when they are short: what they hold is often more than a line.
SEVERAL_LINES: Final = frozenset({"command", "cmd", "script", "code", "content", "text", "body", "query", "old", "new"})
MOST_MARKS: Final = 3  # characters that an error names
INPUT: Final = "value"  # action_id of every field
_MARK: Final = re.compile(r"⟨U\+[0-9A-F]+⟩")  # as `shown` makes them
_FIELD: Final = "arg:"  # block_id of the n-th field

# What phones make of quotes, dashes and blanks while somebody types; a command with them is another command.
TYPOGRAPHY: Final[Mapping[str, str]] = {
    "“": "curly quotes",
    "”": "curly quotes",
    "„": "curly quotes",
    "‘": "curly quotes",
    "’": "curly quotes",
    "–": "a long dash",
    "—": "a long dash",
    "…": "an ellipsis",
    "\u00a0": "a non-breaking space",
    "\u202f": "a non-breaking space",
}

Kind = Literal["text", "number", "integer", "switch", "choice", "json"]


@dataclass(frozen=True, slots=True)
class Field:
    """One argument as the form shows it. kept: why it cannot be edited here, "" if it can. options: of a choice."""

    name: str
    kind: Kind
    value: Any
    given: bool
    required: bool
    hint: str = ""
    options: tuple[Any, ...] = ()
    kept: str = ""


def fields_of(card: Card, schema: Mapping[str, Any]) -> Sequence[Field]:
    """The fields of a call, in the order of the schema; arguments that the schema does not name are kept."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    args, required = card.task.args, schema.get("required", ())
    names = [*properties, *(name for name in args if name not in properties)]
    return [_field(name, properties.get(name), args.get(name), name in args, name in required) for name in names]


def edit_form(card: Card, schema: Mapping[str, Any]) -> View | None:
    """The form; None where there is nothing to edit, where several people must approve the same, or where neither the
    card nor the form would show all of it.
    """
    fields = fields_of(card, schema)
    if card.task.kind != "approve" or several(card) or len(fields) > MOST_FIELDS or review(card) is None:
        return None
    kept = [field for field in fields if field.kept]
    if len(kept) == len(fields) or (any(field.given for field in kept) and on_card(shown_call(card.task)).left_out):
        return None
    blocks = [_block(number, field) for number, field in enumerate(fields)]
    here = "What you approve is exactly what stands here" + ("; what is kept stands on the card" if kept else "")
    about = kit.context(kit.plain(f"{here}. Unchanged, it is a plain approval."))
    view = kit.modal(
        "edit",
        "Edit & approve",
        [about, *blocks],
        submit="Approve edited",
        metadata=ids.metadata(card.session_id, card.ref),
    )
    return view if limits.weight(view) <= limits.VIEW_BYTES else None


def read_back(
    card: Card, schema: Mapping[str, Any], values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """(arguments, errors by block_id) of a submitted form. With errors the arguments count for nothing."""
    args: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for number, field in enumerate(fields_of(card, schema)):
        if field.kept:
            if field.given:
                args[field.name] = field.value
            continue
        try:
            typed = _typed(field, _input(values, _block_id(number)))
        except ValueError as error:
            errors[_block_id(number)] = str(error)
            continue
        if typed is not _ABSENT:
            args[field.name] = typed
    return args, errors


def blamed(card: Card, schema: Mapping[str, Any], args: Mapping[str, Any], why: str) -> dict[str, str]:
    """What was judged wrong about the whole call, put at the field that it is most likely about: one that was changed
    goes before one that was not, then one that it names before one that it does not, then in their order.
    args: what was typed.
    """
    fields = [(number, field) for number, field in enumerate(fields_of(card, schema)) if not field.kept]

    def unlikely(place: tuple[int, Field]) -> tuple[bool, bool]:
        name = place[1].name
        # As a whole word: "s" is in nearly every sentence.
        named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", why)
        return args.get(name, _ABSENT) == card.task.args.get(name, _ABSENT), named is None

    number, _ = min(fields, key=unlikely)
    return {_block_id(number): clip(why, limits.ERROR)}


# -- drawing -----------------------------------------------------------------------------------------------------------


def _field(name: str, about: Any, value: Any, given: bool, required: bool) -> Field:
    about = map_of(about)
    kind, options = _kind(about, value, given)
    hint = shown_line(str(about.get("description", "")), 300)
    kept = _kept(name, value) if given else ""
    if not given and not about:
        kept = "not in the schema"
    if kind == "choice" and not _told_apart([_option(one) for one in options]):
        kept = "its choices do not fit here, kept"
    return Field(name, kind, value, given, required, hint, options, kept)


def _told_apart(labels: Sequence[str]) -> bool:
    return len(set(labels)) == len(labels) and not any(label.endswith("…") for label in labels)


def _kind(about: Mapping[str, Any], value: Any, given: bool) -> tuple[Kind, tuple[Any, ...]]:
    options = about.get("enum")
    if isinstance(options, Sequence) and not isinstance(options, str) and 0 < len(options) <= limits.SELECT_OPTIONS:
        return "choice", tuple(options)
    match about.get("type"):
        case "boolean":
            return "switch", (True, False)
        case "integer":
            return "integer", ()
        case "number":
            return "number", ()
        case "string" if not given or isinstance(value, str):
            return "text", ()
    return ("text", ()) if isinstance(value, str) and not about else ("json", ())


def _kept(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if mask_args({name: value}) != {name: value}:
        return "holds a secret, kept"
    seen = shown(text)
    if seen.masked:
        return "holds a secret, kept"
    if seen.disguised:
        return "holds characters that cannot be seen or look like others, kept"
    if len(text) > limits.INPUT_TEXT:
        return f"{len(text):,} characters, kept"
    return ""


def _block(number: int, field: Field) -> Block:
    label = shown_line(field.name, 200) or "(no name)"
    if field.kept:
        return kit.context(kit.plain(f"{label}: {field.kept}"))
    element = _element(field)
    block: Block = {
        "type": "input",
        "block_id": _block_id(number),
        # Slack marks what may be empty as optional. A text that must be there and holds something must go on to.
        "optional": not field.required or (field.kind == "text" and not field.value),
        "label": kit.plain(label),
        "element": element,
    }
    return {**block, "hint": kit.plain(field.hint)} if field.hint else block


def _element(field: Field) -> Block:
    if field.kind in ("choice", "switch"):
        # The value of an option is its index: what is read back is ours, whatever the value itself holds.
        options = [
            {"text": kit.plain(_option(value)), "value": str(index)} for index, value in enumerate(field.options)
        ]
        chosen = [options[i] for i, value in enumerate(field.options) if field.given and value == field.value]
        element: Block = {"type": "static_select", "action_id": INPUT, "options": options}
        return {**element, "initial_option": chosen[0]} if chosen else element
    text = _text(field)
    element = {
        "type": "plain_text_input",
        "action_id": INPUT,
        "multiline": field.kind in ("text", "json")
        and (field.name in SEVERAL_LINES or len(text) > LONG or "\n" in text),
        "max_length": limits.INPUT_TEXT,
    }
    return {**element, "initial_value": text} if text else element


def _option(value: Any) -> str:
    text = "yes" if value is True else "no" if value is False else str(value)
    return shown_line(text, limits.OPTION_TEXT) or "(empty)"


def _text(field: Field) -> str:
    if not field.given:
        return ""
    return field.value if field.kind == "text" else json.dumps(field.value, ensure_ascii=False)


def _block_id(number: int) -> str:
    return f"{_FIELD}{number}"


# -- reading back ------------------------------------------------------------------------------------------------------

_ABSENT: Final = object()


def _input(values: Mapping[str, Any], block: str) -> Mapping[str, Any]:
    return map_of(map_of(values.get(block)).get(INPUT))


def _typed(field: Field, state: Mapping[str, Any]) -> Any:
    """What was typed, as the argument's type. Raises ValueError with what to say at the field."""
    if field.kind in ("choice", "switch"):
        return _chosen(field, map_of(state.get("selected_option")).get("value"))
    text = state.get("value")
    text = text if isinstance(text, str) else ""
    _refuse_typography(text, _text(field))
    _refuse_disguised(field.name, text, _text(field))
    if field.kind == "text":
        # An emptied field takes an argument away that need not be there, and is an empty text where it must.
        return _ABSENT if not text and not field.required else text
    if not text.strip():
        if field.required:
            raise ValueError("This is needed.")
        return _ABSENT
    return _number(field, text) if field.kind in ("number", "integer") else _json(text)


def _chosen(field: Field, index: Any) -> Any:
    if index is None:
        if field.required:
            raise ValueError("Choose one.")
        return _ABSENT
    if not (isinstance(index, str) and index.isdecimal() and int(index) < len(field.options)):
        raise ValueError("Choose one of these.")
    return field.options[int(index)]


def _number(field: Field, text: str) -> int | float:
    try:
        value = json.loads(text.strip(), parse_constant=lambda word: None)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, bool) or not isinstance(value, int if field.kind == "integer" else int | float):
        raise ValueError("This must be a whole number." if field.kind == "integer" else "This must be a number.")
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=lambda word: (_ for _ in ()).throw(ValueError(word)))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This must be JSON: {clip(str(error), 100)}") from error


def _refuse_typography(text: str, before: str) -> None:
    """Phones put in curly quotes, long dashes and other blanks by themselves; nobody means them in a command."""
    found = sorted({name for char, name in TYPOGRAPHY.items() if char in text and char not in before})
    if found:
        raise ValueError(f"This holds {' and '.join(found)}, which phones put in by themselves. Type plain ones.")


def _refuse_disguised(name: str, text: str, before: str) -> None:
    """A form shows what was pasted into it as it is drawn; a card would show marks, but comes too late."""
    if found := sorted(_marks(name, text) - _marks(name, before)):
        what = ", ".join(found[:MOST_MARKS])
        raise ValueError(f"This holds what cannot be seen or looks like something else ({what}). Type it anew.")


def _marks(name: str, text: str) -> set[str]:
    return {mark[1:-1] for mark in _MARK.findall(visible(text, strict=is_code(name, text)))}
