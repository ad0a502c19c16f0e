"""A process that plays a conversation and kills itself at a chosen moment: `killed.py FOLDER WHERE`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from bot.local import api, people
from bot.slack_api import SlackRefused
from harness_core.ports import ToolContext
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.types import Args, ToolResult
from tests.acceptance.desk import CHANNEL, Desk
from tests.engine.test_subagents import Cast
from tests.payloads import Payloads

ANSWER = "All done."


def script() -> ScriptedModel:
    """What the model says, whichever process asks it."""
    return ScriptedModel(call("change", a=1), ANSWER)


def agent_script() -> Cast:
    """The same, where an agent does it."""
    return Cast([call("task", agent="worker", prompt="change it"), ANSWER], worker=[call("change", a=1), "changed"])


def agents(folder: Path) -> Path:
    """The folder of its file."""
    made = folder / "agents"
    made.mkdir(exist_ok=True)
    (made / "worker.md").write_text("---\nname: worker\ndescription: Works.\n---\nYou are the worker.\n", "utf-8")
    return made


def tool(folder: Path) -> RecordingTool:
    """A tool that writes every run down, so that runs can be counted across processes."""
    return RecordingTool("change", ledger=folder / "runs.jsonl")


WATCH: Final = Payloads()  # the tests' own watch does not reach into this process


def die() -> NoReturn:
    """Be killed; with words instead if Slack would have refused anything that was sent before."""
    if WATCH.wrong:
        raise SystemExit("\n".join(WATCH.wrong))
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


class Deadly(RecordingTool):
    """A tool whose process dies after the effect and before the result."""

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        await super().run(args, context)
        die()


async def play(folder: Path, where: str) -> None:
    change: Any = tool(folder) if where != "in the tool" else Deadly("change", ledger=folder / "runs.jsonl")
    hired = where == "agent waits"
    model, folders = (agent_script(), {"agents": agents(folder)}) if hired else (script(), {})
    async with Desk(folder, model, [change], **folders) as desk:
        if where == "acknowledged":
            desk.slack.hold("chat.postMessage")
        if where == "posted":
            desk.slack.fail("chat.postMessage", after_effect=True)
        ts = await desk.ask("change it", people.BEN)
        print(ts, flush=True)
        if where == "acknowledged":
            await desk.slack.wait_for(lambda s: any(entry["kind"] == "ack" for entry in s.log))
            die()
        card = await desk.card(ts)
        if where == "refused":
            with suppress(SlackRefused):
                await desk.bot.api.post(CHANNEL, ts, {"text": ""})
        if where == "in the tool":
            await desk.click(card, "approve")
            await asyncio.get_running_loop().create_future()
        die()


if __name__ == "__main__":
    api.answer = WATCH.answer
    asyncio.run(play(Path(sys.argv[1]), sys.argv[2]))
