"""Whether what a hook gave is a verdict that can be acted on and stored.  Pure, and it trusts nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from harness_core.calls import valid_text
from harness_core.errors import in_words
from harness_core.events import Prompted, ToolCallEnd
from harness_core.types import ToolCall, canonical
from harness_core.verdicts import (
    ACCEPTS,
    Continue,
    Deny,
    HookReject,
    Inject,
    Observe,
    Point,
    Rewrite,
    RuleClass,
    Verdict,
)

_OR_NONE: Final = ("escape_key", "suggests")  # the texts of a verdict that may be missing


def usable(said: object, point: Point, of_class: RuleClass, about: tuple[Any, ...]) -> tuple[Verdict | None, str]:
    """(the verdict, with texts that any store and provider takes, or None; why it cannot be used, or "").

    said: what a hook of this class returned or raised. about: what it was handed.
    """
    try:
        if isinstance(said, HookReject):
            said = Deny(said.msg_to_model, said.escape_key, said.suggests)
        if wrong := _wrong(said, point, of_class, about):
            return None, wrong
        assert isinstance(said, Verdict)
        return _clean(said), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # it cannot even be looked at
        return None, f"gave what cannot be used ({in_words(error)})"


def _wrong(said: object, point: Point, of_class: RuleClass, about: tuple[Any, ...]) -> str:
    if isinstance(said, BaseException):
        return f"failed ({in_words(said)})"
    if not isinstance(said, (Observe, *ACCEPTS[point])) or not isinstance(said, Verdict):
        return f"ruled {type(said).__name__}, which {point} does not accept"
    for name, value in _values(said).items():
        if name != "to" and not isinstance(value, str) and not (value is None and name in _OR_NONE):
            return f"gave {type(value).__name__} as its {name}"
    if isinstance(said, Inject | Continue) and not said.text.strip():
        return "had nothing to tell the model"
    if isinstance(said, Rewrite):
        return _no_value(said.to, about[-1])
    if isinstance(said, Deny) and said.escape_key is not None and of_class == "safety":
        return "is of class safety, which nobody escapes, and declared an escape_key"
    return ""


def _values(thing: Any) -> dict[str, Any]:
    return {field.name: getattr(thing, field.name) for field in fields(thing)}


def _no_value(to: object, value: object) -> str:
    """Why the thing at hand cannot become this; "" if it can."""
    if isinstance(value, ToolCall):
        return _no_arguments(to)
    wanted = str if isinstance(value, Prompted | ToolCallEnd) else type(value)
    if not isinstance(to, wanted):
        return f"rewrote to {type(to).__name__}, and not to {wanted.__name__}"
    if is_dataclass(to):  # each part must be what it was
        was = _values(value)
        wrong = [name for name, part in _values(to).items() if type(part) is not type(was[name])]
        return f"rewrote {wrong[0]} to {type(getattr(to, wrong[0])).__name__}" if wrong else ""
    return ""


def _no_arguments(args: object) -> str:
    if not isinstance(args, Mapping) or not all(isinstance(key, str) for key in args):
        return "rewrote the arguments to what is no object"
    try:
        canonical(args).encode()
    except (TypeError, ValueError) as error:
        return f"rewrote the arguments to what JSON cannot hold ({error})"
    return ""


def _clean(verdict: Any) -> Any:
    """With valid texts, also in a plan that is rewritten."""
    changes = {name: valid_text(value) for name, value in _values(verdict).items() if isinstance(value, str)}
    if isinstance(verdict, Rewrite) and is_dataclass(verdict.to):
        changes["to"] = _clean(verdict.to)
    return replace(verdict, **changes)
