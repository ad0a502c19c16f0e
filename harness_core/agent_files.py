"""Reads a folder of agent files.  What they mean is `agents`' matter."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from harness_core.agents import Agent, parse_agents
from harness_core.errors import ConfigError

LARGEST: Final = 200_000  # bytes of one file; what is longer is no prompt
MOST: Final = 100  # files of one folder: the description of one tool names every agent


def read_agents(folder: Path, tools: Collection[str]) -> tuple[Agent, ...]:
    """The agents of the `*.md` files that lie in this folder. tools: the names of all that there are.

    Raises ConfigError if the folder or a file cannot be read, and for all that is wrong in the files, in one error.
    """
    try:
        found = sorted(file for file in folder.iterdir() if file.suffix == ".md" and not file.name.startswith("."))
        if len(found) > MOST:
            raise ConfigError(f"There are {len(found)} agent files in {folder}; {MOST} at most.")
        if odd := [file.name for file in found if not file.is_file()]:  # reading a pipe would wait for ever
            raise ConfigError(f"The agents in {folder} cannot be read: {', '.join(odd)} is no file.")
        return parse_agents({file.name: _text(file) for file in found}, tools)
    except OSError as error:
        raise ConfigError(f"The agents in {folder} cannot be read: {error.strerror or error}.") from error


def _text(file: Path) -> str:
    with file.open("rb") as opened:
        content = opened.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ConfigError(f"{file} is too long for an agent file: {LARGEST:,} bytes at most.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8: {error.reason} at byte {error.start}.") from error
