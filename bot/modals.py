"""The forms behind the buttons of a card.  Pure; `inbound` reads them back.

A modal opens empty, because Slack gives three seconds, and is filled at once. Its private_metadata names the task; what
it shows comes from our own record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from bot import ids, kit, limits, words
from bot.ids import Action, Form
from bot.kit import Block, View
from bot.limits import pieces, weight
from bot.shown import Shown, shown_args, shown_call, shown_gist, shown_line
from bot.view import Card, may_always

_ROOM: Final = 4  # blocks of a modal beside the pieces of a text


def loading() -> View:
    """What opens at once; views.update puts the form in its place."""
    return kit.modal(ids.LOADING, "One moment", [kit.section("Loading…")])


def message(title: str, text: str) -> View:
    """A modal that only says something of ours, as the answer to a late submission does."""
    return kit.modal(ids.LOADING, title, [kit.section(limits.clip_escaped(text, limits.SECTION_TEXT))])


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
        [*_text(whole), kit.context(kit.plain(f"{len(whole.text):,} characters, {_complete(whole)}"))],
    )
    return made if _fits(made) else None


def _complete(whole: Shown) -> str:
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
    blocks = [kit.context(kit.plain(f"{_tool(card)} #{card.task.short_id}")), *(kit.preformatted(p) for p in parts)]
    return kit.modal(ids.LOADING, "The whole call", [*blocks, kit.context(kit.plain(told))])


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


def always(card: Card) -> View | None:
    """The whole rule, to be read before it is made. None where it is not offered."""
    if not may_always(card):
        return None
    blocks = [
        kit.section("*In this thread, exactly this* runs without asking from now on, and now:"),
        kit.context(kit.plain(f"Tool: {_tool(card)}")),
        *_text(shown_args(card.task.args)),
        kit.context(kit.plain("Anything that differs in a single character still asks.")),
    ]
    made = _form("always", "Always allow here", "Allow", card, blocks)
    return made if _fits(made) else None


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


def _summary(card: Card) -> Block:
    """Which task the form is about, in one line."""
    what = shown_gist(card.task, None, limits.LINE)
    return kit.context(kit.plain(f"{_tool(card)} #{card.task.short_id}: {what}"))


def _tool(card: Card) -> str:
    return shown_line(words.question(card.task.tool_name, card.task.kind), limits.TOOL_NAME)


def _fits(view: View) -> bool:
    return len(view["blocks"]) <= limits.VIEW_BLOCKS and weight(view) <= limits.VIEW_BYTES
