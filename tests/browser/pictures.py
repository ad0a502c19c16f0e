"""Takes the README's pictures: `python -m tests.browser.pictures`.  The real bot, a real browser."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.async_api import async_playwright, expect

from bot.config import Settings
from bot.local_bot import LocalBot
from tests.browser.conftest import ARGUMENTS, CHROMIUM

FOLDER = Path(__file__).parent / "pictures"
ASKED = "@harness run `mkdir -p notes && date > notes/today` and write `# Plan` to plan.md"


async def main() -> None:
    """Play one conversation and take a picture at each of its stations."""
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        async with LocalBot(Settings(data=Path(folder), local_port=0)) as local, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            page = await browser.new_page(viewport={"width": 1280, "height": 860}, device_scale_factor=1.5)
            await page.goto(local.workspace.page_url)
            await play(page)
            await browser.close()


async def play(page: Any) -> None:
    """The page, a card, the form that edits it, and the card once it is decided."""
    await page.get_by_test_id("thread-composer").fill(ASKED)
    await page.get_by_test_id("thread-composer").press("Enter")
    cards = page.locator("#thread [data-testid=message]", has=page.locator("[data-testid=action]"))
    await expect(cards).to_have_count(2)
    await page.mouse.move(5, 5)
    await page.locator("#thread [data-testid=messages-thread]").evaluate("pane => pane.scrollTo(0, 0)")
    await page.evaluate("Promise.allSettled(document.getAnimations().map((each) => each.finished))")  # cards rise
    await shoot(page, "page")
    await shoot(cards.first, "card")

    await cards.first.locator("[data-action-id=edit]").click()
    field = page.get_by_test_id("field-arg:0").locator("input, textarea")
    await field.fill("mkdir -p notes && date --utc > notes/today")
    await shoot(page.get_by_test_id("modal"), "edit")
    await page.get_by_test_id("modal-submit").click()
    await cards.first.locator("[data-action-id=approve]").click()

    decided = page.locator("#thread [data-testid=message]", has_text="ran, exit 0").first
    await expect(decided).to_be_visible()
    await page.mouse.move(5, 5)
    await shoot(decided, "decided")


async def shoot(what: Any, name: str) -> None:
    """One picture."""
    await what.screenshot(path=FOLDER / f"{name}.png", animations="disabled")


if __name__ == "__main__":
    asyncio.run(main())
