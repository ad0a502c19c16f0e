"""The log: a line per record, ids where they are known, no secret, and no line that somebody else made up."""

from __future__ import annotations

import asyncio
import io
import json
import logging

import pytest

from bot import logs
from bot.chronicle import Chronicle, line
from bot.config import Settings
from bot.facts import (
    ApprovalsSwitched,
    ApproverChanged,
    ChannelSwitched,
    NetworkSwitched,
    Paused,
    Posted,
    SensitiveChanged,
)
from bot.posts import card_id
from harness_core.errors import ConfigError
from harness_core.events import HITLSubmitted, Prompted, ReasonEnd, RuleChanged, RunEnd, RunStart, ToolCallEnd
from harness_core.hitl import Reject
from harness_core.permissions.rule import PermissionRule

SECRET = "xoxb-" + "7Qd" * 12
TEXT = "what somebody wrote"
log = logging.getLogger("bot.test")


@pytest.fixture
def out() -> io.StringIO:
    """Where the log goes."""
    return io.StringIO()


def test_a_line_has_time_level_event_and_fields(out: io.StringIO) -> None:
    logs.configure("text", "info", out)

    logs.note(log, "card posted", session="slack:T1:C1:1.0", task="3f9a1c", by="", seconds=1.5, on=True, who="a b")

    time, rest = out.getvalue().split(" ", 1)
    assert time.endswith("Z")
    assert rest == (
        'info card posted session=slack:T1:C1:1.0 task=3f9a1c seconds=1.5 on=true who="a b" logger=bot.test\n'
    )


def test_json_has_the_same_keys(out: io.StringIO) -> None:
    logs.configure("json", "info", out)

    logs.note(log, "card posted", session="s", seconds=1.5)

    told = json.loads(out.getvalue())
    assert list(told) == ["time", "level", "event", "session", "seconds", "logger"]
    assert (told["event"], told["seconds"]) == ("card posted", 1.5)


@pytest.mark.parametrize("how", ["text", "json"])
def test_a_record_is_one_line_and_holds_no_secret(out: io.StringIO, how: logs.Format) -> None:
    logs.configure(how, "info", out)
    forged = "\n2026-01-01T00:00:00Z info run ended\r\u2028\x85\x1b[2J"
    try:
        raise ValueError(f"bad {SECRET}{forged}")
    except ValueError:
        log.exception("it failed with %s%s", SECRET, forged, extra={"fields": {"token": SECRET, "note": forged}})

    (only,) = out.getvalue().splitlines()
    assert SECRET not in only
    assert "•••" in only
    assert "\x1b" not in only


async def test_what_is_logged_within_is_about_these_and_a_task_knows_its_session(out: io.StringIO) -> None:
    logs.configure("json", "info", out)
    logs.run_of("s2", "r2")

    with logs.about(session="s1", task="3f9a1c"):
        log.warning("within")
        await asyncio.create_task(_warns(), name="session s2")
    log.warning("after")
    logs.run_of("s2", "")

    within, other, after = map(json.loads, out.getvalue().splitlines())
    assert (within["session"], within["task"]) == ("s1", "3f9a1c")
    assert (other["session"], other["run"]) == ("s2", "r2")
    assert "session" not in after


async def _warns() -> None:
    log.warning("in a task")


@pytest.mark.parametrize("level", ["debug", "info", "warning"])
def test_what_is_not_ours_is_never_logged_below_info(out: io.StringIO, level: str) -> None:
    logs.configure("text", level, out)

    for name in ("slack_bolt.AsyncApp", "slack_sdk.web.async_client", "openai._base_client", "httpcore", "aiohttp"):
        logging.getLogger(name).debug("a payload")
    logging.getLogger("slack_bolt.AsyncApp").warning("As you gave `client` as well, `token` will be unused.")
    log.debug("ours")

    assert ("ours" in out.getvalue()) == (level == "debug")
    assert "payload" not in out.getvalue()
    assert "client" not in out.getvalue()


def test_facts_become_lines_without_anything_that_somebody_wrote(out: io.StringIO) -> None:
    logs.configure("text", "info", out)
    chronicle, task = Chronicle(), "3f9a1c" + "0" * 58
    rule = PermissionRule("allow", "bash", arguments=f'{{"command":"{TEXT}"}}')
    facts = (
        Prompted(TEXT, "U1", files=(TEXT,), ref="T1:C1:1.0"),
        RunStart(run_id="r1", at=10.0),
        ReasonEnd(TEXT, run_id="r1"),
        HITLSubmitted(task, Reject(TEXT), "U2", "button", run_id="r1"),
        RuleChanged("added", rule, "U2", TEXT),
        ToolCallEnd("c1", TEXT),
        RunEnd("completed", answer=TEXT, run_id="r1", at=12.5),
    )
    chronicle.take("slack:T1:C1:1.0", facts)
    chronicle.take("show:slack:T1:C1:1.0", (Posted(card_id(task), "d", "2.0"), Posted(card_id(task), "e", "2.0", 1)))
    settings = (
        ChannelSwitched("C1", True, "U1"),
        ApproverChanged("U3", True, "U1"),
        SensitiveChanged("bash", True, "U1"),
        ApprovalsSwitched(False, "U1", why=TEXT),
        NetworkSwitched("C1", True, "U1"),
        Paused(True, "U1"),
    )
    chronicle.take("config:workspace", settings)

    lines = [" ".join(one.split(" ")[1:]).removesuffix(" logger=bot.chronicle") for one in out.getvalue().splitlines()]
    session = "session=slack:T1:C1:1.0"
    assert lines == [
        f"info prompt taken {session} by=U1 message=T1:C1:1.0",
        f"info run began {session} run=r1",
        f"info decision stored {session} run=r1 task=3f9a1c decision=reject by=U2 via=button",
        f"info rule changed {session} run=r1 change=added rule={rule.id} tool=bash by=U2",
        f"info run ended {session} run=r1 status=completed seconds=2.5",
        f"info card posted {session} task=3f9a1c message=2.0",
        "info setting changed setting=channel channel=C1 on=true by=U1",
        "info setting changed setting=approver who=U3 on=true by=U1",
        "info setting changed setting=sensitive tool=bash on=true by=U1",
        "info setting changed setting=hitl on=false by=U1",
        "info setting changed setting=network channel=C1 on=true by=U1",
        "info setting changed setting=paused on=true by=U1",
    ]


def test_the_end_of_a_run_that_began_elsewhere_has_no_duration() -> None:
    assert line(RunEnd("completed", run_id="r")) == ("run ended", {"status": "completed"})


def test_the_settings_of_the_log_are_read() -> None:
    settings = Settings.from_env({"HARNESS_LOG": "JSON", "HARNESS_LOG_LEVEL": "Info"})

    assert (settings.log, settings.log_level) == ("json", "info")
    with pytest.raises(ConfigError, match=r"HARNESS_LOG must be one of text, json\.[\s\S]*HARNESS_LOG_LEVEL must be"):
        Settings.from_env({"HARNESS_LOG": "xml", "HARNESS_LOG_LEVEL": "loud"})
