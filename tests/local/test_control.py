"""Scripts use the workspace over HTTP as tests use it in the process."""

import asyncio
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.local import LocalWorkspace, people
from tests.local.conftest import RawApp
from tests.local.test_block_rules import actions, button, modal

Json = dict[str, Any]


class Script:
    """Calls the control interface with the key."""

    def __init__(self, workspace: LocalWorkspace, session: aiohttp.ClientSession) -> None:
        self.workspace, self.session = workspace, session
        self.headers = {"Authorization": f"Bearer {workspace.secret}"}

    async def post(self, verb: str, **sent: Any) -> Json:
        url = self.workspace.control_url + verb
        async with self.session.post(url, json=sent, headers=self.headers) as reply:
            told: Json = await reply.json()
            return told | {"status": reply.status}

    async def get(self, noun: str) -> Json:
        async with self.session.get(self.workspace.control_url + noun, headers=self.headers) as reply:
            told: Json = await reply.json()
            return told


@pytest.fixture
def script(workspace: LocalWorkspace, raw: RawApp) -> Script:
    return Script(workspace, raw.session)


async def test_messages_are_sent_edited_and_deleted(workspace: LocalWorkspace, script: Script) -> None:
    here = {"user": people.BEN, "channel": people.GENERAL}
    said = await script.post("message", **here, text="a && b")
    reply = await script.post("message", **here, text="r", thread_ts=said["ts"])
    await script.post("message", **here, edit_ts=reply["ts"], text="changed")

    assert [message["text"] for message in workspace.messages(people.GENERAL)] == ["a &amp;&amp; b", "changed"]
    await script.post("message", **here, delete_ts=reply["ts"])
    await script.post("message", **here, subtype="channel_join")
    state = await script.get("state")
    shown = state["channels"][people.GENERAL]["messages"]
    assert [message["text"] for message in shown] == ["a &amp;&amp; b", f"<@{people.BEN}> has joined the channel"]


async def test_clicks_modals_and_commands_are_answered(
    workspace: LocalWorkspace, script: Script, raw: RawApp, client: AsyncWebClient
) -> None:
    ts = (await client.chat_postMessage(channel=people.GENERAL, text="?", blocks=[actions(button())]))["ts"]
    await client.views_open(trigger_id=workspace.world.trigger(people.BEN), view=modal())
    socket = await raw.connect()

    async def acknowledge() -> None:
        async for message in socket:
            await socket.send_json({"envelope_id": message.json()["envelope_id"]})

    acknowledging = asyncio.create_task(acknowledge())
    here = {"user": people.BEN, "channel": people.GENERAL}
    click = await script.post("interact", **here, message_ts=ts, action_id="go")
    command = await script.post("command", **here, command="/harness", text="status")
    in_thread = await script.post("command", **here, command="/harness", text="status", thread_ts=ts)
    missing = await script.post("submit", user=people.BEN, values={})
    done = await script.post("submit", user=people.BEN, values={"b": "x"})
    acknowledging.cancel()

    assert [told["answered"] for told in (click, command, in_thread, missing, done)] == [True, True, False, False, True]
    assert in_thread["error"] == "not_supported_in_threads"
    assert missing["errors"] == {"b": "required"}
    log = (await script.get("log"))["log"]
    assert {"call", "sent", "ack", "saw", "view", "connected"} <= {entry["kind"] for entry in log}
    assert (await script.get("log?since=3"))["log"] == log[3:]


async def test_what_a_person_cannot_do_is_a_conflict_and_nonsense_a_bad_request(script: Script) -> None:
    click = {"user": people.BEN, "channel": people.GENERAL, "message_ts": "1.000000", "action_id": "go"}

    assert (await script.post("interact", **click))["status"] == 409
    assert (await script.post("message", text="who?"))["status"] == 400
    assert (await script.post("message", user="U0NOBODY1", channel=people.GENERAL, text="x"))["status"] == 409


async def test_faults_people_and_connections_are_controlled(
    workspace: LocalWorkspace, script: Script, raw: RawApp, client: AsyncWebClient
) -> None:
    socket = await raw.connect()
    await script.post("fail", method="auth.test", error="internal_error")
    await script.post("person", user=people.BEN, facts={"deleted": True})
    await script.post("disconnect", reason="warning")

    assert (await socket.receive_json())["reason"] == "warning"
    assert (await client.users_info(user=people.BEN))["user"]["deleted"] is True
    with pytest.raises(SlackApiError, match="internal_error"):
        await client.auth_test()


async def test_reset_forgets_what_was_said_and_keeps_the_tokens(workspace: LocalWorkspace, script: Script) -> None:
    tokens = workspace.bot_token, workspace.app_token, workspace.secret
    await script.post("message", user=people.BEN, channel=people.GENERAL, text="x")
    await script.post("person", user=people.BEN, facts={"deleted": True})

    await script.post("reset")

    assert workspace.messages(people.GENERAL) == []
    assert workspace.world.people[people.BEN]["deleted"] is False
    assert (workspace.bot_token, workspace.app_token, workspace.secret) == tokens
    assert workspace.world.hub.pending == {}


async def test_wait_for_says_so_when_nothing_comes(workspace: LocalWorkspace) -> None:
    with pytest.raises(TimeoutError):
        await workspace.wait_for(lambda w: w.messages(people.GENERAL), timeout=0.01)


async def test_the_log_is_read_on_from_where_one_stopped_also_when_everything_was_forgotten(
    workspace: LocalWorkspace, script: Script
) -> None:
    await script.post("command", user=people.BEN, channel=people.GENERAL, command="/unknown")
    first = await script.get("log")
    await script.post("reset")
    await script.post("command", user=people.ADA, channel=people.GENERAL, command="/unknown")

    new = await script.get(f"log?since={first['next']}")

    assert [entry["user"] for entry in new["log"]] == [people.ADA]
    assert (await script.get(f"log?since={new['next']}"))["log"] == []


async def test_the_bot_is_removed_from_a_channel_and_comes_back(
    workspace: LocalWorkspace, script: Script, client: AsyncWebClient
) -> None:
    await script.post("leave", user=people.BOT_USER, channel=people.GENERAL)
    with pytest.raises(SlackApiError, match="not_in_channel"):
        await client.chat_postMessage(channel=people.GENERAL, text="?")

    await script.post("join", user=people.BOT_USER, channel=people.GENERAL)

    assert (await client.chat_postMessage(channel=people.GENERAL, text="?"))["ok"]
