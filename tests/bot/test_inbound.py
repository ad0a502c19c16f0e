"""What Slack sends becomes one of our words, byte for byte, and nothing it sends can raise."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import ids
from bot.heard import Amend, Configure, Decide, Ignore, OpenModal, Origin, Prompt, Reach, Removed, Status, Stop, Why
from bot.ids import Identity, TaskRef
from bot.inbound import parse
from harness_core.hitl import Approve, Happened, Reject, Rerun, Skip

US = Identity("T0HOME", app_id="A0US", bot_user_id="U0BOT", bot_id="B0BOT")
FINGERPRINT = "3f9a1c" + "0" * 58
SESSION = "slack:T0HOME:C0ROOM:1700000000.000100"
TS, REPLY_TS = "1700000000.000100", "1700000001.000200"


def event(**fields: Any) -> dict[str, Any]:
    body = {"type": "message", "channel": "C0ROOM", "channel_type": "channel", "user": "U0ANN", "ts": TS, **fields}
    return {"type": "event_callback", "team_id": "T0HOME", "api_app_id": "A0US", "event": body}


def mention(text: str = "<@U0BOT> do it", **fields: Any) -> dict[str, Any]:
    return event(type="app_mention", text=text, **fields)


def reply(text: str, **fields: Any) -> dict[str, Any]:
    return event(**{"text": text, "ts": REPLY_TS, "thread_ts": TS, **fields})


def rich(*elements: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "rich_text", "block_id": "x", "elements": list(elements)}]


def paragraph(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text_section", "elements": list(elements)}


def said(text: str, **style: bool) -> dict[str, Any]:
    return {"type": "text", "text": text, **({"style": style} if style else {})}


BOT = {"type": "user", "user_id": "U0BOT"}
CALL = "9c1d-1-1"
VALUE = TaskRef(FINGERPRINT, CALL).value()


def click(action: str = "approve", value: str = VALUE, **fields: Any) -> dict[str, Any]:
    return {
        "type": "block_actions",
        "api_app_id": "A0US",
        "team": {"id": "T0OTHER"},
        "user": {"id": "U0ANN", "team_id": "T0HOME"},
        "channel": {"id": "C0ROOM"},
        "container": {"type": "message", "message_ts": REPLY_TS, "channel_id": "C0ROOM", "thread_ts": TS},
        "message": {"ts": REPLY_TS, "thread_ts": TS},
        "trigger_id": "1.2.3",
        "response_url": "https://hooks.slack.com/actions/x",
        "actions": [{"action_id": action, "block_id": "task:3f9a1c0000000000:2", "value": value, "type": "button"}],
        **fields,
    }


def submission(form: str, comment: str = "", choice: str = "", metadata: str | None = None) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if comment:
        values["comment"] = {"comment": {"type": "plain_text_input", "value": comment}}
    if choice:
        values["choice"] = {"choice": {"type": "radio_buttons", "selected_option": {"value": choice}}}
    meant = ids.metadata(SESSION, TaskRef(FINGERPRINT, CALL)) if metadata is None else metadata
    view = {"id": "V1", "callback_id": form, "private_metadata": meant, "state": {"values": values}}
    user = {"id": "U0ANN", "team_id": "T0HOME"}
    return {"type": "view_submission", "api_app_id": "A0US", "user": user, "view": view, "trigger_id": "1.2.3"}


def command(text: str) -> dict[str, Any]:
    return {
        "command": "/harness",
        "text": text,
        "api_app_id": "A0US",
        "team_id": "T0OTHER",
        "channel_id": "C0ROOM",
        "user_id": "U0ANN",
        "trigger_id": "1.2.3",
        "response_url": "https://hooks.slack.com/commands/x",
    }


# -- messages ----------------------------------------------------------------------------------------------------------


def test_a_mention_in_a_channel_is_a_prompt_without_the_mention():
    heard = parse(mention("<@U0BOT> do it"), US)

    assert isinstance(heard, Prompt)
    assert (heard.text, heard.addressed, heard.direct) == ("do it", True, False)
    assert heard.session_id == SESSION
    assert heard.origin == Origin("U0ANN", "C0ROOM", "", TS)
    assert heard.sent_at == 1700000000.0001


def test_a_mention_and_its_twin_are_the_same_message():
    text = "<@U0BOT> do it"

    assert parse(mention(text), US) == parse(event(text=text), US)
    assert parse(mention(text), US).key == "T0HOME:C0ROOM:1700000000.000100"  # type: ignore[union-attr]


def test_the_session_is_the_thread_and_not_the_message():
    assert parse(mention(ts=REPLY_TS, thread_ts=TS), US).session_id == SESSION  # type: ignore[union-attr]


def test_a_direct_message_needs_no_mention_and_begins_its_own_thread():
    heard = parse(event(channel="D0ANN", channel_type="im", text="hello"), US)

    assert isinstance(heard, Prompt)
    assert (heard.addressed, heard.direct, heard.session_id) == (True, True, f"slack:T0HOME:D0ANN:{TS}")


def test_a_reply_in_a_thread_is_left_to_whoever_knows_the_thread():
    heard = parse(reply("and then?"), US)

    assert isinstance(heard, Prompt)
    assert (heard.addressed, heard.session_id, heard.text) == (False, SESSION, "and then?")


def test_talk_in_a_channel_is_not_for_the_bot():
    assert parse(event(text="good morning"), US) == Ignore("nobody addressed the bot")


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("<@U0BEN> what do you think?", False),
        ("<!subteam^S1|@oncall> can you look?", False),
        ("<@U0BEN> <@U0EVE>, have you seen this", False),
        ("<@U0BEN> ask <@U0BOT> tomorrow", False),
        ("<@U0BEN> <@U0BOT> please", True),
        ("<@U0BOT> ask <@U0BEN>", True),
        ("ask <@U0BEN>", True),
    ],
)
def test_a_message_that_opens_with_another_persons_mention_is_not_for_the_bot(text: str, ours: bool):
    assert isinstance(parse(reply(text), US), Prompt) is ours


def test_a_bare_mention_asks_how_things_stand():
    assert parse(mention("<@U0BOT>  "), US) == Status(SESSION, Origin("U0ANN", "C0ROOM", "", TS), f"T0HOME:C0ROOM:{TS}")


def test_files_come_along_even_without_a_word():
    files = [{"id": "F1", "name": "a.csv"}, {"id": None}, "junk"]

    heard = parse(mention("<@U0BOT>", subtype="file_share", files=files), US)

    assert isinstance(heard, Prompt)
    assert [(f.id, f.name) for f in heard.files] == [("F1", "a.csv")]


@pytest.mark.parametrize("subtype", ["file_share", "thread_broadcast", "me_message"])
def test_kinds_of_message_that_say_something_count(subtype: str):
    assert isinstance(parse(reply("hello", subtype=subtype), US), Prompt)


@pytest.mark.parametrize(
    "subtype", ["channel_join", "channel_topic", "bot_add", "assistant_app_thread", "reply_broadcast"]
)
def test_other_subtypes_are_ignored(subtype: str):
    assert isinstance(parse(mention(subtype=subtype), US), Ignore)


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "U0BOT"},
        {"bot_id": "B0BOT"},
        {"bot_id": "B0OTHER"},
        {"app_id": "A0OTHER"},
        {"bot_profile": {"id": "B1"}},
        {"subtype": "bot_message", "user": None, "bot_id": "B0BOT"},
        {"subtype": "bot_message", "username": "hook"},
        {"user": "USLACK"},
        {"user": "USLACKBOT"},
        {"user": None},
        {"hidden": True},
        {"channel": "C:0"},
        {"ts": "now"},
        {"thread_ts": "later"},
    ],
)
def test_bots_slack_itself_and_the_malformed_start_nothing(fields: dict[str, Any]):
    assert isinstance(parse(mention(**fields), US), Ignore)


def test_hints_about_outsiders_are_carried_to_the_authoriser():
    payload = mention(user_team="T0ELSE") | {"is_ext_shared_channel": True}

    heard = parse(payload, US)

    assert isinstance(heard, Prompt)
    assert (heard.origin.team, heard.origin.shared_outside) == ("T0ELSE", True)


# -- whose installation ------------------------------------------------------------------------------------------------


def test_the_payloads_team_does_not_change_the_session():
    shared = mention() | {"team_id": "T0ELSE", "authorizations": [{"team_id": "T0HOME"}]}

    assert parse(shared, US).session_id == SESSION  # type: ignore[union-attr]


def test_an_event_for_another_installation_of_the_app_is_not_ours():
    assert isinstance(parse(mention() | {"authorizations": [{"team_id": "T0ELSE"}]}, US), Ignore)


def test_an_installation_for_the_organisation_is_keyed_by_the_organisation():
    grid = Identity("T0HOME", enterprise_id="E0ORG", app_id="A0US", bot_user_id="U0BOT", org_wide=True)
    payload = mention() | {
        "authorizations": [{"team_id": None, "enterprise_id": "E0ORG", "is_enterprise_install": True}]
    }

    assert parse(payload, grid).session_id == f"slack:E0ORG:C0ROOM:{TS}"  # type: ignore[union-attr]
    elsewhere = {"team_id": None, "enterprise_id": "E0ELSE", "is_enterprise_install": True}
    assert isinstance(parse(payload | {"authorizations": [elsewhere]}, grid), Ignore)


@pytest.mark.parametrize("payload", [mention(), click(), submission("review"), command("on")])
def test_what_is_for_another_app_is_ignored(payload: dict[str, Any]):
    assert isinstance(parse(payload | {"api_app_id": "A0ELSE"}, US), Ignore)


@pytest.mark.parametrize("payload", [mention(), click(), submission("review"), command("on")])
def test_what_names_no_app_is_ignored_and_so_is_everything_while_ours_is_not_known(payload: dict[str, Any]):
    unnamed = {name: value for name, value in payload.items() if name != "api_app_id"}

    assert isinstance(parse(unnamed, US), Ignore)
    assert isinstance(parse(payload | {"api_app_id": ""}, US), Ignore)
    assert isinstance(parse(payload | {"api_app_id": ""}, replace(US, app_id="")), Ignore)


# -- edits and deletions -----------------------------------------------------------------------------------------------


def edit(before: str, now: str, **fields: Any) -> dict[str, Any]:
    old = {"type": "message", "user": "U0ANN", "ts": TS, "text": before}
    new = {**old, "text": now, "edited": {"user": "U0ANN", "ts": REPLY_TS}, **fields}
    changed = {"subtype": "message_changed", "hidden": True, "message": new, "previous_message": old}
    return event(user=None, ts=REPLY_TS, **changed)


def test_an_edit_amends_the_prompt_that_it_was():
    key = f"T0HOME:C0ROOM:{TS}"

    assert parse(edit("<@U0BOT> one", "<@U0BOT> two"), US) == Amend(
        key, SESSION, "two", Origin("U0ANN", "C0ROOM", "", TS)
    )


@pytest.mark.parametrize(
    "payload",
    [
        edit("see x.io", "see x.io"),  # an attachment came with it
        edit("see x.io", "see <http://x.io|x.io>", edited=None),  # an unfurl
        edit("one", "two", user="U0BOT"),  # our own update
        edit("one", "two", bot_id="B0BOT"),
    ],
)
def test_unfurls_and_the_bots_own_updates_amend_nothing(payload: dict[str, Any]):
    assert isinstance(parse(payload, US), Ignore)


def test_a_deletion_withdraws_the_prompt():
    old = {"user": "U0ANN", "ts": TS, "text": "one"}
    deleted = event(user=None, ts=REPLY_TS, subtype="message_deleted", deleted_ts=TS, previous_message=old)

    assert parse(deleted, US) == Amend(f"T0HOME:C0ROOM:{TS}", SESSION, None, Origin("U0ANN", "C0ROOM", "", TS))


def test_a_message_of_ours_that_somebody_deleted_is_told_apart_from_those_of_other_bots():
    ours = {"type": "message", "user": "U0BOT", "bot_id": "B0BOT", "ts": REPLY_TS, "thread_ts": TS, "text": "a card"}
    deleted = event(user=None, ts="1700000009.000001", subtype="message_deleted", deleted_ts=REPLY_TS)

    def parsed(before: dict[str, Any]) -> object:
        return parse(deleted | {"event": deleted["event"] | {"previous_message": before}}, US)

    assert parsed(ours) == Removed(SESSION, REPLY_TS)
    assert isinstance(parsed({**ours, "bot_id": "B0OTHER", "user": "U0OTHER"}), Ignore)
    assert isinstance(parsed({**ours, "thread_ts": "../x"}), Ignore)


def test_the_deleted_root_of_a_thread_is_withdrawn_too():
    tombstone = edit("one", "This message was deleted.", subtype="tombstone", user="USLACK", edited=None)

    assert parse(tombstone, US) == Amend(f"T0HOME:C0ROOM:{TS}", SESSION, None, Origin("U0ANN", "C0ROOM", "", TS))


# -- thread words ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["!stop", "!STOP", "  !stop now please", "<@U0BOT> !stop"])
def test_stop_is_understood_in_a_thread(text: str):
    assert isinstance(parse(reply(text), US), Stop)


def test_status_is_understood_in_a_thread():
    assert isinstance(parse(reply("!status"), US), Status)
    assert isinstance(parse(reply("!Why did it ask"), US), Why)


def test_the_native_stop_button_stops_the_session():
    stopped = event(type="agent_session_stopped", thread_ts=TS)

    assert parse(stopped, US) == Stop(SESSION, Origin("U0ANN", "C0ROOM", TS))


@pytest.mark.parametrize("text", ["!approve 3f9a1c", "!approve #3F9A1C", "<@U0BOT>\u00a0!approve 3f9a1c"])
def test_a_word_approves_by_id(text: str):
    heard = parse(reply(text), US)

    assert isinstance(heard, Decide)
    assert (heard.task, heard.decision, heard.via) == (TaskRef("3f9a1c"), Approve(), "word")
    assert not heard.task.exact


def test_an_id_that_slack_takes_for_a_colour_is_still_the_id():
    blocks = rich(paragraph(said("!approve "), {"type": "color", "value": "#3f9a1c"}))

    assert parse(reply("!approve #3f9a1c", blocks=blocks), US).task == TaskRef("3f9a1c")  # type: ignore[union-attr]


def test_a_word_rejects_with_a_reason():
    heard = parse(reply("!reject 3f9a1c too risky,\nask Ben"), US)

    assert isinstance(heard, Decide)
    assert heard.decision == Reject("too risky,\nask Ben")


@pytest.mark.parametrize(
    "text", ["!approve", "!approve yes", "!approve 3f9a", "!approve 3f9a1c but not in /etc", "!reject"]
)
def test_a_word_that_cannot_be_taken_decides_nothing_and_says_so(text: str):
    heard = parse(reply(text), US)

    assert isinstance(heard, Ignore)
    assert heard.tell
    assert heard.origin == Origin("U0ANN", "C0ROOM", TS, REPLY_TS)


@pytest.mark.parametrize("text", ["yes", "approve", "ok, approve 3f9a1c", "👍", "`!approve 3f9a1c`"])
def test_a_plain_yes_never_approves(text: str):
    assert isinstance(parse(reply(text), US), Prompt)


# -- clicks and modals -------------------------------------------------------------------------------------------------


def test_a_click_on_approve_decides_that_question():
    heard = parse(click(), US)

    assert isinstance(heard, Decide)
    assert heard.task == TaskRef(FINGERPRINT, CALL)
    assert heard.task.exact
    assert (heard.session_id, heard.decision, heard.via) == (SESSION, Approve(), "button")
    assert heard.origin == Origin(
        "U0ANN", "C0ROOM", TS, REPLY_TS, "T0HOME", False, "1.2.3", "https://hooks.slack.com/actions/x"
    )
    assert ids.card_named(heard.block_id) == (FINGERPRINT[:16], 2)


def test_run_again_is_decided_by_the_click():
    assert parse(click("rerun"), US).decision == Rerun()  # type: ignore[union-attr]


@pytest.mark.parametrize("action", ["review", "reject", "skip", "always", "edit", "view", "happened"])
def test_the_other_buttons_open_a_modal(action: str):
    heard = parse(click(action), US)

    assert isinstance(heard, OpenModal)
    assert (heard.action, heard.task, heard.origin.trigger_id) == (action, TaskRef(FINGERPRINT, CALL), "1.2.3")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "|",
        CALL,
        FINGERPRINT,
        f"|{FINGERPRINT}",
        f"{CALL}|{FINGERPRINT[:-1]}",
        f"{CALL}|{FINGERPRINT.upper()}",
        f"{CALL}|{FINGERPRINT}\n",
        f"a b|{FINGERPRINT}",
        f"{'x' * 2000}|{FINGERPRINT}",
    ],
)
def test_a_tampered_value_decides_nothing_and_is_answered(value: str):
    heard = parse(click(value=value), US)

    assert isinstance(heard, Ignore)
    assert heard.tell
    assert heard.origin is not None
    assert heard.origin.response_url


def chosen(**values: object) -> dict[str, Any]:
    """The form of *always allow* with these choices."""
    payload = submission("always")
    state = {name: {name: {"type": "radio_buttons", "selected_option": value}} for name, value in values.items()}
    return {**payload, "view": {**payload["view"], "state": {"values": state}}}


@pytest.mark.parametrize(
    ("payload", "reach"),
    [
        (chosen(), Reach()),
        (chosen(where={"value": "thread"}, what={"value": "exact"}), Reach()),
        (chosen(where={"value": "channel"}), Reach(channel=True)),
        (chosen(what={"value": "prefixes:0123456789abcdef"}), Reach(prefixes="0123456789abcdef")),
        (chosen(where=None, what=[]), Reach()),
    ],
)
def test_how_far_an_always_allow_goes_is_what_was_chosen(payload: dict[str, Any], reach: Reach):
    heard = parse(payload, US)

    assert isinstance(heard, Decide)
    assert (heard.decision, heard.reach) == (Approve(always_allow=True), reach)


@pytest.mark.parametrize(
    "choice", [{"where": {"value": "workspace"}}, {"what": {"value": "prefixes:"}}, {"what": {"value": "bash *"}}]
)
def test_a_reach_that_no_form_offers_decides_nothing(choice: dict[str, Any]):
    heard = parse(chosen(**choice), US)

    assert isinstance(heard, Ignore)
    assert heard.tell


def test_an_unknown_button_is_answered():
    assert parse(click("launch"), US).tell  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("payload", "decision"),
    [
        (submission("review"), Approve()),
        (submission("review_rerun"), Rerun()),
        (submission("always"), Approve(always_allow=True)),
        (submission("reject", " no ", "stop"), Reject("no", end=True)),
        (submission("reject", choice="go_on"), Reject(None, end=False)),
        (submission("reject", "no"), Reject("no", end=None)),
        (submission("skip", "sent by hand", "done"), Skip("sent by hand", done=True)),
        (submission("skip", choice="left_out"), Skip()),
        (submission("happened", "it is there"), Happened("it is there")),
        (submission("happened"), Happened("")),
    ],
)
def test_a_submitted_modal_is_the_decision_that_it_says(payload: dict[str, Any], decision: object):
    heard = parse(payload, US)

    assert isinstance(heard, Decide)
    assert (heard.decision, heard.session_id, heard.task, heard.via) == (
        decision,
        SESSION,
        TaskRef(FINGERPRINT, CALL),
        "modal",
    )


@pytest.mark.parametrize(
    "payload",
    [
        submission("launch"),
        submission("review", metadata=""),
        submission("review", metadata="[" * 5000),
        submission("review", metadata=json.dumps({"session": SESSION, "call": CALL, "task": "3f9a1c"})),
        submission(
            "review", metadata=json.dumps({"session": "slack:T0ELSE:C1:1.2", "call": CALL, "task": FINGERPRINT})
        ),
        submission("review", metadata=json.dumps({"session": "config:workspace", "call": CALL, "task": FINGERPRINT})),
        submission("skip"),
        submission("skip", choice="approve"),
        submission("reject", choice="approve"),
    ],
)
def test_a_modal_that_is_not_ours_decides_nothing_and_is_answered(payload: dict[str, Any]):
    assert parse(payload, US).tell  # type: ignore[union-attr]


def test_a_closed_modal_decides_nothing():
    assert isinstance(parse(submission("reject") | {"type": "view_closed"}, US), Ignore)


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "verb", "rest"),
    [
        ("on", "on", ""),
        ("", "help", ""),
        ("  Claim  AB12-CD ", "claim", "AB12-CD"),
        ("allow a &amp;&amp; ping &lt;x&gt; <http://x.io|x.io>", "allow", "a && ping <x> x.io"),
        ("admin <@U0BEN|ben>", "admin", "<@U0BEN>"),
    ],
)
def test_a_command_is_its_first_word_and_the_rest_as_typed(text: str, verb: str, rest: str):
    heard = parse(command(text), US)

    assert isinstance(heard, Configure)
    assert (heard.verb, heard.rest, heard.key) == (verb, rest, "1.2.3")


# -- typed bytes -------------------------------------------------------------------------------------------------------

TYPED = "a && ping x.io | grep '<ok>' > \"out\u00a0file\""
AS_TEXT = "a &amp;&amp; ping <http://x.io|x.io> | grep '&lt;ok&gt;' &gt; \"out\u00a0file\""
LINK = {"type": "link", "url": "http://x.io", "text": "x.io"}
AS_RICH = (said("a && ping "), LINK, said(" | grep '<ok>' > \"out\u00a0file\""))


@pytest.mark.parametrize(
    "payload",
    [
        mention(f"<@U0BOT> {AS_TEXT}"),
        mention(f"<@U0BOT> {AS_TEXT}", blocks=rich(paragraph(BOT, said(" "), *AS_RICH))),
        mention(f"<@U0BOT>\u00a0{AS_TEXT}", blocks=rich(paragraph(BOT, said("\u00a0"), *AS_RICH))),
        reply(AS_TEXT),
        reply(AS_TEXT, blocks=rich(paragraph(*AS_RICH))),
        event(channel="D0ANN", channel_type="im", text=AS_TEXT),
        event(channel="D0ANN", channel_type="im", text=AS_TEXT, blocks=rich(paragraph(*AS_RICH))),
    ],
)
def test_typed_bytes_are_the_bytes_that_arrive(payload: dict[str, Any]):
    assert parse(payload, US).text == TYPED  # type: ignore[union-attr]


def test_typed_bytes_of_a_command_are_the_bytes_that_arrive():
    assert parse(command(f"run {AS_TEXT}"), US).rest == TYPED  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("&amp;lt;", "&lt;"),
        ("&amp;amp;&amp; &copy;", "&amp;& &copy;"),
        ("<http://x.io>", "http://x.io"),
        ("<https://x.io/a?b=1&amp;c=2>", "https://x.io/a?b=1&c=2"),
        ("<mailto:a@b.io|a@b.io>", "a@b.io"),
        ("<https://x.io/docs|the docs>", "[the docs](https://x.io/docs)"),
        ("hi <@U0BEN|ben> in <#C0X|general>", "hi <@U0BEN> in <#C0X>"),
        ("<!here> <!channel|channel>", "@here @channel"),
        ("ask <!subteam^S1|@oncall>", "ask <!subteam^S1>"),
        ("if 1 < 2 and 3 > 2", "if 1 < 2 and 3 > 2"),
        ("one\n\n  two\t", "one\n\n  two\t"),
        ("```\ncat &lt;&lt;EOF\n$x\nEOF\n```", "```\ncat <<EOF\n$x\nEOF\n```"),
        ("“quoted” – it’s", "“quoted” – it’s"),
    ],
)
def test_text_without_blocks_is_decoded(text: str, typed: str):
    assert parse(reply(text), US).text == typed  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("blocks", "typed"),
    [
        (rich(paragraph(said("rm "), said(".py ", bold=True))), "rm *.py *"),
        (rich(paragraph(said("run "), said("ls -la | wc", code=True))), "run `ls -la | wc`"),
        (rich(paragraph(said("a ", bold=True), {**LINK, "style": {"bold": True}}, said(" b"))), "*a x.io* b"),
        (rich(paragraph(said("x", bold=True, italic=True), said("y", italic=True))), "*_x_*_y_"),
        (rich(paragraph(said("gone", strike=True))), "~gone~"),
        (
            rich(
                paragraph(said("do:\n")),
                {"type": "rich_text_preformatted", "elements": [said("a\n  b")]},
                paragraph(said("ok")),
            ),
            "do:\n```\na\n  b\n```\nok",
        ),
        (
            rich(
                {"type": "rich_text_list", "style": "bullet", "elements": [paragraph(said("a")), paragraph(said("b"))]},
                {
                    "type": "rich_text_list",
                    "style": "ordered",
                    "indent": 1,
                    "offset": 2,
                    "elements": [paragraph(said("c"))],
                },
            ),
            "- a\n- b\n    3. c",
        ),
        (rich({"type": "rich_text_quote", "elements": [said("one\ntwo")]}), "> one\n> two"),
        (rich(paragraph({"type": "emoji", "name": "wave", "skin_tone": 2}, said("!"))), ":wave::skin-tone-2:!"),
        (rich(paragraph({"type": "broadcast", "range": "here"}, said(" hi"))), "@here hi"),
        (rich(paragraph({"type": "channel", "channel_id": "C0X"})), "<#C0X>"),
        (rich(paragraph({"type": "link", "url": "mailto:a@b.io", "text": "a@b.io"})), "a@b.io"),
        (rich(paragraph({"type": "link", "url": "https://x.io/ü%20", "text": "x.io/ü "})), "x.io/ü "),
        (rich(paragraph({"type": "link", "url": "https://evil.io", "text": "x.io"})), "[x.io](https://evil.io)"),
        (rich(paragraph(said("R&amp;D is &lt;"))), "R&amp;D is &lt;"),
        (rich(paragraph({"type": "date", "timestamp": 1, "fallback": "noon"})), "noon"),
    ],
)
def test_rich_text_is_put_back_as_typed(blocks: list[dict[str, Any]], typed: str):
    assert parse(reply("unused", blocks=blocks), US).text == typed  # type: ignore[union-attr]


def test_rich_text_that_was_escaped_once_too_often_is_decoded():
    blocks = rich(paragraph(said("a &amp;&amp; b")))

    assert parse(reply("a &amp;&amp; b", blocks=blocks), US).text == "a && b"  # type: ignore[union-attr]


def test_entities_that_were_typed_stay_entities():
    blocks = rich(paragraph(said("echo &amp;")))

    assert parse(reply("echo &amp;amp;", blocks=blocks), US).text == "echo &amp;"  # type: ignore[union-attr]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda t: t.strip(" \t\n\xa0")))
def test_any_text_arrives_as_it_was_typed(text: str):
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    plain, with_blocks = reply(f"x{escaped}"), reply(f"x{escaped}", blocks=rich(paragraph(said(f"x{text}"))))

    assert parse(plain, US).text == f"x{text}"  # type: ignore[union-attr]
    assert parse(with_blocks, US).text == f"x{text}"  # type: ignore[union-attr]


# -- hostile payloads --------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
GOOD = [
    mention(blocks=rich(paragraph(BOT, *AS_RICH)), files=[{"id": "F1", "name": "x"}]),
    reply("!approve 3f9a1c"),
    edit("one", "two"),
    edit("one", "gone", subtype="tombstone"),
    event(subtype="message_deleted", deleted_ts=TS, previous_message={"user": "U0ANN", "ts": TS, "text": "one"}),
    click(),
    submission("reject", "no", "stop"),
    command("on"),
    event(type="agent_session_stopped", thread_ts=TS),
]


@given(JSON)
def test_any_json_is_ignored_quietly(payload: Any):
    assert isinstance(parse(payload, US), Ignore)


@given(st.data())
def test_a_payload_with_anything_in_any_place_never_raises(data: st.DataObject):
    payload = json.loads(json.dumps(data.draw(st.sampled_from(GOOD))))
    place: Any = payload
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(JSON)
        break

    heard = parse(payload, US)

    if isinstance(heard, Prompt | Decide | Amend | Stop | Status | OpenModal):
        assert ids.thread_of(heard.session_id) is not None


def test_deeply_nested_rich_text_is_read_as_far_as_slack_nests():
    deep: dict[str, Any] = paragraph(said("x"))
    for _ in range(500):
        deep = {"type": "rich_text_list", "elements": [deep]}

    assert isinstance(parse(reply("still here", blocks=rich(deep)), US), Prompt)
