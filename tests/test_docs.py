"""What the README says is true: its programs run, and everything people can name is in it."""

from __future__ import annotations

import argparse
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from bot import commands, config, inbound, rule_asked, rule_commands, words
from bot.__main__ import COMMANDS, _parser
from bot.commands import Commands
from harness_core import events
from harness_core.events import Prompted, RunStart
from harness_core.guards import GUARDS, OFF, guards_from
from harness_core.hooks import run_point
from harness_core.interceptors.function import HANDED
from harness_core.models.practice_calls import proposal
from harness_core.models.practice_wishes import understand
from harness_core.own_hooks import load_hooks
from harness_core.policy_file import parse_policy
from harness_core.session import fold
from harness_core.testing import ended, history, reasoned, tool_call
from harness_core.tools import BUILTIN
from harness_core.tools.own import load_tools
from harness_core.verdicts import ACCEPTS, FAILS, Deny
from tests.conftest import PATIENCE

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_a_tool_of_one_s_own_is_as_short_as_it_says(tmp_path: Path) -> None:
    (program,) = [one for one in PROGRAMS if "page_on_call" in one]
    (tmp_path / "ours.py").write_text(program, "utf-8")

    (tool,) = load_tools(str(tmp_path / "ours.py"))

    assert (tool.spec.name, tool.read_only({})) == ("page_on_call", False)
    assert set(tool.spec.schema["properties"]) == {"team", "message"}


def test_a_hook_of_one_s_own_is_as_short_as_it_says(tmp_path: Path) -> None:
    (program,) = [one for one in PROGRAMS if "look_up_before_refund" in one]
    (tmp_path / "ours.py").write_text(program, "utf-8")
    ours = load_hooks(str(tmp_path / "ours.py"))
    begun = (Prompted("refund A7"), RunStart("r"))
    refund, lookup = tool_call("refund", uuid="r1", order="A7"), tool_call("lookup", uuid="l1", order="A7")

    early = fold(history(*begun, reasoned(refund)))
    late = fold(history(*begun, reasoned(lookup), ended(lookup), reasoned(refund)))

    assert isinstance(run_point("before_tool", ours, early, refund).verdict, Deny)
    assert run_point("before_tool", ours, late, refund).verdict is None


def test_every_hook_point_is_documented_with_what_it_is_handed_accepts_and_fails_to() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in README.splitlines() if line[:3] == "| `"]
    documented = {cells[0].strip("`"): cells[1:] for cells in rows if cells[0].strip("`") in ACCEPTS}

    assert documented == {
        point: [
            ", ".join(f"`{name}`" for name in HANDED[point]) or "–",
            ", ".join(verdict.__name__ for verdict in ACCEPTS[point]) or "–",
            "passed over" if FAILS[point] == "open" else "the call asks",
        ]
        for point in ACCEPTS
    }


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_every_guard_is_documented_with_all_its_settings(guard: type) -> None:
    (row,) = [line for line in README.splitlines() if line.startswith(f"| `{guard.name}` |")]

    assert [field.name for field in fields(guard) if not re.search(rf"`{field.name}\b", row)] == []
    assert ("off until" in row) == (guard.name in OFF)


def test_the_guards_of_the_example_are_understood() -> None:
    (table,) = [one for one in re.findall(r"```toml\n(.*?)```", README, re.DOTALL) if "[guards]" in one]

    guards = {guard.name: guard for guard in guards_from(parse_policy(table).guards, BUILTIN)}

    assert "watchdog" not in guards
    assert guards["budget"].run_tokens == 400_000
    assert "lookup" in guards


def test_every_tool_is_documented() -> None:
    assert [name for name in BUILTIN if f"`{name}`" not in README] == []


def test_the_library_example_shows_what_it_says_however_often_it_is_run(tmp_path: Path) -> None:
    (program,) = [one for one in PROGRAMS if "asyncio.run" in one]

    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
        )

        assert done.returncode == 0, done.stderr
        first, resumed, answer = done.stdout.split("RunEnd\n")
        assert first.split()[-1] == "HITLPending"
        assert resumed.split()[:3] == ["RunStart", "HITLDecided", "ActionStart"]
        assert answer.startswith("completed ")
        assert "refunded 150 for A7" in answer


def test_a_tool_of_one_s_own_can_be_tried_with_the_practice_model_as_it_says(tmp_path: Path) -> None:
    (program,) = [one for one in PROGRAMS if "page_on_call" in one]
    (tmp_path / "ours.py").write_text(program, "utf-8")
    (tool,) = load_tools(str(tmp_path / "ours.py"))
    (request,) = re.findall(r"With the practice model: (call page_on_call .*?)\. `", README)

    (wish,) = understand(request)
    made = proposal(wish, [tool.spec])

    assert made is not None
    assert made.arguments == {"team": "ops", "message": "the database is down"}
    assert tool.check(made.arguments) == ""


def test_every_event_is_documented() -> None:
    missing = [kind.__name__ for kind in (*events.FACTS, *events.PASSING) if f"`{kind.__name__}`" not in README]

    assert missing == []


def rows(of: str) -> list[list[str]]:
    """The cells of every row of a table of the README whose first cell begins so."""
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in README.splitlines()]
    return [row for row in cells if row and row[0].startswith(of)]


def test_every_setting_is_documented_and_nothing_else_is() -> None:
    documented = [name for of in ("`SLACK_", "`HARNESS_", "`OPENAI_") for row in rows(of) for name in spans(row[0])]
    servers = [name for name in documented if documented.count(name) > 1]  # the heads of the table of model servers

    assert sorted({*documented}) == sorted(name for name, *_ in config.VARIABLES)
    assert set(servers) <= {"HARNESS_MODEL"}


def spans(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def alternatives(form: str) -> Iterator[str]:
    """`a|b TOOL` says `a TOOL` and `b TOOL`; `v list|add TOOL` says `v list` and `v add TOOL`."""
    verbs, _, rest = form.partition(" ")
    for verb in verbs.split("|"):
        for way in rest.split("|") if re.search(r"[a-z]\|", rest) or re.search(r"\|[a-z]", rest) else [rest]:
            yield f"{verb} {way}".strip()


def key(form: str) -> str:
    """A form by what people type to the letter: the verb, and the word behind it if it is none of their own."""
    verb, *more = form.split()
    return f"{verb} {more[0]}" if more and more[0].islower() and more[0][0].isalpha() else verb


def said_by_the_bot() -> dict[str, set[str]]:
    """Every form in the bot's own help, with the options that it names."""
    found = {}
    for span in spans(words.HELP):
        if span.startswith("/harness "):
            options = set(re.findall(r"--[a-z]+", span))
            bare = re.sub(r" \[[^\]]*\]", "", span.removeprefix("/harness "))
            found |= {key(form): options for form in alternatives(bare)}
    return found


def said_by_the_readme() -> dict[str, set[str]]:
    """Every form in the README's table of commands, with the options in its row."""
    found = {}
    for row in rows("`/harness "):
        options = {name for span in spans(row[2]) for name in re.findall(r"--[a-z]+", span)}
        first = spans(row[0])[0].split()[1]
        for span in spans(row[0]):
            form = span.replace("…", f"/harness {first}", 1) if span.startswith("…") else span
            found[key(form.removeprefix("/harness ").rstrip(" …"))] = options
    return found


def test_every_command_is_documented_with_its_options_as_the_bot_s_own_help_has_it() -> None:
    bot, readme = said_by_the_bot(), said_by_the_readme()

    assert sorted(readme) == sorted(bot)
    assert {form: missing for form, options in bot.items() if (missing := options - readme[form])} == {}


def test_every_verb_that_the_code_knows_is_in_the_help_and_the_other_way_round() -> None:
    carried_out = inspect.getsource(Commands.carry_out)
    verbs = set(re.findall(r'"([a-z]+)"', " ".join(re.findall(r"case (.*):", carried_out))))

    assert verbs == {form.split()[0] for form in said_by_the_bot()} == {*words.VERBS}


def test_every_option_that_the_code_knows_is_in_the_help_and_the_other_way_round() -> None:
    sources = "".join(inspect.getsource(module) for module in (commands, rule_commands, rule_asked))
    known = {name for found in re.findall(r"--(?:\(\?:)?([a-z|]+)", sources) for name in found.split("|")}

    assert {f"--{name}" for name in known} == set().union(*said_by_the_bot().values())


def test_every_thread_word_is_documented_as_the_bot_s_own_help_has_it() -> None:
    understood = set(re.findall(r'"(![a-z]+)"', inspect.getsource(inbound)))
    in_help = {span.split()[0] for span in spans(words.HELP) if span.startswith("!")}
    (sentence,) = re.findall(r"^In a thread you can type (.*?)\.", README, re.MULTILINE | re.DOTALL)
    in_readme = {span.split()[0] for span in spans(sentence)}

    assert understood
    assert understood == in_help == in_readme


def test_every_command_of_the_command_line_is_documented_with_its_options() -> None:
    (subparsers,) = [one for one in _parser()._actions if isinstance(one, argparse._SubParsersAction)]

    assert set(subparsers.choices) == set(COMMANDS)
    for name, parser in subparsers.choices.items():
        lines = " ".join(line for line in README.splitlines() if re.search(rf"harness-bot {name}\b", line))
        options = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
        assert lines or name == "run"
        assert [one for one in options - {"--help", "--verbose"} if one not in lines] == []


def test_every_tool_that_writes_has_a_stance() -> None:
    samples = {
        "read": {"path": "a"},
        "ls": {},
        "write": {"path": "a", "content": "b"},
        "edit": {"path": "a", "old": "b", "new": "c"},
        "bash": {"command": "ls"},
        "glob": {"pattern": "**/*.py"},
        "grep": {"pattern": "def "},
        "webfetch": {"url": "https://example.com/"},
        "todo": {"items": [{"text": "a"}]},
    }
    for name, tool in BUILTIN.items():
        args = samples[name]  # a new tool needs a sample here, and so somebody who thinks about it
        assert tool.check(args) == ""
        assert tool.subject(args)
        reads = name in ("read", "ls", "glob", "grep", "todo")
        assert tool.read_only(args) == reads
        assert tool.repeatable(args) == (reads or name == "webfetch")


def test_every_link_leads_somewhere() -> None:
    headings = [line.lstrip("#").strip().lower() for line in README.splitlines() if re.match("#+ ", line)]
    anchors = {"#" + re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in headings}
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", README) if not link.startswith("http")]
    assert len(links) > 10
    assert [link for link in links if link not in anchors and not (ROOT / link).exists()] == []
