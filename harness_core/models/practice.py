"""The practice model: no network, no key; it follows a few plain requests, and says so when it is asked for more.

The pure half reads a text as wishes (`understand`) and answers a request (`answer`); the model only streams that.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from harness_core.ports import ModelReply, ModelRequest, ProposedCall, TextDelta, ToolSpec
from harness_core.results import read_edited_note
from harness_core.types import Args, Deadline, Message, ToolCall, Usage, readable

MOST_CALLS: Final = 20  # of one message: a page of "ls" lines shall not become a page of calls
FIRST_LINES, LAST_LINES = 15, 5  # of one result, as relayed: its end tells how it went
LINE: Final = 200  # characters of one relayed line
END: Final = 1500  # characters of either end of what cannot be summed up
PIECE: Final = 24  # characters of one streamed piece, at least
CHARACTERS_PER_TOKEN: Final = 4  # a rough estimate: nothing is paid by it

# -- reading -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wish:
    """One thing that was asked for. kind: run, read, list, write, append, replace, fetch, ask, call, say, help, hello,
    or unclear. parts: by role (command, path, content, old, new, url, agent, prompt, tool, arguments, text), exactly as
    typed; given: what was typed as NAME=VALUE, as JSON.
    """

    kind: str
    parts: Mapping[str, str]


# In the mask every quotation is one \0 and then as many \1 as it is long, so that no pattern sees what is quoted and
# every position is still the one in the text.
_QUOTATION = re.compile(
    r"""(?P<ticks>(?<!`)`+(?!`))(?P<code>.*?)(?<!`)(?P=ticks)(?!`)"""
    r"""|"(?P<a>[^"\n]*)"|“(?P<b>[^“”\n]*)”|「(?P<c>[^「」\n]*)」|(?<!\w)'(?P<d>[^'\n]*)'(?!\w)|‘(?P<e>[^‘’\n]*)’""",
    re.DOTALL,
)
_Q = "\0\1*"
_LANGUAGES = "bash|sh|shell|zsh|console|text|txt|python|py|json|ya?ml|toml|ini|diff|html|css|js|ts|md|markdown|sql|xml"
_FENCE_INFO = re.compile(rf"(?:(?:{_LANGUAGES})[ \t]*)?\n", re.IGNORECASE)

_VERB = (
    r"(?:run|execute|read|show|cat|open|list|ls|write|save|create|append|replace|fetch|say|echo|call"
    r"|ask(?=\s+(?:the\s+)?(?:sub-)?agent\b)|use(?=\s+(?:the\s+)?(?:tool\s+)?[\w.-]+\s+(?:with\s|\{)))(?=[\s:\0]|$)\s*:?"
    r"|运行|执行|读取?|查看|显示|列出|写入?|把|将|说|获取"
)
_LEAD = (
    r"(?:\A|\n|[,.!?][ \t]+|[，。！？；、]|(?<=\s)(?:and|then|also)(?=\s)|然后|接着|再|并)"
    r"[ \t]*(?:<@\w+>:?[ \t]*)?"
    r"(?:(?:(?P<asking>(?:can|could|would|will) you)|and|then|also|please|kindly|just|now|first|next|finally|>|[-*•]"
    r"|\d+[.)])[ \t,:]+|请|帮我|麻烦|然后|再|并|和){0,8}"  # bounded: a page of "and" costs no more than a page
)
_START = re.compile(rf"{_LEAD}(?P<verb>{_VERB})", re.IGNORECASE)
_COURTESY = re.compile(r"(?<=\S)(?:[ \t]*,)?[ \t]+(?:please|for me|thanks|thank you)[.!?]*\Z", re.IGNORECASE)

_ME, _THE = r"(?:me\s+)?", r"(?:the\s+)?"
_NEW_FILE, _LABEL = (
    r"(?:an?\s+)?(?:new\s+)?(?:file\s+)?(?:called\s+|named\s+)?",
    r"(?:(?:contents?|text)\b)?(?:\s*:)?\s*",
)
_COLON = r"(?:\s*:\s*|\s*\n|\s+(?=\0))"
_PATH = rf"{_THE}(?:file\s+|folder\s+)?(?P<path>{_Q}|[^\s\0\1]*[^\s\0\1:,])"
_FIRST = rf"(?:{_Q}|[^\s,，、和\0\1]+)"
_NEXT = rf"(?:\s*[,，、]\s*(?:and\s+)?|\s+(?:and|then)\s+|\s*和\s*){_FIRST}"
_PLACES = rf"(?P<paths>{_FIRST}(?:{_NEXT})*)"
_CONTENT = r"(?:the\s+(?:text|words?|lines?|following)\s+)?(?P<content>\S|\S.*\S)"
_THIS = (
    r"(?:(?:the|this|these)(?:\s+following)?(?:\s+shell)?(?:\s+(?:commands?|script))?(?:\s*:\s*|\s+))?"
    r"(?:commands?(?:\s*:)?\s*(?=\0))?"
)
_GIVEN = rf"[\w-]+\s*=\s*(?:{_Q}|[^\s,\0\1]+)"
_WITH = rf"(?P<arguments>{_Q}|\{{.*\}})|(?P<given>{_GIVEN}(?:(?:\s*,\s*|\s+)(?:and\s+)?{_GIVEN})*)"
_OLD, _NEW = rf"(?P<old>{_Q}|\S+)", rf"(?P<new>{_Q}|\S+)"

# The first form that fits the whole of a clause says what was meant.
_FORMS: Final[Sequence[tuple[str, re.Pattern[str]]]] = tuple(
    (kind, re.compile(form, re.IGNORECASE | re.DOTALL))
    for kind, form in (
        ("run", rf"(?:run|execute)\b(?:\s*:)?\s*{_THIS}(?P<command>.+)"),
        ("run", r"(?:运行|执行)(?:\s*[:：])?\s*(?:命令)?\s*(?P<command>.+)"),
        ("run", r"(?P<command>ls\s+-.+)"),
        ("fetch", r"(?:fetch|open|read|show|获取|读取?)\s*(?P<url>https?://\S+)"),
        ("fetch", rf"(?:fetch|获取)\s*(?P<url>{_Q}|\S+)"),
        ("list", rf"(?:list|show)\s+{_ME}(?:all\s+)?{_THE}(?:files|folder|directory|everything)(?:\s+here)?"),
        ("list", rf"(?:list|ls|列出|show\s+{_THE}folder)\s*(?:(?:all|the|files|folder|directory|in|of)\s+)*{_PLACES}"),
        ("list", r"list|ls|列出"),
        ("read", rf"(?:read|show|cat|open)\s+{_ME}{_THE}(?:contents?\s+of\s+)?{_THE}(?:files?\s+)?{_PLACES}"),
        ("read", rf"(?:读取?|查看|显示)\s*(?:文件)?\s*{_PLACES}"),
        ("write", rf"(?:write|save)\s+(?:this\s+|the\s+following\s+)?(?:to|into)\s+{_PATH}{_COLON}{_CONTENT}"),
        ("write", rf"(?:write|save)(?:\s*:)?\s*{_CONTENT}\s+(?:to|into|in|as)\s+{_PATH}"),
        ("write", rf"(?:create|write)\s+{_NEW_FILE}{_PATH}\s+(?:with|containing)\s+{_THE}{_LABEL}{_CONTENT}"),
        ("write", rf"写入?\s*(?P<content>\S|\S.*\S)\s*(?:到|进)\s*(?:文件)?\s*{_PATH}"),
        ("write", rf"[把将]\s*(?P<content>\S|\S.*\S)\s*(?:写入|写到|写进|保存到)\s*(?:文件)?\s*{_PATH}"),
        ("append", rf"append(?:\s*:)?\s*{_CONTENT}\s+to\s+{_PATH}"),
        ("replace", rf"replace\s+{_OLD}\s+(?:with|by)\s+{_NEW}\s+in\s+{_PATH}"),
        ("replace", rf"[把将]\s*(?P<path>{_Q}|[^\s\0\1]+?)\s*[中里]的?\s*{_OLD}\s*(?:替换|改)(?:成|为)\s*{_NEW}"),
        ("call", rf"(?:call|use)\s+{_THE}(?:tool\s+)?(?P<tool>{_Q}|[\w.-]+)(?:\s+(?:with\s+)?(?:{_WITH}))?"),
        ("ask", rf"ask\s+{_THE}(?:sub-)?agent\s+(?P<agent>{_Q}|[\w-]+)(?:\s+to\s+|\s*[:,]\s*|\s+)(?P<prompt>.+)"),
        ("say", r"(?:say|echo|说)(?:\s*[:：])?\s*(?P<text>.+)"),
    )
)  # fmt: skip
_PLACE, _QUOTED, _PAIR = re.compile(_FIRST), re.compile(_Q), re.compile(_GIVEN)
_COMMANDS = re.compile(rf"{_Q}(?:(?:\s|[,，、&;]|\b(?:and|then)\b|和)*{_Q})*", re.IGNORECASE)
_HELLO = re.compile(
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening)|你好|您好)(?:\s+\w+)?[\s!.,?！。]*", re.IGNORECASE
)
_HELP = re.compile(
    r"\A\W*(?:please\s+)?help(?:\s+me)?\W*\Z|what (?:can|do) you|帮助|你能做什么|你会什么", re.IGNORECASE
)


class _Text:
    """A text and its mask."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.quoted: dict[int, tuple[int, str]] = {}
        plain = text.replace("\0", " ").replace("\1", " ")
        self.mask = _QUOTATION.sub(self._hide, plain)

    def _hide(self, found: re.Match[str]) -> str:
        inner = self.text[slice(*found.span(found.lastgroup or "code"))]
        match len(found["ticks"] or ""):
            case 0 | 1:
                exact = inner
            case 2:
                exact = _coded(inner)
            case _:
                exact = _fenced(inner)
        self.quoted[found.start()] = (found.end(), exact)
        return "\0" + "\1" * (len(found[0]) - 1)

    def part(self, start: int, end: int) -> str:
        """What stands there: the inside of a quotation if it is exactly one, or else the text as typed."""
        stop, inner = self.quoted.get(start, (-1, ""))
        return inner if stop == end else self.text[start:end]

    def pair(self, start: int, end: int) -> tuple[str, str]:
        """The name and the value of what stands there as NAME=VALUE."""
        sign = self.mask.index("=", start, end)
        value = sign + 1 + len(self.mask[sign + 1 : end]) - len(self.mask[sign + 1 : end].lstrip())
        return self.text[start:sign].strip(), self.part(value, end)

    def parts(self, start: int, end: int, pattern: re.Pattern[str]) -> list[str]:
        """All that the pattern finds in the mask there."""
        spans = (found.span() for found in pattern.finditer(self.mask, start, end))
        return [self.part(*span) for span in spans if self.mask[slice(*span)].lower() not in ("and", "then")]


def _fenced(inner: str) -> str:
    """The inside of a fence; without its first and last line if they only set it off, a language's name included.

    A fence that does not end on a line of its own was made by a chat window: its first line is content, "text" too.
    """
    opening = _FENCE_INFO.match(inner)
    return inner[opening.end() : -1] if opening and inner.endswith("\n") and inner != "\n" else inner


def _coded(inner: str) -> str:
    """The inside of two backticks, without the space that keeps them apart from a backtick in it."""
    if inner[:2] == " `" or inner[-2:] == "` ":
        return inner.removeprefix(" ").removesuffix(" ")
    return inner


def understand(text: str) -> tuple[Wish, ...]:
    """What a message asks for, in order; () if it is empty. Never raises; what no form fits is `unclear`.

    What stands in backticks, quotes or a fence is taken exactly, and is never read as a request itself.
    """
    stripped = text.strip()
    if not stripped:
        return ()
    whole = _Text(stripped)
    starts = list(_START.finditer(whole.mask))
    if not starts:
        kind = "hello" if _HELLO.fullmatch(stripped) else "help" if _HELP.search(whole.mask) else "unclear"
        return (Wish(kind, {"text": stripped}),)
    ends = [start.start() for start in starts[1:]] + [len(stripped)]
    wishes: list[Wish] = []
    for start, end in zip(starts, ends, strict=True):
        wishes += _wishes(whole, start.start("verb"), end, asking=bool(start["asking"]))
    return tuple(wishes)


def _wishes(whole: _Text, start: int, end: int, asking: bool) -> Iterable[Wish]:
    """What one clause asks for: one thing, or the same thing several times."""
    stop = start + len(whole.mask[start:end].rstrip())
    end = _trimmed(whole.mask, start, stop, asking)
    for kind, form in _FORMS:
        found = form.fullmatch(whole.mask, start, end)
        if found is None:
            continue
        spans = {role: found.span(role) for role, value in found.groupdict().items() if value is not None}
        if kind == "run":
            return _commands(whole, *spans["command"])
        if "given" in spans:
            given = dict(whole.pair(*one.span()) for one in _PAIR.finditer(whole.mask, *spans["given"]))
            return [Wish(kind, {"tool": whole.part(*spans["tool"]), "given": json.dumps(given)})]
        if "paths" in spans:
            return [Wish(kind, {"path": path}) for path in whole.parts(*spans["paths"], _PLACE)]
        return [
            Wish(kind, {role: whole.part(*_untrimmed(whole, role, span, end, stop)) for role, span in spans.items()})
        ]
    return [Wish("unclear", {"text": whole.text[start:end]})]


def _untrimmed(whole: _Text, role: str, span: tuple[int, int], end: int, stop: int) -> tuple[int, int]:
    """A text that is written or said keeps the full stop at its end, unless it is quoted."""
    quoted_end, _ = whole.quoted.get(span[0], (-1, ""))
    return (span[0], stop) if role in ("content", "text") and span[1] == end != quoted_end else span


def _trimmed(mask: str, start: int, end: int, asking: bool) -> int:
    """Where the clause ends without courtesies, and without the mark that ends its sentence. A mark that may belong
    to a bare command (a glob's ?) stays, unless the clause is a question.
    """
    command = mask[start : start + 3].lower() in ("run", "exe")
    marks = ".。" + ("?？" if asking or not command else "") + ("" if command else "!！,;，；")
    while True:
        clause = mask[start:end].rstrip()
        if courtesy := _COURTESY.search(clause, max(0, len(clause) - 20)):
            clause = clause[: courtesy.start()]
        elif len(clause) > 1 and clause[-1] in marks and (clause[-2].isalnum() or clause[-2] in "\0\1/)"):
            clause = clause[:-1]
        if start + len(clause) == end:
            return end
        end = start + len(clause)


def _commands(whole: _Text, start: int, end: int) -> Iterable[Wish]:
    """Commands in backticks one by one, each exact; or the rest of the clause as one command."""
    quoted = _COMMANDS.match(whole.mask, start, end)
    if quoted is None or (whole.text[start] != "`" and quoted.end() != end):
        return [Wish("run", {"command": whole.text[start:end]})]
    wishes = [Wish("run", {"command": command}) for command in whole.parts(start, quoted.end(), _QUOTED)]
    rest = whole.text[quoted.end() : end].strip(" \t\n,.;:")
    return [*wishes, Wish("unclear", {"text": rest})] if rest else wishes


# -- proposing ---------------------------------------------------------------------------------------------------------

# Other people's tools name things otherwise; the first name that a tool knows is used.
_TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("bash", "shell"),
    "read": ("read", "read_file"),
    "list": ("ls", "list", "list_files"),
    "write": ("write", "write_file"),
    "append": ("append",),
    "replace": ("edit", "replace"),
    "fetch": ("webfetch", "web_fetch", "fetch"),
    "ask": ("task",),
}
_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "command": ("command", "cmd"),
    "path": ("path", "file_path", "file", "folder", "directory"),
    "content": ("content", "text"),
    "old": ("old", "old_text", "old_string", "old_str"),
    "new": ("new", "new_text", "new_string", "new_str"),
    "url": ("url",),
    "agent": ("agent",),
    "prompt": ("prompt",),
}
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


def proposal(wish: Wish, tools: Sequence[ToolSpec]) -> ProposedCall | None:
    """The call that fulfils a wish with one of these tools, or None if none of them can."""
    offered = {tool.name: tool for tool in tools}
    if wish.kind == "call":
        called = offered.get(wish.parts["tool"])
        if called is None or "given" not in wish.parts:
            return ProposedCall(called.name, wish.parts.get("arguments", "{}")) if called else None
        return ProposedCall(called.name, _as_wanted(json.loads(wish.parts["given"]), called.schema))
    tool = next((offered[name] for name in _TOOLS.get(wish.kind, ()) if name in offered), None)
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
    names = {role: next((n for n in _ARGUMENTS[role] if n in known), _ARGUMENTS[role][0]) for role in parts}
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


# -- answering ---------------------------------------------------------------------------------------------------------

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
    named = [_call_by_name(tool) for tool in tools if not any(tool.name in names for names in _TOOLS.values())]
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
    schemas = (tool.schema.get("properties", {}).get("agent", {}) for tool in tools if tool.name in _TOOLS["ask"])
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
        heads = [_called(replace(call, args=args)), f"> {by} changed this before approving it."]
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
    subject = next((str(call.args[n]) for role in _ARGUMENTS for n in _ARGUMENTS[role] if n in call.args), "")
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
