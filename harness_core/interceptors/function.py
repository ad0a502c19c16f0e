"""A hook of one's own: a plain function at one point.  Pure; `@hook` makes an interceptor of it.

@hook("before_tool", rule_class="budget")
def at_most_six_searches(trace, call):
    if call.name == "search" and trace.run.calls.get("search", 0) >= 6:
        return Deny("Six searches are enough. Answer with what you have found.")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from harness_core.errors import ConfigError
from harness_core.hooks import ESCAPE_AFTER
from harness_core.verdicts import ACCEPTS, RULE_CLASSES, HookReject, Point, RuleClass, Verdict

# What a hook is handed at each point, beside the trace that comes first; hooks.py says what these are.
HANDED: Final[Mapping[Point, tuple[str, ...]]] = {
    "session_start": ("prompt",),
    "user_prompt": ("prompt",),
    "before_model": (),
    "model_error": ("failed",),
    "after_model": ("said",),
    "permission_request": ("call",),
    "before_tool": ("call",),
    "after_tool": ("call", "result"),
    "before_stop": ("answer",),
    "run_end": ("end",),
    "before_compress": ("plan",),
    "after_compress": ("compressed",),
    "subagent_start": ("call",),
    "subagent_end": ("call", "result"),
}

Function = Callable[..., Verdict | HookReject | None]


class FunctionHook:
    """An interceptor with one method, which is the function; it can still be called, in a test say."""

    def __init__(
        self,
        function: Function,
        point: Point,
        rule_class: RuleClass = "drift",
        priority: int = 0,
        demands: tuple[str, ...] = (),
        escape_after: int = ESCAPE_AFTER,
    ) -> None:
        self.name = function.__name__
        self.point = point
        self.rule_class = rule_class
        self.priority = priority
        self.demands = demands
        self.escape_after = escape_after
        self.__doc__ = function.__doc__
        self._function = function
        setattr(self, point, function)

    def __call__(self, *args: Any) -> Verdict | HookReject | None:
        """What the function rules."""
        return self._function(*args)


def hook(
    point: Point,
    *,
    rule_class: RuleClass = "drift",
    priority: int = 0,
    demands: Sequence[str] = (),
    escape_after: int = ESCAPE_AFTER,
) -> Callable[[Function], FunctionHook]:
    """Make a hook of the function below: it is asked at this point, and returns a verdict, or None to say nothing.

    rule_class: when it speaks; what one of class safety refuses, nobody escapes. priority: smaller speaks first in its
    class. demands: tools of which it may tell the model to call one, so that a rule which forbids them all is found at
    the start. escape_after: refused messages after which it is overruled, where it refuses with an escape_key. Its
    rulings are recorded under the function's name. Raises ConfigError for what can never work.
    """
    if callable(point):
        raise ConfigError('A hook must say at which point it is asked: @hook("before_tool"), say.')
    if point not in ACCEPTS:
        raise ConfigError(f"There is no hook point {point!r}; there are {', '.join(ACCEPTS)}.")
    if rule_class not in RULE_CLASSES:
        raise ConfigError(f"There is no rule class {rule_class!r}; there are {', '.join(RULE_CLASSES)}.")
    if not isinstance(priority, int):
        raise ConfigError(f"The priority of a hook must be a whole number, not {priority!r}.")
    if not isinstance(escape_after, int) or escape_after < 1:
        raise ConfigError(f"The escape_after of a hook must be a whole number above 0, not {escape_after!r}.")

    demanded = (demands,) if isinstance(demands, str) else tuple(demands)

    def made(function: Function) -> FunctionHook:
        if wrong := misfit(function, point) if inspect.isfunction(function) else "is no function":
            raise ConfigError(f"The hook {getattr(function, '__name__', function)!s} {wrong}.")
        return FunctionHook(function, point, rule_class, priority, demanded, escape_after)

    return made


def misfit(method: Callable[..., Any], point: Point) -> str:
    """Why this can never be asked at the point, or ""."""
    if inspect.iscoroutinefunction(method) or inspect.isgeneratorfunction(method):
        return "must be a plain function (def): it only decides, and whoever wants to do something subscribes to events"
    handed = ("trace", *HANDED[point])
    try:
        inspect.signature(method).bind(*handed)
    except (TypeError, ValueError):
        return f"must take ({', '.join(handed)}), which is what {point} hands it"
    return ""
