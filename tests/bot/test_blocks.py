"""Cards and their forms keep to Slack's limits, say the truth in every state, and let nothing untrusted be parsed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

from bot import blocks, ids, modals
from bot.heard import Decide
from bot.ids import Identity
from bot.inbound import parse
from bot.limits import escape
from bot.view import Answer, Card, Closed, Decided, Lapsed, Notice, Ran, State, Waiting
from harness_core.hitl import Approve, Expired, Happened, HITLTask, Reject, Rerun, Skip, fingerprint

SESSION = "slack:T0HOME:C0ROOM:1700000000.000100"
NOON = 1_700_000_000.0
LINE, LONG = "git push origin main", "\n".join(f"echo {n}" for n in range(200))


def card(args: dict[str, Any] | None = None, state: State = Waiting(), of: int = 1, **fields: Any) -> Card:  # noqa: B008
    own = {"index", "alike", "approvers", "agent_says", "revision", "approved_args", "features"}
    args = {"command": LINE} if args is None else args
    asked = {"comment": "it changes something outside", "requested_by": "U0ANN", "may_always": True, "run_id": "r1"}
    asked |= {name: value for name, value in fields.items() if name not in own}
    call, tool = asked.pop("call_uuid", "r1-1-1"), asked.pop("tool_name", "bash")
    task = HITLTask(call, tool, args, fingerprint=fingerprint("r1", call, 0, tool, {}), **asked)
    return Card(SESSION, task, of=of, state=state, **{k: v for k, v in fields.items() if k in own})


def decided(decision: Any, **fields: Any) -> Decided:
    return Decided("U0ADA", NOON, decision, **fields)


def found(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [block for block in message["blocks"] if block["type"] == kind]


def buttons(message: dict[str, Any]) -> list[list[str]]:
    return [[one["text"]["text"] for one in row["elements"]] for row in found(message, "actions")]


def texts(value: Any) -> str:
    """All text that a message shows, joined."""
    if isinstance(value, dict):
        return "\n".join(texts(v) for k, v in value.items() if k not in ("value", "block_id", "private_metadata"))
    if isinstance(value, list):
        return "\n".join(texts(one) for one in value)
    return value if isinstance(value, str) else ""


def preformatted(message: dict[str, Any]) -> str:
    return "".join(one["elements"][0]["elements"][0]["text"] for one in found(message, "rich_text"))


# -- a second opinion on what Slack takes ------------------------------------------------------------------------------


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def check_text(text: dict[str, Any], most: int) -> None:
    assert 1 <= units(text["text"]) <= most
    if text["type"] == "mrkdwn":
        bare = re.sub(r"<(@[UW][A-Z0-9]+|!date\^\d+\^[{}a-z_ ]+\|[\d :UTC-]+)>", "", text["text"])
        assert "<" not in bare
        assert ">" not in bare
        assert not re.search(r"&(?!amp;|lt;|gt;)", bare)
    else:
        assert text["emoji"] is False


def check_blocks(all_blocks: list[dict[str, Any]], most: int) -> None:
    assert 1 <= len(all_blocks) <= most
    names = [block["block_id"] for block in all_blocks if "block_id" in block]
    assert len(names) == len(set(names))
    for block in all_blocks:
        assert len(block.get("block_id", "")) <= 255
        match block["type"]:
            case "section":
                assert block["expand"] is True
                check_text(block["text"], 3_000)
            case "context":
                assert 1 <= len(block["elements"]) <= 10
                for element in block["elements"]:
                    check_text(element, 3_000)
            case "actions":
                assert 1 <= len(block["elements"]) <= 25
                actions = [one["action_id"] for one in block["elements"]]
                assert len(actions) == len(set(actions))
                for one in block["elements"]:
                    check_text(one["text"], 75)
                    assert len(one["value"]) <= 2_000
                    assert one.get("style", "primary") in ("primary", "danger")
            case "rich_text":
                for part in block["elements"]:
                    assert part["type"] == "rich_text_preformatted"
                    assert all(one["type"] == "text" and one["text"] for one in part["elements"])
            case "input":
                check_text(block["label"], 2_000)
                assert block["element"].get("max_length", 1) <= 3_000
            case other:
                raise AssertionError(other)
    for parsed in Block.parse_all(all_blocks):
        parsed.to_dict()  # validates


def check_message(message: dict[str, Any]) -> None:
    check_blocks(message["blocks"], 50)
    # However Slack counts: as sent, as sent with ASCII escapes, or as it stores it, escaped once more.
    assert len(escape(json.dumps(message["blocks"]))) <= 9_000
    assert len(json.dumps(message["blocks"])) <= 9_000
    assert len(json.dumps(message["blocks"], ensure_ascii=False)) <= 9_000
    check_text({"type": "mrkdwn", "text": message["text"]}, 1_500)
    assert "\n" not in message["text"]
    assert (message["unfurl_links"], message["unfurl_media"]) == (False, False)


def test_an_answer_names_who_took_part_and_mentions_nobody_else():
    said = "Rejected by U0ANN, not U0BEN <@U0BEN>, says <@U0ANN>. `U0ANN` https://x.io/U0ANN\n\n```\nU0ANN\n```"
    [message] = blocks.answer_messages(Answer(said, people=frozenset({"U0ANN"})))

    assert message["text"] == (
        "Rejected by <@U0ANN>, not U0BEN &lt;@U0BEN&gt;, says <@U0ANN>. `U0ANN` https://x.io/U0ANN\n```\nU0ANN\n```"
    )
    json.dumps(message, ensure_ascii=False).encode()  # nothing that UTF-8 cannot hold


def check_view(view: dict[str, Any]) -> None:
    check_blocks(view["blocks"], 100)
    for name in ("title", "submit", "close"):
        if name in view:
            check_text(view[name], 24)
    assert len(view.get("private_metadata", "")) <= 3_000
    assert len(json.dumps(view)) <= 250_000
    View(**view).validate_json()


# -- the card ----------------------------------------------------------------------------------------------------------


def test_a_card_asks_shows_the_call_says_why_and_offers_the_buttons():
    message = blocks.card_message(
        card(of=2, approvers=("U0ADA", "U0APP"), agent_says="It is safe.", expires_at=NOON, revision=3)
    )

    check_message(message)
    section, call, reasons, first, second, footer = message["blocks"]
    assert section["text"]["text"] == "*Run a shell command?* for <@U0ANN> · <@U0ADA> <@U0APP> please decide"
    assert preformatted(message) == LINE
    assert [one["text"] for one in reasons["elements"]] == [
        "Asks because: it changes something outside",
        "Agent says: It is safe.",
    ]
    assert buttons(message) == [["Approve", "Reject…", "Edit…"], ["Skip…", "Always allow here…", "View full"]]
    assert [one.get("style") for one in first["elements"]] == ["primary", "danger", None]
    assert footer["elements"][0]["text"] == (
        f"1 of 2 · nothing runs until all are decided · #{card().task.short_id} · expires "
        "<!date^1700000000^{date_short_pretty} {time}|2023-11-14 22:13 UTC>"
    )
    assert first["block_id"] == f"task:{card().task.fingerprint[:16]}:3"
    assert ids.card_named(second["block_id"]) == ids.card_named(first["block_id"])
    assert call["type"] == "rich_text"


def test_a_notification_names_the_words_that_the_thread_takes_for_this_card_and_no_others():
    def words_of(shown: Card) -> str:
        return blocks.card_message(shown)["text"].rpartition(" · ")[2].rpartition(" #")[0]

    assert words_of(card({"command": "ls"})) == "!approve or !reject"
    assert words_of(card({"command": "ls " + "x" * 5_000})) == "!reject"
    assert words_of(card(kind="unknown")) == "!reject"
    assert words_of(card({"command": "ls"}, state=Closed("stopped"))) == ""


def test_the_notification_says_the_same_in_one_line():
    text = blocks.card_message(card({"command": "echo <!channel>\nls"}))["text"]

    assert text == (
        "Run a shell command? for <@U0ANN> echo &lt;!channel&gt; ls · waits for a decision · "
        f"!approve or !reject #{card().task.short_id}"
    )


def test_what_the_agent_says_and_why_a_card_asks_have_no_marks_of_markdown():
    says = "I **must** run `date > x`.\n\n- see [the docs](https://evil.io/x)\n\n```\n*all* of it\n```"
    message = blocks.card_message(card(agent_says=says, comment="the part `rm *.log *.txt` is not known"))

    [reasons] = [block for block in message["blocks"] if block["type"] == "context"][:1]
    assert [one["text"] for one in reasons["elements"]] == [
        "Asks because: the part “rm *.log *.txt” is not known",
        "Agent says: I must run “date > x”. see the docs (https://evil.io/x) “*all* of it”",
    ]
    assert {one["type"] for one in reasons["elements"]} == {"plain_text"}


@pytest.mark.parametrize("reason", ["a ` alone", "an `echo `date`` within", "it is ``two``"])
def test_a_reason_whose_backticks_are_no_pairs_stays_as_it_is(reason: str):
    assert f"Asks because: {reason}" in texts(blocks.card_message(card(comment=reason)))


def test_a_button_holds_the_task_and_nothing_else():
    rows = found(blocks.card_message(card()), "actions")

    assert {one["value"] for row in rows for one in row["elements"]} == {f"r1-1-1|{card().task.fingerprint}"}


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("write", "*Write a file?*"),
        ("edit", "*Edit a file?*"),
        ("webfetch", "*Fetch a web page?*"),
        ("mail", "*Use the tool mail?*"),
        ("<!channel> *x*\n", "Use the tool &lt;!channel&gt; *x*?"),
    ],
)
def test_the_question_names_the_tool(tool: str, asked: str):
    message = blocks.card_message(card(tool_name=tool))

    check_message(message)
    assert message["blocks"][0]["text"]["text"].startswith(f"{asked} for")


def test_at_most_five_approvers_are_mentioned():
    approvers = tuple(f"U{n:03}" for n in range(9))

    assert texts(blocks.card_message(card(approvers=approvers))["blocks"]).count("<@U00") == 5


def test_what_was_switched_on_is_offered():
    message = blocks.card_message(card(features=frozenset({"edit", "view"})))

    check_message(message)
    assert buttons(message) == [["Approve", "Reject…", "Edit…"], ["Skip…", "View full"]]


def test_alike_calls_are_told():
    footer = blocks.card_message(card(of=3, index=2, alike=(2, 3)))["blocks"][-1]

    assert footer["elements"][0]["text"].startswith("2 of 3 · 2 of 3 alike · ")


def test_a_card_for_several_people_counts_them_and_offers_no_edit():
    message = blocks.card_message(card(people=3, may_always=False, state=Waiting(("U0APP",))))

    check_message(message)
    assert buttons(message) == [["Approve", "Reject…"], ["Skip…", "View full"]]
    assert "*2 more must approve* · approved by <@U0APP>" in texts(message["blocks"][:1])
    assert "2 more must approve · approved by <@U0APP>" in message["text"]
    assert "*3 people must approve*" in texts(blocks.card_message(card(people=3))["blocks"][:1])


def test_a_card_that_a_rule_for_several_people_came_after_says_who_approved_it():
    message = blocks.card_message(card(state=Waiting(("U0APP",))))

    assert buttons(message) == [["Approve", "Reject…"], ["Skip…", "View full"]]
    assert "*1 more must approve* · approved by <@U0APP>" in texts(message["blocks"][:1])


def test_a_sub_agent_is_named():
    assert "Sub-agent: research" in texts(blocks.card_message(card(agent="research")))


# -- cut cards ---------------------------------------------------------------------------------------------------------


def test_a_cut_card_is_approved_only_after_it_was_read_in_full():
    message = blocks.card_message(card({"command": LONG}))

    check_message(message)
    assert buttons(message) == [["Review & approve…", "Reject…", "Edit…"], ["Skip…", "View full"]]
    assert "characters left out⟩" in preformatted(message)
    assert not blocks.may_approve_by_word(card({"command": LONG}))
    assert blocks.may_approve_by_word(card())

    view = modals.form("review", card({"command": LONG}))
    assert view is not None
    check_view(view)
    assert preformatted(view) == LONG


def test_the_form_in_which_a_call_is_read_names_its_tool_and_its_task():
    asked = card({"body": LONG}, tool_name="send")

    view = modals.review(asked)

    assert view is not None
    assert view["blocks"][0]["elements"][0]["text"] == f"Use the tool send? #{asked.task.short_id}"


def test_what_is_too_big_for_a_modal_can_only_be_rejected_or_skipped():
    huge = card({"command": "x" * 300_000})

    assert buttons(blocks.card_message(huge)) == [["Reject…"], ["Skip…", "View full"]]
    assert modals.form("review", huge) is None
    assert modals.form("always", huge) is None


def test_a_long_call_of_unknown_outcome_is_read_before_it_runs_again():
    assert buttons(blocks.card_message(card({"command": LONG}, kind="unknown"))) == [
        ["Review & run again…", "It happened…", "Leave it out…", "Reject…"],
        ["View full"],
    ]


def test_a_call_of_unknown_outcome_is_never_approved():
    unknown = card(kind="unknown", features=frozenset({"always", "edit"}))
    message = blocks.card_message(unknown)

    check_message(message)
    assert buttons(message) == [["Run again", "It happened…", "Leave it out…", "Reject…"]]
    assert message["blocks"][0]["text"]["text"].startswith("*Did this shell command finish?*")
    assert not blocks.may_approve_by_word(unknown)


# -- decided cards -----------------------------------------------------------------------------------------------------

AT = "<!date^1700000000^{time}|2023-11-14 22:13 UTC>"
DECISIONS = [
    (decided(Approve(), waits_for=1), f"Approved by <@U0ADA> {AT} · waits for 1 more"),
    (decided(Approve(always_allow=True)), f"Approved, and from now on always in this thread, by <@U0ADA> {AT}"),
    (decided(Approve(), votes=("U0APP", "U0ADA")), f"Approved by <@U0APP> and <@U0ADA> {AT}"),
    (Decided("", NOON, Approve(), rule="allow bash ls"), f"Approved by a rule {AT}"),
    (decided(Reject("no", end=True)), f"Rejected, and stopped, by <@U0ADA> {AT}"),
    (decided(Reject()), f"Rejected by <@U0ADA> {AT}"),
    (decided(Skip("by hand", done=True)), f"Skipped: it was done by <@U0ADA> {AT}"),
    (decided(Skip()), f"Left out by <@U0ADA> {AT}"),
    (decided(Rerun()), f"To be run again, as decided by <@U0ADA> {AT}"),
    (decided(Happened("sent")), f"It happened, as told by <@U0ADA> {AT}"),
    (decided(Expired()), f"Expired, noted by <@U0ADA> {AT}"),
    (Ran(decided(Approve()), "ok", 0, 1.23), f"Approved by <@U0ADA> {AT} · ran, exit 0, 1.2 s"),
    (Ran(decided(Approve()), "error", None, 0.04), f"Approved by <@U0ADA> {AT} · failed, 0.0 s"),
    (Ran(decided(Approve()), "not_run"), f"Approved by <@U0ADA> {AT} · not run"),
    (Closed("The run was stopped."), "Closed, nobody needs to decide any more"),
    (Lapsed(), "Expired: nobody decided in time"),
]


@pytest.mark.parametrize(("state", "told"), DECISIONS)
def test_a_decided_card_keeps_the_call_and_says_what_came_of_it(state: State, told: str):
    message = blocks.card_message(card(state=state, approvers=("U0ADA",), of=2, revision=4))

    check_message(message)
    outcome = message["blocks"][-1]
    assert not buttons(message)
    assert preformatted(message) == LINE
    assert outcome["elements"][0]["text"] == f"{told} · 1 of 2 · #{card().task.short_id}"
    assert outcome["block_id"] == f"task:{card().task.fingerprint[:16]}:4"
    assert "please decide" not in texts(message)
    assert told in message["text"]


def test_what_a_person_or_a_rule_said_is_shown_as_plain_text():
    for state, said in [
        (decided(Reject("too <risky> *now*")), "too <risky> *now*"),
        (Decided("", NOON, Approve(), rule="allow bash ls"), "Rule: allow bash ls"),
        (Closed("The run was stopped."), "The run was stopped."),
        (Ran(decided(Happened("sent")), "ok"), "sent"),
    ]:
        comment = blocks.card_message(card(state=state))["blocks"][-1]["elements"][1]
        assert comment == {"type": "plain_text", "text": said, "emoji": False}


def test_an_edited_card_shows_what_was_changed():
    message = blocks.card_message(card(state=decided(Approve()), approved_args={"command": "git push --dry-run"}))

    assert preformatted(message) == f"- {LINE}\n+ git push --dry-run"
    assert "git push --dry-run · Approved with changes by <@U0ADA>" in message["text"]
    assert message["blocks"][-1]["elements"][0]["text"].startswith("Approved with changes by <@U0ADA>")


def test_an_edited_card_shows_arguments_in_the_order_in_which_they_were_asked_for():
    proposed, approved = {"content": "a", "path": "p"}, {"path": "p", "content": "b", "more": 1}
    message = blocks.card_message(card(proposed, decided(Approve()), approved_args=approved))

    assert preformatted(message) == "- content: a\n+ content: b\n  path: p\n+ more: 1"


# -- modals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("of", "first"), [(1, "stop"), (2, "go_on")])
def test_the_choice_after_a_rejection_begins_as_the_rule_has_it(of: int, first: str):
    view = modals.form("reject", card(of=of))

    assert view is not None
    check_view(view)
    radio = found(view, "input")[1]["element"]
    assert radio["initial_option"]["value"] == first
    assert [one["value"] for one in radio["options"]] == ["stop", "go_on"]


def test_always_allow_shows_the_whole_rule():
    view = modals.form("always", card({"path": "a.md", "content": "one\ntwo"}, tool_name="write"))

    assert '"Tool: write"' in json.dumps(view)

    assert view is not None
    check_view(view)
    assert "In this thread, exactly this" in texts(view)
    assert preformatted(view) == "path: a.md\ncontent: \n    one\n    two"


def test_forms_that_do_not_fit_the_card_are_not_given():
    assert modals.form("happened", card()) is None
    assert modals.form("always", card(may_always=False)) is None
    assert modals.form("edit", card()) is None


def test_what_is_only_said_is_a_view_too():
    check_view(modals.message("Too late", "Someone <b> decided."))


@pytest.mark.parametrize(
    ("action", "kind", "decision"),
    [
        ("review", "approve", Approve()),
        ("review", "unknown", Rerun()),
        ("reject", "approve", Reject(None, end=True)),
        ("skip", "approve", Skip()),
        ("always", "approve", Approve(always_allow=True)),
        ("happened", "unknown", Happened("")),
    ],
)
def test_a_form_comes_back_as_the_decision_that_it_offered(action: ids.Action, kind: str, decision: object):
    shown = card(kind=kind)
    view = modals.form(action, shown)
    assert view is not None
    check_view(view)
    values = {
        one["block_id"]: {one["element"]["action_id"]: {"selected_option": one["element"]["initial_option"]}}
        for one in found(view, "input")
        if "initial_option" in one["element"]
    }

    answered = {**view, "state": {"values": values}}
    heard = parse(
        {"type": "view_submission", "api_app_id": "A0US", "user": {"id": "U0ADA"}, "view": answered},
        Identity("T0HOME", app_id="A0US"),
    )

    assert isinstance(heard, Decide)
    assert (heard.session_id, heard.task, heard.decision) == (SESSION, shown.ref, decision)


# -- answers -----------------------------------------------------------------------------------------------------------


def test_an_answer_has_no_blocks_so_that_it_cannot_pose_as_a_card():
    [message] = blocks.answer_messages(Answer("*Run a shell command?* <!channel>", "U0ANN"))

    assert message["text"] == "<@U0ANN> _Run a shell command?_ &lt;!channel&gt;"
    assert "blocks" not in message
    assert (message["unfurl_links"], message["unfurl_media"]) == (False, False)


def test_a_notice_is_escaped_and_short():
    message = blocks.notice_message(Notice("<!here> " * 2_000))

    assert len(message["text"]) <= 4_000
    assert "<" not in message["text"]


# -- hostile contents --------------------------------------------------------------------------------------------------

HOSTILE = [
    "<!channel>",
    "<@U0EVE>",
    "<https://evil.io|Approve>",
    "```",
    "`*_~",
    "&amp;",
    "\u202e",
    "\ud800",
    "😀",
    "日",
    "\x00",
    "\n",
]
NASTY = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=10), max_size=10).map("".join) | st.builds(
    lambda piece, times: piece * times,
    st.sampled_from([*HOSTILE, "x", " ", '"\\']),
    st.sampled_from([1, 30, 500, 11_000]),
)
VALUE = NASTY | st.integers() | st.booleans() | st.none() | st.lists(NASTY, max_size=2)
STATES = st.sampled_from([Waiting(), *(state for state, _ in DECISIONS)])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    args=st.dictionaries(st.sampled_from(["command", "path", "content"]) | NASTY, VALUE, max_size=3),
    tool=NASTY,
    comment=NASTY,
    says=NASTY,
    preview=st.just("") | NASTY,
    agent=st.just("") | NASTY,
    kind=st.sampled_from(["approve", "unknown"]),
    state=STATES,
)
def test_whatever_a_call_holds_the_card_is_valid_and_parses_nothing(
    args: dict[str, Any], tool: str, comment: str, says: str, preview: str, agent: str, kind: str, state: State
):
    shown = card(
        args,
        state=state,
        of=12,
        alike=(2, 12),
        approvers=tuple(f"U{n:010}" for n in range(9)),
        agent_says=says,
        features=frozenset({"always", "edit", "view"}),
        tool_name=tool,
        comment=comment,
        preview=preview,
        agent=agent,
        kind=kind,
        call_uuid="9c1d" * 10 + "-20-12",
        expires_at=NOON,
    )

    message = blocks.card_message(shown)

    check_message(message)
    if "characters left out⟩" in preformatted(message) and isinstance(state, Waiting):
        assert not {"Approve", "Run again", "Always allow here…"} & {one for row in buttons(message) for one in row}
    for action in ("review", "reject", "skip", "always", "happened"):
        view = modals.form(action, shown)
        if view is not None:
            check_view(view)


@settings(max_examples=50, deadline=None)
@given(before=NASTY, after=NASTY, comment=NASTY, by=NASTY, rule=NASTY)
def test_whatever_was_decided_the_update_is_as_valid_as_the_post(
    before: str, after: str, comment: str, by: str, rule: str
):
    for state in (
        Decided(by, NOON, Reject(comment), rule=rule),
        Ran(Decided(by, NOON, Approve(comment=comment)), "ok", 0, 1.0),
        Closed(comment),
    ):
        edited = card({"command": before}, state=state, approved_args={"command": after}, approvers=("U0ADA",))
        check_message(blocks.card_message(edited))


def test_a_secret_is_on_no_card_and_in_no_form():
    shown = card({"command": "curl -H 'Authorization: Bearer abcdefghij0123456789' https://x.io\n" + LONG})
    waiting = blocks.card_message(replace(shown, agent_says="I use xoxb-1234567890ABCDEF"))
    after = blocks.card_message(replace(shown, state=decided(Reject("not with xoxb-1234567890ABCDEF"))))

    everything = json.dumps([waiting, after, modals.form("review", shown), modals.form("reject", shown)])
    assert "0123456789" not in everything
    assert "1234567890ABCDEF" not in everything
