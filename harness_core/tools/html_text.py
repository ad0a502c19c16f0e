"""A web page from standard input as Markdown on standard output.  A program of its own, run by `web`.

Pages are hostile: some keep any parser busy for hours, or nest until the stack ends. A process can be ended and has its
own memory, a thread has neither. So this imports nothing of the harness and is started by its path.
"""

from __future__ import annotations

import contextlib
import re
import resource
import sys
import warnings
from typing import Final

from bs4 import BeautifulSoup, Tag
from bs4.exceptions import ParserRejectedMarkup
from markdownify import MarkdownConverter

MEMORY: Final = 1 << 30  # bytes of address space

_NO_TEXT: Final = ["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "head"]


def readable(html: str) -> str:
    """The page's title and text as Markdown; its main part alone where the page says which that is."""
    soup = _parsed(html)
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    for element in soup(_NO_TEXT):
        element.decompose()
    for image in soup("img"):  # its address says nothing to a reader, and may be the whole image
        image.replace_with(str(image.get("alt") or ""))
    text = _markdown(soup.find("main") or soup)
    lines = (line.rstrip() for line in text.splitlines())
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return f"# {title}\n\n{body}".strip() if title and not body.startswith(f"# {title}") else body


def _parsed(html: str) -> BeautifulSoup:
    try:
        return BeautifulSoup(html, "html.parser")
    except ParserRejectedMarkup:  # a `<![` with anything behind it but CDATA: browsers take it for a comment
        return BeautifulSoup(html.replace("<![", "&lt;!["), "html.parser")


def _markdown(part: BeautifulSoup | Tag) -> str:
    try:
        return MarkdownConverter(heading_style="ATX").convert_soup(part)
    except RecursionError:  # nested deeper than the converter can follow: the bare text is better than nothing
        return part.get_text("\n", strip=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")  # bs4 remarks on markup that looks like something else
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(readable(sys.stdin.buffer.read().decode()).encode("utf-8", "replace"))
