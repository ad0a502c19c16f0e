"""What one request writes does not depend on how long the session is: a journal grows by what happened, no more."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness_core.events import Prompted, ReasonEnd, RunEnd, RunStart
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision
from harness_core.options import HarnessOptions
from harness_core.store.sqlite import SQLiteStore
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.engine.harness import Bench, request

UNCOMPRESSED = HarnessOptions(hitl_enabled=True, compression_max_messages=10**6, context_length=10**9)


def sizes(file: Path) -> Mapping[str, tuple[int, int]]:
    """Rows of each table of a database, and the bytes of all that they hold."""
    with sqlite3.connect(file) as database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        found = {}
        for table in tables:
            columns = [name for _, name, *_ in database.execute(f"pragma table_info({table})")]
            whole = " + ".join(f"coalesce(length(cast({column} as blob)), 0)" for column in columns)
            found[table] = database.execute(f"select count(*), coalesce(sum({whole}), 0) from {table}").fetchone()
        return found


async def grown(folder: Path, messages: int) -> Mapping[str, tuple[int, int]]:
    """What a request with two calls, one of them approved, adds to each table of a session of so many messages."""
    file = folder / f"{messages}.db"
    store = SQLiteStore(file)
    bench = Bench(folder, store)
    earlier: list[Any] = []
    for number in range(messages // 2):
        run = f"old{number:04}"
        earlier += [Prompted("an earlier request"), RunStart(run), ReasonEnd("an answer", run_id=run)]
        earlier.append(RunEnd("completed", "an answer", run_id=run))
    # The first request of a process also writes down the policy in force; the second is what counts.
    replies = [call("look", n=1), call("change", n=1), "done", call("look", n=2), call("change", n=2), "done"]
    model = ScriptedModel(*(["an answer"] * (messages // 2)), *replies)
    engine = bench.engine(model, [RecordingTool("look", read_only=True), RecordingTool("change")], options=UNCOMPRESSED)
    await store.append("s", earlier)
    session = await engine.session("s")

    async def once() -> None:
        await request(engine, "look, then change it")
        task = await HITL.get_pending_task(session)
        assert task
        await HITL.submit(session, task, HITLDecision.approve(), by="U1")
        await request(engine)
        assert await HITL.get_pending_task(session) is None

    await once()
    before = sizes(file)
    await once()
    after = sizes(file)
    sent = len(model.requests[-1].messages)
    await bench.drop()
    await store.close()
    assert sent > messages
    return {table: (after[table][0] - rows, after[table][1] - held) for table, (rows, held) in before.items()}


async def test_a_step_of_a_long_session_writes_as_many_rows_and_bytes_as_one_of_a_short_one(tmp_path: Path) -> None:
    short, long = await grown(tmp_path, 10), await grown(tmp_path, 1000)

    assert short["facts"][0] > 8
    assert {table: rows for table, (rows, _) in long.items()} == {table: rows for table, (rows, _) in short.items()}
    for table, (_, held) in long.items():
        assert abs(held - short[table][1]) < 100, table  # numbers of facts have a few digits more
