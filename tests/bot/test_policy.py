"""The policy file in force: what is wrong stops the start, and later changes nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bot import check
from bot.__main__ import main
from bot.approvers import Access
from bot.policy import PolicyKeeper, default_path
from bot.settings import WATCH, InForce, SettingsBook, adjusted
from harness_core.errors import ConfigError, StoreError
from harness_core.guarding import guarded
from harness_core.guards import guards_from
from harness_core.interceptors.stop_loop import StopLoopInterceptor
from harness_core.interceptors.watchdog import Watchdog
from harness_core.permissions.judge import Gate
from harness_core.policy_file import parse_policy
from harness_core.policy_record import recorded
from harness_core.steps import Policy
from harness_core.store.memory import MemoryStore
from harness_core.testing import FakeClock

DENY = '[[rule]]\neffect = "deny"\ntool = "bash"\npattern = "git push *"\nwhy = "by hand"\n'
ALLOW = '[[rule]]\neffect = "allow"\ntool = "write"\npattern = "docs/**"\n'


def written(path: Path, text: str, age: int = 0) -> Path:
    """The file with this text; a greater age makes it look changed at another time."""
    path.write_text(text, "utf-8")
    os.utime(path, ns=(age * 10**9, age * 10**9))
    return path


def rules(keeper: PolicyKeeper) -> list[str]:
    return [str(one.rule) for one in keeper.file.rules]


def test_the_file_of_the_current_folder_counts_where_no_setting_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_path() is None
    assert PolicyKeeper(default_path()).file.rules == ()

    written(tmp_path / "harness.toml", DENY)

    keeper = PolicyKeeper(default_path())
    monkeypatch.chdir("/")
    assert rules(keeper) == ["deny bash git push *"]
    assert keeper.path == tmp_path / "harness.toml"


def test_a_file_that_leads_nowhere_is_an_error_and_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harness.toml").symlink_to("not-mounted/harness.toml")

    with pytest.raises(ConfigError, match="cannot be read"):
        PolicyKeeper(default_path())


def test_a_file_that_is_named_must_be_there_and_readable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.toml cannot be read: No such file"):
        PolicyKeeper(tmp_path / "no.toml")
    (tmp_path / "raw.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="no UTF-8"):
        PolicyKeeper(tmp_path / "raw.toml")
    with pytest.raises(ConfigError, match="directory"):
        PolicyKeeper(tmp_path)


def test_a_rule_for_a_tool_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    keeper = PolicyKeeper(written(tmp_path / "p.toml", DENY.replace('"bash"', '"BASH"') + ALLOW))

    keeper.know(["bash", "write"])  # deny rules ignore case
    with pytest.raises(ConfigError, match="there is no tool write; there are: bash"):
        keeper.know(["bash"])


@pytest.mark.parametrize("channel", ["#ops", "general", "c024be91l", "C024BE91L "])
def test_a_rule_for_what_is_no_id_of_a_channel_is_an_error(tmp_path: Path, channel: str) -> None:
    path = written(tmp_path / "p.toml", DENY.replace("why", f'channel = "{channel}"\nwhy'))

    with pytest.raises(ConfigError, match="C024BE91L"):
        PolicyKeeper(path)


def test_a_changed_file_counts_once_it_is_the_same_at_two_looks(tmp_path: Path) -> None:
    path = written(tmp_path / "p.toml", DENY)
    keeper = PolicyKeeper(path)

    written(path, "", age=1)  # an editor empties a file before it writes it
    keeper.look()
    written(path, DENY + ALLOW, age=2)
    keeper.look()
    assert rules(keeper) == ["deny bash git push *"]
    keeper.look()

    assert rules(keeper) == ["deny bash git push *", "allow write docs/**"]


def test_guards_come_from_the_file_and_a_changed_table_counts_without_a_restart(tmp_path: Path) -> None:
    path = written(tmp_path / "p.toml", DENY + "[guards]\nwatchdog = false\n")
    keeper = PolicyKeeper(path, ["bash"])
    assert "watchdog" not in [guard.name for guard in keeper.guards]

    written(path, DENY + "[guards.watchdog]\nnudge_after = 3\n", age=1)
    keeper.look()
    keeper.look()

    assert Watchdog(nudge_after=3) in keeper.guards
    *hooks, detector = guarded(Policy(), keeper.guards).gate.hooks
    assert isinstance(detector, StopLoopInterceptor)
    assert [guard.name for guard in hooks] == [
        "terminal",
        "finish",
        "watchdog",
        "limits",
        "budget",
        "caps",
        "refused",
    ]


def test_limits_of_the_file_go_before_those_of_the_engine() -> None:
    given, left = Policy(max_steps=20, max_seconds=60.0), guards_from({})

    assert guarded(given, left).max_steps == 20
    longer = guarded(given, guards_from({"limits": {"steps": 40, "seconds": 600}}))
    assert (longer.max_steps, longer.max_seconds) == (40, 600.0)


def test_the_loop_detector_is_the_one_of_the_guards() -> None:
    given = Policy(gate=Gate(hooks=(StopLoopInterceptor(),)))

    def detectors(loop: object) -> list[StopLoopInterceptor]:
        hooks = guarded(given, guards_from({"stop_loop": loop})).gate.hooks
        return [one for one in hooks if isinstance(one, StopLoopInterceptor)]

    assert [one.max_repeat for one in detectors({"max_repeat": 5})] == [5]
    assert detectors(False) == []


def test_a_policy_has_another_digest_under_other_guards() -> None:
    tuned = guards_from({"watchdog": {"nudge_after": 3}})

    assert recorded(guarded(Policy(), tuned))[0].digest != recorded(guarded(Policy(), guards_from({})))[0].digest


def test_a_guards_table_that_cannot_be_used_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"guards\.watchdgo is not known"):
        PolicyKeeper(written(tmp_path / "p.toml", "[guards]\nwatchdgo = false\n"))
    keeper = PolicyKeeper(written(tmp_path / "q.toml", "[guards.terminal]\ntools = ['ordr']\n"))
    with pytest.raises(ConfigError, match="there is no tool 'ordr'"):
        keeper.know(["order"])


@pytest.mark.parametrize("broken", ["[[rule]]\n", DENY.replace("bash", "bsh"), "[guards]\ncaps = 3\n", "", " \n", None])
def test_a_change_that_cannot_be_used_leaves_the_last_good_version_in_force(
    tmp_path: Path, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path / "p.toml", DENY)
    keeper = PolicyKeeper(path, ["bash", "write"])

    if broken is None:
        path.unlink()
    else:
        written(path, broken, age=1)
    keeper.look()
    keeper.look()

    assert rules(keeper) == ["deny bash git push *"]
    assert str(path) in keeper.fault
    assert "stays in force" in caplog.text

    written(path, ALLOW, age=2)
    keeper.look()
    keeper.look()
    assert (rules(keeper), keeper.fault) == (["allow write docs/**"], "")


def test_a_file_with_no_more_than_a_comment_has_no_rules(tmp_path: Path) -> None:
    path = written(tmp_path / "p.toml", DENY)
    keeper = PolicyKeeper(path)

    written(path, "# none\n", age=1)
    keeper.look()
    keeper.look()

    assert (rules(keeper), keeper.fault) == ([], "")
    assert rules(PolicyKeeper(written(tmp_path / "new.toml", ""))) == []


@pytest.mark.parametrize("fault", [StoreError("busy"), RuntimeError("a hook of somebody's")])
async def test_what_waits_is_woken_for_a_change_though_the_first_try_fails(
    tmp_path: Path, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    clock, woken = FakeClock(), list[int]()
    path = written(tmp_path / "p.toml", DENY)
    book = SettingsBook(MemoryStore(), clock, Access(), PolicyKeeper(path))

    async def wake() -> None:
        woken.append(len(rules(book.policy)))
        if woken == [2]:
            raise fault

    watching = asyncio.create_task(book.watch(wake))
    written(path, DENY + ALLOW, age=1)
    for look in range(1, 5):
        await clock.naps.reach(look)
        clock.advance(WATCH)
    await clock.naps.reach(5)
    watching.cancel()

    assert woken == [2, 2]
    assert "the next look tries again" in caplog.text


def test_config_shows_the_rules_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "p.toml", DENY)

    assert main(["config"], {"HARNESS_POLICY": str(path)}) == 0

    shown = capsys.readouterr().out
    assert f"HARNESS_POLICY      environment  {path}" in shown
    assert f"Rules of {path}:\n- deny bash git push * (by hand)" in shown


def test_a_policy_that_cannot_be_used_ends_the_command_with_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "p.toml", '[[rule]]\neffect = "deny"\n')

    assert main(["config"], {"HARNESS_POLICY": str(path)}) == 2
    assert "rule 1, line 1: `tool` is missing" in capsys.readouterr().err


def test_a_sub_agent_goes_by_the_rules_of_its_thread() -> None:
    file = parse_policy(DENY.replace("why", 'channel = "C1"\nwhy'))

    def rules_of(session_id: str) -> list[str]:
        return [str(rule) for rule in adjusted(Policy(), session_id, InForce(), file, 0.0).gate.rules]

    assert rules_of("slack:T1:C1:1.1") == rules_of("slack:T1:C1:1.1/r1-1-1") == ["deny bash git push *"]
    assert rules_of("slack:T1:C2:1.1") == rules_of("elsewhere") == []


def test_the_check_says_whether_the_file_can_be_used(tmp_path: Path) -> None:
    good, bad = written(tmp_path / "p.toml", DENY + ALLOW), written(tmp_path / "q.toml", "[[rule]]\n")

    assert str(check.policy(good)) == f"ok    policy file {good}: 2 rules"
    assert str(check.policy(bad)).startswith("FIX   the policy file cannot be used")
    assert "`effect` is missing" in check.policy(bad).advice
    assert check.policy(None).advice == ""
