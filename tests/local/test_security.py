"""Nobody but this machine's own user, and the app, may talk to the workspace."""

import logging
import os
from pathlib import Path

import aiohttp
import pytest

from bot.local import LocalWorkspace

Headers = dict[str, str]


async def status(url: str, headers: Headers | None = None, json: object = None, data: object = None) -> int:
    async with aiohttp.ClientSession() as session:
        verb = session.post if json is not None or data is not None else session.get
        async with verb(url, headers=headers, json=json, data=data, allow_redirects=False) as reply:
            return reply.status


def key(workspace: LocalWorkspace) -> Headers:
    return {"Authorization": f"Bearer {workspace.secret}"}


async def test_control_and_pages_need_the_key(workspace: LocalWorkspace) -> None:
    assert await status(workspace.control_url + "state") == 403
    assert await status(workspace.control_url + "state", {"Authorization": "Bearer wrong"}) == 403
    assert await status(workspace.control_url + "reset", json={}) == 403
    assert await status(workspace.url + "/") == 403
    assert await status(workspace.url + "/?key=wrong") == 403
    assert await status(workspace.url + "/no-such-place") == 403
    assert await status(workspace.control_url + "state", key(workspace)) == 200


async def test_the_apps_tokens_are_no_key(workspace: LocalWorkspace) -> None:
    assert await status(workspace.control_url + "state", {"Authorization": f"Bearer {workspace.bot_token}"}) == 403


async def test_the_key_in_the_address_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(
    workspace: LocalWorkspace,
) -> None:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(workspace.page_url, allow_redirects=False) as reply:
            assert reply.status == 200
            assert "0;url=/" in await reply.text()
            cookie = reply.headers["Set-Cookie"]
        async with session.get(workspace.url + "/") as reply:
            assert reply.status == 200
            assert "Local workspace" in await reply.text()

    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
async def test_a_host_that_is_not_ours_is_refused_even_with_the_key(workspace: LocalWorkspace, host: str) -> None:
    wrong = key(workspace) | {"Host": host.format(port=workspace.url.rsplit(":", 1)[1])}

    assert await status(workspace.control_url + "state", wrong) == 403
    assert await status(workspace.api_url + "auth.test", wrong, data={}) == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
async def test_every_loopback_name_with_our_port_is_well(workspace: LocalWorkspace, name: str) -> None:
    port = workspace.url.rsplit(":", 1)[1]

    assert await status(workspace.control_url + "state", key(workspace) | {"Host": f"{name}:{port}"}) == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
async def test_a_foreign_origin_is_refused_everywhere(workspace: LocalWorkspace, origin: str) -> None:
    wrong = key(workspace) | {"Origin": origin.format(port=workspace.url.rsplit(":", 1)[1])}

    assert await status(workspace.control_url + "state", wrong) == 403
    assert await status(workspace.api_url + "auth.test", wrong, data={}) == 403
    assert await status(f"{workspace.url}/_socket?ticket={workspace.world.hub.ticket()}", wrong) == 403
    assert await status(workspace.control_url + "state", key(workspace) | {"Origin": workspace.url}) == 200


async def test_control_requests_are_json(workspace: LocalWorkspace) -> None:
    assert await status(workspace.control_url + "reset", key(workspace), data={"a": "b"}) == 403
    plain = key(workspace) | {"Content-Type": "text/plain"}
    assert await status(workspace.control_url + "reset", plain, data="{}") == 403
    assert await status(workspace.control_url + "reset", key(workspace), json={}) == 200


async def test_a_socket_needs_a_ticket_and_a_response_address_its_secret(workspace: LocalWorkspace) -> None:
    assert await status(f"{workspace.url}/_socket") == 403
    assert await status(f"{workspace.url}/_socket?ticket=guess") == 403
    assert await status(f"{workspace.url}/_response/guess", json={"text": "x"}) == 404


def test_only_the_loopback_interface_is_offered() -> None:
    with pytest.raises(ValueError, match="loopback"):
        LocalWorkspace(host="0.0.0.0")


async def test_no_secret_reaches_the_log_or_the_list_of_calls(
    workspace: LocalWorkspace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await status(workspace.page_url)
    await status(workspace.api_url + "auth.test", data={"token": workspace.bot_token})
    await status(workspace.api_url + "auth.test", {"Authorization": f"Bearer {workspace.bot_token}"}, data={})

    told = caplog.text + str(workspace.log) + str([call.arguments for call in workspace.calls]) + str(workspace.state())
    assert [call.ok for call in workspace.calls] == [True, True]
    assert not any(word in told for word in (workspace.secret, workspace.bot_token, workspace.app_token))


async def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path / "w.db"):
        assert {os.stat(tmp_path / name).st_mode & 0o077 for name in os.listdir(tmp_path)} == {0}
