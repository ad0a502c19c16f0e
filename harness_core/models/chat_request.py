"""A request in the chat-completions protocol.  Pure: the same history always gives the same bytes.

Providers refuse a whole request for one message that they do not like, and then every later request of that session
too. So what goes out is always a conversation that they accept: no empty message, no call without its result, no result
without its call, names and arguments as their schema wants them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness_core.calls import valid_text
from harness_core.ports import ModelRequest, ToolSpec
from harness_core.types import Message, ToolCall, canonical, readable

NAME_LENGTH: Final = 64  # OpenAI: characters of a function's name
NO_RESULT: Final = "(no result is on record for this call)"

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


def body(model: str, request: ModelRequest) -> dict[str, Any]:
    """The JSON body. Everything that stays the same in a run comes first, the messages last, so that each request of a
    run begins with the bytes of the one before it: providers cache what they have read already.
    """
    tools = {"tools": [_tool(spec) for spec in request.tools]} if request.tools else {}
    return {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        **tools,
        "messages": messages(request.system, request.messages),
    }


def messages(system: str, history: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation as providers accept it. Blank messages are left out, and every call has its one result."""
    said = [{"role": "system", "content": valid_text(system)}] if system.strip() else []
    rest = deque(history)
    while rest:
        message = rest.popleft()
        if message.role == "assistant" and message.calls:
            said += [_asking(message), *_answers(message.calls, rest)]
        elif message.role != "tool" and message.content.strip():  # a result of no call: refused by every provider
            said.append({"role": message.role, "content": valid_text(message.content)})
    return said


def _asking(message: Message) -> dict[str, Any]:
    text = valid_text(message.content) if message.content.strip() else None
    return {"role": "assistant", "content": text, "tool_calls": [_call(call) for call in message.calls]}


def _call(call: ToolCall) -> dict[str, Any]:
    # The name may be anything that a model came up with; the arguments are an object, whatever it had sent.
    name = _NOT_IN_NAMES.sub("_", call.name)[:NAME_LENGTH] or "unnamed"
    return {
        "id": call.call_uuid,
        "type": "function",
        "function": {"name": name, "arguments": valid_text(canonical(call.args))},
    }


def _answers(calls: Sequence[ToolCall], rest: deque[Message]) -> list[dict[str, Any]]:
    found: dict[str, str] = {}
    while rest and rest[0].role == "tool":
        result = rest.popleft()
        found.setdefault(result.call_uuid, readable(result.content))
    return [
        {"role": "tool", "tool_call_id": call.call_uuid, "content": valid_text(found.get(call.call_uuid, NO_RESULT))}
        for call in calls
    ]


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": valid_text(spec.description), "parameters": _plain(spec.schema)}
    return {"type": "function", "function": function}


def _plain(value: Any) -> Any:
    """A copy that JSON takes, in the order given: models read a schema's fields in that order."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return valid_text(value) if isinstance(value, str) else value
