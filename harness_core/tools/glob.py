"""Find files of the workspace by their names."""

from __future__ import annotations

from typing import Final

from harness_core.ports import ToolContext
from harness_core.tools.confined import inside
from harness_core.tools.files import PathArgument, inspect_path, path_of
from harness_core.tools.patterns import path_pattern
from harness_core.tools.spec import tool
from harness_core.tools.walk import Budget, Found, Kind, Spent, search, walk

GLOB_PATHS: Final = 1_000  # of one result

_MARK: Final[dict[Kind, str]] = {"file": "", "folder": "/", "link": "@", "other": ""}  # as ls shows them


@tool(read_only=True, subject=path_of, inspect=inspect_path)
async def glob(pattern: str, context: ToolContext, path: PathArgument = ".") -> str:
    """Find files and folders of the workspace by name. Folders end in /, symlinks in @ and are not followed.

    Hidden ones are left out unless a part of the pattern begins with a dot (.git: unless it is named).
    pattern: relative to path; * and ? stay in one folder, ** crosses folders: *.py is here, **/*.py everywhere,
      src/**/*.{ts,tsx} below src
    path: the folder to search, relative to the workspace
    """
    wanted = path_pattern(pattern)

    def work(budget: Budget) -> str:
        paths: list[str] = []
        notes: list[str] = []
        try:
            for found in walk(inside(context.workspace, path), wanted, budget):
                _keep(found, paths)
        except Spent as spent:
            notes.append(f"[{spent}]")
        if budget.skipped:
            notes.append(f"[{budget.skipped:,} folders could not be searched]")
        return "\n".join((paths or ["(nothing matches)"]) + notes)

    return await search(context, work)


def _keep(found: Found, paths: list[str]) -> None:
    if len(paths) == GLOB_PATHS:
        raise Spent(f"more than {GLOB_PATHS:,} matches; narrow the pattern")
    paths.append(found.shown + _MARK[found.kind])
