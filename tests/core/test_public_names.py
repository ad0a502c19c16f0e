"""What `from harness_core import …` gives, to a program and to a type checker alike."""

from __future__ import annotations

import ast
from pathlib import Path

import harness_core

PACKAGE = Path(harness_core.__file__).parent


def test_a_type_checker_finds_every_public_name_where_a_program_does() -> None:
    (block,) = [
        node
        for node in ast.parse((PACKAGE / "__init__.py").read_text("utf-8")).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    typed = {name.name: one.module for one in block.body if isinstance(one, ast.ImportFrom) for name in one.names}

    assert typed == harness_core._MODULE_OF


def test_every_public_name_is_there() -> None:
    assert [name for name in harness_core.__all__ if getattr(harness_core, name).__name__ != name] == []


def test_type_checkers_are_told_that_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()
