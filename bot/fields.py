"""The fields of a payload, whatever it holds: what is not of the kind that it should be is not there.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from bot.typed import valid_text


def map_of(value: Any) -> Mapping[str, Any]:
    """The value, if it is an object; else an empty one."""
    return value if is_map(value) else {}


def is_map(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether it is an object of JSON."""
    return isinstance(value, Mapping)


def text_of(fields: Mapping[str, Any], name: str) -> str:
    """The text under this name; "" if there is none."""
    value = fields.get(name)
    return valid_text(value) if isinstance(value, str) else ""
