"""The Web API refuses what Slack refuses, with Slack's words."""

from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.local import LocalWorkspace, people
from bot.local.rules import BOT_SCOPES
from tests.local.conftest import Clock

SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "hi"}}
RICH = {
    "type": "rich_text",
    "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "ls && ls"}]}],
}


async def refusal(client: AsyncWebClient, method: str, **arguments: Any) -> str:
    """The error of a call that must fail."""
    with pytest.raises(SlackApiError) as caught:
        await client.api_call(method, json=arguments)
    return str(caught.value.response["error"])


async def test_auth_test_names_the_bot_and_its_scopes(client: AsyncWebClient) -> None:
    reply = await client.auth_test()

    assert (reply["user_id"], reply["bot_id"], reply["team_id"]) == (people.BOT_USER, people.BOT_ID, people.TEAM_ID)
    assert set(reply.headers["x-oauth-scopes"].split(",")) == BOT_SCOPES


async def test_tokens_are_told_apart(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    assert await refusal(AsyncWebClient(base_url=workspace.api_url), "auth.test") == "not_authed"
    assert await refusal(AsyncWebClient("xoxb-no", base_url=workspace.api_url), "auth.test") == "invalid_auth"
    assert await refusal(client, "apps.connections.open") == "not_allowed_token_type"
    assert await refusal(client, "chat.inventedHere") == "unknown_method"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "channel_not_found"),
        ({"channel": "C0NOWHERE"}, "channel_not_found"),
        ({"channel": people.OUTSIDE}, "not_in_channel"),
        ({"text": ""}, "no_text"),
        ({"text": "", "blocks": []}, "no_text"),
        ({"thread_ts": ""}, "invalid_thread_ts"),
        ({"thread_ts": "1.0"}, "invalid_thread_ts"),
        ({"thread_ts": "1700000000.000001"}, "invalid_thread_ts"),
        ({"blocks": "no json"}, "invalid_blocks_format"),
        ({"blocks": [SECTION] * 51}, "invalid_blocks"),
        ({"blocks": [SECTION | {"text": {"type": "mrkdwn", "text": "x" * 2990}}] * 4}, "msg_blocks_too_long"),
        ({"markdown_text": "x"}, "markdown_text_conflict"),
    ],
)
async def test_a_post_is_refused(client: AsyncWebClient, arguments: dict[str, Any], error: str) -> None:
    whole = ({"channel": people.GENERAL, "text": "hi"} | arguments) if arguments else {"text": "hi"}

    assert await refusal(client, "chat.postMessage", **whole) == error


async def test_a_reply_cannot_be_a_threads_root(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    root = await workspace.say(people.BEN, people.GENERAL, "x")
    reply = await workspace.say(people.BEN, people.GENERAL, "y", root["ts"])

    error = await refusal(client, "chat.postMessage", channel=people.GENERAL, text="z", thread_ts=reply["ts"])
    assert error == "cannot_reply_to_message"


async def test_slacks_own_notices_take_no_replies(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    notice = await workspace.notice(people.BEN, people.GENERAL, "channel_join")

    error = await refusal(client, "chat.postMessage", channel=people.GENERAL, text="z", thread_ts=notice["ts"])
    assert error == "cannot_reply_to_message"


async def test_an_update_of_attachments_alone_keeps_the_blocks(client: AsyncWebClient) -> None:
    mine = await client.chat_postMessage(channel=people.GENERAL, text="x", blocks=[SECTION])
    sent = {"channel": people.GENERAL, "ts": mine["ts"], "attachments": [{"text": "a"}]}

    updated = await client.api_call("chat.update", json=sent)

    assert [block["type"] for block in updated["message"]["blocks"]] == ["section"]


async def test_a_channel_may_be_named_and_a_person_stands_for_their_direct_messages(client: AsyncWebClient) -> None:
    assert (await client.chat_postMessage(channel="#general", text="x"))["channel"] == people.GENERAL
    assert (await client.chat_postMessage(channel=people.BEN, text="x"))["channel"] == people.direct_id(people.BEN)


async def test_form_fields_are_read_like_json(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    sent = {"channel": people.GENERAL, "text": "t", "blocks": '[{"type":"divider"}]'}
    await client.api_call("chat.postMessage", data=sent)

    assert workspace.messages(people.GENERAL)[0]["blocks"][0]["type"] == "divider"


async def test_a_very_long_text_becomes_several_messages(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    await client.chat_postMessage(channel=people.GENERAL, text="x" * 4040)
    await client.chat_postMessage(channel=people.GENERAL, text="y" * 4041)

    assert [len(message["text"]) for message in workspace.messages(people.GENERAL)] == [4040, 4000, 41]


async def test_updates_are_refused(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    theirs = await workspace.say(people.BEN, people.GENERAL, "x")
    mine = await client.chat_postMessage(channel=people.GENERAL, text="x", blocks=[SECTION, RICH])
    here: dict[str, Any] = {"channel": people.GENERAL, "ts": mine["ts"]}

    assert await refusal(client, "chat.update", **here | {"ts": "1.000000"}, text="y") == "message_not_found"
    assert await refusal(client, "chat.update", **here | {"ts": theirs["ts"]}, text="y") == "cant_update_message"
    assert await refusal(client, "chat.update", **here) == "no_text"
    assert await refusal(client, "chat.update", **here, text="x" * 4001) == "msg_too_long"
    assert await refusal(client, "chat.update", **here, text="y", blocks=[SECTION]) == "block_mismatch"
    assert await refusal(client, "chat.delete", channel=people.GENERAL, ts=theirs["ts"]) == "cant_delete_message"


async def test_an_update_with_text_alone_takes_the_blocks_away(client: AsyncWebClient) -> None:
    mine = await client.chat_postMessage(channel=people.GENERAL, text="x", blocks=[SECTION])

    updated = await client.chat_update(channel=people.GENERAL, ts=mine["ts"], text="y")

    assert [block["type"] for block in updated["message"]["blocks"]] == ["rich_text"]
    assert "edited" in updated["message"]


async def test_ephemeral_messages_reach_one_person_and_cannot_be_updated(
    workspace: LocalWorkspace, client: AsyncWebClient
) -> None:
    sent = await client.chat_postEphemeral(channel=people.GENERAL, user=people.BEN, text="psst")

    assert [message["text"] for message in workspace.ephemerals(people.BEN)] == ["psst"]
    assert workspace.ephemerals(people.ADA) == workspace.messages(people.GENERAL) == []
    ts = sent["message_ts"]
    assert await refusal(client, "chat.update", channel=people.GENERAL, ts=ts, text="y") == "message_not_found"
    whole = {"channel": people.GENERAL, "user": people.SAM, "text": "x"}
    assert await refusal(client, "chat.postEphemeral", **whole) == "user_not_in_channel"


async def test_scopes_are_asked_for_by_kind_of_channel(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    with pytest.raises(SlackApiError) as caught:
        await client.conversations_info(channel=people.direct_id(people.BEN))

    assert caught.value.response["error"] == "missing_scope"
    assert caught.value.response["needed"] == "im:read"
    assert "chat:write" in caught.value.response["provided"]
    assert await refusal(client, "team.info") == "missing_scope"
    workspace.settings.scopes = BOT_SCOPES | {"team:read", "im:write"}
    assert (await client.team_info())["team"]["id"] == people.TEAM_ID
    opened = await client.conversations_open(users=[people.ADA])
    assert opened["channel"]["id"] == people.direct_id(people.ADA)


async def test_channels_and_people_tell_what_is_special_about_them(client: AsyncWebClient) -> None:
    async def user(key: str) -> dict[str, Any]:
        found: dict[str, Any] = (await client.users_info(user=key))["user"]
        return found

    assert (await client.conversations_info(channel=people.SHARED))["channel"]["is_ext_shared"] is True
    assert (await client.conversations_info(channel=people.OUTSIDE))["channel"]["is_member"] is False
    assert people.CLEO not in (await client.conversations_members(channel=people.PRIVATE))["members"]
    assert (await user(people.GIL))["is_restricted"] is True
    assert (await user(people.DEE))["deleted"] is True
    assert (await user(people.SAM))["is_stranger"] is True
    assert (await user(people.SAM))["team_id"] == people.OTHER_TEAM_ID
    assert (await user(people.OTHER_BOT))["is_bot"] is True
    assert (await client.bots_info(bot=people.BOT_ID))["bot"]["user_id"] == people.BOT_USER
    assert await refusal(client, "users.info", user="U0NOBODY1") == "user_not_found"
    assert await refusal(client, "bots.info", bot="B0NOBODY1") == "bot_not_found"


async def test_a_thread_is_read_in_pages_and_its_root_knows_its_replies(
    workspace: LocalWorkspace, client: AsyncWebClient
) -> None:
    root = await workspace.say(people.BEN, people.GENERAL, "root")
    for text in ("one", "two"):
        await client.chat_postMessage(channel=people.GENERAL, text=text, thread_ts=root["ts"])

    page = await client.conversations_replies(channel=people.GENERAL, ts=root["ts"], limit=2)
    cursor = page["response_metadata"]["next_cursor"]
    rest = await client.conversations_replies(channel=people.GENERAL, ts=root["ts"], limit=2, cursor=cursor)
    history = await client.conversations_history(channel=people.GENERAL)

    assert [message["text"] for message in [*page["messages"], *rest["messages"]]] == ["root", "one", "two"]
    assert (page["messages"][0]["reply_count"], page["messages"][0]["reply_users"]) == (2, [people.BOT_USER])
    assert [message["text"] for message in history["messages"]] == ["root"]
    missing = {"channel": people.GENERAL, "ts": "1.000000"}
    assert await refusal(client, "conversations.replies", **missing) == "thread_not_found"


async def test_a_root_with_replies_leaves_a_tombstone(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    root = await workspace.say(people.BEN, people.GENERAL, "root")
    await client.chat_postMessage(channel=people.GENERAL, text="one", thread_ts=root["ts"])

    await workspace.delete(people.BEN, people.GENERAL, root["ts"])

    stone = (await client.conversations_replies(channel=people.GENERAL, ts=root["ts"]))["messages"][0]
    assert stone["subtype"] == "tombstone"


async def test_reactions_are_there_once(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    said = await workspace.say(people.BEN, people.GENERAL, "x")
    here = {"channel": people.GENERAL, "timestamp": said["ts"], "name": "eyes"}
    await client.api_call("reactions.add", json=here)

    assert workspace.messages(people.GENERAL)[0]["reactions"] == [
        {"name": "eyes", "users": [people.BOT_USER], "count": 1}
    ]
    assert await refusal(client, "reactions.add", **here) == "already_reacted"
    await client.api_call("reactions.remove", json=here)
    assert await refusal(client, "reactions.remove", **here) == "no_reaction"
    assert await refusal(client, "reactions.add", **here | {"timestamp": "1.000000"}) == "message_not_found"
    assert await refusal(client, "reactions.add", **here | {"name": ""}) == "invalid_name"


async def test_permalinks_lead_into_threads(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    root = await workspace.say(people.BEN, people.GENERAL, "root")
    reply = await workspace.say(people.BEN, people.GENERAL, "reply", root["ts"])

    link = (await client.chat_getPermalink(channel=people.GENERAL, message_ts=reply["ts"]))["permalink"]

    path = f"/archives/{people.GENERAL}/p{reply['ts'].replace('.', '')}?thread_ts={root['ts']}&cid={people.GENERAL}"
    assert link.endswith(path)


async def test_agent_sessions_are_refused_unless_switched_on(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    said = await workspace.say(people.BEN, people.GENERAL, "x")
    here = {"channel_id": people.GENERAL, "thread_ts": said["ts"], "status": "suspended"}

    assert await refusal(client, "agents.sessions.setStatus", **here) == "not_authorized"
    workspace.settings.agents = "ok"
    await client.api_call("agents.sessions.setStatus", json=here)
    await client.assistant_threads_setStatus(channel_id=people.GENERAL, thread_ts=said["ts"], status="is thinking…")
    assert workspace.state()["sessions"] == {
        f"{people.GENERAL}:{said['ts']}": {
            "session_status": "suspended", "status": "is thinking…", "loading_messages": [],
        }
    }  # fmt: skip


async def test_response_addresses_work_five_times_within_half_an_hour(workspace: LocalWorkspace, clock: Clock) -> None:
    from slack_sdk.webhook.async_client import AsyncWebhookClient

    hook = AsyncWebhookClient(workspace.world.response_url(people.BEN, people.GENERAL, None))
    replies = [await hook.send(text=f"{number}") for number in range(6)]
    late = AsyncWebhookClient(workspace.world.response_url(people.BEN, people.GENERAL, None))
    clock.now += 1801

    assert [reply.body for reply in replies] == ["ok"] * 5 + ["used_url"]
    assert (await late.send(text="x")).body == "expired_url"
    assert len(workspace.ephemerals(people.BEN)) == 5


async def test_a_response_address_replaces_and_deletes_the_original(
    workspace: LocalWorkspace, client: AsyncWebClient
) -> None:
    from slack_sdk.webhook.async_client import AsyncWebhookClient

    secret = await client.chat_postEphemeral(channel=people.GENERAL, user=people.BEN, text="before")
    hook = AsyncWebhookClient(workspace.world.response_url(people.BEN, people.GENERAL, secret["message_ts"]))

    await hook.send(text="after", replace_original=True)
    assert [message["text"] for message in workspace.ephemerals(people.BEN)] == ["after"]
    await hook.send(delete_original=True)
    assert workspace.ephemerals(people.BEN) == []
