"""Agents of one's own in a thread: their cards stand in it with their name, and everything works on them as ever."""

from __future__ import annotations

import re
from pathlib import Path

from bot.local import people
from harness_core.events import RunEnd, ToolCallEnd
from harness_core.models.practice import PracticeModel
from harness_core.options import DEFAULT_TOOLS
from harness_core.testing import RecordingTool, call
from tests.acceptance.desk import Desk, buttons, reading, value_of
from tests.acceptance.killed import agents
from tests.acceptance.test_settings import command
from tests.engine.test_subagents import Cast

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
HAND_OVER = call("task", agent="worker", prompt="do it")


def desk_of(folder: Path, worker: list[object], main: list[object] | None = None) -> Desk:
    model = Cast(main or [HAND_OVER, lambda r: f"It says: {r.messages[-1].content}"], worker=worker)
    return Desk(folder, model, [RecordingTool("change"), RecordingTool("log")], agents=agents(folder))


async def test_the_example_of_the_readme_asks_in_the_thread_and_answers(tmp_path: Path) -> None:
    (file,) = re.findall(r"```markdown\n(.*?)```", README, re.DOTALL)
    (asked,) = re.findall(r"With the practice model: (ask the agent .*)\.$", README, re.MULTILINE)
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "reviewer.md").write_text(file, "utf-8")
    async with Desk(tmp_path / "data", PracticeModel(), [*DEFAULT_TOOLS[:-1]], agents=folder) as desk:
        ts = await desk.ask(asked, people.BEN)
        card = await desk.card(ts)
        assert "Sub-agent: reviewer" in reading(card)
        assert "touch seen.txt" in reading(card)
        assert f"<@{people.BEN}>" in reading(card)

        assert (await desk.click(card, "approve")).ok

        await desk.answer(ts, "This is what came of it")
        assert "Approved by" in reading(await desk.card(ts, showing="exit 0"))
        assert list((tmp_path / "data" / "workspaces").glob("*/seen.txt"))


async def test_an_agent_s_card_is_decided_by_buttons_forms_and_words(tmp_path: Path) -> None:
    worker = [[call("change", n=1), call("change", n=2), call("log", n=3)], "ok"]
    async with desk_of(tmp_path, list(worker)) as desk:
        ts = await desk.ask("go")
        first, second, third = [await desk.card(ts, n) for n in (1, 2, 3)]
        assert "1 of 3" in reading(first)
        assert "nothing runs until all are decided" in reading(first)

        await desk.click(first, "approve")
        assert (await desk.fill(second, "skip", comment="no need")).ok
        short = value_of(third, "approve").rpartition("|")[2][:6]
        await desk.say(f"!approve {short}", thread=ts)

        await desk.answer(ts, "It says: ok")
        ends = {end.content.split(";")[0]: end.outcome for end in await desk.facts(ts, ToolCallEnd)}
        assert ends == {"done": "ok", f"Left out by {people.ADA}": "skipped", "ok": "ok"}
        await desk.card(ts, 2, showing="Left out")


async def test_status_and_the_list_of_what_waits_name_the_agent_once(tmp_path: Path) -> None:
    async with desk_of(tmp_path, [call("change"), "ok"]) as desk:
        ts = await desk.ask("go")
        await desk.card(ts)

        await desk.say("!status", thread=ts)
        told = await desk.told(people.ADA, "Waiting for a decision on")
        waiting = await command(desk, "pending")

        assert "Use the tool change?" in told
        assert told.count("(sub-agent worker)") == waiting.count("(sub-agent worker)") == 1


async def test_a_stop_closes_an_agent_s_card(tmp_path: Path) -> None:
    async with desk_of(tmp_path, [call("change"), "never"]) as desk:
        ts = await desk.ask("go")
        await desk.card(ts)

        await desk.say("!stop", thread=ts)

        assert buttons(await desk.card(ts, showing="Closed")) == []
        await desk.answer(ts, "stopped this run")


async def test_a_rejection_that_stops_stops_the_agent_and_its_thread(tmp_path: Path) -> None:
    worker = [[call("change", n=1), call("change", n=2), call("log", n=3)], "never"]
    async with desk_of(tmp_path, list(worker)) as desk:
        ts = await desk.ask("go")
        first, second = await desk.card(ts, 1), await desk.card(ts, 2)

        await desk.fill(second, "reject", choice="go_on", comment="later")
        await desk.fill(first, "reject", choice="stop", comment="not today")

        told = await desk.answer(ts, "rejected it, so I stopped here. Reason: not today")
        assert people.ADA in told
        assert desk.texts(ts) == [told]
        assert buttons(await desk.card(ts, 3, showing="Closed")) == []
        (end,) = await desk.facts(ts, RunEnd)
        assert (end.status, end.answer) == ("rejected", "not today")


async def test_a_typed_rejection_of_an_agents_only_card_ends_the_agent_and_the_thread_goes_on(tmp_path: Path) -> None:
    async with desk_of(tmp_path, [call("change"), "never"]) as desk:
        ts = await desk.ask("go")
        short = value_of(await desk.card(ts), "approve").rpartition("|")[2][:6]

        await desk.say(f"!reject {short} not today", thread=ts)

        assert "not today" in await desk.answer(ts, "It says: The agent worker did not finish")


async def test_a_pause_stops_agents_and_their_threads(tmp_path: Path) -> None:
    async with desk_of(tmp_path, [call("change"), "never"]) as desk:
        ts = await desk.ask("go")
        await desk.card(ts)

        assert "Paused" in await command(desk, "pause")

        await desk.card(ts, showing="Closed")


async def test_after_a_restart_an_agent_s_card_still_counts(tmp_path: Path) -> None:
    async with desk_of(tmp_path, [call("change"), "changed"]) as desk:
        ts = await desk.ask("go")
        card = await desk.card(ts)
        await desk.restart()

        assert (await desk.click(card, "approve")).ok

        await desk.answer(ts, "It says: changed")
        assert len(desk.cards(ts)) == 1


async def test_what_is_marked_sensitive_in_the_channel_asks_for_agents_too(tmp_path: Path) -> None:
    async with desk_of(tmp_path, [], [HAND_OVER, "done"]) as desk:
        await command(desk, "sensitive add task")

        card = await desk.card(await desk.ask("go"))

        assert "Use the tool task?" in reading(card)
        assert "Sub-agent" not in reading(card)
