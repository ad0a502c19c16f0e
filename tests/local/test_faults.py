"""Faults that tests order: errors, rate limits, lost replies."""

import asyncio

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.local import LocalWorkspace, people


@pytest.fixture
def once(workspace: LocalWorkspace) -> AsyncWebClient:
    """A client that does not try again by itself when a connection is lost."""
    return AsyncWebClient(workspace.bot_token, base_url=workspace.api_url, retry_handlers=[])


async def test_a_call_fails_as_often_as_ordered(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    workspace.fail("chat.postMessage", error="internal_error", times=2)

    for _ in range(2):
        with pytest.raises(SlackApiError, match="internal_error"):
            await client.chat_postMessage(channel=people.GENERAL, text="x")
    await client.chat_postMessage(channel=people.GENERAL, text="x")

    assert [call.ok for call in workspace.calls] == [False, False, True]
    assert len(workspace.messages(people.GENERAL)) == 1


async def test_a_fault_for_one_person_lets_calls_about_others_pass(
    workspace: LocalWorkspace, client: AsyncWebClient
) -> None:
    workspace.fail("users.info", error="user_not_found", only={"user": people.BEN})

    await client.users_info(user=people.ADA)
    with pytest.raises(SlackApiError, match="user_not_found"):
        await client.users_info(user=people.BEN)
    await client.users_info(user=people.BEN)


async def test_a_rate_limit_says_when_to_come_back(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    workspace.fail("chat.postMessage", retry_after=7)

    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=people.GENERAL, text="x")

    assert (caught.value.response.status_code, caught.value.response["error"]) == (429, "ratelimited")
    assert caught.value.response.headers["Retry-After"] == "7"


async def test_a_lost_reply_leaves_the_message_posted(workspace: LocalWorkspace, once: AsyncWebClient) -> None:
    workspace.fail("chat.postMessage", after_effect=True)

    with pytest.raises(aiohttp.ClientConnectionError):
        await once.chat_postMessage(channel=people.GENERAL, text="x")

    assert len(workspace.messages(people.GENERAL)) == 1
    assert workspace.calls[-1].error == "connection_cut"


async def test_a_lost_request_posts_nothing(workspace: LocalWorkspace, once: AsyncWebClient) -> None:
    workspace.fail("chat.postMessage")

    with pytest.raises(aiohttp.ClientConnectionError):
        await once.chat_postMessage(channel=people.GENERAL, text="x")

    assert workspace.messages(people.GENERAL) == []


async def test_a_server_error_can_hide_a_success(workspace: LocalWorkspace, once: AsyncWebClient) -> None:
    workspace.fail("chat.postMessage", http_status=503, after_effect=True)

    with pytest.raises(SlackApiError):
        await once.chat_postMessage(channel=people.GENERAL, text="x")

    assert len(workspace.messages(people.GENERAL)) == 1


async def test_a_response_address_fails_like_a_method(workspace: LocalWorkspace) -> None:
    workspace.fail("response_url", http_status=500)
    hook = AsyncWebhookClient(workspace.world.response_url(people.BEN, people.GENERAL, None))

    assert [(await hook.send(text="x")).status_code for _ in range(2)] == [500, 200]


async def test_a_held_call_does_nothing_until_it_is_let_go(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    gate = workspace.hold("chat.postMessage")
    posting = asyncio.create_task(client.chat_postMessage(channel=people.GENERAL, text="x"))
    await client.auth_test()
    assert workspace.messages(people.GENERAL) == []

    gate.set()
    await posting

    assert len(workspace.messages(people.GENERAL)) == 1
