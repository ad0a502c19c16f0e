"""A model's Markdown becomes what Slack formats, mentions nobody, and is split without breaking anything."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import limits
from bot.mrkdwn import to_messages
from tests.bot.markup import HOSTILE, MARKS, unmeant

MOST = 4_000


@pytest.mark.parametrize(
    ("markdown", "slack"),
    [
        ("**b** and *i* and ~~s~~", "*b* and _i_ and ~s~"),
        ("__b__ _i_", "*b* _i_"),
        ("**bold *and italic* too**", "*bold _and italic_ too*"),
        ("# Title\n\ntext", "*Title*\n\ntext"),
        ("## A **b** <c>", "*A b &lt;c&gt;*"),
        ("- a\n- b\n  - c", "• a\n• b\n    • c"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("> one\n> two\n\nthree", "> one\n> two\n\nthree"),
        ("`a < b`", "`a &lt; b`"),
        ("```python\nif a < b:\n    pass\n```", "```\nif a &lt; b:\n    pass\n```"),
        ("| a | b |\n|--|--|\n| 1 | <2> |", "```\na | b\n--+----\n1 | &lt;2&gt;\n```"),
        ("[docs](https://x.io/a?b=1&c=2)", "<https://x.io/a?b=1&amp;c=2|docs> (x.io)"),
        ("[https://good.io](https://evil.io/x)", "<https://evil.io/x|https://good.io> (evil.io)"),
        ("[x](https://good.io@evil.io/)", "<https://good.io@evil.io/|x> (evil.io)"),
        ("<https://x.io>", "<https://x.io>"),
        ("`<https://x.io>` and *`<@U0BEN>`*", "`&lt;https://x.io&gt;` and _`&lt;@U0BEN&gt;`_"),
        ("`` `<https://x.io>` ``", "`&lt;https://x.io&gt;`"),
        ("[two\nlines](https://x.io/a)", "<https://x.io/a|two lines> (x.io)"),
        ("[x](https://\u0430pple.com)", "<https://\u0430pple.com|x> (xn--pple-43d.com)"),
        ("[x](https://good.io\u3002evil.io)", "<https://good.io\u3002evil.io|x> (good.io.evil.io)"),
        ("![a chart](https://x.io/c.png)", "<https://x.io/c.png|a chart> (x.io)"),
        ("[a](javascript:alert(1))", "a (javascript:alert(1))"),
        ("[a](docs/a.md)", "a (docs/a.md)"),
        ("**https://x.io** and (https://x.io/_a_)", "*https://x.io* and (https://x.io/_a_)"),
        ("one\ntwo", "one\ntwo"),
        ("one\n\ntwo", "one\n\ntwo"),
        ("a\n\n---\n\nb", "a\n\n───\n\nb"),
    ],
)
def test_markdown_becomes_mrkdwn(markdown: str, slack: str):
    assert to_messages(markdown) == [slack]


@pytest.mark.parametrize(
    "text",
    [
        "write to user@example.com",
        "install @pkg/x_y and @scope/name",
        "see https://x.io/_a_/*b*/__c__?q=a_b_c",
        "http://x.io/a*b*c",
        "snake_case_name and 2*3*4",
        "C:\\path and 100% ~ 5",
        "@here @channel",
    ],
)
def test_addresses_names_and_numbers_stay_as_they_are(text: str):
    assert to_messages(text) == [text]


@pytest.mark.parametrize(
    "token", ["<!channel>", "<!here|x>", "<@U0ANN>", "<#C0X>", "<https://evil.io|Approve>", "&lt;!channel>"]
)
@pytest.mark.parametrize(
    "around", ["{}", "**{}**", "`{}`", "```\n{}\n```", "- {}", "# {}", "| {} |\n|--|\n| {} |", "[{}](https://x.io)"]
)
def test_nothing_the_model_writes_can_mention_or_link_by_itself(token: str, around: str):
    text = "\n".join(to_messages(around.replace("{}", token)))

    assert not re.search(r"<[!@#]", text)
    assert "<https://evil.io" not in text


def test_characters_that_reorder_text_are_dropped():
    assert to_messages("[gpj.exe\u202e](https://x.io)") == ["<https://x.io|gpj.exe> (x.io)"]


@pytest.mark.parametrize(
    ("markdown", "secret"),
    [
        ("**Password:** hunter2xyz9", "hunter2xyz9"),
        ("the **Password**: `hunter2xyz9` and more", "hunter2xyz9"),
        ("`token`: abcdef123456", "abcdef123456"),
        ("# Password: **hunter2xyz9**", "hunter2xyz9"),
        ("- **api_key** = _abcdef123456_", "abcdef123456"),
        ("xo**xb**-123456789012abc", "123456789012abc"),
        ("xoxb\\-123456789012abc", "123456789012abc"),
        ("xoxb&#45;123456789012abc", "123456789012abc"),
        ("`xoxb-`123456789012abc", "123456789012abc"),
        ("xo\u00adxb-123456789012abc", "123456789012abc"),
        ("xo\u200dxb-123456789012abc", "123456789012abc"),
        ("xoxb\u2060-123456789012abc", "123456789012abc"),
        ("```\nxo\u200dxb-123456789012abc\n```", "123456789012abc"),
        ("| name | value |\n|--|--|\n| password | hunter2xyz9 |", "hunter2xyz9"),
        ("| **password** | `hunter2xyz9` |\n|--|--|\n| a | b |", "hunter2xyz9"),
        ("| user | password |\n|--|--|\n| ann | hunter2xyz9 |", "hunter2xyz9"),
        ("and | password | hunter2xyz9 | too", "hunter2xyz9"),
        ("```\n| password | hunter2xyz9 |\n```", "hunter2xyz9"),
        ("Password:\nhunter2xyz9", "hunter2xyz9"),
        ("**Password:**\n\n`hunter2xyz9`", "hunter2xyz9"),
        ("The password:\n```\nhunter2xyz9\n```", "hunter2xyz9"),
    ],
)
def test_a_secret_is_masked_as_people_will_read_it_whatever_marks_stand_in_it(markdown: str, secret: str):
    said = "".join(to_messages(markdown))

    assert secret not in said
    assert "•••" in said


@pytest.mark.parametrize(
    "markdown",
    [
        "| Token | Count |\n|--|--|\n| the | 12 |",
        "| token | string | the token to use |\n|--|--|--|\n| secret | required | yes, please |",
        "cat token | base64 | sh",
        "The **token** is *new*: see `token.py`",
        "The password:\n\nis required, see the docs.",
    ],
)
def test_what_only_speaks_of_secrets_stays(markdown: str):
    assert "•••" not in "".join(to_messages(markdown))


def test_secrets_are_masked():
    assert "1234567890ABCDEF" not in "".join(to_messages("the token is xoxb-1234567890ABCDEF"))


def test_three_backticks_inside_a_fence_do_not_close_it():
    [text] = to_messages("````\n```\n<!channel>\n```\n````")

    assert text.count("```") == 2


@pytest.mark.parametrize("text", ["", "  \n", "\u200b"])
def test_no_text_is_no_message(text: str):
    assert to_messages(text) == []


def test_text_that_markdown_makes_nothing_of_is_shown_as_it_is():
    assert to_messages("```") == ["```"]
    assert "x" in "".join(to_messages("> " * 200 + "x"))


def test_a_prefix_of_ours_stands_in_front_of_the_first_message_only():
    first, *others = to_messages("word " * 3_000, prefix="<@U0ANN> ")

    assert first.startswith("<@U0ANN> word")
    assert others
    assert not any("<@" in text for text in others)


def test_a_fence_is_closed_and_opened_again_at_the_boundary():
    code = "\n".join(f"line {n} <&>" for n in range(1_000))

    messages = to_messages(f"before\n```\n{code}\n```\nafter")

    assert len(messages) > 3
    assert all(text.count("```") % 2 == 0 for text in messages)
    inside = "\n".join(line for text in messages for line in text.split("\n") if line.startswith("line"))
    assert inside == code.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@pytest.mark.parametrize(
    "markdown",
    [f"[{'a' * 5_000}](https://x.io)", f"<https://x.io/?{'&' * 1_900}>", f"[x](https://x.io/?{'&' * 1_900})"],
)
def test_a_link_that_no_message_could_hold_is_text(markdown: str):
    messages = to_messages(markdown)

    assert all(len(text) <= limits.TEXT and not unmeant(text) for text in messages)
    assert "https://x.io" in "".join(messages)


def test_a_paragraph_of_hundreds_of_brackets_has_no_links_and_others_keep_theirs():
    told = "".join(to_messages("[a](https://x.io) " * 501 + "\n\n[b](https://x.io)"))

    assert told.count("[a](https://x.io)") == 501
    assert told.endswith("<https://x.io|b> (x.io)")


def test_an_atom_that_is_longer_than_a_message_ends():
    assert to_messages("[a](https://x.io/b)", most=10) == ["<https://x.io/b|a> (x.io)"]


def test_a_link_and_the_host_behind_it_stay_together():
    messages = to_messages("[a](https://x.io/b)" * 500)

    assert len(messages) > 1
    assert not [wrong for text in messages for wrong in unmeant(text, links=True)]


MARKDOWN = (
    *("[", "](https://evil.io/b)", "](<https://evil.io/c d>)", "](", ")", "!", "- ", "> ", "# ", "    "),
    *("|a|b|\n|-|-|\n", "U0ANN", "U0BEN", "&lt;@U0ANN&gt;", "password=", "xoxb-12345678"),
)


@given(
    st.lists(st.sampled_from((*HOSTILE, *MARKS, *MARKDOWN)) | st.text(max_size=3), max_size=16).map("".join),
    st.sampled_from([limits.TEXT, 250]),
)
def test_whatever_it_writes_nothing_is_a_link_or_a_mention_that_nobody_meant(markdown: str, most: int):
    for text in to_messages(markdown, people={"U0ANN"}, most=most):
        assert unmeant(text, {"U0ANN"}, links=True) == []


def test_nothing_is_split_inside_an_entity_or_a_link():
    messages = to_messages("&" * 3_000 + " " + "[a](https://x.io/b) " * 300)

    assert len(messages) > 1
    assert all(re.sub(r"&amp;|<https://x\.io/b\|a>", "", text).count("&") == 0 for text in messages)
    assert all(re.sub(r"<https://x\.io/b\|a>", "", text).count("<") == 0 for text in messages)


def test_sixty_headings_are_several_messages_of_text():
    messages = to_messages("\n\n".join(f"# Heading {n}\n\n{'text ' * 40}" for n in range(60)))

    assert len(messages) > 1


@given(
    st.lists(
        st.text(max_size=60)
        | st.sampled_from(
            [
                "**",
                "_",
                "`",
                "```\n",
                "\n",
                "- ",
                "> ",
                "|a|b|\n|-|-|\n",
                "<!channel>",
                "&",
                "[x](",
                "https://x.io/",
                ")",
                "😀" * 50,
            ]
        )
        | st.text("&<>`*_~[]()!|😀 \n", max_size=2_000),
        max_size=12,
    ).map("".join)
)
def test_whatever_it_writes_every_message_is_short_and_escaped(markdown: str):
    most = limits.LINK + 300
    for text in to_messages(markdown, prefix="<@U0ANN> ", most=most):
        assert len(text.encode("utf-16-le", "surrogatepass")) // 2 <= most
        ours = text.removeprefix("<@U0ANN> ")
        without_links = re.sub(r"<https?://[^<>|\s]+(\|[^<>]+)?>", "", ours)
        assert "<" not in without_links
        assert not re.search(r"&(?!amp;|lt;|gt;)", ours)
        assert text.strip()
