"""A small Bolt app: it answers a mention with a card, and the card with what the tests need."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.local import LocalWorkspace

JSON = dict[str, Any]


def plain(text: str) -> JSON:
    return {"type": "plain_text", "text": text}


def button(action_id: str, text: str, **facts: Any) -> JSON:
    return {"type": "button", "action_id": action_id, "text": plain(text), **facts}


def option(text: str, value: str) -> JSON:
    return {"text": plain(text), "value": value}


SURE = {
    "title": plain("Reject it?"),
    "text": {"type": "mrkdwn", "text": "The run *ends*."},
    "confirm": plain("Reject"),
    "deny": plain("Back"),
}
CARD: list[JSON] = [
    {"type": "section", "block_id": "about", "text": {"type": "mrkdwn", "text": "*Run a command?* `echo hi`"}},
    {
        "type": "actions",
        "block_id": "decide",
        "elements": [
            button("approve", "Approve", style="primary"),
            button("edit", "Edit…"),
            button("reject", "Reject", style="danger", confirm=SURE),
            {
                "type": "static_select",
                "action_id": "scope",
                "placeholder": plain("Allow…"),
                "options": [option("This thread", "thread"), option("This channel", "channel")],
            },
            {"type": "overflow", "action_id": "more", "options": [option("Skip", "skip"), option("Done", "done")]},
        ],
    },
]


def input_block(block_id: str, label: str, **element: Any) -> JSON:
    return {"type": "input", "block_id": block_id, "label": plain(label), "element": {"action_id": "it", **element}}


def modal(title: str = "Edit") -> JSON:
    return {
        "type": "modal",
        "callback_id": "edited",
        "title": plain(title),
        "submit": plain("Approve"),
        "blocks": [
            input_block("command", "Command", type="plain_text_input", multiline=True, initial_value="echo hi"),
            input_block("why", "Why", type="plain_text_input", max_length=10) | {"optional": True},
            input_block("times", "Times", type="number_input", is_decimal_allowed=False, max_value="9")
            | {"optional": True},
            input_block("until", "Until", type="datepicker") | {"optional": True},
            input_block(
                "how", "How", type="radio_buttons", options=[option("Once", "once"), option("Always", "always")]
            )
            | {"optional": True},
            {"type": "actions", "block_id": "further", "elements": [button("deeper", "Deeper")]},
        ],
    }


@dataclass
class Cards:
    """What the app was sent, in order."""

    clicks: list[JSON] = field(default_factory=list)
    submitted: list[JSON] = field(default_factory=list)


@asynccontextmanager
async def connected(workspace: LocalWorkspace) -> AsyncIterator[Cards]:
    """The app, connected to a workspace.  Its last connection is closed without waiting for what it never answers."""
    cards = Cards()
    app = AsyncApp(client=AsyncWebClient(token=workspace.bot_token, base_url=workspace.api_url))
    _listen(app, cards)
    client = AsyncWebClient(token=workspace.app_token, base_url=workspace.api_url)
    handler = AsyncSocketModeHandler(app, workspace.app_token, web_client=client)
    await handler.connect_async()  # type: ignore[no-untyped-call]
    await workspace.wait_for(lambda w: w.connections)
    try:
        yield cards
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]


def _listen(app: AsyncApp, cards: Cards) -> None:
    @app.event("app_mention")
    async def on_mention(event: Any, say: Any) -> None:
        await say(text="Run a command?", blocks=CARD, thread_ts=event.get("thread_ts", event["ts"]))

    @app.event("message")
    async def on_message() -> None:
        pass

    @app.action("approve")
    async def on_approve(ack: Any, body: Any, client: Any) -> None:
        cards.clicks.append(body)
        await ack()
        done = {"type": "context", "elements": [{"type": "mrkdwn", "text": f"Approved by <@{body['user']['id']}>"}]}
        where = {"channel": body["channel"]["id"], "ts": body["message"]["ts"]}
        await client.chat_update(**where, text="Approved", blocks=[CARD[0], done])

    @app.action("edit")
    async def on_edit(ack: Any, body: Any, client: Any) -> None:
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=modal())

    @app.action("deeper")
    async def on_deeper(ack: Any, body: Any, client: Any) -> None:
        await ack()
        await client.views_push(trigger_id=body["trigger_id"], view=modal("Deeper"))

    @app.action("reject")
    async def on_reject(ack: Any, body: Any, client: Any) -> None:
        cards.clicks.append(body)
        await ack()
        where = {"channel": body["channel"]["id"], "thread_ts": body["message"]["thread_ts"]}
        await client.chat_postEphemeral(**where, user=body["user"]["id"], text="You may not decide this one.")

    async def note(ack: Any, body: Any) -> None:
        cards.clicks.append(body)
        await ack()

    app.action("scope")(note)
    app.action("more")(note)

    @app.view("edited")
    async def on_submit(ack: Any, view: Any) -> None:
        values = view["state"]["values"]
        cards.submitted.append(values)
        if "rm" in values["command"]["it"]["value"]:
            await ack(response_action="errors", errors={"command": "rm is denied here."})
        elif "update" in values["command"]["it"]["value"]:
            await ack(response_action="update", view=modal("Updated"))
        else:
            await ack()

    @app.command("/harness")
    async def on_command(ack: Any, command: Any) -> None:
        await ack(f"You asked for {command['text']}.")
