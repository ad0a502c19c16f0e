"""The tools that read, write, edit and list files of the workspace."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from harness_core.errors import ToolFailed
from harness_core.ports import ToolContext
from harness_core.tools.clip import short
from harness_core.tools.confined import Place, contents, existing, folder, in_thread, inside, replace, resolved
from harness_core.tools.diff import DIFF_CHARS, unified
from harness_core.tools.spec import tool
from harness_core.types import ABSENT, Args, Inspection

READ_LINES: Final = 2_000  # of one read
READ_CHARS: Final = 90_000  # of one read; below the cap of a result, so that the note survives
LIST_ENTRIES: Final = 1_000  # of one ls


def _usable(path: str) -> str:
    if not path:
        raise ValueError("the path is empty")
    if "\0" in path:
        raise ValueError("a path cannot hold a NUL character")
    if path.startswith("~"):
        raise ValueError("~ is not expanded; give a path in the workspace")
    return path


PathArgument = Annotated[str, AfterValidator(_usable)]

# -- the tools ---------------------------------------------------------------------------------------------------------


def path_of(args: Args) -> str:
    """The path that a call names: the workspace itself if it names none."""
    return str(args.get("path", "."))


async def inspect_path(args: Args, context: ToolContext) -> Inspection:
    """Where the path that a call names really leads."""
    return await in_thread(lambda: _seen(context.workspace, path_of(args)))


async def _inspect_write(args: Args, context: ToolContext) -> Inspection:
    return await in_thread(lambda: _foreseen(context.workspace, args["path"], lambda _: args["content"]))


async def _inspect_edit(args: Args, context: ToolContext) -> Inspection:
    def change(current: bytes | None) -> str:
        return _edited(current, args["path"], args["old"], args["new"], args.get("all", False))[0]

    return await in_thread(lambda: _foreseen(context.workspace, args["path"], change))


@tool(read_only=True, subject="path", inspect=inspect_path)
async def read(
    path: PathArgument,
    context: ToolContext,
    offset: Annotated[int, Field(ge=1)] = 1,
    limit: Annotated[int, Field(ge=1, le=READ_LINES)] = READ_LINES,
) -> str:
    """Read a text file of the workspace. Long files come in pieces; the last line then says how to go on.

    path: the file, relative to the workspace
    offset: the first line to return, counted from 1
    limit: how many lines to return at most
    """
    data = await in_thread(lambda: contents(inside(context.workspace, path)))
    if data is None:
        raise ToolFailed(f"{short(path)} does not exist.")
    return _lines(data, path, offset, limit)


@tool(subject="path", inspect=_inspect_write)
async def write(path: PathArgument, content: str, context: ToolContext) -> str:
    """Write a text file of the workspace, whole: a file that is there is replaced. Folders are made as needed.

    path: the file, relative to the workspace
    content: the whole new content
    """

    def work() -> bool:
        place = inside(context.workspace, path)
        existed = existing(place) is not None
        replace(place, content.encode("utf-8"))
        return existed

    existed = await in_thread(work)
    return f"{'Replaced' if existed else 'Created'} {short(path)}: {_count(content)}."


@tool(subject="path", inspect=_inspect_edit)
async def edit(path: PathArgument, old: str, new: str, context: ToolContext, all: bool = False) -> str:
    """Replace a piece of a text file of the workspace. The old text must match exactly, and once unless `all` is true.

    path: the file, relative to the workspace
    old: the text that is there now, with enough around it to be unique
    new: the text to put in its place
    all: replace every occurrence
    """

    def work() -> int:
        place = inside(context.workspace, path)
        text, times = _edited(contents(place), path, old, new, all)
        replace(place, text.encode("utf-8"))
        return times

    times = await in_thread(work)
    return f"Edited {short(path)}: replaced {times:,} {'occurrence' if times == 1 else 'occurrences'}."


@tool(read_only=True, subject=path_of, inspect=inspect_path)
async def ls(context: ToolContext, path: PathArgument = ".") -> str:
    """List a folder of the workspace: folders end in /, symlinks in @, files come with their size in bytes.

    path: the folder, relative to the workspace
    """
    return await in_thread(lambda: _listed(inside(context.workspace, path)))


# -- reading -----------------------------------------------------------------------------------------------------------


def _lines(data: bytes, path: str, offset: int, limit: int) -> str:
    if not data:
        return "(empty file)"
    if b"\0" in data:
        raise ToolFailed(f"{short(path)} is a binary file of {len(data):,} bytes, not text.")
    text = data.decode("utf-8", "replace")
    lines = text.removesuffix("\n").split("\n")
    if offset > len(lines):
        raise ToolFailed(f"{short(path)} has only {len(lines):,} lines.")
    chosen: list[str] = []
    size = 0
    for line in lines[offset - 1 : offset - 1 + limit]:
        size += len(line) + 1
        if size > READ_CHARS and chosen:
            break
        chosen.append(line)
    notes = []
    if len(chosen[0]) > READ_CHARS:
        notes.append(f"[line {offset} is cut: {len(chosen[0]) - READ_CHARS:,} more characters]")
        chosen[0] = chosen[0][:READ_CHARS]
    after = offset + len(chosen)
    if after <= len(lines):
        notes.append(f"[{len(lines) - after + 1:,} more lines; go on with offset={after}]")
    if "\N{REPLACEMENT CHARACTER}" in text and not _is_text(data):
        notes.append("[not all of it is UTF-8; other bytes are shown as \N{REPLACEMENT CHARACTER}]")
    return "\n".join(chosen + notes)


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _listed(place: Place) -> str:
    with contextlib.ExitStack() as stack:
        try:
            fd = stack.enter_context(folder(place, place.names))
        except NotADirectoryError:
            raise ToolFailed(f"{short(place.called)} is not a folder.") from None
        entries: list[str] = []
        more = 0
        for entry in stack.enter_context(os.scandir(fd)):
            if len(entries) < LIST_ENTRIES:
                entries.append(_entry(entry))
            else:
                more += 1
    note = [f"[{more:,} more entries]"] if more else []
    return "\n".join(sorted(entries) + note) or "(empty folder)"


def _entry(entry: os.DirEntry[str]) -> str:
    name = entry.name if entry.name.isprintable() else ascii(entry.name)
    if entry.is_symlink():
        return f"{name}@"
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    return f"{name}  {entry.stat(follow_symlinks=False).st_size}"


# -- writing -----------------------------------------------------------------------------------------------------------


def _edited(current: bytes | None, path: str, old: str, new: str, every: bool) -> tuple[str, int]:
    """(the text after the edit, how many places changed)."""
    if current is None:
        raise ToolFailed(f"{short(path)} does not exist. Use write to create it.")
    if not _is_text(current):
        raise ToolFailed(f"{short(path)} is not UTF-8 text; an edit would damage it.")
    if not old:
        raise ToolFailed("The old text is empty. Give the text to replace, or use write.")
    if old == new:
        raise ToolFailed("The old and the new text are the same: nothing would change.")
    text = current.decode("utf-8")
    times = text.count(old)
    if not times:
        hint = " The file ends its lines with \\r\\n." if "\r\n" in text and "\n" in old and "\r" not in old else ""
        raise ToolFailed(f"The old text is not in {short(path)}. Read the file and copy the text exactly.{hint}")
    if times > 1 and not every:
        raise ToolFailed(
            f"The old text is in {short(path)} {times:,} times. Give more of what stands around it, or set all to true."
        )
    return text.replace(old, new), times


def _count(content: str) -> str:
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    return f"{lines:,} {'line' if lines == 1 else 'lines'}, {len(content.encode()):,} bytes"


# -- looking first -----------------------------------------------------------------------------------------------------


def _seen(workspace: Path, path: str) -> Inspection:
    try:
        return Inspection(paths=(inside(workspace, path).relative,))
    except ToolFailed as error:
        return Inspection(paths=(resolved(workspace, path)[1],), outside=True, problem=str(error))


def _foreseen(workspace: Path, path: str, change: Callable[[bytes | None], str]) -> Inspection:
    """What a change of a file would do: where, to what, and the whole diff."""
    seen = _seen(workspace, path)
    if seen.problem:
        return seen
    try:
        current = contents(inside(workspace, path))
        after = change(current)
    except ToolFailed as error:
        return Inspection(paths=seen.paths, problem=str(error))
    digest = ABSENT if current is None else hashlib.sha256(current).hexdigest()
    preview = _preview(current, after, seen.paths[0])
    if len(preview) > DIFF_CHARS:  # a diff that was cut must not stand for the call: the arguments themselves do
        return Inspection(paths=seen.paths, digests=(digest,))
    told = ("content", "old", "new", *(("path",) if os.path.normpath(path) == seen.paths[0] else ()))
    return Inspection(preview, "diff", seen.paths, digests=(digest,), covers=told)


def _preview(current: bytes | None, after: str, path: str) -> str:
    if current is None or _is_text(current):
        return unified(None if current is None else current.decode(), after, path)
    note = f"[the file that is there now is binary, {len(current):,} bytes; all of it is replaced]\n"
    return note + unified(None, after, path)
