"""Whatever stands in a tool's name, a rule or a reason, what the bot says of it holds no markup but ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bot import commands, kit, limits, rule_words, story, words
from bot.blocks import notice_message, person
from bot.inline import code, mention, moment
from bot.rule_asked import rule_asked
from bot.rule_words import Listed
from bot.view import Notice
from bot.why import why
from harness_core.events import (
    HITLPending,
    HITLSubmitted,
    HookRuled,
    ReasonEnd,
    RuleChanged,
    RunEnd,
    RunStart,
    ToolCallEnd,
)
from harness_core.hitl import Approve, HITLTask
from harness_core.permissions.rule import PermissionRule
from harness_core.session import Asked
from harness_core.types import ToolCall
from tests.bot.markup import HOSTILE, MARKS, unmeant

PEOPLE: Final = frozenset({"U0ADA"})
NASTY = st.lists(st.sampled_from((*HOSTILE, *MARKS)) | st.text(max_size=3), max_size=8).map("".join)


def rule(text: str) -> PermissionRule:
    return PermissionRule("deny", text, text)


def task(text: str) -> HITLTask:
    return HITLTask(
        "c1", text, {text: text}, comment=text, agent=text, session="s/c1", run_id="r1", fingerprint="f" * 64
    )


def run(text: str) -> str:
    """What `!why` says of a run that held this text everywhere."""
    call = ToolCall("c1", text, {"command": text})
    asked = HITLPending(tasks=(task(text),))
    approved = HITLSubmitted(fingerprint="f" * 64, decision=Approve(), by=text)
    ruled = HookRuled("before_stop", text, "drift", "Continue", text)
    ended = RunEnd(status="limited", answer=text, limit=text)
    said = ReasonEnd(text=text, calls=(call,))
    return why([RunStart("r1"), said, ruled, asked, approved, ToolCallEnd("c1", text, "denied"), ended], [])


SAID: Final[dict[str, Callable[[str], str]]] = {
    "a tool that is marked": lambda text: words.sensitive_changed(text, on=False, everywhere=False, elsewhere=True),
    "tools that are marked": lambda text: words.sensitive_here([text]),
    "no such tool": lambda text: words.no_such_tool(text, [text + "x", "bash"]),
    "no such command": words.unknown_verb,
    "no such person": words.nobody_named,
    "approvals off": lambda text: words.approvals_off(text, text, 1e9, everywhere=True),
    "who decides": lambda text: words.standing(True, [text], [text]),
    "what waits": lambda text: words.waiting(Asked(task(text)), "1700000000.000100"),
    "paused": words.paused,
    "refused": words.refused,
    "not shown": lambda text: words.not_shown(text, waits=True),
    "always allowed": lambda text: words.allowed("a1", text, text, text, "1700000000.000100"),
    "taken back": lambda text: words.revoked(text, 0),
    "ambiguous": lambda text: words.ambiguous([text]),
    "slow": words.slow,
    "network": lambda text: words.network(True, text),
    "boundary": lambda text: words.boundary(text, online=True),
    "a listed allowance": lambda text: commands.listed(
        [RuleChanged("added", rule(text), by=text, why=text, session_id="s")]
    ),
    "a rule": lambda text: rule_words.made(rule(text), everywhere=True, until=1e9, why=text, caution=text, beaten="a1"),
    "rules": lambda text: rule_words.rules_here([Listed(rule(text), "channel", text, 1e9, text, 2e9)], 9, text),
    "rules of the file": lambda text: rule_words.rules_here([Listed(rule(text), "file", text, why=text)], 9, ""),
    "a rule that never matches": lambda text: rule_words.never_matches(rule(text), text),
    "a rule that is too wide": lambda text: rule_words.too_wide(rule(text), text),
    "options": lambda text: rule_words.options_unread("deny", text),
    "a rule that was typed": lambda text: str(
        rule_asked("deny", text) if isinstance(rule_asked("deny", text), str) else ""
    ),
    "no such rule": rule_words.no_such_rule,
    "a verdict": lambda text: rule_words.verdict(text, "ask", "ask rule", text, rule(text)),
    "a reason": lambda text: rule_words.verdict(text, "ask", "default", text, None),
    "arguments": lambda text: rule_words.would_fail(text, text) + rule_words.unread(text, [text]),
    "why": run,
    "a notice": lambda text: notice_message(Notice(text, by=text))["text"],
    "how things stand": lambda text: story.status(story.Story(over=False), [Asked(task(text))], 2),
    "a person": lambda text: mention(text) + person(text),
    "code": code,
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(text=NASTY)
def test_what_it_says_links_and_mentions_nothing_of_what_it_quotes(said: Callable[[str], str], text: str):
    assert unmeant(said(text), PEOPLE | {text}) == []  # a text that is an id may be mentioned as one


def test_a_grave_accent_does_not_end_code():
    assert code("a`<b>") == "`aˋ&lt;b&gt;`"


def test_what_is_no_id_of_slacks_is_no_mention():
    assert [mention(name) for name in ("U0ADA", "ada", "U0ADA|x", "!channel")] == [
        "<@U0ADA>", "ada", "U0ADA|x", "!channel",
    ]  # fmt: skip


@pytest.mark.parametrize("at", [0.0, -5.0, 1e300, float("inf"), float("nan")])
def test_a_moment_that_slack_cannot_show_is_left_out(at: float):
    assert moment(at) == ""


@given(st.lists(st.text("ab <&\n😀", max_size=4_000), max_size=6).map("\n".join))
@example("\n" + "a" * 3_000)
@example("a" * 3_001)
@example("")
def test_a_private_message_says_all_in_blocks_that_make_no_links_or_in_its_text(text: str):
    message = kit.private(text)

    assert message["text"] == text
    sections = message.get("blocks", [])
    assert all(block["text"]["verbatim"] for block in sections)
    assert all(1 <= len(block["text"]["text"].encode("utf-16-le")) // 2 <= limits.SECTION_TEXT for block in sections)
    assert not sections or "\n".join(block["text"]["text"] for block in sections) == text
