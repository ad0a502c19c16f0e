"""The built-in strategies, and what an approval may leave behind."""

from __future__ import annotations

from typing import Any

import pytest

import harness_core
from harness_core.permissions.book import book, names
from harness_core.permissions.defaults import world_of
from harness_core.permissions.offer import offer_prefixes, offered
from harness_core.permissions.paths import World
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.rules import check_rules, speaking
from harness_core.permissions.strategies import (
    BashToolStrategy,
    ReadToolStrategy,
    WebToolStrategy,
    WriteToolStrategy,
)
from harness_core.session import Trace
from harness_core.types import Inspection

WORLD = World("/ws", "/home/dev")
TRACE = Trace()


def test_a_command_that_only_reads_runs_and_another_is_asked_about_with_its_reason() -> None:
    strategy = BashToolStrategy(lambda trace, args: WORLD)

    assert strategy.evaluate(TRACE, {"command": "ls src | head"}) is None
    assert strategy.evaluate(TRACE, {"command": "cat /ws/a"}) is None
    assert "rm is not one of the programs" in str(strategy.evaluate(TRACE, {"command": "ls; rm x"}))


def test_without_a_named_workspace_no_absolute_path_is_read_unasked() -> None:
    assert BashToolStrategy().evaluate(TRACE, {"command": "cat README.md"}) is None
    assert BashToolStrategy().evaluate(TRACE, {"command": "cat /ws/README.md"}) is not None


@pytest.mark.parametrize("args", [{}, {"command": 1}, {"command": "ls", "env": {}}, {"cmd": "ls"}, {"command": None}])
def test_arguments_that_are_not_plain_ask(args: Any) -> None:
    assert BashToolStrategy().evaluate(TRACE, args) is not None


def test_a_strategy_asks_when_it_cannot_know_the_world() -> None:
    def broken(trace: Trace, args: Any) -> World:
        raise OSError("no disk")

    assert "OSError" in str(BashToolStrategy(broken).evaluate(TRACE, {"command": "ls"}))
    assert "OSError" in str(ReadToolStrategy(world=broken).evaluate(TRACE, {"path": "a"}))
    assert WriteToolStrategy(world=broken).evaluate(TRACE, {"path": "a"}) is not None


def test_a_rule_of_the_session_that_cannot_see_what_runs_keeps_the_command_waiting() -> None:
    trace = Trace(rules=(PermissionRule.deny("bash", "rm *"),))

    assert BashToolStrategy().evaluate(trace, {"command": "ls"}) is None
    assert BashToolStrategy().evaluate(trace, {"command": "echo x | sh"}) is not None


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("src/a.py", "changes src/a.py"),
        ("../x", "outside"),
        (".git/config", "later"),
        ("a\u202eb", "invisible"),
        ("", "empty"),
    ],
)
def test_a_change_is_always_asked_about_and_the_reason_names_what_is_special(path: str, words: str) -> None:
    assert words in str(WriteToolStrategy("write").evaluate(TRACE, {"path": path, "content": ""}))


def test_a_fetch_is_always_asked_about_and_the_reason_names_the_host() -> None:
    assert "docs.example.com" in str(WebToolStrategy().evaluate(TRACE, {"url": "https://docs.example.com/x"}))
    assert "private" in str(WebToolStrategy().evaluate(TRACE, {"url": "http://10.0.0.1/"}))
    assert WebToolStrategy().evaluate(TRACE, {"url": 1}) is not None


def test_a_file_that_may_hold_secrets_is_asked_about_before_it_is_read() -> None:
    strategy = ReadToolStrategy("read", lambda trace, args: WORLD)

    assert strategy.evaluate(TRACE, {"path": "src/a.py"}) is None
    assert strategy.evaluate(TRACE, {}) is None
    assert strategy.evaluate(TRACE, {"path": ".env"}) is not None
    assert strategy.evaluate(TRACE, {"path": "../x"}) is not None
    linked = ReadToolStrategy("read", lambda trace, args: World("/ws", paths=("/ws/.env",)))
    assert linked.evaluate(TRACE, {"path": "notes.md"}) is not None


def test_what_a_tool_saw_becomes_what_judging_knows() -> None:
    found = Inspection(paths=("src/a.py", "/etc/passwd"), addresses=("10.0.0.1",))

    assert world_of("/ws", "/h", found).paths == ("/ws/src/a.py", "/etc/passwd")
    assert world_of("/ws", "/h", found).addresses == ("10.0.0.1",)
    assert world_of("/ws", "/h", None).paths == (), "nobody looked, which is not: there are no symlinks"


# -- what an approval leaves behind ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("bash", {"command": "rm -f build/*.o"}),
        ("bash", {"command": "echo 'a\\*b' \\* \"c\\\\d\""}),
        ("bash", {"command": "  npm run build && rm x*  "}),
        ("write", {"path": "app/[id]/a*b?.tsx", "content": ""}),
        ("webfetch", {"url": "https://docs.example.com/a?b=1"}),
        ("webfetch", {"url": "https://docs.example.com/a/*"}),
        ("refund", {"amount": 2, "to": "é"}),
    ],
)
def test_what_is_stored_matches_exactly_what_was_approved(tool: str, args: Any) -> None:
    rule = PermissionRule.exactly(tool, args)

    assert check_rules((rule,), tool, args, WORLD).effect == "allow"
    for key, value in args.items():
        if isinstance(value, str):
            assert check_rules((rule,), tool, {**args, key: value + "x"}, WORLD).effect == "ask"


def test_an_exact_rule_for_a_file_does_not_follow_a_symlink_that_came_later() -> None:
    args = {"path": "src/f.py", "content": "x"}
    rule = PermissionRule.exactly("write", args)

    assert check_rules((rule,), "write", args, World("/ws", paths=("/ws/src/f.py",))).effect == "allow"
    assert check_rules((rule,), "write", args, World("/ws", paths=("/ws/.git/config",))).effect == "ask"
    assert check_rules((rule,), "write", {**args, "content": "y"}, WORLD).effect == "ask"


@pytest.mark.parametrize(
    ("command", "offered"),
    [
        ("npm run test unit", "npm run test *"),
        ("npm run test", "npm run test *"),
        ("git add src/a.py", "git add *"),
        ("pytest -q tests", "pytest *"),
        ("make build", "make build *"),
        ("docker compose logs web", "docker compose logs *"),
        ("ls src && mkdir -p out", "mkdir *"),
        ("cargo test -- x", "cargo test *"),
        ("gradle build", "gradle build *"),
        ("rails db:migrate", "rails db:migrate *"),
        ("ruff check src", "ruff check *"),
    ],
)
def test_a_prefix_may_be_offered_for_ordinary_work(command: str, offered: str) -> None:
    assert offer_prefixes(command, WORLD) == (offered,)
    assert check_rules((PermissionRule.allow("bash", offered),), "bash", {"command": command}, WORLD).effect == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "bash x.sh", "sh -c ls", "python3 x.py", "node x.js", "nodejs x.js", "irb x.rb", "pwsh x.ps1",
        "sudo make", "env make", "xargs rm", "timeout 5 make",
        "npx tsc", "uv run x", "npm exec x", "npm install x", "curl https://x.test", "ssh h", "git", "git push",
        "git -c a=b status", "rm x", "make build > x", "X=1 make build", "$X y", "./x.sh", "find . -delete", "eval x",
        "git config x y", "docker run x", "docker exec x y", "kubectl exec x", "export X=1", "make -f x", "make *.o",
        "pytest /etc/x", "mkdir ../x", "make build; rm x", "ls", "git commit --exec=x", "'make' build", "",
        "rails runner x", "flask shell", "go generate", "stack exec x", "zig run x", "turbo", "hg", "ip netns exec x y",
        "traceroute h", "netlify deploy", "reboot", "passwd x", "open x", "cmake -P x", "vagrant ssh",
    ],
)  # fmt: skip
def test_no_prefix_is_offered_for_what_runs_anything_or_reaches_out(command: str) -> None:
    assert offer_prefixes(command, WORLD) == ()


def test_a_compound_is_offered_one_prefix_per_part() -> None:
    assert offer_prefixes("git add a && git commit -m x | tail -1", WORLD) == ("git add *", "git commit *")


def test_prefixes_that_would_not_let_even_this_call_run_are_not_offered() -> None:
    plain, redirected = ({"command": command} for command in ("mkdir a && ls", "mkdir a && ls > listing"))

    assert offered("bash", plain, WORLD) == (PermissionRule.allow("bash", "mkdir *"),)
    assert offered("bash", redirected, WORLD) == ()


# -- names and levels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "tool", "allow", "deny"),
    [
        ("bash", "bash", True, True),
        ("bash", "Bash", False, True),
        ("*", "anything", True, True),
        ("mcp__github__*", "mcp__github__get", True, True),
        ("mcp__github__*", "mcp__github_evil__x", False, False),
        ("mcp__*", "mcp__a__b", False, False),
        ("*", "b\u0430sh", False, True),
        ("*", "", False, True),
        ("b*h", "bash", True, True),
        ("b.sh", "bash", False, False),
    ],
)
def test_allow_takes_names_narrowly_and_deny_widely(rule: str, tool: str, allow: bool, deny: bool) -> None:
    assert names(PermissionRule.allow(rule), tool) is allow
    assert names(PermissionRule.deny(rule), tool) is deny


def test_a_deny_rule_that_cannot_judge_the_arguments_asks() -> None:
    odd = {"x": {1, 2}}  # no JSON
    rule = PermissionRule("deny", "refund", arguments="{}")

    assert speaking(book((rule,), "refund"), "deny", odd, WORLD) is None
    assert speaking(book((rule,), "refund"), "ask", odd, WORLD) == rule
    assert speaking(book((PermissionRule.exactly("refund", {}),), "refund"), "allow", odd, WORLD) is None
    assert check_rules((rule, PermissionRule.allow("refund")), "refund", odd, WORLD).effect == "ask"


def test_all_public_names_are_shown_and_can_be_imported() -> None:
    assert {"BashToolStrategy", "WriteToolStrategy", "WebToolStrategy", "HarnessEngine"} <= {*dir(harness_core)}
    assert all(getattr(harness_core, name).__name__ for name in harness_core.__all__)
