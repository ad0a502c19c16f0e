"""Paths matched by patterns with `*`, `**`, `?`, `[…]` and `{a,b}`, folder by folder.  Pure.

A walk asks at each folder which parts of the pattern may come next, and so enters only folders that can hold a match.
The parts are counted, never guessed again: no pattern takes longer than its length times the path's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from harness_core.errors import ToolFailed
from harness_core.tools.clip import short

PATTERN_CHARS: Final = 500
ALTERNATIVES: Final = 64  # spellings that the braces of one pattern stand for

# Where a match may go on: (which alternative, which of its parts comes next).
State = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A pattern, taken apart: one tuple of parts for each alternative of its braces."""

    alternatives: tuple[tuple[str, ...], ...]

    def start(self) -> State:
        """Before the first folder."""
        return self._closed({(which, 0) for which in range(len(self.alternatives))})

    def after(self, state: State, name: str) -> State:
        """The state below a file or folder of this name; empty if nothing below can match."""
        reached = set()
        for which, at in state:
            parts = self.alternatives[which]
            if at < len(parts) and _fits(name, parts[at]):
                reached.add((which, at if parts[at] == "**" else at + 1))
        return self._closed(reached)

    def matched(self, state: State) -> bool:
        """Whether the path that led here is a match."""
        return any(at == len(self.alternatives[which]) for which, at in state)

    def _closed(self, reached: set[tuple[int, int]]) -> State:
        """With the states that follow for nothing: `**` also stands for no folder at all."""
        closed = set(reached)
        for which, at in reached:
            parts = self.alternatives[which]
            while at < len(parts) and parts[at] == "**":
                at += 1
                closed.add((which, at))
        return frozenset(closed)


def path_pattern(text: str, *, anywhere: bool = False) -> PathPattern:
    """Read a pattern relative to a folder.

    anywhere: one without a slash matches at any depth, as grep's `--include` does.
    Raises ToolFailed, in words for the model.
    """
    if not text or len(text) > PATTERN_CHARS or "\0" in text:
        raise ToolFailed(f"The pattern is empty, longer than {PATTERN_CHARS} characters, or holds a NUL character.")
    alternatives = []
    for spelling in _spelled(text):
        parts = _without_repeats(part for part in spelling.split("/") if part not in ("", "."))
        if spelling.startswith(("/", "~")) or ".." in parts or not parts:
            raise ToolFailed(f"{short(text)} is not relative to a folder. Give the folder as path, and no .. or ~.")
        alternatives.append(_without_repeats(("**", *parts)) if anywhere and "/" not in spelling else parts)
    return PathPattern(tuple(alternatives))


def _without_repeats(parts: Iterable[str]) -> tuple[str, ...]:
    """`**/**` says no more than `**`, and would cost more at every step."""
    kept: list[str] = []
    for part in parts:
        if part != "**" or kept[-1:] != ["**"]:
            kept.append(part)
    return tuple(kept)


def _fits(name: str, part: str) -> bool:
    """Whether a name matches one part. Hidden names want a part that begins with a dot, and .git wants its own name."""
    if name.startswith(".") and (not part.startswith(".") or (name == ".git" and part != ".git")):
        return False
    return part == "**" or fnmatchcase(name, part)


def _spelled(text: str) -> list[str]:
    """The spellings that `{a,b}` stands for. Braces without a comma, or without a partner, are characters."""
    done: list[str] = []
    pending = [text]
    while pending:
        spelling = pending.pop()
        group = _group(spelling)
        if group is None:
            done.append(spelling)
        else:
            start, end = group
            choices = spelling[start + 1 : end].split(",")
            pending += [spelling[:start] + choice + spelling[end + 1 :] for choice in reversed(choices)]
        if len(done) + len(pending) > ALTERNATIVES:
            raise ToolFailed(f"The braces of {short(text)} stand for more than {ALTERNATIVES} patterns.")
    return done


def _group(spelling: str) -> tuple[int, int] | None:
    """Where the first innermost `{…,…}` begins and ends."""
    start = -1
    for at, char in enumerate(spelling):
        if char == "{":
            start = at
        elif char == "}" and start >= 0:
            if "," in spelling[start:at]:
                return start, at
            start = -1
    return None
