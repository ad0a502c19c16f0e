"""What holds for every test: it ends, reads nothing that a fresh clone does not have, and sends what Slack takes."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from slack_bolt.listener.async_listener import AsyncCustomListener

from tests.payloads import Payloads

# Nobody waits as long but for what never comes, so a machine may be many times slower than ours, and busy too.
PATIENCE: Final = 120.0  # seconds in which what a test waits for must come
LIMIT: Final = 300.0  # seconds for one test with its fixtures
ELSEWHERE: Final = "/work"  # where development machines keep material beside the repository: no clone has it

COMPLETE: Final = os.environ.get("CI") == "true"  # what tests need and is not installed is a failure, and no skip

# How long an example takes says how loaded the machine is; a test that hangs is ended by LIMIT. New examples are looked
# for by people at work: a change is checked by the same ones each time, so that what fails is the change.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=COMPLETE
)
settings.load_profile("any machine")

_ROOT: Final = Path(__file__).resolve().parents[1]
_OURS: Final = tuple(
    os.path.join(place, "")
    for place in {str(_ROOT), sys.prefix, sys.base_prefix, os.path.realpath(tempfile.gettempdir())}
)
_READING: Final = frozenset({"open", "os.listdir", "os.scandir", "sqlite3.connect"})
_stderr: Final = pytest.StashKey[int]()


def is_elsewhere(path: object) -> bool:
    """Whether this path, as it was given to `open` or its like, is under ELSEWHERE and not ours."""
    if not isinstance(path, str | bytes):
        return False  # a descriptor: its path was looked at when it was opened
    whole = os.path.join(os.path.abspath(os.fsdecode(path)), "")
    return whole.startswith(os.path.join(ELSEWHERE, "")) and not whole.startswith(_OURS)


def _refuse_elsewhere(event: str, args: tuple[Any, ...]) -> None:
    if event in _READING and args and is_elsewhere(args[0]):
        raise AssertionError(f"{args[0]!r} is not part of the repository: put what the test needs beside the test")


def pytest_xdist_auto_num_workers() -> int:
    """How many processes run tests. A workspace elsewhere has one bot at a time: theirs would answer each other."""
    return 1 if os.environ.get("SLACK_API_URL") else len(os.sched_getaffinity(0))


def pytest_configure(config: pytest.Config) -> None:
    # While tests run, stderr is captured, and would swallow the dump.
    config.stash[_stderr] = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
    sys.addaudithook(_refuse_elsewhere)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    def name_it(*_: object) -> None:
        os.write(item.config.stash[_stderr], f"\n{item.nodeid} takes more than {LIMIT:.0f} s\n".encode())

    # The dump ends the whole run: a test that hangs in a thread or in C can be ended in no other way. The name comes
    # by a signal just before, since the stack of an event loop that waits does not tell which test it waits for.
    signal.signal(signal.SIGALRM, name_it)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    faulthandler.dump_traceback_later(LIMIT + 1, exit=True, file=item.config.stash[_stderr])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.fixture(autouse=True)
def logging_as_before() -> Generator[None, None, None]:
    """The command line sets up logging for its whole process; the next test does not inherit that."""
    root, names = logging.getLogger(), ("bot", "harness_core", "harness", "slack_bolt", "slack_sdk")
    level, handlers, levels = root.level, root.handlers[:], {name: logging.getLogger(name).level for name in names}
    yield
    root.setLevel(level)
    root.handlers[:] = handlers
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bot may take as long as this machine needs for what Slack gives it three seconds. A Slack elsewhere is as
    quick as it is, so there it has to be acknowledged in time.
    """
    moments = ["bot.rule_commands.LOOKING", "bot.widening.SECONDS"]
    if not os.environ.get("SLACK_API_URL"):
        moments += ["bot.local.rules.ACK_SECONDS", "bot.local.rules.TRIGGER_SECONDS", "bot.listeners.ACK_BY"]
        for_ever = property(lambda listener: PATIENCE, lambda listener, seconds: None)  # Bolt waits for three, too
        monkeypatch.setattr(AsyncCustomListener, "ack_timeout", for_ever, raising=False)
    for moment in moments:
        monkeypatch.setattr(moment, PATIENCE)


@pytest.fixture(autouse=True)
def payloads(monkeypatch: pytest.MonkeyPatch) -> Generator[Payloads, None, None]:
    """Every payload that reaches a local workspace is one that Slack takes."""
    watched = Payloads()
    monkeypatch.setattr("bot.local.api.answer", watched.answer)
    yield watched
    assert watched.wrong == []
