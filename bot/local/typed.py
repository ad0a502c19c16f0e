"""What a person types, in the two forms in which Slack delivers it: escaped `text`, and a `rich_text` block."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from bot.local.rules import EMOJI, LINK_ENDINGS
from bot.local.shapes import JSON

UNICODE: Final = {"".join(chr(int(code, 16)) for code in points.split("-")): name for name, points in EMOJI.items()}
BROADCASTS: Final = ("here", "channel", "everyone")

# Order matters: what stands first wins.  Slack links whole addresses even inside code, bare hosts only outside.
_ADDRESS: Final = r"(?P<url>https?://[^\s<>`|]*[^\s<>`|.,;:!?)'\"\]])"
_TOKENS: Final = re.compile(
    rf"""
    `(?P<code>[^`\n]+)`
    | {_ADDRESS}
    | (?<![\w.+@-])(?P<mail>[\w.+-]+@(?:[a-z0-9-]+\.)+[a-z]{{2,}})(?![\w@])
    | (?<![\w@])@(?P<user>[\w.-]*\w)
    | (?<![\w\#&])\#(?P<channel>[\w-]+)
    | (?<![\w@./~$=-])(?P<host>(?:[a-z0-9][a-z0-9-]*\.)+(?:{LINK_ENDINGS})(?![\w@.-]*\w)(?:/[^\s<>`]*[\w/])?)
    | (?<![\w:]):(?P<emoji>{"|".join(map(re.escape, EMOJI))}):(?!\w)
    | (?P<unicode>{"|".join(map(re.escape, UNICODE))})
    | (?<![\w*])\*(?P<bold>(?!\s)[^*\n]+(?<!\s))\*(?![\w*])
    | (?<![\w_])_(?P<italic>(?!\s)[^_\n]+(?<!\s))_(?![\w_])
    | (?<![\w~])~(?P<strike>(?!\s)[^~\n]+(?<!\s))~(?![\w~])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_IN_CODE: Final = re.compile(_ADDRESS)
_FENCE: Final = re.compile(r"```(.*?)```", re.DOTALL)
_QUOTE: Final = re.compile(r"> ?")
_BULLET: Final = re.compile(r"[-•*] (?=\S)")
_NUMBER: Final = re.compile(r"\d+\. (?=\S)")
_MARKS: Final = {"bold": "*", "italic": "_", "strike": "~"}


@dataclass(frozen=True, slots=True)
class Names:
    """Whom and what a name stands for.  Keys are lower case names, values ids."""

    users: Mapping[str, str]
    channels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """A message's text as Slack would deliver it, and its rich_text elements."""

    text: str
    elements: list[JSON]


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def typed(raw: str, names: Names) -> Said:
    """The text and the rich_text elements that Slack's own client makes of what a person typed."""
    texts: list[str] = []
    elements: list[JSON] = []
    start, after_fence = 0, False
    for fence in _FENCE.finditer(raw):
        _lines(raw[start : fence.start()], names, texts, elements, after_fence)
        code = fence[1].removeprefix("\n").removesuffix("\n")
        said = inline(code, names, {}, _IN_CODE)
        texts.append(f"```{said.text}```")
        elements.append({"type": "rich_text_preformatted", "elements": said.elements, "border": 0})
        start, after_fence = fence.end(), True
    _lines(raw[start:], names, texts, elements, after_fence)
    return Said("".join(texts), elements)


def rich_text(said: Said, block_id: str) -> list[JSON]:
    """The blocks of a message that a person typed."""
    return [{"type": "rich_text", "block_id": block_id, "elements": said.elements}]


def _lines(raw: str, names: Names, texts: list[str], elements: list[JSON], after_fence: bool) -> None:
    """Sections, quotes and lists between two fences."""
    if after_fence and raw.startswith("\n"):
        texts.append("\n")
        raw = raw[1:]
    if not raw:
        return
    groups: list[tuple[str, list[str]]] = []
    for line in raw.split("\n"):
        kind, rest = _kind(line)
        if groups and groups[-1][0] == kind:
            groups[-1][1].append(rest)
        else:
            groups.append((kind, [rest]))
    for number, (kind, lines) in enumerate(groups):
        last = number == len(groups) - 1
        if kind == "" and last and lines == [""] and number > 0:
            continue  # the line end after a list or quote, not a line of its own
        _group(kind, lines, names, texts, elements, last)


def _kind(line: str) -> tuple[str, str]:
    for kind, mark in (("quote", _QUOTE), ("bullet", _BULLET), ("ordered", _NUMBER)):
        found = mark.match(line)
        if found:
            return kind, line[found.end() :]
    return "", line


def _group(kind: str, lines: list[str], names: Names, texts: list[str], elements: list[JSON], last: bool) -> None:
    end = "" if last else "\n"
    if kind in ("", "quote"):
        said = inline("\n".join(lines) + (end if kind == "" else ""), names, {})
        prefix = "&gt; " if kind else ""
        texts.append(prefix + said.text.replace("\n", "\n" + prefix) + (end if kind else ""))
        elements.append({"type": "rich_text_quote" if kind else "rich_text_section", "elements": said.elements})
        return
    items = [inline(line, names, {}) for line in lines]
    marks = ["• " if kind == "bullet" else f"{number}. " for number in range(1, len(items) + 1)]
    texts.append("\n".join(mark + item.text for mark, item in zip(marks, items, strict=True)) + end)
    sections = [{"type": "rich_text_section", "elements": item.elements} for item in items]
    elements.append({"type": "rich_text_list", "style": kind, "indent": 0, "border": 0, "elements": sections})


def inline(raw: str, names: Names, style: JSON, tokens: re.Pattern[str] = _TOKENS) -> Said:
    """One run of text: escaped, with its links and mentions, and as rich_text's small elements."""
    text, elements, start = "", [], 0

    def plain(part: str) -> str:
        if part:
            elements.append(_styled({"type": "text", "text": part}, style))
        return escape(part)

    for found in tokens.finditer(raw):
        made = _MAKERS[str(found.lastgroup)](found[str(found.lastgroup)], names, style)
        if made is None:
            continue
        text += plain(raw[start : found.start()]) + made.text
        elements.extend(made.elements)
        start = found.end()
    return Said(text + plain(raw[start:]), elements)


def _styled(element: JSON, style: JSON) -> JSON:
    return element | {"style": style} if style else element


def _code(part: str, names: Names, style: JSON) -> Said:
    said = inline(part, names, style | {"code": True}, _IN_CODE)
    return Said(f"`{said.text}`", said.elements)


def _url(part: str, names: Names, style: JSON) -> Said:
    return Said(f"<{escape(part)}>", [_styled({"type": "link", "url": part}, style)])


def _linked(scheme: str) -> Callable[[str, Names, JSON], Said]:
    def make(part: str, names: Names, style: JSON) -> Said:
        link = _styled({"type": "link", "url": scheme + part, "text": part}, style)
        return Said(f"<{scheme}{escape(part)}|{escape(part)}>", [link])

    return make


def _user(part: str, names: Names, style: JSON) -> Said | None:
    if part.lower() in BROADCASTS:
        return Said(f"<!{part.lower()}>", [_styled({"type": "broadcast", "range": part.lower()}, style)])
    user = names.users.get(part.lower())
    return Said(f"<@{user}>", [_styled({"type": "user", "user_id": user}, style)]) if user else None


def _channel(part: str, names: Names, style: JSON) -> Said | None:
    key = names.channels.get(part.lower())
    return Said(f"<#{key}|{part.lower()}>", [_styled({"type": "channel", "channel_id": key}, style)]) if key else None


def _emoji(part: str, names: Names, style: JSON) -> Said:
    name = UNICODE.get(part, part.lower())
    return Said(f":{name}:", [_styled({"type": "emoji", "name": name, "unicode": EMOJI[name]}, style)])


def _marked(kind: str) -> Callable[[str, Names, JSON], Said]:
    def make(part: str, names: Names, style: JSON) -> Said:
        said = inline(part, names, style | {kind: True})
        return Said(_MARKS[kind] + said.text + _MARKS[kind], said.elements)

    return make


_MAKERS: Final[dict[str, Callable[[str, Names, JSON], Said | None]]] = {
    "code": _code, "url": _url, "mail": _linked("mailto:"), "host": _linked("http://"), "user": _user,
    "channel": _channel, "emoji": _emoji, "unicode": _emoji,
    "bold": _marked("bold"), "italic": _marked("italic"), "strike": _marked("strike"),
}  # fmt: skip
