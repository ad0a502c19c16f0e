"""A process that appends until it is killed: `child.py FILE WRITER`, one acknowledged seq per line on stdout."""

from __future__ import annotations

import asyncio
import sys
from itertools import count

from harness_core.events import Prompted
from harness_core.store.sqlite import SQLiteStore


async def main(path: str, writer: str) -> None:
    store = await SQLiteStore.open_file(path)
    async with store.lease(writer) as lease:
        assert lease is not None
        for n in count(1):
            facts = [Prompted(f"{n} one"), Prompted(f"{n} two")]
            stored = await store.append(writer, facts, key=f"{writer}:{n}", fence=lease.fence)
            print(stored[-1].seq, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
