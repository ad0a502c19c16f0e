"""The message that stands for older ones: what they came to, and which calls were made already.  Pure.

The calls are listed by us and not by a model: what a summary forgets to mention would be done a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness_core.compression.shape import Count, fitted, groups, without_empty
from harness_core.types import Message, ToolCall, canonical

HEAD: Final = (
    "[Summary of the conversation so far, in place of its older messages. "
    "It was written by the harness, not by a person.]"
)
DONE: Final = "[Calls that were made already. Their results stand: do not make them again to get on.]"
EARLIER: Final = "- (earlier ones are not listed)"

ARGS_SHOWN: Final = 160  # characters of a call's arguments in its line
RESULT_SHOWN: Final = 120  # characters of its result


def note(text: str, replaced: Sequence[Message], budget: int, count: Count) -> Message | None:
    """What stands for `replaced`, in about `budget` tokens: a summary's text, and every call that they hold or list.

    None if there is nothing to say, or no room to say it.
    """
    lines = done(replaced)
    budget -= count(HEAD) + 8
    if budget < 1 or not (text.strip() or lines):
        return None
    listed = _listed(lines, budget // 2 if text.strip() else budget, count)
    text = fitted(text.strip(), budget - count(listed), count)
    return Message("user", without_empty((HEAD, text, listed)), summary=True)


def told(messages: Sequence[Message]) -> str:
    """What the summaries among these messages say, without their lists of calls."""
    return without_empty(m.content.removeprefix(HEAD).partition(DONE)[0].strip() for m in messages if m.summary)


def done(messages: Sequence[Message]) -> tuple[str, ...]:
    """A line for each call in these messages, oldest first; those that an older summary lists are among them."""
    lines: list[str] = []
    for group in groups(messages):
        first, *rest = (messages[at] for at in group)
        if first.summary:
            lines += [line for line in first.content.partition(DONE)[2].splitlines() if line.startswith("- ")]
        results = {result.call_uuid: result.content for result in rest}
        lines += [_line(call, results.get(call.call_uuid, "")) for call in first.calls]
    return tuple(lines)


def _line(call: ToolCall, result: str) -> str:
    return f"- {_short(call.name, 80)} {_short(canonical(call.args), ARGS_SHOWN)} → {_short(result, RESULT_SHOWN)}"


def _short(text: str, length: int) -> str:
    one_line = " ".join(text[: 4 * length].split())
    return one_line if len(one_line) <= length else one_line[: length - 1] + "…"


def _listed(lines: Sequence[str], budget: int, count: Count) -> str:
    """As many of the newest lines as there is room for."""
    if not lines:
        return ""
    budget -= count(DONE) + count(EARLIER) + 4
    kept: list[str] = []
    for line in reversed(lines):
        budget -= count(line) + 1
        if budget < 0:
            kept.append(EARLIER)
            break
        if line != EARLIER:
            kept.append(line)
    if EARLIER in lines and EARLIER not in kept:
        kept.append(EARLIER)
    return "\n".join((DONE, *reversed(kept))) if kept != [EARLIER] else ""
