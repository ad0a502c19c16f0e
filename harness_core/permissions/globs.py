"""Which names a glob may stand for.  Pure: what is in a folder is asked of the caller.

Read wider than bash does: a set like `[^a]` or `[[:alpha:]]`, `?` and `*` each count as any text, because what is in a
set, and how many bytes are one character, depends on the shell's version and locale. Only a leading dot is as in bash.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

_SET: Final = re.compile(r"\[.*\]|\[", re.S)  # from the first bracket to the last: all of it may be one set
_ANY: Final = re.compile(r"[*?]+")
_DOTS: Final = (".", "..")  # which `.*` stands for too, before bash 5.2


Names = Callable[[str], Sequence[str]]


def matched(patterns: Iterable[tuple[str, str]], names: Names, most: int) -> Sequence[str] | None:
    """The paths that these patterns may stand for, each seen from a folder; `..` is not taken away.

    names: what a folder holds. A segment without a wildcard is taken to be there. most: names and paths that are looked
    at; None if there are more.
    """
    paths: dict[str, None] = {}
    for folder, pattern in patterns:
        found = ["/" if pattern.startswith("/") else folder]
        for segment in filter(None, pattern.split("/")):
            wanted, reached = _texts(segment), list[str]()
            for place in found:
                held = [segment] if len(wanted) == 1 else [*names(place), *_DOTS]
                most -= len(held)
                if most < 0:
                    return None
                reached += [posixpath.join(place, name) for name in held if len(wanted) == 1 or _fits(wanted, name)]
            found = reached
        paths |= dict.fromkeys(found)
    return sorted(paths)


def _texts(segment: str) -> list[str]:
    """The literal texts of a segment, with anything between them."""
    return _ANY.split(_SET.sub("*", segment))


def _fits(wanted: list[str], name: str) -> bool:
    first, *middle, last = wanted
    if name.startswith(".") and not first.startswith("."):
        return False
    if not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for text in middle:
        place = name.find(text, at, end)
        if place < 0:
            return False
        at = place + len(text)
    return at <= end
