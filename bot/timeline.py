"""What happened in a session, fact by fact, as lines for people.  Pure; untrusted text is masked and made visible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from bot.shown import one_line, shown_args, shown_line
from harness_core.conflicts import fights, moves_of
from harness_core.events import (
    ContextCompressed,
    Event,
    HITLDecided,
    HITLPending,
    HITLSubmitted,
    HITLVoted,
    HookRuled,
    Inspected,
    ModelFailed,
    PolicyInForce,
    PromptAmended,
    Prompted,
    PromptHeard,
    ReasonEnd,
    RuleChanged,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import HITLTask, StoredDecision
from harness_core.types import Args, ToolCall

TEXT: Final = 160  # characters of what somebody wrote, on one line
ARGS: Final = 120


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened. at: seconds since the epoch. step: of the run, None outside of its steps."""

    seq: int
    at: float
    step: int | None
    text: str

    def __str__(self) -> str:
        step = "" if self.step is None else str(self.step)
        return f"{self.seq:>5}  {clock(self.at)}  {step:>4}  {self.text}"


def clock(at: float) -> str:
    """The time of day, UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def moment(at: float) -> str:
    """Day and time, UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def called(tool: str, args: Args) -> str:
    """A call on one line."""
    return f"{shown_line(tool, 60)} {_args(args)}"


def _args(args: Args) -> str:
    return one_line(shown_args(args).text, ARGS)


def timeline(facts: Iterable[Event]) -> Iterator[Line]:
    """A line per thing that happened, in order. Calls are named by their tool and the end of their id."""
    facts, told = tuple(facts), _Told()
    quarrels = fights(moves_of(facts))
    for fact in facts:
        for text in told.texts(fact):
            yield Line(fact.seq or 0, fact.at, told.step, text)
        for fight in quarrels:
            if fight.seq == fact.seq:
                yield Line(fight.seq, fact.at, told.step, f"CONFLICT: {shown_line(str(fight), 2 * TEXT)}")


class _Told:
    """What lines refer to: the step of the run, and calls and tasks by their ids."""

    def __init__(self) -> None:
        self.step: int | None = None
        self._calls: dict[str, ToolCall] = {}
        self._tasks: dict[str, HITLTask] = {}
        self._agents: dict[str, str] = {}  # whose call it is, if it is a sub-agent's
        self._answer = ""  # what the model said last

    def texts(self, fact: Event) -> Iterator[str]:
        match fact:
            case RunStart(resumed=False):
                self.step = 0
            case ReasonEnd():
                self.step, self._answer = fact.step, fact.text
                self._calls.update((call.call_uuid, call) for call in fact.calls)
            case HITLPending():
                self._tasks.update((task.fingerprint, task) for task in fact.tasks)
                for task in fact.tasks:
                    self._calls.setdefault(task.call_uuid, ToolCall(task.call_uuid, task.tool_name, task.args))
                    if task.session:
                        self._agents[task.call_uuid] = shown_line(task.agent, 60)
        yield from self._said(fact)
        if isinstance(fact, RunEnd):
            self.step = None

    def _said(self, fact: Event) -> Iterator[str]:
        match fact:
            case Prompted(by=by, text=text):
                yield f"{_who(by)} said: {shown_line(text, TEXT)}"
            case PromptAmended(text=None):
                yield "the author took a message back"
            case PromptAmended(text=str(text)):
                yield f"the author changed a message to: {shown_line(text, TEXT)}"
            case PromptHeard(prompt=prompt, text=text):
                yield f"the model hears message {prompt} as: {shown_line(text, TEXT)}"
            case RunStart(run_id=run, resumed=False, requested_by=by):
                yield f"run {run} began, asked for by {_who(by)}"
            case RunStart(run_id=run, attempt=attempt):
                yield f"run {run} goes on" + (f", taken over (attempt {attempt})" if attempt > 1 else "")
            case ReasonEnd():
                yield from self._reasoned(fact)
            case ModelFailed(kind=kind, message=message):
                yield f"the model failed ({kind}), attempt {fact.attempt}: {shown_line(message, TEXT)}"
            case Inspected(call_uuid=uuid, found=found):
                yield f"what {self._name(uuid)} would touch was looked up" + (
                    f": {shown_line(found.problem, TEXT)}" * bool(found.problem)
                )
            case HookRuled():
                yield ruling(fact, self._name(fact.call_uuid) if fact.call_uuid else "")
            case HITLPending(tasks=tasks):
                for task in tasks:
                    name, why = self._name(task.call_uuid), shown_line(task.comment, TEXT)
                    yield f"{name} waits for a person, #{task.short_id}: {why}"
            case HITLVoted(fingerprint=shown, by=by, decision=decision):
                yield f"#{shown[:6]}: {_who(by)} votes to {decision.action}"
            case HITLSubmitted(fingerprint=shown, by=by, via=via, decision=decision):
                yield f"#{shown[:6]}: {_decision(decision)} by {_who(by)}" + (f", via {via}" if via else "")
            case HITLDecided(proposed=proposed, effective=effective) if proposed != effective:
                yield f"{self._name(fact.call_id)} was changed by {_who(fact.by)} to: {_args(effective)}"
            case ToolCallStart(call=call, child=child) if child:
                agent = shown_line(str(fact.effective.get("agent", "")), 60)
                yield f"{self._name(call.call_uuid)} is handed to {agent}, in {shown_line(child, 200)}"
            case ToolCallStart(call=call):
                yield f"{self._name(call.call_uuid)} runs"
            case ToolCallEnd(call_uuid=uuid, outcome=outcome, content=content, seconds=seconds):
                took = f" after {seconds:.1f} s" if seconds else ""
                yield f"{self._name(uuid)} ended {outcome}{took}: {shown_line(content, TEXT)}"
            case RuleChanged(change=change, rule=rule, by=by, why=why):
                reason = f": {shown_line(why, TEXT)}" if why else ""
                yield f"rule #{rule.id} {change} by {_who(by)} ({shown_line(str(rule), ARGS)}){reason}"
            case PolicyInForce(digest=digest):
                yield f"other settings hold from here on (policy {digest[:6]})"
            case ContextCompressed(why=why):
                sizes = f"from {fact.tokens_before:,} to {fact.tokens:,} tokens"
                yield f"the context was shortened {sizes}: {shown_line(why, TEXT)}"
            case StopRequested(by=by):
                yield f"{_who(by)} asked to stop"
            case RunEnd(status=status, answer=answer, limit=limit):
                why = f" at the limit {limit}" if limit else ""
                told = shown_line(answer, TEXT) or "(no answer)"
                yield f"run {fact.run_id} ended: {status}{why}" + (f": {told}" if answer != self._answer else "")

    def _reasoned(self, fact: ReasonEnd) -> Iterator[str]:
        if fact.text.strip() or not fact.calls:
            yield f"the model said: {shown_line(fact.text, TEXT) or '(nothing)'}"
        for call in fact.calls:
            problem = f" (unusable: {shown_line(call.problem, TEXT)})" if call.problem else ""
            yield f"the model calls {self._name(call.call_uuid)}: {_args(call.args)}{problem}"

    def _name(self, uuid: str) -> str:
        """A call, told apart from its siblings by the end of its id."""
        call = self._calls.get(uuid)
        short = uuid.partition("-")[2] or uuid
        whose = f"{self._agents[uuid]}'s " if uuid in self._agents else ""
        return f"{whose}{shown_line(call.name, 60)} ({short})" if call else f"call {short}"


def ruling(fact: HookRuled, about: str = "") -> str:
    """What a hook ruled, in a line."""
    where = f"{fact.point}, {about}" if about else fact.point
    why = f": {shown_line(fact.reason, TEXT)}" if fact.reason else ""
    told = f" (do {shown_line(fact.suggests, 60)})" if fact.suggests else ""
    return f"hook {shown_line(fact.hook, 60)} [{fact.rule_class}] at {where}: {fact.verdict}{why}{told}"


_DECISIONS: Final[Mapping[str, str]] = {
    "approve": "approved",
    "reject": "rejected",
    "skip": "skipped",
    "rerun": "to be run again",
    "happened": "said to have happened",
    "expired": "expired",
}


def _decision(decision: StoredDecision) -> str:
    said = getattr(decision, "comment", None) or getattr(decision, "result", None) or ""
    always = " for good" if getattr(decision, "always_allow", False) else ""
    return _DECISIONS[decision.action] + always + (f" ({shown_line(said, TEXT)})" if said else "")


def _who(by: str) -> str:
    return shown_line(by, 60) or "nobody named"
