"""A unified diff of two texts in bounded time, whoever wrote them.  Pure.

difflib alone takes minutes for a few thousand repeated lines. Here it only sees small stretches; larger ones are lined
up at lines that occur once on both sides, and what cannot be lined up is shown as replaced. The diff is always true.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

DIFF_CHARS: Final = 200_000  # of one diff; what is beyond is counted, not shown
CONTEXT: Final = 3  # equal lines shown around a change
SMALL: Final = 2_500  # lines of one side times lines of the other that difflib may compare
DEEPEST: Final = 4  # times that a stretch between anchors is lined up again

Lines = Sequence[str]
Change = tuple[int, int, int, int]  # old[i1:i2] became new[j1:j2]


def unified(old: str | None, new: str, path: str) -> str:
    """The diff from old (None: no such file) to new, "" if nothing changes; cut after DIFF_CHARS with a note."""
    if old == new:
        return ""
    before, after = _lines(old or ""), _lines(new)
    name = path if path.isprintable() else ascii(path)
    out = ["--- /dev/null\n" if old is None else f"--- a/{name}\n", f"+++ b/{name}\n"]
    for hunk in _hunks(list(_changes(before, after))):
        out += _drawn(hunk, before, after)
    return _bounded("".join(out))


def _lines(text: str) -> list[str]:
    # Only \n ends a line: splitlines() would also split at form feeds and Unicode separators, and hide them.
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _changes(old: Lines, new: Lines) -> Iterator[Change]:
    i = j = 0
    for start_old, start_new, size in _equal(old, new, 0, 0, 0):
        if i < start_old or j < start_new:
            yield i, start_old, j, start_new
        i, j = start_old + size, start_new + size


def _equal(old: Lines, new: Lines, at_old: int, at_new: int, depth: int) -> Iterator[tuple[int, int, int]]:
    """Equal stretches in order, as (start in old, start in new, lines)."""
    shorter = min(len(old), len(new))
    top = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    bottom = next((n for n in range(shorter - top) if old[-1 - n] != new[-1 - n]), shorter - top)
    yield at_old, at_new, top
    old_end, new_end = len(old) - bottom, len(new) - bottom
    yield from _between(old[top:old_end], new[top:new_end], at_old + top, at_new + top, depth)
    yield at_old + old_end, at_new + new_end, bottom


def _between(old: Lines, new: Lines, at_old: int, at_new: int, depth: int) -> Iterator[tuple[int, int, int]]:
    if not old or not new or depth > DEEPEST:
        return
    if len(old) * len(new) <= SMALL:
        for i, j, size in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
            yield at_old + i, at_new + j, size
        return
    anchors = _anchors(old, new)
    if not anchors:
        return
    i = j = 0
    for anchor_old, anchor_new in [*anchors, (len(old), len(new))]:
        yield from _equal(old[i:anchor_old], new[j:anchor_new], at_old + i, at_new + j, depth + 1)
        i, j = anchor_old, anchor_new


def _anchors(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """The longest run of pairs, rising on both sides, of lines that occur once in each."""
    in_old, in_new = Counter(old), Counter(new)
    where = {line: j for j, line in enumerate(new) if in_new[line] == 1}
    pairs = [(i, where[line]) for i, line in enumerate(old) if in_old[line] == 1 and line in where]
    ends: list[int] = []  # smallest place in new at which a rising run of each length ends
    runs: list[int] = []  # that run's last pair
    previous: list[int] = []
    for n, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        previous.append(runs[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        runs[length : length + 1] = [n]
    chain: list[tuple[int, int]] = []
    n = runs[-1] if runs else -1
    while n >= 0:
        chain.append(pairs[n])
        n = previous[n]
    return chain[::-1]


def _hunks(changes: list[Change]) -> Iterator[list[Change]]:
    hunk: list[Change] = []
    for change in changes:
        if hunk and change[0] - hunk[-1][1] > 2 * CONTEXT:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def _drawn(hunk: list[Change], old: Lines, new: Lines) -> Iterator[str]:
    first, last = hunk[0], hunk[-1]
    i, lead = first[0], min(CONTEXT, first[0], first[2])
    trail = min(CONTEXT, len(old) - last[1], len(new) - last[3])
    old_range = _range(first[0] - lead, last[1] + trail)
    yield f"@@ -{old_range} +{_range(first[2] - lead, last[3] + trail)} @@\n"
    i -= lead
    for i1, i2, j1, j2 in hunk:
        yield from (_line(" ", line) for line in old[i:i1])
        yield from (_line("-", line) for line in old[i1:i2])
        yield from (_line("+", line) for line in new[j1:j2])
        i = i2
    yield from (_line(" ", line) for line in old[i : i + trail])


def _range(start: int, stop: int) -> str:
    return f"{start + 1 if stop > start else start},{stop - start}"


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _bounded(diff: str) -> str:
    if len(diff) <= DIFF_CHARS:
        return diff
    missing = diff[DIFF_CHARS:]
    return f"{diff[:DIFF_CHARS]}\n[… {len(missing):,} more characters of this diff are not shown …]\n"
