"""One command: a fresh shell, a clean environment, and nothing that outlives it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from harness_core.clock import SystemClock
from harness_core.ports import ToolContext
from harness_core.tools.environment import clean_environment
from harness_core.tools.sandbox import Sandbox
from harness_core.tools.shell import BASH_SECONDS, OUTPUT_CHARS, bash, bash_tool
from harness_core.types import Deadline, ToolResult

LIMITS = (0.2, 1.0, 5.0, 25.0)  # seconds for a command that never ends: as many as this machine needs to begin it


def within(workspace: Path, seconds: float) -> ToolContext:
    return ToolContext("s", "c", workspace, Deadline(time.monotonic() + seconds), SystemClock())


Run = Callable[..., Coroutine[Any, Any, ToolResult]]


def boxes() -> bool:
    """Whether this machine can box a command."""
    return bool(asyncio.run(Sandbox().boundary()).program)


@pytest.fixture(params=["bare", pytest.param("boxed", marks=pytest.mark.skipif(not boxes(), reason="no bubblewrap"))])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a command in a workspace, with and without a sandbox: but for what it may reach there is no difference."""
    tool = bash_tool(Sandbox("off" if request.param == "bare" else "required"))

    async def run(workspace: Path, command: str, seconds: float = 30) -> ToolResult:
        return await tool.run({"command": command}, within(workspace, seconds))

    return run


def nap() -> str:
    """A command that takes longer than a test may, and that nobody else runs: in a box processes have other numbers."""
    return f"sleep 600.{uuid4().int}"


def running(words: str) -> bool:
    """Whether any process on this machine has these words in its command line. What is over has none."""
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if words.encode() in one.read_bytes().replace(b"\0", b" "):
                return True
    return False


async def gone(words: str) -> bool:
    """Whether nobody runs this within a moment: the signal was sent, but the kernel takes its time."""
    for _ in range(3_000):
        if not running(words):
            return True
        await asyncio.sleep(0.01)
    return False


# -- what comes back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("echo hello", ToolResult("hello\nexit code 0")),
        ("printf 'no newline'", ToolResult("no newline\nexit code 0")),
        ("true", ToolResult("(no output)\nexit code 0")),
        ("echo one; echo two >&2; echo three", ToolResult("one\ntwo\nthree\nexit code 0")),
        ("echo bad >&2; exit 3", ToolResult("bad\nexit code 3", "error")),
        ("kill -9 $$", ToolResult("(no output)\nexit code 137", "error")),
        ("echo 'exit code 0'; false", ToolResult("exit code 0\nexit code 1", "error")),
        ("printf 'a\\rb\\x1b[1mc'", ToolResult("a\rb\x1b[1mc\nexit code 0")),
        ("printf 'a\\xffb'", ToolResult("a\N{REPLACEMENT CHARACTER}b\nexit code 0")),
        ("echo 'grüße €'", ToolResult("grüße €\nexit code 0")),
        ("cat", ToolResult("(no output)\nexit code 0")),
        ("test -t 0 || echo no terminal; tty", ToolResult("no terminal\nnot a tty\nexit code 1", "error")),
    ],
)
async def test_output_comes_merged_in_order_and_the_exit_code_last(
    run: Run, command: str, result: ToolResult, tmp_path: Path
):
    assert await run(tmp_path, command) == result


async def test_a_command_leaves_nothing_open(run: Run, tmp_path: Path):
    await run(tmp_path, "true")  # what is made once is made
    before = os.listdir("/proc/self/fd")

    await run(tmp_path, "echo hello")

    assert os.listdir("/proc/self/fd") == before


async def test_a_command_that_begins_with_a_dash_is_a_command_not_an_option(run: Run, tmp_path: Path):
    assert (await run(tmp_path, "-x")).content.endswith("line 1: -x: command not found\nexit code 127")


async def test_long_output_keeps_head_and_tail(run: Run, tmp_path: Path):
    result = await run(tmp_path, "echo first; seq 100000; echo last")

    assert result.content.startswith("first\n1\n2\n")
    assert result.content.endswith("100000\nlast\nexit code 0")
    assert "characters left out …]" in result.content
    assert len(result.content) < OUTPUT_CHARS + 100


async def test_a_command_works_in_the_workspace_and_leaves_no_state_behind(run: Run, tmp_path: Path):
    (tmp_path / "sub").mkdir()

    assert (await run(tmp_path, "pwd -P")).content == f"{tmp_path}\nexit code 0"
    await run(tmp_path, "cd sub; export LEFT=1; alias ls=false")
    assert (await run(tmp_path, "echo ${LEFT-none} $(basename $(pwd)); ls")).content.startswith(
        f"none {tmp_path.name}\nsub"
    )


@pytest.mark.parametrize(
    ("command", "why"), [("a\0b", "NUL"), ("", "empty"), ("  \n", "empty"), ("echo \ud800", "Unicode")]
)
async def test_what_is_no_command_is_refused_in_words(run: Run, command: str, why: str, tmp_path: Path):
    assert why in bash.check({"command": command})
    assert (await run(tmp_path, command)).outcome == "error"


async def test_a_command_that_cannot_be_started_is_an_error(run: Run, tmp_path: Path):
    too_long = await run(tmp_path, "true " + "x" * 200_000)
    nowhere = await run(tmp_path / "none", "true")

    assert too_long == ToolResult("The command could not be started: Argument list too long.", "error")
    assert nowhere == ToolResult("The command could not be started: No such file or directory.", "error")


@pytest.mark.parametrize(
    "odd", ["", "'", "\\", " ", "é \u4e2d", "\r", "\u202e", "\x7f", "\ufeff", "%s $HOME `id` !! ~"]
)
async def test_the_bytes_that_were_judged_are_the_bytes_that_run_in_a_shell_without_start_up_files(
    run: Run, odd: str, tmp_path: Path
):
    command = f"cat /proc/$$/cmdline > seen; : #{odd}"

    assert (await run(tmp_path, command)).outcome == "ok"

    bash, *argv = (tmp_path / "seen").read_bytes().removesuffix(b"\0").split(b"\0")
    assert bash.endswith(b"/bash")
    assert argv == [b"--noprofile", b"--norc", b"-c", b"--", command.encode()]


def test_rules_match_the_command_and_nothing_is_taken_for_read_only():
    args = {"command": "ls"}

    assert bash.subject(args) == "ls"
    assert not bash.read_only(args)
    assert not bash.repeatable(args)
    assert bash.timeout > BASH_SECONDS


# -- what it sees ------------------------------------------------------------------------------------------------------


async def test_no_secret_of_the_host_and_no_switch_of_a_program_reaches_the_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "rc").write_text("echo infected\n")
    for name in ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "OPENAI_API_KEY", "DATABASE_URL", "LC_SECRET", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "xoxb-999")
    for name in ("BASH_ENV", "ENV"):
        monkeypatch.setenv(name, str(tmp_path / "rc"))
    for name in (
        "PS4",
        "LD_PRELOAD",
        "GIT_DIR",
        "LESSOPEN",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "TAR_OPTIONS",
        "EDITOR",
        "IFS",
    ):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("BASH_FUNC_ls%%", "() { echo infected; }")
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), ".", "", "bin", os.environ["PATH"]]))
    monkeypatch.setenv("PAGER", "less")

    lines = (await run(tmp_path, "env; ls rc")).content.split("\n")
    seen = dict(line.split("=", 1) for line in lines if "=" in line)

    assert "xoxb" not in "\n".join(lines)
    assert "infected" not in lines
    assert set(seen) <= {
        "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "PATH", "TERM", "PAGER",
        "GIT_PAGER", "GIT_OPTIONAL_LOCKS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0",
        "GIT_CONFIG_KEY_1", "GIT_CONFIG_VALUE_1", "GIT_CONFIG_KEY_2", "GIT_CONFIG_VALUE_2", "GIT_CONFIG_KEY_3",
        "GIT_CONFIG_VALUE_3", "PIP_DISABLE_PIP_VERSION_CHECK", "CHECKPOINT_DISABLE", "PWD",
        "SHLVL", "_",
    }  # fmt: skip
    assert (seen["TERM"], seen["PAGER"], seen["GIT_PAGER"], seen["GIT_OPTIONAL_LOCKS"]) == ("dumb", "cat", "cat", "0")
    assert seen["PIP_DISABLE_PIP_VERSION_CHECK"] == "1", "`pip list` would run the rustc that the workspace names"
    assert all(folder.startswith("/") and not folder.startswith(str(tmp_path)) for folder in seen["PATH"].split(":"))


def test_a_path_never_leads_into_the_workspace_not_even_by_a_link(tmp_path: Path):
    workspace = tmp_path / "ws"
    (workspace / "bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(workspace / "bin")
    (tmp_path / "ws2").mkdir()

    def path(*folders: str) -> str:
        return clean_environment({"PATH": os.pathsep.join(folders)}, workspace)["PATH"]

    assert path(str(workspace), str(workspace / "bin"), str(tmp_path / "link"), "/bin") == "/bin"
    assert path(str(tmp_path / "ws2"), ".", "") == str(tmp_path / "ws2")
    assert path("relative").startswith("/usr/local/sbin:")


# -- nothing outlives it -----------------------------------------------------------------------------------------------


async def too_long(run: Run, workspace: Path, command: str, begun: str) -> ToolResult:
    """What comes of a command that never ends, after it has printed this."""
    for seconds in LIMITS:
        result = await run(workspace, command, seconds)
        if result.content.startswith(begun):
            break
    return result


async def test_a_command_that_takes_too_long_is_killed_with_all_it_started(run: Run, tmp_path: Path):
    long = nap()
    result = await too_long(run, tmp_path, f"{long} & echo begun; {long}", "begun\n")

    begun, note, code = result.content.split("\n")
    assert (result.outcome, begun, code) == ("error", "begun", "exit code 143")
    assert re.fullmatch(r"\[killed: it took longer than [0-9.]+ seconds\]", note)
    assert await gone(long)


async def test_one_that_ignores_the_request_to_end_is_killed_all_the_same(run: Run, tmp_path: Path):
    long = nap()
    result = await too_long(run, tmp_path, f"trap '' TERM; echo begun; while :; do {long}; done", "begun\n")

    assert result.content.endswith("exit code 137")
    assert await gone(long)


async def test_endless_output_is_bounded_in_memory_and_ends_in_time(run: Run, tmp_path: Path):
    result = await too_long(run, tmp_path, "yes", "y\ny\n")

    assert result.content.startswith("y\ny\n")
    assert "characters left out" in result.content
    assert len(result.content) < OUTPUT_CHARS + 200


@pytest.mark.parametrize("output", ["", ">/dev/null 2>&1"])
async def test_a_background_process_does_not_hang_the_call_and_is_killed(run: Run, tmp_path: Path, output: str):
    long = nap()
    result = await run(tmp_path, f"{long} {output} & echo begun")

    assert result == ToolResult("begun\nexit code 0")
    assert await gone(long)


async def test_what_escapes_into_a_session_of_its_own_does_not_hang_the_call(run: Run, tmp_path: Path):
    result = await run(tmp_path, "setsid sleep 2 & echo started")

    assert result == ToolResult("started\nexit code 0")


@pytest.mark.parametrize("cancels", [1, 2])
async def test_a_cancelled_command_is_dead_when_the_cancellation_comes_out(run: Run, cancels: int, tmp_path: Path):
    os.mkfifo(tmp_path / "ready")
    long = nap()
    task = asyncio.create_task(run(tmp_path, f"trap '' TERM; {long} & echo begun > ready; wait"))
    assert await asyncio.to_thread((tmp_path / "ready").read_text) == "begun\n"
    assert running(long)

    for _ in range(cancels):
        task.cancel()
        await asyncio.wait([task], timeout=0)
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await gone(long)


async def test_commands_run_side_by_side(run: Run, tmp_path: Path):
    results = await asyncio.gather(*(run(tmp_path, f"echo {n}") for n in range(20)))

    assert [r.content for r in results] == [f"{n}\nexit code 0" for n in range(20)]


def children_of_ours() -> str:
    """The processes that we have not waited for, the dead ones too."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


async def test_no_file_descriptor_and_no_process_of_ours_is_left(run: Run, tmp_path: Path):
    await run(tmp_path, "true")
    before = set(os.listdir("/proc/self/fd")), children_of_ours()  # other tests of this process may have a browser
    for command in ("true", "sleep 60 &", "echo {1..9}"):
        await run(tmp_path, command)
    await run(tmp_path / "none", "true")

    assert (set(os.listdir("/proc/self/fd")), children_of_ours()) == before


@pytest.mark.parametrize(
    "trap",
    [
        "git config core.fsmonitor 'touch ran; false'",
        "printf '#!/bin/sh\ntouch ran\n' > .git/hooks/post-index-change; chmod +x .git/hooks/*",
        "mkdir h; printf '#!/bin/sh\ntouch ran\n' > h/post-index-change; chmod +x h/*; git config core.hooksPath h",
        "git config core.pager 'touch ran; cat'; git config pager.status 'touch ran; cat'; git config pager.log true",
        "git config core.editor 'touch ran'",
    ],
)
async def test_what_a_repository_brings_along_is_not_run_by_verbs_that_only_read(run: Run, trap: str, tmp_path: Path):
    made = await run(tmp_path, f"git init -q . && echo x > f && git add f; {trap}")
    assert made.outcome == "ok"

    for verb in ("status", "log", "ls-files", "diff", "branch", "blame f", "describe --dirty", "stash list"):
        await run(tmp_path, f"git {verb}")
        assert "ran" not in os.listdir(tmp_path), verb
    assert "new file" in (await run(tmp_path, "git status")).content


async def test_a_program_in_the_workspace_is_never_the_one_that_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("ls", "cat", "bash", "bwrap", "git"):
        (tmp_path / name).write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), ".", "", os.environ["PATH"]]))

    assert (await run(tmp_path, "ls | cat; git --version; bash -c :")).outcome == "ok"
    assert not (tmp_path / "ran").exists()
