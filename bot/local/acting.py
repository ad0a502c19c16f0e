"""What a test or a script does in a person's name, as methods."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.local import clicking, people, speaking
from bot.local.shapes import JSON, Answer
from bot.local.world import World


class Acting:
    """The verbs of people.  Each raises PersonCannot where Slack's client would not let them."""

    world: World

    async def say(
        self, user: str, channel: str, text: str, thread_ts: str | None = None, *,
        files: Sequence[Mapping[str, Any]] = (), raw: bool = False, broadcast: bool = False, force: bool = False,
        as_bot: bool = False,
    ) -> JSON:  # fmt: skip
        """A person types a message.  Out: the message.

        `raw`: the text is in Slack's form already and has no blocks; `as_bot`: the other bot says it."""
        if as_bot:
            return speaking.bot_says(self.world, people.OTHER_BOT, channel, text, thread_ts)
        return speaking.say(
            self.world, user, channel, text, thread_ts, files=files, raw=raw, broadcast=broadcast, force=force
        )

    async def edit(self, user: str, channel: str, ts: str, text: str, *, force: bool = False) -> JSON:
        return speaking.edit(self.world, user, channel, ts, text, force=force)

    async def delete(self, user: str, channel: str, ts: str, *, force: bool = False) -> None:
        speaking.erase(self.world, user, channel, ts, force=force)

    async def notice(self, user: str, channel: str, subtype: str, text: str = "", **facts: object) -> JSON:
        """A message with a subtype, such as channel_join, channel_topic, me_message or bot_message."""
        return speaking.notice(self.world, channel, subtype, user, text, **facts)

    async def join(self, user: str, channel: str) -> None:
        speaking.join(self.world, user, channel)

    async def leave(self, user: str, channel: str) -> None:
        """A person leaves a channel; the app's bot is removed from it."""
        speaking.leave(self.world, user, channel)

    async def command(
        self,
        user: str,
        channel: str,
        command: str,
        text: str = "",
        thread_ts: str | None = None,
        *,
        force: bool = False,
    ) -> Answer:
        """A slash command.  Returns once the bot acknowledged, or when a person would see an error."""
        return await speaking.command(self.world, user, channel, command, text, thread_ts, force=force)

    async def click(
        self, user: str, channel: str, message_ts: str, action_id: str, *, block_id: str | None = None,
        value: Any = None, force: bool = False, team_id: str | None = None, api_app_id: str | None = None,
    ) -> Answer:  # fmt: skip
        """Use a control of a message.  `force`: from a client that still shows what is gone."""
        overrides: JSON = {"api_app_id": api_app_id} if api_app_id else {}
        if team_id:
            overrides["team"] = {"id": team_id, "domain": "elsewhere"}
        return await clicking.click(
            self.world, user, channel, message_ts, action_id,
            block_id=block_id, value=value, force=force, overrides=overrides,
        )  # fmt: skip

    async def click_view(
        self, user: str, action_id: str, *, view_id: str | None = None, block_id: str | None = None, value: Any = None
    ) -> Answer:
        """Use a control of the open modal, or of the view named."""
        return await clicking.click_view(self.world, user, action_id, view_id=view_id, block_id=block_id, value=value)

    async def submit(self, user: str, values: JSON, *, view_id: str | None = None) -> Answer:
        """Fill in the modal on top and submit it.  In: values by block_id or action_id."""
        return await clicking.submit(self.world, user, values, view_id=view_id)

    async def close_view(self, user: str, view_id: str | None = None, *, clear: bool = False) -> Answer:
        return await clicking.close(self.world, user, view_id, clear=clear)

    async def open_home(self, user: str, tab: str = "home") -> None:
        clicking.open_home(self.world, user, tab)
