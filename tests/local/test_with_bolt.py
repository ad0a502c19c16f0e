"""A real Bolt app over a real websocket."""

from typing import Any

import aiohttp
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.local import LocalWorkspace, people
from tests.local.conftest import Connect

CARD = [
    {"type": "section", "block_id": "about", "text": {"type": "mrkdwn", "text": "*Run it?* a & b"}},
    {
        "type": "actions",
        "block_id": "decide",
        "elements": [
            {"type": "button", "action_id": "edit", "text": {"type": "plain_text", "text": "Edit…"}, "value": "t1"}
        ],
    },
]
MODAL = {
    "type": "modal",
    "callback_id": "edited",
    "title": {"type": "plain_text", "text": "Edit"},
    "submit": {"type": "plain_text", "text": "Approve"},
    "blocks": [
        {
            "type": "input",
            "block_id": "why",
            "label": {"type": "plain_text", "text": "Why"},
            "element": {"type": "plain_text_input", "action_id": "text", "max_length": 20},
        }
    ],
}


async def test_a_mention_a_card_a_click_and_a_modal_go_through_bolt(
    workspace: LocalWorkspace, app: AsyncApp, connect: Connect
) -> None:
    @app.event("app_mention")
    async def on_mention(event: Any, say: Any) -> None:
        await say(text="Run it?", blocks=CARD, thread_ts=event["ts"])

    @app.event("message")
    async def on_message() -> None:
        pass

    @app.action("edit")
    async def on_edit(ack: Any, body: Any, client: Any) -> None:
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=MODAL)

    @app.view("edited")
    async def on_submit(ack: Any, view: Any, client: Any, body: Any) -> None:
        typed = view["state"]["values"]["why"]["text"]["value"]
        await ack()
        await client.chat_postMessage(channel=people.GENERAL, text=f"because {typed}")

    async with connect(app):
        asked = await workspace.say(people.BEN, people.GENERAL, "@harness do it")
        await workspace.wait_for(lambda w: len(w.messages(people.GENERAL, asked["ts"])) == 2)
        [_, card] = workspace.messages(people.GENERAL, asked["ts"])
        assert card["thread_ts"] == asked["ts"]
        assert card["parent_user_id"] == people.BEN
        assert card["blocks"][0]["text"]["text"] == "*Run it?* a &amp; b"

        assert (await workspace.click(people.BEN, people.GENERAL, card["ts"], "edit")).ok
        await workspace.wait_for(lambda w: w.views(people.BEN))
        assert (await workspace.submit(people.BEN, {"why": "I want to"})).ok
        assert workspace.views(people.BEN) == []
        last = await workspace.wait_for(
            lambda w: [m for m in w.messages(people.GENERAL) if m["text"] == "because I want to"]
        )
        assert last[0]["bot_id"] == people.BOT_ID


async def test_a_command_is_answered_by_ack_and_by_response_url(
    workspace: LocalWorkspace, app: AsyncApp, connect: Connect
) -> None:
    texts: list[str] = []

    @app.command("/harness")
    async def on_command(ack: Any, respond: Any, command: Any) -> None:
        texts.append(command["text"])
        await ack("by ack")
        await respond(text="by address", response_type="in_channel")

    @app.event("message")
    async def on_message() -> None:
        pass

    async with connect(app):
        answer = await workspace.command(people.BEN, people.GENERAL, "/harness", "a && ping x.io @ben #ops")
        await workspace.wait_for(lambda w: w.messages(people.GENERAL))

    assert answer.ok
    assert texts == [f"a &amp;&amp; ping <http://x.io|x.io> <@{people.BEN}|ben> <#{people.OPS}|ops>"]
    assert [m["text"] for m in workspace.ephemerals(people.BEN)] == ["by ack"]
    assert [m["text"] for m in workspace.messages(people.GENERAL)] == ["by address"]


async def test_a_disconnect_frame_makes_the_app_connect_anew_and_nothing_is_lost(
    workspace: LocalWorkspace, app: AsyncApp, connect: Connect
) -> None:
    seen: list[str] = []

    @app.event("app_mention")
    async def on_mention(event: Any) -> None:
        seen.append(event["text"])
        workspace.world.log.changed()

    @app.event("message")
    async def on_message() -> None:
        pass

    async with connect(app):
        workspace.disconnect("refresh_requested")
        await workspace.wait_for(lambda w: [e for e in w.log if e["kind"] == "connected"][1:])
        await workspace.say(people.BEN, people.GENERAL, "@harness still there?")
        await workspace.wait_for(lambda w: seen)

    assert workspace.world.hub.pending == {}


async def test_one_tcp_connection_carries_many_calls_of_one_session(
    workspace: LocalWorkspace, client: AsyncWebClient
) -> None:
    async with aiohttp.ClientSession() as session:
        client.session = session
        for _ in range(3):
            await client.auth_test()

    assert len(workspace.calls) == 3
    assert len({call.connection for call in workspace.calls}) == 1
