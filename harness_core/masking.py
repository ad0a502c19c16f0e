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

from harness_core.secret_labels import FLAG, KEY_NAME, LABEL, secret_after
from harness_core.secret_shapes import (
    BEARER,
    DISTINCT_TOKEN,
    PEM,
    SEVERAL,
    SHORTEST_SECRET,
    SIGNED,
    STARTING_TOKEN,
    URL_PASSWORD,
    carries_more,
    names_a_place,
    too_much,
    word_end,
)
from harness_core.secret_shapes import MASK as MASK
from harness_core.types import Args

LONG: Final = 10_000  # characters of a text whose masking is remembered, for the LONG_KEPT last ones
LONG_KEPT: Final = 8
DEEPEST: Final = 50  # levels of nested arguments that are looked into; what lies deeper is hidden whole


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
    would run: whole lines (a private key), a value of several words, all that lies below a name, a word that is longer
    than any key, or one that is a text in another writing (base64, hex, percent signs).
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
        secret = bool(KEY_NAME.search(key))
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
        if secret and not (self.tight and isinstance(value, str) and names_a_place(value)):
            self.more |= isinstance(value, str) and (bool(SEVERAL.search(value)) or too_much(value))
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
    text, lines = PEM.subn(rf"\1{MASK}", text)
    for tokens in (DISTINCT_TOKEN, STARTING_TOKEN):
        text = tokens.sub(lambda found: _keep_prefix(found, hidden), text)
    text = URL_PASSWORD.sub(lambda found: _hide_password(found, tight, hidden), text)
    text = BEARER.sub(lambda found: _hide_bearer(found, tight, hidden), text)
    for labels in (LABEL, FLAG):
        text = _hide_labelled(text, labels, tight, hidden)
    return text, bool(lines) or any(hidden)


def _keep_prefix(found: re.Match[str], hidden: list[bool]) -> str:
    prefix = found[found.lastindex or 0]
    hidden.append(carries_more(found[0], signed=prefix in SIGNED))
    return f"{prefix}{MASK}"


def _hide_password(found: re.Match[str], tight: bool, hidden: list[bool]) -> str:
    end = word_end(found[2], 0, len(found[2])) if tight else len(found[2])
    hidden.append(carries_more(found[2][:end]))
    return f"{found[1]}{MASK}{found[2][end:]}" if end else found[0]


def _hide_bearer(found: re.Match[str], tight: bool, hidden: list[bool]) -> str:
    word = found[0][len(found[1]) :]
    if tight and names_a_place(word):
        return found[0]
    hidden.append(too_much(word))
    return f"{found[1]}{MASK}"


def _hide_labelled(text: str, labels: re.Pattern[str], tight: bool, hidden: list[bool]) -> str:
    """Hide the values after labels. A label whose value is none is passed over, and the search goes on behind it."""
    out: list[str] = []
    done = at = 0
    while label := labels.search(text, at):
        at = label.end()
        if labels is FLAG and not KEY_NAME.search(label[1]):
            continue
        start, end = secret_after(text, label)
        end = word_end(text, start, end) if tight else end
        if end > start and not (tight and names_a_place(text[start:end])):
            hidden.append(too_much(text[start:end]))
            out += text[done:start], MASK
            done = at = end
    return "".join([*out, text[done:]])
