"""What Slack said of somebody is remembered for a while, counted from when it was asked."""

from __future__ import annotations

import asyncio

from bot.people import Remembered


async def test_an_answer_is_as_old_as_its_question() -> None:
    now, said, slack = 0.0, "member", asyncio.Event()
    asked: list[str] = []

    async def ask(name: str) -> str:
        asked.append(name)
        told = said
        await slack.wait()
        return told

    people = Remembered(ask, 60.0, lambda: now)
    asking = asyncio.create_task(people.get("U1"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    now, said = 61.0, "deactivated"
    slack.set()

    assert await asking == "member"
    assert await people.get("U1") == "deactivated"
    assert asked == ["U1", "U1"]
