"""Fixtures of the tests that read modules of a user's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules in this folder can be named, and are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("own_", "harness_tools_")):
            del sys.modules[name]
