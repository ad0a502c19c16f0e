"""The gate with the real tools: what runs unasked, what asks and why, what never runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness_core.events import HITLPending, RunEnd, ToolCallEnd
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision
from harness_core.permissions.rule import PermissionRule
from harness_core.testing import ScriptedModel, call
from harness_core.tools.repository import MOST
from tests.engine.harness import Bench, only, request

TOOLS = ["read", "ls", "write", "bash", "grep", "glob"]


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True)


async def asked(bench: Bench, *calls: object, session: str = "s", **options: object) -> tuple[list[str], list[str]]:
    """(why the calls ask, what came of those that do not) for one message of the model."""
    engine = bench.engine(ScriptedModel(list(calls), "done"), TOOLS, **options)  # type: ignore[arg-type]
    events = await request(engine, "go", session_id=session)
    pending = [e for e in events if isinstance(e, HITLPending)]
    return [t.comment for e in pending for t in e.tasks], [e.outcome for e in events if isinstance(e, ToolCallEnd)]


async def test_a_command_that_only_reads_runs_unasked(bench: Bench) -> None:
    (bench.folder / "ws").mkdir(parents=True)
    (bench.folder / "ws" / "a.txt").write_text("hello\n")

    why, outcomes = await asked(bench, call("bash", command="cat a.txt | wc -l && ls -la"))

    assert (why, outcomes) == ([], ["ok"])


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls && rm -rf x", "rm"),
        ("echo $(touch x)", "$("),
        ("cat a > b", "b"),
        ("cat /etc/passwd", "outside"),
        ("cat .env", "secret"),
        ("find . -delete", "-delete"),
        ("if", "could not be read"),
    ],
)
async def test_a_card_says_which_part_of_a_command_asks(bench: Bench, command: str, words: str) -> None:
    (why,), outcomes = await asked(bench, call("bash", command=command))

    assert outcomes == []
    assert words in why or words == "could not be read"
    assert "may change something" not in why


async def test_a_link_that_leads_outside_is_followed_before_anybody_judges(bench: Bench) -> None:
    (bench.folder / "ws").mkdir(parents=True)
    (bench.folder / "ws" / "notes").symlink_to("/etc/hostname")

    (why,), _ = await asked(bench, call("bash", command="cat notes"))

    assert "outside" in why


async def test_what_changed_after_it_was_judged_is_not_run(bench: Bench) -> None:
    folder = bench.folder / "ws"
    folder.mkdir(parents=True)
    (folder / "notes").write_text("mine")
    engine = bench.engine(ScriptedModel([call("bash", command="cat notes; touch x")], "done"), TOOLS)
    task = only(await request(engine, "go"), HITLPending).tasks[0]
    (folder / "notes").unlink()
    (folder / "notes").symlink_to("/etc/hostname")
    await HITL.submit(await engine.session("s"), task, HITLDecision.approve(), by="U2")

    end = only(await request(engine), ToolCallEnd)

    assert end.outcome == "not_run"
    assert not (folder / "x").exists()


@pytest.mark.parametrize(
    "key",
    [
        "diff.x.textconv",
        "diff.x.command",
        "diff.external",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "format.pretty",
    ],
)
@pytest.mark.parametrize("place", ["", "included", "config.worktree"])
async def test_a_repository_that_runs_programs_for_verbs_that_read_asks(bench: Bench, key: str, place: str) -> None:
    folder = bench.folder / "ws"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    assert await asked(bench, call("bash", command="git diff")) == ([], ["ok"])
    git(folder, "config", *(["--file", str(folder / ".git" / place)] if place else []), key, "touch /tmp/no")
    if place == "included":
        git(folder, "config", "include.path", place)
    if place == "config.worktree":
        git(folder, "config", "extensions.worktreeConfig", "true")

    (why,), _ = await asked(bench, call("bash", command="git diff"), session="t")

    assert "git" in why


def submodule(folder: Path, name: str) -> Path:
    """Another repository in a folder of this one, which knows it as such."""
    inner = folder / name
    inner.mkdir()
    git(inner, "init", "-q")
    commit = "0123456789012345678901234567890123456789"
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{commit},{name}")
    return inner


async def test_a_submodule_that_runs_programs_for_verbs_that_read_asks_however_deep_it_lies(bench: Bench) -> None:
    folder = bench.folder / "ws"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    inner = submodule(submodule(folder, "outer"), "in ner")
    assert await asked(bench, call("bash", command="git status")) == ([], ["ok"])
    git(inner, "config", "filter.x.clean", "touch /tmp/no")

    (why,), _ = await asked(bench, call("bash", command="git status"), session="t")

    assert "filter.x.clean" in why


async def test_a_submodule_that_git_cannot_read_asks(bench: Bench) -> None:
    folder = bench.folder / "ws"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (submodule(folder, "sub") / ".git" / "config").write_text("[broken")

    (why,), _ = await asked(bench, call("bash", command="git describe --dirty"))

    assert "unreadable" in why


async def test_git_asks_where_the_repository_begins_above_the_workspace(bench: Bench) -> None:
    (bench.folder / "ws").mkdir(parents=True)
    git(bench.folder, "init", "-q")
    (why,), _ = await asked(bench, call("bash", command="git log -p"), session="above")
    assert "above the workspace" in why

    git(bench.folder / "ws", "init", "-q")
    assert (await asked(bench, call("bash", command="git status"), session="own"))[0] == []


async def test_more_submodules_than_are_looked_at_ask(bench: Bench) -> None:
    folder = bench.folder / "ws"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    for number in range(MOST):
        submodule(folder, f"s{number}")

    (why,), _ = await asked(bench, call("bash", command="git status"))

    assert "too many submodules" in why


async def test_a_deny_rule_reaches_into_compounds_and_no_click_approves_it(bench: Bench) -> None:
    rules = [PermissionRule.deny("bash", "rm"), PermissionRule.allow("bash")]
    engine = bench.engine(ScriptedModel([call("bash", command="ls; /bin/rm -f x")], "done"), TOOLS, rules=rules)

    events = await request(engine, "go")

    assert only(events, ToolCallEnd).outcome == "denied"
    assert only(events, RunEnd).status == "completed"


async def test_an_allow_rule_covers_no_more_than_its_words(bench: Bench) -> None:
    rules = [PermissionRule.allow("bash", "make *")]

    assert await asked(bench, call("bash", command="make test"), rules=rules, session="a") in (
        ([], ["ok"]),
        ([], ["error"]),
    )
    (why,), _ = await asked(bench, call("bash", command="make test; touch x"), rules=rules, session="b")
    assert "the part `touch x` is not covered by a rule" in why
    (why,), _ = await asked(bench, call("bash", command="make test > log"), rules=rules, session="c")
    assert "log" in why


async def test_a_file_that_may_hold_secrets_is_not_read_unasked(bench: Bench) -> None:
    (bench.folder / "ws").mkdir(parents=True)
    (bench.folder / "ws" / ".env").write_text("KEY=1")
    (bench.folder / "ws" / "a.txt").write_text("hello")

    assert await asked(bench, call("read", path="a.txt"), session="a") == ([], ["ok"])
    (why,), _ = await asked(bench, call("read", path=".env"), session="b")
    assert "secrets" in why


@pytest.mark.parametrize(
    "search",
    [
        {"path": ".env"},
        {"path": "link"},
        {"path": ".ssh"},
        {"glob": ".env"},
        {"glob": "**/.e*"},
        {"glob": "*.pem"},
        {"glob": "{a,.env}"},
    ],
)
async def test_a_search_that_names_what_may_hold_secrets_asks(bench: Bench, search: dict[str, str]) -> None:
    (bench.folder / "ws").mkdir(parents=True)
    (bench.folder / "ws" / ".env").write_text("KEY=1")
    (bench.folder / "ws" / "link").symlink_to(".env")

    (why,), _ = await asked(bench, call("grep", pattern=".", **search))

    assert "secrets" in why


async def test_a_search_that_names_no_secret_runs_unasked(bench: Bench) -> None:
    (bench.folder / "ws").mkdir(parents=True)
    (bench.folder / "ws" / "a.py").write_text("hello")

    searches = [call("grep", pattern="hello"), call("grep", pattern=".", path="a.py"), call("glob", pattern="**/.env")]
    found = await asked(bench, *searches, call("grep", pattern="password", glob="*.{py,md}"))

    assert found == ([], ["ok"] * 4)


async def test_a_rule_for_a_folder_lets_writes_in_it_run_and_no_others(bench: Bench) -> None:
    rules = [PermissionRule.allow("write", "src/**")]

    assert await asked(bench, call("write", path="src/a/b.py", content="x"), rules=rules, session="a") == ([], ["ok"])
    (why,), _ = await asked(bench, call("write", path="src/../b.py", content="x"), rules=rules, session="b")
    assert "b.py" in why
    (why,), _ = await asked(bench, call("write", path="src/.git/config", content="x"), rules=rules, session="c")
    assert "later" in why


async def test_always_allow_is_offered_only_where_the_rule_would_work(bench: Bench, tmp_path: Path) -> None:
    engine = bench.engine(ScriptedModel([call("bash", command="touch x"), call("bash", command="if")], "done"), TOOLS)

    tasks = only(await request(engine, "go"), HITLPending).tasks

    assert [t.may_always for t in tasks] == [True, False]
