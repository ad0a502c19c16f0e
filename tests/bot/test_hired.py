"""What `harness-bot config` and `check` tell of agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.__main__ import main
from bot.config import Settings
from bot.hired import check_agents

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
