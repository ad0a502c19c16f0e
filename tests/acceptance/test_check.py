"""`harness-bot check`: each line says ok, or what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from bot.__main__ import main
from bot.check import check, reader, sandbox
from bot.config import VARIABLES, Settings, SlackSettings
from bot.local import LocalWorkspace
from harness_core.errors import ModelError
from harness_core.models.practice import PracticeModel
from harness_core.permissions import grammar
from harness_core.testing import ScriptedModel
from harness_core.tools.sandbox import Boundary


async def lines(settings: Settings, model: object = None) -> list[str]:
    return [str(line) async for line in check(settings, model or PracticeModel())]  # type: ignore[arg-type]


def slack_of(workspace: LocalWorkspace) -> SlackSettings:
    return SlackSettings(workspace.bot_token, workspace.app_token, workspace.api_url)


async def test_everything_is_ok_where_it_is(tmp_path: Path) -> None:
    async with LocalWorkspace() as workspace:
        told = await lines(Settings(slack=slack_of(workspace), data=tmp_path, admins=frozenset({"U1ADA"})))

    assert all(line.startswith("ok") for line in told)
    assert any("administrators: U1ADA" in line for line in told)
    assert any("socket" in line for line in told)


async def test_each_thing_that_is_wrong_is_named_with_what_to_do(tmp_path: Path) -> None:
    async with LocalWorkspace() as workspace:
        good = slack_of(workspace)
        workspace.settings.scopes -= {"reactions:write", "commands"}
        scopes = await lines(Settings(slack=good, data=tmp_path))
        bot = await lines(Settings(slack=replace(good, bot_token="xoxb-wrong"), data=tmp_path))
        app = await lines(Settings(slack=replace(good, app_token="xapp-wrong"), data=tmp_path))

    assert any("lacks commands, reactions:write" in line and "manifest.yml" in line for line in scopes)
    assert any("bot token" in line and "invalid_auth" in line and "OAuth & Permissions" in line for line in bot)
    assert any("app token" in line and "connections:write" in line for line in app)
    assert any("claims the bot" in line for line in scopes)


async def test_the_boundary_of_bash_is_said_and_one_that_is_required_and_missing_is_a_fault(tmp_path: Path) -> None:
    off = await lines(Settings(data=tmp_path, sandbox="off"))
    missing = sandbox(Boundary(missing="bubblewrap is not installed", refuses=True))

    assert any(line.startswith("ok") and "bash runs without a sandbox (it is switched off)" in line for line in off)
    assert any(line.startswith("ok") and "bash commands can be read" in line for line in off)
    assert "FIX" in str(missing)
    assert "Install bubblewrap" in str(missing)


def test_commands_that_cannot_be_read_are_said_to_ask_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "_PARSER", None)

    assert "FIX" in str(reader())
    assert "every bash command asks" in str(reader())


async def test_another_listener_on_the_same_token_is_pointed_out(tmp_path: Path) -> None:
    async with LocalWorkspace() as workspace, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {workspace.app_token}"}
        async with session.post(f"{workspace.api_url}apps.connections.open", headers=headers) as reply:
            url = (await reply.json())["url"]
        async with session.ws_connect(url):
            told = await lines(Settings(slack=slack_of(workspace), data=tmp_path))

    assert any("1 more connection open" in line and "Another process" in line for line in told)


async def test_a_dead_server_and_a_folder_that_cannot_be_written_are_said(tmp_path: Path) -> None:
    file = tmp_path / "a file"
    file.write_text("")
    async with LocalWorkspace() as workspace:
        slack = slack_of(workspace)
    told = await lines(Settings(slack=slack, data=file / "data"))

    assert any(line.startswith("FIX") and "data folder" in line and "HARNESS_DATA" in line for line in told)
    assert any(line.startswith("FIX") and "network up" in line for line in told)


@pytest.mark.parametrize(
    ("model", "containing"),
    [
        (ScriptedModel("ok", name="gpt"), "model gpt answers"),
        (ScriptedModel(ModelError("auth", "the key is wrong"), name="gpt"), "the key is wrong"),
        (PracticeModel(), "practice model answers"),
    ],
)
async def test_the_model_is_asked_for_one_word(tmp_path: Path, model: object, containing: str) -> None:
    assert containing in (await lines(Settings(data=tmp_path), model))[-1]


def test_config_shows_what_is_in_force_and_from_where_but_no_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = {
        "SLACK_BOT_TOKEN": "xoxb-1-secret",
        "SLACK_APP_TOKEN": "xapp-1-secret",
        "OPENAI_API_KEY": "sk-secret",
        "HARNESS_DATA": str(tmp_path),
    }

    assert main(["config"], env) == 0

    shown = capsys.readouterr().out
    assert "secret" not in shown
    assert f"{tmp_path}" in shown
    assert shown.count("  environment  ") == 4
    assert all(name in shown for name, *_ in VARIABLES)


def test_all_that_is_wrong_is_named_in_one_error(capsys: pytest.CaptureFixture[str]) -> None:
    env = {"SLACK_BOT_TOKEN": "xapp-1", "HARNESS_LOCAL_PORT": "high", "HARNESS_ADMINS": "ada"}

    assert main(["check"], env) == 2

    told = capsys.readouterr().err
    assert all(name in told for name in ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "HARNESS_LOCAL_PORT", "HARNESS_ADMINS"))
