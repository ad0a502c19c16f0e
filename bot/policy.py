"""The policy file in force: read at the start, and again when it has changed.  What cannot be read changes nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from bot.ids import is_slack_id
from harness_core.errors import ConfigError, shown
from harness_core.guards import guards_from
from harness_core.policy_file import NAME, PolicyFile, parse_policy

log = logging.getLogger(__name__)

Stamp = tuple[int, int, int]  # by which a changed file is known: when, how large, which


def default_path() -> Path | None:
    """The file that counts where no setting names one: in the current folder, as it is when one works on a policy."""
    return Path(NAME) if os.path.lexists(NAME) else None


class PolicyKeeper:
    """Keeps the policy file. path: None for none; tools: the tools that there are, or () where nobody knows.

    guards: what its `[guards]` table asks for. Raises ConfigError if the file is not there or cannot be used. Later
    changes that cannot be used leave the last good version in force; `fault` then says why.
    """

    def __init__(self, path: Path | None, tools: Iterable[str] = ()) -> None:
        self.path = path.absolute() if path else None
        self.fault = ""
        self._tools = frozenset(tools)
        self._stamp = self._met = self._stamped()
        self.file = PolicyFile()
        self.file = self._read()
        self.guards = guards_from(self.file.guards)

    def know(self, tools: Iterable[str]) -> None:
        """Tell which tools there are. Raises ConfigError if a rule names none of them: it would never match."""
        self._tools = frozenset(tools)
        self._check(self.file)

    def look(self) -> None:
        """Take up a changed file. Call it every few seconds: a file counts once it is the same at two looks, so that
        one that is being written is not read.
        """
        stamp, before = self._stamped(), self._met
        self._met = stamp
        if stamp == self._stamp or stamp != before:
            return
        self._stamp = stamp
        try:
            file = self._read()
            self.file, self.guards, self.fault = file, guards_from(file.guards), ""
            log.info("the policy file was read again: %s, %d rules", self.path, len(self.file.rules))
        except ConfigError as error:
            self.fault = str(error)
            log.error("the policy file cannot be used, so what it said before stays in force: %s", error)

    def _stamped(self) -> Stamp | None:
        try:
            found = self.path.stat() if self.path else None
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None

    def _read(self) -> PolicyFile:
        if self.path is None:
            return PolicyFile()
        try:
            text = self.path.read_text("utf-8")
        except OSError as error:
            raise ConfigError(f"The policy file {self.path} cannot be read: {error.strerror or error}.") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"The policy file {self.path} is no UTF-8 text.") from error
        if self.file.rules and not text.strip():  # a full disk leaves such a file; whoever means it writes a comment
            raise ConfigError(f"The policy file {self.path} is empty. To have no rules, leave a comment in it.")
        policy = parse_policy(text, str(self.path))
        self._check(policy)
        return policy

    def _check(self, policy: PolicyFile) -> None:
        if self._tools and (strangers := policy.strangers(self._tools)):
            raise ConfigError(
                f"{self.path} needs correcting:\n- there is no tool {', '.join(strangers)}; there are: "
                + ", ".join(sorted(self._tools))
            )
        named = {one.channel for one in policy.rules if one.channel}
        if wrong := sorted(one for one in named if not (is_slack_id(one) and one.isupper())):
            raise ConfigError(
                f"{self.path} needs correcting:\n- `channel` must be the id of a channel, as in C024BE91L, not "
                + ", ".join(map(shown, wrong))
            )
        guards_from(policy.guards, self._tools, str(self.path))
