"""The built-in strategies: what a person is told when a command, a change of a file or a fetch is put to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from harness_core.permissions import urls
from harness_core.permissions.book import book
from harness_core.permissions.paths import World, aims_at_secret, placed, protected, secret, unusual, within
from harness_core.permissions.rules import unasked
from harness_core.permissions.subjects import paths_of, subject_of
from harness_core.session import Trace
from harness_core.types import Args

# Where nobody says which folder is the workspace, relative paths are inside of it and absolute ones are not.
UNNAMED: Final = World("/-/workspace", "/-/home")

WorldFor = Callable[[Trace, Args], World]


def _unnamed(trace: Trace, args: Args) -> World:
    return UNNAMED


@dataclass(frozen=True, slots=True)
class BashToolStrategy:
    """Asks for every command that is not known to read only, and only inside the workspace.

    world: what is known when a call is judged; the default knows no absolute path, and no symlink.
    """

    world: WorldFor = _unnamed
    tool: str = "bash"

    def evaluate(self, trace: Trace, args: Args) -> str | None:
        """The reason to ask, or None to let the command run."""
        try:
            verdict = unasked(book(trace.rules, self.tool), args, self.world(trace, args))
        except Exception as error:  # a fault of the gate must not become a permission
            return f"the command could not be judged ({type(error).__name__})"
        return None if verdict.effect == "allow" else verdict.reason


@dataclass(frozen=True, slots=True)
class WriteToolStrategy:
    """Asks for every change of a file, and says what is special about it."""

    tool: str = "write"
    world: WorldFor = _unnamed

    def evaluate(self, trace: Trace, args: Args) -> str | None:
        """The reason to ask; a change never runs without a rule."""
        paths = paths_of(args)
        if not paths:
            return f"{self.tool} names no plain path"
        try:
            return self._reason(paths, self.world(trace, args))
        except Exception as error:  # the reason is for people; the call asks in any case
            return f"the call could not be judged ({type(error).__name__})"

    def _reason(self, paths: list[str], world: World) -> str:
        for path in paths:
            if fault := unusual(path):
                return f"{self.tool} is asked about because {fault}"
            place = placed(path, world)
            if not within(place, world.workspace):
                return f"{path} lies outside the workspace"
            if protected(place[len(world.workspace) :]):
                return f"{path} can change what programs do later"
        return f"it changes {', '.join(paths)}"


@dataclass(frozen=True, slots=True)
class ReadToolStrategy:
    """Asks for files that may hold secrets, or that lie outside the workspace; other files are read unasked.

    glob: an argument by which a search chooses the files that it reads.
    """

    tool: str = "read"
    world: WorldFor = _unnamed

    def evaluate(self, trace: Trace, args: Args) -> str | None:
        """The reason to ask, or None to let it be read."""
        try:
            world = self.world(trace, args)
            paths = [args[key] for key in ("path", "file_path") if key in args] or ["."]
            if any(unusual(path.rstrip("/") or "/") for path in paths):
                return f"{self.tool} names no plain path"
            places = [placed(path, world) for path in paths]
        except Exception as error:  # a fault of the gate must not become a permission
            return f"the call could not be judged ({type(error).__name__})"
        if isinstance(chosen := args.get("glob"), str) and aims_at_secret(chosen):
            return f"{chosen} chooses files that may hold secrets"
        for place in (*places, *(world.paths or ())):
            if not within(place, world.workspace):
                return f"{place} lies outside the workspace"
            if secret(place[len(world.workspace) :]):
                return f"{place} may hold secrets"
        return None


@dataclass(frozen=True, slots=True)
class WebToolStrategy:
    """Asks for every fetch, and says which host it contacts."""

    tool: str = "webfetch"

    def evaluate(self, trace: Trace, args: Args) -> str | None:
        """The reason to ask; a fetch never runs without a rule."""
        text = subject_of("url", args)
        if text is None:
            return f"{self.tool} names no plain URL"
        try:
            url = urls.canonical_url(text)
        except urls.BadUrl as bad:
            return str(bad)
        where = "a private address" if urls.local(url.host) else "the network"
        return f"it contacts {url.host}, on {where}"
