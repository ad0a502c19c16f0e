"""The call that fulfils a wish, with whatever tools there are.  Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness_core.models.practice_wishes import Wish
from harness_core.ports import ProposedCall, ToolSpec
from harness_core.types import Args

# Other people's tools name things otherwise; the first name that a tool knows is used.
TOOLS_FOR: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("bash", "shell"),
    "read": ("read", "read_file"),
    "list": ("ls", "list", "list_files"),
    "write": ("write", "write_file"),
    "append": ("append",),
    "replace": ("edit", "replace"),
    "fetch": ("webfetch", "web_fetch", "fetch"),
    "ask": ("task",),
}
ARGUMENTS_FOR: Final[Mapping[str, tuple[str, ...]]] = {
    "command": ("command", "cmd"),
    "path": ("path", "file_path", "file", "folder", "directory"),
    "content": ("content", "text"),
    "old": ("old", "old_text", "old_string", "old_str"),
    "new": ("new", "new_text", "new_string", "new_str"),
    "url": ("url",),
    "agent": ("agent",),
    "prompt": ("prompt",),
}


def proposal(wish: Wish, tools: Sequence[ToolSpec]) -> ProposedCall | None:
    """The call that fulfils a wish with one of these tools, or None if none of them can."""
    offered = {tool.name: tool for tool in tools}
    if wish.kind == "call":
        called = offered.get(wish.parts["tool"])
        if called is None or "given" not in wish.parts:
            return ProposedCall(called.name, wish.parts.get("arguments", "{}")) if called else None
        return ProposedCall(called.name, _as_wanted(json.loads(wish.parts["given"]), called.schema))
    tool = next((offered[name] for name in TOOLS_FOR.get(wish.kind, ()) if name in offered), None)
    if tool is not None:
        return ProposedCall(tool.name, _arguments(wish, tool.schema))
    if command := _as_command(wish):
        return proposal(Wish("run", {"command": command}), tools)
    return None


def _arguments(wish: Wish, schema: Mapping[str, Any]) -> Args:
    parts = {"path": ".", **wish.parts} if wish.kind == "list" else wish.parts
    edits = schema.get("properties", {}).get("edits")
    if edits is None or wish.kind != "replace":
        return _named(parts, schema)
    change = {role: text for role, text in parts.items() if role != "path"}
    return {**_named({"path": parts["path"]}, schema), "edits": [_named(change, edits.get("items", {}))]}


def _named(parts: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    known = schema.get("properties", {})
    names = {role: next((n for n in ARGUMENTS_FOR[role] if n in known), ARGUMENTS_FOR[role][0]) for role in parts}
    return {names[role]: text for role, text in parts.items()}


def _as_wanted(given: Mapping[str, str], schema: Mapping[str, Any]) -> Args:
    """What was typed as texts, with numbers and the like made of those that the schema does not want as a text."""
    known = schema.get("properties", {})
    return {name: text if _takes_text(known.get(name, {})) else _read(text) for name, text in given.items()}


def _takes_text(about: Mapping[str, Any]) -> bool:
    return not about or about.get("type") == "string" or any(map(_takes_text, about.get("anyOf", ())))


def _read(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=str)  # NaN and the like are no JSON
    except (ValueError, RecursionError):
        return text


def _as_command(wish: Wish) -> str:
    """The shell command for what has no tool of its own, "" if there is none."""
    if wish.kind == "list":
        return f"ls {shlex.quote(wish.parts.get('path', '.'))}"
    if wish.kind == "append":
        return f"printf '%s\\n' {shlex.quote(wish.parts['content'])} >> {shlex.quote(wish.parts['path'])}"
    return ""
