"""What commands reach from a channel's threads, and who opens the network to them."""

from __future__ import annotations

import logging
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from bot.local import people
from harness_core.permissions import grammar
from harness_core.testing import ScriptedModel, call
from harness_core.tools.sandbox import Sandbox
from tests.acceptance.desk import Desk
from tests.acceptance.test_settings import command


async def boxed() -> None:
    if not (await Sandbox().boundary()).program:
        pytest.skip("bubblewrap is not installed, or does not work here")


async def ran(desk: Desk) -> str:
    """What the model was told of the command that it asked for."""
    ts = await desk.ask("do it")
    await desk.click(await desk.card(ts), "approve")
    await desk.answer(ts, "done")
    model = desk.bot.model
    assert isinstance(model, ScriptedModel)
    return model.requests[-1].messages[-1].content


async def test_an_approved_command_reads_nothing_that_the_bot_stores(tmp_path: Path) -> None:
    await boxed()
    stored = tmp_path / "harness.db"
    model = ScriptedModel([call("bash", command=f"cat {stored}; echo mine > f; cat f")], "done")
    async with Desk(tmp_path, model, ["bash"]) as desk:
        told = await ran(desk)

    assert stored.exists()
    assert "No such file or directory" in told
    assert told.endswith("mine\nexit code 0")


async def test_an_administrator_opens_the_network_to_a_channel_s_commands(tmp_path: Path) -> None:
    await boxed()
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached"
        model = ScriptedModel([call("bash", command=connect)], "done")
        async with Desk(tmp_path, model, ["bash"]) as desk:
            assert "reach no network" in await command(desk, "status", people.BEN)
            assert "Only administrators" in await command(desk, "network on", people.BEN)
            assert "reached" not in await ran(desk)

            assert "may reach the network" in await command(desk, "network on")
            assert "reach the network" in await command(desk, "status")
            assert "reached" in await ran(desk)
            assert not await desk.bot.book.online(f"slack:{desk.bot.us.home}:{people.OPS}:1.000000")

            assert "`/harness network on`" in await command(desk, "network perhaps")
            assert "reach no network" in await command(desk, "network off")
            assert "reached" not in await ran(desk)


async def test_what_is_missing_is_warned_of_once_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grammar, "_PARSER", None)
    desk = Desk(tmp_path, ScriptedModel("hi"), ["bash"])
    desk.local.settings = replace(desk.local.settings, sandbox="off")
    with caplog.at_level(logging.WARNING, "bot.app"):
        async with desk:
            assert "without a sandbox (it is switched off)" in await command(desk, "status")

    warned = [record.getMessage() for record in caplog.records if record.name == "bot.app"]
    assert len([line for line in warned if "without a sandbox" in line]) == 1
    assert len([line for line in warned if "every bash command asks" in line]) == 1
