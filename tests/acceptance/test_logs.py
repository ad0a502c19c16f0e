"""At INFO the log of a whole conversation tells what happened, by whom and where, and nothing that anybody wrote."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.local import people
from bot.logs import JsonFormatter
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk

WRITTEN = ("please do the thing", "let me see", "arg-ument", "re-sult", "all finished", "no thanks", "because of that")


class Kept(logging.Handler):
    """Keeps what a handler writes, as it is written."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(JsonFormatter().format(record))


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler, root = Kept(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


async def test_a_conversation_in_the_log(tmp_path: Path, kept: Kept) -> None:
    model = ScriptedModel(
        ["let me see", call("change", a="arg-ument")], [call("change", a="arg-ument", b=2)], "all finished"
    )
    async with Desk(tmp_path, model, [RecordingTool("change", result="re-sult")]) as desk:
        ts = await desk.ask("please do the thing", people.BEN)
        await desk.click(await desk.card(ts), "approve")
        await desk.fill(await desk.card(ts, 2), "reject", choice="go_on", comment="no thanks")
        await desk.answer(ts, "all finished")
        await desk.slack.command(people.ADA, people.GENERAL, "/harness", "hitl off because of that")
        await desk.settled()
        session = desk.session(ts)

    lines = [json.loads(line) for line in kept.lines]
    told = [(line["event"], line) for line in lines if line["logger"] == "bot.chronicle"]
    ours = [event for event, fields in told if fields.get("session") == session]
    assert [event for event in ours if event != "run goes on"] == [
        "prompt taken",
        "run began",
        "card posted",
        "decision stored",
        "card posted",
        "decision stored",
        "run ended",
    ]
    assert [fields["setting"] for event, fields in told if event == "setting changed"] == ["hitl"]
    assert all("task" in fields for event, fields in told if event in ("card posted", "decision stored"))
    assert all("run" in fields for event, fields in told if event in ("card posted", "decision stored", "run ended"))
    ended = next(fields for event, fields in told if event == "run ended")
    assert ended["status"] == "completed"
    assert ended["seconds"] > 0
    assert not [line for line in kept.lines if any(text in line for text in WRITTEN)]
