"""What happened: the one event vocabulary.

A *stored* event is a fact of the journal and has a `seq`; a *passing* one is shown to whoever watches and forgotten.
The stored shapes are a contract for ever: a field is never renamed or removed, a new one has a default, and an unknown
kind or field means that a newer version wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

from harness_core.errors import ModelErrorKind
from harness_core.frozen import freeze, shallow
from harness_core.hitl import HITLTask, StoredDecision
from harness_core.permissions.rule import PermissionRule
from harness_core.types import STRICT, Args, Inspection, Message, Outcome, RunStatus, ToolCall, Usage

NO_USAGE = Usage()
RECENT: Final = 64  # results that a run remembers by what they came to, so that somebody can see it go round in circles
RELEASE: Final = "release"  # the `via` of a decision that a rule made
RULINGS: Final = 64  # rulings that a run remembers; hooks count them, and a compression carries them


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The envelope. at: seconds since the epoch. seq: place in the journal, None for a passing event.

    key: unique in its session, or None: the store refuses the second fact with the same key.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    STORED: ClassVar[bool] = True

    session_id: str = ""
    run_id: str = ""
    at: float = 0.0
    seq: int | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Prompted(Event):
    """Somebody said something to the agent. sent_at sorts the inbox; ref names the message outside (its key).

    note: what the model is told beside the text, such as what came with it; an edit of the text leaves it.
    """

    text: str
    by: str = ""
    sent_at: float = 0.0
    files: tuple[str, ...] = ()
    ref: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class PromptAmended(Event):
    """A prompt was edited (text) or withdrawn (None) by its author. Counts only while no model request has held it."""

    ref: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class PromptHeard(Event):
    """What the model will hear of a prompt (its seq) that a hook ruled on. The original stays where it is."""

    prompt: int
    text: str


@dataclass(frozen=True, slots=True)
class RunStart(Event):
    """A run began, went on after decisions, or was taken over. Digests: of the policy, and of prompt and tools.

    Where a sub-agent begins: spent: seconds that the sessions that it works in had been worked on, the outermost first;
    rejected: what people had rejected there, as in Run; outside, outside_unpriced: what they had used until then.
    """

    run_id: str = ""
    attempt: int = 1
    resumed: bool = False
    requested_by: str = ""
    policy_digest: str = ""
    prompt_digest: str = ""
    spent: tuple[float, ...] = ()
    rejected: Mapping[str, str] = field(default_factory=dict)
    outside: Usage = NO_USAGE
    outside_unpriced: Usage = NO_USAGE

    def __post_init__(self) -> None:
        freeze(self, "rejected")


@dataclass(frozen=True, slots=True)
class ContextSize(Event):
    """How large the next model request is."""

    STORED: ClassVar[bool] = False
    messages: int
    tokens: int | None = None
    messages_before: int | None = None
    tokens_before: int | None = None
    counter: str = ""


@dataclass(frozen=True, slots=True)
class ReasonStart(Event):
    """A model request was sent. A new attempt voids the deltas before it."""

    STORED: ClassVar[bool] = False
    step: int
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ReasonDelta(Event):
    """A piece of the model's text."""

    STORED: ClassVar[bool] = False
    text: str


@dataclass(frozen=True, slots=True)
class ReasonEnd(Event):
    """The model's message, normalised. upto: the last fact that its request was built from. limit: the one that made
    this the last message of its run; its calls are not carried out.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE
    finish_reason: str = ""
    upto: int = 0
    step: int = 1
    attempt: int = 1
    limit: str = ""


@dataclass(frozen=True, slots=True)
class ModelFailed(Event):
    """A model request brought no message. upto: the last fact that it was built from. limit: see ReasonEnd.

    retry_after: seconds that the server asked us to wait.
    """

    kind: ModelErrorKind
    attempt: int
    step: int
    message: str = ""
    upto: int = 0
    retry_after: float | None = None
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Inspected(Event):
    """What a tool saw of the world for these arguments (args_digest) before anybody judged them."""

    call_uuid: str
    args_digest: str
    found: Inspection


@dataclass(frozen=True, slots=True)
class HookRuled(Event):
    """A hook ruled. Always appended together with the fact that it led to. upto: the last fact that the hook saw; 0 in
    older journals.
    """

    point: str
    hook: str
    rule_class: str
    verdict: str
    reason: str = ""
    step: int = 0
    call_uuid: str = ""
    payload: Args = field(default_factory=dict)
    escape_key: str | None = None
    suggests: str | None = None
    upto: int = 0

    def __post_init__(self) -> None:
        freeze(self, "payload")


@dataclass(frozen=True, slots=True)
class HITLPending(Event):
    """The run is suspended: these calls wait for a person."""

    tasks: tuple[HITLTask, ...]


@dataclass(frozen=True, slots=True)
class HITLVoted(Event):
    """One of several approvals that a rule wants. key: fingerprint and person."""

    fingerprint: str
    by: str
    decision: StoredDecision


@dataclass(frozen=True, slots=True)
class HITLSubmitted(Event):
    """A task was decided. key: the fingerprint, so the first one wins. via: a button, a word, a rule, the clock."""

    fingerprint: str
    decision: StoredDecision
    by: str = ""
    via: str = ""

    @property
    def released(self) -> bool:
        """A rule let the call run, no person."""
        return self.via == RELEASE


@dataclass(frozen=True, slots=True)
class HITLDecided(Event):
    """The decision as applied. Arguments: proposed by the model, approved by the person, effective for the tool."""

    call_id: str
    tool_name: str
    decision: StoredDecision
    by: str = ""
    comment: str = ""
    proposed: Args = field(default_factory=dict)
    approved: Args = field(default_factory=dict)
    effective: Args = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze(self, "proposed", "approved", "effective")

    @property
    def is_approved(self) -> bool:
        """The call runs."""
        return self.decision.action in ("approve", "rerun")

    @property
    def is_rejected(self) -> bool:
        """A person refused the call."""
        return self.decision.action == "reject"

    @property
    def is_skipped(self) -> bool:
        """The call is left out, and the run goes on."""
        return self.decision.action == "skip"


@dataclass(frozen=True, slots=True)
class RuleChanged(Event):
    """A permission rule was added or removed, by whom and why."""

    change: Literal["added", "removed"]
    rule: PermissionRule
    by: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class PolicyInForce(Event):
    """Another policy holds from here on in this run. In the journal `config:policies` each has its content, once."""

    digest: str
    content: Args = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze(self, "content")


@dataclass(frozen=True, slots=True)
class ActionStart(Event):
    """The calls of one model message begin to be carried out."""

    STORED: ClassVar[bool] = False
    step: int
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCallStart(Event):
    """A call is about to run with these effective arguments. Stored before the tool runs.

    child: the journal of the sub-agent that works on it; "" for a tool that does.
    """

    call: ToolCall
    args: Args | None = None
    child: str = ""

    def __post_init__(self) -> None:
        freeze(self, "args")

    @property
    def effective(self) -> Args:
        """What the tool gets."""
        return self.call.args if self.args is None else self.args


@dataclass(frozen=True, slots=True)
class ToolCallEnd(Event):
    """What came of a call, as the model reads it. Exactly one per call in the history.

    usage: of the sub-agent that worked on it; unpriced: of those of its requests whose cost nobody told. A sub-agent's
    call that people were asked about ends in its journal, and a copy in the session's. direct: it was carried out by a
    tool that declares its result to be the answer.
    """

    call_uuid: str
    content: str
    outcome: Outcome = "ok"
    seconds: float = 0.0
    usage: Usage = NO_USAGE
    unpriced: Usage = NO_USAGE
    direct: bool = False


@dataclass(frozen=True, slots=True)
class ActionEnd(Event):
    """Every call of the model message has its result."""

    STORED: ClassVar[bool] = False
    step: int
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class StopRequested(Event):
    """Somebody asked this run to stop."""

    run_id: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class RunEnd(Event):
    """A run, or with `pending` only this request, is over. limit: which one was reached. withdrawn: refs of prompts
    that a stop took back. upto: the last fact before what was stored with it; 0 in older journals.
    """

    status: RunStatus
    answer: str = ""
    limit: str = ""
    withdrawn: tuple[str, ...] = ()
    upto: int = 0

    @property
    def abnormal(self) -> bool:
        """Anything but completed."""
        return self.status != "completed"


# -- what a compression carries on -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """A call of this run that has its result, by what it was and what came of it. effect, result: digests."""

    __pydantic_config__: ClassVar[Any] = STRICT
    tool: str
    effect: str
    result: str
    outcome: Outcome
    step: int


@dataclass(frozen=True, slots=True)
class Ruling:
    """A ruling as a run remembers it; see HookRuled. at: seconds since the epoch."""

    __pydantic_config__: ClassVar[Any] = STRICT
    point: str
    hook: str
    verdict: str
    reason: str = ""
    step: int = 0
    call_uuid: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Refused:
    """How often a gate that guesses has refused for one key: in so many batches, last in that of `step`.

    effects: digests of what it was about, the newest ones; if one of them works out, that is progress.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    batches: int
    step: int
    effects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Halt:
    """A hook or a limit has ended the run, which is yet to be done. point: where it ruled."""

    __pydantic_config__: ClassVar[Any] = STRICT
    answer: str
    limit: str = ""
    point: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """The run that goes on. steps: model messages so far. failures: model requests that failed since the last message.

    takeovers: how often it was taken over since its last fact. rejected: effects that a person refused, and who.
    recent: the newest results. compressed: the fact that last compressed its context, 0 for none. futile: compressions
    in a row that left the context above its limits. heard: `steps` when a person last spoke. usage: of its model
    requests; unpriced: of those whose cost nobody told. calls: per tool, those that were started. succeeded: per tool,
    the step of the newest success. paths: real paths, and the tools that succeeded there. ruled: how often which hook
    ruled what ("finish Continue"); rulings: the newest ones. refused: what gates refused, by hook and escape key.
    progress: elapsed seconds when a tool last worked. paused: seconds in which nobody worked on it, since it waited for
    people or its process was gone; paused_at: since when it waits. halted: what has ended it, yet to be done.
    policy: the digest of the one that is known to be in force. direct: what tools brought to the last model message as
    the answer to it, "" where the model is to answer. spent, outside: of a sub-agent, see RunStart.
    Stored with each compression: a field is never renamed.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    run_id: str
    requested_by: str = ""
    attempt: int = 1
    began: int = 0
    began_at: float = 0.0
    steps: int = 0
    suspended: bool = False
    takeovers: int = 0
    failures: tuple[ModelFailed, ...] = ()
    last: ReasonEnd | None = None
    upto: int = 0
    stop: StopRequested | None = None
    rejected: Mapping[str, str] = field(default_factory=dict)
    recent: tuple[Done, ...] = ()
    compressed: int = 0
    futile: int = 0
    heard: int = 0
    usage: Usage = NO_USAGE
    unpriced: Usage = NO_USAGE
    calls: Mapping[str, int] = field(default_factory=dict)
    succeeded: Mapping[str, int] = field(default_factory=dict)
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ruled: Mapping[str, int] = field(default_factory=dict)
    rulings: tuple[Ruling, ...] = ()
    refused: Mapping[str, Refused] = field(default_factory=dict)
    progress: float = 0.0
    paused: float = 0.0
    paused_at: float = 0.0
    halted: Halt | None = None
    policy: str = ""
    direct: str = ""
    spent: tuple[float, ...] = ()
    outside: Usage = NO_USAGE
    outside_unpriced: Usage = NO_USAGE

    def __post_init__(self) -> None:
        for name in ("rejected", "calls", "succeeded", "paths", "ruled", "refused"):
            object.__setattr__(self, name, shallow(getattr(self, name)))

    @property
    def read_upto(self) -> int:
        """The last fact that its newest model request was built from; its beginning, where there was none."""
        return max(self.began, self.upto)

    def elapsed(self, now: float) -> float:
        """Seconds that this run has been worked on until now (seconds since the epoch)."""
        return max(0.0, (self.paused_at if self.suspended else now) - self.began_at - self.paused)


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a session is, but for its messages. Made by the fold, which begins with it when it does not read the rest.

    There is no open batch in it: nothing is compressed while a call has no result. notes, heard, runs: see Trace.
    edited: the seqs of prompts that were edited since the run last asked the model.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    inbox: tuple[Prompted, ...] = ()
    run: Run | None = None
    rules: tuple[PermissionRule, ...] = ()
    answer: str = ""
    usage: Usage = NO_USAGE
    unpriced: Usage = NO_USAGE
    notes: tuple[str, ...] = ()
    heard: tuple[int, ...] = ()
    runs: int = 0
    status: RunStatus | Literal[""] = ""
    edited: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextCompressed(Event):
    """Older messages were replaced; from here on this is the context. The facts before stay in the journal.

    kept_from: the first of the messages before that stays. messages: the whole context after; goal: where the current
    goal is in it. usage: of the summary. fits: whether it is within its limits now. tokens, counter: see ContextSize.
    upto: the last fact that its request was built from; 0 in older journals.
    """

    kept_from: int
    messages: tuple[Message, ...]
    ledger: Ledger
    why: str = ""
    goal: int | None = None
    usage: Usage = NO_USAGE
    fits: bool = True
    forced: int = 0
    messages_before: int = 0
    tokens_before: int = 0
    tokens: int = 0
    counter: str = ""
    upto: int = 0


FACTS: tuple[type[Event], ...] = (
    Prompted,
    PromptAmended,
    PromptHeard,
    RunStart,
    ReasonEnd,
    ModelFailed,
    Inspected,
    HookRuled,
    HITLPending,
    HITLVoted,
    HITLSubmitted,
    HITLDecided,
    RuleChanged,
    PolicyInForce,
    ToolCallStart,
    ToolCallEnd,
    ContextCompressed,
    StopRequested,
    RunEnd,
)
PASSING: tuple[type[Event], ...] = (ContextSize, ReasonStart, ReasonDelta, ActionStart, ActionEnd)
