"""What `harness-bot config` and `check` tell of what the settings load."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.__main__ import main
from bot.config import VARIABLES, Settings
from bot.loaded import check_agents, guards_shown
from harness_core.guards import guards_from
from harness_core.options import HarnessOptions

FILE = """\
---
name: reviewer
description: Reads code.
tools: [read, bash]
model: small
rules: [deny bash git push *]
max_steps: 5
---
You review code.
"""


def folder(tmp_path: Path, text: str = FILE) -> Path:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "reviewer.md").write_text(text, "utf-8")
    return tmp_path / "agents"


def test_the_agents_in_force_are_shown_with_what_they_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"], {"HARNESS_AGENTS": str(folder(tmp_path))}) == 0

    said = capsys.readouterr().out
    assert "- reviewer: Reads code. (read, bash; model small; 5 steps; deny bash git push *)" in said


def test_agents_that_need_correcting_stop_everything_with_file_and_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config"], {"HARNESS_AGENTS": str(folder(tmp_path, FILE.replace("read, bash", "rm")))}) == 2

    assert "reviewer.md: `tools`: there is no tool rm" in capsys.readouterr().err


def test_the_check_names_them_or_what_is_wrong(tmp_path: Path) -> None:
    assert str(check_agents(Settings())).endswith("agents: none")
    assert "agents: reviewer" in str(check_agents(Settings(agents=folder(tmp_path))))
    assert "cannot be read" in check_agents(Settings(agents=tmp_path / "missing")).advice


def test_guards_are_shown_with_the_settings_in_force_and_the_ones_that_are_off() -> None:
    lines = dict(line.split(": ", 1) for line in guards_shown(guards_from({"watchdog": False, "limits": {"steps": 7}})))

    assert lines["limits"] == "steps=7, seconds=3600"
    assert lines["watchdog"] == lines["lookup"] == "off"
    assert lines["caps"] == "per_run={webfetch: 30, bash: 100}"
    assert lines["stop_loop"] == "max_repeat=3, window=8, escalate=true, often=[4, 6]"
    assert lines["budget"].startswith("run_tokens=not set, ")
    assert dict(line.split(": ", 1) for line in guards_shown(()))["limits"] == "steps=20, seconds=3600"


def test_every_value_of_config_begins_in_the_same_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"], {"HARNESS_DATA": "/a/very/long/folder" * 5, "HARNESS_ADMINS": "U012AB3CD"}) == 0

    rows = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    starts = {row.index(source) for row in rows for source in ("environment  ", "default      ") if source in row}
    assert len(rows) == len(VARIABLES)
    assert len(starts) == 1


OWN = """\
from harness_core import hook, tool

@tool
async def page_on_call(team: str) -> str:
    \"\"\"Page whoever is on call.\"\"\"
    return team

@hook("before_tool")
def never_at_night(trace, call):
    return None
"""


def checked(env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    return main(["check"], env), capsys.readouterr().out


def test_tools_and_hooks_of_one_s_own_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(OWN)
    env = {"HARNESS_DATA": str(tmp_path / "data")} | dict.fromkeys(
        ("HARNESS_TOOLS", "HARNESS_HOOKS"), str(tmp_path / "own.py")
    )

    code, told = checked(env, capsys)

    assert code == 0
    assert "ok    tools of your own: page_on_call\n" in told
    assert "ok    hooks of your own: never_at_night\n" in told
    assert main(["config"], env) == 0
    assert "- page_on_call\n" in (shown := capsys.readouterr().out)
    assert "- never_at_night\n" in shown


@pytest.mark.parametrize("broken", ["HARNESS_TOOLS", "HARNESS_HOOKS", "HARNESS_AGENTS", "HARNESS_POLICY", "harness.db"])
def test_each_fault_is_told_once_under_its_own_name(
    broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    env = {"HARNESS_DATA": str(tmp_path / "data")}
    if broken == "harness.db":
        (tmp_path / "data" / broken).write_text("no database " * 1000)
    elif broken == "HARNESS_AGENTS":
        env |= {broken: str(tmp_path / "none")}
    else:
        (tmp_path / "broken.py").write_text("[[rule]]\neffect = 1\n")
        env |= {broken: str(tmp_path / "broken.py")}

    code, told = checked(env, capsys)

    assert code == 1
    assert told.count("FIX ") == 1
    named = {"HARNESS_AGENTS": "agents", "HARNESS_POLICY": "the policy file", "harness.db": "the record"}
    assert f"FIX   {named.get(broken, broken)}" in told
    assert all(line.startswith(("ok    ", "FIX   ", "      ")) for line in told.splitlines())


def test_without_a_word_a_run_ends_after_20_steps_and_keeps_100_messages() -> None:
    limits = next(line for line in guards_shown(guards_from({})) if line.startswith("limits:"))
    options = HarnessOptions()

    assert "steps=20" in limits
    assert (options.max_steps, options.model_retries) == (20, 3)
    assert (options.compression_max_messages, options.compression_max_context_ratio) == (100, 0.75)
