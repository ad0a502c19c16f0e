"""What a plain request asks for: a text, read as wishes.  Pure; what is quoted is taken exactly, never as a request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final


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
