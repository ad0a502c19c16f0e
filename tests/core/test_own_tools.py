"""Tools of one's own come from a module that a setting names; what they do wrong is a result, or said at the start."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_core.errors import ConfigError
from harness_core.events import RunEnd, ToolCallEnd
from harness_core.testing import ScriptedModel, call
from harness_core.tools.own import load_tools
from harness_core.tools.spec import RESULT_CHARS, FunctionTool, tool
from tests.engine.harness import Bench, only, request

GREET = '''
from __future__ import annotations
from dataclasses import dataclass
from harness_core import tool
from harness_core.ports import ToolContext

@dataclass
class Who:
    name: str

@tool(read_only=True)
async def greet(who: Who, context: ToolContext) -> str:
    """Greet somebody."""
    return f"hello {who.name}"

hail = greet

@tool
async def leave(name: str) -> str:
    """Leave."""
    return name

async def helper(name: str) -> str:
    """No tool."""
    return name

_list = [greet]
'''


pytestmark = pytest.mark.usefixtures("modules")


def put(folder: Path, text: str, name: str = "own_tools.py") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def refusal(spec: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load_tools(spec)
    return str(refused.value)


# -- loading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["path", "name", "relative path", "package"])
def test_every_tool_at_the_top_level_is_taken_once(by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    spec = put(tmp_path, GREET)
    monkeypatch.chdir(tmp_path)
    if by == "package":
        (tmp_path / "own_package").mkdir()
        put(tmp_path, GREET, "own_package/inner.py")
    spec = {"path": spec, "name": "own_tools", "relative path": "./own_tools.py", "package": "own_package.inner"}[by]

    assert [each.spec.name for each in load_tools(spec)] == ["greet", "leave"]


async def test_what_was_loaded_runs_in_a_session(tmp_path: Path):
    tools = load_tools(put(tmp_path, GREET))
    bench = Bench(tmp_path)
    engine = bench.engine(ScriptedModel(call("greet", who={"name": "Ada"}), "done"), tools)

    assert only(await request(engine, "hi"), ToolCallEnd).content == "hello Ada"
    await bench.drop()


def test_a_module_that_cannot_be_loaded_is_told_with_its_fault(tmp_path: Path):
    assert "no such file" in refusal(str(tmp_path / "no.py"))
    assert "No module named 'own_no'" in refusal("own_no.tools")
    assert "neither a module" in refusal("own tools")
    assert "neither a module" in refusal("")
    missing = refusal(put(tmp_path, "import own_missing"))
    assert "No module named 'own_missing' (line 1 of " in missing
    assert "SyntaxError" in refusal(put(tmp_path, "def ("))
    failing = refusal(put(tmp_path, "\n1 / 0"))
    assert "ZeroDivisionError: division by zero (line 2 of " in failing
    assert "own_tools.py" in failing
    put(tmp_path, "raise SystemExit(3)", "own_exit.py")
    assert "own_exit could not be loaded: SystemExit: 3 (line 1" in refusal("own_exit")


def test_a_tool_that_cannot_be_one_is_told_with_its_line(tmp_path: Path):
    faulty = "from harness_core import tool\n@tool\nasync def silent(a: int) -> str:\n    return ''\n"
    told = refusal(put(tmp_path, faulty))

    assert "The tool silent has no docstring" in told
    assert re.search(r"\(line [23] of \S+own_tools\.py\)", told)  # 3.11 blames the decorator, others the function


def test_a_failed_file_leaves_no_module_behind(tmp_path: Path):
    before = set(sys.modules)
    refusal(put(tmp_path, "1 / 0"))

    assert [name for name in set(sys.modules) - before if name.startswith("harness_tools_")] == []


def test_a_module_without_tools_is_refused(tmp_path: Path):
    assert "holds no tool. Put @tool before" in refusal(put(tmp_path, "x = 1"))


@pytest.mark.parametrize("name", ["bash", "webfetch", "hitl"])
def test_the_name_of_a_built_in_tool_is_taken(name: str, tmp_path: Path):
    own = f'from harness_core import tool\n@tool(name="{name}")\nasync def mine(a: int) -> str:\n    """Mine."""\n'

    assert f"{name} is the name of a built-in tool" in refusal(put(tmp_path, own))


def test_two_tools_of_one_name_are_refused(tmp_path: Path):
    twice = GREET + '\n@tool(name="greet")\nasync def other(a: int) -> str:\n    """Other."""\n    return ""\n'

    assert "two tools are called greet" in refusal(put(tmp_path, twice))


# -- whatever a tool does, the run goes on -----------------------------------------------------------------------------


def does(what: Any) -> FunctionTool:
    @tool(name="own", read_only=True, timeout=0.05)
    async def own() -> Any:
        """Do it."""
        return await what()

    return own


async def outcome(what: Any, folder: Path) -> ToolCallEnd:
    """What the model reads of it, in a run that is then completed."""
    bench = Bench(folder)
    events = await request(bench.engine(ScriptedModel(call("own"), "done"), [does(what)]), "do it")
    await bench.drop()
    assert only(events, RunEnd).status == "completed"
    end: ToolCallEnd = only(events, ToolCallEnd)
    return end


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(1), ExceptionGroup("all", [ValueError("one")])])
async def test_a_tool_that_raises_is_an_error_result(error: BaseException, tmp_path: Path):
    async def fail() -> None:
        raise error

    end = await outcome(fail, tmp_path)

    assert end.outcome == "error"
    assert end.content.startswith(f"own failed: {type(error).__name__}: ")


async def test_a_tool_that_raises_a_text_of_any_length_is_a_bounded_error_result(tmp_path: Path):
    async def fail() -> None:
        raise RuntimeError("\ud800" * 1_000_000)

    end = await outcome(fail, tmp_path)

    assert end.outcome == "error"
    assert len(end.content) < RESULT_CHARS + 100


async def test_a_tool_that_hangs_is_an_error_result(tmp_path: Path):
    ended = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    end = await outcome(hang, tmp_path)

    assert end.outcome == "error"
    assert "took longer" in end.content
    assert ended.is_set()


@pytest.mark.parametrize("value", ["x" * 50_000_000, b"x" * 50_000_000, ["x" * 1_000] * 50_000])
async def test_a_tool_that_returns_50_mb_is_an_error_result(value: Any, tmp_path: Path):
    async def much() -> Any:
        return value

    end = await outcome(much, tmp_path)

    assert end.outcome == "error"
    assert "no more than 10,000,000 are taken" in end.content


async def test_a_long_result_is_cut_and_says_so(tmp_path: Path):
    async def long() -> str:
        return "x" * 5_000_000

    end = await outcome(long, tmp_path)

    assert end.outcome == "ok"
    assert len(end.content) < RESULT_CHARS + 100
    assert "characters left out" in end.content


@pytest.mark.parametrize("value", [object(), {1, object()}, lambda: 0, float])
async def test_a_tool_that_returns_no_text_is_an_error_result(value: Any, tmp_path: Path):
    async def odd() -> Any:
        return value

    end = await outcome(odd, tmp_path)

    assert end.outcome == "error"
    assert "neither text nor JSON" in end.content


async def test_bytes_that_are_no_text_are_an_error_result(tmp_path: Path):
    async def binary() -> bytes:
        return b"\xff\x00" * 1_000

    end = await outcome(binary, tmp_path)

    assert (end.outcome, end.content) == ("error", "The tool returned 2,000 bytes that are not text.")
