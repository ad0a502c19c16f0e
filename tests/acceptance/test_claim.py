"""The slash command: claiming the bot, switching channels, help."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.app import Bot, Parts
from bot.approvers import Access
from bot.config import Settings, SlackSettings
from bot.facts import ClaimTried
from bot.local import LocalWorkspace, people
from bot.settings import CLAIM_SECONDS, CLAIMS, CLAIMS_EACH
from harness_core.testing import FakeClock, ScriptedModel
from tests.acceptance.desk import Desk


@asynccontextmanager
async def unclaimed(folder: Path, clock: FakeClock | None = None) -> AsyncIterator[tuple[LocalWorkspace, Bot]]:
    """The bot as it starts with Slack's tokens and nothing else: nobody administers it, no channel is on."""
    async with LocalWorkspace() as slack:
        how = SlackSettings(slack.bot_token, slack.app_token, slack.api_url)
        async with Bot(Settings(data=folder), how, Access(), Parts(model=ScriptedModel("done"), clock=clock)) as bot:
            yield slack, bot


async def say(slack: LocalWorkspace, user: str, text: str, channel: str = people.GENERAL) -> str:
    answer = await slack.command(user, channel, "/harness", text)
    assert answer.ok
    return str(answer.payload["text"]) if answer.payload else ""


async def test_whoever_has_the_code_claims_the_bot_once_and_switches_channels_on(tmp_path: Path) -> None:
    async with unclaimed(tmp_path) as (slack, bot):
        message = await slack.say(people.ADA, people.GENERAL, "@harness hello")
        await slack.wait_for(lambda s: s.ephemerals(people.ADA))
        assert "Nobody administers me yet" in slack.ephemerals(people.ADA)[0]["text"]
        assert "Nobody administers me yet" in await say(slack, people.ADA, "on")
        assert "not the code" in await say(slack, people.BEN, "claim 00000000")
        assert "guests" in await say(slack, people.GIL, f"claim {bot.book.claim_code}")
        assert "You administer me now" in await say(slack, people.BEN, f"claim {bot.book.claim_code}")
        assert "Only administrators" in await say(slack, people.ADA, f"claim {bot.book.claim_code}")
        assert "Only administrators" in await say(slack, people.ADA, "on")

        assert "switched on" in await say(slack, people.BEN, "on")

        assert f"<@{people.BEN}>" in await say(slack, people.CLEO, "status")
        assert [m for m in slack.messages(people.GENERAL, message["ts"]) if m.get("bot_id")] == []
        asked = await slack.say(people.CLEO, people.GENERAL, "@harness hello")
        await slack.wait_for(lambda s: [m for m in s.messages(people.GENERAL, asked["ts"]) if m["text"] == "done"])


async def test_what_was_claimed_and_switched_outlasts_a_restart(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        await say(desk.slack, people.ADA, "off", people.OPS)
        await desk.restart()

        assert "switched off" in await say(desk.slack, people.ADA, "status", people.OPS)
        assert "switched on" in await say(desk.slack, people.ADA, "status", people.GENERAL)


@pytest.mark.parametrize("text", ["", "help", "HELP", "help nonsense", "nonsense `x` <!here>"])
async def test_help_is_given_for_nothing_and_for_what_is_not_known(tmp_path: Path, text: str) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        told = await say(desk.slack, people.BEN, text)

        assert "/harness on" in told
        assert "<!" not in told


async def test_what_is_typed_after_a_command_is_read_as_it_was_typed(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        assert "`a&amp;&amp;b&lt;c&gt;&amp;amp;x.io`" in await say(desk.slack, people.BEN, "a&&b<c>&amp;x.io")


async def test_codes_can_be_tried_a_few_times_an_hour_by_one_and_by_all_together(tmp_path: Path) -> None:
    clock = FakeClock()
    async with unclaimed(tmp_path, clock) as (slack, bot):
        right = f"claim {bot.book.claim_code}"
        for _ in range(CLAIMS_EACH):
            assert "not the code" in await say(slack, people.BEN, "claim 00000000")
        assert "Too many codes" in await say(slack, people.BEN, right)
        assert "not the code" in await say(slack, people.CLEO, "claim 00000000")
        for n in range(CLAIMS - CLAIMS_EACH - 1):  # others, as the store has them
            await bot.book.change(ClaimTried(f"U0{n}"), f"t{n}")
        assert "Too many codes" in await say(slack, people.ADA, right)
        assert len(await bot.store.find("ClaimTried")) == CLAIMS  # what is refused adds nothing to the record

        clock.advance(CLAIM_SECONDS + 1)

        assert "You administer me now" in await say(slack, people.BEN, right)


async def test_guests_and_strangers_learn_nothing_of_who_decides(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), [], approvers=frozenset({people.CLEO})) as desk:
        for text in ("status", "approvers list", "sensitive list", "pending", "allowed list"):
            told = await say(desk.slack, people.GIL, text)
            assert "guests" in told
            assert people.ADA not in told
            assert people.CLEO not in told
        assert f"<@{people.ADA}>" in await say(desk.slack, people.BEN, "status")


async def test_a_member_switches_nothing(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        assert "Only administrators" in await say(desk.slack, people.BEN, "off")
        assert "Only administrators" in await say(desk.slack, people.CLEO, "on", people.OPS)


class Guessing:
    name = "estimate"

    def count(self, text: str) -> int:
        return len(text)

    async def prepare(self, texts: Iterable[str]) -> None:
        return None


async def test_the_status_says_where_tokens_are_only_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        before = await say(desk.slack, people.ADA, "status")
        monkeypatch.setattr(desk.bot.engine, "_counter", Guessing())
        after = await say(desk.slack, people.ADA, "status")

    assert "estimated" not in before
    assert "Tokens are estimated" in after
