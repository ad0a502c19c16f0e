"""Programs whose arguments are a language of their own: what of it only reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from harness_core.permissions.flags import Given, Refused
from harness_core.permissions.text import listed
from harness_core.permissions.words import Word

Paths = list[Word]

# Each takes the words behind the program, and returns those that are paths. Raises Refused.


def find(words: Sequence[Word]) -> Paths:
    """Paths, then tests and printing. What it may run, delete or write is not on the list."""
    paths: Paths = []
    at = 0
    while at < len(words) and words[at].text in ("-H", "-P"):
        at += 1
    while at < len(words) and not words[at].text.startswith(("-", "(", "!", ")", ",")):
        paths.append(_steady(words[at], "find"))
        at += 1
    while at < len(words):
        test = words[at].text
        at += 1
        if test in _FIND_PLAIN:
            continue
        if test not in _FIND_VALUED and not re.fullmatch(r"-newer[acmB][acmBt]", test):
            raise Refused(f"`{test}` of find is not known to be harmless")
        if at >= len(words):
            raise Refused(f"`{test}` of find has no value")
        value = _steady(words[at], "find")
        at += 1
        if test in _FIND_PATHS or (test.startswith("-newer") and not test.endswith("t")):
            paths.append(value)
    return paths


_FIND_PLAIN: Final = listed(
    "( ) ! , -a -o -and -or -not -print -print0 -ls -prune -quit -empty -depth -daystart -xdev -mount -noleaf -true "
    "-false -readable -writable -executable -nouser -nogroup -noignore_readdir_race -ignore_readdir_race"
)
_FIND_VALUED: Final = listed(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname -type -xtype -size "
    "-newer -anewer -cnewer -mtime -atime -ctime -mmin -amin -cmin -maxdepth -mindepth -user -group -uid -gid -perm "
    "-links -inum -samefile -fstype -used -printf"
)
_FIND_PATHS: Final = listed("-anewer -cnewer -samefile")


def _steady(word: Word, name: str) -> Word:
    if word.leading:
        raise Refused(f"`{word.text}` may become an option of {name}")
    return word


# Blanks are matched in one place each: two neighbours that match the same make a hostile script slow.
_SED_LINE: Final = r"(?:\d+(?:~\d+)?|\$)"
_SED_PLAIN: Final = r"(?:[pd=]|q\d*)[ \t]*"
_SED_COMMAND: Final = (
    rf"(?:{_SED_LINE}(?:,(?:{_SED_LINE}|\+\d+))?[ \t]*)?(?:![ \t]*)?"
    rf"(?:{_SED_PLAIN}|\{{[ \t]*{_SED_PLAIN}(?:;[ \t]*{_SED_PLAIN})*;?[ \t]*\}}[ \t]*)"
)
_SED: Final = re.compile(rf"[ \t]*{_SED_COMMAND}(?:[;\n][;\n \t]*{_SED_COMMAND})*[;\n]?\s*")


def sed(what: Given) -> None:
    """Line numbers with print, delete and quit; anything else of sed can write files or run programs."""
    scripts = [value.text for option, value in what.options if option in ("-e", "--expression") and value]
    if not scripts:
        if not what.operands:
            raise Refused("sed has no script")
        scripts = [what.operands[0].text]
    if not all(_SED.fullmatch(script) for script in scripts):
        raise Refused("this sed script is not a plain one that prints lines by number")


_AWK_FIELD: Final = r"(?:\$(?:\d+|NF|\(NF-\d+\))|NR|NF|\"[\w .,:;=/()%+-]*\")"
_AWK_CONDITION: Final = (
    r"(?:(?:NR|NF)\s*(?:==|!=|>=|<=|>|<|%)\s*\d+(?:\s*&&\s*NR\s*(?:==|!=|>=|<=|>|<)\s*\d+)?|/[\w .:-]+/)"
)
_AWK: Final = re.compile(
    rf"\s*(?:{_AWK_CONDITION}\s*)?\{{\s*print(?:\s+{_AWK_FIELD}(?:\s*(?:,\s*)?{_AWK_FIELD})*)?\s*(?:;\s*)?\}}\s*"
    rf"|\s*{_AWK_CONDITION}\s*"
)


def awk(what: Given) -> None:
    """One program that prints fields, matched as a whole."""
    if not what.operands or not _AWK.fullmatch(what.operands[0].text):
        raise Refused("this awk program is not a plain one that prints fields")
    if any("=" in operand.text for operand in what.operands[1:]):
        raise Refused("awk takes an operand with = for an assignment")


def tar(words: Sequence[Word]) -> Paths:
    """Listing one local archive: `tf`, `-tzf`, `--list --file=…`."""
    paths: Paths = []
    lists, at = False, 0
    while at < len(words):
        word = words[at]
        if word.glob:
            raise Refused(f"`{word.text}` may become an option of tar")
        text = word.text
        if text == "--file":
            at += 1
            paths.append(_archive(words, at))
        elif text.startswith("--"):
            lists = _tar_long(text, paths) or lists
        elif at == 0 or text.startswith("-"):
            letters = text.lstrip("-")
            if not letters or not set(letters) <= set("tvzjJf") or letters.count("f") > 1:
                raise Refused(f"the options `{text}` of tar are not known to be harmless")
            # A dash bundle takes what follows f as its value; old-style letters take the next word.
            _, f, attached = letters.partition("f")
            if f and attached and text.startswith("-"):
                raise Refused("the archive is written into the options of tar")
            lists = lists or "t" in letters
            if f:
                at += 1
                paths.append(_archive(words, at))
        at += 1
    if not lists or not paths:
        raise Refused("tar does more than list one archive")
    if any(":" in path.text or (path.text.startswith("-") and path.text != "-") or path.glob for path in paths):
        raise Refused("tar may contact another host for this archive")
    return paths


def _archive(words: Sequence[Word], at: int) -> Word:
    if at >= len(words):
        raise Refused("tar has no archive")
    return words[at]


def _tar_long(text: str, paths: Paths) -> bool:
    option, equals, value = text.partition("=")
    if option == "--file" and value:
        paths.append(Word(value))
    elif equals or option not in (
        "--list",
        "--verbose",
        "--gzip",
        "--bzip2",
        "--xz",
        "--zstd",
        "--numeric-owner",
        "--wildcards",
    ):
        raise Refused(f"the option {option} of tar is not known to be harmless")
    return option == "--list"


_FILE_TESTS: Final = listed("-e -f -d -s -r -w -x -L -h -b -c -p -S -O -G -N -k -u -g")
_TEXT_TESTS: Final = listed("-n -z -t")
_COMPARISONS: Final = listed("= == !=")
_NUMBER_COMPARISONS: Final = listed("-eq -ne -gt -lt -ge -le")
_NUMBERS: Final = re.compile(r"-?\d+ -?\d+")
_FILE_COMPARISONS: Final = listed("-nt -ot -ef")


def test(words: Sequence[Word]) -> Paths:
    """Clauses of one, two or three words, joined by -a and -o; `-v` evaluates its operand and is not among them."""
    if any(word.glob for word in words):
        raise Refused("a glob may become a test of its own")
    paths: Paths = []
    clause: list[Word] = []
    for word in [*words, Word("-a")]:
        if word.text not in ("-a", "-o"):
            clause.append(word)
            continue
        paths.extend(_clause(clause))
        clause = []
    return paths


def _clause(clause: list[Word]) -> Paths:
    while clause and clause[0].text == "!":
        clause = clause[1:]
    match [word.text for word in clause]:
        case [one] if not _operator(one):
            return []
        case [operator, _] if operator in _FILE_TESTS:
            return [clause[1]]
        case [operator, _] if operator in _TEXT_TESTS:
            return []
        case [left, operator, right] if operator in _COMPARISONS and not _operator(left) and not _operator(right):
            return []
        case [left, operator, right] if operator in _NUMBER_COMPARISONS and _NUMBERS.fullmatch(f"{left} {right}"):
            return []
        case [_, operator, _] if operator in _FILE_COMPARISONS:
            return [clause[0], clause[2]]
    raise Refused("this test is not one of the plain ones")


def _operator(text: str) -> bool:
    return text.startswith("-") and not re.fullmatch(r"-\d+", text)


def bracket(words: Sequence[Word]) -> Paths:
    """`[ … ]`, which ends with its bracket."""
    return test(words[:-1])


_CONVERSION: Final = re.compile(r"%(?:[-+ #0]*\d{0,3}(?:\.\d{1,3})?[sdiouxXcbqfeEgG]|%)")


def printf(words: Sequence[Word]) -> Paths:
    """A format of plain conversions: `%n` sets a variable, `-v` too."""
    ended = bool(words) and words[0].text == "--"
    rest = words[1:] if ended else words
    if not rest or (rest[0].text.startswith("-") and not ended) or rest[0].glob:
        raise Refused("printf has no plain format")
    if "%" in _CONVERSION.sub("", rest[0].text):
        raise Refused("the format of printf does more than print")
    return []


def echo(words: Sequence[Word]) -> Paths:
    """Prints its words, whatever they are."""
    return []


def date(what: Given) -> None:
    """Shows a date; an operand without + would set the clock."""
    if any(not operand.text.startswith("+") for operand in what.operands) or len(what.operands) > 1:
        raise Refused("date may set the clock")
    if any(value and "TZ" in value.text for _, value in what.options):
        raise Refused("TZ can name a file")


def diff(what: Given) -> None:
    """Inside folders it follows symlinks, unless told not to or to say no more than which files differ."""
    if what.has("-r", "--recursive") and not what.has("-q", "--brief", "--no-dereference"):
        raise Refused("diff -r follows symlinks inside the folders; with --no-dereference it does not")


def command(words: Sequence[Word]) -> Paths:
    """Only `command -v name`: without -v it runs what it is given."""
    if len(words) < 2 or words[0].text not in ("-v", "-V") or any(w.text.startswith("-") for w in words[1:]):
        raise Refused("command runs what it is given")
    return []


def xxd(words: Sequence[Word]) -> Paths:
    """A dump of one file: a second name would be written, and -r turns it round."""
    paths: Paths = []
    at = 0
    while at < len(words):
        text = words[at].text
        at += 1
        if words[at - 1].glob:
            raise Refused("a glob may become two files, and the second is written")
        if re.fullmatch(r"-(a|b|e|u|p|ps|i|d)|-[cglos] ?[+-]?\d+", text):
            continue
        if re.fullmatch(r"-(c|g|l|s|o|len|cols)", text) and at < len(words):
            if not re.fullmatch(r"[+-]?(0x)?[0-9a-fA-F]+", words[at].text):
                raise Refused("an option of xxd is not plain")
            at += 1
        elif text.startswith("-") and text != "-":
            raise Refused(f"the option {text} of xxd is not known to be harmless")
        else:
            paths.append(words[at - 1])
    if len(paths) > 1:
        raise Refused("the second file of xxd is written")
    return paths


def strings(what: Given) -> None:
    """An operand that begins with @ names a file of options."""
    if any(operand.text.startswith("@") for operand in what.operands):
        raise Refused("@ names a file of options")


def unzip(what: Given) -> None:
    """Only if it lists or tests: otherwise it writes."""
    if not what.has("-l", "-v", "-t", "-Z"):
        raise Refused("unzip writes what it unpacks")


_PACKED: Final = (".gz", ".tgz", ".Z", ".z", ".taz", "-gz", "-z", "_z")  # suffixes that gzip takes away


def packed(what: Given) -> None:
    """Only if it lists, tests or prints: otherwise it puts another file into the place of the one it is given."""
    if not what.has("-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test"):
        raise Refused("without -c it replaces the file")
    packed_names(what)


def packed_names(what: Given) -> None:
    """gzip looks for NAME.gz where there is no NAME, and nobody has looked where that one leads."""
    for operand in what.operands:
        if operand.text != "-" and not operand.text.endswith(_PACKED):
            raise Refused(f"another file may be read in place of {operand.text}")
