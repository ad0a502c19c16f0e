"""Files are read and written inside the workspace, and nowhere else."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.ports import ToolContext
from harness_core.testing import FakeClock
from harness_core.tools import confined
from harness_core.tools.confined import LARGEST_FILE, in_thread
from harness_core.tools.diff import DIFF_CHARS, unified
from harness_core.tools.files import LIST_ENTRIES, READ_CHARS, edit, ls, read, write
from harness_core.types import ABSENT, NO_DEADLINE, Inspection, ToolResult


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (tmp_path / "ws-secret").mkdir()
    (tmp_path / "ws-secret" / "key").write_text("outside")
    return folder


@pytest.fixture
def context(workspace: Path) -> ToolContext:
    return ToolContext("s", "c", workspace, NO_DEADLINE, FakeClock(auto=True))


def real(path: Path) -> str:
    return os.path.realpath(path)


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# -- nothing leads out -------------------------------------------------------------------------------------------------

OUTSIDE = ["../ws-secret/key", "a/../../ws-secret/key", "/etc/hostname", "out", "door/key", "chain", "sub/../door/key"]


@pytest.fixture
def doors(workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "out").symlink_to("../ws-secret/key")
    (workspace / "door").symlink_to("../ws-secret")
    (workspace / "chain").symlink_to("out")


@pytest.mark.usefixtures("doors")
@pytest.mark.parametrize("path", OUTSIDE)
async def test_a_path_that_leads_outside_is_refused_by_every_tool(path: str, context: ToolContext, tmp_path: Path):
    calls: list[tuple[Any, dict[str, Any]]] = [
        (read, {"path": path}),
        (write, {"path": path, "content": "x"}),
        (edit, {"path": path, "old": "outside", "new": "x"}),
        (ls, {"path": path}),
    ]
    for each, args in calls:
        found = await each.inspect(args, context)
        assert found.outside
        assert "outside the workspace" in found.problem
        assert found.paths == (real(context.workspace / path),)
        assert found.preview == ""
        result = await each.run(args, context)
        assert result.outcome == "error"
        assert "outside the workspace" in result.content
    assert (tmp_path / "ws-secret" / "key").read_text() == "outside"


async def test_a_link_to_a_new_file_outside_is_refused(workspace: Path, context: ToolContext, tmp_path: Path):
    (workspace / "new").symlink_to(tmp_path / "made")

    assert (await write.run({"path": "new", "content": "x"}, context)).outcome == "error"
    assert not (tmp_path / "made").exists()


async def test_a_sibling_whose_name_begins_alike_is_outside(context: ToolContext, tmp_path: Path):
    assert (await read.run({"path": str(tmp_path / "ws-secret" / "key")}, context)).outcome == "error"


@pytest.mark.parametrize("swapped", ["sub", "sub/key"])
async def test_a_link_put_in_after_the_path_was_resolved_leads_to_an_error(
    swapped: str, workspace: Path, context: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (workspace / "sub").mkdir()
    (workspace / "sub" / "key").write_text("inside")
    honest = confined.resolved

    def resolve_then_swap(root: Path, path: str) -> tuple[str, str]:
        answer = honest(root, path)
        (workspace / swapped).rename(tmp_path / "moved")
        (workspace / swapped).symlink_to(tmp_path / "ws-secret" / ("key" if swapped == "sub/key" else ""))
        monkeypatch.setattr(confined, "resolved", honest)
        return answer

    monkeypatch.setattr(confined, "resolved", resolve_then_swap)
    result = await read.run({"path": "sub/key"}, context)

    assert result.outcome == "error"
    assert "outside" not in result.content


async def test_a_parent_that_becomes_a_link_between_inspect_and_run_is_refused(
    workspace: Path, context: ToolContext, tmp_path: Path
):
    (workspace / "sub").mkdir()
    args = {"path": "sub/key", "content": "overwritten"}
    assert (await write.inspect(args, context)).problem == ""

    (workspace / "sub").rmdir()
    (workspace / "sub").symlink_to(tmp_path / "ws-secret")

    assert (await write.run(args, context)).outcome == "error"
    assert (tmp_path / "ws-secret" / "key").read_text() == "outside"


async def test_a_write_does_not_follow_a_link_that_appears_at_its_target(
    workspace: Path, context: ToolContext, tmp_path: Path
):
    place = confined.inside(workspace, "key")
    (workspace / "key").symlink_to(tmp_path / "ws-secret" / "key")

    with pytest.raises(confined.ToolFailed, match="has just become a symlink"):
        confined.replace(place, b"x")
    assert (tmp_path / "ws-secret" / "key").read_text() == "outside"


async def test_links_inside_the_workspace_are_followed_and_stay_links(workspace: Path, context: ToolContext):
    (workspace / "real").mkdir()
    (workspace / "real" / "a.txt").write_text("old")
    (workspace / "link").symlink_to("real/a.txt")

    args = {"path": "link", "content": "new"}
    assert (await write.inspect(args, context)).paths == ("real/a.txt",)
    assert (await write.run(args, context)).outcome == "ok"
    assert (workspace / "link").is_symlink()
    assert (workspace / "real" / "a.txt").read_text() == "new"


async def test_a_link_to_itself_is_an_error(workspace: Path, context: ToolContext):
    (workspace / "loop").symlink_to("loop")

    assert (await read.run({"path": "loop"}, context)).outcome == "error"
    assert (await write.run({"path": "loop", "content": "x"}, context)).outcome == "error"


@pytest.mark.parametrize(("path", "why"), [("", "empty"), ("a\0b", "NUL"), ("~/x", "~ is not expanded")])
async def test_a_path_that_is_none_is_refused_before_anything_is_touched(path: str, why: str, context: ToolContext):
    for each, args in ((read, {}), (write, {"content": ""}), (edit, {"old": "a", "new": "b"}), (ls, {})):
        assert why in each.check({"path": path, **args})
        assert (await each.run({"path": path, **args}, context)).outcome == "error"


async def test_pipes_and_devices_are_refused_and_hang_nobody(workspace: Path, context: ToolContext):
    os.mkfifo(workspace / "pipe")

    assert "not a regular file" in (await read.run({"path": "pipe"}, context)).content
    assert "not a regular file" in (await write.run({"path": "pipe", "content": "x"}, context)).content
    assert "not a regular file" in (await write.inspect({"path": "pipe", "content": "x"}, context)).problem


@given(
    st.lists(st.sampled_from(["..", ".", "a", "door", "out", "/", "ws-secret", "key", "", "é", "x" * 300]), max_size=6)
)
def test_no_path_reads_what_is_outside(tmp_path_factory: pytest.TempPathFactory, parts: list[str]):
    root = tmp_path_factory.getbasetemp() / "paths"
    if not root.exists():
        (root / "ws" / "a").mkdir(parents=True)
        (root / "key").write_text("outside")
        (root / "ws" / "door").symlink_to("..")
        (root / "ws" / "a" / "out").symlink_to("../../key")
    context = ToolContext("s", "c", root / "ws", NO_DEADLINE, FakeClock(auto=True))

    result = asyncio.run(read.run({"path": "/".join(parts) or "."}, context))

    assert result.outcome == "error"
    assert result.content != "outside"


# -- reading -----------------------------------------------------------------------------------------------------------


async def test_a_long_file_is_read_in_pieces(workspace: Path, context: ToolContext):
    (workspace / "long").write_text("".join(f"line {n}\n" for n in range(1, 3001)))

    first = (await read.run({"path": "long"}, context)).content.split("\n")
    assert (first[0], first[-2]) == ("line 1", "line 2000")
    assert first[-1] == "[1,000 more lines; go on with offset=2001]"
    rest = (await read.run({"path": "long", "offset": 2001}, context)).content.split("\n")
    assert (rest[0], rest[-1]) == ("line 2001", "line 3000")
    assert (await read.run({"path": "long", "offset": 5, "limit": 1}, context)).content.split("\n")[0] == "line 5"
    assert "only 3,000 lines" in (await read.run({"path": "long", "offset": 3001}, context)).content
    assert "offset" in read.check({"path": "long", "offset": 0})


async def test_wide_lines_are_bounded_too(workspace: Path, context: ToolContext):
    (workspace / "wide").write_text("a" * 2 * READ_CHARS + "\nb\n")
    (workspace / "many").write_text(("c" * 999 + "\n") * 200)

    wide = (await read.run({"path": "wide"}, context)).content
    assert "[line 1 is cut: 90,000 more characters]\n[1 more lines; go on with offset=2]" in wide
    many = (await read.run({"path": "many"}, context)).content
    assert many.endswith("[110 more lines; go on with offset=91]")


async def test_what_is_no_text_is_said_to_be_binary(workspace: Path, context: ToolContext):
    (workspace / "bin").write_bytes(b"\x7fELF\0\0")
    (workspace / "latin").write_bytes(b"caf\xe9\n")
    (workspace / "empty").write_bytes(b"")

    assert await read.run({"path": "bin"}, context) == ToolResult("bin is a binary file of 6 bytes, not text.", "error")
    assert (
        "caf\N{REPLACEMENT CHARACTER}\n[not all of it is UTF-8" in (await read.run({"path": "latin"}, context)).content
    )
    assert await read.run({"path": "empty"}, context) == ToolResult("(empty file)")


async def test_a_huge_file_is_refused_without_being_read(workspace: Path, context: ToolContext):
    with (workspace / "huge").open("wb") as file:
        file.truncate(10**12)

    assert "too large (1,000,000,000,000 bytes" in (await read.run({"path": "huge"}, context)).content
    assert "too large" in (await write.inspect({"path": "huge", "content": ""}, context)).problem
    assert LARGEST_FILE < 10**12


@pytest.mark.parametrize(
    ("path", "why"), [("none", "does not exist"), (".", "is a folder"), ("f/x", "Not a directory")]
)
async def test_what_is_no_file_cannot_be_read(path: str, why: str, workspace: Path, context: ToolContext):
    (workspace / "f").write_text("x")

    result = await read.run({"path": path}, context)

    assert result.outcome == "error"
    assert why in result.content


async def test_a_folder_is_listed_without_following_anything(workspace: Path, context: ToolContext):
    (workspace / "b").mkdir()
    (workspace / "a.txt").write_text("12345")
    (workspace / "l").symlink_to("/etc")
    (workspace / "new\nline").write_text("")

    assert await ls.run({}, context) == ToolResult("'new\\nline'  0\na.txt  5\nb/\nl@")
    assert await ls.run({"path": "b"}, context) == ToolResult("(empty folder)")
    assert "is not a folder" in (await ls.run({"path": "a.txt"}, context)).content
    assert ls.subject({}) == "."


async def test_a_crowded_folder_is_listed_in_part(workspace: Path, context: ToolContext):
    for n in range(LIST_ENTRIES + 5):
        (workspace / f"f{n:04}").touch()

    assert (await ls.run({}, context)).content.endswith("[5 more entries]")


# -- writing -----------------------------------------------------------------------------------------------------------


async def test_a_new_file_is_written_with_its_folders(workspace: Path, context: ToolContext):
    args = {"path": "a/b/c.txt", "content": "one\ntwo\n"}

    found = await write.inspect(args, context)
    assert not (workspace / "a").exists()
    result = await write.run(args, context)

    assert found == Inspection(
        "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n",
        "diff",
        ("a/b/c.txt",),
        digests=(ABSENT,),
        covers=("content", "old", "new", "path"),
    )
    assert result == ToolResult("Created a/b/c.txt: 2 lines, 8 bytes.")
    assert (workspace / "a" / "b" / "c.txt").read_text() == "one\ntwo\n"


async def test_a_file_is_replaced_whole_and_keeps_its_mode(workspace: Path, context: ToolContext):
    file = workspace / "run.sh"
    file.write_text("old\n")
    file.chmod(0o750)
    args = {"path": "run.sh", "content": "new\n"}

    found = await write.inspect(args, context)
    result = await write.run(args, context)

    assert found.digests == (sha("old\n"),)
    assert found.preview == "--- a/run.sh\n+++ b/run.sh\n@@ -1,1 +1,1 @@\n-old\n+new\n"
    assert result.content == "Replaced run.sh: 1 line, 4 bytes."
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert files(workspace) == {"run.sh": "new\n"}


async def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    workspace: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
):
    (workspace / "a").write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(confined.os, "fsync", full)
    result = await write.run({"path": "a", "content": "new"}, context)

    assert result == ToolResult("The file system refused: No space left on device.", "error")
    assert files(workspace) == {"a": "old"}


async def test_a_binary_file_that_would_be_replaced_is_called_so(workspace: Path, context: ToolContext):
    (workspace / "a").write_bytes(b"\0\1")

    found = await write.inspect({"path": "a", "content": "x\n"}, context)

    assert found.preview.startswith("[the file that is there now is binary, 2 bytes; all of it is replaced]\n")


async def test_a_cancelled_write_has_ended_when_the_cancellation_comes_out():
    entered, may_go_on, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        entered.set()
        may_go_on.wait(5)
        done.set()

    task = asyncio.create_task(in_thread(work))
    await asyncio.to_thread(entered.wait, 5)
    for _ in range(2):
        task.cancel()
        await asyncio.wait([task], timeout=0)
    assert not task.done()
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()


# -- editing -----------------------------------------------------------------------------------------------------------


async def test_an_edit_replaces_one_place_and_shows_it_first(workspace: Path, context: ToolContext):
    (workspace / "a").write_text("one\ntwo\nthree")
    args = {"path": "a", "old": "two", "new": "2"}

    found = await edit.inspect(args, context)
    result = await edit.run(args, context)

    assert found.preview == (
        "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n\\ No newline at end of file\n"
    )
    assert found.digests == (sha("one\ntwo\nthree"),)
    assert result == ToolResult("Edited a: replaced 1 occurrence.")
    assert (workspace / "a").read_text() == "one\n2\nthree"


async def test_an_edit_of_all_places_says_how_many(workspace: Path, context: ToolContext):
    (workspace / "a").write_text("x x x")

    assert (await edit.run({"path": "a", "old": "x", "new": "y", "all": True}, context)).content.endswith(
        "3 occurrences."
    )
    assert (workspace / "a").read_text() == "y y y"


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"path": "a", "old": "z", "new": ""}, "The old text is not in a."),
        ({"path": "a", "old": "x", "new": ""}, "is in a 2 times"),
        ({"path": "a", "old": "", "new": "y"}, "The old text is empty"),
        ({"path": "a", "old": "x", "new": "x"}, "are the same"),
        ({"path": "none", "old": "x", "new": "y"}, "Use write to create it"),
        ({"path": ".", "old": "x", "new": "y"}, "is a folder"),
        ({"path": "bin", "old": "x", "new": "y"}, "is not UTF-8 text"),
        ({"path": "crlf", "old": "a\nb", "new": "y"}, "ends its lines with \\r\\n"),
    ],
)
async def test_an_edit_that_cannot_work_is_a_problem_before_anybody_is_asked(
    args: dict[str, Any], why: str, workspace: Path, context: ToolContext
):
    (workspace / "a").write_text("x x")
    (workspace / "bin").write_bytes(b"x\xff")
    (workspace / "crlf").write_bytes(b"a\r\nb\r\n")

    found = await edit.inspect(args, context)

    assert why in found.problem
    assert found.paths
    assert await edit.run(args, context) == ToolResult(found.problem, "error")


async def test_what_an_edit_rests_on_shows_when_the_file_changes(workspace: Path, context: ToolContext):
    (workspace / "a").write_text("one\n")
    args = {"path": "a", "old": "one", "new": "two"}
    before = await edit.inspect(args, context)

    (workspace / "a").write_text("zero\none\n")

    assert await edit.inspect(args, context) != before


# -- the diff ----------------------------------------------------------------------------------------------------------

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "\f", "x\r"]), max_size=30).map("\n".join)


def applied(old: str, diff: str) -> str:
    """The new text, from the old one and its diff alone."""
    before, out, at = old.split("\n"), [], 0
    lines = diff.removesuffix("\n").split("\n")[2:]
    for line in lines:
        if line.startswith("@@"):
            start, count = (int(n) for n in line.split()[1][1:].split(","))
            upto = start - 1 if count else start
            out += before[at:upto]
            at = upto
        elif line[0] in " -":
            assert before[at] == line[1:]
            out += [line[1:]] if line[0] == " " else []
            at += 1
        else:
            out.append(line[1:])
    return "\n".join(out + before[at:])


@given(TEXTS, TEXTS)
def test_a_diff_tells_the_whole_change(old: str, new: str):
    old, new = old + "\nend\n", new + "\nend\n"
    diff = unified(old, new, "f")

    assert (diff == "") == (old == new)
    if diff:
        assert applied(old, diff) == new


@given(
    st.lists(st.integers(0, 400), min_size=80, max_size=200), st.lists(st.integers(0, 400), min_size=80, max_size=200)
)
def test_a_diff_of_long_texts_tells_the_whole_change(old: list[int], new: list[int]):
    before, after = ("".join(f"{n}\n" for n in [*part, -1]) for part in (old, new))

    assert before == after or applied(before, unified(before, after, "f")) == after


def test_a_diff_of_distant_changes_shows_only_them():
    lines = [f"line {n}\n" for n in range(5_000)]
    diff = unified("".join(lines), "".join([*lines[:10], "new\n", *lines[10:4_000], *lines[4_001:]]), "f")

    assert diff.count("@@ -") == 2
    assert len(diff.split("\n")) == 19


def test_a_diff_has_an_end_and_its_header_one_line():
    diff = unified("", "x\n" * DIFF_CHARS, "a\n+++ b")

    assert diff.split("\n")[1] == "+++ b/'a\\n+++ b'"
    assert diff.endswith("more characters of this diff are not shown …]\n")


def test_the_tools_import_without_the_engine():
    code = "import sys, harness_core.tools as t; print(len(t.BUILTIN), 'harness_core.engine' in sys.modules)"

    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "9 False\n"
    )


async def test_a_diff_that_would_have_to_be_cut_does_not_stand_for_the_call(workspace: Path, context: ToolContext):
    found = await write.inspect({"path": "a.txt", "content": "x" * DIFF_CHARS}, context)

    assert (found.preview, found.covers, found.digests) == ("", (), (ABSENT,))


async def test_a_path_through_a_link_is_not_told_by_the_diff_alone(workspace: Path, context: ToolContext):
    (workspace / "real.txt").write_text("old\n")
    (workspace / "link.txt").symlink_to("real.txt")

    found = await write.inspect({"path": "link.txt", "content": "new\n"}, context)

    assert found.paths == ("real.txt",)
    assert "path" not in found.covers
