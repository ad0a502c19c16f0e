"""What a text may hold before anybody reads meaning into it: nothing invisible, nothing that looks like another."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from harness_core.glyphs import suspects, unseen

LONGEST_COMMAND: Final = 10_000  # characters that a reviewer can be expected to read
BLANKS: Final = 200  # in a row: what stands behind them is out of sight
NEWLINES: Final = 50  # in a row, likewise

_PLAIN: Final = re.compile(r"[\n\t -~]*")
_PADDING: Final = re.compile(rf"[ \t]{{{BLANKS},}}|(?:[ \t]*\n){{{NEWLINES},}}")
_FULL_WIDTH: Final = re.compile("[\uff01-\uff5e\uffe0-\uffe6]")
_DASHES: Final = frozenset("\u02d7\u2043\u2212\u2796\u30fc\u4e00\u1173")


def listed(names: str) -> frozenset[str]:
    """The names in a text, for tables that are easier to read so."""
    return frozenset(names.split())


def invisible(text: str) -> str:
    """Why a text cannot be trusted to be what it looks like; "" if it can. Tab and newline are no fault here."""
    if _PLAIN.fullmatch(text):
        return ""
    if found := _FULL_WIDTH.search(text):
        return f"the text holds a full-width character (U+{ord(found[0]):04X}) that looks like another"
    for char in sorted(suspects(text), key=lambda char: (not unseen(char), char)):
        what = "an invisible or control character" if unseen(char) else "a character that looks like another"
        return f"the text holds {what} (U+{ord(char):04X})"
    return ""


def disguised(command: str) -> str:
    """Why a command cannot be reviewed by its looks; "" if it can."""
    if len(command) > LONGEST_COMMAND:
        return f"the command is longer than {LONGEST_COMMAND:,} characters"
    if "\\\n" in command:
        return "a backslash at the end of a line joins two lines"
    if _PADDING.search(command):
        return "the command is padded with blanks or empty lines"
    return invisible(command)


def dash_like(word: str) -> bool:
    """Whether a word begins with something that looks like the dash of an option and is none."""
    return bool(word) and word[0] > "~" and (unicodedata.category(word[0]) == "Pd" or word[0] in _DASHES)
