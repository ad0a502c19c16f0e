"""One function becomes one tool; arguments are checked, results are text."""

from __future__ import annotations

import asyncio
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from harness_core.errors import ConfigError, ToolFailed
from harness_core.ports import Tool, ToolContext
from harness_core.testing import FakeClock
from harness_core.tools import BUILTIN, HITL_MARKER, tool_table
from harness_core.tools.clip import HeadTail, clip
from harness_core.tools.spec import RESULT_CHARS, FunctionTool, tool
from harness_core.types import NO_DEADLINE, NO_OUTPUT, Inspection, ToolResult, canonical

CONTEXT = ToolContext("s", "c", Path("/"), NO_DEADLINE, FakeClock(auto=True))


class Size(Enum):
    SMALL = "small"


class Part(BaseModel):
    title: str
    count: int = 1


@tool(read_only=True, subject="json")
async def order(
    json: str,
    context: ToolContext,
    count: int = 3,
    weight: float = 1,
    mode: Literal["fast", "slow"] = "fast",
    parts: list[Part] | None = None,
    size: Size = Size.SMALL,
    title: Annotated[str, Field(description="on the lid")] = "",
) -> Any:
    """Order something.

    It takes a day.
    json: what to order,
      in full
    count: how many
    """
    return [json, count, weight, mode, parts, size.value, context.session_id]


def returns(value: Any) -> FunctionTool:
    @tool(name="returns")
    async def function() -> Any:
        """Return a value."""
        if isinstance(value, BaseException):
            raise value
        return value

    return function


async def ran(value: Any) -> ToolResult:
    return await returns(value).run({}, CONTEXT)


# -- the table that the model sees -------------------------------------------------------------------------------------


def test_signature_and_docstring_become_name_description_and_schema():
    assert isinstance(order, Tool)
    assert (order.spec.name, order.spec.description) == ("order", "Order something.\n\nIt takes a day.")
    assert order.spec.schema["required"] == ["json"]
    assert order.spec.schema["additionalProperties"] is False
    properties = order.spec.schema["properties"]
    assert properties["json"] == {"type": "string", "description": "what to order, in full"}
    assert properties["count"] == {"type": "integer", "default": 3, "description": "how many"}
    assert properties["title"] == {"type": "string", "default": "", "description": "on the lid"}
    assert "context" not in properties
    assert "title" not in order.spec.schema


def test_a_function_that_cannot_be_a_tool_is_refused_in_words():
    def plain(a: int) -> str:
        """Not async."""
        return ""

    async def untyped(a) -> str:  # type: ignore[no-untyped-def]
        """No hint."""
        return ""

    async def starred(*a: int) -> str:
        """Stars."""
        return ""

    async def silent(a: int) -> str:
        return ""

    async def odd(a: asyncio.Event) -> str:
        """An argument that JSON cannot hold."""
        return ""

    for function in (plain, untyped, starred, silent, odd):
        with pytest.raises(ConfigError, match=function.__name__):
            tool(function)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="cannot be called"):
        tool(name="no spaces")(silent)
    with pytest.raises(ConfigError, match="subject"):
        tool(subject="b", description="x")(silent)


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"timeout": 0}, "timeout of the tool look must be a number above 0, not 0"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": None}, "timeout"),
        ({"read_only": "no"}, "read_only of the tool look must be True, False or a plain function, not 'no'"),
        ({"read_only": asyncio.sleep}, "read_only"),
        ({"repeatable": 1}, "repeatable"),
        ({"description": 7}, "description"),
    ],
)
def test_what_is_said_of_a_tool_must_mean_something(how: dict[str, Any], words: str):
    async def look(at: str) -> str:
        """Look at something."""
        return at

    with pytest.raises(ConfigError, match=words):
        tool(**how)(look)


@pytest.mark.parametrize(
    "args",
    [
        {"json": "a"},
        {"json": "a", "weight": 2},
        {"json": "a", "parts": [{"title": "t"}], "size": "small", "mode": "slow"},
        {"json": "a", "parts": None},
    ],
)
def test_arguments_that_fit_are_accepted(args: dict[str, Any]):
    assert order.check(args) == ""


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ({}, "json: is required"),
        ({"json": 1}, "json: must be a valid string"),
        ({"json": "a", "count": "3"}, "count: must be a valid integer"),
        ({"json": "a", "count": True}, "count: must be a valid integer"),
        ({"json": "a", "count": 3.0}, "count: must be a valid integer"),
        ({"json": "a", "weight": "1"}, "weight: must be a valid number"),
        ({"json": "a", "mode": "x"}, "mode: must be 'fast' or 'slow'"),
        ({"json": "a", "parts": [{"title": 1}]}, "parts.0.title: must be a valid string"),
        ({"json": "a", "colour": 1}, "colour: is not an argument of this tool (it takes: json, count,"),
        ({"json": "a", "context": {}}, "context: is not an argument"),
        ({"json": "\ud800"}, "not valid Unicode"),
        ({"json": float("nan")}, "not JSON"),
        ({"json": b"a"}, "not JSON"),
        ({"json": "a", "count": 10**5000}, "not JSON"),
        ({"json": "a" * 2_000_000}, "too long"),
        (["json"], "must be an object"),
        (None, "must be an object"),
    ],
)
def test_arguments_that_do_not_fit_are_named(args: Any, named: str):
    assert named in order.check(args)


def test_a_problem_is_one_short_sentence_without_the_values():
    problem = order.check({"json": ["secret" * 1000], "x\n" * 500: 1, "parts": [1] * 50_000, "count": "y" * 100_000})

    assert len(problem) < 1_500
    assert "\n" not in problem
    assert "secret" not in problem
    assert "http" not in problem


def test_arguments_nested_without_end_are_refused():
    loop: dict[str, Any] = {}
    loop["json"] = loop
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    assert "not JSON" in order.check(loop)
    assert "not JSON" in order.check({"json": deep})


class Nasty(dict):  # type: ignore[type-arg]
    def keys(self) -> Any:
        raise RuntimeError("no")


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.sampled_from(["\ud800", "\0"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(["path", "content", "old", "new", "all", "command", "offset", "limit"]) | st.text(max_size=5)


@given(st.dictionaries(NAMES, ANYTHING, max_size=5) | ANYTHING)
@example(Nasty(path="x"))
@example({1: 2, "path": "a"})
def test_check_says_yes_or_why_not_whatever_it_is_given(args: Any):
    for each in (*BUILTIN.values(), order):
        problem = each.check(args)
        assert isinstance(problem, str)
        assert len(problem) < 4_000
        if not problem:
            assert isinstance(each.subject(args), str)
            assert each.read_only(args) in (True, False)


async def test_run_refuses_what_check_refuses():
    assert await order.run({"json": 3}, CONTEXT) == ToolResult(order.check({"json": 3}), "error")


async def test_the_function_gets_its_own_types_its_defaults_and_the_context():
    result = await order.run({"json": "a", "parts": [{"title": "t"}]}, CONTEXT)

    assert result == ToolResult('["a",3,1,"fast",[{"title":"t","count":1}],"small","s"]')


# -- results -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", NO_OUTPUT),
        (None, NO_OUTPUT),
        (b"text", "text"),
        ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
        (Part(title="t"), '{"title":"t","count":1}'),
        ("half \ud800", "half \\ud800"),
        (ToolResult("", "ok"), NO_OUTPUT),
    ],
)
async def test_a_result_is_text_whatever_was_returned(value: Any, content: str):
    assert await ran(value) == ToolResult(content)


async def test_a_long_result_keeps_head_and_tail_and_says_what_is_missing():
    result = await ran("a" + "b" * 2 * RESULT_CHARS + "c")

    assert result.content.startswith("ab")
    assert result.content.endswith("bc")
    assert "100,002 characters left out" in result.content
    assert len(result.content) < RESULT_CHARS + 100


async def test_a_failure_is_an_error_result_that_the_model_can_read():
    assert await ran(ToolFailed("No such order.")) == ToolResult("No such order.", "error")
    assert await ran(KeyError("x")) == ToolResult("returns failed: KeyError: 'x'", "error")
    assert await ran(SystemExit(3)) == ToolResult("returns failed: SystemExit: 3", "error")
    assert (await ran(object())).outcome == "error"
    assert await ran(ToolResult("half", "error")) == ToolResult("half", "error")


async def test_a_hanging_tool_can_be_cancelled():
    started = asyncio.Event()

    @tool
    async def hang() -> str:
        """Hang."""
        started.set()
        await asyncio.Event().wait()
        return ""

    task = asyncio.create_task(hang.run({}, CONTEXT))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@given(st.text(max_size=60), st.integers(0, 30), st.lists(st.integers(1, 7)))
def test_head_and_tail_are_the_same_in_whatever_pieces_the_text_comes(text: str, cap: int, sizes: list[int]):
    kept, rest = HeadTail(cap), text
    for size in sizes:
        kept.add(rest[:size])
        rest = rest[size:]
    kept.add(rest)

    assert kept.text() == clip(text, cap)
    assert (kept.text() == text) == (len(text) <= cap)


# -- stances -----------------------------------------------------------------------------------------------------------


async def test_a_stance_may_depend_on_the_arguments_and_no_answer_is_a_no():
    @tool(read_only=lambda args: bool(args["dry"]), subject=lambda args: f"dry={args['dry']}")
    async def deploy(dry: bool) -> str:
        """Deploy."""
        return ""

    assert deploy.read_only({"dry": True})
    assert deploy.repeatable({"dry": True})
    assert not deploy.read_only({"dry": False})
    assert not deploy.read_only({})
    assert deploy.subject({"dry": True}) == "dry=True"


async def test_without_a_subject_rules_match_the_canonical_arguments():
    @tool
    async def add(b: int, a: int) -> int:
        """Add."""
        return a + b

    assert add.subject({"b": 1, "a": 2}) == canonical({"a": 2, "b": 1})
    assert not add.inspects
    assert await add.inspect({"a": 1, "b": 1}, CONTEXT) == Inspection()


async def test_a_look_that_fails_is_a_problem_of_the_call():
    async def look(args: Any, context: ToolContext) -> Inspection:
        raise OSError("disk")

    @tool(inspect=look)
    async def peek(a: int) -> str:
        """Peek."""
        return ""

    assert peek.inspects
    assert (await peek.inspect({"a": 1}, CONTEXT)).problem == "peek could not look: OSError: disk"
    assert "a: is required" in (await peek.inspect({}, CONTEXT)).problem


SAMPLES: dict[str, dict[str, Any]] = {
    "read": {"path": "a"},
    "write": {"path": "a", "content": "b"},
    "edit": {"path": "a", "old": "b", "new": "c"},
    "ls": {},
    "bash": {"command": "ls"},
    "glob": {"pattern": "**/*.py"},
    "grep": {"pattern": "def "},
    "webfetch": {"url": "https://example.com/"},
    "todo": {"items": [{"text": "a"}]},
}


def test_every_built_in_tool_that_is_not_read_only_has_a_subject_and_only_webfetch_of_them_is_repeatable():
    assert set(SAMPLES) == set(BUILTIN)
    for name, each in BUILTIN.items():
        args = SAMPLES[name]
        assert each.check(args) == ""
        assert each.spec.name == name
        assert each.timeout > 0
        assert each.repeatable(args) == (each.read_only(args) or name == "webfetch")
        if not each.read_only(args):
            assert each.subject(args) in args.values()
    reading = {name for name, each in BUILTIN.items() if each.read_only(SAMPLES[name])}
    assert reading == {"read", "ls", "glob", "grep", "todo"}


# -- tables ------------------------------------------------------------------------------------------------------------


def test_a_tool_list_mixes_names_and_tools_and_the_marker_is_no_tool():
    assert tool_table(["bash", HITL_MARKER, order, "read"]) == (BUILTIN["bash"], order, BUILTIN["read"])


def test_unknown_and_repeated_names_are_all_named():
    with pytest.raises(ConfigError, match=r"no tool rm, hack \(built in: read.*Listed twice: bash"):
        tool_table(["rm", "bash", "hack", "bash"])
