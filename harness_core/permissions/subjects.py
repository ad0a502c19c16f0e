"""What a call is about: the command, the paths or the URL among its arguments, and what makes them doubtful."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
_TEXT, _NUMBER, _SWITCH = (str,), (int, float), (bool,)
# Arguments beside the subject that change nothing about what it means, as long as they are of these types.
_HARMLESS: Final[Mapping[Kind, Mapping[str, tuple[type, ...]]]] = {
    "bash": {"timeout": _NUMBER, "description": _TEXT},
    "path": {
        "content": _TEXT, "description": _TEXT, "edits": (list, tuple), "offset": _NUMBER, "limit": _NUMBER,
        "old": _TEXT, "new": _TEXT, "all": _SWITCH,
        "old_string": _TEXT, "new_string": _TEXT, "replace_all": _SWITCH,
    },
    "url": {"timeout": _NUMBER, "max_chars": _NUMBER, "description": _TEXT, "prompt": _TEXT, "format": _TEXT},
}  # fmt: skip
_PATH_KEYS: Final = listed("path file_path filepath file filename target destination dest notebook_path")


def subject_of(kind: Kind, args: Args) -> str | None:
    """The one subject of plain arguments; None if there is another, none, or anything that is not known."""
    keys = [key for key in _SUBJECTS[kind] if key in args]
    if len(keys) != 1 or not _harmless(kind, args, keys):
        return None
    value = args[keys[0]]
    return value if isinstance(value, str) else None


def _harmless(kind: Kind, args: Args, subjects: Sequence[str]) -> bool:
    """Whether all arguments beside these are known to change nothing, and of the right types."""
    types = _HARMLESS[kind]
    return all(key in subjects or (key in types and _is(value, types[key])) for key, value in args.items())


def _is(value: object, types: tuple[type, ...]) -> bool:
    """Whether a value is of one of these types; True and False are no numbers."""
    return isinstance(value, types) and (bool in types or not isinstance(value, bool))


def paths_of(args: Args) -> list[str] | None:
    """The paths of plain arguments: one, or one per edit. None for anything else."""
    edits = args.get("edits")
    if edits is None:
        path = subject_of("path", args)
        return None if path is None else [path]
    if not isinstance(edits, list | tuple) or not all(isinstance(edit, Mapping) for edit in edits):
        return None
    outer = [key for key in _SUBJECTS["path"] if key in args]
    if not _harmless("path", args, outer):
        return None
    found = [args[key] for key in outer]
    for edit in edits:
        keys = [key for key in _SUBJECTS["path"] if key in edit]
        if len(keys) > 1 or not (keys or outer) or not _harmless("path", edit, keys):
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


def means_json(pattern: str, args: Args) -> bool:
    """Whether a pattern means these arguments in whatever way their numbers are written: 1000, 1000.0 and 1e3. Raises
    ValueError for arguments that are no JSON.
    """
    given = json.loads(canonical(args))
    try:
        return bool(unambiguous(pattern) == given)
    except ValueError:
        return False


def same_json(pattern: str, args: Args) -> bool:
    """Whether a pattern is the JSON of exactly these arguments, compared as values."""
    try:
        wanted = unambiguous(pattern)
    except ValueError:
        return False
    return isinstance(wanted, dict) and canonical(wanted) == canonical(args)
