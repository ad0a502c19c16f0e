"""`harness-bot demo`: one conversation that plays itself, and the cause where it cannot."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import pytest

from bot import demo
from bot.config import ModelSettings, Settings
from tests.engine.fake_openai import KEY, MODEL, FakeOpenAI, text


async def played(model: ModelSettings) -> tuple[bool, str]:
    said: list[str] = []
    answered = await demo.play(Settings(model=model), said.append)
    return answered, "\n".join(said)


async def test_it_plays_a_conversation_with_a_card_a_click_and_an_answer() -> None:
    answered, said = await played(ModelSettings())

    assert answered
    assert "[Approve]" in said
    assert "hello from the harness" in said
    assert "Approved by @Ada" in said


async def test_it_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, thrown_away = tmp_path / "kept", tmp_path / "thrown away"
    kept.mkdir()
    thrown_away.mkdir()
    monkeypatch.chdir(kept)
    monkeypatch.setattr(tempfile, "tempdir", str(thrown_away))

    assert await demo.play(Settings(), lambda line: None)

    assert [*kept.iterdir(), *thrown_away.iterdir()] == []


async def test_a_model_that_cannot_be_reached_is_named_as_the_cause_at_once() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        answered, said = await played(ModelSettings("gpt", url))

    assert not answered
    assert said.startswith("model gpt: ")
    assert "cannot be reached: nothing listens there" in said


async def test_what_a_model_says_instead_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in (1.0, 5.0, 25.0):  # as many as this machine needs for the bot to say anything
        monkeypatch.setattr(demo, "PATIENCE", seconds)
        async with FakeOpenAI(text("I only talk.")) as server:
            answered, said = await played(ModelSettings(MODEL, server.base_url, KEY))
        if not said.endswith("nothing"):
            break

    assert not answered
    assert said.endswith("The bot said last:\nI only talk.")
