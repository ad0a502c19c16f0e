"""A function's signature as a schema, and arguments checked against it.  Pure."""

from __future__ import annotations

import inspect as signatures
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError

from harness_core.errors import ConfigError
from harness_core.ports import ToolContext
from harness_core.tools.clip import said, short
from harness_core.types import Args, canonical

ARGUMENT_BYTES: Final = 1_000_000  # bytes of the canonical JSON of one call's arguments
PROBLEMS: Final = 8  # wrong fields that one message names

Function = Callable[..., Awaitable[Any]]

# -- reading the function ----------------------------------------------------------------------------------------------


def parameters_of(fn: Function, name: str) -> tuple[str, dict[str, tuple[Any, Any]]]:
    """(name of the context parameter or "", {argument: (type, default or ...)})."""
    try:
        hints = typing.get_type_hints(fn, include_extras=True)
    except Exception as error:  # evaluating foreign annotations may raise anything
        raise ConfigError(f"The type hints of the tool {name} cannot be resolved: {error}") from error
    context_name, arguments = "", {}
    for parameter in signatures.signature(fn).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigError(f"The tool {name} takes {parameter}, which has no name for the model to use.")
        if parameter.name not in hints:
            raise ConfigError(f"The argument {parameter.name} of the tool {name} has no type hint.")
        if hints[parameter.name] is ToolContext:
            context_name = parameter.name
        else:
            default = ... if parameter.default is parameter.empty else parameter.default
            arguments[parameter.name] = (hints[parameter.name], default)
    return context_name, arguments


def model_of(name: str, parameters: Mapping[str, tuple[Any, Any]], about_args: Mapping[str, str]) -> type[BaseModel]:
    """The model that checks the arguments, strictly. Raises ConfigError for types that pydantic does not know."""
    # Fields are numbered and known to the outside by alias: an argument may be called `json` or `_x` and harm nothing.
    config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)
    fields: dict[str, Any] = {}
    for i, (argument, (kind, default)) in enumerate(parameters.items()):
        about: dict[str, Any] = {"description": about_args[argument]} if argument in about_args else {}
        fields[f"p{i}"] = (kind, Field(default, alias=argument, **about))
    try:
        return create_model(name, __config__=config, **fields)
    except (PydanticUserError, TypeError) as error:
        raise ConfigError(f"The tool {name} has an argument that cannot be checked: {error}") from error


def described(fn: Function) -> tuple[str, dict[str, str]]:
    """(the docstring without its argument lines, {argument: its description})."""
    known = signatures.signature(fn).parameters
    kept: list[str] = []
    arguments: dict[str, str] = {}
    current, margin = "", 0
    for line in (signatures.getdoc(fn) or "").splitlines():
        indent = len(line) - len(line.lstrip())
        head, colon, rest = line.strip().partition(": ")
        if colon and head in known:
            arguments[head], current, margin = rest.strip(), head, indent
        elif current and line.strip() and indent > margin:
            arguments[current] += " " + line.strip()
        elif line.strip() not in ("Args:", "Arguments:"):
            kept.append(line)
            current = ""
    return "\n".join(kept).strip(), arguments


def untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """Without pydantic's generated titles, which cost tokens and say nothing."""
    bare = {key: value for key, value in schema.items() if key != "title"}
    for group in ("properties", "$defs"):
        if group in bare:
            bare[group] = {name: untitled(part) for name, part in bare[group].items()}
    return bare


# -- arguments ---------------------------------------------------------------------------------------------------------


def parse(model: type[BaseModel], args: Args) -> tuple[BaseModel | None, str]:
    """(the arguments, "") or (None, why not). As JSON and strictly: an enum is its text, but "3" is no number."""
    if not isinstance(args, Mapping):
        return None, "The arguments must be an object."
    try:
        data = canonical(dict(args)).encode("utf-8")
    except UnicodeEncodeError:
        return None, "The arguments hold text that is not valid Unicode (half of a surrogate pair)."
    except Exception:  # what is no JSON fails in many ways (types, NaN, cycles, depth), and each means the same
        return None, "The arguments are not JSON, or are nested too deeply."
    if len(data) > ARGUMENT_BYTES:
        return None, f"The arguments are too long ({len(data):,} bytes; at most {ARGUMENT_BYTES:,}). Work in pieces."
    try:
        return model.model_validate_json(data), ""
    except ValidationError as error:
        return None, _sentence(error, model)
    except Exception as error:  # a validator of the tool's own may raise anything
        return None, f"The arguments could not be checked: {said(error)}"


def _sentence(error: ValidationError, model: type[BaseModel]) -> str:
    known = ", ".join(str(field.alias) for field in model.model_fields.values()) or "none"
    told: dict[str, None] = {}  # in order, each once: branches of a union repeat themselves
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        place = short(".".join(str(part) for part in fault["loc"][:4])) or "arguments"
        match fault["type"]:
            case "missing" | "missing_argument":
                told[f"{place}: is required"] = None
            case "extra_forbidden":
                told[f"{place}: is not an argument of this tool (it takes: {known})"] = None
            case "json_invalid" | "recursion_loop":
                told["the arguments are not JSON, or are nested too deeply"] = None
            case _:
                message = fault["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
                message = message.replace("Input should be", "must be", 1)
                told[f"{place}: {short(message, 200)}"] = None
    named = list(told)
    more = f"; and {len(named) - PROBLEMS:,} more" if len(named) > PROBLEMS else ""
    return "Wrong arguments. " + "; ".join(named[:PROBLEMS]) + more + "."
