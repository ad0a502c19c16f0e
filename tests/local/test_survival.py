"""The workspace's file outlives the process, however it ends."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.local import LocalWorkspace, people
from tests.local.test_block_rules import modal

KILLED = """
import asyncio, os, signal, sys
import aiohttp
from slack_sdk.web.async_client import AsyncWebClient
from bot.local import LocalWorkspace, people

async def main():
    workspace = LocalWorkspace(sys.argv[1])
    await workspace.start()
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(f"{workspace.url}/_socket?ticket={workspace.world.hub.ticket()}")
        await socket.receive_json()
        await workspace.say(people.BEN, people.GENERAL, "before the end")
        frame = await socket.receive_json()
        client = AsyncWebClient(workspace.bot_token, base_url=workspace.api_url)
        await client.chat_postMessage(channel=people.GENERAL, text="posted")
        print(workspace.bot_token, workspace.app_token, workspace.secret, frame["payload"]["event_id"], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.real_kill
async def test_nothing_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "workspace.db"
    root = Path(__file__).parents[2]
    # Blocking is well here: nothing else runs in this test's loop.
    done = subprocess.run(  # noqa: ASYNC221
        [sys.executable, "-c", textwrap.dedent(KILLED), str(path)],
        capture_output=True, text=True, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    bot_token, app_token, secret, event_id = done.stdout.split()

    async with LocalWorkspace(path) as workspace:
        assert (workspace.bot_token, workspace.app_token, workspace.secret) == (bot_token, app_token, secret)
        assert [message["text"] for message in workspace.messages(people.GENERAL)] == ["before the end", "posted"]
        waiting = [
            (record["payload"]["event_id"], record["attempt"]) for record in workspace.world.hub.pending.values()
        ]
        assert waiting[0] == (event_id, 1)
        assert len(waiting) == 2


async def test_views_people_threads_and_stamps_are_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "workspace.db"
    async with LocalWorkspace(path, clock=lambda: 1_800_000_000.0) as workspace:
        client = AsyncWebClient(workspace.bot_token, base_url=workspace.api_url)
        root = await workspace.say(people.BEN, people.GENERAL, "root")
        reply = await workspace.say(people.BEN, people.GENERAL, "reply", root["ts"])
        await client.views_open(trigger_id=workspace.world.trigger(people.BEN), view=modal())
        workspace.change_person(people.CLEO, is_restricted=True)

    async with LocalWorkspace(path, clock=lambda: 1_800_000_000.0) as workspace:
        assert [m["text"] for m in workspace.messages(people.GENERAL, root["ts"])] == ["root", "reply"]
        assert len(workspace.views(people.BEN)) == 1
        assert workspace.world.people[people.CLEO]["is_restricted"] is True
        later = await workspace.say(people.BEN, people.GENERAL, "later")
        assert later["ts"] > reply["ts"]


async def test_a_fixed_port_is_kept(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path / "w.db") as workspace:
        port = int(workspace.url.rsplit(":", 1)[1])

    async with LocalWorkspace(tmp_path / "w.db", port=port) as workspace:
        assert workspace.url == f"http://127.0.0.1:{port}"
