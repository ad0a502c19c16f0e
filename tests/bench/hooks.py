"""python -m tests.bench.hooks: what 50 hooks cost in one step of a run, and what the digest of a policy costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

from harness_core.events import Prompted, RunStart
from harness_core.hooks import Deny, in_order, run_point
from harness_core.permissions.judge import Gate
from harness_core.permissions.rule import PermissionRule
from harness_core.policy_record import recorded
from harness_core.react import next_step
from harness_core.session import Trace, fold
from harness_core.steps import Policy
from harness_core.testing import NOON, RecordingTool, ended, history, reasoned, tool_call
from harness_core.types import ToolCall

HOOKS, TIMES = 50, 2_000


class Cap:
    """Asks the facts at every point of a step, as guards do, and has nothing to say."""

    rule_class = "budget"

    def __init__(self, n: int) -> None:
        self.name = f"cap-{n}"

    def before_model(self, trace: Trace) -> None:
        if trace.run and trace.run.usage.input_tokens > 1_000_000:
            raise AssertionError

    def after_model(self, trace: Trace, said: object) -> None:
        self.before_model(trace)

    def before_tool(self, trace: Trace, call: ToolCall) -> Deny | None:
        return Deny("enough") if trace.run and trace.run.calls.get(call.name, 0) > 1_000 else None

    def after_tool(self, trace: Trace, call: ToolCall, result: object) -> None:
        self.before_model(trace)


def milliseconds(work: Callable[[], object]) -> float:
    """The median of many runs, on the processor."""
    found = []
    for _ in range(TIMES):
        began = time.thread_time()
        work()
        found.append((time.thread_time() - began) * 1000)
    return median(found)


def one_step(hooks: tuple[Any, ...]) -> Callable[[], object]:
    """One step: the request is decided, its message is taken, its call is judged and judged again, its result comes."""
    policy = Policy(Gate({"look": RecordingTool("look", read_only=True)}, hooks=hooks), max_steps=1_000)
    calls = [tool_call("look", uuid=f"c{n}", n=n) for n in range(21)]
    facts = [Prompted("go"), RunStart("r"), *(f for c in calls[:20] for f in (reasoned(c), ended(c, f"page {c.args}")))]
    before, said = fold(history(*facts)), reasoned(calls[20])
    opened, result = fold(history(*facts, said)), ended(calls[20])

    def one() -> None:
        next_step(before, policy, NOON)
        run_point("after_model", hooks, before, said)
        next_step(opened, policy, NOON)
        next_step(opened, policy, NOON)
        run_point("after_tool", hooks, opened, calls[20], result)

    return one


def main() -> None:
    """Print the costs."""
    hooks = in_order(Cap(n) for n in range(HOOKS))
    without, with_all = milliseconds(one_step(())), milliseconds(one_step(hooks))
    print(f"a step without hooks: {without:.3f} ms; with {HOOKS} hooks {with_all - without:.3f} ms more")
    rules = tuple(PermissionRule.deny("bash", f"rm {n}") for n in range(HOOKS))
    policy = Policy(Gate(rules=rules, hooks=hooks))
    fresh = milliseconds(lambda: recorded(replace(policy)))
    print(f"the digest of a policy of {HOOKS} hooks and {HOOKS} rules: {fresh:.3f} ms")


if __name__ == "__main__":
    main()
