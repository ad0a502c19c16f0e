"""Allow, ask or deny one call: the levels of the gate, in the order in which they speak.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, TypeVar

from harness_core.calls import valid_text
from harness_core.events import HookRuled
from harness_core.hooks import LATE, Ask, Deny, Ruled, run_point
from harness_core.permissions.book import Book, book
from harness_core.permissions.defaults import unruled, world_of
from harness_core.permissions.paths import World
from harness_core.permissions.rule import Effect, PermissionRule
from harness_core.permissions.rules import people_wanted, speaking
from harness_core.session import Trace
from harness_core.types import Args, Inspection, ToolCall, same

T = TypeVar("T")

UNCHECKED: Final = "The tool failed to check these arguments, so the call was not run."

# Who spoke: the levels in the order in which they do.
Level = Literal["hook", "deny rule", "ask rule", "allow rule", "strategy", "default"]


class Stance(Protocol):
    """What a tool says of its calls without touching the world."""

    @property
    def inspects(self) -> bool:
        """Whether judging needs what `inspect` sees."""

    def check(self, args: Args) -> str:
        """Why the arguments do not fit, or ""."""

    def read_only(self, args: Args) -> bool:
        """The call only reads inside the workspace."""

    def repeatable(self, args: Args) -> bool:
        """The call may run again."""

    def subject(self, args: Args) -> str:
        """What its rules match."""


class HITLStrategy(Protocol):
    """Decides whether a call of one tool is put to a person. A plain callable (trace, args) is a strategy too."""

    def evaluate(self, trace: Trace, args: Args) -> str | None:
        """The reason to ask, or None to let the call run."""


Strategy = HITLStrategy | Callable[[Trace, Args], str | None]


# What the tool saw of the world for these arguments; None where it has not looked.
Seen = Callable[[Args], Inspection | None]


@dataclass(frozen=True, slots=True)
class Gate:
    """All that a verdict rests on, beside the trace. workspace, home: real absolute paths.

    whys: why somebody made a rule, in their words, by its id.
    """

    tools: Mapping[str, Stance] = field(default_factory=dict)
    rules: tuple[PermissionRule, ...] = ()
    hooks: tuple[Any, ...] = ()
    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    workspace: str = "/-/workspace"
    home: str = "/-/home"
    whys: Mapping[str, str] = field(default_factory=dict)

    def because(self, rule: PermissionRule) -> str:
        """Why a rule was made, to be put behind what it says; "" where nobody told."""
        why = self.whys.get(rule.id, "").strip().rstrip(".")
        return f" ({valid_text(why)})" if why else ""

    def book(self, trace: Trace, tool: str) -> Book:
        """The rules that speak of a tool, with those of the session."""
        return book((*self.rules, *trace.rules), tool)

    def world(self, found: Inspection | None) -> World:
        """What rules and defaults know beyond the call."""
        return world_of(self.workspace, self.home, found)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on one call: the arguments that it is about, why, and who spoke.

    may_always: whether an allow rule for exactly this call would have let it run. level: who spoke; a hook may speak
    at either of the first two levels. people: how many must approve what is asked about.
    """

    effect: Effect
    args: Args
    reason: str = ""
    rule: PermissionRule | None = None
    rulings: tuple[HookRuled, ...] = ()
    may_always: bool = False
    level: Level = "default"
    people: int = 1


def says(question: Callable[[Args], T], args: Args, otherwise: T) -> T:
    """What a tool says of its call; the cautious answer if it fails to say, since its fault is no permission."""
    try:
        return question(args)
    except KeyboardInterrupt:
        raise
    except BaseException:  # it only decides, so an exit is a fault of its, too
        return otherwise


def agrees(question: Callable[[Args], bool], args: Args) -> bool:
    """Whether a tool says yes of its call. What is neither yes nor no, such as a coroutine, is no."""
    said: object = says(question, args, False)
    return said is True


def misfit(tool: Stance, args: Args) -> str:
    """Why the arguments do not fit the tool, or "". That it fails to say so is no leave to run it."""
    said: object = says(tool.check, args, UNCHECKED)
    return valid_text(said if isinstance(said, str) else UNCHECKED)


def judge(gate: Gate, trace: Trace, call: ToolCall, seen: Seen) -> Judgement:
    """The first level that speaks decides: refusing hooks and deny rules; asking hooks and ask rules; allow rules;
    strategies; the default (what only reads inside the workspace runs, everything else asks).

    Order and priority never matter between effects. Whatever is unclear asks.
    """
    ruled = run_point("before_tool", gate.hooks, trace, call)
    try:
        verdict = _levels(gate, trace, ruled.value, ruled, seen)
    except Exception as error:  # a fault of the gate is no permission, and must not end the session either
        verdict = Judgement("ask", ruled.value.args, f"the call could not be judged ({type(error).__name__})")
    verdict = replace(verdict, rulings=ruled.rulings) if ruled.rulings else verdict
    if verdict.effect == "ask":
        verdict = _about_to_ask(gate, trace, ruled.value, verdict, seen)
    people = people_for(gate, trace, call.given(verdict.args), seen) if verdict.effect == "ask" else 1
    return verdict if people == 1 else replace(verdict, people=people)


def people_for(gate: Gate, trace: Trace, call: ToolCall, seen: Seen) -> int:
    """How many must approve a call with exactly these arguments, if it is asked about."""
    try:
        return people_wanted(gate.book(trace, call.name), call.args, gate.world(seen(call.args)))
    except Exception:  # what cannot be judged wants as many people as any call
        return max((rule.people for rule in (*gate.rules, *trace.rules)), default=1)


def refusal(gate: Gate, trace: Trace, call: ToolCall, seen: Seen) -> Judgement | None:
    """What still counts against a call that was decided: a deny rule or a refusing hook."""
    verdict = last_look(gate, trace, call, seen)
    return verdict if verdict.effect == "deny" else None


def last_look(gate: Gate, trace: Trace, call: ToolCall, seen: Seen) -> Judgement:
    """Deny or allow a call that was let run with these arguments before: by now only a refusal counts. What hooks would
    ask or rewrite comes too late; rulings: of those that would rewrite, or refuse.
    """
    ruled = run_point("before_tool", gate.hooks, trace, call, late=True)
    if isinstance(ruled.verdict, Deny):
        return Judgement("deny", call.args, ruled.verdict.reason, rulings=ruled.rulings, level="hook")
    if rule := speaking(gate.book(trace, call.name), "deny", call.args, gate.world(seen(call.args))):
        return _denied(gate, call, rule)
    too_late = tuple(ruling for ruling in ruled.rulings if LATE in ruling.payload)
    return Judgement("allow", call.args, rulings=too_late)


def _levels(gate: Gate, trace: Trace, call: ToolCall, ruled: Ruled, seen: Seen) -> Judgement:
    args, hook = call.args, ruled.verdict
    if isinstance(hook, Deny):
        return Judgement("deny", args, hook.reason, level="hook")
    rules, found = gate.book(trace, call.name), seen(args)
    world = gate.world(found)
    if rule := speaking(rules, "deny", args, world):
        return _denied(gate, call, rule)
    if isinstance(hook, Ask):
        return Judgement("ask", args, hook.reason, level="hook")
    if rule := speaking(rules, "ask", args, world):
        return Judgement("ask", args, f"the rule “{rule}” asks{gate.because(rule)}", rule, level="ask rule")
    if rule := speaking(rules, "allow", args, world):
        return Judgement("allow", args, f"the rule “{rule}” allows it", rule, level="allow rule")
    level: Level = "strategy" if call.name in gate.strategies else "default"
    if level == "strategy":
        reason = _consult(gate.strategies[call.name], trace, args)
    else:
        only_reads = agrees(gate.tools[call.name].read_only, args) and not (found and found.outside)
        reason = unruled(rules, args, world, only_reads=only_reads)
    if reason is None:
        return Judgement("allow", args, "it only reads inside the workspace", level=level)
    return Judgement("ask", args, reason, may_always=_could_allow(rules, args, world), level=level)


def _could_allow(rules: Book, args: Args, world: World) -> bool:
    """Whether a rule for exactly this call would let it run; some calls stay with people whatever rules say."""
    try:
        exactly = PermissionRule.exactly(rules.tool, args)
    except (TypeError, ValueError):
        return False
    return speaking(rules.and_allowing(exactly), "allow", args, world) is not None


def _denied(gate: Gate, call: ToolCall, rule: PermissionRule) -> Judgement:
    return Judgement(
        "deny",
        call.args,
        f"The rule “{rule}” denies this call{gate.because(rule)}. Find another way, or say what you need it for.",
        rule,
        level="deny rule",
    )


def _consult(strategy: Strategy, trace: Trace, args: Args) -> str | None:
    untyped: Any = strategy
    evaluate: Callable[[Trace, Args], object] = getattr(untyped, "evaluate", untyped)
    try:
        reason = evaluate(trace, deepcopy(args))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a strategy's fault must not become a permission, nor its exit end the engine
        return f"the check failed ({type(error).__name__})"
    if reason is None or isinstance(reason, str):
        return None if reason is None else valid_text(reason).strip() or "the check asks, and gives no reason"
    return f"the check answered {type(reason).__name__}, which is neither a reason nor None"


def _about_to_ask(gate: Gate, trace: Trace, call: ToolCall, verdict: Judgement, seen: Seen) -> Judgement:
    ruled = run_point("permission_request", gate.hooks, trace, call)
    rulings = (*verdict.rulings, *ruled.rulings)
    if isinstance(ruled.verdict, Deny):
        return Judgement("deny", call.args, ruled.verdict.reason, rulings=rulings, level="hook")
    if not same(ruled.value.args, call.args):  # what people will be shown may be denied, and otherwise still asks
        again = _levels(gate, trace, ruled.value, Ruled(), seen)
        if again.effect == "deny":
            return replace(again, rulings=rulings)
        # An allow rule for what is shown would never meet the call, which is rewritten only when it is about to ask.
        verdict = replace(verdict, args=ruled.value.args, may_always=False)
    if isinstance(ruled.verdict, Ask):
        return replace(verdict, reason=ruled.verdict.reason, may_always=False, rulings=rulings, level="hook")
    return replace(verdict, rulings=rulings)
