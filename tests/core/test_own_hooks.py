"""Hooks of one's own: functions and objects of a module that a setting names; what cannot work is said at once."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from harness_core import hooks
from harness_core.errors import ConfigError
from harness_core.hooks import in_order, rule_class, run_point
from harness_core.interceptors.function import HANDED, hook
from harness_core.own_hooks import load_hooks
from harness_core.session import Trace
from harness_core.testing import tool_call
from harness_core.verdicts import ACCEPTS, Deny, Point

OURS = '''
from harness_core import Deny, Inject, hook

@hook("before_tool", rule_class="budget", priority=-1)
def no_delete(trace, call):
    """Nothing is deleted."""
    return Deny("Nothing is deleted here.") if call.name == "delete" else None

alias = no_delete

class Polite:
    name = "polite"
    rule_class = "drift"

    def before_model(self, trace):
        return Inject("Be polite.") if trace.run is None else None

polite = Polite()

def helper(trace, call):
    return None
'''


pytestmark = pytest.mark.usefixtures("modules")


def put(folder: Path, text: str) -> str:
    (folder / "own_hooks_of_mine.py").write_text(text, "utf-8")
    return str(folder / "own_hooks_of_mine.py")


def refusal(folder: Path, body: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load_hooks(put(folder, f"from harness_core import Deny, hook\n{body}"))
    return str(refused.value)


@pytest.mark.parametrize("by", ["path", "name"])
def test_marked_functions_and_objects_with_a_method_for_a_point_are_taken_once_each(by: str, tmp_path: Path) -> None:
    path = put(tmp_path, OURS)

    no_delete, polite = load_hooks("own_hooks_of_mine" if by == "name" else path)

    assert (no_delete.name, rule_class(no_delete), no_delete.priority) == ("no_delete", "budget", -1)
    assert no_delete.__doc__ == "Nothing is deleted."
    assert polite.name == "polite"


def test_a_hook_of_one_s_own_speaks_at_its_point_alone_and_is_recorded_under_its_name(tmp_path: Path) -> None:
    ours = in_order(load_hooks(put(tmp_path, OURS)))

    ruled = run_point("before_tool", ours, Trace(), tool_call("delete"))

    assert ruled.verdict == Deny("Nothing is deleted here.")
    assert [(one.hook, one.rule_class, one.verdict) for one in ruled.rulings] == [("no_delete", "budget", "Deny")]
    assert run_point("before_tool", ours, Trace(), tool_call("look")).verdict is None
    assert run_point("before_model", ours, Trace()).texts == ("Be polite.",)


def test_a_marked_function_can_still_be_called() -> None:
    @hook("before_tool")
    def no(trace: Trace, call: Any) -> Deny:
        return Deny(call.name)

    assert no(Trace(), tool_call("x")) == Deny("x")


def test_every_point_is_handed_what_the_description_of_the_points_says() -> None:
    described = {
        line.split("(")[0].strip(): tuple(line.split("(", 1)[1].split(")")[0].split(", "))
        for line in (inspect.getdoc(hooks) or "").splitlines()
        if line.startswith("    ") and "(trace" in line
    }

    assert described == {point: ("trace", *handed) for point, handed in HANDED.items()}
    assert set(HANDED) == set(ACCEPTS) == set(get_args(Point))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", 'holds no hook. Put @hook("before_tool")'),
        ("def before_tool(trace, call): return Deny('no')", 'before_tool is not marked: put @hook("before_tool")'),
        (
            "@hook('before_tol')\ndef x(trace, call): ...",
            "There is no hook point 'before_tol'; there are session_start",
        ),
        (
            "@hook('before_tool', rule_class='safty')\ndef x(trace, call): ...",
            "no rule class 'safty'; there are safety",
        ),
        ("@hook('before_tool', priority='1')\ndef x(trace, call): ...", "must be a whole number, not '1'"),
        ("@hook('before_tool', escape_after=0)\ndef x(trace, call): ...", "a whole number above 0, not 0"),
        (
            "@hook('before_tool')\ndef x(trace): ...",
            "The hook x must take (trace, call), which is what before_tool hands it",
        ),
        ("@hook('before_tool')\nasync def x(trace, call): ...", "The hook x must be a plain function (def)"),
        ("@hook('before_tool')\nclass X: ...", "The hook X is no function"),
        ("@hook\ndef x(trace, call): ...", "must say at which point it is asked: @hook"),
        ("@hook('before_tool')\ndef caps(trace, call): ...", "caps is the name of a guard"),
        (
            "class A:\n    def before_tool(self, trace, call): ...\na, b = A(), A()",
            "two hooks are called A",
        ),
        ("class A:\n    async def before_tool(self, trace, call): ...\na = A()", "before_tool of A must be a plain"),
        ("class A:\n    def after_tool(self, trace): ...\na = A()", "after_tool of A must take (trace, call, result)"),
        ("class A:\n    rule_class = 1\n    def before_model(self, trace): ...\na = A()", "declares the class 1"),
        (
            "class A:\n    priority = ''\n    def before_model(self, trace): ...\na = A()",
            "the priority of A is no whole",
        ),
        ("1 / 0", "could not be loaded: ZeroDivisionError"),
        ("raise SystemExit(3)", "could not be loaded: SystemExit"),
        ("def x(:", "could not be loaded: SyntaxError"),
    ],
)
def test_what_cannot_work_is_one_error_in_clear_words(tmp_path: Path, body: str, why: str) -> None:
    assert why in refusal(tmp_path, body)


def test_all_that_is_wrong_with_a_module_is_said_at_once(tmp_path: Path) -> None:
    said = refusal(tmp_path, "@hook('before_tool')\ndef budget(trace, call): ...\ndef before_stop(trace, answer): ...")

    assert "budget is the name of a guard" in said
    assert "before_stop is not marked" in said


@pytest.mark.parametrize("spec", ["not/there.py", "no_such_module_here", "a b"])
def test_a_module_that_is_not_there_is_said_to_be_missing(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"hooks|neither a module"):
        load_hooks(spec)


ONE_HOOK = "from harness_core import hook\n@hook('before_tool')\ndef no(trace, call): ...\n"


def test_a_module_of_the_current_folder_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "hooks_of_this_folder.py").write_text(ONE_HOOK)
    monkeypatch.chdir(tmp_path / "here")
    before = [*sys.path]

    assert [hooks.name_of(one) for one in load_hooks("hooks_of_this_folder")] == ["no"]
    assert sys.path == before
