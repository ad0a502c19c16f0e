"""Rows of a truth table: how they are read, and what the gate says of them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.permissions.cases import BadRow, Case, judged, parse_case, real
from harness_core.permissions.paths import World
from harness_core.permissions.rule import PermissionRule


def case(**row: Any) -> Case:
    return parse_case(json.dumps(row))


def test_a_row_is_a_command_or_a_call_with_its_rules_and_its_world() -> None:
    short = case(command="ls", expect="allow", why="for people")
    long = case(
        tool="webfetch",
        args={"url": "https://a.example/"},
        rules=[{"effect": "allow", "tool": "webfetch", "pattern": "a.example"}],
        fs={"workspace": "/w", "home": "/h", "symlinks": {"/w/a": "/etc"}},
        redirects=["https://b.example/"],
        resolved=["10.0.0.5"],
    )

    assert (short.tool, short.args, short.rules, short.links, short.expect) == (
        "bash", {"command": "ls"}, (), None, "allow"
    )  # fmt: skip
    assert long.rules == (PermissionRule.allow("webfetch", "a.example"),)
    assert long.world == World("/w", "/h", addresses=("10.0.0.5",), redirects=("https://b.example/",))
    assert long.links == {"/w/a": "/etc"}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{", "no JSON"),
        (b"\xff", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "no object"),
        ("{}", "either `command`, or `tool`"),
        ('{"command": "ls", "tool": "bash"}', "either `command`, or `tool`"),
        ('{"tool": 1, "args": {}}', "`tool` must be a text"),
        ('{"tool": "bash"}', "`args` must be an object"),
        ('{"tool": "bash", "args": ["ls"]}', "`args` must be an object"),
        ('{"command": "ls", "rules": {}}', "`rules` must be a list"),
        ('{"command": "ls", "rules": [{"effect": "deny"}]}', "of a rule must be texts"),
        ('{"command": "ls", "rules": [{"effect": "deny", "tool": "bash", "patern": "ls"}]}', "a rule has no `patern`"),
        ('{"command": "ls", "expect": "maybe"}', "`expect` must be allow, ask or deny"),
        ('{"command": "ls", "fs": {"workspace": "ws"}}', "`workspace` must be an absolute path"),
        ('{"command": "ls", "fs": {"symlinks": {"/ws/a": 1}}}', "`symlinks` must hold texts"),
        ('{"command": "ls", "resolved": "10.0.0.5"}', "`resolved` must be a list of texts"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_no_row(row: str | bytes, why: str) -> None:
    with pytest.raises(BadRow, match=why.replace("`", ".")):
        parse_case(row)


@given(st.recursive(st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_any_json_is_a_row_or_a_bad_row(value: Any) -> None:
    rows = (value, {"command": value}, {"tool": "write", "args": value}, {"command": "ls", "fs": value, "rules": value})

    for row in rows:
        with suppress(BadRow):
            assert judged(parse_case(json.dumps(row))).effect in ("allow", "ask", "deny")


def test_rules_from_outside_count_beside_those_of_the_row() -> None:
    row = case(command="npm test", rules=[{"effect": "allow", "tool": "bash", "pattern": "npm test"}])

    assert judged(row).effect == "allow"
    assert judged(row, [PermissionRule.deny("bash", "npm *")]).rule == PermissionRule.deny("bash", "npm *")


def test_what_only_reads_inside_the_workspace_runs_and_a_tool_that_nobody_knows_asks() -> None:
    reads = lambda tool, args: tool in ("read", "glob")  # noqa: E731

    assert judged(case(tool="read", args={"path": "notes.md"}), (), reads).effect == "allow"
    assert judged(case(tool="read", args={"path": "../notes.md"}), (), reads).effect == "ask"
    assert judged(case(tool="glob", args={"pattern": "*.md"}), (), reads).effect == "allow"
    assert judged(case(tool="restart", args={}), (), reads).effect == "ask"


def test_symlinks_count_for_commands_and_for_files() -> None:
    fs = {"symlinks": {"/ws/notes": "/etc", "/ws/docs": "src"}}
    write = {"effect": "allow", "tool": "write", "pattern": "**"}

    assert case(command="cat notes/passwd", fs=fs).links
    assert judged(case(command="cat notes/passwd", fs=fs)).effect == "ask"
    assert judged(case(command="cat docs/a.md", fs=fs)).effect == "allow"
    assert judged(case(tool="write", args={"path": "docs/a.md"}, rules=[write], fs=fs)).effect == "allow"
    assert judged(case(tool="write", args={"path": "notes/a.md"}, rules=[write], fs=fs)).effect == "ask"


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        ("/ws/a", "/etc"),
        ("/ws/a/../b", "/b"),
        ("/ws/rel/x", "/ws/sub/x"),
        ("/ws/two/x", "/etc/x"),
        ("/ws/./plain//y", "/ws/plain/y"),
        ("/../..", "/"),
    ],
)
def test_links_are_followed_as_a_kernel_does_it(path: str, leads: str) -> None:
    assert real(path, {"/ws/a": "/etc", "/ws/rel": "sub", "/ws/two": "/ws/a"}) == leads


def test_a_link_that_leads_to_itself_leads_nowhere() -> None:
    assert real("/ws/loop", {"/ws/loop": "/ws/loop"}) is None
