"""What people type, in the forms in which Slack delivers it."""

import pytest

from bot.local.posted import kept_blocks, kept_text, text_blocks
from bot.local.typed import Names, typed

NAMES = Names({"harness": "UBOT", "ben": "UBEN"}, {"general": "CGEN"})

TEXTS = [
    ("a && ping x.io", "a &amp;&amp; ping <http://x.io|x.io>"),
    ("run `rm -rf x`", "run `rm -rf x`"),
    ("see https://x.io/a?b=1&c=2.", "see <https://x.io/a?b=1&amp;c=2>."),
    ("mail a@b.io now", "mail <mailto:a@b.io|a@b.io> now"),
    ("@harness and @ben, not @nobody", "<@UBOT> and <@UBEN>, not @nobody"),
    ("@here #general #none", "<!here> <#CGEN|general> #none"),
    ("1 < 2 > 0 <b>", "1 &lt; 2 &gt; 0 &lt;b&gt;"),
    ("python main.py", "python <http://main.py|main.py>"),
    ("ls *.py *.txt", "ls *.py *.txt"),
    ("*bold* _it_ ~no~", "*bold* _it_ ~no~"),
    ("go :x: 👍", "go :x: :+1:"),
    ("look:\n```\ncurl http://x.io\n```\nthen", "look:\n```curl <http://x.io>```\nthen"),
    ("- a\n- b\nend", "• a\n• b\nend"),
    ("1. a\n2. b", "1. a\n2. b"),
    ("> q\nx", "&gt; q\nx"),
    ("two\n\nlines", "two\n\nlines"),
    ("$HOME/.local v1.2.3 10:30:20 foo_bar_baz", "$HOME/.local v1.2.3 10:30:20 foo_bar_baz"),
]


@pytest.mark.parametrize(("raw", "text"), TEXTS)
def test_text_arrives_escaped_and_linked(raw: str, text: str) -> None:
    assert typed(raw, NAMES).text == text


def test_blocks_hold_the_characters_as_typed() -> None:
    [section] = typed("a && ping x.io", NAMES).elements

    assert section["type"] == "rich_text_section"
    assert section["elements"] == [
        {"type": "text", "text": "a && ping "},
        {"type": "link", "url": "http://x.io", "text": "x.io"},
    ]


def test_code_is_styled_and_fences_are_preformatted() -> None:
    section, fence = typed("do `x && y`\n```\na\nb\n```", NAMES).elements

    assert section["elements"] == [
        {"type": "text", "text": "do "},
        {"type": "text", "text": "x && y", "style": {"code": True}},
        {"type": "text", "text": "\n"},
    ]
    assert fence["type"] == "rich_text_preformatted"
    assert fence["elements"] == [{"type": "text", "text": "a\nb"}]


def test_mentions_emoji_and_styles_are_elements() -> None:
    [section] = typed("@harness @here #general :x: *b @ben*", NAMES).elements

    assert [element for element in section["elements"] if element.get("text") != " "] == [
        {"type": "user", "user_id": "UBOT"},
        {"type": "broadcast", "range": "here"},
        {"type": "channel", "channel_id": "CGEN"},
        {"type": "emoji", "name": "x", "unicode": "274c"},
        {"type": "text", "text": "b ", "style": {"bold": True}},
        {"type": "user", "user_id": "UBEN", "style": {"bold": True}},
    ]


def test_lists_and_quotes_are_elements_of_their_own() -> None:
    kinds = [element["type"] for element in typed("x\n- a\n- b\n> q\nend", NAMES).elements]

    assert kinds == ["rich_text_section", "rich_text_list", "rich_text_quote", "rich_text_section"]


def test_what_an_app_posts_comes_back_escaped_with_its_markup_intact() -> None:
    posted = "a & b <@U123> <x> &lt; http://x.io, <http://a.b|l> <!date^1^{date}|then> 👍"

    assert kept_text(posted) == (
        "a &amp; b <@U123> &lt;x&gt; &lt; <http://x.io>, <http://a.b|l> <!date^1^{date}|then> :+1:"
    )


def test_no_address_becomes_a_link_by_itself_where_that_is_asked_for() -> None:
    text = {"type": "mrkdwn", "text": "`https://x.io/a?b&amp;c` <https://a.b|l> & <@U123>", "verbatim": True}

    [section] = kept_blocks([{"type": "section", "text": text}])

    assert section["text"]["text"] == "`https://x.io/a?b&amp;c` <https://a.b|l> &amp; <@U123>"


def test_an_apps_text_without_blocks_gets_a_rich_text_block() -> None:
    [block] = text_blocks("hi <@U123> `c & d`")

    assert block["elements"][0]["elements"] == [
        {"type": "text", "text": "hi "},
        {"type": "user", "user_id": "U123"},
        {"type": "text", "text": " "},
        {"type": "text", "text": "c & d", "style": {"code": True}},
    ]
