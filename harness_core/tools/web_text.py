"""The bytes of a response as text: which types are text, and in which encoding.  Pure."""

from __future__ import annotations

import codecs
import re
from email.message import Message
from typing import Final

from harness_core.errors import ToolFailed
from harness_core.tools.clip import short

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})

_TEXT: Final = frozenset(
    {"application/json", "application/xml", "application/javascript", "application/yaml", "application/x-yaml"}
)
# The encodings of the web, by Python's names. Not all that Python knows: punycode takes quadratic time, for one.
_ENCODINGS: Final = (
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256",
    "cp1257", "cp1258", "cp866", "cp874", "iso8859-2", "iso8859-3", "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7",
    "iso8859-8", "iso8859-10", "iso8859-13", "iso8859-14", "iso8859-15", "iso8859-16", "koi8-r", "koi8-u", "mac-roman",
    "mac-cyrillic", "gb2312", "gbk", "gb18030", "big5", "big5hkscs", "euc_jp", "iso2022_jp", "shift_jis", "cp932",
    "euc_kr", "cp949",
)  # fmt: skip
_SAME: Final = {"ascii": "cp1252", "iso8859-1": "cp1252"}  # as browsers read them
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META: Final = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_META_BYTES: Final = 1_024  # HTML: where a page must say its encoding
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CONTROL_SHARE: Final = 0.01  # of the characters; more of them are no text


def media_type(header: str) -> tuple[str, str]:
    """(the type in lower case, its charset) of a Content-Type header; "" for what it does not say."""
    message = Message()
    message["Content-Type"] = header.encode("ascii", "replace").decode() or "-"
    kind = message.get_content_type() if "/" in header else ""
    charset = message.get_param("charset")
    return kind, charset if isinstance(charset, str) else ""


def text_of(body: bytes, kind: str, charset: str, whole: bool = True) -> str:
    """The body as text. whole: it is all of it, not cut within a character. Raises ToolFailed if it is no text."""
    if not (not kind or kind.startswith("text/") or kind in HTML | _TEXT or kind.endswith(("+json", "+xml"))):
        raise ToolFailed(f"It is {short(kind)}, {len(body):,} bytes, and no text. webfetch reads text alone.")
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return _checked(body[len(mark) :].decode(encoding, "replace"), kind)
    said = _encoding(charset) or (_encoding(_meta(body)) if kind in HTML else "")
    if said:
        return _checked(body.decode(said, "replace"), kind)
    try:
        return _checked(codecs.getincrementaldecoder("utf-8")().decode(body, final=whole), kind)
    except UnicodeDecodeError:
        return _checked(body.decode("cp1252", "replace"), kind)


def _encoding(label: str) -> str:
    """Python's name for an encoding of the web; "" for others, which are then guessed."""
    try:
        name = codecs.lookup(label).name if label.isascii() else ""
    except (LookupError, ValueError):
        return ""
    name = _SAME.get(name, name)
    return name if name in _ENCODINGS else ""


def _meta(body: bytes) -> str:
    found = _META.search(body[:_META_BYTES])
    return found[1].decode("ascii") if found else ""


def _checked(text: str, kind: str) -> str:
    if "\0" in text or len(_CONTROL.findall(text)) > len(text) * _CONTROL_SHARE:
        raise ToolFailed(f"It says that it is {short(kind) or 'of no type'}, but it is no text: it holds binary data.")
    return text
