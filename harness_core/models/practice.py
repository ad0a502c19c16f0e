"""The practice model: no network, no key; it follows a few plain requests, and says so when it is asked for more.

`answer` is pure: the newest results in their own words, and a call for each wish; the model only streams that.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Final

from harness_core.models.practice_calls import ARGUMENTS_FOR, TOOLS_FOR, proposal
from harness_core.models.practice_wishes import Wish, understand
from harness_core.ports import ModelReply, ModelRequest, ProposedCall, TextDelta, ToolSpec
from harness_core.results import read_edited_note
from harness_core.types import Deadline, Message, ToolCall, Usage, readable

MOST_CALLS: Final = 20  # of one message: a page of "ls" lines shall not become a page of calls
FIRST_LINES, LAST_LINES = 15, 5  # of one result, as relayed: its end tells how it went
LINE: Final = 200  # characters of one relayed line
END: Final = 1500  # characters of either end of what cannot be summed up
PIECE: Final = 24  # characters of one streamed piece, at least
CHARACTERS_PER_TOKEN: Final = 4  # a rough estimate: nothing is paid by it

_EXAMPLES: Final[Mapping[str, str]] = {
    "run": "run `ls -la`",
    "read": "read README.md",
    "list": "list src",
    "write": "write `hello` to notes.txt",
    "append": "append `more` to notes.txt",
    "replace": "replace `hello` with `good day` in notes.txt",
    "fetch": "fetch https://example.com",
    "ask": "ask the agent NAME to read README.md",
}
_CONDENSE = re.compile(r"summar|condense|compress|key (?:information|facts|points)|摘要|总结", re.IGNORECASE)
# How the harness begins to tell what is no output. Only the look depends on it: the text is relayed as it is.
_TOLD = re.compile(
    r"(?:rejected|denied|done by hand|left out|skipped|nobody decided|expired|unknown|not run|it had happened|error"
    r"|there is no tool|a person|\S+ has rejected|created|replaced|edited)\b",
    re.IGNORECASE,
)
I_AM: Final = "I am the practice model. No language model is connected: I follow a few plain requests, word by word."


def answer(request: ModelRequest) -> ModelReply:
    """The reply to a request: what the newest results say, then the calls for what was asked since the last reply.

    The same request always gets the same reply, its text and calls are never both empty, and nothing is proposed twice.
    """
    fresh = _since_last_reply(request.messages)
    asked = [message.content for message in fresh if message.role == "user"]
    if not request.tools and _CONDENSE.search(request.system + " " + " ".join(asked)):
        return _reply(request, [_condensed("\n".join(asked))], ())
    wishes = [wish for text in asked for wish in understand(text)]
    proposed = [
        (wish, proposal(wish, request.tools)) for wish in wishes if wish.kind in _EXAMPLES or wish.kind == "call"
    ]
    calls = tuple(made for _, made in proposed if made is not None)
    said = [wish.parts["text"] for wish in wishes if wish.kind == "say"]
    notes = [*_results(request.messages, fresh), *said, *_talk(wishes, request.tools)]
    notes += [f"I have no tool to {_label(wish)}." for wish, made in proposed if made is None]
    if calls:
        granted = [_label(wish) for wish, made in proposed if made is not None][:MOST_CALLS]
        notes.append(f"I would like to {', then '.join(granted)}.")
    if len(calls) > MOST_CALLS:
        notes.append(f"That is more than I do at once: I left out the last {len(calls) - MOST_CALLS}.")
    return _reply(request, notes or ["Nothing new was asked."], calls[:MOST_CALLS])


def _since_last_reply(messages: Sequence[Message]) -> Sequence[Message]:
    last = max((i for i, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return messages[last + 1 :]


def _reply(request: ModelRequest, notes: Iterable[str], calls: tuple[ProposedCall, ...]) -> ModelReply:
    text = "\n\n".join(note for note in notes if note.strip()) or "(nothing)"
    read = len(request.system) + sum(len(message.content) for message in request.messages)
    usage = Usage(read // CHARACTERS_PER_TOKEN + 1, len(text) // CHARACTERS_PER_TOKEN + 1)
    return ModelReply(text, calls, usage, "tool_calls" if calls else "stop")


def _talk(wishes: Sequence[Wish], tools: Sequence[ToolSpec]) -> list[str]:
    """What is said besides results and calls: a greeting, what the model can do, what it did not understand."""
    unclear = [_code(wish.parts["text"]) for wish in wishes if wish.kind == "unclear"][:MOST_CALLS]
    kinds = {wish.kind for wish in wishes}
    notes = [f"I did not understand {', '.join(unclear)}."] if unclear else []
    if kinds & {"hello"}:
        notes.insert(0, "Hello!")
    if kinds and kinds <= {"hello", "help", "unclear"}:
        notes += [I_AM, _abilities(tools)]
    return notes


def _abilities(tools: Sequence[ToolSpec]) -> str:
    possible = [_of_these(text, tools) for kind, text in _EXAMPLES.items() if proposal(_example(kind), tools)]
    named = [_call_by_name(tool) for tool in tools if not any(tool.name in names for names in TOOLS_FOR.values())]
    lines = [f"- {_code(text)}" for text in [*possible, *named[:MOST_CALLS], "say hello"]]
    return "\n".join(["What I can do, one or several in a message:", "", *lines])


def _call_by_name(tool: ToolSpec) -> str:
    """How to ask for a tool that no plain request leads to."""
    known = tool.schema.get("properties", {})
    needed = [name for name in tool.schema.get("required", ()) if name in known]
    plain = all(known[name].get("type") in ("string", "integer", "number", "boolean") for name in needed)
    given = " ".join(f"{name}=…" for name in needed) if plain else "{…}"
    return f"call {tool.name} with {given}" if given else f"call {tool.name}"


def _of_these(example: str, tools: Sequence[ToolSpec]) -> str:
    """The example with the name of an agent that there is."""
    schemas = (tool.schema.get("properties", {}).get("agent", {}) for tool in tools if tool.name in TOOLS_FOR["ask"])
    return example.replace("NAME", next((str(name) for schema in schemas for name in schema.get("enum", ())), "NAME"))


def _example(kind: str) -> Wish:
    return understand(_EXAMPLES[kind])[0]


def _results(messages: Sequence[Message], fresh: Sequence[Message]) -> list[str]:
    """Every new result in its own words: nothing is claimed about it that it does not say itself."""
    results = [message for message in fresh if message.role == "tool"]
    if not results:
        return []
    calls = {call.call_uuid: call for message in messages for call in message.calls}
    head = "This is what came of it:" if len(results) == 1 else f"This is what came of the {len(results)} calls:"
    return [head, *(_relayed(calls.get(result.call_uuid), result.content) for result in results)]


def _relayed(call: ToolCall | None, content: str) -> str:
    heads = [_called(call)]
    if call and (edited := read_edited_note(content)):
        by, args, content = edited
        heads = [_called(call.given(args)), f"> {by} changed this before approving it."]
    lines = _bounded(readable(content).rstrip("\n").split("\n"))
    if _TOLD.match(content) and len(lines) < 4:
        return "\n".join([*heads, *(f"> {line}" for line in lines)])
    fence = _ticks("\n".join(lines), 3)
    return "\n".join([*heads, fence, *lines, fence])


def _bounded(lines: list[str]) -> list[str]:
    short = [line if len(line) <= LINE else f"{line[:LINE]}… ({len(line) - LINE} more characters)" for line in lines]
    left = len(short) - FIRST_LINES - LAST_LINES
    return [*short[:FIRST_LINES], f"… ({left} more lines)", *short[-LAST_LINES:]] if left > 0 else short


def _called(call: ToolCall | None) -> str:
    if call is None:
        return "A call:"
    subject = next((str(call.args[n]) for role in ARGUMENTS_FOR for n in ARGUMENTS_FOR[role] if n in call.args), "")
    return f"**{call.name}** {_code(subject)}" if subject else f"**{call.name}**"


def _label(wish: Wish) -> str:
    roles = ("command", "path", "url", "tool", "agent")
    return f"{wish.kind} {_code(next((wish.parts[role] for role in roles if role in wish.parts), '.'))}"


def _code(text: str) -> str:
    """A text as inline code: its first line, cut, in more backticks than it holds."""
    line, *more = text.strip().splitlines() or [""]
    shown = line[:80] + ("…" if more or len(line) > 80 else "")
    ticks = _ticks(shown, 1)
    return f"{ticks} {shown} {ticks}" if "`" in shown else f"{ticks}{shown or ' '}{ticks}"


def _ticks(text: str, least: int) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _condensed(text: str) -> str:
    """The practice model cannot sum up; it keeps the beginning and the end, and says so."""
    kept = text if len(text) <= 2 * END else f"{text[:END]}\n…\n{text[-END:]}"
    return f"(No summary: the practice model keeps the beginning and the end.)\n{kept}"


class PracticeModel:
    """A ChatModel without a network and without a key, for trying the harness out. Same request, same reply."""

    name = "practice"

    async def stream(self, request: ModelRequest, deadline: Deadline) -> AsyncIterator[TextDelta | ModelReply]:
        """The text in pieces, then the reply. Never fails; the deadline is met since nothing is waited for."""
        reply = answer(request)
        for piece in re.findall(rf"(?s).{{1,{PIECE}}}\S*\s*", reply.text):
            yield TextDelta(piece)
        yield reply
