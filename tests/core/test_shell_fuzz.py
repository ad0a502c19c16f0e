"""Random commands, and what bash really makes of those that are allowed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.permissions.everywhere import commands_in
from harness_core.permissions.paths import World
from harness_core.permissions.programs import OWN, PROGRAMS, WORKERS
from harness_core.permissions.readonly import classify
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.rules import check_rules
from harness_core.permissions.shell import read
from tests.conftest import PATIENCE
from tests.core.test_shell_cases import SHELL

BASH = shutil.which("bash") or ""
SEED = 20_261
STRINGS = 12_000  # that are judged
RUNS = 150  # of those that are allowed, that are run
READS = 300  # of the rows that are allowed, that are run
FAR = ("cloud-read", "package-manager")  # classes that are slow, or leave the machine

# Pieces of commands, chosen so that something dangerous is always near.
WORDS = """
ls cat head grep find sort echo printf test true git sed awk tr wc uniq diff date cd [ ] : xxd cut
touch touch touch permcase permcase x README.md src src/main.py a.txt *.md * ? -n -l -la -o -exec -delete
{} \\; -- - status log \\ \\\\ $( ) ` ${ } { ( && || ; | & |& > < >> 2> /dev/null 2>&1 << <<< <( # ! = x=1 ~ , ..
{a,b} @{1} HEAD@{1} 1 0 %s %n '1p' 1p -e -v then do fi done e \u00e9 !! ^ [a] -print \\( \\) \\! eval exec env xargs -f
"""
QUOTED = ["'", '"', "'a b'", '"a b"', "$'", '$"', "'touch x'", '"touch x"', "$(touch x)", "`touch x`", "'{print $1}'"]
BLANKS = ["\n", " ", " ", " ", " ", " ", "  ", "\t", "\r", "\u00a0", "\u200b", "\\\n"]
PIECES = [*WORDS.split(), *QUOTED, *BLANKS]


def random_commands(number: int) -> Iterator[str]:
    chance = random.Random(SEED)
    plain = ["ls", "echo", "cat", "grep", "printf", "true", "test"]
    for _ in range(number):
        pieces = [chance.choice(PIECES) for _ in range(chance.randint(1, 9))]
        glue = chance.choice(["", " ", " ", " "])
        yield chance.choice([*plain, ""]) + " " + glue.join(pieces)


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    """A small workspace with file names that look like options, and programs that leave a mark when they run."""
    workspace, programs = tmp_path / "ws", tmp_path / "bin"
    (workspace / "src").mkdir(parents=True)
    programs.mkdir()
    for name in ("README.md", "a.txt", "x", "src/main.py", "-delete", "-exec", "--output=pwned", "-o"):
        (workspace / name).write_text("1 b c\nfoo\n", encoding="utf-8")
    for name in ("touch", "permcase", "sh", "rm", "e", "a"):
        (programs / name).write_text(f"#!{BASH}\n: > '{tmp_path}/mark-{name}'\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    for name in {*PROGRAMS, *OWN, *WORKERS} - {"sh"}:
        if real := shutil.which(name):
            (programs / name).symlink_to(real)
    return tmp_path


def run(command: str, sandbox: Path) -> None:
    environment = {"PATH": str(sandbox / "bin"), "HOME": str(sandbox), "GIT_OPTIONAL_LOCKS": "0", "PAGER": "cat"}
    subprocess.run(
        [BASH, "--noprofile", "--norc", "-c", "--", command],
        cwd=sandbox / "ws",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
    )


def digests(folder: Path) -> dict[str, bytes]:
    return {name: Path(name).read_bytes() for name in files(folder) if "/bin/" not in name}


def files(folder: Path) -> list[str]:
    return sorted(os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)


@pytest.mark.skipif(not BASH, reason="there is no bash")
def test_nothing_that_is_allowed_runs_another_program_or_writes_a_file(sandbox: Path) -> None:
    world = World(str(sandbox / "ws"))
    allowed = [command for command in random_commands(STRINGS) if classify(command, world).effect == "allow"]
    dangerous = [command for command in allowed if any(word in command for word in ("touch", "permcase", ">", "rm"))]
    before = files(sandbox)

    for command in dict.fromkeys([*dangerous, *allowed][:RUNS]):
        run(command, sandbox)
        assert files(sandbox) == before, command

    assert len(dangerous) > 20, "the pieces never came near anything dangerous"


@pytest.mark.skipif(not BASH, reason="there is no bash")
def test_no_row_that_is_allowed_writes_a_file_or_runs_another_program(sandbox: Path) -> None:
    reads = {row["command"] for row in SHELL if row["expect"] == "allow" and row["class"] not in FAR}
    for command in ("git init -q .", "git add README.md src", "git -c user.name=a -c user.email=b commit -qm x"):
        subprocess.run(command.split(), cwd=sandbox / "ws", check=True, stdout=subprocess.DEVNULL)
    before = digests(sandbox)

    for command in random.Random(SEED).sample(sorted(reads), READS):
        run(command, sandbox)

    assert digests(sandbox) == before


@pytest.mark.skipif(not BASH, reason="there is no bash")
def test_decoded_words_are_the_words_that_bash_sees(tmp_path: Path) -> None:
    commands = [row["command"] for row in SHELL] + list(random_commands(STRINGS // 2))
    parts = [part for command in commands for part in read(command).commands]
    parts = [part for part in parts if not part.redirects and not part.negated and part.words[0].text != "["]
    sources = list(dict.fromkeys(part.source for part in parts))
    script = 'set -f; argv() { printf \'%s\\0\' "$#" "$@"; }\n'
    script += "".join(f"argv {source}\n" for source in sources)

    done = subprocess.run(
        [BASH, "--noprofile", "--norc"],
        input=script.encode(),
        cwd=tmp_path,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )

    found = done.stdout.decode().split("\0")
    by_source = {part.source: part.argv for part in parts}
    at = 0
    for source in sources:
        count = int(found[at])
        assert tuple(found[at + 1 : at + 1 + count]) == by_source[source], source
        at += 1 + count
    assert len(sources) > 800


def test_the_strict_and_the_lenient_reading_see_the_same_words() -> None:
    compared = 0
    for command in random_commands(STRINGS // 2):
        reading = read(command)
        if reading.problem or " == " in command:  # which the grammar takes for an operator
            continue
        found = commands_in(command).commands
        for part in reading.commands:
            assert part.redirects or part.words[0].text == "[" or part.argv in found, command
            compared += 1

    assert compared > 1_000


texts = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join) | st.text(max_size=60)
RULES = (
    PermissionRule.allow("bash", "npm run test *"),
    PermissionRule.allow("bash"),
    PermissionRule.deny("bash", "touch *"),
    PermissionRule.ask("bash", "permcase *"),
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(texts)
def test_no_text_makes_the_gate_raise_or_the_default_allow_touch(text: str) -> None:
    assert classify(text, World("/ws")).effect in ("allow", "ask")
    ruled = check_rules(RULES, "bash", {"command": text}, World("/ws"))
    first = text.lstrip(" \t\n")  # all that bash skips before a word: "\r" is a word of its own
    if first.startswith(("touch ", "touch\n")):
        assert ruled.effect == "deny"


@pytest.mark.skipif(not BASH, reason="there is no bash")
def test_what_a_rule_denies_never_runs_in_a_command_that_is_allowed(sandbox: Path) -> None:
    rules = (
        PermissionRule.allow("bash"),
        PermissionRule.deny("bash", "touch *"),
        PermissionRule.deny("bash", "permcase"),
    )
    near = [command for command in random_commands(STRINGS // 3) if "touch" in command or "permcase" in command]

    passed = [c for c in near if check_rules(rules, "bash", {"command": c}, World("/ws")).effect == "allow"]
    for command in dict.fromkeys(passed[:RUNS]):
        run(command, sandbox)

    assert len(passed) > 50
    assert not list(sandbox.glob("mark-touch")) + list(sandbox.glob("mark-permcase"))
