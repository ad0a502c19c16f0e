"""How often a tool may be called in one run.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness_core.interceptors.fields import KNOWN_ONLY, CountOrNone, Name
from harness_core.session import Trace
from harness_core.types import ToolCall
from harness_core.verdicts import Deny, RuleClass


def _default() -> Mapping[str, int]:
    return {"webfetch": 30, "bash": 100}  # far above what a run of 20 steps needs, unless it has gone astray


@dataclass(frozen=True, slots=True)
class Caps:
    """per_run: tool to the number of its calls that are run in one run; those that were refused do not count."""

    __pydantic_config__: ClassVar[Any] = KNOWN_ONLY
    rule_class: ClassVar[RuleClass] = "budget"
    name: ClassVar[str] = "caps"
    per_run: Mapping[Name, CountOrNone] = field(default_factory=_default)

    @property
    def refuses(self) -> tuple[str, ...]:
        """The tools that are refused from the first call on; see conflicts."""
        return tuple(tool for tool, limit in self.per_run.items() if limit == 0)

    def before_tool(self, trace: Trace, call: ToolCall) -> Deny | None:
        """Refuse the call that would be one too many. A count is a fact, so nobody escapes it by asking again."""
        limit = self.per_run.get(call.name)
        if limit is None or trace.run is None or trace.run.calls.get(call.name, 0) + _ahead(trace, call) < limit:
            return None
        if limit == 0:
            return Deny(f"{call.name} is not to be used here. Go on without it, or say what you would need it for.")
        times = "once" if limit == 1 else f"{limit} times"
        return Deny(
            f"{call.name} may be called {times} in one run, and has been. Go on with what you have, or finish and say "
            "what is missing."
        )


def _ahead(trace: Trace, call: ToolCall) -> int:
    """Calls of the same tool that stand before this one in the open batch, and were run or may yet be."""
    count = 0
    for state in trace.batch:
        if state.call.call_uuid == call.call_uuid:
            return count
        count += state.call.name == call.name and (state.end is None or state.started is not None)
    return 0
