"""Untrusted text as people may safely read it: secrets masked, the invisible made visible, cuts marked.  Pure."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bot import limits
from harness_core import glyphs
from harness_core.hitl import HITLTask
from harness_core.masking import MASK, hides_more, mask, mask_args, numbered
from harness_core.permissions.everywhere import commands_in
from harness_core.types import Args

# Runs of blanks that push what follows out of sight. Deep indentation stays below it.
PADDING: Final = 40
EMPTY_LINES: Final = 6
HEAD: Final = 0.7  # share of a cut text that its beginning gets; the end gets the rest

TABS: Final = 5  # within a line they are as wide as PADDING; before it they indent

_SELECTOR: Final = re.compile("(.?)\ufe0f", re.DOTALL)
_BULLET: Final = MASK[0]
_OURS: Final = re.compile("[⟨⟩]")  # a mark that somebody wrote is none of ours
_PADDING: Final = re.compile(rf"[ \t]{{{PADDING},}}|(?<=\S)[ \t]*(?:\t[ \t]*){{{TABS},}}")
_EMPTY: Final = re.compile(rf"\n(?:[ \t]*\n){{{EMPTY_LINES},}}")
_PLAIN: Final = re.compile(r"[ -~\t\n]*")
_DIFF: Final = re.compile(r"--- [^\n]*\n\+\+\+ b/(?P<path>[^\n]*)\n(?=@@ )")
_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_LITERAL: Final = re.compile(r'\s.*|.*\s|[-+0-9."\[{].*|true|false|null|', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shown:
    """A text for people. masked: secrets were hidden. disguised: it held what cannot be seen, now made visible.

    left_out: characters that were cut away, 0 if it is whole. unreadable: more than secrets of one word is hidden, so
    that nobody can tell what would run: not to be approved.
    """

    text: str
    masked: bool = False
    disguised: bool = False
    left_out: int = 0
    unreadable: bool = False

    @property
    def exact(self) -> bool:
        """What is read is what there is, to the character."""
        return not (self.masked or self.disguised or self.left_out)


def shown(text: str, *, strict: bool = False) -> Shown:
    """Any text, masked and made visible, whole. strict: a program reads it."""
    safe = mask(text, tight=True)
    seen = visible(safe, strict=strict, masked=_BULLET not in text)
    return Shown(seen, masked=safe != text, disguised=seen != safe, unreadable=hides_more(text))


def shown_line(text: str, most: int, heaviest: int | None = None, *, strict: bool = False) -> str:
    """Any text on one line, masked, made visible and clipped. strict: a program reads it."""
    return one_line(visible(mask(text), strict=strict, masked=_BULLET not in text), most, heaviest)


def one_line(seen: str, most: int, heaviest: int | None = None) -> str:
    """A text that is shown already, on one line and clipped."""
    return limits.clip(" ".join(seen.split()), most, heaviest)


def shown_call(task: HITLTask) -> Shown:
    """What a task would do: all arguments, but for those that the tool says its preview tells, and the preview."""
    if not task.preview:
        return shown_args(task.args)
    below = shown(task.preview)
    untold = {key: value for key, value in task.args.items() if key not in task.covers}
    above = shown_args(untold) if untold else Shown("")
    return Shown(
        f"{above.text}\n{below.text}" if untold else below.text,
        above.masked or below.masked,
        above.disguised or below.disguised,
        unreadable=below.unreadable or _unreadable(task.args),
    )


def shown_args(args: Args) -> Shown:
    """All arguments of a call: a lone `command` as it is, else one `key: value` after the other."""
    safe, ours = mask_args(args, tight=True), _BULLET not in json.dumps(args, ensure_ascii=False)
    match safe:
        case {"command": str(command)} if len(safe) == 1 and command.strip():
            text, seen = command, visible(command, strict=True, masked=ours)
        case _ if not safe:
            text = seen = "(no arguments)"
        case _:
            text = "\n".join(f"{_key(key)}: {_value(value)}" for key, value in safe.items())
            seen = "\n".join(_seen(key, value, ours) for key, value in safe.items())
    return Shown(seen, masked=safe != args, disguised=seen != text, unreadable=_unreadable(args))


def _unreadable(args: Args) -> bool:
    """Whether what masks hide may be more than secrets, or is in a command that runs what it makes up on its way."""
    command = args.get("command")
    hidden = isinstance(command, str) and mask(command, tight=True) != command
    return hides_more(args) or (hidden and bool(commands_in(str(command)).opaque))


def is_code(key: str, value: object) -> bool:
    """Whether a program reads the value: a command, or one word such as a path, an address or a name. Prose has blanks,
    and with them dashes and quotes that nobody takes for a program's.
    """
    return isinstance(value, str) and (key == "command" or not re.search(r"\s", value))


def _seen(key: str, value: Any, masked: bool) -> str:
    if isinstance(value, str):
        return visible(f"{_key(key)}: {_value(value)}", strict=is_code(key, value), masked=masked)
    inside = json.dumps(_inside("", value, masked), ensure_ascii=False)
    return f"{visible(_key(key), strict=is_code('', key), masked=masked)}: {inside}"


def _inside(key: str, value: Any, masked: bool) -> Any:
    """A nested value with each of its texts made visible, as far as a program reads it."""
    if isinstance(value, Mapping):
        made: dict[str, Any] = {}
        for name, one in value.items():
            made[numbered(_inside("", name, masked), made)] = _inside(name, one, masked)
        return made
    if isinstance(value, list | tuple):
        return [_inside(key, one, masked) for one in value]
    return visible(value, strict=is_code(key, value), masked=masked) if isinstance(value, str) else value


def shown_change(before: Args, after: Args) -> Shown:
    """What an edit made of the arguments: lines that went (-) and that came (+), among the three around them."""
    kept = {name: after[name] for name in before if name in after}  # the order of a form is no change
    old, new = shown_args(before), shown_args({**kept, **after})
    lines = list(difflib.unified_diff(old.text.split("\n"), new.text.split("\n"), lineterm="", n=3))
    drawn = ["⋯" if line.startswith("@@") else f"{line[:1]} {line[1:]}" for line in lines[3:]]  # without its header
    return Shown("\n".join(drawn) or new.text, old.masked or new.masked, old.disguised or new.disguised)


def shown_gist(task: HITLTask, edited: Args | None, most: int) -> str:
    """What a task would do in one line, for notifications: a diff as its file and how much of it changes."""
    if edited is not None:
        return one_line(shown_args(edited).text, most)
    if found := _DIFF.match(task.preview):
        lines = task.preview[found.end() :].split("\n")
        came, went = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        more = " and more" if any(line.startswith("[") for line in lines) else ""  # no line of a diff; it was cut
        return f"{shown_line(found['path'], most - 40)}, +{came} −{went}{more}"
    return one_line(shown_call(task).text, most)


def visible(text: str, *, strict: bool = False, masked: bool = False) -> str:
    """The text with every character that hides, reorders, pads or looks like another shown as a mark, such as ⟨U+202E⟩
    or ⟨400 spaces⟩. A heart or a flag keeps the selector that colours it. strict: a program reads it (see `glyphs`).
    masked: its ••• are masks, and nobody typed any.
    """
    if not _PLAIN.fullmatch(text):
        mark = _mark_but_masks if masked else _mark
        text = glyphs.replaced(_OURS.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text), mark, strict=strict)
        text = _SELECTOR.sub(_selected, text)
    text = _PADDING.sub(_blanks, text)
    return _EMPTY.sub(lambda found: f"\n⟨{found[0].count(chr(10)) - 1} empty lines⟩\n", text)


def cut(whole: Shown, *, chars: int = limits.ARGUMENTS, lines: int = limits.ARGUMENT_LINES, heaviest: int) -> Shown:
    """The text within these limits, its beginning and its end, with a mark between that says how much is missing."""
    text = whole.text
    if text.count("\n") < lines and limits.within(text, chars, heaviest) == len(text):
        return whole
    chars, lines, heaviest = chars - 60, lines - 1, heaviest - 120  # room for the mark
    start = _fitting(text, int(chars * HEAD), int(lines * HEAD), int(heaviest * HEAD))
    rest = text[start:]
    end = _fitting(rest[::-1], chars - int(chars * HEAD), lines - int(lines * HEAD), heaviest - int(heaviest * HEAD))
    missing = len(rest) - end
    mark = f"⟨{missing:,} characters left out⟩"
    tail = rest[len(rest) - end :]
    return Shown(
        f"{text[:start].rstrip(chr(10))}\n{mark}\n{tail.lstrip(chr(10))}",
        whole.masked,
        whole.disguised,
        missing,
        whole.unreadable,
    )


def on_card(whole: Shown) -> Shown:
    """As much of it as a card shows."""
    return cut(whole, heaviest=limits.ARGUMENTS_WEIGHT)


def _fitting(text: str, chars: int, lines: int, heaviest: int) -> int:
    """How many characters from the start fit into so many characters, lines and weight."""
    part = text[: limits.within(text, chars, heaviest)]
    for place, char in enumerate(part):
        lines -= char == "\n"
        if lines <= 0:
            return place
    return len(part)


def _mark(char: str) -> str:
    return char if char in "⟨⟩\ufe0f" else f"⟨U+{ord(char):04X}⟩"


def _mark_but_masks(char: str) -> str:
    return char if char == _BULLET else _mark(char)


def _selected(found: re.Match[str]) -> str:
    before = found[1]
    return f"{before}{chr(0xFE0F) if before and unicodedata.category(before) == 'So' else '⟨U+FE0F⟩'}"


def _blanks(found: re.Match[str]) -> str:
    run = found[0]
    return f"⟨{len(run)} {'spaces' if set(run) == {' '} else 'blanks'}⟩"


def _key(key: str) -> str:
    return key if _KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _value(value: Any) -> str:
    """A value that cannot be mistaken for another key: further lines are indented, other types are JSON."""
    if isinstance(value, str) and "\n" in value:
        return "\n" + "\n".join(f"    {line}" for line in value.split("\n"))
    if isinstance(value, str) and not _LITERAL.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)
