"""What holds where no rule and no strategy speaks: what only reads inside the workspace runs, everything else asks."""

from __future__ import annotations

from harness_core.permissions.book import Book
from harness_core.permissions.paths import World, absolute
from harness_core.permissions.rules import unasked
from harness_core.permissions.strategies import ReadToolStrategy, WebToolStrategy, WriteToolStrategy
from harness_core.permissions.subjects import KINDS
from harness_core.session import Trace
from harness_core.types import Args, Inspection


def world_of(workspace: str, home: str, found: Inspection | None) -> World:
    """What a tool's `inspect` saw, for judging. workspace must be a real path.

    Without an inspection the paths count as looked for and not found: what rests on them asks.
    """
    if found is None:
        return World(workspace, home, paths=())
    real = tuple(absolute(path, workspace) for path in found.paths)
    return World(workspace, home, paths=real, git_runs=found.git_runs, addresses=found.addresses)


def unruled(rules: Book, args: Args, world: World, *, only_reads: bool) -> str | None:
    """Why the call asks where nothing else speaks; None lets it run. only_reads: what the tool says of itself."""
    try:
        return _reason(rules, args, world, only_reads=only_reads)
    except Exception as error:  # a fault of the gate must not become a permission
        return f"the call could not be judged ({type(error).__name__})"


def _reason(rules: Book, args: Args, world: World, *, only_reads: bool) -> str | None:
    tool = rules.tool
    here = lambda trace, given: world  # noqa: E731 (a strategy asks for the world of its call)
    if KINDS.get(tool) == "bash":
        verdict = unasked(rules, args, world)
        return None if verdict.effect == "allow" else verdict.reason
    if tool in ("read", "ls", "grep", "glob") and only_reads:
        return ReadToolStrategy(tool, here).evaluate(Trace(), args)
    if KINDS.get(tool) == "path":
        return WriteToolStrategy(tool, here).evaluate(Trace(), args)
    if KINDS.get(tool) == "url":
        return WebToolStrategy(tool).evaluate(Trace(), args)
    return None if only_reads else f"{tool} may change something"
