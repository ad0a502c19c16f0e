"""Whether an interceptor can ever do its work, found before it is asked.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, Final

from harness_core.errors import ConfigError
from harness_core.hooks import ESCAPE_AFTER, name_of, rule_class
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.interceptors.function import misfit
from harness_core.interceptors.hitl import HITLInterceptor
from harness_core.interceptors.limits import Limits
from harness_core.interceptors.looping import StopLoop
from harness_core.verdicts import ACCEPTS, Point

ELSEWHERE: Final[Mapping[type[Any], str]] = {
    HITLInterceptor: "hitl_interceptor= of the engine",
    ContextCompressionInterceptor: "compression_interceptor= of the engine",
    Limits: "guards= of the engine",
    StopLoop: "guards= of the engine",
}


def fit(interceptor: Any) -> Any:
    """The interceptor. Raises ConfigError, with all that is wrong with it, if it can never work."""
    if isinstance(interceptor, FunctionType):  # which no point would ever ask
        raise ConfigError(f'{interceptor.__name__} is no hook yet: put @hook("before_tool"), say, before the function.')
    if isinstance(interceptor, type):
        raise ConfigError(f"{interceptor.__name__} is a class; an interceptor is an object of one.")
    if wrong := [*unfit(interceptor)]:
        raise ConfigError(f"The hook {name_of(interceptor)} cannot be used: {'; '.join(wrong)}.")
    if not points(interceptor):  # a misspelt method, say: what it is to forbid would run
        instead = next((f"; {at} takes it" for kind, at in ELSEWHERE.items() if isinstance(interceptor, kind)), "")
        raise ConfigError(f"{name_of(interceptor)} is asked at no point, it has none of {', '.join(ACCEPTS)}{instead}.")
    return interceptor


def points(interceptor: Any) -> Sequence[Point]:
    """The points at which it is to be asked."""
    return [point for point in ACCEPTS if callable(getattr(interceptor, point, None))]


def unfit(interceptor: Any) -> Iterable[str]:
    """What is wrong with it."""
    name = name_of(interceptor)
    try:
        rule_class(interceptor)
    except ConfigError as error:
        yield str(error).rstrip(".")
    if not isinstance(getattr(interceptor, "priority", 0), int):
        yield f"the priority of {name} is no whole number"
    after = getattr(interceptor, "escape_after", ESCAPE_AFTER)
    if not isinstance(after, int) or after < 1:
        yield f"the escape_after of {name} is no whole number above 0"
    for point in ACCEPTS:
        method = getattr(interceptor, point, None)
        if method is not None and not callable(method):
            yield f"{point} of {name} is no function"
    for point in points(interceptor):
        if wrong := misfit(getattr(interceptor, point), point):
            yield f"{point} of {name} {wrong}"
