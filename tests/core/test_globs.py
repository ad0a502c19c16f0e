"""What a glob may stand for: never less than bash makes of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_core.permissions import globs
from harness_core.permissions.cases import judged, parse_case
from harness_core.permissions.lookups import needs
from harness_core.permissions.paths import World
from harness_core.permissions.shell import read
from harness_core.tools import shell
from tests.conftest import PATIENCE

BASH = shutil.which("bash") or ""
FILES = (
    "alink",
    "blink",
    "zlink",
    "[a]",
    "a]b",
    "a-b",
    "é",
    "ab.md",
    ".hid",
    "sub/x.md",
    "sub/[x",
    "sub/.h/y",
    "*",
    "-n",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("globs") / "w[s]"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def by_bash(folder: Path, words: str, locale: str) -> list[str]:
    done = subprocess.run(
        [BASH, "--noprofile", "--norc", "-c", f"shopt -s nullglob; for f in {words}; do printf '%s\\0' \"$f\"; done"],
        cwd=folder, env={"LC_ALL": locale}, capture_output=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def listed(folder: str) -> Sequence[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return ()


PATTERNS = ["[^z]link", "[!z]link", "[[:alpha:]]link", "[[:alpha:]-]*", "[a-z]*", "*", "?", "??", ".*", "[.]*", "[]a]*",
            "[[]a]", "'['*", "[a']'b]*", "[a]b]*", "*/*", "s?b/[x*", "sub/.*/y", "[é]", "[[=a=]]link", "[[.a.]]link",
            "*]*", "a[]-]b", "[*", "[a-", "*[", "[*]", "'*'*", "./[^z]*", "sub/../a*", "[\"a\"]link", "[^a-y]link",
            "[\\!z]link"]  # fmt: skip


def expected_of(command: str, folder: Path) -> set[str]:
    wanted = needs(read(command), World(str(folder)))
    found = globs.matched(wanted.globs, listed, 100_000)
    assert found is not None
    return {os.path.normpath(path) for path in (*found, *wanted.paths)}


@pytest.mark.skipif(not BASH, reason="there is no bash")
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_every_file_that_bash_makes_of_a_glob_is_looked_at(folder: Path, locale: str) -> None:
    made = 0
    for pattern in PATTERNS:
        reading = read(f"cat {pattern}")
        if reading.problem:
            continue
        expected = expected_of(f"cat {pattern}", folder)
        for name in by_bash(folder, pattern, locale):
            assert os.path.normpath(folder / name) in expected, (pattern, name)
            made += 1

    assert made > len(PATTERNS)


pieces = st.sampled_from(
    ["[", "]", "^", "!", "a", "b", "link", "*", "?", "-", ":", "[:alpha:]", ".", "/", "'['", "'*'", "z"]
)


@pytest.mark.skipif(not BASH, reason="there is no bash")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.lists(pieces, min_size=1, max_size=6).map("".join), min_size=5, max_size=25))
def test_no_random_glob_reaches_a_file_that_was_not_looked_at(folder: Path, words: list[str]) -> None:
    words = [word for word in words if not read(f"cat -- {word}").problem and not word.startswith(("/", "!"))]
    command = f"cat -- {' '.join(words)}"
    if read(command).problem:
        return
    expected = expected_of(command, folder)
    for name in by_bash(folder, " ".join(words), "C.UTF-8"):
        path = os.path.normpath(folder / name)
        assert path in expected or not path.startswith(str(folder)), (command, name)


@pytest.mark.parametrize(
    "pattern", [".*/" * 3_000 + "z*", "*/" * 5_000, "*" * 9_000, "[a]" * 3_000, "*a" * 4_000 + "b", "?" * 9_000]
)
def test_looking_ends_after_so_many_names(pattern: str) -> None:
    looked: list[str] = []

    def names(folder: str) -> Sequence[str]:
        looked.append(folder)
        return ["a" * 255, "b", ".c"]

    globs.matched([("/ws", pattern), ("/ws", pattern)], names, 10_000)

    assert len(looked) <= 10_000


def test_a_symlink_behind_a_glob_counts() -> None:
    for glob in ("[^z]link", "[[:alpha:]]link", "a*", "?link", "*/../alink", "./[a]link"):
        row = f'{{"command":"cat {glob}","fs":{{"symlinks":{{"/ws/alink":"/etc/passwd","/ws/in":"src"}}}}}}'
        assert judged(parse_case(row)).effect == "ask", glob
    assert judged(parse_case('{"command":"cat z*","fs":{"symlinks":{"/ws/alink":"/etc/passwd"}}}')).effect == "allow"


def test_a_symlink_in_a_folder_that_diff_opens_counts() -> None:
    fs = '"fs":{"symlinks":{"/ws/da/x":"/etc/passwd","/ws/dc/.x":"/etc/passwd","/ws/[d]/x":"/etc/passwd"}}'
    for command in (
        "diff da db",
        "diff db da/",
        "diff -q db d?",
        "diff db dc",
        "diff db '[d]'",
        "cd da && diff . ../db",
    ):
        assert judged(parse_case(f'{{"command":"{command}",{fs}}}')).effect == "ask", command
    assert judged(parse_case(f'{{"command":"diff db/y de/y",{fs}}}')).effect == "allow"


def test_a_symlink_that_looks_like_an_option_counts() -> None:
    row = '{"command":"cat -- -n","fs":{"symlinks":{"/ws/-n":"/etc/passwd"}}}'
    assert judged(parse_case(row)).effect == "ask"


def test_a_glob_with_more_matches_than_are_looked_at_was_not_looked_at(tmp_path: Path) -> None:
    for number in range(shell.MATCHES):
        (tmp_path / f"q{number}.txt").touch()
    assert len(shell._seen("cat q*.txt", tmp_path).paths) == shell.MATCHES + 1

    (tmp_path / "qz.txt").symlink_to("/etc/passwd")
    seen = shell._seen("cat q*.txt", tmp_path)

    assert seen.paths == ()
    assert len(shell._seen("cat q1?.txt q2?.txt", tmp_path).paths) > 20
