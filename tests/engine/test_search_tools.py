"""Files are found by name and by what they hold: inside the workspace, in a fixed order, and to an end in any case."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_core.errors import ToolFailed
from harness_core.ports import ToolContext
from harness_core.testing import FakeClock
from harness_core.tools import walk as walk_module
from harness_core.tools.confined import LARGEST_FILE
from harness_core.tools.glob import GLOB_PATHS, glob
from harness_core.tools.grep import GREP_CHARS, GREP_LINES, LINE_BYTES, LINE_CHARS, grep
from harness_core.tools.patterns import ALTERNATIVES, path_pattern
from harness_core.tools.walk import DEPTH, Budget, Spent, search
from harness_core.types import Deadline, ToolResult
from tests.conftest import PATIENCE

FILES = {
    "README.md": "# Title\nsome text\n",
    "src/main.py": "import os\n\n\ndef main():\n    print('needle')\n",
    "src/lib/util.py": "def util():\n    return 'Needle'\n",
    "src/lib/page.ts": "needle();\n",
    "src/lib/page.tsx": "",
    ".env": "needle=secret\n",
    ".github/workflows/ci.yml": "needle: 1\n",
    ".git/config": "needle\n",
    "image.png": "\0needle",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key.py").write_text("needle\n")
    return folder


@pytest.fixture
def context(workspace: Path) -> ToolContext:
    clock = FakeClock()
    return ToolContext("s", "c", workspace, Deadline(clock.monotonic() + 60), clock)


async def lines(tool: Any, where: ToolContext, /, **args: Any) -> list[str]:
    result = await tool.run(args, where)
    assert result.outcome == "ok", result.content
    return result.content.split("\n")  # type: ignore[no-any-return]


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["README.md", "image.png", "src/"]),
        ("*.py", ["(nothing matches)"]),
        ("**/*.py", ["src/lib/util.py", "src/main.py"]),
        ("src/*.py", ["src/main.py"]),
        ("./src//main.py", ["src/main.py"]),
        ("src/**/util.py", ["src/lib/util.py"]),
        ("**/lib/**/*.{ts,tsx}", ["src/lib/page.ts", "src/lib/page.tsx"]),
        ("{README.md,src/{main,lib/util}.py}", ["README.md", "src/lib/util.py", "src/main.py"]),
        ("**/page.ts?", ["src/lib/page.tsx"]),
        ("[!R]*.png", ["image.png"]),
        ("**/{", ["(nothing matches)"]),
        (".*", [".env", ".github/"]),
        (".github/**/*.yml", [".github/workflows/ci.yml"]),
        ("**/*.yml", ["(nothing matches)"]),
        (".*/config", ["(nothing matches)"]),
        (".git/*", [".git/config"]),
    ],
)
async def test_a_pattern_finds_what_a_shell_would_find(pattern: str, found: list[str], context: ToolContext):
    assert await lines(glob, context, pattern=pattern) == found


async def test_paths_are_told_from_the_workspace_so_that_read_takes_them(context: ToolContext):
    assert await lines(glob, context, pattern="*.py", path="src/lib") == ["src/lib/util.py"]
    assert await lines(glob, context, pattern="*.yml", path=".github/workflows") == [".github/workflows/ci.yml"]


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "src/../../*", "~/x", "a\0b", "x" * 501, "{a,b}" * 7])
async def test_a_pattern_that_is_none_is_refused_in_words(pattern: str, context: ToolContext):
    result = await glob.run({"pattern": pattern}, context)

    assert result.outcome == "error"
    assert "pattern" in result.content or "relative" in result.content


@given(pattern=st.text("ab*?[]{},./!-", max_size=20), parts=st.lists(st.text("ab.", min_size=1, max_size=6)))
def test_no_pattern_does_more_than_match_or_be_refused(pattern: str, parts: list[str]):
    try:
        read = path_pattern(pattern)
    except ToolFailed:
        return
    state = read.start()
    for part in parts:
        state = read.after(state, part)
    assert read.matched(state) in (True, False)
    assert len(read.alternatives) <= ALTERNATIVES


@pytest.mark.parametrize("pattern", ["*a" * 200, "**/" * 150 + "x", "[!b]" * 100 + "c", "**/*a" * 80])
def test_no_pattern_makes_matching_long(pattern: str):
    read = path_pattern(pattern)
    state = read.start()
    for _ in range(30):  # what tries every way to match has not ended when the test's time is over
        state = read.after(state, "a" * 255)

    assert read.matched(state) in (True, False)


# -- nothing leads out -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["..", "../outside", "/etc", "door", "door/.."])
async def test_a_search_outside_the_workspace_is_refused(path: str, workspace: Path, context: ToolContext):
    (workspace / "door").symlink_to("../outside")
    for each, args in ((glob, {"pattern": "**"}), (grep, {"pattern": "needle"})):
        found = await each.inspect({**args, "path": path}, context)
        assert found.outside
        assert "outside the workspace" in found.problem
        result = await each.run({**args, "path": path}, context)
        assert result.outcome == "error"
        assert "outside the workspace" in result.content


async def test_links_are_shown_and_not_followed(workspace: Path, context: ToolContext):
    (workspace / "door").symlink_to("../outside")
    (workspace / "key.py").symlink_to("../outside/key.py")
    (workspace / "src" / "loop").symlink_to("..")

    found = await lines(glob, context, pattern="**/*")
    assert {"door@", "key.py@", "src/loop@"} <= set(found)
    assert not any(path.startswith(("door/", "src/loop/")) for path in found)
    assert all(line.startswith("src/") for line in await lines(grep, context, pattern="needle"))


async def test_a_link_inside_the_workspace_may_be_named(workspace: Path, context: ToolContext):
    (workspace / "here").symlink_to("src/lib")

    assert await lines(glob, context, pattern="*.py", path="here") == ["src/lib/util.py"]
    assert (await glob.inspect({"pattern": "*", "path": "here"}, context)).paths == ("src/lib",)


async def test_a_folder_that_becomes_a_link_meanwhile_is_not_entered(
    workspace: Path, context: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    honest = walk_module._entries

    def swap_after(place: Any, budget: Budget) -> Any:
        entries = honest(place, budget)
        if not place.names and (workspace / "src").is_dir() and not (workspace / "src").is_symlink():
            (workspace / "src").rename(tmp_path / "moved")
            (workspace / "src").symlink_to("../outside")
        return entries

    monkeypatch.setattr(walk_module, "_entries", swap_after)

    assert await lines(glob, context, pattern="**/*.py") == ["(nothing matches)", "[1 folders could not be searched]"]


async def test_what_is_not_there_is_told(context: ToolContext):
    for each, args in ((glob, {"pattern": "*"}), (grep, {"pattern": "x"})):
        assert await each.run({**args, "path": "no"}, context) == ToolResult("no does not exist.", "error")
    result = await glob.run({"pattern": "*", "path": "README.md"}, context)
    assert result == ToolResult("README.md is not a folder.", "error")


# -- lines -------------------------------------------------------------------------------------------------------------


async def test_matches_come_by_path_and_line_and_hidden_and_binary_files_are_left_out(context: ToolContext):
    assert await lines(grep, context, pattern="needle") == [
        "src/lib/page.ts:1: needle();",
        "src/main.py:5:     print('needle')",
    ]
    assert "src/lib/util.py:2:     return 'Needle'" in await lines(grep, context, pattern="needle", ignore_case=True)
    assert await lines(grep, context, pattern="^nothing$") == ["(nothing matches)"]


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ({"glob": "*.ts"}, ["src/lib/page.ts"]),
        ({"glob": "src/*.py"}, ["src/main.py"]),
        ({"glob": "*.{py,ts}"}, ["src/lib/page.ts", "src/main.py"]),
        ({"glob": ".env"}, [".env"]),
        ({"path": ".git"}, [".git/config"]),
        ({"path": ".github"}, [".github/workflows/ci.yml"]),
        ({"path": "src/main.py"}, ["src/main.py"]),
        ({"path": ".env"}, [".env"]),
    ],
)
async def test_a_search_is_narrowed_by_folder_file_and_name(where: Any, files: list[str], context: ToolContext):
    found = await lines(grep, context, pattern="needle", **where)

    assert [line.partition(":")[0] for line in found] == files


async def test_context_is_shown_once_and_gaps_are_marked(workspace: Path, context: ToolContext):
    (workspace / "a.txt").write_text("1\nx2\n3\nx4\n5\n6\n7\n8\nx9")
    (workspace / "b.txt").write_text("x1\n2")

    assert await lines(grep, context, pattern="x", path=".", glob="*.txt", context=1) == [
        "a.txt-1- 1",
        "a.txt:2: x2",
        "a.txt-3- 3",
        "a.txt:4: x4",
        "a.txt-5- 5",
        "--",
        "a.txt-8- 8",
        "a.txt:9: x9",
        "--",
        "b.txt:1: x1",
        "b.txt-2- 2",
    ]


async def test_line_ends_and_odd_bytes_are_no_part_of_a_line(workspace: Path, context: ToolContext):
    (workspace / "a.txt").write_bytes(b"caf\xe9 end\r\nnext\r\n")
    (workspace / "new\nline.txt").write_text("end")

    assert await lines(grep, context, pattern="end$", glob="*.txt") == ["a.txt:1: caf� end", "'new\\nline.txt':1: end"]


async def test_a_long_line_is_shown_around_its_match(workspace: Path, context: ToolContext):
    (workspace / "long.txt").write_text("é" * 5_000 + "needle" + "b" * 5_000)

    (line,) = await lines(grep, context, pattern="needle", path="long.txt")

    assert "éneedleb" in line
    assert line.endswith("b…")
    assert len(line) < LINE_CHARS + 30


async def test_only_the_beginning_of_an_endless_line_is_searched_and_that_is_told(
    workspace: Path, context: ToolContext
):
    (workspace / "long.txt").write_text("a" * LINE_BYTES + "needle")

    assert await lines(grep, context, pattern="needle", path="long.txt") == [
        "(nothing matches)",
        f"[1 lines were searched in their first {LINE_BYTES:,} bytes only]",
    ]


# -- no pattern, no tree, no file makes it hang ------------------------------------------------------------------------

CATASTROPHIC = [
    r"^(a+)+$",
    r"(a|aa)+$",
    r"(x+x+)+y",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(.*)*(.*)*(.*)*z",
    r"(a?){500}b",
]


@pytest.mark.parametrize("pattern", CATASTROPHIC)
async def test_a_catastrophic_pattern_takes_no_longer_than_others(pattern: str, workspace: Path, context: ToolContext):
    (workspace / "a.txt").write_text("a" * 5_000 + "!\n" + "x" * 5_000 + "\n")

    assert await lines(grep, context, pattern=pattern, path="a.txt") == ["(nothing matches)"]


@pytest.mark.parametrize(
    "pattern",
    ["", "a\nb", "x" * 1_001, "foo(", "(?=a)", r"(a)\1", "[z-a]", "a{2000}", "((a{0,100}){0,100}){0,100}", r"\pL{300}"],
)
async def test_a_pattern_that_cannot_be_used_is_refused_in_words(pattern: str, context: ToolContext):
    result = await grep.run({"pattern": pattern}, context)

    assert result.outcome == "error"
    assert result.content.startswith("The pattern ")
    assert len(result.content) < 500


@pytest.mark.parametrize(
    ("pattern", "why"), [("foo(", "missing )"), ("(?=a)", "invalid perl operator"), (r"(a)\1", "invalid escape")]
)
async def test_a_pattern_that_cannot_be_used_is_told_why(pattern: str, why: str, context: ToolContext):
    assert f"cannot be used: {why}" in (await grep.run({"pattern": pattern}, context)).content


@given(pattern=st.text("ab.*+?()[]{}|^$\\d1,", min_size=1, max_size=12) | st.text(min_size=1, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
def test_any_pattern_gives_a_result(pattern: str, context: ToolContext):
    result = asyncio.run(grep.run({"pattern": pattern, "path": "src"}, context))

    assert result.content
    assert result.outcome in ("ok", "error")


async def test_results_are_bounded_and_say_so(workspace: Path, context: ToolContext):
    (workspace / "many.txt").write_text("needle\n" * (GREP_LINES + 1))
    (workspace / "wide.txt").write_text(("needle" + "b" * 250 + "\n") * GREP_LINES)

    many = await lines(grep, context, pattern="needle", path="many.txt")
    assert len(many) == GREP_LINES + 1
    assert many[-1].startswith(f"[more than {GREP_LINES:,} matches; ")
    wide = await lines(grep, context, pattern="needle", path="wide.txt")
    assert sum(map(len, wide)) < GREP_CHARS + 100
    assert wide[-1].startswith("[there is more; ")


async def test_a_great_many_names_are_bounded_and_the_same_ones_come_each_time(workspace: Path, context: ToolContext):
    (workspace / "many").mkdir()
    for n in range(GLOB_PATHS + 5):
        (workspace / "many" / f"{n:05}").touch()

    found = await lines(glob, context, pattern="many/*")

    assert found[:-1] == [f"many/{n:05}" for n in range(GLOB_PATHS)]
    assert found[-1].startswith(f"[more than {GLOB_PATHS:,} matches; ")


async def test_entries_bytes_and_time_are_bounded(context: ToolContext, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(walk_module, "ENTRIES", 3)
    assert (await lines(glob, context, pattern="**"))[
        -1
    ] == "[stopped after 3 files and folders; search a smaller folder]"
    monkeypatch.undo()
    monkeypatch.setattr(walk_module, "SEARCH_BYTES", 10)
    assert (await lines(grep, context, pattern="t"))[-1].startswith("[stopped after 10 bytes; ")
    monkeypatch.undo()
    late = ToolContext("s", "c", context.workspace, Deadline(context.clock.monotonic()), context.clock)
    monkeypatch.setattr(Budget, "entry", lambda budget: time.sleep(0.03) or budget.step())
    assert (await lines(glob, late, pattern="**"))[-1].startswith("[stopped after 0.05 seconds; ")


async def test_what_cannot_be_read_is_counted(workspace: Path, context: ToolContext):
    with (workspace / "huge.txt").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    os.mkfifo(workspace / "pipe")
    deep = workspace / "/".join(["d"] * (DEPTH + 3))
    deep.mkdir(parents=True)

    assert await lines(grep, context, pattern="Title") == [
        "README.md:1: # Title",
        "[2 files or folders could not be searched, or are too large]",
    ]


async def test_a_cancelled_search_ends_its_thread(context: ToolContext):
    running, ended = threading.Event(), threading.Event()

    def work(budget: Budget) -> None:
        try:
            while True:
                running.set()
                budget.step()
        except Spent:
            ended.set()
            raise

    task = asyncio.create_task(search(context, work))
    assert await asyncio.to_thread(running.wait, PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended.is_set()


async def test_others_go_on_while_a_hard_pattern_is_matched(workspace: Path, context: ToolContext):
    (workspace / "a.txt").write_text("abcd" * (LINE_BYTES // 4))  # one line, and so one match that nothing interrupts
    turns = 0
    task = asyncio.create_task(grep.run({"pattern": "((a?b?c?d?){50}){10}z", "path": "a.txt"}, context))
    while not task.done():
        await asyncio.sleep(0)
        turns += 1

    assert (await task).content == "(nothing matches)"
    assert turns > 200
