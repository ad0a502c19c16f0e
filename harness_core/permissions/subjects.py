"""What a call is about: the command, the paths or the URL among its arguments, and what makes them doubtful."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Literal

from harness_core.permissions.text import listed
from harness_core.types import Args, canonical

Kind = Literal["bash", "path", "url", "other"]

# Which tools have a subject with a grammar of its own. All others are matched by their arguments as a whole.
KINDS: Final[Mapping[str, Kind]] = {
    "bash": "bash", "write": "path", "edit": "path", "read": "path", "ls": "path", "webfetch": "url",
}  # fmt: skip
_SUBJECTS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "bash": ("command",),
    "path": ("path", "file_path"),
    "url": ("url",),
}
# Arguments beside the subject that change nothing about what it means.
_HARMLESS: Final[Mapping[Kind, frozenset[str]]] = {
    "bash": frozenset({"timeout", "description"}),
    "path": listed("content old new all old_string new_string replace_all offset limit edits description"),
    "url": frozenset({"timeout", "description", "prompt", "max_chars", "format"}),
}
_PATH_KEYS: Final = listed("path file_path filepath file filename target destination dest notebook_path")


def subject_of(kind: Kind, args: Args) -> str | None:
    """The one subject of plain arguments; None if there is another, none, or anything that is not known."""
    keys = [key for key in _SUBJECTS[kind] if key in args]
    if len(keys) != 1 or not set(args) <= {keys[0], *_HARMLESS[kind]}:
        return None
    value = args[keys[0]]
    return value if isinstance(value, str) else None


def paths_of(args: Args) -> list[str] | None:
    """The paths of plain arguments: one, or one per edit. None for anything else."""
    edits = args.get("edits")
    if edits is None:
        path = subject_of("path", args)
        return None if path is None else [path]
    if not isinstance(edits, list | tuple) or not all(isinstance(edit, Mapping) for edit in edits):
        return None
    outer = [key for key in _SUBJECTS["path"] if key in args]
    if not set(args) <= {*outer, *_HARMLESS["path"]}:
        return None
    found = [args[key] for key in outer]
    for edit in edits:
        keys = [key for key in _SUBJECTS["path"] if key in edit]
        if len(keys) > 1 or not (keys or outer) or not set(edit) <= {*keys, *_HARMLESS["path"]}:
            return None
        found.extend(edit[key] for key in keys)
    return found if len(outer) <= 1 and all(isinstance(path, str) for path in found) else None


# -- in any reading, for rules that deny and ask -----------------------------------------------------------------------


def every_path(value: object, key: str = "") -> list[str]:
    """Every text that stands under a key that is called like a path, at any depth."""
    if isinstance(value, Mapping):
        return [path for name, item in value.items() for path in every_path(item, str(name))]
    if isinstance(value, list | tuple):
        return [path for item in value for path in every_path(item, key)]
    return [value] if isinstance(value, str) and key.casefold() in _PATH_KEYS else []


def every_text(value: object) -> list[str]:
    """Every text in the arguments; a list of words is a command too."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in every_text(item)]
    if isinstance(value, list | tuple):
        words = [text for item in value for text in every_text(item)]
        return [*words, " ".join(words)] if words else []
    return []


class Twice(ValueError):
    """A key stands twice in one object, and programs differ in which of the values counts."""


def unambiguous(text: str) -> object:
    """The value that a JSON text stands for. Raises ValueError; Twice for a key that is given twice."""
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise Twice(f"the key {next(name for name in names if names.count(name) > 1)!r} twice")
    return found


def same_json(pattern: str, args: Args) -> bool:
    """Whether a pattern is the JSON of exactly these arguments, compared as values."""
    try:
        wanted = unambiguous(pattern)
    except ValueError:
        return False
    return isinstance(wanted, dict) and canonical(wanted) == canonical(args)
