"""The form that edits arguments, and what is read back from it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.models.views import View

from bot.edits import blamed, edit_form, fields_of, read_back
from bot.view import Card
from harness_core.hitl import HITLTask
from harness_core.types import canonical

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "the file"},
        "lines": {"type": "integer"},
        "share": {"type": "number"},
        "all": {"type": "boolean"},
        "mode": {"enum": ["fast", "safe", "<!channel>"]},
        "tags": {"type": "array"},
        "note": {"type": "string"},
    },
    "required": ["path", "mode"],
}


def card(**args: Any) -> Card:
    return Card("slack:T1:C1:1.1", HITLTask("c1", "put", args, "it may change something", fingerprint="a" * 64))


def untouched(view: dict[str, Any]) -> dict[str, Any]:
    """What Slack sends if somebody submits the form as it opened."""
    values: dict[str, Any] = {}
    for block in view["blocks"]:
        if block["type"] == "input":
            element = block["element"]
            chosen = element.get("initial_option")
            values[block["block_id"]] = {"value": {"value": element.get("initial_value"), "selected_option": chosen}}
    return values


def typed(view: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The same, with some fields changed: by label, text or the index of an option."""
    values = untouched(view)
    for block in view["blocks"]:
        label = block.get("label", {}).get("text")
        if label in changes:
            new = changes[label]
            select = block["element"]["type"] == "static_select"
            values[block["block_id"]]["value"] = {
                "selected_option" if select else "value": {"value": new} if select else new
            }
    return values


def labels(view: dict[str, Any]) -> dict[str, str]:
    return {b["label"]["text"]: b["element"]["type"] for b in view["blocks"] if b["type"] == "input"}


def test_every_argument_of_the_schema_has_a_field_of_its_type():
    view = edit_form(card(path="a", mode="safe", all=True), SCHEMA)

    assert view is not None
    View(**{k: v for k, v in view.items() if k != "type"}, type="modal").validate_json()
    assert labels(view) == {
        "path": "plain_text_input",
        "lines": "plain_text_input",
        "share": "plain_text_input",
        "all": "static_select",
        "mode": "static_select",
        "tags": "plain_text_input",
        "note": "plain_text_input",
    }
    assert view["submit"]["text"] == "Approve edited"


def test_the_form_as_it_opened_reads_back_as_the_same_arguments():
    args = {
        "path": "a\n“b”",
        "lines": 3,
        "share": 1.5,
        "all": False,
        "mode": "<!channel>",
        "tags": [{"x": None}],
        "note": "",
    }
    asked = card(**args)
    view = edit_form(asked, SCHEMA)
    assert view is not None

    read, errors = read_back(asked, SCHEMA, untouched(view))

    assert errors == {}
    assert canonical({**read, "note": ""}) == canonical(args)


def test_what_was_typed_comes_back_as_the_type_that_the_tool_takes():
    asked = card(path="a", mode="fast", lines=1)
    view = edit_form(asked, SCHEMA)
    assert view is not None

    values = typed(view, path="b", lines="12", share="0.5", all="1", mode="1", tags='["x"]')
    read, errors = read_back(asked, SCHEMA, values)

    assert (read, errors) == ({"path": "b", "lines": 12, "share": 0.5, "all": False, "mode": "safe", "tags": ["x"]}, {})


def test_an_emptied_optional_field_takes_the_argument_away_and_a_required_text_may_be_empty():
    asked = card(path="a", mode="fast", lines=1, note="n")
    view = edit_form(asked, SCHEMA)
    assert view is not None

    read, errors = read_back(asked, SCHEMA, typed(view, path=None, lines=None, note=None))

    assert (read, errors) == ({"path": "", "mode": "fast"}, {})


def test_wrong_types_are_errors_at_their_fields():
    asked = card(path="a", mode="fast")
    view = edit_form(asked, SCHEMA)
    assert view is not None
    wrong: list[tuple[str, Any]] = [
        ("lines", "1.5"),
        ("lines", "true"),
        ("lines", "x"),
        ("share", "NaN"),
        ("tags", "[1"),
        ("tags", "[" * 100_000),
    ]
    wrong += [("mode", "9"), ("mode", "-1"), ("mode", "fast"), ("mode", 1)]  # a client may send what it likes

    for label, text in wrong:
        values = typed(view, **{label: text})
        _, errors = read_back(asked, SCHEMA, values)

        number = next(b["block_id"] for b in view["blocks"] if b.get("label", {}).get("text") == label)
        assert list(errors) == [number], (label, text)


def test_what_phones_put_in_is_an_error_unless_it_was_there_before():
    asked = card(path="say “hi”", mode="fast")
    view = edit_form(asked, SCHEMA)
    assert view is not None

    _, fine = read_back(asked, SCHEMA, typed(view, path="say “ho”"))
    _, dash = read_back(asked, SCHEMA, typed(view, path="rm —force"))
    _, blank = read_back(asked, SCHEMA, typed(view, path="rm\u00a0-rf"))

    assert fine == {}
    assert "a long dash" in next(iter(dash.values()))
    assert "non-breaking" in next(iter(blank.values()))


def test_what_cannot_be_seen_or_looks_like_another_is_an_error_at_the_field_it_was_pasted_into():
    asked = card(path="a", mode="fast", note="plain", tags=["x"])
    view = edit_form(asked, SCHEMA)
    assert view is not None

    for pasted in ({"path": "a\u200b"}, {"path": "p\u0430th"}, {"note": "one \u202etwo"}, {"tags": '["\u2066"]'}):
        _, errors = read_back(asked, SCHEMA, typed(view, **pasted))
        assert "U+" in next(iter(errors.values()), ""), pasted
    for fine in ({"path": "größe/日本.md"}, {"note": "❤️ 🎉 – " + " " * 60 + "привет"}, {"tags": '["ü"]'}):
        _, errors = read_back(asked, SCHEMA, typed(view, **fine))
        assert not any("U+" in error for error in errors.values()), fine


def test_long_secret_and_disguised_values_are_kept_as_they_are():
    args = {"path": "a", "mode": "fast", "note": "x" * 3001, "tags": ["\u202e"]}
    asked = card(**args)
    asked = replace(asked, task=replace(asked.task, preview="+x", covers=("note",)))
    secret = card(path="xoxb-1234567890-abcdefghijklmnop", mode="fast")
    view, masked = edit_form(asked, SCHEMA), edit_form(secret, SCHEMA)
    assert view is not None
    assert masked is not None

    assert "3,001 characters, kept" in json.dumps(view)
    assert "cannot be seen or look like others, kept" in json.dumps(view)
    assert "abcdefghijklmnop" not in json.dumps(masked)
    assert read_back(asked, SCHEMA, untouched(view)) == (args, {})
    assert read_back(secret, SCHEMA, untouched(masked))[0]["path"] == "xoxb-1234567890-abcdefghijklmnop"


def test_an_unknown_outcome_and_a_call_without_arguments_have_no_form():
    unknown = Card("slack:T1:C1:1.1", HITLTask("c1", "put", {"path": "a"}, "?", kind="unknown", fingerprint="a" * 64))

    assert edit_form(unknown, SCHEMA) is None
    assert edit_form(card(), {"type": "object", "properties": {}}) is None


def test_a_refusal_stands_at_the_field_that_it_names():
    asked = card(path="a", mode="fast")
    view = edit_form(asked, SCHEMA)
    assert view is not None
    by_label = {b["label"]["text"]: b["block_id"] for b in view["blocks"] if b["type"] == "input"}

    same = asked.task.args
    assert list(blamed(asked, SCHEMA, same, "mode must be one of these")) == [by_label["mode"]]
    assert list(blamed(asked, SCHEMA, same, "denied by a rule")) == [by_label["path"]]
    assert list(blamed(asked, SCHEMA, same, "the pathology of a moderate mode")) == [by_label["mode"]]


def test_a_refusal_stands_at_the_field_that_was_changed_whatever_else_it_names():
    asked = card(path="a", mode="fast")
    view = edit_form(asked, SCHEMA)
    assert view is not None
    by_label = {b["label"]["text"]: b["block_id"] for b in view["blocks"] if b["type"] == "input"}
    typed = {"path": "a", "mode": "slow"}

    for why in ('the rule “deny put {"mode":"slow","path":"a"}” denies this', "a path", "out of range"):
        assert list(blamed(asked, SCHEMA, typed, why)) == [by_label["mode"]]
    both = {"path": "b", "mode": "slow"}
    assert list(blamed(asked, SCHEMA, both, "mode: is required")) == [by_label["mode"]]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def test_a_command_and_a_text_get_a_field_of_several_lines_and_a_path_gets_one():
    schema = {"properties": {"command": {"type": "string"}, "path": {"type": "string"}}}
    view = edit_form(card(command="ls", path="a"), schema)

    assert view is not None
    assert [block["element"]["multiline"] for block in view["blocks"] if block["type"] == "input"] == [True, False]


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other", "<!channel>"]), JSON, max_size=6))
def test_any_arguments_make_a_form_that_reads_back_as_they_were(args: dict[str, Any]):
    asked = card(**args)
    view = edit_form(asked, SCHEMA)
    if view is None:
        return
    assert all(len(json.dumps(b)) < 60_000 for b in view["blocks"])

    read, _ = read_back(asked, SCHEMA, untouched(view))

    for field in fields_of(asked, SCHEMA):
        if field.given and field.name in read:
            assert read[field.name] == args[field.name]


@given(JSON)
def test_any_submission_is_read_without_an_exception(junk: Any):
    asked = card(path="a", mode="fast")
    values = junk if isinstance(junk, dict) else {"arg:0": junk, "arg:1": {"value": junk}}

    read_back(asked, SCHEMA, values)


def test_a_card_that_had_to_cut_offers_no_form_that_keeps_what_neither_shows():
    whole = card(path="a", mode="safe", note="make\n" * 2_000 + "rm -rf /")
    hidden = card(path="a", mode="safe", note="make\n" * 500, share="\u202e")

    assert edit_form(whole, SCHEMA) is None
    assert edit_form(hidden, SCHEMA) is None


def test_what_a_form_keeps_stands_on_its_card():
    kept = edit_form(card(path="a", mode="safe", note="a\u202eb"), SCHEMA)
    shown = edit_form(card(path="a", mode="safe", note="make\n" * 500), SCHEMA)

    assert kept is not None
    assert "what is kept stands on the card" in str(kept)
    assert shown is not None
    assert "make\n" * 500 in str(
        [b["element"].get("initial_value") for b in shown["blocks"] if b["type"] == "input"]
    ).replace("\\n", "\n")


def test_a_choice_that_does_not_fit_its_label_is_kept():
    long = {**SCHEMA, "properties": {**SCHEMA["properties"], "mode": {"enum": ["a" * 80 + "1", "a" * 80 + "2"]}}}

    assert {f.name: bool(f.kept) for f in fields_of(card(path="a", mode="a" * 80 + "1"), long)}["mode"]
