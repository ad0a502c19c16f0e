"""Rules that stand in each other's way are told while the bot runs: at the start, and when they fight."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from harness_core.events import RunEnd
from harness_core.ports import ModelRequest, ProposedCall
from harness_core.testing import ScriptedModel, call
from tests.acceptance.desk import Desk

FIGHTING = """
[guards]
lookup = true

[[rule]]
effect = "deny"
tool = "read"
"""


def warnings(caplog: pytest.LogCaptureFixture, logger: str = "bot.quarrels") -> list[logging.LogRecord]:
    return [one for one in caplog.records if one.name == logger and one.levelno >= logging.WARNING]


async def test_two_rules_that_fight_are_named_in_the_log_once_with_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = tmp_path / "harness.toml"
    policy.write_text(FIGHTING)

    def first(request: ModelRequest) -> ProposedCall:
        for folder in (tmp_path / "data" / "workspaces").iterdir():
            (folder / "notes.md").write_text("a")
        return call("edit", path="notes.md", old="a", new="b")

    model = ScriptedModel(
        first,
        call("read", path="notes.md"),
        call("edit", path="notes.md", old="a", new="c"),
        call("read", path="notes.md", limit=5),
        "I cannot.",
    )
    async with Desk(tmp_path / "data", model, ["read", "edit"], policy=policy) as desk:
        [told] = warnings(caplog)
        assert "lookup tells the model to call read, and nothing allows that" in told.getMessage()
        root = await desk.say("@harness change the notes")
        await desk.answer(root, "I cannot.")
        await desk.settled()

        [_, fight] = await desk.slack.wait_for(lambda _: warnings(caplog) if len(warnings(caplog)) > 1 else None)
        fields = fight.fields  # type: ignore[attr-defined]
        [end] = await desk.facts(root, RunEnd)
        assert fight.getMessage() == "two rules fight"
        assert (fields["tool"], fields["refuses"], fields["demands"]) == ("read", "rule deny read", "lookup")
        assert (fields["session"], fields["run"]) == (desk.session(root), end.run_id)
