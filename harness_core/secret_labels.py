"""What is a secret because of the name that stands before it.  Pure."""

from __future__ import annotations

import re
from typing import Final

from harness_core.secret_shapes import MASK, SHORTEST_SECRET

_SECRET_NAME: Final = (
    r"(?:passw(?:or)?d|passphrase|secret|token|credentials?|authorization"
    r"|(?:api|access|secret|private|signing|encryption|account|auth)[_-]?key(?:[_-]?id)?)"
)

KEY_NAME: Final = re.compile(rf"(?i){_SECRET_NAME}\d?$", re.ASCII)

LABEL: Final = re.compile(
    rf"(?:(?i:{_SECRET_NAME})\d?(?:\\*[\"'])?\]?|(?<![A-Za-z])pwd|(?<![A-Za-z])ticket(?==))(?![\w-])"
    r"(?P<sep>[ \t]{0,8}(?:: ?[A-Za-z][\w.|\[\] ]{0,30}= ?|:=|=>|={1,3}|:)[ \t]{0,8})"
    r"(?i:(?P<scheme>(?:\\*[\"'])?(?:bearer|basic|token|bot|apikey)[ \t]{1,4}))?",
    re.ASCII,
)

FLAG: Final = re.compile(r"(?<![\w-])--([\w-]++)[ \t]++(?=[^\s-])", re.ASCII)

_QUOTED: Final = {
    # In double quotes a shell still runs commands: those are structure.
    '"': re.compile(r'(?>(?:[^"\\`$\n]|\\.|\$(?![({]))*)'),
    "'": re.compile(r"(?>(?:[^'\\\n]|\\.)*)"),
}

_ESCAPED: Final = re.compile(r"(\\+[\"'])([^\"'\\\n]*+)")  # JSON inside a JSON string
_BARE: Final = re.compile(r"[^\s\"'`$(){}\[\]<>,;&|\\]{1,64}+")  # the head is enough to judge by
_BARE_REST: Final = re.compile(r"[^\s\"'`$(){}\[\]<>,;&|\\]*+")
_REFERENCE: Final = ("$", "`", "{", "<", "%(")  # how a value begins that only names where the secret is

_NO_SECRET: Final = re.compile(
    r"(?i)(?:[\W_]+|none|null|nil|true|false|undefined|str|string|bytes|int|bool|text|any|optional|required"
    r"|(?:self|this|os|process|settings|config|cfg|env|args|options|request|ctx|context|app)\.[\w.]+)",
    re.ASCII,
)

_PROSE: Final = re.compile(
    r"(?i)a|an|and|argument|as|flag|for|from|if|in|instead|is|must|not|of|on|option|or|the|to|value|was|when|with"
)

_ALREADY: Final = re.compile(rf"{MASK}|[\w.]{{2,12}}[-_.]?{MASK}\Z|[\w.]{{0,4}}{MASK}\Z", re.ASCII)
_CALL: Final = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_END_OF_LINE: Final = re.compile(r"[,; \t\r]*+(?:\n|\Z|\\[nr]|[\"'])")
_NEVER_PROSE: Final = 64  # characters without a blank


def secret_after(text: str, label: re.Match[str]) -> tuple[int, int]:
    """Where the secret after this LABEL or FLAG begins and ends; an empty span if there is none."""
    at = label.end()
    scheme = "" if label.re is FLAG else label["scheme"] or ""
    quote_mark = next((c for c in scheme[:2] if c in "\"'"), "") or text[at : at + 1]
    if quote_mark in ('"', "'"):
        start = at if scheme[:1] in ('"', "'", "\\") else at + 1
        return _unless_shown(text, start, _QUOTED[quote_mark].match(text, start))
    if escaped := _ESCAPED.match(text, at):
        return _unless_shown(text, escaped.start(2), escaped)
    bare = _BARE.match(text, at)
    if bare is None or _harmless(text, bare, label):
        return at, at
    rest = _BARE_REST.match(text, bare.end())
    return at, rest.end() if rest else bare.end()


def _unless_shown(text: str, start: int, value: re.Match[str] | None) -> tuple[int, int]:
    end = value.end() if value else start
    if text.startswith(_REFERENCE, start) or _ALREADY.match(text[start : min(end, start + 40)]):
        return start, start
    return start, end


def _harmless(text: str, bare: re.Match[str], label: re.Match[str]) -> bool:
    """Whether an unquoted value is code, prose or hidden already, rather than a secret."""
    value, following = bare[0], text[bare.end() : bare.end() + 1]
    if _ALREADY.match(value) or _NO_SECRET.fullmatch(value) or value.startswith("//"):
        return True
    if following in ("(", "[") and _CALL.fullmatch(value):
        return True  # token=fetch_token(...)
    if label.re is FLAG:
        return _PROSE.fullmatch(value) is not None
    if label[0].startswith("pwd") and value.startswith("/"):
        return True
    if label["scheme"]:
        return False
    separator = label["sep"]
    if separator.strip() != ":" and (not separator[:1].isspace() and not separator[-1:].isspace()):
        return False  # name=value
    # `name: value` and `name = value` are also prose and code, unless the value ends the line or looks random.
    looks_random = len(value) >= _NEVER_PROSE or (len(value) >= SHORTEST_SECRET and any(c.isdigit() for c in value))
    return not looks_random and not _END_OF_LINE.match(text, bare.end())
