"""What the model reads about a call that a person, a rule or the clock decided.  Pure.

Each text says what happened, who decided, and whether anything ran; the model must never take one outcome for another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from harness_core.events import HITLSubmitted, ToolCallEnd
from harness_core.hitl import Expired, Happened, Reject, Skip, TaskKind
from harness_core.types import Args, Outcome, RunStatus, ToolCall, canonical

_EDITED: Final = re.compile(
    r"\[(?P<by>[^\n]*?) changed the arguments before approving; it was run with (?P<args>\{[^\n]*\})\]\n"
)


def who(by: str) -> str:
    """A name for the sentence, also where nobody is named."""
    return by or "a person"


def rejection(comment: str | None, by: str) -> str:
    """The reviewer's comment, or a default that names who."""
    return (comment or "").strip() or f"Rejected by {who(by)}."


def decided_end(
    call: ToolCall, submitted: HITLSubmitted, kind: TaskKind = "approve", note: str = ""
) -> ToolCallEnd | None:
    """The result of a call that its decision ends without running; None if the decision lets it run.

    kind: "unknown" for a call that had been started, so that nobody can say that it was not run. note: see edited_note.
    """
    if kind == "unknown":
        return _unseen_end(call, submitted, note)
    by = who(submitted.by)
    match submitted.decision:
        case Reject(comment=comment):
            return _end(call, f"Rejected by {by}. The call was not run.{_said(comment, 'Reason')}", "rejected")
        case Skip(comment=comment, done=True):
            came = _said(comment, "What came of it") or " They did not say what came of it."
            return _end(call, f"Done by hand by {by}; the tool itself was not run.{came}", "skipped")
        case Skip(comment=comment):
            return _end(call, f"Left out by {by}; nothing was done.{_said(comment)}", "skipped")
        case Expired():
            text = "Nobody decided in time, so this call expired. It was not run, and nobody rejected it."
            return _end(call, text, "expired")
        case _:
            return None


def _unseen_end(call: ToolCall, submitted: HITLSubmitted, note: str) -> ToolCallEnd | None:
    by = who(submitted.by)
    match submitted.decision:
        case Reject(comment=comment):
            text = f"{note}Rejected by {by}: it is not to be run again. {_MAYBE}{_said(comment)}"
            return _end(call, text, "rejected")
        case Skip(comment=comment, done=True):
            text = f"{note}Seen to by hand by {by}, after it had been started by the tool.{_said(comment)}"
            return _end(call, text, "skipped")
        case Skip(comment=comment):
            return _end(call, f"{note}Left as it is by {by}. {_MAYBE}{_said(comment)}", "skipped")
        case Happened(result=result):
            text = f"{note}It had happened already, says {by}."
            return _end(call, text + (f" What came of it: {result}" if result else ""), "ok")
        case Expired():
            return _end(call, f"{note}Nobody said in time what came of this call. {_MAYBE}", "expired")
        case _:
            return None


_MAYBE: Final = "It was started before, and may or may not have happened: check before you build on it."


def _said(comment: str | None, what: str = "They said") -> str:
    said = (comment or "").strip()
    return f" {what}: {said}" if said else ""


def edited_note(by: str, args: Args) -> str:
    """The line that tells the model which arguments an edited call was run with."""
    return f"[{who(by)} changed the arguments before approving; it was run with {canonical(args)}]\n"


def read_edited_note(content: str) -> tuple[str, Args, str] | None:
    """(who, the arguments it was run with, the rest) of a result that begins with an edited_note; None for others."""
    found = _EDITED.match(content)
    if found is None:
        return None
    try:
        args = json.loads(found["args"])
    except (ValueError, RecursionError):  # somebody else's text that only looks like ours
        return None
    return (found["by"], args, content[found.end() :]) if isinstance(args, dict) else None


def denied(call: ToolCall, reason: str) -> ToolCallEnd:
    """Refused by a rule or a hook."""
    return _end(call, f"Denied: {reason}", "denied")


def nobody_to_ask(call: ToolCall, reason: str) -> ToolCallEnd:
    """It would have to ask, and approvals are off."""
    text = f"Denied: {reason}, and approvals are off, so nobody can be asked. Only an allow rule lets it run."
    return _end(call, text, "denied")


def rejected_again(call: ToolCall, by: str) -> ToolCallEnd:
    """The same effect was rejected in this run."""
    text = f"{who(by)} has rejected exactly this before. It was not run, and nobody was asked again. Do something else."
    return _end(call, text, "rejected")


def last_turn(answer: str) -> str:
    """What the model is told when a limit has ended its run, and it has one message left."""
    return (
        f"[{answer} This was written by the harness, not by a person. You have one last message, and calls in it are "
        "not carried out. Say what you have found so far, and what is still missing.]"
    )


def unusable(call: ToolCall, problem: str) -> ToolCallEnd:
    """The call cannot work as it stands."""
    return _end(call, problem, "error")


def no_such_tool(call: ToolCall, names: Iterable[str]) -> ToolCallEnd:
    """The model named a tool that is not there."""
    return _end(call, f"There is no tool “{call.name[:80]}”. There are: {', '.join(names)}.", "error")


def unknown(call: ToolCall, why: str = "the process ended while it ran") -> ToolCallEnd:
    """Started, and nobody saw the end."""
    return _end(
        call, f"Unknown outcome: {why}. It may or may not have happened; check before you repeat it.", "unknown"
    )


def not_run(call: ToolCall, why: str) -> ToolCallEnd:
    """Never started."""
    return _end(call, f"Not run: {why}.", "not_run")


# -- sub-agents --------------------------------------------------------------------------------------------------------


def answered(call: ToolCall, agent: str, status: RunStatus, answer: str) -> ToolCallEnd:
    """What a sub-agent came to. Only one that came to its end has an answer that is one."""
    said = answer.strip()
    if status == "completed":
        return _end(call, said or "(It ended without an answer.)", "ok")
    if status == "rejected":
        return _end(
            call, f"The agent {agent} did not finish: a person rejected a call of its, and said: {said}", "error"
        )
    return _end(call, f"The agent {agent} did not finish. {said}", "error")


def child_left(call: ToolCall, why: str = "the run ended") -> ToolCallEnd:
    """The run ended while a sub-agent worked."""
    return _end(call, f"The agent did not finish: {why} while it worked.", "error")


def given_up(call: ToolCall, why: str) -> ToolCallEnd:
    """A sub-agent that cannot go on."""
    return _end(call, f"The agent cannot go on: {why}. Nothing was done anew; look at what it may have done.", "error")


CHANGED: Final = "what it rests on has changed since it was shown. Look again, then ask anew"


def _end(call: ToolCall, content: str, outcome: Outcome) -> ToolCallEnd:
    return ToolCallEnd(call.call_uuid, content, outcome)
