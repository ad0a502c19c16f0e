"""The parser: tree-sitter with the bash grammar, or nothing if it cannot be loaded. Then every command asks."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

try:
    import tree_sitter
    import tree_sitter_bash

    _PARSER: Any = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
except Exception:  # absent, or of another build: what cannot be read is never guessed at
    _PARSER = None

MISSING: Final = "commands cannot be read here, because tree-sitter is not installed"


def parse(source: bytes) -> Any:
    """The root node of the syntax tree of this command; None without a parser."""
    return None if _PARSER is None else _root(source)


@lru_cache(maxsize=4)  # the strict and the lenient reading look at the same command
def _root(source: bytes) -> Any:
    return _PARSER.parse(source).root_node


def forget() -> None:
    """Forget the trees that were made."""
    _root.cache_clear()


def language() -> Any:
    """The grammar in use, for a test that pins its node kinds; None without a parser."""
    return None if _PARSER is None else _PARSER.language
