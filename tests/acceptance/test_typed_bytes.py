"""The bytes that somebody types are the bytes that run, however they come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.local import people
from harness_core.events import Prompted
from harness_core.models.practice import PracticeModel
from harness_core.ports import ModelRequest
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, shown

# What stands in backticks is a command for the practice model, exactly.
COMMANDS = [
    "touch a && touch b",
    "cat <in.txt >out.txt 2>&1",
    "echo &amp; &lt; &#39; &amp;amp;",
    """printf '%s' "it's" 'a "b"'""",
    "curl https://example.com/a?b=1&c=2#d | sh",
    "ping example.com; mail ada@example.com",
    "echo a\u00a0b",
    "echo *bold* _it_ ~no~ :smile: @channel #general",
    "grep '<@U0ADA00001>' x; rm <!here>",
    r"echo \\ \n $HOME ${x} %s",
    "touch ünï-日本 🙂",
    "sed -i 's/<a href=\"x\">/<b>/g' f.html",
]
FENCED = [
    "for f in *; do\n    mv \"$f\" x && echo '<ok>'\ndone",
    "cat <<'E' > f\n\ttab & `ticks`\n\nE\necho done",
    "touch a\n\n\ntouch b",
]


def recorder() -> RecordingTool:
    schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    return RecordingTool("bash", schema=schema, result="ok")


async def run(desk: Desk, bash: RecordingTool, ts: str, channel: str, command: str) -> None:
    card = await desk.card(ts, channel=channel)
    assert shown(card) == command or "⟨U+" in shown(card)
    await desk.click(card, "approve", channel=channel)
    await bash.started.reach(1)
    assert bash.runs == [{"command": command}]


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_in_a_mention_runs_as_it_was_typed(tmp_path: Path, command: str) -> None:
    bash = recorder()
    async with Desk(tmp_path, PracticeModel(), [bash]) as desk:
        ts = await desk.ask(f"run `{command}`")

        await run(desk, bash, ts, people.GENERAL, command)


@pytest.mark.parametrize("command", FENCED)
async def test_a_script_in_a_fence_runs_as_it_was_typed(tmp_path: Path, command: str) -> None:
    bash = recorder()
    async with Desk(tmp_path, PracticeModel(), [bash]) as desk:
        ts = await desk.ask(f"run\n```\n{command}\n```")

        await run(desk, bash, ts, people.GENERAL, command)


@pytest.mark.parametrize("command", [*COMMANDS[:3], *COMMANDS[5:8]])
async def test_a_command_in_a_reply_runs_as_it_was_typed(tmp_path: Path, command: str) -> None:
    bash = recorder()
    async with Desk(tmp_path, PracticeModel(), [bash]) as desk:
        ts = await desk.ask("hello")
        await desk.answer(ts, "Hello!")
        await desk.say(f"run `{command}`", thread=ts)

        await run(desk, bash, ts, people.GENERAL, command)


@pytest.mark.parametrize("command", [*COMMANDS[:3], *COMMANDS[5:8]])
async def test_a_command_in_a_direct_message_runs_as_it_was_typed(tmp_path: Path, command: str) -> None:
    bash, channel = recorder(), people.direct_id(people.ADA)
    async with Desk(tmp_path, PracticeModel(), [bash]) as desk:
        ts = await desk.say(f"run `{command}`", channel=channel)

        await run(desk, bash, ts, channel, command)


@pytest.mark.parametrize(
    "said",
    ["a && b < c > d", "see &amp; &lt;", "go to example.com/x or https://a.b/?q=1&r=2", "x\u00a0y  z", "one\n\ntwo"],
)
async def test_what_is_said_in_passing_reaches_the_model_as_it_was_typed(tmp_path: Path, said: str) -> None:
    heard: list[str] = []

    def listens(request: ModelRequest) -> str:
        heard.append(request.messages[-1].content)
        return "heard"

    async with Desk(tmp_path, ScriptedModel(listens, listens), []) as desk:
        ts = await desk.ask(said)
        await desk.answer(ts, "heard")
        await desk.say(said, thread=ts)
        await desk.slack.wait_for(lambda _: len(desk.texts(ts)) == 2)

    assert heard == [said, said]


async def test_a_message_without_rich_text_is_decoded_from_its_text(tmp_path: Path) -> None:
    bash = recorder()
    async with Desk(tmp_path, PracticeModel(), [bash]) as desk:
        raw = f"<@{people.BOT_USER}> run `a &amp;&amp; ping <http://x.io|x.io> &lt; b &amp;amp; c`"
        message = await desk.slack.say(people.ADA, people.GENERAL, raw, raw=True)

        await run(desk, bash, message["ts"], people.GENERAL, "a && ping x.io < b &amp; c")


async def test_a_real_command_really_gets_its_bytes(tmp_path: Path) -> None:
    async with Desk(tmp_path, PracticeModel(), ["bash"]) as desk:
        ts = await desk.ask("""run `printf '%s' 'a && b <c> &amp; "d"' > out.txt && cat out.txt`""")
        await desk.click(await desk.card(ts), "approve")

        await desk.card(ts, showing="exit 0")
        [written] = (tmp_path / "workspaces").glob("*/out.txt")
        assert written.read_text() == 'a && b <c> &amp; "d"'


HOSTILE = "`&<>|*_~" * 1_250  # ten thousand characters


def preformatted_only(message: dict[str, Any], text: str) -> None:
    """The text stands in preformatted parts, and nowhere that Slack would read markup in."""
    for block in message["blocks"]:
        if block["type"] != "rich_text":
            assert text not in json.dumps(block, ensure_ascii=False).replace("&amp;", "&").replace("&lt;", "<")


async def test_ten_thousand_characters_of_markup_are_shown_as_they_are_and_decided(tmp_path: Path) -> None:
    change = RecordingTool("change")
    async with Desk(tmp_path, ScriptedModel(call("change", a=HOSTILE), "done"), [change]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        assert "review" in buttons(card)
        preformatted_only(card, HOSTILE[:400])
        await desk.click(card, "review")
        form = await desk.form()
        assert HOSTILE in shown(form)

        assert (await desk.slack.submit(people.ADA, {})).ok

        await desk.answer(ts, "done")
        decided = await desk.card(ts, showing="ran")
        preformatted_only(decided, HOSTILE[:400])
        assert change.runs == [{"a": HOSTILE}]


def elements(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a message's blocks, at any depth."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from elements(inner)


@pytest.mark.parametrize(
    "text", ["<!channel> <@U0BEN00001>", "`<https://evil.example|Approve>`", "*bold* <!here|x>", "```\nx\n```"]
)
async def test_markup_in_arguments_and_names_is_inert(tmp_path: Path, text: str) -> None:
    change = RecordingTool("change")
    model = ScriptedModel([f"I say {text}", call("change", a=text, **{text: 1})], f"It was {text}")
    async with Desk(tmp_path, model, [change]) as desk:
        ts = await desk.ask("change it")
        card = await desk.card(ts)
        assert text.splitlines()[0] in shown(card)
        sent = next(c.arguments for c in desk.slack.calls if c.method == "chat.postMessage")
        assert "<!" not in sent["text"]
        assert "<https" not in sent["text"]
        parsed = [e["text"] for e in elements(card["blocks"]) if e.get("type") == "mrkdwn"]
        assert not [part for part in parsed if "<!c" in part or "<!h" in part or "evil" in part]
        await desk.click(card, "approve")

        await desk.answer(ts, "It was")
        assert change.runs == [{"a": text, text: 1}]
        for message in desk.thread(ts):
            found = list(elements(message["blocks"]))
            assert not {e.get("type") for e in found} & {"broadcast", "user"}
            assert not [e for e in found if e.get("type") == "link" and "text" in e]  # none that hides its host


async def test_a_message_with_half_a_character_is_taken_without_it_and_without_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Desk(tmp_path, ScriptedModel("one", "two"), []) as desk:
        ts = await desk.ask("x \ud800 password=hunter2xyz9")
        await desk.answer(ts, "one")

        [prompt] = await desk.facts(ts, Prompted)
        assert prompt.text == "x ? password=hunter2xyz9"
        assert "hunter2xyz9" not in caplog.text
