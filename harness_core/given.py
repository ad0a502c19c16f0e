"""What a program gives to the harness: looked at when it is given, and refused in words.  Pure.

Type hints say the same, but nobody has to check them; and in the middle of a run, or never, is too late to learn of it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from typing import Any

from harness_core.errors import ConfigError, shown


def listed(name: str, given: object) -> tuple[Any, ...]:
    """The things in a list."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ConfigError(f"{name} must be a list, not {said(given)}.")
    return tuple(given)


def whole(name: str, given: object, least: int = 1) -> None:
    """Raise ConfigError for what is no whole number of at least this."""
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise ConfigError(f"{name} must be a whole number above {least - 1}, not {said(given)}.")


def positive(name: str, given: object) -> None:
    """Raise ConfigError for what is no number above 0; one without an end is."""
    if not isinstance(given, int | float) or isinstance(given, bool) or math.isnan(given) or given <= 0:
        raise ConfigError(f"{name} must be a number above 0, not {said(given)}.")


def one_of(name: str, kind: type[Any] | tuple[type[Any], ...], word: str, given: object) -> None:
    """Raise ConfigError for what is not of this kind, which is called so."""
    if not isinstance(given, kind):
        raise ConfigError(f"{name} must be {word}, not {said(given)}.")


def asked_at_once(given: object, method: str = "") -> bool:
    """Whether this can be called without waiting: a plain function, or an object with such a method."""
    called = given if isinstance(given, type) else getattr(given, method, given)
    return callable(called) and not isinstance(called, type) and not inspect.iscoroutinefunction(called)


def said(given: object) -> str:
    """What was given, for the words of an error: a value as it is, anything else by its name or kind."""
    if given is None or isinstance(given, str | bytes | int | float):
        return shown(repr(given))
    named = getattr(given, "__name__", None)
    return shown(named) if isinstance(named, str) else f"of the kind {type(given).__name__}"
