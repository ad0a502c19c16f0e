"""What an agent file may say, that it can only narrow, and that nothing in it is silently lost."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness_core.agent_files import LARGEST, read_agents
from harness_core.agents import Agent, check_agents, front_matter, parse_agents
from harness_core.errors import ConfigError
from harness_core.permissions.rule import PermissionRule
from harness_core.tools.task import task_tool

TOOLS = ("read", "grep", "bash", "write")

REVIEWER = """\
---
# Reviewed like code.
name: reviewer
description: Reads code and says what is wrong with it.
tools: [read, "grep"]   # nothing that writes
model: small
rules:
  - deny read secrets/**
  - ask bash
max_steps: 12
---

You review code.

---
Be brief.
"""


def one(text: str, name: str = "a.md") -> Agent:
    (agent,) = parse_agents({name: text}, TOOLS)
    return agent


def written(*lines: str, prompt: str = "Do it.") -> str:
    return "\n".join(["---", "name: a", "description: A.", *lines, "---", prompt])


def wrong_in(*texts: str) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_agents({f"{n}.md": text for n, text in enumerate(texts, 1)}, TOOLS)
    return str(raised.value)


def test_a_file_says_who_the_agent_is_and_its_text_is_the_prompt() -> None:
    rules = (PermissionRule.deny("read", "secrets/**"), PermissionRule.ask("bash"))

    assert one(REVIEWER) == Agent(
        "reviewer",
        "Reads code and says what is wrong with it.",
        "You review code.\n\n---\nBe brief.",
        ("read", "grep"),
        "small",
        rules,
        12,
    )


def test_what_is_left_out_is_as_for_whoever_hands_it_work() -> None:
    assert one(written()) == Agent("a", "A.", "Do it.", None, "", (), None)


@pytest.mark.parametrize(
    "lines",
    [
        ["tools: read, grep"],
        ["tools: [read, grep]"],
        ["tools:", "- read", "- 'grep'"],
        ["tools:", "  - read", "  - grep"],
        ['tools: ["read",grep]'],
    ],
)
def test_a_list_is_written_in_any_of_these_ways(lines: list[str]) -> None:
    assert one(written(*lines)).tools == ("read", "grep")


def test_a_file_written_on_windows_reads_the_same() -> None:
    assert one("\ufeff" + REVIEWER.replace("\n", "\r\n")) == one(REVIEWER)


def test_agents_are_in_order_of_their_names_whatever_their_files_are_called() -> None:
    files = {"1.md": written().replace("name: a", "name: z"), "2.md": written()}

    assert [agent.name for agent in parse_agents(files, TOOLS)] == ["a", "z"]


def test_one_error_names_file_and_field_of_everything_that_is_wrong() -> None:
    said = wrong_in(
        "no front matter",
        "---\nname: two words\ntools: read, rm\nrules: [allow bash, forbid bash, deny]\nmax_steps: 0\ncolour: x\n---\n",
        written("name: b", "model:", "tools: [read"),
    )

    assert said.splitlines()[0] == "The agents need correcting:"
    for words in (
        "1.md: there is no front matter",
        "2.md: `name` must be letters",
        "2.md: `description` is missing",
        "2.md: `tools`: there is no tool rm (there are: bash, grep, hitl, read, task, write)",
        "2.md: `rules`: “allow bash” would let an agent do more",
        "2.md: `rules`: “forbid bash” must be",
        "2.md: `rules`: “deny” must be",
        "2.md: `max_steps` must be a number from 1 to 1,000, not “0”",
        "2.md: `colour` is not known",
        "2.md: the text below the front matter",
        "3.md: line 4: `name` stands there twice",
        "3.md: `model` is empty",
        "3.md: line 6: “tools: [read” is not understood",
    ):
        assert f"- {words}" in said


def test_a_rule_that_can_never_match_is_an_error() -> None:
    assert "can never match" in wrong_in(written("rules:", '- deny bash git "push'))
    assert "“deny bahs” can never match: there is no tool bahs (there are: " in wrong_in(written("rules: [deny bahs]"))


def test_two_agents_of_one_name_are_an_error_however_it_is_written() -> None:
    assert "2.md: `name`: A is the name of another agent" in wrong_in(
        written(), written().replace("name: a", "name: A")
    )


@pytest.mark.parametrize(
    "odd", ["a: b", "*all", "&x", "- x", "> folded", "a:", "@x", "`x`", '"a', "{a: b}", "[a", "a\x00"]
)
def test_what_yaml_would_read_otherwise_is_refused_and_not_guessed_at(odd: str) -> None:
    assert "line 2" in wrong_in(f"---\ndescription: {odd}\nname: a\n---\nDo it.")


PLAIN = st.text(st.characters(codec="utf-8"), max_size=12)
TEXTS = st.one_of(
    PLAIN, PLAIN.map(lambda t: f"'{t}'"), PLAIN.map(lambda t: f'"{t}"'), st.sampled_from(["a # b", "a#b", "- a"])
)
LINES = st.lists(
    st.one_of(
        TEXTS.map(lambda t: f"key: {t}"),
        TEXTS.map(lambda t: f"other: {t}"),
        st.just("list:"),
        st.tuples(st.sampled_from(["", " ", "  "]), TEXTS).map(lambda item: f"{item[0]}- {item[1]}"),
        st.lists(TEXTS, max_size=3).map(lambda ts: f"inline: [{', '.join(ts)}]"),
        st.just("# a comment"),
    ),
    max_size=6,
)


class AsWritten(yaml.SafeLoader):
    """YAML without its guesses: what is not quoted is a text all the same."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


@given(LINES)
def test_whatever_is_understood_yaml_understands_alike(lines: list[str]) -> None:
    wrong: list[str] = []
    fields = front_matter(lines, wrong)
    if wrong:
        return

    read = yaml.load("\n".join(lines), AsWritten) or {}

    assert fields == {key: tuple(value) if isinstance(value, list) else value for key, value in read.items()}


@given(st.text(max_size=200))
def test_whatever_stands_in_a_file_there_is_an_agent_or_an_error_in_words(text: str) -> None:
    for file in (text, f"---\n{text}\n---\nDo it."):
        with suppress(ConfigError):
            assert parse_agents({"a.md": file}, TOOLS)[0].prompt


# -- a folder ----------------------------------------------------------------------------------------------------------


def test_a_folder_is_read_for_its_markdown_files(tmp_path: Path) -> None:
    (tmp_path / "reviewer.md").write_text(REVIEWER, "utf-8")
    (tmp_path / "notes.txt").write_text("not an agent", "utf-8")
    (tmp_path / ".draft.md").write_text("not yet", "utf-8")

    assert read_agents(tmp_path, TOOLS) == (one(REVIEWER),)


def test_what_cannot_be_read_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_agents(tmp_path / "missing", TOOLS)
    (tmp_path / "a.md").write_bytes(b"---\nname: \xff\n---\n")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        read_agents(tmp_path, TOOLS)
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(ConfigError, match=r"pipe\.md is no file"):
        read_agents(tmp_path, TOOLS)
    (tmp_path / "pipe.md").unlink()
    (tmp_path / "a.md").write_bytes(b"x" * (LARGEST + 1))
    with pytest.raises(ConfigError, match="too long"):
        read_agents(tmp_path, TOOLS)


# -- agents made by a program ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        ([Agent("a", "A.", "x"), Agent("a", "B.", "x")], "two agents are called a"),
        ([Agent("a", "A.", "x", ("rm",))], "there is no tool rm"),
        ([Agent("a", "A.", "x", rules=(PermissionRule.allow("bash"),))], "would let an agent do more"),
        ([Agent("a", "A.", "x", rules=(PermissionRule.deny("bahs"),))], "there is no tool bahs"),
        ([Agent("a", "A.", "x", rules=("deny bash",))], "must be a PermissionRule"),  # type: ignore[arg-type]
        ([Agent("a", "A.", "x", max_steps=0)], "max_steps of a must be a whole number above 0"),
        ([Agent("a b", "A.", "x")], "an agent has a name"),
        ([Agent("a", "", "x")], "an agent has a name"),
    ],
)
def test_a_program_s_agents_can_only_narrow_too(agents: list[Agent], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_agents(agents, TOOLS)


# -- the tool ----------------------------------------------------------------------------------------------------------


def test_the_task_tool_names_the_agents_in_the_same_bytes_each_time() -> None:
    agents = (one(REVIEWER), one(written()))
    tool = task_tool(agents)

    assert "- reviewer: Reads code and says what is wrong with it.\n- a: A." in tool.spec.description
    assert tool.spec == task_tool(agents).spec
    assert tool.spec.schema["properties"]["agent"]["enum"] == ["reviewer", "a"]


def test_a_task_runs_unasked_is_never_repeated_and_is_about_its_agent() -> None:
    tool, args = task_tool([one(REVIEWER)]), {"agent": "reviewer", "prompt": "Look at a.py."}

    assert tool.check(args) == ""
    assert (tool.read_only(args), tool.repeatable(args), tool.subject(args)) == (True, False, "reviewer")


def test_a_task_for_nobody_or_without_words_is_refused_in_words() -> None:
    tool = task_tool([one(REVIEWER)])

    assert "there is no agent “judge”; there are: reviewer" in tool.check({"agent": "judge", "prompt": "x"})
    assert "nothing is asked for" in tool.check({"agent": "reviewer", "prompt": " "})
