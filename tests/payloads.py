"""Whether everything that the bot sent is what Slack takes: asked of the local workspace in every test that has one.

The workspace judges each message, view and answer by Slack's documented limits and by the models of slack_sdk. What it
refuses for what it is makes the test fail, though the bot coped with it; faults that a test orders do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bot.local import api, rules
from bot.local.world import World

# Slack's words for people, places, rights and moments, which a payload that is well made meets as well. Every other
# word of refusal is about the payload itself, and one that nobody thought of counts.
OF_THE_WORLD: Final = frozenset(
    {
        "account_inactive",
        "already_reacted",
        "bot_not_found",
        "cannot_reply_to_message",
        "cant_update_message",
        "channel_not_found",
        "edit_window_closed",
        "exchanged_trigger_id",
        "expired_trigger_id",
        "hash_conflict",
        "invalid_auth",
        "invalid_trigger_id",
        "is_archived",
        "message_not_found",
        "missing_scope",
        "no_reaction",
        "not_allowed_token_type",
        "not_authed",
        "not_found",
        "not_in_channel",
        "thread_not_found",
        "token_revoked",
        "too_many_reactions",
        "user_not_found",
        "user_not_in_channel",
    }
)


class Payloads:
    """Stands before the workspace's Web API and notes what it refuses. wrong: one line each."""

    def __init__(self) -> None:
        self._answer = api.answer
        self._worlds: dict[int, World] = {}
        self._wrong: list[str] = []

    def answer(self, world: World, method: str, arguments: dict[str, Any], token: str) -> Mapping[str, Any]:
        """In place of `api.answer`."""
        self._worlds[id(world)] = world
        reply = self._answer(world, method, arguments, token)
        if not reply["ok"] and reply["error"] not in OF_THE_WORLD:
            self._wrong.append(f"{method}: {reply['error']} {reply.get('response_metadata', '')} {arguments}"[:2_000])
        if method == "chat.postMessage" and len(str(arguments.get("text", ""))) > rules.TEXT_UNSPLIT:
            self._wrong.append(f"{method}: Slack splits a text of {len(arguments['text'])} characters")
        return reply

    def forget(self) -> None:
        """For the tests of this very watch."""
        self._wrong.clear()
        self._worlds.clear()

    @property
    def wrong(self) -> list[str]:
        """All that was refused, answers to submitted forms included."""
        forms = [
            f"the answer to a form: {entry['error']}"
            for world in self._worlds.values()
            for entry in world.log.entries
            if entry["kind"] == "saw" and entry["what"] == "modal_error"
        ]
        return [*self._wrong, *forms]
