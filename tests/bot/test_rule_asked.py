"""What is typed to make a rule: the pattern byte for byte, the options behind it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.rule_asked import RuleAsked, rule_asked
from bot.rule_commands import arguments
from harness_core.permissions.rule import PermissionRule


def asked(effect: Any, rest: str) -> RuleAsked:
    made = rule_asked(effect, rest)
    assert isinstance(made, RuleAsked), made
    return made


def refused(effect: Any, rest: str) -> str:
    made = rule_asked(effect, rest)
    assert isinstance(made, str), made
    return made


def test_a_rule_holds_in_the_channel_for_good_unless_more_is_said() -> None:
    assert asked("deny", "bash git push *") == RuleAsked(PermissionRule.deny("bash", "git push *"))
    assert asked("ask", "write") == RuleAsked(PermissionRule.ask("write"))


def test_options_stand_behind_the_pattern_in_any_order_and_the_reason_last() -> None:
    rule = PermissionRule.deny("bash", "git push *")

    assert asked("deny", "bash git push * --workspace --for 90m -- cut by hand") == RuleAsked(
        rule, everywhere=True, seconds=5400.0, why="cut by hand"
    )
    assert asked("deny", "bash git push * --for 2d --channel") == RuleAsked(rule, seconds=172_800.0)
    assert asked("deny", "bash git push * --for=2d --workspace") == RuleAsked(rule, True, 172_800.0)
    assert asked("deny", "bash --for 8h") == RuleAsked(PermissionRule.deny("bash"), seconds=28_800.0)
    assert asked("deny", "bash -- why not") == RuleAsked(PermissionRule.deny("bash"), why="why not")


def test_a_rule_that_asks_may_want_several_people() -> None:
    several = RuleAsked(PermissionRule.ask("bash", "git push *", people=2))

    assert asked("ask", "bash git push * --people 2") == several
    assert asked("ask", "bash git push * --people=2 --channel") == several
    assert "only a rule that asks" in refused("allow", "bash git push * --people 2")
    assert "1 to 10 people" in refused("ask", "bash git push * --people 11")
    for rest in ("--people", "--people two", "--people 0", "--people 2 --people 3"):
        assert "cannot be read" in refused("ask", f"bash git push * {rest}")


@pytest.mark.parametrize(
    "pattern", ["npm  run   x", "git log --oneline", "a 'b  c' \"d\"", "x &amp; y", "ls\tb", "echo a\\*b", "cat --form"]
)
def test_the_pattern_is_taken_byte_for_byte(pattern: str) -> None:
    assert asked("ask", f"bash {pattern}").rule.pattern == pattern
    assert asked("ask", f"bash {pattern} --workspace").rule.pattern == pattern
    assert asked("ask", f"bash `{pattern}` --workspace").rule.pattern == pattern


def test_a_pattern_that_holds_an_option_stands_between_accents() -> None:
    assert asked("allow", "bash `git checkout -- *` --for 8h").rule.pattern == "git checkout -- *"
    assert asked("deny", "bash `x --workspace`") == RuleAsked(PermissionRule.deny("bash", "x --workspace"))


def test_forgotten_accents_narrow_an_allow_rule_and_widen_a_deny() -> None:
    assert asked("allow", "bash git checkout -- *") == RuleAsked(PermissionRule.allow("bash", "git checkout"), why="*")


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("", "Type `/harness deny"),
        ("--workspace bash", "Type `/harness deny"),
        ("bash ls --for", "Type `/harness deny"),
        ("bash ls --for 8 hours", "`--for 8 hours` cannot be read. `--for` takes one length, as in `--for 90m`"),
        ("bash ls --for 8", "Type `/harness deny"),
        ("bash ls --for=", "`--for=` cannot be read"),
        ("bash ls --workspace=yes", "`--workspace=yes` cannot be read"),
        ("bash ls --channel=C2 --for 8h", "cannot be read"),
        ("bash ls --for 0h", "Type `/harness deny"),
        ("bash ls --for 8h --for 9h", "Type `/harness deny"),
        ("bash ls --workspace --channel", "Type `/harness deny"),
        ("bash ls --workspace rm", "Type `/harness deny"),
        ("bash `ls", "grave accent"),
        ("bash `` --for 8h", "the pattern is empty"),
        ("bash git push —workspace", "a long dash"),
        ("bash echo “a”", "curly quotes"),
        ("bash ls; rm *", "would never match: the pattern has several commands"),
        ("webfetch *", "would never match"),
        ("ba sh", ""),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(rest: str, told: str) -> None:
    if told:
        assert told in refused("deny", rest)
    else:
        assert asked("deny", rest).rule == PermissionRule.deny("ba", "sh")


@pytest.mark.parametrize(
    "rest",
    [
        "bash",
        "*",
        "bash python3 *",
        "bash python3.11 -c *",
        "bash sh *",
        "bash /bin/bash *",
        "bash node *",
        "bash nodejs *",
        "bash pwsh *",
    ],
)
def test_what_comes_to_allowing_everything_is_not_made_by_a_command(rest: str) -> None:
    assert "as good as no approvals at all" in refused("allow", rest)
    assert asked("deny", rest)


@pytest.mark.parametrize("rest", ["bash python3 manage.py test", "bash npm test *", "write", "bash git *"])
def test_what_does_not_is_made(rest: str) -> None:
    assert asked("allow", rest)


@given(st.sampled_from(["allow", "ask", "deny"]), st.text(max_size=60))
def test_whatever_is_typed_is_a_rule_or_a_sentence(effect: Any, rest: str) -> None:
    assert rule_asked(effect, rest)
    assert rule_asked(effect, f"bash {rest}")


# -- a call that somebody asks about -----------------------------------------------------------------------------------


def schema(*required: str, **types: str) -> dict[str, Any]:
    return {"properties": {name: {"type": kind} for name, kind in types.items()}, "required": [*required]}


WRITE = schema("path", "content", path="string", content="string")


@pytest.mark.parametrize(
    ("text", "tool", "meant"),
    [
        ("git push", schema("command", command="string", seconds="integer"), {"command": "git push"}),
        ("a b.md", WRITE, {"path": "a b.md", "content": ""}),
        ('{"path": "a", "content": "b"}', WRITE, {"path": "a", "content": "b"}),
        ("[1]", schema("list", list="string"), {"list": "[1]"}),
        ("ann", schema("to", "amount", to="string", amount="integer"), {"to": "ann"}),
        ("ann", schema("to", "by", to="string", by="string"), None),
        ("5", schema("amount", amount="integer"), None),
        ("ann", schema(to="string"), None),
        ("ann", {}, None),
        ('{"path": "a"', WRITE, None),
        ('{"a":' * 100_000, WRITE, None),
    ],
)
def test_a_call_is_typed_as_json_or_as_the_one_text_that_its_tool_is_about(
    text: str, tool: dict[str, Any], meant: dict[str, Any] | None
) -> None:
    assert arguments(text, tool) == meant
