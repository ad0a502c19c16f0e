"""python -m tests.bench [cycle|many|long|compressed|all]: what the harness costs beside its floor.  See README.md."""

from __future__ import annotations

import argparse
import asyncio
import gc
import math
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Protocol

from .floor import Floor, Record
from .work import Harness, seeded

LENGTHS = {10: 40, 100: 40, 1_000: 20, 5_000: 10}  # messages: cycles
CYCLES = 200
SESSIONS = 500
ROUNDS = 3
WARM_UP = 5
HALVES = ("suspend", "resume")


class Contender(Protocol):
    """Who does the work: the harness, or the floor."""

    async def suspend(self, session_id: str) -> None: ...
    async def resume(self, session_id: str) -> None: ...
    async def close(self) -> None: ...


Make = Callable[[Path], Contender]


@dataclass
class Times:
    """Seconds per half of a cycle, by the clock and of the processor, and the bytes that went to write calls from its
    first to its last close.
    """

    suspend: list[float] = field(default_factory=list)
    resume: list[float] = field(default_factory=list)
    processor: dict[str, list[float]] = field(default_factory=lambda: {half: [] for half in HALVES})
    written: list[int] = field(default_factory=list)


async def timed(work: Awaitable[None]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def written() -> int:
    """Bytes that this process has passed to write calls so far; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/io").read_text().split("wchar: ")[1].split()[0])
    except OSError:
        return 0


async def cycle(make: Make, path: Path, session_id: str, times: Times) -> None:
    """One approval cycle, everything dropped in between. Closing and collecting are not timed."""
    before = written()
    for half, seconds in (("suspend", times.suspend), ("resume", times.resume)):
        gc.collect()
        began, used = time.perf_counter(), time.process_time()
        contender = make(path)
        await getattr(contender, half)(session_id)
        seconds.append(time.perf_counter() - began)
        times.processor[half].append(time.process_time() - used)
        await contender.close()
    times.written.append(written() - before)


async def cycles(folder: Path, makers: dict[str, Make]) -> None:
    path, all_times = folder / "cycle.db", {name: Times() for name in makers}
    await seeded(path, "tables", 0)
    for i in range(-WARM_UP, CYCLES):
        for name, make in makers.items():
            await cycle(make, path, f"{name}{i}", Times() if i < 0 else all_times[name])
    table(f"Approval cycle, everything dropped in between ({CYCLES} cycles)", times_rows(all_times))


async def many(folder: Path, makers: dict[str, Make]) -> None:
    walls: dict[tuple[str, str], list[float]] = {(half, name): [] for half in HALVES for name in makers}
    each: dict[tuple[str, str], list[float]] = {key: [] for key in walls}
    for turn in range(ROUNDS):
        for name, make in makers.items():
            path = folder / f"many{turn}-{name}.db"
            await seeded(path, "tables", 0)
            contender = make(path)
            for half in HALVES:
                await getattr(contender, half)("warm")
                gc.collect()
                began = time.perf_counter()
                each[half, name] += await asyncio.gather(
                    *(timed(getattr(contender, half)(f"s{i}")) for i in range(SESSIONS))
                )
                walls[half, name].append(time.perf_counter() - began)
            await contender.close()
    rows: list[Sequence[str]] = [("half", "who", "all, s", "latency p50 ms", "p99 ms", "times the floor")]
    for (half, name), seconds in walls.items():
        ratio = median(seconds) / median(walls[half, "floor"])
        latency = each[half, name]
        rows.append((half, name, f"{median(seconds):.2f}", ms(median(latency)), ms(pct(latency, 0.99)), f"{ratio:.2f}"))
    table(f"{SESSIONS} sessions at once (median of {ROUNDS} rounds)", rows)


async def long(folder: Path, makers: dict[str, Make]) -> None:
    for messages, repeats in LENGTHS.items():
        await of_length(folder, makers, messages, repeats)


async def compressed(folder: Path, makers: dict[str, Make]) -> None:
    """A long session that was compressed, beside a short one that was not. The floor reads all of either."""
    await of_length(folder, makers, 100, LENGTHS[100])
    await of_length(folder, makers, 5_000, LENGTHS[100], compressed=True)


async def of_length(
    folder: Path, makers: dict[str, Make], messages: int, repeats: int, *, compressed: bool = False
) -> None:
    template, all_times = folder / f"seed{messages}.db", {name: Times() for name in makers}
    await seeded(template, "long", messages, compressed=compressed)
    for i in range(-1, repeats):
        for name, make in makers.items():
            path = folder / "long.db"
            fresh_copy(template, path)
            await cycle(make, path, "long", Times() if i < 0 else all_times[name])
    what = "a compressed session" if compressed else "a session"
    table(f"Approval cycle in {what} of {messages:,} messages ({repeats} cycles)", times_rows(all_times))


def fresh_copy(template: Path, path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copy(template, path)
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def times_rows(all_times: dict[str, Times]) -> list[Sequence[str]]:
    head = ("half", "who", "p50 ms", "p99 ms", "times the floor", "processor p50 ms", "times the floor", "KB per cycle")
    rows: list[Sequence[str]] = [head]
    for half in HALVES:
        floor, least = median(getattr(all_times["floor"], half)), median(all_times["floor"].processor[half])
        for name, times in all_times.items():
            seconds, used = getattr(times, half), median(times.processor[half])
            by_clock = (ms(median(seconds)), ms(pct(seconds, 0.99)), f"{median(seconds) / floor:.2f}")
            kilobytes = f"{median(times.written) / 1024:.0f}" if half == "suspend" else ""
            rows.append((half, name, *by_clock, ms(used), f"{used / least:.2f}", kilobytes))
    return rows


def pct(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1]


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"


def table(title: str, rows: Sequence[Sequence[str]]) -> None:
    head, *body = rows
    print(f"\n### {title}\n")
    for row in (head, ["---"] * len(head), *body):
        print("| " + " | ".join(row) + " |")


WORKLOADS = {"cycle": cycles, "many": many, "long": long, "compressed": compressed}


async def main(names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        record = await Record.of(Path(folder) / "record.db")
        makers: dict[str, Make] = {"floor": lambda path: Floor(path, record), "harness": Harness}
        for name in names:
            await WORKLOADS[name](Path(folder), makers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("workload", nargs="?", default="all", choices=[*WORKLOADS, "all"])
    chosen = parser.parse_args().workload
    asyncio.run(main(list(WORKLOADS) if chosen == "all" else [chosen]))
