"""The ground gives way: damaged files, a taken port, folders that vanish. Each in words, and nothing is thrown away."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

from bot.__main__ import main
from harness_core.testing import ScriptedModel, call
from tests.acceptance.desk import Desk

NOISE = b"this is no database, it is a letter " * 200


@pytest.mark.parametrize("name", ["harness.db", "local.db"])
def test_a_damaged_file_is_told_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / name).write_bytes(NOISE)

    code = main([], {"HARNESS_DATA": str(tmp_path), "HARNESS_LOCAL_PORT": "0"})

    said = capsys.readouterr().err
    assert code == 1
    assert name in said
    assert "damaged" in said
    assert "Traceback" not in said
    assert (tmp_path / name).read_bytes() == NOISE


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("harness.db", "local.db"),
        ("harness.db", "harness.db-wal"),
        ("harness.db", "workspaces/slack-T1-C1-1/a.txt"),
        ("local.db", "harness.db"),
    ],
)
def test_an_empty_file_where_much_was_is_told_and_kept_instead_of_begun_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, beside: str
) -> None:
    (tmp_path / name).touch()
    (tmp_path / beside).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / beside).write_bytes(NOISE)

    code = main([], {"HARNESS_DATA": str(tmp_path), "HARNESS_LOCAL_PORT": "0"})

    said = capsys.readouterr().err
    assert code == 1
    assert f"{name} is empty" in said
    assert "restore it from a backup" in said
    assert (tmp_path / name).read_bytes() == b""
    assert (tmp_path / beside).read_bytes() == NOISE


def test_check_tells_of_an_empty_record_where_much_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "harness.db").touch()
    (tmp_path / "local.db").write_bytes(NOISE)

    assert main(["check"], {"HARNESS_DATA": str(tmp_path)}) != 0
    assert "harness.db is empty" in capsys.readouterr().out


async def test_an_empty_file_in_a_new_folder_is_begun(tmp_path: Path) -> None:
    (tmp_path / "harness.db").touch()
    async with Desk(tmp_path, ScriptedModel("hello"), []) as desk:
        await desk.answer(await desk.ask("hi"), "hello")
        await desk.restart()


def test_a_taken_port_is_told_with_the_setting_that_changes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code = main([], {"HARNESS_DATA": str(tmp_path), "HARNESS_LOCAL_PORT": port})

    said = capsys.readouterr().err
    assert code in (1, 2)
    assert f"Port {port} is taken" in said
    assert "HARNESS_LOCAL_PORT" in said


def test_a_file_where_the_data_folder_should_be_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").write_text("a letter")

    assert main([], {"HARNESS_DATA": str(tmp_path / "data")}) == 2
    assert "there is a file of that name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tool", "args", "told"),
    [("bash", {"command": "echo hi > a"}, "exit code 0"), ("write", {"path": "a", "content": "hi"}, "Created a")],
)
async def test_a_session_s_folder_that_vanished_is_made_again(
    tmp_path: Path, tool: str, args: dict[str, str], told: str
) -> None:
    model = ScriptedModel([call(tool, **args)], "It is done.")
    async with Desk(tmp_path, model, [tool]) as desk:
        ts = await desk.ask("do it")
        card = await desk.card(ts)
        shutil.rmtree(tmp_path / "workspaces")

        await desk.click(card, "approve")

        await desk.answer(ts, "It is done.")
        assert told in model.requests[-1].messages[-1].content
        assert [path.read_text().strip() for path in (tmp_path / "workspaces").glob("*/a")] == ["hi"]
