"""ps: which of its options show processes, and not their environments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from harness_core.permissions.flags import Refused
from harness_core.permissions.words import Word

_COLUMN: Final = re.compile(
    r"(?:pid|ppid|pgid|pgrp|sid|sess|tid|lwp|nlwp|thcount|user|uid|ruser|ruid|euser|euid|group|gid|comm|ucmd|ucomm|fname"
    r"|cmd|args|command|%cpu|pcpu|cpu|c|cp|%mem|pmem|rss|rssize|rsz|vsz|vsize|size|sz|etime|etimes|time|cputime|bsdtime"
    r"|start|start_time|stime|lstart|bsdstart|stat|state|s|tty|tt|tname|ni|nice|pri|priority|cls|class|psr|wchan)"
    r"(?::\d+)?(?:=\w*)?"
)


def ps(words: Sequence[Word]) -> list[Word]:
    """All BSD letters or all dash options; the BSD letter e would show environments."""
    texts = [word.text for word in words]
    if any(word.glob for word in words):
        raise Refused("a glob may become an option of ps")
    if texts == ["-aux"]:
        return []
    if texts and re.fullmatch(r"[auxfjlwhT]+|[axw]+o", texts[0]):
        _bsd(texts)
    else:
        _dashed(texts)
    return []


def _bsd(texts: list[str]) -> None:
    letters, *rest = texts
    if letters.endswith("o"):
        _columns(rest.pop(0) if rest else "")
    if not all(_PS_LONG.fullmatch(text) for text in rest):
        raise Refused("options of two kinds of ps are mixed")


def _dashed(texts: list[str]) -> None:
    """What ps cannot take so, it takes as BSD letters: with columns of one's own no letters of another format."""
    at, columns, letters = 0, False, ""
    while at < len(texts):
        option = texts[at]
        at += 1
        if found := re.fullmatch(r"-([eAfFlLHjyw]*)([opuC])|--ppid", option):
            value = texts[at] if at < len(texts) else ""
            at += 1
            letters += found[1] or ""
            if not re.fullmatch(r"[\w%,.=:][\w%,.=+:-]*", value):
                raise Refused("an option of ps is not plain")
            if found[2] == "o":
                _columns(value)
                columns = True
        elif found := re.fullmatch(r"-([eAfFlLHjyw]+)", option):
            letters += found[1]
        elif not _PS_LONG.fullmatch(option):
            raise Refused(f"`{option}` of ps may show environments")
    if columns and not set(letters) <= set("eAwLH"):
        raise Refused("ps takes columns beside another format for BSD letters, which may show environments")


_PS_LONG: Final = re.compile(r"--sort=[\w,+%-]+|--no-headers?|--forest|--headers?")


def _columns(text: str) -> None:
    if not all(_COLUMN.fullmatch(column) for column in text.split(",")):
        raise Refused(f"a column of `{text}` may show environments")
