"""Hook points, what a hook may rule at each, in which order hooks speak, and what happens if one fails.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from harness_core.calls import valid_text
from harness_core.errors import ConfigError, HarnessError
from harness_core.events import HookRuled
from harness_core.session import Trace
from harness_core.types import Args, ToolCall, canonical

RuleClass = Literal["safety", "termination", "budget", "repetition", "drift"]
Point = Literal["before_tool", "permission_request"]

# Who speaks first: what must never happen, then whether it is over, then what it costs, then style.
RULE_CLASSES: Final[tuple[RuleClass, ...]] = ("safety", "termination", "budget", "repetition", "drift")


@dataclass(frozen=True, slots=True)
class Ask:
    """Put the call to a person."""

    reason: str


@dataclass(frozen=True, slots=True)
class Deny:
    """Refuse the call. reason: for the model, why, and what to do instead. escape_key, suggests: see HookReject."""

    reason: str
    escape_key: str | None = None
    suggests: str | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Change the call's arguments, before anybody is asked."""

    args: Args
    reason: str = ""


Verdict = Ask | Deny | Rewrite


class HookReject(HarnessError):
    """A hook refuses the call. May be returned or raised; msg_to_model says why, and what to do next."""

    def __init__(self, msg_to_model: str, escape_key: str | None = None, suggests: str | None = None) -> None:
        super().__init__(msg_to_model)
        self.msg_to_model = msg_to_model
        self.escape_key = escape_key
        self.suggests = suggests


# What each point accepts; anything else is a failure of the hook, never silently dropped.
ACCEPTS: Final[Mapping[Point, tuple[type, ...]]] = {
    "before_tool": (Ask, Deny, Rewrite),
    "permission_request": (Ask, Deny, Rewrite),
}


@dataclass(frozen=True, slots=True)
class Ruled:
    """What a point came to: the call as rewritten, the strongest refusal or question, and the record."""

    call: ToolCall
    verdict: Ask | Deny | None = None
    rulings: tuple[HookRuled, ...] = ()


def in_order(interceptors: Iterable[Any]) -> tuple[Any, ...]:
    """Hooks in the order in which they speak: by class, then priority (smaller first), then as registered."""
    return tuple(sorted(interceptors, key=lambda i: (RULE_CLASSES.index(rule_class(i)), getattr(i, "priority", 0))))


def rule_class(interceptor: Any) -> RuleClass:
    """The class that an interceptor declares; an undeclared one speaks last. Raises ConfigError for no such class."""
    declared: RuleClass = getattr(interceptor, "rule_class", "drift")
    if declared not in RULE_CLASSES:
        raise ConfigError(
            f"{name_of(interceptor)} declares the class {declared!r}; there are {', '.join(RULE_CLASSES)}."
        )
    return declared


def run_point(point: Point, interceptors: Iterable[Any], trace: Trace, call: ToolCall) -> Ruled:
    """Ask every interceptor that has a method for this point. Rewrites pass on, the first Deny ends it, an Ask stays.

    Both points fail closed: a hook that raises or rules what the point does not accept makes the call ask, and one of
    class safety denies it.
    """
    ruled = Ruled(call)
    for interceptor in interceptors:
        hook = getattr(interceptor, point, None)
        if hook is None:
            continue
        verdict = _verdict(hook, point, interceptor, trace, ruled.call)
        if verdict is None:
            continue
        ruled = _with(ruled, verdict, _recorded(point, interceptor, trace, ruled.call, verdict))
        if isinstance(verdict, Deny):
            break
    return ruled


def _verdict(hook: Any, point: Point, interceptor: Any, trace: Trace, call: ToolCall) -> Verdict | None:
    try:
        # A copy, so that a hook which changes it in place changes nothing: only what it rules is on record.
        verdict: object = hook(trace, replace(call, args=deepcopy(call.args)))
    except HookReject as reject:
        verdict = reject
    except Exception as error:  # a hook's fault must not become a permission
        return _failed(interceptor, f"the hook {name_of(interceptor)} failed ({type(error).__name__}: {error})")
    if isinstance(verdict, HookReject):
        verdict = Deny(verdict.msg_to_model, verdict.escape_key, verdict.suggests)
    if verdict is None:
        return None
    if not isinstance(verdict, ACCEPTS[point]) or not isinstance(verdict, Verdict):
        kind = type(verdict).__name__
        return _failed(interceptor, f"the hook {name_of(interceptor)} ruled {kind}, which {point} does not accept")
    if wrong := _wrong(interceptor, verdict):
        return _failed(interceptor, f"the hook {name_of(interceptor)} {wrong}")
    return replace(verdict, reason=valid_text(verdict.reason))


def _wrong(interceptor: Any, verdict: Verdict) -> str:
    """What makes a verdict of the right kind unusable, or ""."""
    if not isinstance(verdict.reason, str):
        return f"gave {type(verdict.reason).__name__} as a reason"
    if isinstance(verdict, Rewrite):
        return _no_arguments(verdict.args)
    if isinstance(verdict, Deny) and verdict.escape_key is not None and rule_class(interceptor) == "safety":
        return "is of class safety, which nobody escapes, and declared an escape_key"
    return ""


def _no_arguments(args: object) -> str:
    if not isinstance(args, Mapping) or not all(isinstance(key, str) for key in args):
        return "rewrote the arguments to what is no object"
    try:
        canonical(args).encode()
    except (TypeError, ValueError) as error:
        return f"rewrote the arguments to what JSON cannot hold ({error})"
    return ""


def _failed(interceptor: Any, why: str) -> Verdict:
    why = valid_text(why)
    return Deny(f"Refused: {why}.") if rule_class(interceptor) == "safety" else Ask(why)


def _with(ruled: Ruled, verdict: Verdict, record: HookRuled) -> Ruled:
    rulings = (*ruled.rulings, record)
    if isinstance(verdict, Rewrite):
        return replace(ruled, call=replace(ruled.call, args=dict(verdict.args)), rulings=rulings)
    if isinstance(verdict, Ask) and ruled.verdict:
        return replace(ruled, rulings=rulings)
    return replace(ruled, verdict=verdict, rulings=rulings)


def _recorded(point: Point, interceptor: Any, trace: Trace, call: ToolCall, verdict: Verdict) -> HookRuled:
    return HookRuled(
        point=point,
        hook=name_of(interceptor),
        rule_class=rule_class(interceptor),
        verdict=type(verdict).__name__,
        reason=verdict.reason,
        step=trace.run.steps if trace.run else 0,
        call_uuid=call.call_uuid,
        payload={"args": dict(verdict.args)} if isinstance(verdict, Rewrite) else {},
        escape_key=verdict.escape_key if isinstance(verdict, Deny) else None,
        suggests=verdict.suggests if isinstance(verdict, Deny) else None,
    )


def name_of(interceptor: Any) -> str:
    """The name under which an interceptor's rulings are recorded."""
    return str(getattr(interceptor, "name", "") or type(interceptor).__name__)
