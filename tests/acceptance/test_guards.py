"""Guards of the policy file and hooks of one's own, in a thread."""

from __future__ import annotations

from pathlib import Path

from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk

TABLE = """
[[rule]]
effect = "allow"
tool = "*"

[guards]
caps.per_run = { look = 1 }
watchdog = { nudge_after = 1, end_after = 2 }
"""
HOOKS = """
from harness_core import Deny, hook

@hook("before_tool", rule_class="safety")
def nothing_is_deleted(trace, call):
    return Deny("Nothing is deleted here.") if call.name == "delete" else None
"""


async def test_guards_of_the_file_and_hooks_of_one_s_own_count_and_a_run_that_they_end_says_why(tmp_path: Path) -> None:
    (tmp_path / "harness.toml").write_text(TABLE, "utf-8")
    (tmp_path / "ours.py").write_text(HOOKS, "utf-8")
    look, delete = RecordingTool("look"), RecordingTool("delete")
    model = ScriptedModel(
        [call("look", n=1), call("look", n=2)], call("look", n=3), call("delete"), "I looked only once."
    )
    async with Desk(
        tmp_path / "data", model, [look, delete], policy=tmp_path / "harness.toml", hooks=tmp_path / "ours.py"
    ) as desk:
        ts = await desk.ask("look around, then delete it")

        await desk.answer(ts, "Stopped: no tool has succeeded in the last 2 steps.")
        assert any("I looked only once." in text for text in desk.texts(ts))

    assert (look.runs, delete.runs) == ([{"n": 1}], [])
    results = [m.content for m in model.requests[-1].messages if m.role == "tool"]
    assert "look may be called once in one run" in results[1]
    assert results[-1] == "Denied: Nothing is deleted here."
