"""Tool calls as a provider sends them, made into calls that can be judged, stored and sent back.  Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from harness_core.frozen import frozen
from harness_core.types import Args, ToolCall, canonical

# (name, arguments as JSON text or as an object, the provider's id)
Proposed = tuple[str, "str | Args", str]

CUT_FINISHES = frozenset({"length", "content_filter"})


def normalise(proposed: Iterable[Proposed], run_id: str, step: int, finish_reason: str = "") -> tuple[ToolCall, ...]:
    """Calls with an id of ours, unique in the session whatever ids the provider used, and with arguments that are an
    object. Where the arguments cannot be used, they are empty and `problem` says why: such a call is never run.
    """
    return tuple(
        _call(f"{run_id}-{step}-{index}", name, arguments, provider_id, finish_reason)
        for index, (name, arguments, provider_id) in enumerate(proposed, start=1)
    )


def valid_text(text: str) -> str:
    """The text with lone surrogates replaced: no store and no provider takes them."""
    return str.encode(text, "utf-8", "replace").decode("utf-8")  # whatever somebody's own class of text makes of it


def _call(call_uuid: str, name: str, arguments: str | Args, provider_id: str, finish_reason: str) -> ToolCall:
    raw = arguments if isinstance(arguments, str) else ""
    args, problem = _object(arguments)
    if finish_reason in CUT_FINISHES:
        problem = f"The reply was cut off ({finish_reason}), so its calls are not carried out. Send a shorter one."
    raw = valid_text(raw) if problem or (raw and raw != canonical(args)) else ""
    return ToolCall(call_uuid, valid_text(str(name or "")), args, problem, valid_text(str(provider_id or "")), raw)


def _object(arguments: str | Args) -> tuple[dict[str, Any], str]:
    if isinstance(arguments, str) and not arguments.strip():
        return {}, ""  # how some providers write that there are none; what a tool requires, it then misses
    try:
        value = json.loads(arguments, parse_constant=_refuse) if isinstance(arguments, str) else dict(arguments)
        if not isinstance(value, dict):
            return {}, f"The arguments must be a JSON object, not {type(value).__name__}."
        canonical(value).encode("utf-8")
        return frozen(value), ""
    except UnicodeEncodeError:
        return {}, "The arguments hold characters that are not valid text."
    except (ValueError, TypeError, RecursionError) as error:
        return {}, f"The arguments are not a JSON object ({str(error)[:120]})."


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
