"""What is shown of a call: all of it, or marked as cut; secrets masked, the invisible visible."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import limits
from bot.ids import TaskRef, block_id, card_named, metadata, metadata_of, ref_of, thread_of, typed_ref
from bot.shown import Shown, cut, shown_args, shown_call, shown_change, shown_gist, visible
from bot.view import Card, may_always
from harness_core.hitl import HITLTask, fingerprint

ARGS = {"command": "git push"}


def task(args: dict[str, Any] | None = None, **fields: Any) -> HITLTask:
    args = ARGS if args is None else args
    given_fields = {"comment": "it writes", "run_id": "r1", "may_always": True, "requested_by": "U0ANN", **fields}
    tool = given_fields.pop("tool_name", "bash")
    return HITLTask("r1-1-1", tool, args, fingerprint=fingerprint("r1", "r1-1-1", 0, tool, {}), **given_fields)


def card(args: dict[str, Any] | None = None, **fields: Any) -> Card:
    return Card("slack:T0HOME:C0ROOM:1700000000.000100", task(args, **fields))


# -- what is shown of a call -------------------------------------------------------------------------------------------


def test_a_command_is_shown_as_it_is():
    assert shown_call(task({"command": "ls -la | wc -l"})) == Shown("ls -la | wc -l")


def test_other_arguments_are_shown_key_by_key():
    shown = shown_args({"path": "a.md", "mode": 420, "force": True, "tags": ["x"], "note": "true", "empty": ""})

    assert shown.text == 'path: a.md\nmode: 420\nforce: true\ntags: ["x"]\nnote: "true"\nempty: ""'
    assert shown_args({}).text == "(no arguments)"


def test_a_value_cannot_pose_as_another_key():
    text = shown_args({"content": "x\npath: /etc/passwd", "path": "a.md", "a\nb": "c"}).text

    assert text == 'content: \n    x\n    path: /etc/passwd\npath: a.md\n"a\\nb": c'


def test_an_argument_is_left_out_only_where_the_tool_says_that_the_preview_tells_it():
    diff = "--- a.md\n+++ a.md\n+force: true"
    args = {"path": "a.md", "content": "force: true\n", "force": True}

    assert shown_call(task(args, preview=diff, covers=("path", "content"))).text == f"force: true\n{diff}"
    assert shown_call(task(args, preview=diff, covers=tuple(args))).text == diff
    assert shown_call(task(args, preview=diff)).text == f"{shown_args(args).text}\n{diff}"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\u200bb\u2066c\ufeff", "a⟨U+200B⟩b⟨U+2066⟩c⟨U+FEFF⟩"),
        ("a\u00a0b\u3000c", "a⟨U+00A0⟩b⟨U+3000⟩c"),
        ("a\rb\x1b[2Jc\x00", "a⟨U+000D⟩b⟨U+001B⟩[2Jc⟨U+0000⟩"),
        ("\ud800 \U000e0041 \u115f \u2800", "⟨U+D800⟩ ⟨U+E0041⟩ ⟨U+115F⟩ ⟨U+2800⟩"),
        ("a\U0001d159b\U00016fe4c\ufffcd", "a⟨U+1D159⟩b⟨U+16FE4⟩c⟨U+FFFC⟩d"),
        ("pаypal ｒｍ", "p⟨U+0430⟩ypal ⟨U+FF52⟩⟨U+FF4D⟩"),
        ("ls" + "\t" * 9 + "; rm -rf /", "ls⟨9 blanks⟩; rm -rf /"),
        ("ls" + " " * 400 + "; rm -rf /", "ls⟨400 spaces⟩; rm -rf /"),
        ("ls" + "\n" * 50 + "rm", "ls\n⟨49 empty lines⟩\nrm"),
        ("⟨400 spaces⟩", "⟨U+27E8⟩400 spaces⟨U+27E9⟩"),
        ("def f():\n\treturn 1\n\n\n        deep", "def f():\n\treturn 1\n\n\n        deep"),
        ("déjà vu 日本語 ❤️ 😀", "déjà vu 日本語 ❤️ 😀"),
    ],
)
def test_what_hides_is_made_visible(text: str, seen: str):
    assert visible(text) == seen


def test_in_what_a_program_reads_marks_that_look_like_its_syntax_are_shown_and_in_prose_they_are_at_home():
    prose = "“It’s done” – at last…"
    assert shown_args({"command": "rm –rf ‘x’"}).text == "rm ⟨U+2013⟩rf ⟨U+2018⟩x⟨U+2019⟩"
    assert shown_args({"url": "https://a.io∕b", "note": prose}).text == f"url: https://a.io⟨U+2215⟩b\nnote: {prose}"
    assert shown_args({"note": prose}).exact
    assert not shown_args({"path": "a‐b"}).exact
    assert shown_args({"command": "echo 'Привет 日本語'"}).exact


def test_disguise_and_secrets_are_noticed():
    assert shown_args({"command": "ls \u202e"}).disguised
    assert shown_args({"command": "curl -H 'Authorization: Bearer abcdefghij0123456789'"}).masked
    assert shown_args({"url": "https://x.io", "api_key": "hunter2hunter2"}).masked
    assert "hunter2" not in shown_args({"url": "https://x.io", "api_key": "hunter2hunter2"}).text
    assert shown_args(ARGS).exact


@pytest.mark.parametrize("secret_first", [True, False])
def test_a_change_says_what_was_masked_or_disguised_on_either_side_of_it(secret_first: bool):
    odd, plain = {"command": "echo xoxb-123456-abcdef \u202e"}, {"command": "echo hello"}
    shown = shown_change(*((odd, plain) if secret_first else (plain, odd)))

    assert (shown.masked, shown.disguised) == (True, True)
    assert "abcdef" not in shown.text


def test_an_edit_is_shown_as_what_it_changed():
    shown = shown_change({"command": "rm -rf /tmp/x"}, {"command": "rm -r /tmp/x"})

    assert shown.text == "- rm -rf /tmp/x\n+ rm -r /tmp/x"


def test_of_a_long_edited_text_the_changed_stretches_are_shown():
    lines = [f"line {n}" for n in range(30)]
    shown = shown_change({"command": "\n".join(lines)}, {"command": "\n".join(["first", *lines[1:29], "last"])})

    assert shown.text.startswith("- line 0\n+ first\n  line 1\n")
    assert shown.text.endswith("  line 28\n- line 29\n+ last")
    assert "\n⋯\n" in shown.text
    assert "line 15" not in shown.text


@pytest.mark.parametrize(
    ("preview", "gist"),
    [
        ("--- a/plan.md\n+++ b/plan.md\n@@ -1,2 +1,2 @@\n-one\n-two\n+three\n", "plan.md, +1 −2"),
        ("--- /dev/null\n+++ b/new.md\n@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n", "new.md, +1 −0"),
        (
            "--- a/b\n+++ b/b\n@@ -1 +1 @@\n+x\n[… 9 more characters of this diff are not shown …]\n",
            "b, +1 −0 and more",
        ),
        ("--- a/b\u202ec\n+++ b/b\u202ec\n@@ -1 +1 @@\n-x\n", "b⟨U+202E⟩c, +0 −1"),
        ("what it would do\nline by line", "path: plan.md what it would do line by line"),
    ],
)
def test_a_diff_is_told_in_one_line_as_its_file_and_its_size(preview: str, gist: str):
    task = HITLTask("c1", "edit", {"path": "plan.md"}, "", fingerprint="f" * 64, preview=preview)

    assert shown_gist(task, None, 300) == gist


def test_what_was_edited_is_told_in_one_line_as_it_was_approved():
    task = HITLTask("c1", "bash", {"command": "ls"}, "", fingerprint="f" * 64)

    assert shown_gist(task, {"command": "ls\n-l"}, 300) == "ls -l"


# -- cutting -----------------------------------------------------------------------------------------------------------


def test_a_cut_keeps_beginning_and_end_and_says_how_much_is_missing():
    whole = Shown("start " + "x" * 10_000 + " end")

    cut_text = cut(whole, heaviest=9_000)

    assert cut_text.text.startswith("start xxx")
    assert cut_text.text.endswith("xxx end")
    assert f"⟨{cut_text.left_out:,} characters left out⟩" in cut_text.text
    assert cut_text.left_out == len(whole.text) - (
        len(cut_text.text) - len(f"\n⟨{cut_text.left_out:,} characters left out⟩\n")
    )


@given(
    st.text(st.sampled_from('&<>`"\\\n aé日😀\ud800')) | st.integers(0, 200).map("&<\n".__mul__) | st.text(),
    st.integers(200, 2_500),
    st.integers(4, 25),
    st.integers(400, 4_400),
)
def test_a_cut_text_keeps_within_every_limit(text: str, chars: int, lines: int, heaviest: int):
    whole = Shown(visible(text))

    found = cut(whole, chars=chars, lines=lines, heaviest=heaviest)

    assert len(found.text) <= chars
    assert found.text.count("\n") < lines
    assert limits.weight(found.text) - 2 <= heaviest
    assert found.left_out or found == whole


@given(st.text('&<>"\\\n ab日😀é'), st.integers(1, 40), st.integers(20, 200))
def test_clipping_and_parting_keep_their_limits(text: str, most: int, heaviest: int):
    clipped, escaped = limits.clip(text, most, heaviest), limits.clip_escaped(text, most)
    parts = limits.pieces(text, heaviest)

    assert len(clipped.encode("utf-16-le")) // 2 <= most
    assert limits.weight(clipped) - 2 <= heaviest
    assert len(escaped.encode("utf-16-le")) // 2 <= most
    assert escaped.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "").count("&") == 0
    assert "".join(parts) == text
    assert all(limits.weight(part) - 2 <= heaviest for part in parts)


def test_a_text_is_parted_at_a_lines_end_where_one_is_near_and_else_where_it_must():
    assert limits.pieces("one line\nanother\nend", 14) == ["one line\n", "another\nend"]
    assert limits.pieces("a\n" + "b" * 30, 22) == ["a\n" + "b" * 19, "b" * 11]


@given(st.text(st.characters(exclude_categories=[])))
def test_weight_is_the_sum_of_its_characters(text: str):
    assert limits.weight(text) - 2 == sum(limits.weights(text))


# -- what may be offered -----------------------------------------------------------------------------------------------


def test_always_allow_is_offered_where_all_can_be_read():
    assert may_always(card())
    assert may_always(card({"path": "a.md", "content": "two\nlines"}, tool_name="write"))


@pytest.mark.parametrize(
    "without",
    [
        card(may_always=False),
        card(kind="unknown"),
        card({"command": "ls \u202e"}),
        card({"command": "TOKEN=xoxb-1234567890ABCDEF deploy"}),
        card({"password": "hunter2hunter2"}, tool_name="login"),
        card({"command": "x" * 3_000}),
        card({"command": "\n".join("x" * 30)}),
        replace(card(), features=frozenset()),
        card({"path": "a.md", "content": "x\u200b"}, tool_name="write", preview="+x"),
        card({"path": "a.md", "content": "x"}, tool_name="write", preview="+x\u200b"),
    ],
)
def test_always_allow_is_not_offered_where_something_is_cut_masked_or_disguised(without: Card):
    assert not may_always(without)


# -- names that go out and come back -----------------------------------------------------------------------------------


def test_names_come_back_as_they_went_out():
    shown = card()

    assert ref_of(shown.ref.value()) == shown.ref
    assert card_named(shown.block_id) == (shown.task.fingerprint[:16], 0)
    assert card_named(block_id(shown.task.fingerprint, 7, more=True)) == (shown.task.fingerprint[:16], 7)
    thread, ref = metadata_of(metadata(shown.session_id, shown.ref)) or (None, None)
    assert (thread, ref) == (thread_of(shown.session_id), shown.ref)
    assert typed_ref(f"#{shown.task.short_id}") == TaskRef(shown.task.short_id)


@pytest.mark.parametrize(
    "name", ["", "task:3f9a1c:1", "task:3f9a1c0000000000:x", "card:3f9a1c0000000000:1", "task:3f9a1c0000000000:1\n"]
)
def test_a_block_that_is_not_ours_names_no_card(name: str):
    assert card_named(name) is None


@pytest.mark.parametrize("session", ["", "config:workspace", "slack:T0:C0", "slack:T0:C0:1.2/call", "slack:T0:C0:x"])
def test_a_session_that_is_not_slacks_has_no_thread(session: str):
    assert thread_of(session) is None
