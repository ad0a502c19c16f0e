"""Which messages a thread should hold, and which message in it is ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.drafts import Draft, drafts, stands
from bot.story import told
from harness_core.events import HITLPending, HITLSubmitted, Prompted, ReasonEnd, RunEnd, RunStart, ToolCallEnd
from harness_core.hitl import Approve, HITLTask
from harness_core.testing import NOON, history

SESSION = "slack:T1:C1:1767614400.000100"
TASK = HITLTask("r1-1-1", "change", {"a": 1}, "it writes", run_id="r1", fingerprint="ab" * 32, requested_by="U1")
ASKED = (
    Prompted("change it", "U1", NOON, ref="T1:C1:1767614400.000100"),
    RunStart("r1", requested_by="U1"),
    ReasonEnd("", ()),
    HITLPending((TASK,)),
)
ENDED = (
    HITLSubmitted(TASK.fingerprint, Approve(), "U1", "button"),
    ToolCallEnd("r1-1-1", "changed", "ok"),
    ReasonEnd("Done."),
    RunEnd("completed", "Done."),
)


def made(*facts: Any) -> list[Draft]:
    return list(drafts(told(SESSION, history(*facts, session_id=SESSION))))


def in_slack(draft: Draft, **changes: Any) -> dict[str, Any]:
    return {**draft.marked, "bot_id": "B1", "ts": "1.2", **changes}


def test_a_card_comes_before_the_answer_and_each_has_a_name_of_its_own() -> None:
    assert [draft.post for draft in made(*ASKED, *ENDED)] == [f"card:{'ab' * 32}", "end:8:1"]


def test_a_card_is_found_again_by_its_block_id_in_every_state() -> None:
    [waiting] = made(*ASKED)
    decided = made(*ASKED, *ENDED)[0]

    assert stands(waiting, in_slack(waiting), "B1")
    assert stands(waiting, in_slack(decided), "B1")
    assert stands(decided, in_slack(waiting), "B1")


def test_an_answer_is_found_again_by_its_mark_though_slack_changed_its_text() -> None:
    answer = made(*ASKED, *ENDED)[1]

    assert stands(answer, in_slack(answer, text="Done :slightly_smiling_face:"), "B1")
    assert not stands(answer, in_slack(replace(answer, post="end:3:1")), "B1")
    assert not stands(answer, {"text": "Done.", "bot_id": "B1"}, "B1")


@pytest.mark.parametrize("changes", [{"bot_id": "B2"}, {"bot_id": None}, {"bot_id": ""}])
def test_what_another_bot_or_a_person_writes_is_never_ours(changes: dict[str, Any]) -> None:
    for draft in made(*ASKED, *ENDED):
        assert not stands(draft, in_slack(draft, **changes), "B1")
        assert not stands(draft, in_slack(draft, **changes), "")


def test_a_mark_tells_nothing_of_what_the_message_says_and_a_card_needs_none() -> None:
    card, answer = made(*ASKED, *ENDED)

    assert card.marked == card.message
    assert answer.marked["metadata"] == {"event_type": "harness_post", "event_payload": {"post": "end:8:1"}}


def test_the_same_picture_has_the_same_digest_and_another_state_another() -> None:
    [waiting], [again] = made(*ASKED), made(*ASKED)

    assert waiting.digest == again.digest
    assert waiting.digest != made(*ASKED, *ENDED)[0].digest
