"""The fields of a payload, whatever it holds: what is not of the kind that it should be is not there.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def valid_text(text: str) -> str:
    """The text with `?` for each lone surrogate."""
    return text.encode("utf-8", "replace").decode()


def map_of(value: Any) -> Mapping[str, Any]:
    """The value, if it is an object; else an empty one."""
    return value if is_map(value) else {}


def is_map(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether it is an object of JSON."""
    return isinstance(value, Mapping)


def maps_of(value: Any) -> Sequence[Mapping[str, Any]]:
    """The objects in the value, if it is an array."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def text_of(fields: Mapping[str, Any], name: str) -> str:
    """The text under this name; "" if there is none."""
    value = fields.get(name)
    return valid_text(value) if isinstance(value, str) else ""
