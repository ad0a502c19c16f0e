"""The parser: tree-sitter with the bash grammar, or nothing if it cannot be loaded. Then every command asks.

It is C code that reads what a stranger wrote, so it gets less than that: its scanner looks characters up in tables that
end at ASCII, and a character far beyond them ended the process or never came back. Each byte that is not plain ASCII
is shown to it as a letter. Places stay the same, and words are read from the real text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

try:
    import tree_sitter
    import tree_sitter_bash

    _PARSER: Any = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
except Exception:  # absent, or of another build: what cannot be read is never guessed at
    _PARSER = None

MISSING: Final = "commands cannot be read here, because tree-sitter is not installed"
PIECE: Final = 256  # bytes that the parser is handed at once
PIECES: Final = 200  # that any text may take; one that is read in order takes three for each PIECE
MANY: Final = 100  # here-documents, or backticks, in one text; the parser's time grows with their square and their cube
# What the parser passes over at once, as the code in a text for people: it looks for no command behind a backtick here.
_MUTE: Final = re.compile(rb"\\.|'[^']*'|<<-?[ \t]*(['\"])(\w+)\1.*?\n\t*\2$", re.S | re.M)
# Reports that the parser may make of its progress, one for each hundred steps: any text REPORTS, and one more for each
# BYTES. Of 2,085 pieces of scripts from 1,000 to 10,000 characters none took more. Of a text that is made up for it the
# time grows with the cube of its length, and where it ends nothing is reported for seconds.
REPORTS: Final = 30
BYTES: Final = 120
AFTER_FAULT: Final = 10  # once it has found a fault

_SHOWN: Final = bytes(byte if byte in b"\t\n" or 32 <= byte < 127 else ord("x") for byte in range(256))


def missing() -> bool:
    """Whether there is no parser."""
    return _PARSER is None


def parse(source: bytes) -> Any:
    """The root node of the syntax tree of a command; None without a parser, or if the command is too much for it.

    The text of its nodes is not in the tree: it is source[node.start_byte:node.end_byte].
    """
    return None if _PARSER is None else _root(source)


@lru_cache(maxsize=4)  # the strict and the lenient reading look at the same command
def _root(source: bytes) -> Any:
    shown = source.translate(_SHOWN)
    if shown.count(b"<<") > MANY or (shown.count(b"`") > MANY and _MUTE.sub(b"", shown).count(b"`") > MANY):
        return None
    left = REPORTS + len(shown) // BYTES
    pieces = PIECES + len(shown) * 16 // PIECE
    tree = None

    def piece(at: int, _: object) -> bytes:
        """What is there; nothing more for a parser that looks through the same text again and again."""
        nonlocal pieces
        pieces -= 1
        return shown[at : at + PIECE] if pieces >= 0 else b""

    def tired(_: int, faulty: bool) -> bool:
        nonlocal left
        left = min(left - 1, AFTER_FAULT) if faulty else left - 1
        return left < 0 or pieces < 0

    try:
        tree = _PARSER.parse(piece, progress_callback=tired)
    except ValueError:  # py-tree-sitter: it was stopped
        return None
    finally:
        if tree is None or pieces < 0:
            _PARSER.reset()  # or it would go on with this text when it is handed the next one
    return tree.root_node if pieces >= 0 else None


def forget() -> None:
    """Forget the trees that were made."""
    _root.cache_clear()


def language() -> Any:
    """The grammar in use, for a test that pins its node kinds; None without a parser."""
    return None if _PARSER is None else _PARSER.language
