"""After a tool that ends the work, nothing else is done: the next message is the answer.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from harness_core.interceptors.fields import KNOWN_ONLY, Names
from harness_core.session import Trace
from harness_core.types import ToolCall
from harness_core.verdicts import Deny, RuleClass


@dataclass(frozen=True, slots=True)
class Terminal:
    """tools: once a call of one of these has succeeded, calls of later model messages are refused, until a person says
    something. Calls of the same message pass: otherwise it would depend on which of them was carried out first.
    """

    __pydantic_config__: ClassVar[Any] = KNOWN_ONLY
    rule_class: ClassVar[RuleClass] = "termination"
    name: ClassVar[str] = "terminal"
    tools: Names = ()

    def before_tool(self, trace: Trace, call: ToolCall) -> Deny | None:
        """Refuse what comes in a batch after the one that ended the work."""
        run = trace.run
        if run is None:
            return None
        over = [tool for tool in self.tools if run.heard < run.succeeded.get(tool, 0) < run.steps]
        if not over:
            return None
        return Deny(f"{over[0]} has ended the work, so nothing more is run. Answer now, without calling a tool.")
