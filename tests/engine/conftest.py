from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness_core.store.memory import MemoryStore
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock
from tests.engine.harness import Bench


@pytest.fixture(params=["memory", "sqlite"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    clock = FakeClock()
    # Leases live by the real time: the fake one stands still for minutes of a heartbeat, or jumps over them.
    store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "h.db")
    made = Bench(tmp_path, store, clock)
    yield made
    await made.drop()
    await store.close()
