"""What the README says is true: its programs run, and everything people can name is in it."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bot import config
from harness_core import events
from harness_core.tools import BUILTIN
from harness_core.tools.own import load_tools

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_a_tool_of_one_s_own_is_as_short_as_it_says(tmp_path: Path) -> None:
    (program,) = [one for one in PROGRAMS if "page_on_call" in one]
    (tmp_path / "ours.py").write_text(program, "utf-8")

    (tool,) = load_tools(str(tmp_path / "ours.py"))

    assert (tool.spec.name, tool.read_only({})) == ("page_on_call", False)
    assert set(tool.spec.schema["properties"]) == {"team", "message"}


def test_every_tool_is_documented() -> None:
    assert [name for name in BUILTIN if f"`{name}`" not in README] == []


def test_the_library_example_runs_and_shows_what_it_says(tmp_path: Path) -> None:
    (program,) = [one for one in PROGRAMS if "asyncio.run" in one]

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=50)

    assert done.returncode == 0, done.stderr
    first, resumed = done.stdout.split("RunEnd\n")[:2]
    assert first.split()[-1] == "HITLPending"
    assert resumed.split()[:3] == ["RunStart", "HITLDecided", "ActionStart"]


def test_every_event_is_documented() -> None:
    missing = [kind.__name__ for kind in (*events.FACTS, *events.PASSING) if f"`{kind.__name__}`" not in README]

    assert missing == []


def test_every_setting_is_documented() -> None:
    read = set(re.findall(r'"((?:SLACK|HARNESS|OPENAI)_[A-Z_]+)"', inspect.getsource(config)))

    assert read
    assert [name for name in sorted(read) if f"`{name}`" not in README] == []


@pytest.mark.parametrize("verb", re.findall(r'case ((?:"[a-z]+"(?: \| )?)+)', (ROOT / "bot/commands.py").read_text()))
def test_every_command_is_documented(verb: str) -> None:
    for word in re.findall(r'"([a-z]+)"', verb):
        assert f"/harness {word}" in README


def test_every_tool_that_writes_has_a_stance() -> None:
    samples = {
        "read": {"path": "a"},
        "ls": {},
        "write": {"path": "a", "content": "b"},
        "edit": {"path": "a", "old": "b", "new": "c"},
        "bash": {"command": "ls"},
        "glob": {"pattern": "**/*.py"},
        "grep": {"pattern": "def "},
        "webfetch": {"url": "https://example.com/"},
        "todo": {"items": [{"text": "a"}]},
    }
    for name, tool in BUILTIN.items():
        args = samples[name]  # a new tool needs a sample here, and so somebody who thinks about it
        assert tool.check(args) == ""
        assert tool.subject(args)
        reads = name in ("read", "ls", "glob", "grep", "todo")
        assert tool.read_only(args) == reads
        assert tool.repeatable(args) == (reads or name == "webfetch")
