"""Hide secrets in text that people or logs will see.  Values are hidden, never the structure around them.

Pure, but for one registry: values that the host knows to be secret (`register_secret`). With the same registry the same
text always gives the same result. Every pass is linear in the text, whoever wrote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import count
from typing import Any, Final
from urllib.parse import quote

from harness_core.types import Args

MASK: Final = "•••"

SHORTEST_SECRET: Final = 6  # characters; shorter values would blot out ordinary words
LONG: Final = 10_000  # characters of a text whose masking is remembered, for the LONG_KEPT last ones
LONG_KEPT: Final = 8
DEEPEST: Final = 50  # levels of nested arguments that are looked into; what lies deeper is hidden whole
# Characters that a mask may hide of what somebody approves. Keys have fewer, but for signed tokens that carry claims.
LONGEST_KEY: Final = 256
LONGEST_TOKEN: Final = 2_048

# -- what a secret looks like by itself --------------------------------------------------------------------------------

# Prefixes that nothing else has: found anywhere, even glued to other text. The group is what stays visible.
_DISTINCT: Final = (
    r"(xox[a-z]-)(?>(?:[\w%+/=-]|\.(?=xox[a-z]-)){6,})",
    r"(xoxe\.xox[a-z]-)[\w%+/=-]{6,}+",
    r"(xapp-)[\w%+/=-]{6,}+",
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[\w/%-]++",
    r"(gh[pousr]_)[A-Za-z0-9]{20,}+",
    r"(github_pat_)\w{20,}+",
    r"(glpat-)[\w-]{16,}+",
    r"(sk-ant-)[\w-]{8,}+",
    r"(GOCSPX-)[\w-]{20,}+",
    r"([srp]k_(?:live|test)_)[A-Za-z0-9]{10,}+",
)
# Prefixes that could end another word: only at the start of one.
_AT_START: Final = (
    r"(sk-(?:proj-|or-|svcacct-)?)(?=[\w-]{0,60}?\d)[\w-]{16,}+",
    r"((?:AKIA|ASIA|ABIA|ACCA))[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"(AIza)[\w-]{30,}+",
    r"(ya29\.)[\w.-]{20,}+",
    r"(whsec_)[\w+/=]{16,}+",
    r"(npm_)[A-Za-z0-9]{30,}+",
    r"(pypi-)[\w-]{40,}+",
    r"(hf_)[A-Za-z0-9]{30,}+",
    r"(gsk_)[A-Za-z0-9]{30,}+",
    r"(SG\.)[\w-]{16,}+\.[\w-]{16,}+",
    r"(eyJ)[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+",  # a JSON Web Token
)
_SIGNED: Final = frozenset({"eyJ", "ya29."})  # prefixes of tokens that carry claims
# A word starts after anything but a letter or digit, and after an escape that ends in one: \n, \u0022, %3D.
_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
_DISTINCT_TOKEN: Final = re.compile("|".join(_DISTINCT), re.ASCII)
_STARTING_TOKEN: Final = re.compile(_START + "(?:" + "|".join(_AT_START) + ")", re.ASCII)

_BEARER: Final = re.compile(r"(?i)(?<![a-z0-9])(bearer[ \t]{1,4})(?=[\w.~+/=-]{0,60}?\d)[\w.~+/=-]{16,}+", re.ASCII)

# scheme://user:password@host. What is masked already is no part of it; a variable or a command is structure and stays.
_URL_PASSWORD: Final = re.compile(r"(://[^\s/@:?#\"'<>•]*+:)(?![$`])([^\s/?#\"'<>`$•]*)(?=@)")

_LINE: Final = (
    r"(?>(?:(?:[\r\n \t]|\\[rn])(?:[+|>]|-(?!-)|-(?=-----END))?)+)"  # line breaks, escaped ones, a diff's margin
)
_PEM: Final = re.compile(
    r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----)"
    rf"(?>(?:{_LINE}(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]*+)*)"
    rf"(?>(?:{_LINE}[A-Za-z0-9+/=]{{16,}}+)+)"
    rf"(?>(?:{_LINE}[A-Za-z0-9+/=]{{1,15}}+(?={_LINE}-----END))?)"
)

# -- what is a secret because of its label -----------------------------------------------------------------------------

_SECRET_NAME: Final = (
    r"(?:passw(?:or)?d|passphrase|secret|token|credentials?|authorization"
    r"|(?:api|access|secret|private|signing|encryption|account|auth)[_-]?key(?:[_-]?id)?)"
)
_KEY_NAME: Final = re.compile(rf"(?i){_SECRET_NAME}\d?$", re.ASCII)
_LABEL: Final = re.compile(
    rf"(?:(?i:{_SECRET_NAME})\d?(?:\\*[\"'])?\]?|(?<![A-Za-z])pwd|(?<![A-Za-z])ticket(?==))(?![\w-])"
    r"(?P<sep>[ \t]{0,8}(?:: ?[A-Za-z][\w.|\[\] ]{0,30}= ?|:=|=>|={1,3}|:)[ \t]{0,8})"
    r"(?i:(?P<scheme>(?:\\*[\"'])?(?:bearer|basic|token|bot|apikey)[ \t]{1,4}))?",
    re.ASCII,
)
_FLAG: Final = re.compile(r"(?<![\w-])--([\w-]++)[ \t]++(?=[^\s-])", re.ASCII)

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
_STRUCTURE: Final = re.compile(r"[\s;|&<>(){}\[\]$`\"'\\#!*?~^]")
_SEVERAL: Final = re.compile(r"[\s;|&<>(){}$`\"'\\]")  # more than a word, to a shell; of the rest passwords are made
_NEVER_PROSE: Final = 64  # characters without a blank

# What names a file or an address is no secret where somebody approves: a shell may run it.
_PLACE: Final = re.compile(
    r"(?:~|\.{1,2})?/.*|[a-z][a-z0-9+.-]*://.*|[a-z0-9_.-]+(?:/[a-z0-9_.-]+)+/?"
    r"|[\w.-]+\.(?:sh|bash|zsh|py|pl|rb|js|mjs|ts|php|lua|ps1|bat|cmd|exe|jar)",
    re.ASCII | re.DOTALL,
)
_RANDOM: Final = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{20,}", re.DOTALL)  # as base64 is, slashes and all

# -- the registry ------------------------------------------------------------------------------------------------------

_registered: set[str] = set()
_known: re.Pattern[str] | None = None


def register_secret(value: str) -> None:
    """Hide this exact value from now on, wherever it stands, also URL-quoted or JSON-escaped: the host's own tokens.

    For the whole process, and never undone. Values shorter than SHORTEST_SECRET are ignored.
    """
    global _known
    if len(value) < SHORTEST_SECRET or "•" in value:
        return
    written = value.encode("utf-8", "replace").decode()
    _registered.update({value, quote(written, safe=""), json.dumps(value)[1:-1]})
    # Longest first: a secret that begins with another one is hidden whole.
    _known = re.compile("|".join(re.escape(s) for s in sorted(_registered, key=lambda s: (-len(s), s))))
    _mask_long.cache_clear()


# -- what the host calls -----------------------------------------------------------------------------------------------


def mask(text: str, *, tight: bool = False) -> str:
    """The text with every secret in it replaced by •••; a vendor's prefix stays (`xoxb-•••`).

    tight: for what a person is asked to approve. Nothing is hidden beyond one word: a shell may read quotes otherwise
    than we do, and what we take for the rest of a password may be a command. See also `hides_more`.
    Pure given the registry, idempotent, linear; grows by two characters for each value hidden at most.
    """
    return _Masking(tight).text(text)


def hides_more(value: str | Args) -> bool:
    """Whether masking this for approval hides more than words that look like secrets, so that nobody can tell what
    would run: whole lines (a private key), a value of several words, all that lies below a name, or a word that is
    longer than any key.
    """
    masking = _Masking(tight=True)
    if isinstance(value, str):
        masking.text(value)
    else:
        masking.mapping(value)
    return masking.more


def masked(text: str) -> bool:
    """Whether `mask` hides anything in this text."""
    return mask(text) != text


def mask_args(args: Args, *, tight: bool = False) -> dict[str, Any]:
    """A copy of the arguments in which every text is masked, and whole values are under names like `password`.

    Names that would become the same are numbered: no value is lost.
    """
    return _Masking(tight).mapping(args)


def numbered(name: str, taken: Collection[str]) -> str:
    """The name, or, where it is taken, the same with a number behind it: two names never become one."""
    if name not in taken:
        return name
    return next(other for n in count(len(taken) + 1) if (other := f"{name} ({n})") not in taken)


# -- how ---------------------------------------------------------------------------------------------------------------


class _Masking:
    """One pass over a text or over arguments. more: it hid more than words that look like secrets."""

    def __init__(self, tight: bool) -> None:
        self.tight, self.more = tight, False

    def text(self, text: str) -> str:
        safe, more = _mask_long(text, self.tight) if len(text) >= LONG else _mask(text, self.tight)
        self.more |= more
        return safe

    def mapping(self, args: Mapping[str, Any], under: str = "", depth: int = 1) -> dict[str, Any]:
        """under: the secret name that all of this lies below."""
        made: dict[str, Any] = {}
        for key, value in args.items():
            made[numbered(self.text(str(key)), made)] = self._value(under or str(key), value, depth)
        return made

    def _value(self, key: str, value: Any, depth: int) -> Any:
        secret = bool(_KEY_NAME.search(key))
        if depth > DEEPEST:
            self.more = True
            return MASK
        if isinstance(value, Mapping):
            self.more |= secret and bool(value)
            return self.mapping(value, key if secret else "", depth + 1)
        if isinstance(value, list | tuple):
            self.more |= secret and bool(value)
            return [self._value(key, one, depth + 1) for one in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        if secret and not (self.tight and isinstance(value, str) and _place(value)):
            self.more |= isinstance(value, str) and (bool(_SEVERAL.search(value)) or _too_much(value))
            return MASK
        return self.text(value) if isinstance(value, str) else value


@lru_cache(maxsize=LONG_KEPT)
def _mask_long(text: str, tight: bool) -> tuple[str, bool]:
    # A long argument is drawn again and again while its card waits, and each pass over it takes a tenth of a second.
    return _mask(text, tight)


def _mask(text: str, tight: bool) -> tuple[str, bool]:
    """The text, masked, and whether that hides more than words that look like secrets."""
    hidden: list[bool] = []  # per stretch: whether it is more than a word that looks like a secret
    if _known is not None:
        text = _known.sub(MASK, text)
    text, lines = _PEM.subn(rf"\1{MASK}", text)
    for tokens in (_DISTINCT_TOKEN, _STARTING_TOKEN):
        text = tokens.sub(lambda found: _keep_prefix(found, hidden), text)
    text = _URL_PASSWORD.sub(lambda found: _hide_password(found, tight, hidden), text)
    text = _BEARER.sub(lambda found: _hide_bearer(found, tight, hidden), text)
    for labels in (_LABEL, _FLAG):
        text = _hide_labelled(text, labels, tight, hidden)
    return text, bool(lines) or any(hidden)


def _too_much(word: str) -> bool:
    """Whether a hidden word is longer than any secret, or could be a file as well."""
    return _too_long(word, signed=word.startswith("eyJ")) or _PLACE.fullmatch(word) is not None


def _too_long(word: str, *, signed: bool = False) -> bool:
    return len(word) > (LONGEST_TOKEN if signed else LONGEST_KEY)


def _place(word: str) -> bool:
    """Whether a word names a file or an address, and does not look as if it were drawn by lot."""
    return _PLACE.fullmatch(word) is not None and _RANDOM.match(word) is None and not _SEVERAL.search(word)


def _keep_prefix(found: re.Match[str], hidden: list[bool]) -> str:
    prefix = found[found.lastindex or 0]
    hidden.append(_too_long(found[0], signed=prefix in _SIGNED))
    return f"{prefix}{MASK}"


def _hide_password(found: re.Match[str], tight: bool, hidden: list[bool]) -> str:
    end = _word_end(found[2], 0, len(found[2])) if tight else len(found[2])
    hidden.append(_too_long(found[2][:end]))
    return f"{found[1]}{MASK}{found[2][end:]}" if end else found[0]


def _hide_bearer(found: re.Match[str], tight: bool, hidden: list[bool]) -> str:
    word = found[0][len(found[1]) :]
    if tight and _place(word):
        return found[0]
    hidden.append(_too_much(word))
    return f"{found[1]}{MASK}"


def _word_end(text: str, start: int, end: int) -> int:
    """Where the first word of a span ends: at a blank, or at anything that means something to a shell."""
    structure = _STRUCTURE.search(text, start, end)
    return structure.start() if structure else end


def _hide_labelled(text: str, labels: re.Pattern[str], tight: bool, hidden: list[bool]) -> str:
    """Hide the values after labels. A label whose value is none is passed over, and the search goes on behind it."""
    out: list[str] = []
    done = at = 0
    while label := labels.search(text, at):
        at = label.end()
        if labels is _FLAG and not _KEY_NAME.search(label[1]):
            continue
        start, end = _secret(text, label, flag=labels is _FLAG)
        end = _word_end(text, start, end) if tight else end
        if end > start and not (tight and _place(text[start:end])):
            hidden.append(_too_much(text[start:end]))
            out += text[done:start], MASK
            done = at = end
    return "".join([*out, text[done:]])


def _secret(text: str, label: re.Match[str], flag: bool) -> tuple[int, int]:
    """Where the secret after this label begins and ends; an empty span if there is none."""
    at = label.end()
    scheme = "" if flag else label["scheme"] or ""
    quote_mark = next((c for c in scheme[:2] if c in "\"'"), "") or text[at : at + 1]
    if quote_mark in ('"', "'"):
        start = at if scheme[:1] in ('"', "'", "\\") else at + 1
        return _unless_shown(text, start, _QUOTED[quote_mark].match(text, start))
    if escaped := _ESCAPED.match(text, at):
        return _unless_shown(text, escaped.start(2), escaped)
    bare = _BARE.match(text, at)
    if bare is None or _harmless(text, bare, label, flag):
        return at, at
    rest = _BARE_REST.match(text, bare.end())
    return at, rest.end() if rest else bare.end()


def _unless_shown(text: str, start: int, value: re.Match[str] | None) -> tuple[int, int]:
    end = value.end() if value else start
    if text.startswith(_REFERENCE, start) or _ALREADY.match(text[start : min(end, start + 40)]):
        return start, start
    return start, end


def _harmless(text: str, bare: re.Match[str], label: re.Match[str], flag: bool) -> bool:
    """Whether an unquoted value is code, prose or hidden already, rather than a secret."""
    value, following = bare[0], text[bare.end() : bare.end() + 1]
    if _ALREADY.match(value) or _NO_SECRET.fullmatch(value) or value.startswith("//"):
        return True
    if following in ("(", "[") and _CALL.fullmatch(value):
        return True  # token=fetch_token(...)
    if flag:
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
