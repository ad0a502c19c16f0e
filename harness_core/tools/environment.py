"""What a command gets of the host's environment: nothing that could run a program, and no secret."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harness_core.permissions.paths import within

# All that a command gets of the host's environment. A list of what is good: one of what is bad is never complete.
KEPT: Final = (
    "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE",
    "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME",
)  # fmt: skip
# A repository's own configuration can run programs for verbs that only read; these two ways are shut.
SET: Final = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": "4",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": "/dev/null",
    # Submodules are not entered, unless their own configuration says so, which is looked at before.
    "GIT_CONFIG_KEY_2": "diff.ignoreSubmodules",
    "GIT_CONFIG_VALUE_2": "all",
    "GIT_CONFIG_KEY_3": "submodule.recurse",
    "GIT_CONFIG_VALUE_3": "false",
    # To look for a newer pip, `pip list` runs `rustc --version`, and a workspace can say which rustc that is.
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "CHECKPOINT_DISABLE": "1",  # terraform's look for a newer one, at `terraform version`
}
USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_environment(host: Mapping[str, str], workspace: Path) -> dict[str, str]:
    """What a command sees of the host's environment: KEPT, SET, and a PATH that leads nowhere near the workspace."""
    return {k: host[k] for k in KEPT if k in host} | SET | {"PATH": program_path(host, workspace)}


def program_path(host: Mapping[str, str], workspace: Path | None = None) -> str:
    """The folders in which programs are sought: none that is relative, none inside the workspace, not by a link."""
    folders = [folder for folder in host.get("PATH", USUAL_PATH).split(os.pathsep) if os.path.isabs(folder)]
    if workspace is not None:
        root = os.path.realpath(workspace)
        folders = [folder for folder in folders if not within(os.path.realpath(folder), root)]
    return os.pathsep.join(folders) or USUAL_PATH
