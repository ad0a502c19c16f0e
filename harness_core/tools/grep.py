"""Find lines in files of the workspace.

Patterns are RE2's (google-re2): its time grows with the pattern times the line and no further, whatever the pattern is,
where Python's `re` can be made to think for years in a thread that nobody can end. The price is that there are neither
look-around nor backreferences. It lets go of the interpreter while it matches, so other sessions do not wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import re2  # type: ignore[import-untyped]
from pydantic import Field

from harness_core.errors import ToolFailed
from harness_core.ports import ToolContext
from harness_core.tools.clip import short
from harness_core.tools.confined import Place, contents, existing, inside
from harness_core.tools.files import PathArgument, inspect_path, path_of
from harness_core.tools.patterns import PathPattern, path_pattern
from harness_core.tools.spec import tool
from harness_core.tools.walk import Budget, Found, Spent, search, walk

REGEX_CHARS: Final = 1_000
REGEX_MEMORY: Final = 4 << 20  # bytes, for the pattern and its automaton
REGEX_PROGRAM: Final = 5_000  # instructions; about a second for the longest line, in which nothing can interrupt
LINE_BYTES: Final = 20_000  # of a line that are searched
LINE_CHARS: Final = 300  # of a line that are shown
GREP_LINES: Final = 500  # matches of one result
GREP_CHARS: Final = 40_000  # of one result
CONTEXT_LINES: Final = 10

_ALL: Final = "**"


@tool(read_only=True, subject=path_of, inspect=inspect_path)
async def grep(
    pattern: str,
    context_: ToolContext,
    path: PathArgument = ".",
    glob: str | None = None,
    ignore_case: bool = False,
    context: Annotated[int, Field(ge=0, le=CONTEXT_LINES)] = 0,
) -> str:
    """Find the lines that match a regular expression, in the text files of the workspace.

    Results read path:line: text. Symlinks are not followed; binary and hidden files are skipped (.git too), unless
    path or glob names them.
    pattern: a regular expression (RE2: no look-around, no backreferences), matched line by line
    path: the folder or file to search, relative to the workspace
    glob: only files whose name matches, like *.py or src/**/*.{ts,tsx}; without a slash it holds in every folder
    ignore_case: take upper and lower case for the same
    context: lines to show before and after each match
    """
    wanted = path_pattern(_ALL if glob is None else glob, anywhere=True)

    def work(budget: Budget) -> str:
        report = _Report(_compiled(pattern, ignore_case), context, budget)
        try:
            _search(inside(context_.workspace, path), wanted, report, budget)
        except Spent as spent:
            report.notes.append(f"[{spent}]")
        return report.text()

    return await search(context_, work)


def _compiled(pattern: str, ignore_case: bool) -> Any:
    if not pattern or len(pattern) > REGEX_CHARS or "\n" in pattern:
        raise ToolFailed(
            f"The pattern must be one line of at most {REGEX_CHARS:,} characters; lines are matched alone."
        )
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.max_mem = REGEX_MEMORY
    options.never_capture = True
    try:
        regex = re2.compile(pattern.encode(), options)
    except re2.error as error:
        raise ToolFailed(
            f"The pattern cannot be used: {_why(error)}. It is RE2 syntax, without look-around and backreferences."
            " Put a backslash before characters that are meant literally, like ( [ { . *"
        ) from error
    finally:
        re2.purge()  # it would keep the last 128 patterns, with REGEX_MEMORY each
    if regex.programsize > REGEX_PROGRAM:
        raise ToolFailed("The pattern is too complex. Use smaller repeat counts, or several searches.")
    return regex


def _why(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return short(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason), 200)


def _search(top: Place, wanted: PathPattern, report: _Report, budget: Budget) -> None:
    if _is_file(top):
        report.file(Found(top, "file"))
        return
    for found in walk(top, wanted, budget):
        if found.kind == "file":
            report.file(found)


def _is_file(place: Place) -> bool:
    try:
        return existing(place) is not None
    except (ToolFailed, OSError):  # a folder, or nothing: the walk says which
        return False


@dataclass
class _Report:
    """What was found so far."""

    regex: Any
    context: int
    budget: Budget
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    matches: int = 0
    chars: int = 0
    cut: int = 0  # lines of which only a part was searched

    def file(self, found: Found) -> None:
        """Search one file. What cannot be read is counted, what is no text is passed over."""
        try:
            data = contents(found.place)
        except (ToolFailed, OSError):
            self.budget.skipped += 1
            return
        self.budget.read(len(data or b""))
        if data and b"\0" not in data:
            self._lines(found.shown, data.removesuffix(b"\n").split(b"\n"))

    def _lines(self, path: str, lines: list[bytes]) -> None:
        shown = -1  # the last line of this file that stands in the report
        due = -1  # context is shown up to here
        for at, line in enumerate(lines):
            self.budget.step()
            match = self.regex.search(self._searched(line))
            if match is None:
                if at <= due:
                    self._show(path, at, line, "-")
                    shown = at
                continue
            self.matches += 1
            if self.matches > GREP_LINES:
                raise Spent(f"more than {GREP_LINES:,} matches; narrow the pattern, the folder or the glob")
            first = max(at - self.context, shown + 1)
            if self.context and self.lines and (first > shown + 1 or shown < 0):
                self.lines.append("--")
            for before in range(first, at):
                self._show(path, before, lines[before], "-")
            self._show(path, at, line, ":", match.start())
            shown, due = at, at + self.context

    def _searched(self, line: bytes) -> bytes:
        if len(line) > LINE_BYTES:
            self.cut += 1
            return line[:LINE_BYTES]
        return line.removesuffix(b"\r")

    def _show(self, path: str, at: int, line: bytes, mark: str, start: int = 0) -> None:
        text = f"{path}{mark}{at + 1}{mark} {_excerpt(line, start)}"
        self.chars += len(text) + 1
        if self.chars > GREP_CHARS:
            raise Spent("there is more; narrow the pattern, the folder or the glob")
        self.lines.append(text)

    def text(self) -> str:
        notes = list(self.notes)
        if self.budget.skipped:
            notes.append(f"[{self.budget.skipped:,} files or folders could not be searched, or are too large]")
        if self.cut:
            notes.append(f"[{self.cut:,} lines were searched in their first {LINE_BYTES:,} bytes only]")
        return "\n".join((self.lines or ["(nothing matches)"]) + notes)


def _excerpt(line: bytes, start: int) -> str:
    """The line as it is shown: a long one around the byte where the match starts."""
    first = max(0, start - LINE_CHARS // 3) if len(line) > LINE_CHARS else 0
    # Four bytes are the longest character, so this much is enough, and a long line is not decoded whole.
    text = line[first : first + 4 * LINE_CHARS].decode("utf-8", "replace").rstrip("\r")
    more = len(text) > LINE_CHARS or first + 4 * LINE_CHARS < len(line)
    return ("…" if first else "") + text[:LINE_CHARS] + ("…" if more else "")
