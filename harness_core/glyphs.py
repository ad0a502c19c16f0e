"""Characters that are not what they look like: drawn as nothing, as a blank, or as another character.  Pure.

By rule, since a list of known ones is never complete: by Unicode's categories, by the property Default_Ignorable and by
the names of characters; what looks like ASCII by what it decomposes to. Only letters that look like Latin ones, or like
the syntax of a shell, are listed, from Unicode's confusables (UTS #39), the plain cases: in their own words they are
what they seem to be.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

_PLAIN: Final = re.compile(r"[\n\t -~]*")
# Control, format, surrogate, private, unassigned; line and paragraph separators; all blanks but the one that is typed.
_NOTHING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
# The property of Unicode that Python does not tell, as far as the categories above do not hold it.
_IGNORABLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_BLANK_NAMES: Final = re.compile(r"\b(?:FILLER|BLANK|NULL|SPACE|JOINER|SELECTOR|INHERENT|OBJECT REPLACEMENT)\b")
# Kinds of decomposition that leave the looks as they are; a superscript or a circled letter looks like itself.
_SAME_LOOKS: Final = ("<font>", "<compat>", "<small>", "<vertical>", "<wide>", "<narrow>")
_MARK_NAMES: Final = re.compile(
    r"\b(?:MINUS|HYPHEN|DASH|SLASH|SOLIDUS|DIVIDES|DIVISION|RATIO|TILDE|ASTERISK|BAR|LINE|LESS-THAN|GREATER-THAN|EQUALS"
    r"|PLUS|DOT|APOSTROPHE|QUOTATION|PRIME|COLON|STOP|COMMA|SEMICOLON|BRACKET|PARENTHESIS|CLICK|BOX|DIAGONAL|VERTICAL"
    r"|KANGXI RADICAL (?:ONE|LINE|DOT|SLASH|SECOND)|CJK STROKE|EXTENSION)\b"
)
# The first word of a letter's name, for the scripts that Unicode recommends in names (UAX #31, table 5). Letters of
# others are drawn as a quote, a pipe or a slash too often for what a program reads.
_RECOMMENDED: Final = re.compile(
    r"(?:ARABIC|ARMENIAN|BENGALI|BOPOMOFO|CJK|CYRILLIC|DEVANAGARI|ETHIOPIC|GEORGIAN|GREEK|GUJARATI|GURMUKHI|HANGUL|HEBREW"
    r"|HIRAGANA|KANNADA|KATAKANA|KHMER|LAO|MALAYALAM|MYANMAR|ORIYA|SINHALA|TAMIL|TELUGU|THAANA|THAI|TIBETAN|MICRO)\b"
)
# The Latin letters of languages; those of phonetics hold more quotes and bars.
_LATIN: Final = re.compile("[ªº\u00c0-\u01ba\u01bc-\u01bf\u01c4-\u024f\u1e00-\u1eff]")
# Letters and digits of those scripts that are drawn as syntax (UTS #39, confusables.txt; a pipe looks like its l and
# I as well): in words with others they are what they are, alone they are not.
_STROKES: Final = frozenset(
    "\u05d5\u05d9\u05df\u05f0\u05f1\u05f2"  # Hebrew vav, yod, final nun, and two of them
    "\u0627\ufe8d\ufe8e\u0660\u0661\u06f0\u06f1\u0903\u0a83"  # Arabic alef, zero and one; visarga
    "\u1173\u1175\u3161\u3163\u3127\u3111"  # Hangul eu and i; Bopomofo i and q
    "\u4e00\u4e28\u4e36\u4e3f\u4e85\u4e8c\u3021\u3033\u3034\u3035\u30ce\u30cb\u30fc\uff89\uff86"  # strokes; no, ni
)
_ALIKE: Final = frozenset(
    "асеорхуѕіјԁһӏԛԝѵүАВЕЅІЈКМНОРСТХҮԌԚԜӀ"  # Cyrillic
    "ονρυϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹ"  # Greek
    "օոսհցզքՕՍ"  # Armenian
    "ᎠᎡᎢᎥᎪᎫᎬᎳᎷᎻᏀᏃᏏᏒᏔᏕᏙᏚᏞᏟᏢᏦᏧᏴ"  # Cherokee
    "ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ"  # Lisu
    "ⲟⲣⲥⲭⲞⲢⲤⲬɑɡɩ"  # Coptic, and Latin of phonetics
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_FOREIGN: Final = re.compile(r"[^\x00-\x7f]+")
_CROWD: Final = 4  # marks on one letter, as some writing needs; more of them reach over their neighbours


@lru_cache(maxsize=4_096)
def unseen(char: str) -> bool:
    """Whether a character is drawn as nothing or as a blank, or tells how others are drawn. Tab and newline are too."""
    if " " <= char <= "~":
        return False
    return (
        unicodedata.category(char) in _NOTHING
        or bool(_IGNORABLE.match(char))
        or bool(_BLANK_NAMES.search(unicodedata.name(char, "")))
    )


@lru_cache(maxsize=4_096)
def double(char: str) -> bool:
    """Whether a character is drawn as an ASCII one: by what it decomposes to. Full-width ones are, if a bit wide."""
    how, _, what = unicodedata.decomposition(char).rpartition(" ")
    alike = not what or not how or how in _SAME_LOOKS
    plain = unicodedata.normalize("NFKC", char)
    return char > "~" and alike and len(plain) == 1 and plain <= "~"


@lru_cache(maxsize=4_096)
def wide(char: str) -> bool:
    """Whether it stands in the writing of East Asia: as wide as two letters."""
    return unicodedata.east_asian_width(char) in ("W", "F")


@lru_cache(maxsize=4_096)
def like_syntax(char: str) -> bool:
    """Whether it may be taken for a mark that means something to a program: a quote, a dash, a slash, a colon."""
    if char <= "~":
        return False
    category, name = unicodedata.category(char), unicodedata.name(char, "")
    named = category in ("Sm", "So", "Lo") and bool(_MARK_NAMES.search(name))
    if wide(char):
        return named and category == "So"
    if category in ("Ll", "Lu", "Lt", "Lo") and not _RECOMMENDED.match(name):
        return _LATIN.match(char) is None
    return named or category[0] == "P" or category in ("Sk", "Lm")


def suspects(text: str, *, strict: bool = False) -> frozenset[str]:
    """The characters of a text that are not what they look like, some of them only where they stand.

    strict: for what a program reads: marks that look like those of its syntax count too.
    """
    found: list[str] = []

    def note(char: str) -> str:
        found.append(char)
        return char

    replaced(text, note, strict=strict)
    return frozenset(found)


def replaced(text: str, shown: Callable[[str], str], *, strict: bool = False) -> str:
    """The text with each of its suspects as it shall be shown. Tab and newline stay."""
    if _PLAIN.fullmatch(text):
        return text
    there = {char for char in set(text) if char > "~" or char < " "} - {"\n", "\t"}
    alone = {char for char in there if unseen(char) or (double(char) and not wide(char))}
    alone |= {char for char in there if strict and like_syntax(char)}
    if strict and there & _STROKES:
        text = _FOREIGN.sub(lambda run: _strokes(run[0], shown), text)
    text = text.translate({ord(char): shown(char) for char in alone})
    if any(double(char) and wide(char) for char in there):
        text = "\n".join(_full_width(line, shown) for line in text.split("\n"))
    if there & _ALIKE:
        text = _WORD.sub(lambda word: _letters(word[0], shown), text)
    if marks := {char for char in there - alone if unicodedata.category(char) in ("Mn", "Me")}:
        text = _combining(marks).sub(lambda run: _over(run, shown), text)
    return text


def _each(text: str, which: Callable[[str], bool], shown: Callable[[str], str]) -> str:
    return "".join(shown(char) if which(char) else char for char in text)


def _full_width(line: str, shown: Callable[[str], str]) -> str:
    """Among East Asian writing full-width marks are at home; elsewhere they stand for others."""
    if any(wide(char) and not double(char) and char.isalpha() for char in line):
        return line
    return _each(line, lambda char: double(char) and wide(char), shown)


def _letters(word: str, shown: Callable[[str], str]) -> str:
    """Letters that look Latin, in a word that has Latin ones too, or that has no other ones."""
    mixed = any(char <= "~" for char in word)
    if mixed or (len(word) > 1 and _ALIKE.issuperset(word)):
        return _each(word, _ALIKE.__contains__, shown)
    return word


def _strokes(run: str, shown: Callable[[str], str]) -> str:
    """Letters that are drawn as syntax, in a run of foreign characters that holds no other letters or digits."""
    at_home = any(char not in _STROKES and (char.isalnum() or wide(char)) for char in run)
    return run if at_home else _each(run, _STROKES.__contains__, shown)


def _combining(marks: Iterable[str]) -> re.Pattern[str]:
    return re.compile(f"(.?)([{re.escape(''.join(marks))}]+)", re.DOTALL)


def _over(run: re.Match[str], shown: Callable[[str], str]) -> str:
    """Marks over what is no letter, too many over one, and those that strike it through."""
    base, marks = run[1], run[2]
    if not base or unicodedata.category(base)[0] not in "LM" or len(marks) > _CROWD:
        return base + "".join(map(shown, marks))
    return base + _each(marks, lambda char: "OVERLAY" in unicodedata.name(char, ""), shown)
