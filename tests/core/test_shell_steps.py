"""Judging takes a number of steps that is bounded by the length of the text, whatever the text is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.permissions import against, grammar, shell
from harness_core.permissions.paths import World
from harness_core.permissions.readonly import classify
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.rules import check_rules
from tests.bench.permissions import DENY, MANY, WORST
from tests.core.test_shell_fuzz import PIECES

WORLD = World("/ws", "/home/dev")
STEPS = 40  # lines of the gate for each character; the worst text that is known takes 35
BEFORE = 2_000  # lines that the shortest text may take


class TooManySteps(BaseException):
    """Not an Exception: the gate must not take it for a fault that asks."""


def steps(work: Callable[[], object], most: int) -> int:
    """How many lines of the gate this runs. Raises TooManySteps beyond `most`, so that a loop without end ends."""
    taken = 0

    def line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal taken
        taken += event == "line"
        if taken > most:
            raise TooManySteps(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return line

    def called(frame: FrameType, _: str, __: Any) -> Any:
        return line if "harness_core" in frame.f_code.co_filename else None

    against.forget()
    before = sys.gettrace()
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
    return taken


def bounded(command: str, rules: Sequence[PermissionRule] = ()) -> str:
    effects: list[str] = []
    work = lambda: effects.append(check_rules(rules, "bash", {"command": command}, WORLD).effect)  # noqa: E731
    steps(work, BEFORE + STEPS * len(command))
    return effects[0]


@pytest.mark.parametrize("name", WORST)
@pytest.mark.parametrize("rules", [(), DENY, MANY], ids=["no rules", "deny rules", "many rules"])
def test_the_worst_texts_are_judged_in_steps_that_grow_with_their_length(name: str, rules: Any) -> None:
    bounded(WORST[name], rules)


@pytest.mark.parametrize("times", [25, 150, 1_500])
@pytest.mark.parametrize(
    "unit",
    ["watch ", "sg -c ", "npx -c ", "flock -c x ", "bwrap -x ", "pixi -e run ", "tmux -c new ", "env -c ", "sudo -s ",
     "taskset -c ", "xargs "],
)  # fmt: skip
def test_what_is_denied_is_denied_however_deep_it_nests(unit: str, times: int) -> None:
    for denied in ("rm x", "'rm x'", "'bash -c \"rm x\"'"):
        command = unit * min(times, 9_900 // len(unit)) + denied
        assert check_rules(DENY, "bash", {"command": command}, WORLD).effect == "deny"


@pytest.mark.parametrize(
    "command",
    ["[ -f a && -f b ]", "[ a | b ]", "[ -n a\n ]", "[ -n a\n]", "[ a; b ]", "[ a & ]", "[ ", "[ a", "[ \n", "[ ]", "[",
     "[ a ]]", "[ a ] ]", "[ #", "[ a ] b", "[ -f a ] && [ b || c ]"],
)  # fmt: skip
def test_a_bracket_with_an_operator_in_it_is_read_to_an_end(command: str) -> None:
    for rules in ((), DENY, (PermissionRule.allow("bash", command), PermissionRule.deny("bash", command + " x"))):
        assert bounded(command, rules) in ("ask", "allow", "deny")
    steps(lambda: shell.read(command), BEFORE)


def test_a_bracket_with_an_operator_in_it_asks() -> None:
    for command in ("[ -f a && -f b ]", "[ a | b ]", "[ -n a\n ]", "[ a; b ]"):
        assert classify(command, WORLD).effect == "ask"


bracketed = st.lists(
    st.sampled_from(["[", "]", "[ ", " ]", "&&", "|", ";", "\n", "-f", "a", *PIECES]), max_size=10
).map(lambda pieces: "[ " + " ".join(pieces) + " ]")


@settings(max_examples=150, deadline=None)
@given(bracketed)
def test_whatever_stands_in_brackets_is_judged_in_a_bounded_number_of_steps(command: str) -> None:
    for rules in ((), DENY):
        bounded(command, rules)


@pytest.mark.parametrize(
    "text", ["a=(" * 3_000, "<<A " * 2_400, "a=(b " * 900, ",`<" * 3_300, "a|" * 4_900, "`>,fi" * 1_900]
)
def test_a_text_that_the_parser_would_read_again_and_again_counts_as_one_that_cannot_be_parsed(text: str) -> None:
    assert grammar.parse(text.encode()) is None
    assert classify(text, WORLD).effect == "ask"
    rules = (PermissionRule.allow("bash"), PermissionRule.deny("bash", "rm *"))
    assert check_rules(rules, "bash", {"command": text}, WORLD).effect == "ask"
    assert check_rules(rules, "bash", {"command": text + "\nrm x"}, WORLD).effect == "deny"


def test_a_text_is_read_by_itself_after_one_at_which_the_parser_was_stopped() -> None:
    for endless in ("foo " + ") :: " * 1_600 + "x" + ")" * 1_600, "{;" * 5_000, "a=(" * 3_000):
        shell.forget()
        assert grammar.parse(endless.encode()) is None
        tree = grammar.parse(b"rm x")
        assert (tree.end_byte, tree.has_error) == (4, False)


def test_a_long_text_of_many_lines_is_parsed() -> None:
    script = "if [ -f a ]; then\n  echo 'x y' >> \"$file\"\n  cat <<E\nhello\nE\nfi\n" * 90
    assert len(script) > 4_000
    assert grammar.parse(script.encode()) is not None
    assert not grammar.parse(script.encode()).has_error


@pytest.mark.parametrize(
    "command",
    [
        "gh pr create --body '{}'",
        "git commit -F - <<'EOF'\n{}\nEOF",
        'git commit -F - <<-"EOF"\n{}\n\tEOF\ngit log -1',
    ],
)
def test_a_text_with_much_code_in_it_is_parsed(command: str) -> None:
    assert grammar.parse(command.format("- `name` holds the name of a user\n" * 200).encode()) is not None


def test_a_text_in_double_quotes_with_much_code_in_it_is_parsed() -> None:
    text = "- \\`name\\` holds the name of a user\n" * 200

    assert grammar.parse(f'git commit -m "{text}"'.encode()) is not None


@pytest.mark.parametrize("around", ["'\"'{}'\"'", '"\'"{}"\'"', "<<'A'\nA\n{}\n<<'A'\nA"])
def test_backticks_count_though_quotes_seem_to_stand_around_them(around: str) -> None:
    assert grammar.parse(around.format(" ,`<" * 2_400).encode()) is None
