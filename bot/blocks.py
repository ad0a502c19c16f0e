"""Cards, answers and notices as Slack messages.  Pure.

Untrusted text stands in rich_text_preformatted or plain_text, where nothing is parsed, or escaped in one line. What a
model says is never sent with blocks, so that it cannot pose as a card.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from bot import ids, kit, limits, modals, words
from bot.ids import Action
from bot.inline import mention, moment
from bot.kit import Block
from bot.limits import escape
from bot.mrkdwn import to_messages, to_plain
from bot.shown import Shown, on_card, shown_call, shown_change, shown_gist, shown_line
from bot.view import Answer, Card, Closed, Decided, Lapsed, Notice, Ran, Waiting, several
from harness_core.hitl import Approve, Decision, Expired, Happened, HITLTask, Reject, Rerun, Skip
from harness_core.types import Outcome

Message = dict[str, Any]

_CODE: Final = re.compile(r"(?<![\w`])`([^`]+)`(?![\w`])")
_OUTCOMES: Final[Mapping[Outcome, str]] = {
    "ok": "ran",
    "error": "failed",
    "denied": "denied by a rule",
    "rejected": "rejected",
    "skipped": "skipped",
    "expired": "expired",
    "unknown": "outcome unknown",
    "not_run": "not run",
}


def card_message(card: Card) -> Message:
    """The text and blocks of a card, within Slack's limits whatever the task holds, in every state."""
    what = _what(card)
    blocks = [_question(card), kit.preformatted(what.text), *_reasons(card)]
    if isinstance(card.state, Waiting):
        blocks += [*_buttons(card, what), _footer(card, what)]
    else:
        blocks.append(_outcome(card))
    return {"text": _line(card), "blocks": blocks, **kit.QUIET}


def answer_messages(answer: Answer) -> Sequence[Message]:
    """The agent's answer, in as many messages as it takes; never with blocks."""
    prefix = f"{person(answer.mention)} " if answer.mention else ""
    return [{"text": text, **kit.QUIET} for text in to_messages(answer.text, prefix=prefix, people=answer.people)]


def notice_message(notice: Notice) -> Message:
    """A line of ours in the thread."""
    who = f"{person(notice.by)} " if notice.by else ""
    return {"text": who + limits.clip_escaped(notice.text, limits.TEXT - len(who)), **kit.QUIET}


def may_approve_by_word(card: Card) -> bool:
    """Whether `!approve` is taken: not where the call must be read in full first, and not for an unknown outcome."""
    return card.task.kind == "approve" and shown_whole(card)


def shown_whole(card: Card) -> bool:
    """Whether the card shows the call to the end."""
    what = _what(card)
    return not (what.left_out or what.unreadable)


def person(user: str) -> str:
    """A person as mrkdwn shows them. What is no id of Slack's is shown as text."""
    return mention(shown_line(user, 60)) or "somebody"


# -- what a card consists of -------------------------------------------------------------------------------------------


def _what(card: Card) -> Shown:
    edited = card.approved_args
    whole = shown_call(card.task) if edited is None else shown_change(card.task.args, edited)
    return on_card(whole)


def _line(card: Card) -> str:
    """The one line that notifications and screen readers get: what the card says, escaped and masked."""
    called = limits.clip_escaped(shown_gist(card.task, card.approved_args, limits.LINE), limits.LINE)
    whom = f" for {person(card.task.requested_by)}" if card.task.requested_by else ""
    # Where no button is shown, as in a notification, the thread's words still work.
    verbs = "!approve or !reject" if may_approve_by_word(card) else "!reject"
    typed = f"{verbs} " if isinstance(card.state, Waiting) else ""
    return f"{escape(_asked(card))}{whom} {called} · {_told(card)} · {typed}#{escape(card.task.short_id)}"


def _asked(card: Card) -> str:
    tool = shown_line(card.task.tool_name, limits.TOOL_NAME, limits.TOOL_NAME * 6)
    return words.question(tool, card.task.kind)


def _question(card: Card) -> Block:
    # A tool's name may come from anywhere, and mrkdwn cannot escape `*`: bold only what is ours.
    asked = escape(_asked(card))
    parts = [asked if "*" in asked or "`" in asked else f"*{asked}*"]
    if card.task.requested_by:
        parts.append(f"for {person(card.task.requested_by)}")
    if card.approvers and isinstance(card.state, Waiting):
        mentions = " ".join(person(user) for user in card.approvers[: limits.MENTIONS])
        parts.append(f"· {mentions} please decide")
    votes = _votes(card.task, card.state, "*") if isinstance(card.state, Waiting) else ""
    return kit.section(" ".join(parts) + (f"\n{votes}" if votes else ""))


def _votes(task: HITLTask, waiting: Waiting, bold: str = "") -> str:
    """How many people must approve, and who has; "" where one is enough."""
    wanted = words.wanted(task, len(waiting.votes))
    approved = f" · approved by {_people(waiting.votes)}" if waiting.votes else ""
    return f"{bold}{wanted}{bold}{approved}" if wanted else ""


def _reasons(card: Card) -> list[Block]:
    """Why it asks, and what the agent says about it: labelled, in plain text, and short."""
    told = [("Sub-agent", card.task.agent, limits.TOOL_NAME, limits.TOOL_NAME * 6)]
    told.append(("Asks because", _quoted(card.task.comment), limits.REASON, limits.REASON_WEIGHT))
    if isinstance(card.state, Waiting):
        said = to_plain(card.agent_says[: limits.AGENT_SAYS * 10])  # no card has room for more
        told.append(("Agent says", said, limits.AGENT_SAYS, limits.AGENT_SAYS_WEIGHT))
    lines = [f"{label}: {shown_line(text, most, heaviest)}" for label, text, most, heaviest in told if text.strip()]
    return [kit.context(*(kit.plain(text) for text in lines))] if lines else []


def _quoted(text: str) -> str:
    """A reason with quotation marks for backticks: plain text has no code. It is no Markdown, and may name `*.log`."""
    return _CODE.sub(r"“\1”", text) if text.count("`") % 2 == 0 else text


def _buttons(card: Card, what: Shown) -> list[Block]:
    rows = [_first_row(card, what), _second_row(card, what)]
    return [
        {
            "type": "actions",
            "block_id": ids.block_id(card.task.fingerprint, card.revision, more=bool(number)),
            "elements": row,
        }
        for number, row in enumerate(rows)
        if row
    ]


def _first_row(card: Card, what: Shown) -> list[Block]:
    unknown, row = card.task.kind == "unknown", []
    if not (what.left_out or what.unreadable):
        row.append(_button(card, "rerun", "Run again") if unknown else _button(card, "approve", "Approve", "primary"))
    elif modals.review(card) is not None:
        label = "Review & run again…" if unknown else "Review & approve…"
        row.append(_button(card, "review", label, None if unknown else "primary"))
    if unknown:
        row += [_button(card, "happened", "It happened…"), _button(card, "skip", "Leave it out…")]
    row.append(_button(card, "reject", "Reject…", "danger"))
    if "edit" in card.features and not unknown and not several(card) and modals.review(card) is not None:
        row.append(_button(card, "edit", "Edit…"))
    return row


def _second_row(card: Card, what: Shown) -> list[Block]:
    row = [] if card.task.kind == "unknown" else [_button(card, "skip", "Skip…")]
    if what.exact and modals.always(card) is not None:
        row.append(_button(card, "always", "Always allow here…"))
    if "view" in card.features:
        row.append(_button(card, "view", "View full"))
    return row


def _footer(card: Card, what: Shown) -> Block:
    parts = _place(card)
    if what.unreadable:
        parts.append(words.UNREADABLE_CALL)
    if card.of > 1:
        parts.append((f"{card.decided} decided · " if card.decided else "") + "nothing runs until all are decided")
    parts.append(f"#{escape(card.task.short_id)}")
    if expires := moment(card.task.expires_at or 0.0):
        parts.append(f"expires {expires}")
    return kit.context(kit.mrkdwn(" · ".join(parts)))


def _place(card: Card) -> list[str]:
    place = [f"{card.index} of {card.of}"] if card.of > 1 else []
    return place + ([f"{card.alike[0]} of {card.alike[1]} alike"] if card.alike and card.alike[1] > 1 else [])


def _outcome(card: Card) -> Block:
    """The line that takes the place of the buttons. Without "waits for", approving one of two looks hung."""
    comment = shown_line(_comment(card), limits.COMMENT, limits.COMMENT_WEIGHT)
    elements = [kit.mrkdwn(" · ".join([_told(card), *_place(card), f"#{escape(card.task.short_id)}"]))]
    if comment:
        elements.append(kit.plain(comment))
    return {**kit.context(*elements), "block_id": card.block_id}


# -- what is told ------------------------------------------------------------------------------------------------------


def _told(card: Card) -> str:
    match card.state:
        case Waiting() as waiting:
            return _votes(card.task, waiting) or "waits for a decision"
        case Decided() as decided:
            waits = f" · waits for {decided.waits_for} more" if decided.waits_for > 0 else ""
            return _decided(decided, edited=card.approved_args is not None) + waits
        case Ran(decided, outcome, code, seconds):
            done = [_OUTCOMES[outcome], *([f"exit {code}"] if code is not None else [])]
            took = [f"{seconds:,.1f} s"] if outcome in ("ok", "error") else []
            return f"{_decided(decided, edited=card.approved_args is not None)} · {', '.join([*done, *took])}"
        case Closed(by=by) if by:
            return f"Closed: {person(by)} stopped the run"
        case Closed():
            return "Closed, nobody needs to decide any more"
        case Lapsed():
            return "Expired: nobody decided in time"


def _decided(decided: Decided, *, edited: bool) -> str:
    who = "a rule" if decided.rule else _people(decided.votes or (decided.by,))
    return f"{_verb(decided.decision, edited=edited)} by {who} {moment(decided.at, '{time}')}"


def _verb(decision: Decision, *, edited: bool) -> str:
    match decision:
        case Approve(always_allow=True):
            return "Approved, and from now on always in this thread,"
        case Approve():
            return "Approved with changes" if edited else "Approved"
        case Reject(end=True):
            return "Rejected, and stopped,"
        case Reject():
            return "Rejected"
        case Skip(done=True):
            return "Skipped: it was done"
        case Skip():
            return "Left out"
        case Rerun():
            return "To be run again, as decided"
        case Happened():
            return "It happened, as told"
        case Expired():
            return "Expired, noted"


def _comment(card: Card) -> str:
    match card.state:
        case Closed(why, by):
            return "" if by else why
        case Decided(rule=rule) | Ran(decided=Decided(rule=rule)) if rule:
            return f"Rule: {rule}"
        case Decided(decision=decision) | Ran(decided=Decided(decision=decision)):
            match decision:
                case Approve(comment=text) | Reject(comment=text) | Skip(comment=text):
                    return text or ""
                case Happened(result=text):
                    return text
    return ""


# -- the small pieces --------------------------------------------------------------------------------------------------


def _button(card: Card, action: Action, label: str, style: Literal["primary", "danger"] | None = None) -> Block:
    return kit.button(action, label, card.ref.value(), style)


def _people(users: Sequence[str]) -> str:
    return words.listed([person(user) for user in users])
