"""Every store, made the same way: with a clock that stands still and heartbeats given by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from harness_core.store.memory import MemoryStore
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import FakeClock
from tests.store.handles import Handles, Store


@pytest_asyncio.fixture(params=["memory", "sqlite"])
async def handles(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Handles]:
    clock = FakeClock()
    store: Store
    if request.param == "memory":
        store = MemoryStore(clock=clock, heartbeat=False)
    else:
        store = SQLiteStore(tmp_path / "journals.db", clock=clock, heartbeat=False)
    handles = Handles(store, clock)
    yield handles
    await handles.close()


@pytest.fixture
def store(handles: Handles) -> Store:
    return handles.first


@pytest.fixture
def clock(handles: Handles) -> FakeClock:
    return handles.clock
