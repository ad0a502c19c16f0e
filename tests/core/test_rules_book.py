"""Rules are looked up by program; what they mean is as if each were held against the command in its turn."""

from __future__ import annotations

import pytest

from harness_core.permissions.book import book
from harness_core.permissions.paths import World
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.rules import check_rules

WORLD = World("/ws", "/home/dev")
OTHERS = tuple(PermissionRule.deny("bash", f"program{number} *") for number in range(20))


def speaker(command: str, *patterns: str) -> str | None:
    rules = (*OTHERS, *(PermissionRule.deny("bash", pattern) for pattern in patterns))
    rule = check_rules(rules, "bash", {"command": command}, WORLD).rule
    return rule.pattern if rule else None


@pytest.mark.parametrize("patterns", [("rm *", "git push"), ("git push", "rm *"), ("* -rf", "git push", "rm *")])
def test_the_first_rule_speaks_whatever_the_order_of_the_commands(patterns: tuple[str, ...]) -> None:
    assert speaker("git push; rm -rf x", *patterns) == patterns[0]
    assert speaker("rm -rf x; git push", *patterns) == patterns[0]


@pytest.mark.parametrize("pattern", ["/bin/RM *", "rm", "r* -rf", "rm -rf x", "*", "r\\*m x"])
@pytest.mark.parametrize("command", ["rm -rf x", "/usr/bin/RM -rf x", "sudo -n rm -rf x", "'r*m' x"])
def test_a_rule_among_many_speaks_as_it_does_alone(pattern: str, command: str) -> None:
    alone = check_rules((PermissionRule.deny("bash", pattern),), "bash", {"command": command}, WORLD).rule

    assert speaker(command, pattern) == (alone.pattern if alone else None)


def test_a_letter_that_only_looks_like_another_to_a_rule_that_ignores_case_is_found() -> None:
    assert speaker("\u017fudo x", "sudo *") == "sudo *"
    assert speaker("sudo x", "\u017fudo *") == "\u017fudo *"


def test_a_program_that_is_only_known_when_it_runs_may_be_that_of_any_rule() -> None:
    rules = (*OTHERS, PermissionRule.allow("bash"))

    for command in ("$X -rf", "program1? -rf", "program3 -rf"):
        assert check_rules(rules, "bash", {"command": command}, WORLD).effect != "allow", command
    assert check_rules(rules, "bash", {"command": "program20 -rf"}, WORLD).effect == "allow"


def test_an_allow_rule_is_found_by_its_program_as_it_is_written() -> None:
    rules = (*OTHERS, PermissionRule.allow("bash", "'npm' run *"), PermissionRule.allow("bash", "make all"))

    for command, effect in {
        "npm run x": "allow", "NPM run x": "ask", "./npm run x": "ask", "make 'all'": "allow", "make all x": "ask",
        "npm run x && make all": "allow", "timeout 5 npm run x": "ask",
    }.items():  # fmt: skip
        assert check_rules(rules, "bash", {"command": command}, WORLD).effect == effect, command


def test_a_rule_for_exactly_a_call_is_added_without_the_others_being_sorted_anew() -> None:
    exactly = PermissionRule.exactly("bash", {"command": "x"})
    mine = book(OTHERS, "bash")

    assert mine.and_allowing(exactly) == book((*OTHERS, exactly), "bash")
    assert book(OTHERS, "write").and_allowing(exactly) == book((*OTHERS, exactly), "write")
