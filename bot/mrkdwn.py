"""A model's Markdown as messages that Slack formats.  Pure.

Everything is escaped before anything is formatted, so nothing the model writes can broadcast, hide a link's host, or
mention anybody but those who take part; e-mail addresses, `@scope/names` and addresses stay as they are. mrkdwn has no
escape for `*`, `_` and `~`: at worst a word is bold that should not be.

Secrets are masked in the text as people will read it, without the marks that stand in it; a paragraph that holds one
loses its styles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, image, link
from markdown_it.token import Token

from bot import limits
from bot.ids import PERSON
from bot.limits import escape
from bot.packing import FENCE, Part, packed
from harness_core.masking import mask, masked

DEEPEST: Final = 20  # nested quotes and lists that are read: the parser recurses
BRACKETS: Final = 500  # in a paragraph with links: each one that opens is looked after to the paragraph's end

_STYLES: Final = {"strong": "*", "em": "_", "s": "~"}
_ADDRESS: Final = re.compile(r"//[^\s<>\"`|\\^{}\[\]]*[^\s<>\"`|\\^{}\[\]*_~.,;:!?()]")
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
_JOINERS: Final = re.compile(
    "[\u034f\u200c\u200d\ufe00-\ufe0f\U000e0000-\U000e0fff]"
)  # at home in emoji and in writing
_LABEL_LINE: Final = re.compile(r":[ \t]*\n(?=\S+[ \t]*(?:\n|\Z))")  # what it names stands alone in the next line
_NAMES: Final = re.compile(r"(?i)pass|secret|token|key|cred|auth|pwd")  # spares masking each cell of a long table
_CELL: Final = re.compile(r"(?<=\|)([^|\n]*)\|([^|\n]*)(?=\|)")  # of a table that is none to Markdown
_HOST: Final = re.compile(r"[a-z0-9._:~-]+")
_UNSAFE: Final = re.compile(r"[\s|<>\\]")  # in an address: ends the link, or is read differently by browsers
# A member's id, bare or as a mention that was escaped; code and what is a link or date already come first, to be kept.
_ID: Final = re.compile(rf"`[^`\n]*`|<[^<>\n]*>|&lt;@(?P<a>{PERSON})&gt;|(?<![\w@/.:-])(?P<b>{PERSON})(?![\w/@-])")


def to_messages(
    text: str, *, prefix: str = "", most: int = limits.TEXT, people: Set[str] = frozenset()
) -> Sequence[str]:
    """Markdown as the texts of one or more messages of at most `most` characters each; none for no text.

    A fence that does not fit is closed and opened again. prefix: ours, in front of the first message, not escaped.
    people: ids that are shown as the person's name, which mentions them; give those who take part, nobody else.
    """
    safe = mask(_HIDDEN.sub("", text.replace("\r\n", "\n"))).strip("\n")
    drawn = _unlabelled([part for part in _parts(_MARKDOWN.parse(safe)) if part.text.strip()])
    parts = [_named(part, people) for part in drawn]
    if not parts and safe.strip():  # nested too deeply, or marks alone: better as it is than not at all
        parts = [Part(escape(_masked(safe)))]
    return packed(parts, prefix, most)


def to_plain(text: str) -> str:
    """Markdown as plain text, for where nothing is formatted: without marks, code in “”, links with their address.

    Neither escaped nor masked.
    """
    said: list[str] = []
    for token in _MARKDOWN.parse(text):
        match token.type:
            case "inline":
                said.append("".join(_plainly(token.children or [])))
            case "fence" | "code_block":
                said.append(f"“{token.content.strip()}”")
    return "\n".join(said) or text


def _plainly(children: Sequence[Token]) -> Iterator[str]:
    return _read(children, code="“{}”")


def _read(children: Sequence[Token], code: str = "{}") -> Iterator[str]:
    """A line as it reads without marks. code: how code is written."""
    links: list[str] = []
    for child in children:
        match child.type:
            case "code_inline":
                yield code.format(child.content)
            case "softbreak" | "hardbreak":
                yield "\n"
            case "image":
                yield f"{child.content} ({child.attrs.get('src', '')})"
            case "link_open":
                links.append(str(child.attrs.get("href", "")))
            case "link_close" if links:
                yield f" ({links.pop()})"
            case _:
                yield child.content


def _named(part: Part, people: Set[str]) -> Part:
    """The part with the people that it names by id as Slack names them; not in code, and not in a link."""

    def name(found: re.Match[str]) -> str:
        who = found["a"] or found["b"]
        return f"<@{who}>" if who in people else found[0]

    return part if part.fenced or not people else replace(part, text=_ID.sub(name, part.text))


# -- secrets -----------------------------------------------------------------------------------------------------------


def _masked(text: str) -> str:
    """A text without marks, as people will read it, masked."""
    read = _CELL.sub(lambda found: f"{found[1]}|{_beside(found[1], found[2])}", _JOINERS.sub("", text))
    read = _LABEL_LINE.sub(": ", read)
    safe = mask(read)
    return text if safe == _LABEL_LINE.sub(": ", _JOINERS.sub("", text)) else safe


def _beside(label: str, value: str, *, last: bool = False) -> str:
    """A cell as it may be seen beside the one that names it. last: nothing of this line follows."""
    if not _NAMES.search(label):
        return value
    named = f"{label.strip().rstrip(':')}: "
    word, end = value.strip(), "" if last else " …"
    safe = mask(named + word + end).removeprefix(named).removesuffix(end)
    return value if safe == word else value.replace(word, safe)


def _unlabelled(parts: Sequence[Part]) -> Iterator[Part]:
    """The parts, masked where one ends with a secret's name and the next is one word."""
    before = ""
    for part in parts:
        word = part.text.strip("`*_ \n")
        alone = before.endswith(":") and not re.search(r"\s", word)
        yield replace(part, text=_beside(before, word, last=True)) if alone and masked(f"{before} {word}") else part
        before = part.text.rpartition("\n")[2].strip("`*_ ")


# -- from Markdown -----------------------------------------------------------------------------------------------------


def _addresses(state: StateInline, silent: bool) -> bool:
    """An address is taken as it stands: its `_` and `*` are no emphasis."""
    if state.src[state.pos] != ":" or not state.pending[-5:].lower().endswith(("http", "https")):
        return False
    found = _ADDRESS.match(state.src, state.pos + 1)
    if found is None:
        return False
    if not silent:
        state.pending += state.src[state.pos : found.end()]
    state.pos = found.end()
    return True


def _among_few(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """The rule, where there are not too many brackets for it."""
    return lambda state, silent: _brackets(state.src) <= BRACKETS and rule(state, silent)


@lru_cache(maxsize=1)  # asked at each of them
def _brackets(paragraph: str) -> int:
    return paragraph.count("[")


class _Markdown(MarkdownIt):
    """CommonMark with tables and strike-through. Addresses are neither refused nor rewritten: each is shown as text,
    or as a link with its host.
    """

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False, "maxNesting": DEEPEST})
        self.enable(["table", "strikethrough"]).disable(["html_block", "html_inline"])
        self.inline.ruler.after("text", "address", _addresses)
        self.inline.ruler.at("link", _among_few(link))
        self.inline.ruler.at("image", _among_few(image))

    def validateLink(self, url: str) -> bool:
        return True

    def normalizeLink(self, url: str) -> str:
        return url

    def normalizeLinkText(self, link: str) -> str:
        return link


def _parts(tokens: Sequence[Token]) -> Iterator[Part]:
    """Each paragraph, heading, list item, quote, fence and table of a document."""
    lists: list[list[int | None]] = []  # per open list: [next number], or [None] for bullets
    quotes, mark, rows, items = 0, "", list[list[str]](), 0
    for place, token in enumerate(tokens):
        match token.type:
            case "bullet_list_open":
                lists.append([None])
            case "ordered_list_open":
                lists.append([int(token.attrs.get("start", 1))])
            case "bullet_list_close" | "ordered_list_close":
                lists.pop()
                items = items if lists else 0
            case "list_item_open":
                number = lists[-1][0]
                mark = "• " if number is None else f"{number}. "
                lists[-1][0] = None if number is None else number + 1
            case "blockquote_open" | "blockquote_close":
                quotes += 1 if token.nesting > 0 else -1
            case "tr_open":
                rows.append([])
            case "table_close":
                yield Part(_table(rows), fenced=True, close=True)
                rows = []
            case "inline" if rows:
                rows[-1].append(_masked(_bare(token)))
            case "inline":
                heading = tokens[place - 1].type == "heading_open"
                text = _placed(_heading(token) if heading else _inline(token), lists, mark, quotes)
                yield Part(text, close=items > 0)
                mark, items = "", items + bool(lists)
            case "fence" | "code_block":
                yield Part(_code(_masked(token.content.rstrip("\n"))), fenced=True, close=True)
                mark = ""
            case "hr":
                yield Part("───")


def _placed(text: str, lists: Sequence[object], mark: str, quotes: int) -> str:
    """A paragraph behind the bullet and the quote marks that it stands under."""
    indent = "    " * (len(lists) - 1)
    lines = text.split("\n")
    if lists:
        lines = [f"{indent}{mark or '  '}{lines[0]}", *(f"{indent}  {line}" for line in lines[1:])]
    return "\n".join(f"> {line}" if quotes else line for line in lines)


def _heading(token: Token) -> str:
    text = escape(_masked(_bare(token)))
    return text if "*" in text or not text else f"*{text}*"


def _inline(token: Token) -> str:
    children, written, links = token.children or [], list[str](), list[tuple[str, int]]()
    read = "".join(_read(children))
    if (safe := _masked(read)) != read:
        return escape(safe)
    for place, child in enumerate(children):
        style, _, end = child.type.rpartition("_")
        if style in _STYLES:
            written.append(_style(children, place, _STYLES[style], opens=end == "open"))
        elif child.type == "link_open":
            links.append((str(child.attrs.get("href", "")), len(written)))
        elif child.type == "link_close" and links:
            url, start = links.pop()
            label = "".join(written[start:])
            written[start:] = [_link(url, label)]
        else:
            written.append(_leaf(child))
    return "".join(written)


def _style(children: Sequence[Token], place: int, mark: str, *, opens: bool) -> str:
    """The mark of a style; what Markdown had where Slack would not format, within a word."""
    outer = place - 1 if opens else place + 1
    neighbour = children[outer].content if 0 <= outer < len(children) and children[outer].type == "text" else ""
    touching = neighbour[-1:] if opens else neighbour[:1]
    return children[place].markup if touching.isalnum() else mark


def _leaf(child: Token) -> str:
    match child.type:
        case "code_inline":
            # Slack has no way to write a backtick inside inline code.
            return escape(child.content) if "`" in child.content else f"`{escape(child.content)}`"
        case "softbreak" | "hardbreak":
            return "\n"
        case "image":
            return _link(str(child.attrs.get("src", "")), escape(child.content) or "image")
    return escape(child.content)


def _link(url: str, label: str) -> str:
    """A link that shows where it leads, or text where it cannot be one. `label` is escaped already."""
    host = _host(url)
    if not host or _UNSAFE.search(url):
        return label if label == escape(url.removeprefix("mailto:")) else f"{label} ({escape(url)})"
    if label in (escape(url), escape(url.split("://", 1)[1])):
        made = f"<{escape(url)}>"
    else:
        # No mark may stand in a label but plain text on one line: a link in a link would close the outer one.
        plain = " ".join(re.sub(r"<[^>]*>", "", label).split())
        made = f"<{escape(url)}|{plain or 'link'}> ({host})"
    return made if limits.units(made) <= limits.LINK else f"{label} ({escape(url)})"


def _host(url: str) -> str:
    """The host of a web address as the network is asked for it, so that no letter of it can pass for another; "" if
    there is none.
    """
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
    except ValueError:
        return ""
    return host if parts.scheme in ("http", "https") and _HOST.fullmatch(host) else ""


def _bare(token: Token) -> str:
    """The text of a line without styles, for where Slack shows none. Not escaped."""
    words = []
    for child in token.children or []:
        words.append(" " if child.type in ("softbreak", "hardbreak") else child.content)
    return "".join(words).strip()


def _table(said: Sequence[Sequence[str]]) -> str:
    rows = [[escape(_cell(said, r, c)) for c in range(len(row))] for r, row in enumerate(said)]
    columns = max((len(row) for row in rows), default=0)
    widths = [max((_width(row[c]) for row in rows if c < len(row)), default=0) for c in range(columns)]
    lines = []
    for row in rows:
        cells = (cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=False))
        lines.append(" | ".join(cells).rstrip())
    if len(lines) > 1:
        lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(lines).replace(FENCE, "'''")


def _cell(rows: Sequence[Sequence[str]], r: int, c: int) -> str:
    """A cell, masked if the one before it, or its column's head, is the name of a secret."""
    row, head = rows[r], rows[0]
    text = _beside(row[c - 1], row[c], last=r > 0 and c + 1 == len(row)) if c else row[c]
    return _beside(head[c], text) if r and c < len(head) else text


def _width(cell: str) -> int:
    return len(cell.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


def _code(content: str) -> str:
    # Three backticks would close the fence; a joiner of no width keeps them apart and is seen by nobody.
    return escape(content).replace(FENCE, "``\u200b`")


_MARKDOWN: Final = _Markdown()
