"""The bot's own facts, as they lie in released databases: they still load, and nothing of them is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.facts import BOT_FACTS, CODEC
from harness_core.events import FACTS, Event
from tests.core.test_journals import holds

LINES = [json.loads(line) for line in (Path(__file__).parent / "facts-v0.1.jsonl").read_text("utf-8").splitlines()]


def loaded(line: dict[str, object]) -> Event:
    return CODEC.decode(str(line["kind"]), json.dumps(line["body"]))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["kind"])
def test_a_fact_of_a_released_shape_loses_nothing_when_it_is_written_again(line: dict[str, object]) -> None:
    kind, body = CODEC.encode(loaded(line))

    assert kind == line["kind"]
    assert holds(json.loads(body), line["body"])


def test_every_kind_of_the_bot_s_facts_is_among_them() -> None:
    assert {type(loaded(line)) for line in LINES} == set(BOT_FACTS)
    assert not {kind.__name__ for kind in BOT_FACTS} & {kind.__name__ for kind in FACTS}
