"""python -m tests.bench.replay: what it costs to replay a recorded session of 1,000 steps under another policy."""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness_core.events import Event, Inspected, Prompted, ReasonEnd, RunEnd, RunStart, ToolCallEnd, ToolCallStart
from harness_core.guards import guards_from
from harness_core.hooks import in_order
from harness_core.permissions.judge import Gate
from harness_core.permissions.rule import PermissionRule
from harness_core.replay import replay
from harness_core.steps import Policy
from harness_core.testing import history, tool_call
from harness_core.tools import BUILTIN
from harness_core.types import Inspection, canonical, digest

STEPS = 1_000
RULES = (PermissionRule.deny("bash", "rm *"), PermissionRule.allow("bash", "npm *"), PermissionRule.ask("webfetch"))


def recorded(steps: int) -> Sequence[Event]:
    """A session in which the model looks at a file in each step."""
    facts: list[Event] = [Prompted("go", "U1"), RunStart("r1", requested_by="U1")]
    for step in range(1, steps + 1):
        call = tool_call("bash", uuid=f"r1-{step}-1", command=f"grep -n name{step} src/a.py | head -5")
        seen = Inspection(paths=("/ws/src/a.py", f"/ws/name{step}", "/ws/5"))
        facts += [
            ReasonEnd("I look.", (call,), step=step),
            Inspected(call.call_uuid, digest(canonical(call.args)), seen),
            ToolCallStart(call),
            ToolCallEnd(call.call_uuid, "line\n" * 100),
        ]
    return history(*facts, ReasonEnd("done", step=steps + 1), RunEnd("completed", "done"))


def main() -> None:
    """Print the cost, of the processor and by the clock."""
    facts = recorded(STEPS)
    for name, hooks in (("no guards", ()), ("the default guards", in_order(guards_from({})))):
        policy = Policy(Gate(BUILTIN, RULES, hooks, workspace="/ws", home="/home/dev"), max_steps=2 * STEPS)
        replay(facts, policy)  # the first one loads the parser
        began, used = time.perf_counter(), time.process_time()
        rulings = replay(facts, policy)
        took, used = time.perf_counter() - began, time.process_time() - used
        print(f"{STEPS} steps, {name}: {len(rulings)} verdicts in {took:.3f} s ({used:.3f} s of processor)")


if __name__ == "__main__":
    main()
