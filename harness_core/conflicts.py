"""Rules that stand in each other's way: two that fight while a run goes on, and demands that nothing allows.  Pure.

A *fight* is: one rule refuses a tool, another tells the model to call it, the first refuses it again. It is seen in the
facts of a run, whether they were stored a moment ago or long before. A *dead end* is a demand that can never be met. It
is seen in the rules themselves; for that, hooks say in optional attributes what is known of them beforehand:

    demands     tools of which the hook tells the model to call one
    needs       tool to other tools: the hook refuses the first until one of the others has succeeded
    refuses     tools that the hook refuses whatever the arguments

Rulings carry the same as `suggests`, which is what fights are seen by.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from harness_core.events import Event, HookRuled, ReasonEnd, RunStart, ToolCallEnd
from harness_core.hooks import name_of
from harness_core.permissions.book import names
from harness_core.permissions.judge import agrees
from harness_core.replay import GATE, Ruling
from harness_core.steps import Policy
from harness_core.types import ToolCall

# As the judge says it, with a why behind it or none.
_BY_RULE: Final = re.compile(r"The (rule “.*”) denies this call[. ]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Move:
    """One move in a run: a tool was refused or demanded, by a rule; or done, which ends every quarrel about it."""

    seq: int
    run_id: str
    step: int
    tool: str
    kind: Literal["refused", "demanded", "done"]
    by: str = ""


@dataclass(frozen=True, slots=True)
class Fight:
    """Two rules that fight over a tool. seq, step: where it was first seen. times: how often it was refused by then."""

    seq: int
    run_id: str
    step: int
    tool: str
    refuses: str
    demands: str
    times: int

    def __str__(self) -> str:
        return (
            f"two rules fight over {self.tool}: {self.refuses} refuses it ({self.times} times in this run), and "
            f"{self.demands} tells the model to call it"
        )


# -- fights ------------------------------------------------------------------------------------------------------------


def fights(moves: Iterable[Move]) -> tuple[Fight, ...]:
    """Every fight in these moves, once for each pair of rules, tool and run. Several refusals in one batch are one."""
    found: dict[tuple[str, str, str, str], Fight] = {}
    refused: dict[tuple[str, str], dict[str, list[int]]] = {}  # run, tool: by whom, in which steps
    demanded: dict[tuple[str, str], dict[str, int]] = {}  # run, tool: by whom, after how many refusals
    for move in moves:
        about = (move.run_id, move.tool)
        steps = refused.setdefault(about, {})
        match move.kind:
            case "done":
                steps.clear()
                demanded.pop(about, None)
            case "demanded":
                demanded.setdefault(about, {})[move.by] = sum(map(len, steps.values()))
            case "refused":
                mine = steps.setdefault(move.by, [])
                if move.step in mine:
                    continue
                mine.append(move.step)
                for by, before in demanded.get(about, {}).items():
                    if before and len(mine) > 1 and by != move.by:
                        fight = Fight(move.seq, move.run_id, move.step, move.tool, move.by, by, len(mine))
                        found.setdefault((*about, move.by, by), fight)
    return tuple(found.values())


def moves_of(facts: Iterable[Event]) -> Iterator[Move]:
    """The moves that recorded facts tell of."""
    calls: dict[str, ToolCall] = {}
    hooked: set[str] = set()
    step = 0
    for fact in facts:
        match fact:
            case RunStart(resumed=False):
                step = 0
            case ReasonEnd():
                step = fact.step
                calls.update((call.call_uuid, call) for call in fact.calls)
            case HookRuled(call_uuid=uuid) if uuid in calls and fact.verdict == "Deny":
                hooked.add(uuid)
                yield Move(fact.seq or 0, fact.run_id, step, calls[uuid].name, "refused", fact.hook)
            case ToolCallEnd(call_uuid=uuid, outcome="denied") if uuid in calls and uuid not in hooked:
                said = _BY_RULE.search(fact.content)
                by = said[1] if said else "the policy"
                yield Move(fact.seq or 0, fact.run_id, step, calls[uuid].name, "refused", by)
            case ToolCallEnd(call_uuid=uuid, outcome="ok") if uuid in calls:
                yield Move(fact.seq or 0, fact.run_id, step, calls[uuid].name, "done")
        if isinstance(fact, HookRuled) and fact.suggests:
            yield Move(fact.seq or 0, fact.run_id, step, fact.suggests, "demanded", fact.hook)


def moves_replayed(rulings: Iterable[Ruling]) -> Iterator[Move]:
    """The moves that the session would have made under another policy."""
    for ruling in rulings:
        at = Move(ruling.seq, ruling.run_id, ruling.step, ruling.call.name if ruling.call else "", "done")
        if ruling.point == GATE and ruling.verdict in ("allow", "deny"):
            yield at if ruling.verdict == "allow" else replace(at, kind="refused", by=ruling.hook)
        if ruling.suggests and ruling.verdict in ("Deny", "Inject", "Continue"):
            yield replace(at, tool=ruling.suggests, kind="demanded", by=ruling.hook)


# -- dead ends ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """A demand that nothing allows. by: who tells the model to call one of `tools`. why: per tool, what forbids it."""

    by: str
    tools: tuple[str, ...]
    why: Mapping[str, str]

    def __str__(self) -> str:
        reasons = "; ".join(f"{tool}: {self.why[tool]}" for tool in self.tools)
        return f"{self.by} tells the model to call {' or '.join(self.tools)}, and nothing allows that ({reasons})"


def dead_ends(policy: Policy) -> tuple[DeadEnd, ...]:
    """Every "you must do X" of the policy's hooks for which no path allows X. Only what is certain counts: a tool for
    which there is a rule against some arguments is still a path.
    """
    hooks = policy.gate.hooks
    wanted = [(hook, tools) for hook in hooks for tools in _demands(hook)]
    shut = {tool: why for _, tools in wanted for tool in tools if (why := _shut(policy, hooks, tool))}
    shut |= _circles(hooks, shut)
    return tuple(
        DeadEnd(name_of(hook), tools, {tool: shut[tool] for tool in tools})
        for hook, tools in wanted
        if all(tool in shut for tool in tools)
    )


def _demands(hook: Any) -> Iterator[tuple[str, ...]]:
    """What a hook tells the model to do, each time as tools of which one is enough."""
    if demands := tuple(getattr(hook, "demands", ()) or ()):
        yield demands
    yield from dict.fromkeys(needs for needs in _needs(hook).values() if needs)


def _needs(hook: Any) -> Mapping[str, tuple[str, ...]]:
    return {tool: tuple(others) for tool, others in dict(getattr(hook, "needs", {}) or {}).items()}


def _shut(policy: Policy, hooks: Sequence[Any], tool: str) -> str:
    """Why this tool can never run, whatever its arguments; "" if it may."""
    stance = policy.gate.tools.get(tool)
    if stance is None:
        return "there is no such tool"
    mine = [rule for rule in policy.gate.rules if names(rule, tool)]
    for rule in mine:
        if rule.effect == "deny" and not rule.pattern and rule.arguments is None:
            return f"the rule “{rule}” denies every call"
    if refusing := [name_of(hook) for hook in hooks if tool in (getattr(hook, "refuses", ()) or ())]:
        return f"{refusing[0]} refuses every call"
    allowed = any(rule.effect == "allow" for rule in mine) or tool == "bash" or agrees(stance.read_only, {})
    asks = any(rule.effect == "ask" and not rule.pattern and rule.arguments is None for rule in mine)
    if not policy.can_ask and (asks or not allowed):
        return "it asks, and nobody can be asked"
    return ""


def _circles(hooks: Sequence[Any], shut: Mapping[str, str]) -> Mapping[str, str]:
    """Tools that wait for each other: none of them can ever be the first. Found by opening what can be opened."""
    needs = [(name_of(hook), tool, others) for hook in hooks for tool, others in _needs(hook).items() if others]
    waiting = {tool for _, tool, _ in needs} - {*shut}
    while opened := {
        tool
        for tool in waiting
        if all(any(one not in waiting and one not in shut for one in others) for _, of, others in needs if of == tool)
    }:
        waiting -= opened
    return {tool: f"{by} refuses it until {' or '.join(others)}" for by, tool, others in needs if tool in waiting}
