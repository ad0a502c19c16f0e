"""The truth table of the read-only classifier, the reader's parts, and what happens without the parser."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_core.permissions import against, everywhere, grammar
from harness_core.permissions.lookups import needs
from harness_core.permissions.paths import World
from harness_core.permissions.readonly import classify
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.rules import check_rules
from harness_core.permissions.shell import read
from tests.conftest import PATIENCE

CASES = Path(__file__).resolve().parents[1] / "cases"
WORLD = World("/ws", "/home/dev")
UNKNOWN = " is not known to be read-only: "
ALLOWED_MISSES = 0.02  # of the commands that could run unasked, those that may ask all the same


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASES / name).read_text(encoding="utf-8").splitlines() if line.strip()]


SHELL = [*rows("shell_cases.jsonl"), *rows("own_shell_cases.jsonl")]


def test_no_command_that_should_ask_runs_unasked() -> None:
    asks = [row for row in SHELL if row["expect"] == "ask"]

    wrong = [(row["command"], row["why"]) for row in asks if classify(row["command"], WORLD).effect != "ask"]

    assert len(asks) > 1_000
    assert wrong == []


def test_hardly_any_command_that_only_reads_asks() -> None:
    reads = [row["command"] for row in SHELL if row["expect"] == "allow"]

    asked = {command: classify(command, WORLD).reason for command in reads if classify(command, WORLD).effect == "ask"}

    print("asked although they only read:", asked)
    assert len(asked) <= ALLOWED_MISSES * len(reads)


@pytest.mark.parametrize(
    "command", ["ls \ud800", "cat \udcff", "", " ", "\n", "\0", "ls\ufffe", "a" * 100_000, "'" * 9_999]
)
def test_no_text_raises_and_what_cannot_be_read_asks(command: str) -> None:
    assert classify(command, WORLD).effect == "ask"
    assert check_rules((PermissionRule.allow("bash"),), "bash", {"command": command}, WORLD).effect == "ask"
    everywhere.commands_in(command)


def test_a_command_of_more_parts_than_anybody_reviews_asks_and_deny_rules_see_all_of_it() -> None:
    command = "cat | " * 1_500 + "rm x"

    assert "more parts than anybody reviews" in classify(command, WORLD).reason
    assert check_rules((PermissionRule.allow("bash", "cat *"),), "bash", {"command": command}, WORLD).effect == "ask"
    assert check_rules((PermissionRule.deny("bash", "rm"),), "bash", {"command": command}, WORLD).effect == "deny"


@pytest.mark.parametrize("command", [None, 1, b"ls", ["ls"], {"a": 1}, True])
def test_what_is_no_text_asks(command: Any) -> None:
    assert classify(command, WORLD).effect == "ask"
    assert check_rules((PermissionRule.allow("bash"),), "bash", {"command": command}, WORLD).effect == "ask"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("ls; rm -rf x", "the part `rm -rf x`" + UNKNOWN + "rm is not one of the programs that are known to only read"),
        ("ls > out.txt", "it writes to out.txt"),
        ("echo $(id)", "`$(…)` runs another command"),
        ("cat ../x", "the path ../x lies outside the workspace"),
        ("cat .env", "the path .env may hold secrets"),
        ("sort -o a b", "the option -o of sort is not known to be harmless"),
        ("echo 'a", "the command cannot be parsed"),
        ("ls && X=1 pwd", "the part `X=1 pwd`: a variable is set"),
        ("ls & pwd", "`&` runs something in the background"),
        ("for x in a; do ls; done", "a loop"),
        ("git commit -m x", "this verb of git is not known to be read-only"),
    ],
)  # fmt: skip
def test_the_reason_is_in_words_that_a_reviewer_can_use(command: str, reason: str) -> None:
    assert classify(command, WORLD).reason == reason


def test_a_command_is_read_into_its_parts() -> None:
    reading = read("grep -n 'a b' x.py 2>/dev/null | head -5 && ! test -f \"y z\"; [ -d src ]")

    assert [part.argv for part in reading.commands] == [
        ("grep", "-n", "a b", "x.py"), ("head", "-5"), ("test", "-f", "y z"), ("[", "-d", "src", "]")
    ]  # fmt: skip
    assert [part.joined for part in reading.commands] == ["", "|", "&&", ";"]
    assert [part.negated for part in reading.commands] == [False, False, True, False]
    assert reading.commands[0].redirects[0].target.text == "/dev/null"


def test_where_a_symlink_leads_counts() -> None:
    def judged(*real: str) -> str:
        return classify("cat notes.md", World("/ws", paths=real)).effect

    assert judged("/ws/notes.md") == "allow"
    assert judged("/etc/shadow") == "ask"
    assert judged("/ws/.env") == "ask"
    assert judged("/ws2/notes.md") == "ask"
    assert judged() == "ask", "nobody looked"


def test_what_must_be_looked_up_is_said() -> None:
    found = needs(read("cd src && cat ../a.md --x=b.md 'c d' *.py | git log -- x:y"), WORLD)

    assert "/ws/src/../a.md" in found.paths
    assert {"/ws/src/b.md", "/ws/src/c d", "/ws/src/y"} <= set(found.paths)
    assert found.globs == (("/ws/src", "*.py"),)
    assert found.git
    assert not needs(read("echo $(id)"), WORLD).paths


def test_a_repository_whose_settings_run_programs_asks() -> None:
    assert classify("git status", World("/ws")).effect == "allow"
    assert "diff.external" in classify("git status", World("/ws", git_runs="diff.external")).reason


# -- the grammar -------------------------------------------------------------------------------------------------------


def test_the_grammar_is_the_one_that_was_examined() -> None:
    language = grammar.language()
    kinds = [language.node_kind_for_id(number) for number in range(language.node_kind_count)]

    known = json.loads((CASES / "grammar.json").read_text(encoding="utf-8"))

    assert (language.abi_version, sorted({kind for kind in kinds if kind})) == (known["abi"], known["kinds"])


@pytest.mark.parametrize("char", ["\U00108712", "\U0001f600", "中", "\x08", "\0", "\x7f", "\ud7ff", "\uffff", "Ø"])
def test_the_parser_never_sees_what_is_not_plain_ascii(char: str) -> None:
    """Its scanner ended the process at such a character in a brace, or looked for ever."""
    for text in (
        f"!Ø:{{{char}\x08h",
        f"{{{char}h",
        f"a{{{char}}}",
        f"cat <<{char}\nx\n{char}",
        f"${{{char}}}",
        f"{{1..{char}",
    ):
        everywhere.commands_in(text)
        classify(text, WORLD)
        root = grammar.parse(text.encode())
        assert root is not None
        assert root.end_byte <= len(text.encode())


def test_a_here_document_whose_end_only_looks_like_its_beginning_hides_what_follows() -> None:
    assert everywhere.commands_in("cat <<xx\né\n'\nxx\nrm z\n'").opaque
    assert not everywhere.commands_in("cat <<é\nfoo\né\nls").opaque


@pytest.fixture
def without_parser(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(grammar, "_PARSER", None)
    against.forget()
    yield
    against.forget()


@pytest.mark.usefixtures("without_parser")
def test_without_the_parser_every_command_asks_and_deny_rules_still_strike() -> None:
    rules = (PermissionRule.allow("bash"), PermissionRule.allow("bash", "ls *"), PermissionRule.deny("bash", "rm *"))

    assert classify("ls", WORLD) == type(classify("ls", WORLD))("ask", grammar.MISSING)
    assert check_rules(rules, "bash", {"command": "ls -la"}, WORLD).effect == "ask"
    for command in ("rm x", "ls; rm x", "bash -c 'rm x'", "r'm' x", "echo $(rm x)", "/bin/rm x"):
        assert check_rules(rules, "bash", {"command": command}, WORLD).effect == "deny", command


def test_a_parser_that_cannot_be_imported_is_no_error() -> None:
    code = (
        "import sys; sys.modules['tree_sitter'] = None\n"
        "from harness_core.permissions.readonly import classify\n"
        "from harness_core.permissions.paths import World\n"
        "verdict = classify('ls', World('/ws'))\n"
        "assert verdict.effect == 'ask' and 'tree-sitter' in verdict.reason, verdict\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)

    assert done.returncode == 0, done.stderr
