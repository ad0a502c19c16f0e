"""One whole conversation without a browser, played by the real bot in a local workspace and printed as it happens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bot.app import model_of
from bot.check import answers
from bot.config import Settings
from bot.local import LocalWorkspace, people
from bot.local_bot import LocalBot

PATIENCE: Final = 30.0  # seconds that any one thing may take
_NAMES: Final = {people.ADA: "Ada", people.BOT_USER: "harness"}
PROMPT: Final = "@harness run `echo hello from the harness | tee hello.txt`"

Message = Mapping[str, Any]


async def play(settings: Settings, say: Callable[[str], None]) -> bool:
    """Play it in a folder that is thrown away. True if the answer came, with what the command printed. Raises
    ConfigError for a model that cannot be asked.
    """
    if settings.model.name and (model := await answers(model_of(settings))).advice:
        say(f"{model.what}: {model.advice}")
        return False
    with TemporaryDirectory(prefix="harness-demo-") as folder:
        here = replace(settings, slack=None, data=Path(folder), workspace=None, local_port=0)
        async with LocalBot(here, in_memory=True) as local:
            try:
                return await _played(local.workspace, say)
            except TimeoutError:
                said = [m for m in local.workspace.messages(people.GENERAL) if m.get("bot_id")]
                say(f"… for {PATIENCE:.0f} s nothing came that goes on with it. The bot said last:")
                say(_plain(said[-1]["text"]) if said else "nothing")
                return False


async def _played(slack: LocalWorkspace, say: Callable[[str], None]) -> bool:
    say(f"Ada, in #general:  {PROMPT}")
    asked = await slack.say(people.ADA, people.GENERAL, PROMPT)
    card = await _next(slack, asked["ts"], lambda m: bool(_buttons(m)))
    say(f"harness, a card:   {_plain(card['text'])}")
    say(f"                   [{'] ['.join(label for _, label in _buttons(card))}]")

    say("Ada clicks:        [Approve]")
    clicked = await slack.click(people.ADA, people.GENERAL, card["ts"], "approve")
    if not clicked.ok:
        say(f"… the click failed: {clicked.error}")
        return False
    answer = await _next(slack, asked["ts"], lambda m: m["ts"] != card["ts"] and "hello from" in m["text"])
    for number, line in enumerate(_plain(answer["text"]).splitlines()):
        say(f"{'harness:' if number == 0 else '':<19}{line}")
    decided = await _next(slack, asked["ts"], lambda m: m["ts"] == card["ts"] and not _buttons(m))
    say(f"the card now:      {_plain(decided['text'])}")
    return True


async def _next(slack: LocalWorkspace, thread: str, wanted: Callable[[Message], bool]) -> Message:
    """The bot's message in the thread that is wanted, as soon as it stands there."""

    def found(workspace: LocalWorkspace) -> Message | None:
        messages = workspace.messages(people.GENERAL, thread)
        return next((m for m in messages if m.get("bot_id") and wanted(m)), None)

    message = await slack.wait_for(found, timeout=PATIENCE)
    assert message is not None
    return message


def _plain(text: str) -> str:
    """Slack's markup as a terminal shows it: names for ids, moments in words, entities decoded."""
    named = re.sub(r"<@([A-Z0-9]+)>", lambda found: "@" + _NAMES.get(found[1], found[1]), text)
    return unescape(re.sub(r"<!date\^[^|>]*\|([^>]*)>", r"\1", named))


def _buttons(message: Message) -> Sequence[tuple[str, str]]:
    rows = [block for block in message.get("blocks", ()) if block["type"] == "actions"]
    return [(e["action_id"], e["text"]["text"]) for row in rows for e in row["elements"]]


def main(settings: Settings) -> int:
    """Play it on standard output. The exit code: 0 only if the answer came."""
    answered = asyncio.run(play(settings, print))
    print("The answer came." if answered else "The answer did not come.")
    return 0 if answered else 1
