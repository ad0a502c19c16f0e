"""`harness-bot judge`: a truth table in, one line of JSON per row out."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bot.__main__ import main
from bot.judging import judge
from harness_core.permissions.rule import PermissionRule

CASES = Path(__file__).resolve().parents[1] / "cases"


def judged(*lines: Any, check: bool = False, rules: tuple[PermissionRule, ...] = ()) -> tuple[int, list[Any], str]:
    out, told = io.StringIO(), io.StringIO()
    given = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    code = judge(given, out, told, rules, check=check)
    return code, [json.loads(line) for line in out.getvalue().splitlines()], told.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        "shell_cases.jsonl",
        "rule_cases.jsonl",
        "own_shell_cases.jsonl",
        "own_rule_cases.jsonl",
        "sentence_rule_cases.jsonl",
    ],
)
def test_every_row_of_the_truth_table_is_as_expected(name: str) -> None:
    out, told = io.StringIO(), io.StringIO()

    with (CASES / name).open("rb") as rows:
        code = judge(rows, out, told, (), check=True)

    assert [line for line in out.getvalue().splitlines() if "expect" in json.loads(line)] == []
    assert (code, told.getvalue().partition(": ")[2].split()[2:]) == (0, ["expected,", "0", "not,", "0", "bad"])


def test_each_row_gets_its_verdict_the_reason_and_the_rule_that_spoke() -> None:
    rules = [{"effect": "deny", "tool": "bash", "pattern": "rm *"}]

    code, verdicts, told = judged({"command": "ls"}, {"tool": "bash", "args": {"command": "rm x"}, "rules": rules})

    assert (code, told) == (0, "")
    assert verdicts[0] == {"verdict": "allow", "reason": "it only reads inside the workspace", "rule": None}
    assert verdicts[1]["verdict"] == "deny"
    assert verdicts[1]["rule"] == "deny bash rm *"
    assert "deny bash rm *" in verdicts[1]["reason"]


def test_a_policy_counts_beside_the_rules_of_each_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "harness.toml"
    policy.write_text(
        '[[rule]]\neffect = "allow"\ntool = "bash"\npattern = "npm test"\nchannel = "C1"\n'
        '[[rule]]\neffect = "deny"\ntool = "bash"\npattern = "npm *"\nuntil = 2020-01-01T00:00:00Z\n'
    )

    def verdict(*arguments: str) -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"command": "npm test"}\n')))
        assert main(["judge", "--policy", str(policy), *arguments], {}) == 0
        return str(json.loads(capsys.readouterr().out)["verdict"])

    assert (verdict(), verdict("--channel", "C1"), verdict("--channel", "C2")) == ("ask", "allow", "ask")


def test_a_policy_that_cannot_be_read_is_told_and_judges_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "harness.toml"
    policy.write_text('[[rule]]\neffect = "denny"\ntool = "bash"')

    codes = [main(["judge", "--policy", str(path)], {}) for path in (policy, tmp_path / "none.toml", tmp_path)]

    told = capsys.readouterr()
    assert (codes, told.out) == ([2, 2, 2], "")
    assert "denny" in told.err
    assert "none.toml cannot be read" in told.err


def test_a_bad_row_gets_its_line_and_the_others_theirs_and_the_exit_code_tells() -> None:
    code, verdicts, _ = judged({"command": "ls"}, b"no json", b" ", {"tool": "x"}, {"command": "ls"})

    assert [sorted(line) for line in verdicts] == [
        ["reason", "rule", "verdict"], ["error"], ["error"], ["reason", "rule", "verdict"]
    ]  # fmt: skip
    assert code == 1


def test_a_check_names_what_differs_and_sums_up() -> None:
    code, verdicts, told = judged(
        {"command": "ls", "expect": "ask"}, {"command": "rm x", "expect": "ask"}, {"command": "ls"}, check=True
    )

    assert [line.get("expect") for line in verdicts] == ["ask", None, None]
    assert verdicts[2] == {"error": "it has no `expect` to compare with"}
    assert (code, told) == (1, "3 rows: 1 as expected, 1 not, 1 bad\n")


def test_a_lone_surrogate_is_judged_and_written_as_json_can() -> None:
    code, [verdict], _ = judged(b'{"command": "ls \\ud800"}')

    assert (code, verdict["verdict"]) == (0, "ask")


def test_it_answers_each_row_before_it_reads_the_next(tmp_path: Path) -> None:
    """In a process of its own, without settings, in an empty folder that stays empty."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CASES.parents[1]), "HARNESS_LOCAL_PORT": "no port at all"}
    with subprocess.Popen(
        [sys.executable, "-m", "bot", "judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, env=env
    ) as process:
        assert process.stdin
        assert process.stdout
        for command, verdict in (("ls", "allow"), ("rm x", "ask")):
            process.stdin.write(json.dumps({"command": command}).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["verdict"] == verdict
        process.stdin.close()

    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_whoever_has_seen_enough_may_stop_reading(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CASES.parents[1])}
    rows = b'{"command": "ls"}\n' * 20_000
    with subprocess.Popen(
        [sys.executable, "-m", "bot", "judge"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=env,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(rows[:1_800])
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.write(rows)
            process.stdin.close()
        told = process.stderr.read()

    assert (process.returncode, told) == (0, b"")


def test_the_example_in_the_readme_is_what_is_printed() -> None:
    readme = (CASES.parents[1] / "README.md").read_text("utf-8")
    [(rows, shown)] = re.findall(
        r"\$ cat cases.jsonl\n(.*?)\$ harness-bot judge < cases.jsonl\n(.*?)```", readme, re.DOTALL
    )
    out = io.StringIO()

    judge(rows.encode().splitlines(), out, out, (), check=False)

    assert out.getvalue() == shown
