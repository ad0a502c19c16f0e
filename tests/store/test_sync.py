from __future__ import annotations

from pathlib import Path

from harness_core.store.leases import Rest
from harness_core.store.rows import Row
from harness_core.store.sqlite_disk import SQLiteDisk

NORMAL, FULL = 1, 2  # SQLite's own numbers


def synchronous(disk: SQLiteDisk) -> int:
    return int(disk._conn.execute("pragma synchronous").fetchone()[0])


def test_facts_wait_for_the_disk_and_leases_do_not(tmp_path: Path):
    disk = SQLiteDisk(tmp_path / "journals.db")

    fence = disk.take("s", "owner", 0.0, True)
    assert synchronous(disk) == NORMAL

    disk.append("s", [Row(0.0, "r", None, "Prompted", "{}")], 0, ("owner", fence))
    assert synchronous(disk) == FULL

    disk.release("s", "owner", fence, Rest(1, None))
    assert synchronous(disk) == NORMAL

    disk.append("s", [Row(0.0, "r", None, "Prompted", "{}")], 1, None)
    assert synchronous(disk) == FULL
    disk.close()
