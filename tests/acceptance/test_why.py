"""`!why` in a thread: why calls asked, were refused or ran, for those who may see it and for nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.local import people
from harness_core.events import Prompted
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk


def desk_of(tmp_path: Path) -> Desk:
    model = ScriptedModel(call("look"), call("bash", command="ls; rm -rf build"), "done")
    return Desk(tmp_path, model, [RecordingTool("look", read_only=True), "bash"])


@pytest.mark.parametrize("word", ["!why", "!WHY", "@harness !why did it ask?"])
async def test_whoever_may_speak_learns_in_private_which_part_of_the_command_asked(tmp_path: Path, word: str) -> None:
    async with desk_of(tmp_path) as desk:
        ts = await desk.ask("clean up")
        await desk.card(ts)

        await desk.say(word, people.BEN, thread=ts)

        told = await desk.told(people.BEN, "Why, in the newest run")
        asked, ran = told.splitlines()[1:]
        assert asked.startswith(
            "• bash `ls; rm -rf build` *asked*: the part `rm -rf build` is not known to be read-only"
        )
        assert "It waits (`#" in asked
        assert ran == "• look `(no arguments)` *ran unasked*: it only reads inside the workspace."
        await desk.slack.wait_for(lambda s: not s.world.hub.pending)
        await desk.settled()
        assert desk.texts(ts) == []
        assert len(desk.notices(people.BEN)) == 1
        assert len(await desk.facts(ts, Prompted)) == 1


async def test_after_a_decision_and_a_restart_it_says_who_decided(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        ts = await desk.ask("clean up")
        await desk.click(await desk.card(ts), "approve")
        await desk.answer(ts, "done")
        await desk.reborn()

        await desk.say("!why", thread=ts)

        assert f"Then it was approved by <@{people.ADA}>." in await desk.told(people.ADA, "Why, in the newest run")


@pytest.mark.parametrize("user", [people.GIL])
async def test_a_guest_learns_nothing(tmp_path: Path, user: str) -> None:
    async with desk_of(tmp_path) as desk:
        ts = await desk.ask("clean up")
        await desk.card(ts)

        await desk.say("!why", user, thread=ts)

        told = await desk.told(user, "guests")
        assert "rm" not in told
        assert len(desk.notices(user)) == 1
