"""The list of what is to be done is kept in the conversation alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness_core.events import ToolCallEnd
from harness_core.ports import ModelRequest
from harness_core.testing import ScriptedModel, call, tool_context
from harness_core.tools.todo import TODO_CHARS, TODO_ITEMS, todo
from tests.engine.harness import Bench, request, stored

FIRST = [{"text": "look"}, {"text": "write it down"}]
THEN = [{"text": "look", "done": True}, {"text": "write it down", "done": False}, {"text": "tell"}]


async def test_the_result_is_the_whole_list(tmp_path: Path):
    result = await todo.run({"items": THEN}, tool_context(tmp_path))

    assert result.content == "1. [x] look\n2. [ ] write it down\n3. [ ] tell\n2 of 3 left to do."
    assert (await todo.run({"items": []}, tool_context(tmp_path))).content == "The list is empty."


@pytest.mark.parametrize(
    "items",
    [
        None,
        "look",
        [{}],
        [{"text": ""}],
        [{"text": " "}],
        [{"text": "a\nb"}],
        [{"text": "a", "done": "yes"}],
        [{"text": "a", "by": "me"}],
        [{"text": "a" * (TODO_CHARS + 1)}],
        [{"text": "a"}] * (TODO_ITEMS + 1),
    ],
)
async def test_a_list_that_is_none_is_refused_in_words(items: Any, tmp_path: Path):
    result = await todo.run({"items": items}, tool_context(tmp_path))

    assert result.outcome == "error"
    assert result.content.startswith("Wrong arguments. items")


async def test_it_runs_unasked_writes_nothing_and_the_model_reads_it_back(bench: Bench):
    def read_back(asked: ModelRequest) -> str:
        return asked.messages[-1].content

    engine = bench.engine(ScriptedModel(call("todo", items=FIRST), call("todo", items=THEN), read_back), ["todo"])

    events = await request(engine, "begin")

    ends = [event.content for event in events if isinstance(event, ToolCallEnd)]
    assert [content.splitlines()[-1] for content in ends] == ["2 of 2 left to do.", "2 of 3 left to do."]
    assert "HITLPending" not in await stored(bench.store)
    assert [path for path in bench.folder.rglob("*") if path.is_file() and not path.name.startswith("h.db")] == []
    after = await request(bench.engine(ScriptedModel(read_back)), "and now?", "other")
    assert "left to do" not in str(after)
