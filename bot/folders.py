"""The folders of the bot: private ones for their owner alone, and what the agent works in apart from all the rest."""

from __future__ import annotations

import hashlib
import re
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import bot
import harness_core
from bot.config import Settings
from harness_core.errors import ConfigError, StoreError

DATABASE: Final = "harness.db"
LOCAL_DATABASE: Final = "local.db"  # of the local workspace
WORKSPACES: Final = "workspaces"  # a folder per session, in the data folder
OWNER_ONLY: Final = 0o700
# What the bot runs: its own two packages, wherever they were installed from, and the libraries beside them.
CODE: Final = (*(Path(path) for path in (*bot.__path__, *harness_core.__path__)), Path(sysconfig.get_path("purelib")))
KEPT: Final = (".env", "*.env")  # in the current folder: where tokens lie that the bot was started with


def ready(settings: Settings, policy: Path | None) -> None:
    """Make the folders that are missing. policy: the policy file in force. Raises ConfigError, StoreError, OSError."""
    keep_apart(settings, policy)
    private(settings.data)
    not_emptied(settings.data / DATABASE, settings.data / WORKSPACES)
    if not settings.workspace:
        private(settings.data / WORKSPACES)


def own_workspace(data: Path) -> Callable[[str], Path]:
    """A folder per session under the data folder. The name is readable, and no session id can lead out of it."""

    def folder(session_id: str) -> Path:
        readable = re.sub(r"[^A-Za-z0-9]+", "-", session_id).strip("-")[:60]
        return data / WORKSPACES / f"{readable}-{hashlib.sha256(session_id.encode()).hexdigest()[:12]}"

    return folder


def private(folder: Path) -> Path:
    """Make a folder that only its owner may enter, if it is not there. Raises OSError."""
    folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
    return folder


def not_emptied(database: Path, *others: Path) -> None:
    """Raise StoreError if the database is an empty file though something beside it shows that it was used: SQLite would
    begin it anew without a word. others: what shows it, files with anything in them or folders.
    """
    if not database.is_file() or database.stat().st_size:
        return
    for other in (*others, database.with_name(f"{database.name}-wal")):
        if any(other.iterdir()) if other.is_dir() else other.is_file() and other.stat().st_size:
            raise StoreError(
                f"{database} is empty, though {other.name} beside it shows that it was used. It was left as it is: "
                "restore it from a backup; without one, remove it, and the bot begins anew."
            )


def keep_apart(settings: Settings, policy: Path | None) -> None:
    """Raise ConfigError if the agent would work among the bot's own files: it could read what it must not know, and
    write what rules it. policy: the policy file in force.
    """
    if settings.workspace is None:
        return
    work, data = settings.workspace.resolve(), settings.data.resolve()
    if work == data or work in data.parents or data in work.parents:
        raise ConfigError(
            f"HARNESS_WORKSPACE ({work}) and the data folder ({data}) lie within each other, so the agent could write "
            "its own record. Choose folders that are apart."
        )
    for code in map(Path.resolve, CODE):
        if work == code or work in code.parents or code in work.parents:
            raise ConfigError(
                f"HARNESS_WORKSPACE ({work}) holds what the bot itself runs ({code}), so the agent could rewrite it. "
                "Choose another folder."
            )
    for what, path in _kept(settings, policy):
        if work in (path.resolve(), *path.resolve().parents):
            raise ConfigError(
                f"HARNESS_WORKSPACE ({work}) holds {what} ({path}), which the agent must not reach. Move that file "
                "away, or choose another folder."
            )


def _kept(settings: Settings, policy: Path | None) -> Iterator[tuple[str, Path]]:
    if policy:
        yield "the policy file", policy
    if settings.tools.endswith(".py"):
        yield "the tools of HARNESS_TOOLS", Path(settings.tools)
    if settings.hooks.endswith(".py"):
        yield "the hooks of HARNESS_HOOKS", Path(settings.hooks)
    if settings.agents:
        yield "the agents of HARNESS_AGENTS", settings.agents
    for path in kept_files():
        yield "settings of the bot", path


def kept_files() -> tuple[Path, ...]:
    """The files in the current folder that may hold what the bot was started with."""
    return tuple(path for pattern in KEPT for path in sorted(Path().absolute().glob(pattern)))
