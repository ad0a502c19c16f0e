"""The truth table of rules, with symlinks, redirects and addresses as facts.

`sentence_rule_cases.jsonl` takes what rules mean sentence by sentence; `own_rule_cases.jsonl` holds what was found.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core.permissions import wrappers
from harness_core.permissions.cases import judged, parse_case
from harness_core.permissions.paths import World
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.rules import check_rules

CASES = Path(__file__).resolve().parents[1] / "cases"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASES / name).read_text(encoding="utf-8").splitlines() if line.strip()]


def ruled(row: Mapping[str, Any]) -> str:
    return judged(parse_case(json.dumps(row))).effect


RULES = [*rows("rule_cases.jsonl"), *rows("own_rule_cases.jsonl"), *rows("sentence_rule_cases.jsonl")]


@pytest.mark.parametrize("expected", ["ask", "deny", "allow"])
def test_every_row_is_ruled_as_the_table_says(expected: str) -> None:
    table = [row for row in RULES if row["expect"] == expected]

    wrong = [(row["rules"], row["args"], ruled(row), row["why"]) for row in table if ruled(row) != expected]

    assert len(table) >= 70
    assert wrong == []


def test_the_order_of_rules_never_matters() -> None:
    wrong = [row for row in RULES if ruled({**row, "rules": row["rules"][::-1]}) != row["expect"]]

    assert wrong == []


ELSEWISE = ("capsh", "nix")  # behind an option alone do they run what they are given


def wrapped() -> Iterator[str]:
    """`rm x`, behind each program that runs another one, with as many words between them as that takes."""
    for name, (operands, _) in wrappers._BEFORE.items():
        yield shlex.join([name, *["1"] * operands, "rm", "x"])
    for name, verbs in wrappers.RUNNERS.items():
        for verb, (operands, _) in verbs.items():
            yield shlex.join([name, verb, *["1"] * operands, "rm", "x"])


def test_a_rule_looks_through_every_program_that_runs_another() -> None:
    deny = [{"effect": "allow", "tool": "bash"}, {"effect": "deny", "tool": "bash", "pattern": "rm *"}]
    commands = [command for command in wrapped() if not command.startswith(ELSEWISE)]

    missed = [command for command in commands if ruled(bash(command, *deny)) != "deny"]
    allowed = [
        command
        for command in commands
        if ruled(bash(command, {"effect": "allow", "tool": "bash", "pattern": f"{command.split()[0]} *"})) != "ask"
    ]

    assert len(commands) > 200
    assert (missed, allowed) == ([], [])


def bash(command: str, *rules: Mapping[str, str]) -> dict[str, Any]:
    return {"rules": rules, "tool": "bash", "args": {"command": command}}


def test_a_rule_with_an_unknown_effect_only_ever_leaves_things_as_they_are() -> None:
    for row in RULES:
        odd = {"effect": "permit", "tool": row["tool"]}
        assert ruled({**row, "rules": [odd, *row["rules"]]}) == row["expect"]


@pytest.mark.parametrize(
    "deny", [PermissionRule("deny", "pay", '{"n":1}'), PermissionRule("deny", "pay", None, '{"n":1}')]
)
def test_arguments_that_are_no_json_are_put_to_a_person_where_a_deny_is_of_arguments(deny: PermissionRule) -> None:
    rules = [deny, PermissionRule.allow("pay")]

    assert check_rules(rules, "pay", {"n": float("nan")}, World("/ws", "/home/dev")).effect == "ask"


def test_a_further_allow_rule_never_overcomes_a_deny_and_a_further_deny_never_widens() -> None:
    for row in RULES:
        with_all = ruled({**row, "rules": [*row["rules"], {"effect": "allow", "tool": "*"}]})
        denied = ruled({**row, "rules": [*row["rules"], {"effect": "deny", "tool": "*"}]})
        assert (row["expect"] == "deny") <= (with_all == "deny")
        assert denied == "deny"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("npm test; git push", "the part `git push` is not covered by a rule, and this verb of git is not known to be"),
        (
            "npm test > out",
            "it is not covered by the rule “allow bash npm test *”: it redirects to `out`",
        ),
        ("npm test ../x", "not covered by the rule “allow bash npm test *”: the path ../x lies outside the workspace"),
        ("cd src && npm test", "not covered by the rule “allow bash npm test *”: it runs in another folder"),
        ("git log --output=x", "“allow bash git log *”: the option --output of git may run a program or write"),
        ("npm test; X=1 npm test", "the part `X=1 npm test`: a variable is set"),
        ("npm test `id`", "runs another command"),
    ],
)
def test_the_reason_names_the_part_that_allow_rules_leave_open(command: str, reason: str) -> None:
    rules = [PermissionRule.allow("bash", "npm test *"), PermissionRule.allow("bash", "git log *")]

    ruling = check_rules(rules, "bash", {"command": command}, World("/ws"))

    assert ruling.effect == "ask"
    assert reason in ruling.reason
