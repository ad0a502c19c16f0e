"""What the app is sent has the keys that Slack's own payloads have."""

from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.local import LocalWorkspace, people
from bot.local.rules import BOT_SCOPES
from tests.local import sample_keys as keys
from tests.local.conftest import RawApp
from tests.local.test_block_rules import actions, button, modal, section
from tests.local.test_interactions import Acker

Json = dict[str, Any]


async def events(workspace: LocalWorkspace, raw: RawApp) -> list[Json]:
    """Everything that waits for the app, as payloads in order."""
    socket = await raw.connect()
    return [(await socket.receive_json())["payload"] for _ in list(workspace.world.hub.pending)]


async def test_events_have_the_keys_of_slacks(workspace: LocalWorkspace, raw: RawApp, client: AsyncWebClient) -> None:
    here = people.GENERAL
    root = await workspace.say(people.BEN, here, "@harness hi")
    reply = await workspace.say(people.BEN, here, "yes", root["ts"])
    await workspace.say(people.BEN, here, "file", root["ts"], files=[{"name": "a.txt"}])
    await workspace.say(people.BEN, here, "all", root["ts"], broadcast=True)
    await workspace.edit(people.BEN, here, reply["ts"], "no")
    await workspace.delete(people.BEN, here, reply["ts"])
    await workspace.notice(people.BEN, here, "bot_message", "x")
    await workspace.notice(people.BEN, here, "me_message", "x")
    await workspace.join(people.CLEO, people.PRIVATE)
    await client.chat_postMessage(channel=here, text="x")
    await client.views_publish(user_id=people.BEN, view={"type": "home", "blocks": [section()]})
    await workspace.open_home(people.BEN)

    sent = await events(workspace, raw)

    kinds = set()
    for payload in sent:
        event = payload["event"]
        kind = event.get("subtype") or event["type"]
        if kind == "message":
            kind = "bot" if "bot_id" in event else "reply" if "thread_ts" in event else "message"
        kinds.add(kind)
        assert set(keys.EVENT_MUST[kind].split()) <= set(event), kind
        assert set(payload) >= keys.ENVELOPE
        assert set(payload["authorizations"][0]) == keys.AUTHORIZATION
        if "bot_profile" in event:
            assert set(event["bot_profile"]) == keys.BOT_PROFILE
    assert kinds == set(keys.EVENT_MUST)


async def test_interactions_have_the_keys_of_slacks(
    workspace: LocalWorkspace, raw: RawApp, client: AsyncWebClient
) -> None:
    acker = Acker(raw)
    posted = await client.chat_postMessage(channel=people.GENERAL, text="?", blocks=[actions(button())])
    clicked, _ = await acker(workspace.click(people.BEN, people.GENERAL, posted["ts"], "go"))
    await client.views_open(trigger_id=clicked["trigger_id"], view=modal(notify_on_close=True))
    submitted, _ = await acker(workspace.submit(people.BEN, {"b": "x"}))
    await client.views_open(trigger_id=submitted["trigger_id"], view=modal(notify_on_close=True))
    closed, _ = await acker(workspace.close_view(people.BEN))
    command, _ = await acker(workspace.command(people.BEN, people.GENERAL, "/harness", "x"))

    for payload in (clicked, submitted, closed):
        must = set(keys.INTERACTION_MUST[payload["type"]].split())
        assert must <= set(payload) <= must | keys.INTERACTION_MAY
        assert set(payload["user"]) == keys.USER
    assert set(submitted["view"]) == set(closed["view"]) == keys.VIEW
    assert set(command) == keys.COMMAND


async def test_replies_have_the_keys_of_slacks(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    workspace.settings.scopes = BOT_SCOPES | {"im:write"}
    ts = (await client.chat_postMessage(channel=people.GENERAL, text="x"))["ts"]
    here = {"channel": people.GENERAL}
    calls: dict[str, Json] = {
        "auth.test": {},
        "bots.info": {"bot": people.BOT_ID},
        "chat.getPermalink": here | {"message_ts": ts},
        "chat.postEphemeral": here | {"user": people.BEN, "text": "x"},
        "chat.postMessage": here | {"text": "x"},
        "chat.update": here | {"ts": ts, "text": "y"},
        "reactions.add": here | {"timestamp": ts, "name": "eyes"},
        "reactions.remove": here | {"timestamp": ts, "name": "eyes"},
        "chat.delete": here | {"ts": ts},
        "conversations.info": here,
        "conversations.members": here,
        "conversations.open": {"users": people.BEN},
        "users.info": {"user": people.BEN},
        "views.open": {"trigger_id": workspace.world.trigger(people.BEN), "view": modal()},
    }
    replies: dict[str, Any] = {
        method: (await client.api_call(method, json=arguments)).data for method, arguments in calls.items()
    }

    assert {method: set(reply) for method, reply in replies.items()} == {
        method: set(must.split()) for method, must in keys.REPLY_MUST.items()
    }
    assert set(replies["users.info"]["user"]) >= keys.USERS_INFO
    assert set(replies["conversations.info"]["channel"]) >= keys.CONVERSATIONS_INFO
    assert set(replies["views.open"]["view"]) == keys.VIEW


async def test_a_mention_is_two_events_of_one_message_and_a_direct_message_is_one(
    workspace: LocalWorkspace, raw: RawApp
) -> None:
    await workspace.say(people.BEN, people.GENERAL, "@harness a && b")
    await workspace.say(people.BEN, people.direct_id(people.BEN), "@harness a && b")

    message, mention, direct = [payload["event"] for payload in await events(workspace, raw)]

    assert (message["type"], mention["type"]) == ("message", "app_mention")
    assert message["ts"] == mention["ts"]
    assert "channel_type" not in mention
    assert mention["text"] == f"<@{people.BOT_USER}> a &amp;&amp; b"
    assert (direct["type"], direct["channel_type"]) == ("message", "im")


async def test_an_edit_that_adds_a_mention_is_a_mention(workspace: LocalWorkspace, raw: RawApp) -> None:
    said = await workspace.say(people.BEN, people.GENERAL, "hi")
    await workspace.edit(people.BEN, people.GENERAL, said["ts"], "@harness hi")

    kinds = [payload["event"].get("subtype") or payload["event"]["type"] for payload in await events(workspace, raw)]

    assert kinds == ["message", "message_changed", "app_mention"]


async def test_the_bot_hears_nothing_from_where_it_is_not_nor_what_it_did_not_ask_for(
    workspace: LocalWorkspace,
) -> None:
    await workspace.say(people.BEN, people.OUTSIDE, "@harness hi")
    workspace.settings.events = frozenset({"app_mention"})
    await workspace.say(people.BEN, people.GENERAL, "hi")

    assert workspace.world.hub.pending == {}


async def test_strangers_guests_and_other_bots_can_be_told_from_members(workspace: LocalWorkspace, raw: RawApp) -> None:
    await workspace.say(people.SAM, people.SHARED, "@harness hi")
    await workspace.say(people.BEN, people.GENERAL, "@harness hi", as_bot=True)

    stranger, _, bot, *_ = await events(workspace, raw)

    assert stranger["is_ext_shared_channel"] is True
    assert stranger["event"]["team"] == stranger["event"]["user_team"] == people.OTHER_TEAM_ID
    assert (bot["event"]["bot_id"], bot["event"]["app_id"]) == (people.OTHER_BOT_ID, people.OTHER_APP_ID)


async def test_updates_and_deletions_by_the_bot_come_back_as_events(
    workspace: LocalWorkspace, raw: RawApp, client: AsyncWebClient
) -> None:
    ts = (await client.chat_postMessage(channel=people.GENERAL, text="one"))["ts"]
    await client.chat_update(channel=people.GENERAL, ts=ts, text="two")
    await client.chat_delete(channel=people.GENERAL, ts=ts)

    _, changed, deleted = [payload["event"] for payload in await events(workspace, raw)]

    assert (changed["previous_message"]["text"], changed["message"]["text"]) == ("one", "two")
    assert (deleted["deleted_ts"], deleted["previous_message"]["text"]) == (ts, "two")


@pytest.mark.parametrize("user", [people.DEE, people.CLEO])
async def test_who_is_not_in_a_channel_says_nothing_there_unless_forced(workspace: LocalWorkspace, user: str) -> None:
    from bot.local import PersonCannot

    with pytest.raises(PersonCannot):
        await workspace.say(user, people.PRIVATE, "hi")
    assert (await workspace.say(user, people.PRIVATE, "hi", force=True))["user"] == user
