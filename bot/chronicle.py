"""What became a fact, as a line of the log: ids, numbers and words of our own, nothing that people or models said."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from bot.facts import (
    AdminClaimed,
    ApprovalsSwitched,
    ApproverChanged,
    ChannelSwitched,
    ClaimTried,
    NetworkSwitched,
    Paused,
    Posted,
    PostGone,
    SensitiveChanged,
    StandingRuleAdded,
    StandingRuleRevoked,
)
from bot.ids import SHORT_ID
from bot.logs import note, run_of
from bot.posts import card_id
from harness_core.events import Event, HITLSubmitted, HITLVoted, Prompted, RuleChanged, RunEnd, RunStart, StopRequested

log = logging.getLogger(__name__)

_CARD = card_id("")


class Chronicle:
    """Told of every fact that this process stores."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}

    def take(self, journal: str, events: tuple[Event, ...]) -> None:
        """Log what is worth a line. journal: a session's id, that of its `show:` journal, or one of settings."""
        session_id = journal.removeprefix("show:")
        for event in events:
            seconds = None
            match event:
                case RunStart(run_id=run):
                    run_of(session_id, run)
                    if not event.resumed:
                        self._began[run] = event.at
                case RunEnd(run_id=run) if run in self._began:  # else it began in another process
                    seconds = round(event.at - self._began.pop(run), 3)
            if told := line(event):
                about = {} if journal.startswith("config:") else {"session": session_id}
                note(log, told[0], **about, run=event.run_id, **told[1], seconds=seconds)
            if isinstance(event, RunEnd):
                run_of(session_id, "")


def line(event: Event) -> tuple[str, Mapping[str, object]] | None:
    """What happened, and the fields beside it; None for what is worth no line."""
    match event:
        case Prompted(by=by, ref=ref):
            return "prompt taken", {"by": by, "message": ref}
        case RunStart(resumed=resumed, attempt=attempt):
            return ("run goes on" if resumed else "run began"), {"attempt": attempt if attempt > 1 else None}
        case StopRequested(by=by):
            return "stop asked for", {"by": by}
        case Posted(post=post, ts=ts, revision=0) if post.startswith(_CARD):
            return "card posted", {"task": post.removeprefix(_CARD)[:6], "message": ts}
        case PostGone(post=post, ts=ts) if post.startswith(_CARD) and ts:
            return "card gone", {"task": post.removeprefix(_CARD)[:6], "message": ts}
        case HITLVoted(fingerprint=task, decision=decision, by=by):
            return "vote stored", {"task": task[:6], "decision": decision.action, "by": by}
        case HITLSubmitted(fingerprint=task, decision=decision, by=by, via=via):
            return "decision stored", {"task": task[:6], "decision": decision.action, "by": by, "via": via}
        case RunEnd(status=status):
            return "run ended", {"status": status}
        case RuleChanged(change=change, rule=rule, by=by):
            return "rule changed", {"change": change, "rule": rule.id, "tool": rule.tool, "by": by}
    return _setting(event)


def _setting(event: Event) -> tuple[str, Mapping[str, object]] | None:
    match event:
        case AdminClaimed(by=by):
            fields: dict[str, object] = {"setting": "administrator", "by": by}
        case ClaimTried(by=by):
            return "claim tried", {"by": by}
        case ChannelSwitched(channel=channel, on=on, by=by):
            fields = {"setting": "channel", "channel": channel, "on": on, "by": by}
        case ApproverChanged(who=who, on=on, by=by):
            fields = {"setting": "approver", "who": who, "on": on, "by": by}
        case SensitiveChanged(tool=tool, on=on, by=by, channel=channel):
            fields = {"setting": "sensitive", "tool": tool, "channel": channel, "on": on, "by": by}
        case ApprovalsSwitched(on=on, by=by, channel=channel):
            fields = {"setting": "hitl", "channel": channel, "on": on, "by": by}
        case NetworkSwitched(channel=channel, on=on, by=by):
            fields = {"setting": "network", "channel": channel, "on": on, "by": by}
        case Paused(on=on, by=by):
            fields = {"setting": "paused", "on": on, "by": by}
        case StandingRuleAdded(rule=rule, by=by, channel=channel):
            fields = {"setting": "rule", "on": True, "channel": channel, "rule": rule.id, "tool": rule.tool, "by": by}
        case StandingRuleRevoked(rule_id=rule_id, by=by, channel=channel):
            fields = {"setting": "rule", "on": False, "channel": channel, "rule": rule_id[:SHORT_ID], "by": by}
        case _:
            return None
    return "setting changed", fields
