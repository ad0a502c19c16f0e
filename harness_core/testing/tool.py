"""A tool that only remembers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness_core.errors import ToolFailed
from harness_core.ports import Clock, ToolContext, ToolSpec
from harness_core.testing.clock import FakeClock, Milestones, Waitable
from harness_core.types import NO_DEADLINE, Args, Inspection, ToolResult, canonical

ANY_ARGUMENTS: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": True}

Says = str | ToolResult | Callable[[Args], "str | ToolResult"]


class RecordingTool:
    """A Tool that only remembers. By default it is neither read-only nor repeatable, and takes any arguments.

    runs: the effective arguments of every run, in order; contexts: where and until when. started: the same as
    milestones. killed: how many runs were cancelled.
    """

    def __init__(
        self,
        name: str,
        *,
        read_only: bool | Callable[[Args], bool] = False,
        repeatable: bool | Callable[[Args], bool] = False,
        result: Says = "done",
        schema: Mapping[str, Any] = ANY_ARGUMENTS,
        description: str = "",
        subject: str = "",
        timeout: float = 60.0,
        hold: Waitable | None = None,
        fails: str | Exception | None = None,
        inspect: Callable[[Args], Inspection] | None = None,
        ledger: Path | None = None,
        return_direct: bool = False,
    ) -> None:
        """result: what a run brings, or a function of the arguments. subject: the argument that rules match, "" for
        all of them as canonical JSON. timeout: seconds. hold: a run waits for it. fails: the text of a ToolFailed, or
        any exception. inspect: without it there is nothing to inspect. ledger: a file that gets a line of JSON per run
        before anything else happens, so that runs can be counted across processes. return_direct: see ports.Tool.
        """
        self.spec = ToolSpec(name, description or f"The {name} tool.", schema)
        self.inspects = inspect is not None
        self.timeout = timeout
        self.return_direct = return_direct
        self.result, self.hold, self.fails, self.ledger = result, hold, fails, ledger
        self.runs: list[Args] = []
        self.contexts: list[ToolContext] = []
        self.started = Milestones()
        self.killed = 0
        self._read_only, self._repeatable, self._subject, self._inspect = read_only, repeatable, subject, inspect

    def check(self, args: Args) -> str:
        """Required, unknown and wrongly typed arguments, at the top level of the schema."""
        return misfit(self.spec.schema, args)

    def read_only(self, args: Args) -> bool:
        """As given."""
        return self._read_only(args) if callable(self._read_only) else self._read_only

    def repeatable(self, args: Args) -> bool:
        """As given."""
        return self._repeatable(args) if callable(self._repeatable) else self._repeatable

    def subject(self, args: Args) -> str:
        """The argument named as subject, or the canonical arguments."""
        return str(args.get(self._subject, "")) if self._subject else canonical(args)

    async def inspect(self, args: Args, context: ToolContext) -> Inspection:
        """What the given function says of these arguments."""
        return self._inspect(args) if self._inspect else Inspection()

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Remember, wait for `hold`, fail or bring the result."""
        self._remember(args, context)
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.killed += 1
                raise
        if self.fails is not None:
            raise ToolFailed(self.fails) if isinstance(self.fails, str) else self.fails
        brought = self.result(args) if callable(self.result) else self.result
        return ToolResult(brought) if isinstance(brought, str) else brought

    def _remember(self, args: Args, context: ToolContext) -> None:
        if self.ledger is not None:
            with self.ledger.open("a", encoding="utf-8") as file:
                file.write(canonical(args) + "\n")
        self.runs.append(dict(args))
        self.contexts.append(context)
        self.started.add()


def ledger_runs(ledger: Path) -> list[Args]:
    """The arguments of every run that a ledger has seen, in whatever process."""
    return [json.loads(line) for line in ledger.read_text("utf-8").splitlines()] if ledger.exists() else []


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


def misfit(schema: Mapping[str, Any], args: Args) -> str:
    """Why the arguments do not fit the top level of a JSON schema; "" if they do. Unknown keys are refused, unless
    the schema names no properties or says additionalProperties.
    """
    properties: Mapping[str, Any] = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in args]
    if missing:
        return f"Missing: {', '.join(missing)}."
    unknown = sorted(name for name in args if name not in properties)
    if unknown and properties and not schema.get("additionalProperties", False):
        return f"Unknown: {', '.join(unknown)}."
    wrong = [name for name in properties if name in args and not _typed(properties[name].get("type"), args[name])]
    return f"Of the wrong type: {', '.join(wrong)}." if wrong else ""


def _typed(wanted: str | Sequence[str] | None, value: Any) -> bool:
    names = [wanted] if isinstance(wanted, str) else list(wanted or ())
    if not names:
        return True
    if isinstance(value, bool):  # which Python takes for an integer
        return "boolean" in names
    return any(isinstance(value, _TYPES.get(name, ())) for name in names)


def tool_context(workspace: Path, *, clock: Clock | None = None, session_id: str = "s") -> ToolContext:
    """A context to run a tool in, without a deadline."""
    return ToolContext(session_id, "c1", workspace, NO_DEADLINE, clock or FakeClock())
