"""The bot's own files are out of the agent's reach, and for their owner alone."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

import bot
import harness_core
from bot import check
from bot.config import Settings
from bot.folders import CODE, keep_apart, own_workspace
from bot.loaded import check_loaded
from bot.local_bot import LocalBot
from harness_core.errors import ConfigError


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def loose_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("work", ["data", "data/workspaces", ".", "link", "data/../data/x"])
def test_a_workspace_within_the_data_folder_or_around_it_is_refused(tmp_path: Path, work: str):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")

    with pytest.raises(ConfigError, match="lie within each other"):
        keep_apart(Settings(data=tmp_path / "data", workspace=tmp_path / work), None)


def test_a_workspace_beside_the_data_folder_is_fine(tmp_path: Path):
    keep_apart(Settings(data=tmp_path / "data", workspace=tmp_path / "data-work"), tmp_path / "policy.toml")


@pytest.mark.parametrize("code", CODE, ids=str)
@pytest.mark.parametrize("where", [".", "..", "below"])
def test_a_workspace_that_holds_what_the_bot_runs_is_refused(code: Path, where: str, tmp_path: Path):
    with pytest.raises(ConfigError, match="what the bot itself runs"):
        keep_apart(Settings(data=tmp_path / "data", workspace=code / where), None)


def test_the_code_that_runs_here_is_among_what_is_kept_from_the_agent():
    assert {Path(bot.__file__).parent, Path(harness_core.__file__).parent} <= set(CODE)
    assert any(Path(pytest.__file__).is_relative_to(one) for one in CODE)


@pytest.mark.parametrize("where", ["", "deep/er"])
def test_a_workspace_that_holds_what_rules_the_bot_is_refused(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
):
    work = tmp_path / "work"
    started_in = work / where
    started_in.mkdir(parents=True)
    settings = Settings(data=tmp_path / "data", workspace=work)
    with pytest.raises(ConfigError, match="the policy file"):
        keep_apart(settings, started_in / "policy.toml")
    with pytest.raises(ConfigError, match="HARNESS_TOOLS"):
        keep_apart(replace(settings, tools=str(started_in / "mine.py")), None)
    with pytest.raises(ConfigError, match="HARNESS_AGENTS"):
        keep_apart(replace(settings, agents=started_in / "agents"), None)
    with pytest.raises(ConfigError, match="HARNESS_HOOKS"):
        keep_apart(replace(settings, hooks=str(started_in / "mine.py")), None)

    monkeypatch.chdir(started_in)
    keep_apart(settings, None)
    for name in (".env", "slack.env"):
        (started_in / name).write_text("SLACK_BOT_TOKEN=…")
        with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
            keep_apart(settings, None)
        (started_in / name).unlink()


@pytest.mark.usefixtures("loose_umask")
async def test_the_folders_that_the_bot_makes_are_for_their_owner_alone(tmp_path: Path):
    async with LocalBot(Settings(data=tmp_path / "data", local_port=0)) as local:
        folder = local.bot.engine.workspace_of("slack:T1:C1:1.1")

    assert folder.parent == tmp_path / "data/workspaces"
    assert [rights(one) for one in (tmp_path / "data", folder.parent, folder)] == [0o700] * 3
    assert own_workspace(tmp_path / "data")("slack:T1:C1:1.1") == folder


@pytest.mark.usefixtures("loose_umask")
def test_what_is_checked_before_the_first_start_makes_no_folder_that_others_may_enter(tmp_path: Path):
    data = tmp_path / "data"

    assert not [line for line in check_loaded(Settings(data=data)) if line.advice]
    assert not data.exists()

    check.folder(data)
    assert rights(data) == 0o700
    assert list(data.iterdir()) == []


async def test_a_second_local_bot_on_the_same_folder_is_refused_and_may_start_when_the_first_has_ended(tmp_path: Path):
    settings = Settings(data=tmp_path, local_port=0)
    async with LocalBot(settings):
        with pytest.raises(ConfigError, match="Another local harness-bot works in"):
            await LocalBot(settings).__aenter__()

    async with LocalBot(settings) as again:
        assert again.workspace.connections == 1


async def test_settings_that_are_refused_leave_no_workspace_open(tmp_path: Path):
    settings = Settings(data=tmp_path, local_port=0)
    for _ in range(2):  # a file that were left open would refuse the second
        with pytest.raises(ConfigError, match="lie within each other"):
            await LocalBot(Settings(data=tmp_path, local_port=0, workspace=tmp_path)).__aenter__()

    async with LocalBot(settings):
        pass
