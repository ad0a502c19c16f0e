"""What the page is served, and what its own connection tells and takes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.local import LocalWorkspace, people
from bot.local.changes import Changes
from tests.conftest import PATIENCE

JSON = dict[str, Any]


class Window:
    """One connection of a page, read frame by frame."""

    def __init__(self, workspace: LocalWorkspace, session: aiohttp.ClientSession) -> None:
        self._workspace, self._session = workspace, session
        self._made = 0

    async def open(self, name: str, **query: Any) -> JSON:
        """Connect as a person.  Out: hello."""
        headers = {"Authorization": f"Bearer {self._workspace.secret}"}
        self.socket = await self._session.ws_connect(
            f"{self._workspace.url}/_page", params={"as": name, **query}, headers=headers
        )
        return await self.read("hello")

    async def read(self, kind: str) -> JSON:
        """The next frame of a kind; others before it are passed over."""
        while True:
            frame: JSON = await self.socket.receive_json(timeout=PATIENCE)
            if frame["type"] == kind:
                return frame

    async def ask(self, verb: str, **facts: Any) -> JSON:
        self._made += 1
        await self.socket.send_json({"id": self._made, "verb": verb, **facts})
        return await self.read("answer")


@pytest.fixture
async def session(workspace: LocalWorkspace) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


@pytest.fixture
def window(workspace: LocalWorkspace, session: aiohttp.ClientSession) -> Window:
    return Window(workspace, session)


def messages(state: JSON) -> list[str]:
    return [document["text"] for key, document in state["documents"].items() if key.startswith("message:") and document]


async def test_every_file_of_the_page_is_served_with_its_kind_and_nothing_else_is(
    workspace: LocalWorkspace, session: aiohttp.ClientSession
) -> None:
    headers = {"Authorization": f"Bearer {workspace.secret}"}
    folder = Path(__file__).parents[2] / "bot" / "local" / "page"

    for path in folder.iterdir():
        async with session.get(f"{workspace.url}/page/{path.name}", headers=headers) as reply:
            assert (reply.status, await reply.read()) == (200, path.read_bytes())
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
    for name in ("nothing.js", "..%2Fpeople.py", "%2e%2e/rules.py"):
        async with session.get(f"{workspace.url}/page/{name}", headers=headers) as reply:
            assert reply.status == 404
    async with session.get(f"{workspace.url}/page/main.js") as reply:
        assert reply.status == 403


async def test_the_connection_needs_the_key_and_our_own_origin(
    workspace: LocalWorkspace, session: aiohttp.ClientSession
) -> None:
    key = {"Authorization": f"Bearer {workspace.secret}"}
    for headers in ({}, {"Authorization": "Bearer guess"}, key | {"Origin": "http://evil.example"}):
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await session.ws_connect(f"{workspace.url}/_page?as=ada", headers=headers)
    socket = await session.ws_connect(f"{workspace.url}/_page?as=ada", headers=key | {"Origin": workspace.url})
    assert (await socket.receive_json())["you"] == people.ADA


async def test_after_everything_once_only_changes_are_told(workspace: LocalWorkspace, window: Window) -> None:
    await workspace.say(people.BEN, people.GENERAL, "before")
    await window.open("ada")
    first = await window.read("state")
    said = await workspace.say(people.BEN, people.GENERAL, "after")
    second = await window.read("state")

    assert (first["reset"], messages(first)) == (True, ["before"])
    assert second["reset"] is False
    assert list(second["documents"]) == [f"message:{people.GENERAL}:{said['ts']}"]


async def test_a_page_that_comes_back_is_told_what_it_missed_and_no_more(
    workspace: LocalWorkspace, window: Window
) -> None:
    await workspace.say(people.BEN, people.GENERAL, "seen")
    await window.open("ada")
    seen = await window.read("state")
    await window.socket.close()
    gone = await workspace.say(people.BEN, people.GENERAL, "gone again")
    await workspace.say(people.BEN, people.GENERAL, "missed")
    await workspace.delete(people.BEN, people.GENERAL, gone["ts"])

    await window.open("ada", epoch=seen["epoch"], number=seen["number"])
    missed = await window.read("state")

    assert (missed["reset"], messages(missed)) == (False, ["missed"])
    assert missed["documents"][f"message:{people.GENERAL}:{gone['ts']}"] is None


@pytest.mark.parametrize("stale", [{"epoch": "another", "number": "999"}, {"epoch": "", "number": "²"}])
async def test_a_page_that_knew_another_run_is_told_everything(
    workspace: LocalWorkspace, window: Window, stale: JSON
) -> None:
    await workspace.say(people.BEN, people.GENERAL, "kept")
    await window.open("ada", **stale)
    state = await window.read("state")

    assert (state["reset"], messages(state)) == (True, ["kept"])


async def test_nobody_is_told_of_what_they_do_not_see(workspace: LocalWorkspace, window: Window) -> None:
    await workspace.say(people.ADA, people.PRIVATE, "secret")
    await workspace.say(people.ADA, people.direct_id(people.ADA), "direct")
    await window.open("gil")
    first = await window.read("state")
    await workspace.say(people.ADA, people.PRIVATE, "secret too")
    await workspace.say(people.ADA, people.GENERAL, "open")
    told: list[str] = []
    while "open" not in told:
        told += messages(await window.read("state"))

    assert told == ["open"]
    assert messages(first) == []
    assert not any(key.startswith(f"channel:{people.PRIVATE}") for key in first["documents"])


async def test_whoever_comes_into_a_channel_sees_what_was_said_there(workspace: LocalWorkspace, window: Window) -> None:
    await workspace.say(people.ADA, people.PRIVATE, "old news")
    await window.open("cleo")
    await window.read("state")
    await workspace.join(people.CLEO, people.PRIVATE)

    assert "old news" in messages(await window.read("state"))


async def test_what_a_person_may_not_do_is_answered_not_done(workspace: LocalWorkspace, window: Window) -> None:
    await window.open("gil")

    refused = await window.ask("say", key="k", channel=people.PRIVATE, text="let me in")
    unknown = await window.ask("reset")
    lacking = await window.ask("say", channel=people.GENERAL)
    strange = await window.ask("click", channel=people.GENERAL, ts="1.0", action_id="x")

    assert (refused["ok"], refused["error"]) == (False, "person_cannot")
    assert (unknown["ok"], unknown["error"]) == (False, "bad_request")
    assert (lacking["ok"], lacking["error"]) == (False, "bad_request")
    assert (strange["ok"], strange["error"]) == (False, "person_cannot")
    await window.socket.send_str("no json")
    await window.socket.send_str("[]")
    assert (await window.ask("say", key="k", channel=people.GENERAL, text="hello"))["ok"]


async def test_the_same_key_again_is_the_same_message(workspace: LocalWorkspace, window: Window) -> None:
    await window.open("ada")
    once = await window.ask("say", key="k1", channel=people.GENERAL, text="hello")
    again = await window.ask("say", key="k1", channel=people.GENERAL, text="hello", again=True)
    other = await window.ask("say", key="k2", channel=people.GENERAL, text="hello", again=True)

    assert once["ts"] == again["ts"] != other["ts"]
    assert len(workspace.messages(people.GENERAL)) == 2


async def test_the_prompts_and_hints_are_the_workspaces_own() -> None:
    async with (
        LocalWorkspace(prompts=("say hi",), hints={"/harness": "status"}) as workspace,
        aiohttp.ClientSession() as session,
    ):
        hello = await Window(workspace, session).open("nobody-of-that-name")

    assert hello["prompts"] == ["say hi"]
    assert hello["commands"] == {"/harness": "status"}
    assert hello["you"] == people.ADA


async def test_without_scripts_there_is_a_plain_page_to_read(
    workspace: LocalWorkspace, session: aiohttp.ClientSession
) -> None:
    await workspace.say(people.BEN, people.GENERAL, "<script>alert(1)</script>", raw=True)
    headers = {"Authorization": f"Bearer {workspace.secret}"}

    async with session.get(workspace.url + "/plain", headers=headers) as reply:
        page = await reply.text()

    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]


def test_changes_are_told_once_each_the_latest_last() -> None:
    changes = Changes()
    for key in ("a", "b", "a"):
        changes.note("message", key)
    changes.note("envelope", "unseen")

    assert changes.since(0) == [("message", "b"), ("message", "a")]
    assert changes.since(2) == [("message", "a")]
    assert changes.since(changes.number) == []
