"""Blocks and views that Slack would refuse are refused, with a pointer to what is wrong."""

import copy
from contextlib import suppress
from typing import Any

import pytest

from bot.local.blocks import check_message_blocks
from bot.local.posted import kept_blocks
from bot.local.shapes import SlackError
from bot.local.views import check_view

Block = dict[str, Any]


def plain(text: str) -> Block:
    return {"type": "plain_text", "text": text}


def section(**facts: Any) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": "x"}} | facts


def button(**facts: Any) -> Block:
    return {"type": "button", "text": plain("Go"), "action_id": "go"} | facts


def actions(*elements: Block, **facts: Any) -> Block:
    return {"type": "actions", "elements": list(elements)} | facts


def option(value: str = "v", text: str = "t") -> Block:
    return {"text": plain(text), "value": value}


def select(count: int, kind: str = "static_select", **facts: Any) -> Block:
    return {"type": kind, "action_id": "s", "options": [option(str(n)) for n in range(count)]} | facts


def field(**facts: Any) -> Block:
    return {"type": "input", "label": plain("L"), "element": {"type": "plain_text_input", "action_id": "a"}} | facts


def confirm(**facts: Any) -> Block:
    return {"title": plain("t"), "text": plain("x"), "confirm": plain("y"), "deny": plain("n")} | facts


REFUSED = {
    "section text over 3000": [section(text={"type": "mrkdwn", "text": "x" * 3001})],
    "empty section text": [section(text={"type": "mrkdwn", "text": ""})],
    "section without anything": [{"type": "section"}],
    "eleven fields": [section(fields=[plain("x")] * 11)],
    "field over 2000": [section(fields=[plain("x" * 2001)])],
    "unknown field": [section(colour="red")],
    "unknown block": [{"type": "chart"}],
    "header over 150": [{"type": "header", "text": plain("x" * 151)}],
    "header with markup": [{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}],
    "button text over 75": [actions(button(text=plain("x" * 76)))],
    "button value over 2000": [actions(button(value="x" * 2001))],
    "button url over 3000": [actions(button(url="h" * 3001))],
    "button style": [actions(button(style="green"))],
    "button markup": [actions(button(text={"type": "mrkdwn", "text": "x"}))],
    "action id over 255": [actions(button(action_id="x" * 256))],
    "block id over 255": [section(block_id="x" * 256)],
    "action id twice in a block": [actions(button(), button())],
    "block id twice": [section(block_id="b"), section(block_id="b")],
    "no elements": [actions()],
    "26 elements": [actions(*(button(action_id=str(n)) for n in range(26)))],
    "11 context elements": [{"type": "context", "elements": [plain("x")] * 11}],
    "button in context": [{"type": "context", "elements": [button()]}],
    "six overflow options": [actions(select(6, "overflow"))],
    "eleven radio buttons": [actions(select(11, "radio_buttons"))],
    "eleven checkboxes": [actions(select(11, "checkboxes"))],
    "101 options": [actions(select(101))],
    "option text over 75": [actions(select(0, options=[option(text="x" * 76)]))],
    "option value over 150": [actions(select(0, options=[option(value="x" * 151)]))],
    "option twice": [actions(select(0, options=[option(), option()]))],
    "initial option that is none": [actions(select(2, initial_option=option("9")))],
    "placeholder over 150": [actions(select(1, placeholder=plain("x" * 151)))],
    "confirm title over 100": [actions(button(confirm=confirm(title=plain("x" * 101))))],
    "confirm text over 300": [actions(button(confirm=confirm(text=plain("x" * 301))))],
    "confirm button over 30": [actions(button(confirm=confirm(deny=plain("x" * 31))))],
    "label over 2000": [field(label=plain("x" * 2001))],
    "hint over 2000": [field(hint=plain("x" * 2001))],
    "max_length over 3000": [
        field(element={"type": "plain_text_input", "action_id": "a", "max_length": 3001}),
    ],
    "initial value over 3000": [
        field(element={"type": "plain_text_input", "action_id": "a", "initial_value": "x" * 3001}),
    ],
    "alt text missing": [{"type": "image", "image_url": "https://x.io/a.png"}],
    "markdown over 12000 together": [{"type": "markdown", "text": "x" * 6001}] * 2,
    "table cell empty": [{"type": "table", "rows": [[{"type": "raw_text", "text": ""}]]}],
    "card body over 200": [{"type": "card", "body": plain("x" * 201)}],
    "alert over 200": [{"type": "alert", "text": plain("x" * 201)}],
    "container of eleven": [{"type": "container", "title": plain("t"), "child_blocks": [section()] * 11}],
    "user inside preformatted": [
        {
            "type": "rich_text",
            "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "user", "user_id": "U1"}]}],
        }
    ],
    "empty rich text": [
        {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": ""}]}]}
    ],
}


@pytest.mark.parametrize("blocks", REFUSED.values(), ids=REFUSED)
def test_blocks_that_slack_refuses_are_refused(blocks: list[Block]) -> None:
    with pytest.raises(SlackError) as caught:
        check_message_blocks(blocks)

    assert caught.value.code == "invalid_blocks"
    [first, *_] = caught.value.extra["response_metadata"]["messages"]
    assert first.startswith("[ERROR] ")
    assert "[json-pointer:/blocks" in first


def test_blocks_at_their_limits_are_taken() -> None:
    confirmed = confirm(title=plain("x" * 100), text=plain("x" * 300), deny=plain("x" * 30))
    for blocks in (
        [section(text={"type": "mrkdwn", "text": "x" * 3000}, block_id="x" * 255, expand=True)],
        [section(fields=[plain("x" * 800)] * 10)],
        [{"type": "header", "text": plain("x" * 150)}],
        [actions(button(text=plain("x" * 75), value="x" * 2000, style="danger", confirm=confirmed))],
        [actions(*(button(action_id=str(n)) for n in range(25)))],
        [{"type": "context", "elements": [plain("x")] * 10}],
        [actions(select(5, "overflow")), actions(select(10, "radio_buttons")), actions(select(10, "checkboxes"))],
        [field(element={"type": "plain_text_input", "action_id": "a", "max_length": 3000, "multiline": True})],
        [section()] * 50,
        [section(accessory=button(visible_to_user_ids=["U1"]))],
        [{"type": "divider"}],
    ):
        assert check_message_blocks(blocks) == blocks


def modal(**facts: Any) -> Block:
    return {"type": "modal", "title": plain("T"), "submit": plain("S"), "blocks": [field(block_id="b")]} | facts


VIEWS = {
    "title over 24": modal(title=plain("x" * 25)),
    "submit over 24": modal(submit=plain("x" * 25)),
    "no title": {"type": "modal", "blocks": []},
    "input without submit": modal(submit=None),
    "metadata over 3000": modal(private_metadata="x" * 3001),
    "callback over 255": modal(callback_id="x" * 256),
    "101 blocks": modal(blocks=[section()] * 101),
    "markdown block": modal(blocks=[{"type": "markdown", "text": "x"}]),
    "home for modal": {"type": "home", "blocks": []},
    "unknown field": modal(colour="red"),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_that_slack_refuses_are_refused(view: Block) -> None:
    with pytest.raises(SlackError) as caught:
        check_view({key: value for key, value in view.items() if value is not None}, "modal")

    assert caught.value.code == "invalid_arguments"


def test_a_view_over_250_kilobytes_is_too_large() -> None:
    big = {"type": "mrkdwn", "text": "x" * 2900}

    with pytest.raises(SlackError, match="view_too_large"):
        check_view(modal(blocks=[section(text=big)] * 90), "modal")
    assert check_view(modal(blocks=[section(text=big)] * 80), "modal")


JUNK: list[Any] = [None, 0, "", [], {}, [None], ["x"], {"type": "x"}, {"text": 1}, "x" * 4000, True, [[1]]]
GOOD: list[Block] = [
    section(fields=[plain("x")], accessory=button(confirm=confirm())),
    actions(button(visible_to_user_ids=["U1"]), select(2), select(2, "overflow", action_id="o")),
    actions(
        {"type": "static_select", "action_id": "g", "option_groups": [{"label": plain("l"), "options": [option()]}]}
    ),
    {"type": "context", "elements": [plain("x")]},
    field(),
    {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "x"}]}]},
    {"type": "table", "rows": [[{"type": "raw_text", "text": "x"}]]},
    {"type": "container", "title": plain("t"), "child_blocks": [section()]},
]


def places(part: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything inside."""
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [at, *(place for key, value in items for place in places(value, (*at, key)))]


@pytest.mark.parametrize("block", GOOD, ids=lambda block: block["type"])
def test_whatever_stands_where_it_should_not_is_refused_or_taken_but_never_a_fault_of_ours(block: Block) -> None:
    for place in places(block):
        for junk in JUNK:
            blocks: list[Any] = [copy.deepcopy(block)]
            inside: Any = blocks
            for key in (0, *place)[:-1]:
                inside = inside[key]
            inside[(0, *place)[-1]] = copy.deepcopy(junk)
            with suppress(SlackError):
                kept_blocks(check_message_blocks(blocks))
