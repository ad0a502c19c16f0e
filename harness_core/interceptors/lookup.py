"""Look before you change: a file that is there is read before it is changed.  Pure; an example of a domain rule.

It guesses (you may know the file from the conversation), so it can be escaped: whoever asks for the same file in a few
messages gets through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from harness_core.interceptors.fields import KNOWN_ONLY, Names
from harness_core.session import Trace
from harness_core.types import ABSENT, ToolCall
from harness_core.verdicts import Deny, RuleClass


@dataclass(frozen=True, slots=True)
class Lookup:
    """tools: those that change files. first: those of which one must have succeeded on the same file in this run; what
    the agent has written itself it knows.
    """

    __pydantic_config__: ClassVar[Any] = KNOWN_ONLY
    rule_class: ClassVar[RuleClass] = "drift"
    name: ClassVar[str] = "lookup"
    tools: Names = ("edit", "write")
    first: Names = ("read",)

    @property
    def needs(self) -> Mapping[str, Names]:
        """What is refused until something else has succeeded; see conflicts."""
        return dict.fromkeys(self.tools, self.first)

    def before_tool(self, trace: Trace, call: ToolCall) -> Deny | None:
        """Refuse to change what was not looked at. Before the tool has inspected the call there is nothing to judge."""
        state = trace.of(call.call_uuid)
        found = state.inspection(call.args) if state else None
        if call.name not in self.tools or trace.run is None or found is None or not found.paths:
            return None
        path = found.paths[0]
        known = {*self.tools, *self.first} & set(trace.run.paths.get(path, ()))
        if found.problem or ABSENT in found.digests or known or not self.first:
            return None
        how = " or ".join(self.first)
        return Deny(
            f"{path} is there already, and you have not looked at it in this run. Call {how} for it first, then change "
            "what is to be changed.",
            escape_key=f"lookup {path}",
            suggests=self.first[0],
        )
