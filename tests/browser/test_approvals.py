"""The whole flow in a real browser: the real bot, the page, and people who click."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bot.app import Parts
from bot.config import Settings
from bot.local_bot import LocalBot
from harness_core.ports import ChatModel
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.browser.conftest import People, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")

BASH = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def run() -> RecordingTool:
    return RecordingTool("run", schema=BASH, result=lambda args: f"ran {args['command']}", subject="command")


class Stage:
    """The real bot in its local workspace, started and stopped on the same folder and port."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self._browser, self._folder, self._port = browser, folder, 0
        self.local: LocalBot
        self.people: People

    async def start(self, model: ChatModel, *tools: RecordingTool) -> None:
        parts = Parts(model=model, tools=[*tools, "hitl"])
        self.local = LocalBot(Settings(data=self._folder, local_port=self._port, grace=0.0), parts)
        await self.local.__aenter__()
        self._port = int(self.local.workspace.url.rsplit(":", 1)[1])
        if not hasattr(self, "people"):
            self.people = People(self._browser, self.local.workspace)

    async def stop(self) -> None:
        await self.local.__aexit__()


@pytest_asyncio.fixture(loop_scope="session")
async def stage(browser: Any, tmp_path: Path, unhurried: None) -> AsyncIterator[Stage]:
    made = Stage(browser, tmp_path)
    yield made
    await made.people.close()
    await made.stop()
    assert made.people.wrong == []


async def ask(page: Any, text: str) -> Any:
    """Ask in a new thread; the thread's pane."""
    await page.get_by_test_id("new-thread").click()
    composer = page.get_by_test_id("thread-composer")
    await composer.fill(f"@harness {text}")
    await composer.press("Enter")
    return page.locator("#thread")


def cards(pane: Any) -> Any:
    return pane.locator("[data-testid=message]", has=pane.page.locator("[data-testid=action]"))


async def press(card: Any, action: str) -> None:
    await card.locator(f"[data-action-id={action}]").click()


async def submit(page: Any) -> None:
    await page.get_by_test_id("modal-submit").click()
    await expect(page.get_by_test_id("modal")).to_have_count(0)


async def test_two_commands_in_one_message_one_approved_and_one_edited(stage: Stage) -> None:
    tool = run()
    model = ScriptedModel([call("run", command="one"), call("run", command="two")], "Both are done.")
    await stage.start(model, tool)
    page = await stage.people.open()
    pane = await ask(page, "run one and two")
    await expect(cards(pane)).to_have_count(2)
    await expect(pane).to_contain_text("1 of 2 · nothing runs until all are decided")

    await press(cards(pane).first, "approve")
    await expect(pane).to_contain_text("waits for 1 more")
    await expect(cards(pane)).to_have_count(1)
    await expect(pane).to_contain_text("1 decided · nothing runs until all are decided")
    assert tool.runs == []
    await press(cards(pane).first, "edit")
    field = page.get_by_test_id("field-arg:0").locator("textarea")
    assert "mono" in (await field.evaluate("it => getComputedStyle(it).fontFamily")).lower()
    assert await field.get_attribute("autocorrect") == "off"  # a phone would put in curly quotes
    await field.fill("two --dry-run")
    await submit(page)

    await expect(pane).to_contain_text("Both are done.")
    await expect(pane.locator(".went")).to_have_text("- two")
    await expect(pane.locator(".came")).to_have_text("+ two --dry-run")
    await expect(cards(pane)).to_have_count(0)
    assert tool.runs == [{"command": "one"}, {"command": "two --dry-run"}]
    assert "ran two --dry-run" in model.requests[-1].messages[-1].content


@pytest.mark.parametrize(
    ("choice", "end"), [("Stop here", "I stopped here"), ("Let the agent go on", "I found another way")]
)
async def test_a_reject_with_a_reason_stops_or_lets_the_agent_go_on(stage: Stage, choice: str, end: str) -> None:
    tool = run()
    model = ScriptedModel([call("run", command="one")], "I found another way.")
    await stage.start(model, tool)
    page = await stage.people.open()
    pane = await ask(page, "run one")
    await press(cards(pane).first, "reject")
    await expect(page.get_by_role("radio", name="Stop here")).to_be_checked()

    await page.get_by_test_id("field-comment").locator("input, textarea").fill("too risky <!channel>")
    await page.get_by_role("radio", name=choice).check()
    await submit(page)

    await expect(pane).to_contain_text(end)
    await expect(pane).to_contain_text("too risky <!channel>")
    assert tool.runs == []
    assert len(model.requests) == (1 if choice == "Stop here" else 2)


@pytest.mark.parametrize(("choice", "told"), [("I did it myself", "Done by hand"), ("Leave it out", "Left out")])
async def test_a_skip_says_which_it_is(stage: Stage, choice: str, told: str) -> None:
    tool = run()
    model = ScriptedModel([call("run", command="one")], "Noted.")
    await stage.start(model, tool)
    page = await stage.people.open()
    pane = await ask(page, "run one")
    await press(cards(pane).first, "skip")

    await page.get_by_role("radio", name=choice).check()
    await page.get_by_test_id("field-comment").locator("input, textarea").fill("see the wiki")
    await submit(page)

    await expect(pane).to_contain_text("Noted.")
    assert tool.runs == []
    assert told in model.requests[-1].messages[-1].content
    assert "see the wiki" in model.requests[-1].messages[-1].content


async def test_always_allow_then_without_a_card_then_one_more_character(stage: Stage) -> None:
    tool = run()
    same, more = call("run", command="date"), call("run", command="date!")
    await stage.start(ScriptedModel([same], "First.", [same], "Second.", [more], "Third."), tool)
    page = await stage.people.open()
    pane = await ask(page, "date")
    await press(cards(pane).first, "always")
    await expect(page.get_by_test_id("modal")).to_contain_text("Exactly this runs without asking from now on")
    await expect(page.get_by_role("radio", name="In this thread")).to_be_checked()
    await submit(page)
    await expect(pane).to_contain_text("First.")

    await page.get_by_test_id("thread-composer").fill("again")
    await page.get_by_test_id("thread-composer").press("Enter")
    await expect(pane).to_contain_text("Second.")
    await expect(cards(pane)).to_have_count(0)
    await page.get_by_test_id("thread-composer").fill("and with more")
    await page.get_by_test_id("thread-composer").press("Enter")

    await expect(cards(pane)).to_have_count(1)
    assert len(tool.runs) == 2


async def test_a_guest_s_click_changes_nothing_and_is_answered_in_private(stage: Stage) -> None:
    tool = run()
    await stage.start(ScriptedModel([call("run", command="one")], "Done."), tool)
    ada = await stage.people.open()
    pane = await ask(ada, "run one")
    await expect(cards(pane)).to_have_count(1)
    gil = await stage.people.open("gil")
    await gil.get_by_test_id("open-thread").click()
    theirs = gil.locator("#thread")

    await press(cards(theirs).first, "approve")

    await expect(gil.get_by_test_id("notice").first).to_contain_text("guests")
    await expect(ada.get_by_test_id("notice")).to_have_count(0)
    await expect(cards(pane)).to_have_count(1)
    assert tool.runs == []


async def test_another_person_decides_in_a_second_window(stage: Stage) -> None:
    tool = run()
    await stage.start(ScriptedModel([call("run", command="one")], "Done."), tool)
    ben = await stage.people.open("ben")
    pane = await ask(ben, "run one")
    await expect(cards(pane)).to_have_count(1)
    ada = await stage.people.open("ada")
    await ada.get_by_test_id("open-thread").click()

    await press(cards(ada.locator("#thread")).first, "approve")

    await expect(pane).to_contain_text("Done.")
    await expect(pane).to_contain_text("Approved by @ada")


async def test_a_restart_in_between_loses_nothing(stage: Stage) -> None:
    tool = run()
    model = ScriptedModel([call("run", command="one")], "Done.")
    await stage.start(model, tool)
    page = await stage.people.open()
    pane = await ask(page, "run one")
    await expect(cards(pane)).to_have_count(1)

    stage.people.goes_away = True
    await stage.stop()
    await expect(page.get_by_test_id("connection")).to_be_visible()
    await stage.start(model, tool)
    await expect(page.get_by_test_id("connection")).to_be_hidden()
    await press(cards(pane).first, "approve")

    await expect(pane).to_contain_text("Done.")
    await expect(pane.locator("[data-testid=message]", has_text="Use the tool run?")).to_have_count(1)
    assert tool.runs == [{"command": "one"}]


async def test_a_card_that_had_to_cut_is_approved_only_in_its_form(stage: Stage) -> None:
    tool = run()
    command = "\n".join(f"echo line {n}" for n in range(400))
    await stage.start(ScriptedModel([call("run", command=command)], "Done."), tool)
    page = await stage.people.open()
    pane = await ask(page, "run it all")
    card = cards(pane).first
    await expect(card.locator("[data-action-id=approve]")).to_have_count(0)
    await press(card, "view")
    await expect(page.get_by_test_id("modal")).to_contain_text("echo line 399")
    await page.get_by_test_id("modal-close").click()

    await press(card, "review")
    await expect(page.get_by_test_id("modal")).to_contain_text("echo line 200")
    await submit(page)

    await expect(pane).to_contain_text("Done.")
    assert tool.runs == [{"command": command}]


@pytest.mark.parametrize("action", ["rerun", "happened", "skip"])
async def test_an_unknown_outcome_has_a_card_of_its_own(stage: Stage, action: str) -> None:
    cut_off = RecordingTool("run", schema=BASH, hold=asyncio.Event())
    model = ScriptedModel([call("run", command="one")], "Understood.")
    await stage.start(model, cut_off)
    page = await stage.people.open()
    pane = await ask(page, "run one")
    await press(cards(pane).first, "approve")
    await cut_off.started.reach(1)
    stage.people.goes_away = True
    await stage.stop()

    again = run()
    await stage.start(model, again)
    await expect(page.get_by_test_id("connection")).to_be_hidden()
    card = pane.locator("[data-testid=message]", has=page.locator("[data-action-id=rerun]"))
    await expect(card).to_have_count(1)
    await press(card, action)
    if action != "rerun":
        await page.get_by_test_id("field-comment").locator("input, textarea").fill("it wrote one line")
        await submit(page)

    await expect(pane).to_contain_text("Understood.")
    assert len(again.runs) == (1 if action == "rerun" else 0)
    if action == "happened":
        assert "it wrote one line" in model.requests[-1].messages[-1].content


async def test_everything_can_be_done_with_the_keyboard_alone(stage: Stage) -> None:
    tool = run()
    await stage.start(ScriptedModel([call("run", command="one")], "Done."), tool)
    page = await stage.people.open()
    await page.get_by_test_id("new-thread").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("thread-composer")).to_be_focused()
    await page.keyboard.type("run one")
    await page.keyboard.press("Enter")
    pane = page.locator("#thread")
    await expect(cards(pane)).to_have_count(1)

    await tab_to(page, "edit")
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("modal")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_test_id("modal")).to_have_count(0)
    await expect(page.locator("#thread [data-action-id=edit]")).to_be_focused()
    await tab_to(page, "approve")
    await page.keyboard.press("Enter")

    await expect(pane).to_contain_text("Done.")
    assert tool.runs == [{"command": "one"}]


async def tab_to(page: Any, action: str) -> None:
    """Press Tab until a button of this action has the focus; a hundred times is farther than anything here."""
    for _ in range(100):
        await page.keyboard.press("Shift+Tab")
        if await page.evaluate("document.activeElement?.dataset?.actionId") == action:
            return
    pytest.fail(f"Tab never reached {action}")


async def test_it_reads_well_on_a_phone(stage: Stage) -> None:
    tool = run()
    await stage.start(ScriptedModel([call("run", command="one")], "Done."), tool)
    page = await stage.people.open(viewport={"width": 390, "height": 844})
    await page.get_by_test_id("thread-composer").fill("@harness run one")
    await page.get_by_test_id("thread-composer").press("Enter")
    pane = page.locator("#thread")

    await expect(cards(pane)).to_have_count(1)
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    box = await cards(pane).first.locator("[data-action-id=approve]").bounding_box()
    assert box["height"] >= 40
    await press(cards(pane).first, "approve")
    await expect(pane).to_contain_text(re.compile("Done"))
