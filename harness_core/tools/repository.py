"""Which programs a repository's own configuration would run for verbs of git that only look."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from harness_core.permissions.git import ABOVE, GIT_RUNS
from harness_core.tools.environment import clean_environment

SECONDS: Final = 5  # that one question to git may take
MOST: Final = 20  # repositories within each other that are looked at; with more of them git asks
SETTINGS: Final = ("config", "--includes", "--show-scope", "--name-only", "--get-regexp", GIT_RUNS)
FILES: Final = ("ls-files", "-z", "--stage", "--", ":/")
SUBMODULE: Final = b"160000 "  # how an entry of the index begins that is another repository


class _Unreadable(Exception):
    """What git does not say counts as if it ran something."""


def runs(root: str, home: str) -> str:
    """The first key of the configuration of the repository here, or of one of its submodules, that runs a program, or
    "". What cannot be read counts. ABOVE where the repository begins above this folder.

    What the machine and its user set up elsewhere is theirs; it is the agent's if their home is the workspace.
    """
    environment = {**clean_environment(os.environ, Path(root)), "LC_ALL": "C"}
    program = shutil.which("git", path=environment["PATH"])
    if program is None:
        return ""
    theirs = {"system", "command"} if f"{home}/".startswith(f"{root}/") else {"system", "command", "global"}
    left, seen = [root], {root}
    try:
        if _begins_above(program, root, environment):
            return ABOVE
        while left:
            folder = left.pop()
            if key := _key(program, folder, environment, theirs):
                return key
            for found in _submodules(program, folder, environment):
                if found not in seen:
                    seen.add(found)
                    left.append(found)
                if len(seen) > MOST:
                    return "unreadable (too many submodules)"
    except _Unreadable as problem:
        return str(problem)
    return ""


def _begins_above(program: str, root: str, environment: Mapping[str, str]) -> bool:
    done = _asked([program, "rev-parse", "--show-toplevel"], root, environment)
    return done.returncode == 0 and os.path.realpath(os.fsdecode(done.stdout.removesuffix(b"\n"))) != root


def _key(program: str, folder: str, environment: Mapping[str, str], theirs: set[str]) -> str:
    done = _asked([program, *SETTINGS], folder, environment)
    if done.returncode not in (0, 1):  # 1: nothing found
        raise _Unreadable("unreadable")
    found = [line.partition("\t") for line in done.stdout.decode(errors="replace").splitlines()]
    return next((key for scope, _, key in found if scope not in theirs), "")


def _submodules(program: str, folder: str, environment: Mapping[str, str]) -> Iterator[str]:
    """The folders of the repository's index that are repositories themselves, and are there."""
    done = _asked([program, *FILES], folder, environment)
    if done.returncode and b"not a git repository" not in done.stderr:
        raise _Unreadable("unreadable")
    for entry in done.stdout.split(b"\0"):
        head, _, name = entry.partition(b"\t")
        path = os.path.join(folder, os.fsdecode(name))
        if head.startswith(SUBMODULE) and os.path.lexists(os.path.join(path, ".git")):
            yield os.path.realpath(path)


def _asked(argv: Sequence[str], folder: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise _Unreadable(f"unreadable ({type(error).__name__})") from error
