"""Run one shell command: a fresh bash, a clean environment, an end that nothing outlives.

A verdict "this only reads" is true only for the shell that runs it here: no start-up files, no terminal, no input, and
nothing in the environment that could run a program or carry a secret. The text that was judged is the text that runs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator

from harness_core.errors import ToolFailed
from harness_core.permissions import globs
from harness_core.permissions.lookups import needs
from harness_core.permissions.paths import World
from harness_core.permissions.shell import read
from harness_core.ports import ToolContext
from harness_core.tools.environment import clean_environment
from harness_core.tools.process import Argv, Bare, Boxed, Output, Process
from harness_core.tools.repository import runs
from harness_core.tools.sandbox import SCRATCH, WHERE_IT_WORKS, Boundary, Sandbox
from harness_core.tools.spec import FunctionTool, tool
from harness_core.types import NO_OUTPUT, Args, Inspection, ToolResult

BASH_SECONDS: Final = 120.0  # of one command, or less if the deadline is nearer
ENGINE_SECONDS: Final = 5.0  # that the engine waits longer, so that it is the tool that says what was killed
OUTPUT_CHARS: Final = 30_000  # of one result; head and tail are kept
HOME: Final = os.path.realpath(os.path.expanduser("~"))
MATCHES: Final = 1_000  # of all globs of a command; one that may name more asks
NAMES: Final = 50_000  # that are looked through for them, likewise
DRAIN: Final = 0.25  # seconds to read on after the shell ended, while something it left behind keeps the pipe open


def _one_string(command: str) -> str:
    if "\0" in command:
        raise ValueError("a command cannot hold a NUL character")
    if not command.strip():
        raise ValueError("the command is empty")
    return command


async def _look(args: Args, context: ToolContext) -> Inspection:
    """Where the paths of a command really lead, and what the repository's own configuration would run."""
    return await asyncio.to_thread(_seen, str(args["command"]), context.workspace)


def _seen(command: str, workspace: Path) -> Inspection:
    root = os.path.realpath(workspace)
    wanted = needs(read(command), World(root, HOME))
    matched = globs.matched(wanted.globs, _names, NAMES)
    if matched is None or len(matched) > MATCHES:
        return Inspection()  # it names more paths than are known: it asks
    paths = tuple(os.path.realpath(path) for path in (*wanted.paths, *matched))
    return Inspection(paths=paths, git_runs=runs(root, HOME) if wanted.git else "")


def _names(folder: str) -> Sequence[str]:
    """What a folder holds; nothing where bash cannot look into it either."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, NAMES + 1)]
    except OSError:
        return ()


async def _never(session_id: str) -> bool:
    return False


def bash_tool(sandbox: Sandbox = WHERE_IT_WORKS, network: Callable[[str], Awaitable[bool]] = _never) -> FunctionTool:
    """The tool `bash`.

    sandbox: what its commands are boxed in. network: whether those of a session may reach the network from there.
    """

    @tool(subject="command", timeout=BASH_SECONDS + ENGINE_SECONDS, inspect=_look)
    async def bash(command: Annotated[str, AfterValidator(_one_string)], context: ToolContext) -> ToolResult:
        """Run a command with bash in the workspace folder and return its output and exit code.

        Each call is a fresh shell: working directory and variables do not carry over, and nothing may be left in the
        background. There is no terminal and no input, and perhaps no network. Standard output and error come merged;
        very long output loses its middle.
        command: the command line, as bash reads it
        """
        seconds = context.deadline.left(context.clock.monotonic(), own=BASH_SECONDS)
        environment = clean_environment(os.environ, context.workspace)
        boundary = await sandbox.boundary(environment["PATH"])
        online = await network(context.session_id)
        with Output(OUTPUT_CHARS) as output:
            shell = _started(command, context.workspace, environment, output, sandbox, boundary, online)
            try:
                in_time = await shell.ends_within(seconds)
                if in_time:
                    await output.ends_within(DRAIN)
            finally:
                await shell.kill()
            note = "" if in_time else f"[killed: it took longer than {seconds:g} seconds]"
            return _report(output.text(), shell.exit_code, note)

    return bash


bash = bash_tool()


def _started(
    command: str,
    workspace: Path,
    environment: Mapping[str, str],
    output: Output,
    sandbox: Sandbox,
    boundary: Boundary,
    online: bool,
) -> Process:
    """A fresh bash that runs this text and nothing else. Raises ToolFailed."""
    program = shutil.which("bash", path=environment["PATH"])
    if program is None:
        raise ToolFailed("There is no bash on this machine.")
    # `--`, so that a command that begins with a dash is a command too. Bytes, so that no locale encodes them anew.
    argv: Argv = [program, "--noprofile", "--norc", "-c", "--", command.encode("utf-8")]
    if boundary.program:
        path = environment["PATH"]
        boxed = sandbox.argv(boundary.program, argv, workspace, path=path, network=online)
        return Boxed.start(boxed, workspace, {**environment, "TMPDIR": SCRATCH[0]}, output)
    if boundary.refuses:
        raise ToolFailed(f"Nothing was run: commands need a sandbox here, and {boundary.missing}.")
    return Bare.start(argv, program, workspace, environment, output)


def _report(output: str, code: int, note: str) -> ToolResult:
    lines = [output.removesuffix("\n") or NO_OUTPUT, *filter(None, [note]), f"exit code {code}"]
    return ToolResult("\n".join(lines), "ok" if code == 0 and not note else "error")
