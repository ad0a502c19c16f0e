"""One async function becomes a tool: its signature the schema, its docstring what the model reads."""

from __future__ import annotations

import inspect as signatures
import re
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_json

from harness_core.errors import ConfigError, ToolFailed
from harness_core.given import asked_at_once, one_of, positive
from harness_core.given import said as as_given
from harness_core.ports import ToolContext, ToolSpec
from harness_core.tools.arguments import Function, described, model_of, parameters_of, parse, untitled
from harness_core.tools.clip import clip, said
from harness_core.types import NO_OUTPUT, Args, Inspection, ToolResult, canonical

RESULT_CHARS: Final = 100_000  # of one result; head and tail are kept
LARGEST_RESULT: Final = 10_000_000  # characters; more than this is a fault of the tool, not a long result

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what every provider accepts

Inspect = Callable[[Args, ToolContext], Awaitable[Inspection]]
Stance = bool | Callable[[Args], bool]
Subject = str | Callable[[Args], str] | None


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A tool made of one function (see `ports.Tool` for what each method promises)."""

    spec: ToolSpec
    function: Function
    model: type[BaseModel]
    timeout: float
    stance: Stance
    again: Stance
    about: Subject
    look: Inspect | None
    context_name: str = ""
    return_direct: bool = False

    @property
    def inspects(self) -> bool:
        """Whether `inspect` looks at anything."""
        return self.look is not None

    def check(self, args: Args) -> str:
        """One sentence naming each argument that does not fit; "" if all do. Takes anything, raises nothing."""
        return parse(self.model, args)[1]

    def read_only(self, args: Args) -> bool:
        """The call only reads inside the workspace."""
        return _holds(self.stance, args)

    def repeatable(self, args: Args) -> bool:
        """The call may run again after a crash."""
        return _holds(self.again, args)

    def subject(self, args: Args) -> str:
        """What permission rules match. For arguments that `check` accepts; others may raise as `canonical` does."""
        if callable(self.about):
            return self.about(args)
        value = args.get(self.about) if self.about else None
        return value if isinstance(value, str) else canonical(args)

    async def inspect(self, args: Args, context: ToolContext) -> Inspection:
        """What the tool sees of the world; a look that fails is a problem of the call."""
        if problem := self.check(args):
            return Inspection(problem=problem)
        if self.look is None:
            return Inspection()
        try:
            return await self.look(args, context)
        except ToolFailed as error:
            return Inspection(problem=str(error))
        except Exception as error:
            return Inspection(problem=f"{self.spec.name} could not look: {said(error)}")

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Do it. Only cancellation comes out as an exception."""
        values, problem = parse(self.model, args)
        if values is None:
            return ToolResult(problem, "error")
        given = {str(self.model.model_fields[name].alias): getattr(values, name) for name in values.model_fields_set}
        if self.context_name:
            given[self.context_name] = context
        try:
            return _result(await self.function(**given))
        except ToolFailed as error:
            return ToolResult(_text(str(error)), "error")
        except (Exception, SystemExit) as error:  # whatever a tool does wrong, the model reads it and the run goes on
            return ToolResult(_text(f"{self.spec.name} failed: {said(error)}"), "error")


@typing.overload
def tool(function: Function, /) -> FunctionTool: ...


@typing.overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: Stance = False,
    repeatable: Stance | None = None,
    subject: Subject = None,
    timeout: float = 60.0,
    inspect: Inspect | None = None,
    return_direct: bool = False,
) -> Callable[[Function], FunctionTool]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: Stance = False,
    repeatable: Stance | None = None,
    subject: Subject = None,
    timeout: float = 60.0,
    inspect: Inspect | None = None,
    return_direct: bool = False,
) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a tool of an async function, as `@tool` or `@tool(...)`.

    The schema comes from its type hints, descriptions from `Annotated[..., Field(description=…)]` or from docstring
    lines `argument: what it is`; the rest of the docstring describes the tool. A parameter annotated `ToolContext` is
    handed in and never shown to the model. The function returns text, a ToolResult, or anything JSON can hold.

    read_only, repeatable (default: as read_only): a truth, or a function of the arguments. subject: an argument's name,
    or a function of the arguments; None means the canonical arguments. timeout: seconds, kept by the engine.
    return_direct: the result is the answer (see ports.Tool).
    Raises ConfigError for a function that cannot be a tool.
    """

    def make(fn: Function) -> FunctionTool:
        return _make(
            fn,
            str(name or getattr(fn, "__name__", "")),
            description,
            timeout=timeout,
            stance=read_only,
            again=read_only if repeatable is None else repeatable,
            about=subject,
            look=inspect,
            return_direct=return_direct,
        )

    return make if function is None else make(function)


# -- reading the function ----------------------------------------------------------------------------------------------


def _make(fn: Function, name: str, description: str | None, **how: Any) -> FunctionTool:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"A tool cannot be called {name!r}: use letters, digits, _ and -, 64 at most.")
    if not signatures.iscoroutinefunction(fn):
        raise ConfigError(f"The tool {name} is not an async function. Write `async def`.")
    positive(f"The timeout of the tool {name}", how["timeout"])
    for word, given in (("read_only", how["stance"]), ("repeatable", how["again"])):
        if not isinstance(given, bool) and not asked_at_once(given):
            raise ConfigError(
                f"The {word} of the tool {name} must be True, False or a plain function, not {as_given(given)}."
            )
    if description is not None:
        one_of(f"The description of the tool {name}", str, "a text", description)
    text, about_args, context_name, parameters = *described(fn), *parameters_of(fn, name)
    if not (description or text):
        raise ConfigError(f"The tool {name} has no docstring. The model must read what it is for.")
    if isinstance(how["about"], str) and how["about"] not in parameters:
        raise ConfigError(f"The subject of the tool {name} is {how['about']}, which is not one of its arguments.")
    model = model_of(name, parameters, about_args)
    try:
        schema = model.model_json_schema()
    except PydanticUserError as error:
        raise ConfigError(f"The tool {name} has an argument that JSON cannot carry: {error.message}") from error
    spec = ToolSpec(name, description or text, {"properties": {}, **untitled(schema)})
    return FunctionTool(spec=spec, function=fn, model=model, context_name=context_name, **how)


def _holds(stance: Stance, args: Args) -> bool:
    if isinstance(stance, bool):
        return stance
    try:
        return stance(args) is True
    except Exception:  # no answer is a no: the call is asked about, and not repeated
        return False


# -- results -----------------------------------------------------------------------------------------------------------


def _result(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return ToolResult(_text(value.content), value.outcome)
    return ToolResult(_text(value))


def _text(value: Any) -> str:
    """What the model reads of a value: whole and valid Unicode, never empty, never longer than RESULT_CHARS."""
    if isinstance(value, bytes | bytearray):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolFailed(f"The tool returned {len(value):,} bytes that are not text.") from error
    if value is not None and not isinstance(value, str):
        try:
            value = to_json(value).decode()
        except (PydanticSerializationError, ValueError) as error:
            raise ToolFailed(f"The tool returned a {type(value).__name__}, which is neither text nor JSON.") from error
    if not value:
        return NO_OUTPUT
    if len(value) > LARGEST_RESULT:
        raise ToolFailed(f"The tool returned {len(value):,} characters; no more than {LARGEST_RESULT:,} are taken.")
    return clip(value.encode("utf-8", "backslashreplace").decode(), RESULT_CHARS)
