"""`harness-bot trace`, `replay` and `backtest`: what happened in recorded sessions, and what would have."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bot.__main__ import main
from bot.facts import CODEC
from bot.folders import DATABASE, own_workspace
from harness_core.errors import ModelError
from harness_core.interceptors.lookup import Lookup
from harness_core.permissions.rule import PermissionRule
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import call
from tests.bot.recorded import OTHER, THREAD, record, session
from tests.engine.test_subagents import Cast


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    await record(tmp_path)
    return tmp_path


def run(data: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments, {"HARNESS_DATA": str(data)})
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_trace_tells_what_happened_when_and_by_whom(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(data, capsys, "trace", THREAD)

    assert code == 0
    told = [line[23:] for line in out.splitlines()[2:]]
    assert told[0] == "U0REQUEST said: make the report"
    assert "the model calls bash (2-1): touch report.txt" in told
    assert any("bash (2-1) waits for a person, #" in line and "touch is not one of" in line for line in told)
    assert any("approved by U0REVIEWER, via button" in line for line in told)
    assert told[-1] == "run r51c2 ended: completed"
    assert out.splitlines()[2].split()[:2] == ["1", "09:30:00"]


def test_without_a_session_the_newest_are_listed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(data, capsys, "trace")

    assert code == 0
    assert [line.split()[-1] for line in out.splitlines()] == [OTHER, THREAD]
    assert out.startswith("2026-03-01 09:31:")


async def test_where_nobody_has_said_anything_yet_a_trace_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = SQLiteStore(tmp_path / DATABASE, CODEC)
    await store.sessions()
    await store.close()

    assert run(tmp_path, capsys, "trace") == (
        0,
        f"Nobody has said anything yet: {tmp_path}/harness.db holds no session.\n",
        "",
    )


@pytest.mark.parametrize(
    "named",
    [
        "C2:1772357500.000200",
        "https://acme.slack.com/archives/C2/p1772357500000200",
        "https://acme.slack.com/archives/C2/p1772357999000200?thread_ts=1772357500.000200&cid=C2",
        "1772357500",
    ],
)
def test_a_session_is_named_as_people_can_name_it(data: Path, capsys: pytest.CaptureFixture[str], named: str) -> None:
    code, out, _ = run(data, capsys, "trace", named)

    assert (code, out.partition(": ")[0]) == (0, OTHER)


def test_a_session_that_there_is_not_is_told(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(data, capsys, "trace", "C3:1772357400.000100")

    assert (code, out) == (1, "")
    assert "There is no session 'C3:1772357400.000100'" in err


POLICY = """
[[rule]]
effect = "deny"
tool = "bash"
pattern = "touch *"

[[rule]]
effect = "allow"
tool = "bash"
pattern = "npm test"
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "other.toml"
    path.write_text(POLICY)
    return str(path)


def test_under_the_policy_in_force_a_session_goes_the_same_way(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(data, capsys, "replay", THREAD)

    assert code == 0
    assert out.endswith("2 verdicts, all as recorded: the session would have gone the same way.\n")


def test_a_replay_tells_where_another_policy_parts_from_the_recording(
    data: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(data, capsys, "replay", THREAD, "--policy", policy)

    assert code == 0
    assert "→ gate                deny (recorded: ask)  bash touch report.txt — rule deny bash touch *: " in out
    assert out.endswith("1 not as recorded: from fact 9 on (→) the session would have gone another way.\n")


def test_a_replay_is_there_for_programs_too(data: Path, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(data, capsys, "replay", THREAD, "--policy", policy, "--json")

    first, second = map(json.loads, out.splitlines())
    assert (first["verdict"], first["recorded"], first["diverges"]) == ("allow", "allow", False)
    assert (second["verdict"], second["recorded"], second["diverges"]) == ("deny", "ask", True)
    assert (second["tool"], second["args"], second["step"]) == ("bash", {"command": "touch report.txt"}, 2)


def test_a_backtest_tells_per_rule_what_would_have_changed(
    data: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(data, capsys, "backtest", "--policy", policy)

    assert code == 0
    assert out.startswith("2 sessions, 3 verdicts on calls: 1 would be another.\n")
    assert "ask → deny          1        1  rule deny bash touch *" in out
    assert f"2026-03-01 09:30:13  bash touch report.txt  ({THREAD} at 9)" in out
    assert out.endswith("Rules that decided no recorded call: allow bash npm test\n")


def test_a_backtest_is_there_for_programs_too(data: Path, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(data, capsys, "backtest", "--policy", policy, "--json")

    told = json.loads(out)
    assert (told["sessions"], told["calls"], told["unused"]) == (2, 3, ["allow bash npm test"])
    assert told["rules"] == {"rule deny bash touch *": {"ask → deny": 1}}
    assert [(c["session"], c["verdict"], c["conditional"]) for c in told["changes"]] == [(THREAD, "deny", False)]


@pytest.mark.parametrize(
    ("narrowed", "calls"),
    [
        (["--channel", "C1"], 2),
        (["--channel", "C9"], 0),
        (["--since", "2026-03-01T09:31:00"], 1),
        (["--since", "2027-01-01"], 0),
    ],
)
def test_a_backtest_can_be_narrowed_to_a_channel_or_a_time(
    data: Path, policy: str, capsys: pytest.CaptureFixture[str], narrowed: list[str], calls: int
) -> None:
    _, out, _ = run(data, capsys, "backtest", "--policy", policy, "--json", *narrowed)

    assert json.loads(out)["calls"] == calls


def test_what_another_policy_would_have_allowed_is_told_though_a_person_rejected_it(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wide.toml").write_text('[[rule]]\neffect = "allow"\ntool = "bash"\npattern = "rm *"\n')

    _, out, _ = run(data, capsys, "backtest", "--policy", str(tmp_path / "wide.toml"), "--json")

    [change] = json.loads(out)["changes"]
    assert (change["session"], change["recorded"], change["verdict"], change["diverges"]) == (
        OTHER,
        "ask",
        "allow",
        True,
    )


def test_a_policy_with_a_fault_is_told_before_anything_is_replayed(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.toml").write_text('[[rule]]\neffect = "deny"\ntool = "bsh"\n')

    codes = [
        run(data, capsys, *given, "--policy", str(tmp_path / "bad.toml"))
        for given in (["backtest"], ["replay", THREAD])
    ]

    for code, out, err in codes:
        assert (code, out) == (2, "")
        assert "there is no tool bsh" in err


def test_nothing_that_is_recorded_is_changed_by_looking(
    data: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*") if path.is_file()}

    for arguments in (["trace"], ["trace", THREAD], ["replay", THREAD], ["backtest", "--policy", policy]):
        assert run(data, capsys, *arguments)[0] == 0

    assert {path: path.stat().st_mtime_ns for path in data.rglob("*.db")} == {
        path: at for path, at in before.items() if path.suffix == ".db"
    }


def test_where_nothing_was_recorded_it_says_so_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(tmp_path, capsys, "trace")

    assert (code, out) == (1, "")
    assert "nothing was recorded there yet" in err
    assert list(tmp_path.iterdir()) == []


DEAD_END = """
[guards.finish]
requires = ["todo"]

[[rule]]
effect = "deny"
tool = "todo"
"""


def test_the_check_tells_of_a_demand_that_nothing_allows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "harness.toml").write_text(DEAD_END)

    def rules(**env: str) -> tuple[int, str]:
        code = main(["check"], {"HARNESS_DATA": str(tmp_path / "data"), **env})
        return code, capsys.readouterr().out.partition(" rules: ")[2]

    assert rules()[1].startswith("nothing that they forbid is demanded\n")
    code, told = rules(HARNESS_POLICY=str(tmp_path / "harness.toml"))
    assert code == 1
    assert "finish tells the model to call todo, and nothing allows that" in told


async def test_rules_that_fight_are_told_in_the_trace_and_in_the_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = "[guards]\nlookup = true\n[[rule]]\neffect = 'deny'\ntool = 'read'\n"
    (tmp_path / "harness.toml").write_text(policy)
    edits = [call("edit", path="notes.md", old="a", new=new) for new in "bcd"]
    reads = [call("read", path="notes.md", limit=limit) for limit in (5, 6, 7)]
    folder = own_workspace(tmp_path)(THREAD)
    folder.mkdir(parents=True)
    (folder / "notes.md").write_text("a")
    script = [one for pair in zip(edits, reads, strict=True) for one in pair]
    await session(
        tmp_path,
        THREAD,
        *script,
        "I cannot.",
        decisions=[],
        interceptors=[Lookup()],
        rules=[PermissionRule.deny("read")],
    )

    _, trace, _ = run(tmp_path, capsys, "trace", THREAD)
    _, same, _ = run(tmp_path, capsys, "replay", THREAD, "--policy", str(tmp_path / "harness.toml"))

    told = "CONFLICT: two rules fight over read: rule {}deny read{} refuses it (2 times in this run), and lookup tells"
    assert told.format("“", "”") in trace
    assert told.format("", "") in same


WORKER = """---
name: worker
description: Does the work.
max_steps: 1
rules:
  - deny bash touch a*
---
You are the worker.
"""


async def with_a_sub_agent(data: Path) -> None:
    """A thread whose sub-agent is refused by its own rule, and has its own limit; and whose context got too long."""
    (data / "agents").mkdir()
    (data / "agents" / "worker.md").write_text(WORKER)
    main = [call("task", agent="worker", prompt="go"), *(call("bash", command=f"echo {n}") for n in range(8))]
    model = Cast(
        [*main, lambda _: ModelError("overflow", "too long")], worker=[call("bash", command="touch a1"), "No."]
    )
    await session(data, THREAD, decisions=[], agents=data / "agents", model=model)


async def test_sub_agents_and_shortened_contexts_are_replayed_as_they_went(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await with_a_sub_agent(tmp_path)
    env = {"HARNESS_DATA": str(tmp_path), "HARNESS_AGENTS": str(tmp_path / "agents")}
    (tmp_path / "other.toml").write_text("")

    main(["trace"], env)
    names = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    told = []
    for name in names:
        main(["replay", name], env)
        told.append(capsys.readouterr().out)
    main(["backtest", "--policy", str(tmp_path / "other.toml"), "--json"], env)

    assert {name.partition("/")[0] for name in names} == {THREAD}
    assert len(names) > 1
    assert all(text.endswith("the session would have gone the same way.\n") for text in told)
    assert any("deny  bash touch a1 — rule deny bash touch a*" in text for text in told)
    backtest = json.loads(capsys.readouterr().out)
    assert backtest["changes"] == []


README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"```text\n\$ harness-bot (\w+)([^\n]*)\n(.*?)```", README, re.DOTALL)


def test_the_readme_has_an_example_of_each() -> None:
    assert [verb for verb, _, _ in EXAMPLES] == ["trace", "replay", "backtest"]


@pytest.mark.parametrize(("verb", "arguments", "shown"), EXAMPLES)
def test_the_examples_in_the_readme_are_what_is_printed(
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    arguments: str,
    shown: str,
) -> None:
    (data / "strict.toml").write_text(POLICY)
    monkeypatch.chdir(data)

    _, out, _ = run(data, capsys, verb, *arguments.split())

    whole = not shown.endswith("   …\n")
    told = shown if whole else shown.removesuffix("   …\n")
    assert (out if whole else out[: len(told)]) == told
