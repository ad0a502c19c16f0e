"""A run is not over while nothing has been said or done: the model is asked once more.  Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from harness_core.events import Run
from harness_core.interceptors.fields import HARNESS, KNOWN_ONLY, Count, Names
from harness_core.session import Trace
from harness_core.verdicts import Continue, RuleClass


@dataclass(frozen=True, slots=True)
class Finish:
    """nudges: how often in one run the model is asked to go on, at most; each empty end is answered once. requires:
    tools of which one must have succeeded before the run may end.
    """

    __pydantic_config__: ClassVar[Any] = KNOWN_ONLY
    rule_class: ClassVar[RuleClass] = "termination"
    name: ClassVar[str] = "finish"
    nudges: Count = 2
    requires: Names = ()

    @property
    def demands(self) -> Names:
        """The tools of which the model is told to call one; see conflicts."""
        return self.requires

    def before_stop(self, trace: Trace, answer: str) -> Continue | None:
        """Ask again if the answer is empty, only promises, or comes before what has to be done."""
        run = trace.run
        if run is None or run.ruled.get(f"{self.name} Continue", 0) >= self.nudges:
            return None
        if not answer.strip():
            return Continue(_EMPTY, "the answer is empty")
        if self.requires and not set(self.requires) & set(run.succeeded):
            tools = " or ".join(self.requires)
            return Continue(_REQUIRED.format(tools=tools), f"{tools} was not called", self.requires[0])
        if _nothing_done(run) and promises(answer):
            return Continue(_PROMISE, "the answer only says what would be done next")
        return None


def _nothing_done(run: Run) -> bool:
    return not run.calls and not run.recent


def promises(answer: str) -> bool:
    """Whether the answer ends by saying what the writer is about to do, without waiting for anybody."""
    last = re.split(r"(?<=[.!?。！])\s+|\n+", answer.strip()[-_LAST:].rstrip(" .…:!。！"))[-1]
    return bool(_PROMISES.search(last)) and not _WAITS.search(last)


_LAST: Final = 400  # characters in which the last sentence is sought
_ACTS: Final = (
    "check|look|read|search|run|open|find|fetch|list|inspect|examine|review|edit|write|create|update|fix|start|begin|use|"
    "call|execute|explore|investigate|get|take a look|analy[sz]e"
)
_PROMISES: Final = re.compile(
    rf"\b(?:I['’]ll|I will|let me|I['’]m going to|I am going to)\s+(?:(?:now|first|just|quickly|also)\s+)*(?:{_ACTS})\b"
    r"|(?:让我|我将|我会|我来|我先)\S{0,12}(?:查|看|读|搜|找|运行|执行|检查|修改|写)",
    re.IGNORECASE,
)
_WAITS: Final = re.compile(r"\b(?:if|once|when|unless|until|as soon as|after|before)\b|如果|之后|等", re.IGNORECASE)

_EMPTY: Final = (
    f"{HARNESS} Your last message was empty. If there is something left to do, do it now by calling a tool. "
    "Otherwise write your answer: what you did, what you found, and what is open."
)
_PROMISE: Final = (
    f"{HARNESS} Your last message says what you are about to do, but calls no tool, so "
    "nothing happens. Call the tool now. If nothing is to be done, write your answer."
)
_REQUIRED: Final = (
    f"{HARNESS} This is not finished before {{tools}} has been called with success. Call it "
    "now, or say why that cannot be done."
)
