"""Where the parts of a command run, and what must be looked up in the world before it is judged."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from harness_core.permissions.paths import World, absolute, secret, within
from harness_core.permissions.shell import Reading
from harness_core.permissions.spelling import base_name
from harness_core.permissions.words import literal

# Programs that read what a folder holds that they are given; the others take files, or do not follow its symlinks.
_OPENING: Final = frozenset({"diff"})


@dataclass(frozen=True, slots=True)
class Needs:
    """What must be looked up before a command is judged: real paths, what globs match, the repository's settings.

    paths are absolute, `..` not yet taken away; globs are patterns as bash reads them, each with the folder it is in.
    """

    paths: tuple[str, ...] = ()
    globs: tuple[tuple[str, str], ...] = ()
    git: bool = False


def folders(reading: Reading, world: World) -> list[tuple[str, ...]]:
    """The folders in which each part may run: `cd` moves what follows, and if it fails only && keeps the rest back."""
    here = (world.workspace,)
    target = moved(reading, world)
    if target is None:
        return [here for _ in reading.commands]
    places: list[tuple[str, ...]] = [here]
    certain = not reading.commands[0].negated
    for part in reading.commands[1:]:
        certain = certain and part.joined in ("&&", "|")
        places.append((target,) if certain else (*here, target))
    return places


def moved(reading: Reading, world: World) -> str | None:
    """The folder that a leading `cd` goes to; None if there is no such `cd` or it stays in the workspace's own."""
    words = reading.commands[0].words
    if words[0].text != "cd" or len(words) != 2 or words[1].glob:
        return None
    if len(reading.commands) > 1 and reading.commands[1].joined == "|":
        return None  # in a pipeline it moves nobody else
    target = absolute(words[1].text, world.workspace)
    return None if target == world.workspace else target


def needs(reading: Reading, world: World) -> Needs:
    """What to look up for a command: every word that may be a path inside the workspace, and names no secret.

    Other words are judged by their looks: as text, or as a path that is not read unasked.
    """
    if reading.problem:
        return Needs()
    paths: dict[str, None] = {}
    globs: dict[tuple[str, str], None] = {}
    for part, places in zip(reading.commands, folders(reading, world), strict=True):
        options = True
        for word in (*part.words[1:], *(redirect.target for redirect in part.redirects)):
            options = options and word.text != "--"
            for folder in places:
                if word.glob:
                    globs[(folder, word.pattern)] = None
                if part.words[0].text in _OPENING and not word.text.startswith("-"):
                    globs |= dict.fromkeys(
                        (folder, f"{word.pattern or literal(word.text)}/{held}") for held in ("*", ".*")
                    )
                for text in pieces(word.text) if options else (word.text, *pieces(word.text)):
                    path = absolute(text, folder)
                    if text and within(path, world.workspace) and not secret(path[len(world.workspace) :]):
                        paths[posixpath.join(folder, text)] = None
    git = any(base_name(word.text) == "git" for part in reading.commands for word in part.words)
    return Needs(tuple(paths), tuple(globs), git)


def pieces(text: str) -> Iterable[str]:
    """A word, and the parts of it that may be paths of their own: `--file=PATH`, `-fPATH`, `REV:PATH`."""
    if not text:
        return []
    found = [text] if not text.startswith("-") else []
    if text.startswith("-") and not text.startswith("--") and len(text) > 2:
        found.append(text[2:])
    for mark in "=:":
        if mark in text:
            found.append(text.partition(mark)[2])
    return [piece for piece in found if piece]
