"""The box that commands run in: what they reach from there, and what is said where there is none."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from harness_core.tools.sandbox import Boundary, Sandbox, boxed
from harness_core.tools.shell import bash_tool
from harness_core.types import ToolResult
from tests.conftest import COMPLETE
from tests.engine.test_bash_tool import boxes, gone, nap, running, within

needs_a_box = pytest.mark.skipif(not boxes(), reason="bubblewrap is not installed, or does not work here")


async def run(workspace: Path, command: str, *hidden: Path, online: bool = False) -> ToolResult:
    async def network(session_id: str) -> bool:
        return online

    tool = bash_tool(Sandbox("required", hidden), network)
    return await tool.run({"command": command}, within(workspace, 30))


def mounts(argv: Sequence[str]) -> list[str]:
    """What is mounted where, in order: the last word of every mount."""
    kinds = {"--tmpfs": 1, "--bind": 2, "--ro-bind": 2, "--remount-ro": 1}
    return [f"{word} {argv[at + kinds[word]]}" for at, word in enumerate(argv) if word in kinds]


@pytest.mark.skipif(not COMPLETE, reason="tests may skip what is not installed")
def test_where_nothing_may_be_left_out_bubblewrap_is_installed():
    assert shutil.which("bwrap")


# -- how the box is made -----------------------------------------------------------------------------------------------


def test_a_box_has_namespaces_of_its_own_and_ends_with_us():
    argv = boxed("/ws")

    for option in ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--new-session"):
        assert option in argv
    assert "--die-with-parent" in argv
    assert argv[argv.index("--cap-drop") + 1] == "ALL"
    assert argv[-2:] == ["--chdir", "/ws"]
    assert "--unshare-net" not in boxed("/ws", network=True)


@pytest.mark.parametrize(
    ("workspace", "hidden", "order"),
    [
        ("/a/data/ws/s1", "/a/data", ["--tmpfs /a/data", "--bind /a/data/ws/s1", "--remount-ro /a/data"]),
        ("/a", "/a/data", ["--bind /a", "--tmpfs /a/data", "--remount-ro /a/data"]),
        ("/tmp/ws", "/tmp/data", ["--tmpfs /tmp", "--tmpfs /tmp/data", "--bind /tmp/ws", "--remount-ro /tmp/data"]),
        ("/a", "/a", ["--tmpfs /a", "--bind /a"]),
    ],
)
def test_what_lies_inside_is_mounted_after_what_lies_around_it(workspace: str, hidden: str, order: list[str]):
    made = mounts(boxed(workspace, folders=[hidden]))

    assert [one for one in made if one in order] == order


def test_folders_of_programs_are_shown_again_where_the_box_has_a_folder_anew():
    made = mounts(boxed("/ws", shown=["/run/current-system/sw/bin", "/usr/bin", "/tmp/bin"]))

    assert made.index("--ro-bind /run/current-system/sw/bin") > made.index("--tmpfs /run")
    assert made.index("--ro-bind /tmp/bin") > made.index("--tmpfs /tmp")
    assert "--ro-bind /usr/bin" not in made


# -- what a command reaches from there ---------------------------------------------------------------------------------


@needs_a_box
async def test_only_the_workspace_can_be_written_and_tmp_is_the_command_s_own(tmp_path: Path):
    workspace, name = tmp_path / "ws", f"written-by-a-boxed-command-{uuid4().hex}"
    outside, private = Path.home() / name, Path("/tmp") / name
    workspace.mkdir()
    (tmp_path / "beside").write_text("x")

    result = await run(workspace, f"echo in > f; touch {outside}; ls {tmp_path}; echo $TMPDIR; touch {private} /etc/a")

    assert (workspace / "f").read_text() == "in\n"
    assert not outside.exists()
    assert "Read-only file system" in result.content
    assert "beside" not in result.content
    assert not private.exists()
    assert "\nws\n/tmp\n" in result.content


@needs_a_box
async def test_the_bot_s_data_and_tokens_cannot_be_read_and_its_workspaces_can(tmp_path: Path):
    data, tokens, home = tmp_path / "data", tmp_path / "home" / ".env", tmp_path / "home"
    workspace = data / "workspaces" / "s1"
    for folder in (workspace, data / "workspaces" / "s2", home):
        folder.mkdir(parents=True)
    (data / "harness.db").write_text("secret")
    (data / "workspaces" / "s2" / "f").write_text("another's")
    (workspace / "f").write_text("mine")
    tokens.write_text("secret")

    inside = await run(workspace, f"cat f; find {data} -type f; cat {tokens}; echo x > {data}/x", data, tokens)
    around = await run(tmp_path, "cat data/harness.db home/.env; ls data", data, tokens)

    assert inside.content.startswith(f"mine{workspace}/f\n")
    assert "secret" not in inside.content + around.content
    assert "Read-only file system" in inside.content
    assert not (data / "x").exists()
    assert (data / "harness.db").read_text() == "secret"


@needs_a_box
async def test_a_command_sees_no_process_of_the_host_and_cannot_gain_rights(tmp_path: Path):
    result = await run(
        tmp_path, f"cat /proc/{os.getpid()}/environ; ls /proc | grep -c '^[0-9]'; mount -t tmpfs x /mnt; umount /tmp"
    )

    assert "No such file or directory" in result.content
    assert int(next(line for line in result.content.split("\n") if line.isdigit())) < 10
    assert result.outcome == "error"
    assert "HOME=" not in result.content


@needs_a_box
async def test_a_command_cannot_set_up_the_kernel_whoever_the_bot_runs_as(tmp_path: Path):
    files = "/proc/sys/vm /proc/sys/fs/suid_dumpable /proc/sys/kernel/core_pattern"
    result = await run(tmp_path, f"find {files} -writable -type f | head -3; id -u")

    assert result.content == f"{os.getuid()}\nexit code 0"


@needs_a_box
@pytest.mark.parametrize("online", [False, True])
async def test_there_is_no_network_unless_it_was_allowed(tmp_path: Path, online: bool):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = await run(tmp_path, f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached", online=online)

    assert ("reached" in result.content) == online


# -- it ends with us ---------------------------------------------------------------------------------------------------

_CHILD = """
import asyncio, os, sys
from pathlib import Path
from harness_core.tools.sandbox import Sandbox
from harness_core.tools.shell import bash_tool
from tests.engine.test_bash_tool import within

tool = bash_tool(Sandbox(sys.argv[1]))
asyncio.run(tool.run({"command": sys.argv[3]}, within(Path(sys.argv[2]), 60)))
"""


@pytest.mark.parametrize("mode", ["off", pytest.param("required", marks=needs_a_box)])
async def test_what_a_command_started_is_killed_when_we_are_killed(tmp_path: Path, mode: str):
    os.mkfifo(tmp_path / "ready")
    long = nap()
    command = f"trap '' TERM HUP; {long} & echo begun > ready; {long}"
    us = await asyncio.create_subprocess_exec(sys.executable, "-c", _CHILD, mode, str(tmp_path), command)
    assert await asyncio.to_thread((tmp_path / "ready").read_text) == "begun\n"
    assert running(long)

    us.send_signal(signal.SIGKILL)
    await us.wait()

    assert await gone(long)


# -- where there is none -----------------------------------------------------------------------------------------------


def machine(folder: Path, bwrap: str | None) -> str:
    """A PATH with this bubblewrap on it, or none."""
    if bwrap is not None:
        (folder / "bwrap").write_text(f"#!/bin/sh\n{bwrap}\n")
        (folder / "bwrap").chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("bwrap", "why"),
    [
        (None, "bubblewrap is not installed"),
        ("echo no permissions to create a new namespace >&2; exit 1", "no permissions to create a new namespace"),
        ("exit 0", "does not work here"),
        ("kill -9 $$", "does not work here"),
    ],
)
async def test_a_box_that_cannot_be_made_is_said_and_where_it_is_required_nothing_runs(
    tmp_path: Path, bwrap: str | None, why: str
):
    path = machine(tmp_path, bwrap)
    wished, required = await Sandbox("auto").boundary(path), await Sandbox("required").boundary(path)

    assert (wished.program, wished.refuses, required.refuses) == ("", False, True)
    assert why in str(wished)
    assert "without a sandbox" in str(wished)
    assert "bash refuses to run" in str(required)
    assert why in str(required)


async def test_a_command_that_needs_a_box_and_has_none_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "ws").mkdir()
    (tmp_path / "bin" / "bash").symlink_to("/bin/bash")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    within_ws = within(tmp_path / "ws", 30)

    refused = await bash_tool(Sandbox("required")).run({"command": "echo > ran"}, within_ws)
    assert refused.outcome == "error"
    assert "Nothing was run" in refused.content
    assert not (tmp_path / "ws" / "ran").exists()
    for mode in ("auto", "off"):
        assert (await bash_tool(Sandbox(mode)).run({"command": "echo ran"}, within_ws)).content.startswith("ran")  # type: ignore[arg-type]


def test_each_boundary_is_said_in_words():
    assert "sandbox (bubblewrap)" in str(Boundary("/usr/bin/bwrap"))
    assert "switched off" in str(Boundary(missing="it is switched off"))
