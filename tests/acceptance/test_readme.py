"""The README's shell commands, from a clone to the first approval: what it says to type is what is run here."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from bot.__main__ import main
from bot.config import SlackSettings
from bot.local import people
from tests.acceptance.remote import Elsewhere, RemoteSlack
from tests.conftest import PATIENCE

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text("utf-8")
PROGRAMS: Final = Path(sys.executable).parent
BLOCKS: Final = re.findall(r"^ *```bash\n(.*?)^ *```", README, re.DOTALL | re.MULTILINE)


def block(holding: str) -> str:
    (found,) = [one for one in BLOCKS if holding in one]
    return found.strip()


def environment(folder: Path) -> dict[str, str]:
    """That of somebody who has set nothing; in a folder of this test's own."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SLACK_", "HARNESS_", "OPENAI_"))},
        "HARNESS_DATA": str(folder),
        "HARNESS_LOCAL_PORT": "0",  # as the README says where 8765 is taken
    }


def here(command: str) -> list[str]:
    """A command of the README, run by the environment that these tests are in: it was installed with -e, too."""
    return shlex.split(command.replace(".venv/bin/", f"{PROGRAMS}/"))


@contextmanager
def started(command: str, folder: Path) -> Iterator[RemoteSlack]:
    """The bot, started as the README says, and the workspace that it prints the address of; ended by Ctrl-C."""
    with subprocess.Popen(
        here(command), cwd=ROOT, env=environment(folder), stdout=subprocess.PIPE, text=True, bufsize=1
    ) as bot:
        try:
            assert bot.stdout
            line = next(line for line in bot.stdout if line.startswith("Open:"))
            page = urlsplit(line.split()[1])
            for line in bot.stdout:
                if line.startswith("Ctrl-C stops."):
                    break
            control = f"{page.scheme}://{page.netloc}/_control/?{page.query}"
            yield RemoteSlack(Elsewhere(SlackSettings("", ""), control))
            bot.send_signal(signal.SIGINT)
            assert bot.wait(PATIENCE) == 0
        finally:
            bot.kill()


async def card(slack: RemoteSlack, ts: str) -> dict[str, Any]:
    def found(there: RemoteSlack) -> dict[str, Any] | None:
        messages = there.messages(people.GENERAL, ts)
        return next((m for m in messages if any(b["type"] == "actions" for b in m.get("blocks", ()))), None)

    shown = await slack.wait_for(found)
    assert shown
    return shown


def test_it_is_installed_from_the_clone_and_started_by_one_line() -> None:
    first, second, start = block("-m venv").split(" && ")

    assert first == "python3 -m venv .venv"
    assert second == ".venv/bin/pip install -e ."
    assert Path(here(start)[0]).is_file()


async def test_the_first_approval_comes_as_the_readme_tells_it_and_a_card_outlives_ctrl_c(tmp_path: Path) -> None:
    start = block("-m venv").split(" && ")[-1]
    with started(start, tmp_path) as slack:
        ts = (await slack.say(people.ADA, people.GENERAL, "@harness run `echo hello | tee hello.txt`"))["ts"]
        await card(slack, ts)

    with started(start, tmp_path) as slack:
        asked = await card(slack, ts)
        assert (await slack.click(people.ADA, people.GENERAL, asked["ts"], "approve")).ok
        await slack.wait_for(lambda s: [m for m in s.messages(people.GENERAL, ts) if "hello" in m["text"]][2:])

    assert [file.read_text() for file in (tmp_path / "workspaces").glob("*/hello.txt")] == ["hello\n"]


def test_a_policy_is_judged_by_the_line_and_with_the_answers_that_the_readme_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, rows, answers = block("$ cat cases.jsonl").split("$ ")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows.partition("\n")[2].encode())))

    assert answers.startswith("harness-bot judge < cases.jsonl\n")
    assert main(["judge"], {}) == 0
    assert capsys.readouterr().out.strip() == answers.partition("\n")[2].strip()
