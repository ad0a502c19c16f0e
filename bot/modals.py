"""The forms behind the buttons of a card.  Pure; `inbound` reads them back.

A modal's private_metadata names the task; what it shows comes from our own record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from bot import ids, kit, limits, words
from bot.ids import Action, Form
from bot.kit import Block, View
from bot.limits import pieces, weight
from bot.shown import Shown, shown_args, shown_call, shown_gist, shown_line
from bot.view import Card, may_always
from harness_core.permissions.rule import PermissionRule

MOST_SEEN: Final = 10  # different calls that a form shows as examples
_ROOM: Final = 4  # blocks of a modal beside the pieces of a text


def message(title: str, text: str) -> View:
    """A modal that only says something of ours, as the answer to a late submission does."""
    return kit.modal(ids.ONLY_READ, title, [kit.section(limits.clip_escaped(text, limits.SECTION_TEXT))])


def form(action: Action, card: Card) -> View | None:
    """The form that a button opens, or None where this card does not offer it (any more)."""
    build = _FORMS.get(action)
    return build(card) if build else None


def review(card: Card) -> View | None:
    """The whole call, to be read before it is approved; None if a modal cannot hold it: then nobody can approve it."""
    whole = shown_call(card.task)
    if whole.unreadable or len(whole.text) > limits.VIEW_BYTES:
        return None
    unknown = card.task.kind == "unknown"
    made = _form(
        "review_rerun" if unknown else "review",
        "Run again?" if unknown else "Review & approve",
        "Run again" if unknown else "Approve",
        card,
        [_named(card), *_text(whole), kit.context(kit.plain(f"{len(whole.text):,} characters, {_complete(whole)}"))],
    )
    return made if _fits(made) else None


def _complete(whole: Shown) -> str:
    if whole.unreadable:
        return words.UNREADABLE_CALL
    return "nothing left out" + (", secrets hidden" if whole.masked else "")


def full(card: Card) -> View:
    """The whole call, to be read; what is too big for a modal is shown as far as it fits."""
    whole = shown_call(card.task)
    parts = list(islice(pieces(whole.text, limits.PIECE_WEIGHT), limits.VIEW_BLOCKS - _ROOM))
    while limits.weight(parts) > limits.VIEW_BYTES - limits.MESSAGE:
        parts.pop()
    left_out = len(whole.text) - sum(len(part) for part in parts)
    told = f"{len(whole.text):,} characters, " + (
        _complete(whole) if left_out <= 0 else f"{left_out:,} do not fit here"
    )
    blocks = [_named(card), *(kit.preformatted(p) for p in parts)]
    return kit.modal(ids.ONLY_READ, "The whole call", [*blocks, kit.context(kit.plain(told))])


def _reject(card: Card) -> View:
    # With one task the seed's rule ends the run, with several the run goes on: the choice begins there.
    first = "stop" if card.of == 1 else "go_on"
    options = (("stop", "Stop here"), ("go_on", "Let the agent go on"))
    fields = [
        kit.text_input(ids.COMMENT, "Reason", hint="The agent reads it. Left empty, it is told who rejected."),
        kit.radio_input(ids.CHOICE, "And then", options, first),
    ]
    return _form("reject", "Reject", "Reject", card, [_summary(card), *fields])


def _skip(card: Card) -> View:
    options = (("done", "I did it myself"), ("left_out", "Leave it out"))
    fields = [
        kit.radio_input(ids.CHOICE, "Why is it skipped?", options, "left_out"),
        kit.text_input(ids.COMMENT, "What came of it, or why not", hint="The agent reads it."),
    ]
    return _form("skip", "Skip", "Skip", card, [_summary(card), *fields])


@dataclass(frozen=True, slots=True)
class Wider:
    """What an administrator may choose beyond exactly this call in this thread. prefixes: one rule per part of the
    command, () if none is offered; name: what stands for exactly these.

    looked: how many recorded calls of this tool in this channel were looked at; same: how many are exactly this one;
    begin: what of them the prefixes would have let run, with how often.
    """

    prefixes: tuple[PermissionRule, ...] = ()
    name: str = ""
    looked: int = 0
    same: int = 0
    begin: tuple[tuple[str, int], ...] = ()


def always(card: Card, wider: Wider | None = None) -> View | None:
    """The whole rule, to be read before it is made. None where it is not offered. wider: for administrators."""
    if not may_always(card):
        return None
    where = "*Exactly this*" if wider else "*In this thread, exactly this*"
    more = "; below you may choose more" if wider else ""
    blocks = [
        kit.section(f"{where} runs without asking from now on, and now{more}:"),
        kit.context(kit.plain(f"Tool: {shown_line(card.task.tool_name, limits.TOOL_NAME)}")),
        *_text(shown_args(card.task.args)),
    ]
    if not (wider and wider.prefixes):
        blocks.append(kit.context(kit.plain("Anything that differs in a single character still asks.")))
    blocks += _choices(wider) if wider else ()
    made = _form("always", "Always allow here", "Allow", card, blocks)
    return made if _fits(made) else None


def _choices(wider: Wider) -> list[Block]:
    """What is chosen beyond the usual, and what that would have let run so far."""
    places = (("thread", "In this thread"), ("channel", "In this channel, in all its threads"))
    blocks = [kit.radio_input(ids.WHERE, "Where?", places, "thread")]
    calls = "one call" if wider.looked == 1 else f"newest {wider.looked:,} calls"
    same = f"{wider.same:,} {'is' if wider.same == 1 else 'are'} exactly this"
    seen = f"Of this tool's {calls} recorded in this channel, {same}"
    if not wider.prefixes:
        return [*blocks, kit.context(kit.plain(f"{seen}."))]
    what = (("exact", "Exactly this"), (ids.prefixes_choice(wider.name), "Whatever begins as shown below"))
    blocks += [kit.radio_input(ids.WHAT, "What?", what, "exact"), *_patterns(wider.prefixes)]
    ran = sum(times for _, times in wider.begin)
    blocks.append(kit.context(kit.plain(f"{seen}. What begins so would have let {ran:,} run{':' if ran else '.'}")))
    lines = [f"{times} × {call}" for call, times in wider.begin[:MOST_SEEN]]
    if len(wider.begin) > MOST_SEEN:
        lines.append(f"… and {len(wider.begin) - MOST_SEEN} others")
    return [*blocks, *([kit.preformatted("\n".join(lines))] if lines else [])]


def _patterns(prefixes: Sequence[PermissionRule]) -> list[Block]:
    """The patterns as they are stored, one a line; what they leave out is said once."""
    patterns = "\n".join(shown_line(rule.pattern or "", limits.LINE) for rule in prefixes)
    said = "* stands for any further words; never for redirects, other commands, secrets, or paths outside."
    return [kit.preformatted(patterns), kit.context(kit.plain(said))]


def _happened(card: Card) -> View | None:
    if card.task.kind != "unknown":
        return None
    field = kit.text_input(ids.COMMENT, "What came of it", hint="The agent takes this for the result.")
    return _form("happened", "It happened", "Tell the agent", card, [_summary(card), field])


_FORMS: Final[Mapping[Action, Callable[[Card], View | None]]] = {
    "review": review,
    "reject": _reject,
    "skip": _skip,
    "always": always,
    "happened": _happened,
    "view": full,
}


def _form(callback: Form, title: str, submit: str, card: Card, blocks: list[Block]) -> View:
    return kit.modal(callback, title, blocks, submit=submit, metadata=ids.metadata(card.session_id, card.ref))


def _text(whole: Shown) -> list[Block]:
    return [kit.preformatted(piece) for piece in pieces(whole.text, limits.PIECE_WEIGHT)]


def _named(card: Card) -> Block:
    return kit.context(kit.plain(f"{_tool(card)} #{card.task.short_id}"))


def _summary(card: Card) -> Block:
    """Which task the form is about, in one line."""
    what = shown_gist(card.task, None, limits.LINE)
    return kit.context(kit.plain(f"{_tool(card)} #{card.task.short_id}: {what}"))


def _tool(card: Card) -> str:
    return shown_line(words.question(card.task.tool_name, card.task.kind), limits.TOOL_NAME)


def _fits(view: View) -> bool:
    return len(view["blocks"]) <= limits.VIEW_BLOCKS and weight(view) <= limits.VIEW_BYTES
