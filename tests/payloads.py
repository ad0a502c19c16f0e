"""Whether everything that the bot sent is what Slack takes: asked of the local workspace in every test that has one.

The workspace judges each message, view and answer by Slack's documented limits and by the models of slack_sdk. What it
refuses for what it is makes the test fail, though the bot coped with it; faults that a test orders do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bot.local import api, rules
from bot.local.world import World

# Slack's words for a payload that is malformed or too large; the others tell of people, places and moments.
MALFORMED: Final = frozenset(
    {
        "block_mismatch",
        "invalid_arguments",
        "invalid_blocks",
        "invalid_blocks_format",
        "invalid_cursor",
        "invalid_errors",
        "invalid_json",
        "invalid_limit",
        "invalid_name",
        "invalid_response_action",
        "invalid_thread_ts",
        "json_not_object",
        "markdown_text_conflict",
        "msg_blocks_too_long",
        "msg_too_long",
        "no_item_specified",
        "no_text",
        "push_limit_reached",
        "unknown_method",
        "users_list_not_supplied",
        "view_too_large",
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
        if reply.get("error") in MALFORMED:
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
