"""What there is to do, as values, and the policy that it rests on.  Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness_core.compression.plan import Plan
from harness_core.errors import ConfigError
from harness_core.events import NO_USAGE, Event, HITLDecided, HookRuled, Prompted, ToolCallEnd
from harness_core.given import positive, said
from harness_core.hitl import HITLTask
from harness_core.interceptors.compression import ContextCompressionInterceptor, Measure
from harness_core.permissions.judge import Gate
from harness_core.session import Trace
from harness_core.types import Args, RunStatus, ToolCall, Usage


@dataclass(frozen=True, slots=True)
class Expiry:
    """How long calls of a tool wait for a person, in seconds, and whether an expiry halts the run or is told."""

    seconds: float
    then: Literal["halt", "tell"] = "tell"

    def __post_init__(self) -> None:
        positive("The seconds of an expiry", self.seconds)
        if self.then not in ("halt", "tell"):
            raise ConfigError(f"What an expiry does is halt or tell, not {said(self.then)}.")


@dataclass(frozen=True, slots=True)
class Outset:
    """With what a sub-agent's run begins, as RunStart has it; nothing where there is no session that it works in."""

    spent: tuple[float, ...] = ()
    rejected: Mapping[str, str] = field(default_factory=dict)
    outside: Usage = NO_USAGE
    outside_unpriced: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class Policy:
    """All that a step rests on, beside the trace. can_ask: approvals are on, and the agent has the tool `hitl`.

    max_steps: model messages per run. max_seconds: that a run may be worked on; waiting for people is not charged.
    model_attempts: of one model request. expiries: per tool; none waits for ever.
    measure: how large requests are; without it, or without compression, no context is compressed.
    delegate: the tool that hands work to sub-agents, or "". children: those at work, by their journals. outset: with
    what a run is to begin; then what is on record counts.
    """

    gate: Gate = field(default_factory=Gate)
    can_ask: bool = True
    max_steps: int = 20
    max_seconds: float = math.inf
    model_attempts: int = 3
    expiries: Mapping[str, Expiry] = field(default_factory=dict)
    agent: str = ""
    digest: str = ""
    prompt_digest: str = ""
    compression: ContextCompressionInterceptor | None = None
    measure: Measure | None = None
    delegate: str = ""
    children: Mapping[str, Child] = field(default_factory=dict)
    outset: Outset = Outset()


@dataclass(frozen=True, slots=True)
class Child:
    """A sub-agent as it is now, and what it would do next. problem: why it cannot go on, or ""."""

    trace: Trace
    step: Step
    problem: str = ""


# -- what to do --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin a run for the oldest prompt. facts: what hooks ruled on it, and what came of that."""

    prompt: Prompted
    facts: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Hear:
    """Record what the model will hear of prompts that hooks ruled on."""

    facts: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """Ask the model. rulings: what they tell it goes with this request. limit: the one that made this the last request
    of its run.
    """

    step: int
    attempt: int
    rulings: tuple[HookRuled, ...] = ()
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Compress:
    """Replace older messages of the context, before the model is asked (again)."""

    plan: Plan
    rulings: tuple[HookRuled, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """Let tools look at the world, for these calls with these arguments."""

    at: tuple[tuple[ToolCall, Args], ...]


@dataclass(frozen=True, slots=True)
class Settle:
    """Record what rules or the clock decide about waiting calls. The run may go on resting."""

    facts: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Suspend:
    """Put these calls to a person."""

    tasks: tuple[HITLTask, ...]
    rulings: tuple[HookRuled, ...] = ()


@dataclass(frozen=True, slots=True)
class Apply:
    """Record the decisions as they take effect. approvals: (tool, arguments) of those that said *always allow*."""

    facts: tuple[HITLDecided, ...]
    approvals: tuple[tuple[str, Args], ...] = ()


@dataclass(frozen=True, slots=True)
class Cleared:
    """A call that may run: the arguments that the tool gets, and the line that tells the model of an edit."""

    call: ToolCall
    args: Args
    note: str = ""
    rulings: tuple[HookRuled, ...] = ()


@dataclass(frozen=True, slots=True)
class Act:
    """Run these calls: one, or neighbours that are all repeatable, which may run at the same time.

    rulings: on all calls of the batch, where these are the first of it to start.
    """

    cleared: tuple[Cleared, ...]
    rulings: tuple[HookRuled, ...] = ()


@dataclass(frozen=True, slots=True)
class Delegate:
    """Hand a call to a sub-agent. child: the journal that it will write."""

    cleared: Cleared
    child: str
    rulings: tuple[HookRuled, ...] = ()


@dataclass(frozen=True, slots=True)
class Within:
    """Do what a sub-agent would do next, in its journal."""

    child: str
    step: Step


@dataclass(frozen=True, slots=True)
class Tell:
    """Hand down to a sub-agent what was decided about its calls, or a stop."""

    child: str
    facts: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Record in the session what came of a sub-agent's calls that people were asked about."""

    facts: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Close:
    """Give a call its result without running it."""

    call: ToolCall
    end: ToolCallEnd
    rulings: tuple[HookRuled, ...] = ()


@dataclass(frozen=True, slots=True)
class End:
    """End the run. ends: results of the calls that it leaves open. quiet: the results are stored, not streamed."""

    status: RunStatus
    answer: str = ""
    limit: str = ""
    ends: tuple[ToolCallEnd, ...] = ()
    withdrawn: tuple[str, ...] = ()
    quiet: bool = False
    rulings: tuple[HookRuled, ...] = ()


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do until a fact comes, or until this moment (seconds since the epoch)."""

    until: float | None = None


Step = (
    Begin
    | Hear
    | Reason
    | Compress
    | Look
    | Settle
    | Suspend
    | Apply
    | Act
    | Delegate
    | Within
    | Tell
    | Report
    | Close
    | End
    | Rest
)
