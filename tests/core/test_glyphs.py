"""What is not what it looks like: found by its kind, in any text, and never let through by an allow rule."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.glyphs import double, replaced, suspects, unseen
from harness_core.permissions.paths import World
from harness_core.permissions.readonly import classify
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.rules import check_rules
from harness_core.permissions.text import invisible
from harness_core.types import Args, canonical

# Unicode's Default_Ignorable_Code_Point, all of it.
IGNORABLE = (
    "AD-AD 34F-34F 61C-61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164-3164 FE00-FE0F FEFF-FEFF "
    "FFA0-FFA0 FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)


def marked(text: str, *, strict: bool = False) -> str:
    return replaced(text, lambda char: f"<{ord(char):X}>", strict=strict)


def test_every_code_point_that_unicode_lets_renderers_ignore_is_unseen() -> None:
    for span in IGNORABLE.split():
        first, last = (int(end, 16) for end in span.split("-"))
        assert [hex(code) for code in range(first, last + 1) if not unseen(chr(code))] == []


@given(st.characters(categories=("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")))
def test_every_control_format_and_blank_is_unseen_but_those_that_are_typed(char: str) -> None:
    assert unseen(char) == (char != " ")


@pytest.mark.parametrize("code", [0x1D159, 0x16FE4, 0xFFFC, 0x2800, 0x3164, 0x115F, 0x34F, 0x303F, 0x2D7F, 0x17B4])
def test_what_is_drawn_as_a_blank_is_unseen_though_it_is_a_letter_a_mark_or_a_symbol(code: int) -> None:
    assert unicodedata.category(chr(code))[0] in "LMSP"
    assert marked(f"a{chr(code)}b") == f"a<{code:X}>b"


@pytest.mark.parametrize("char", ["\u037e", "\u1fef", "\u212a", "ｒ", "；", "𝐫", "𝚖", "ⅿ", "․", "﹔", "ﹳ"])
def test_what_comes_to_one_ascii_character_is_its_double(char: str) -> None:
    assert double(char) == (char != "ﹳ")
    assert bool(suspects(f"a{char}b")) == (char != "ﹳ")


@pytest.mark.parametrize("text", ["x²", "½", "№ 5", "™", "①", "ª", "…", "ﬁn"])
def test_what_only_means_the_same_and_looks_different_is_none(text: str) -> None:
    assert marked(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cаt /etc/passwd", "c<430>t /etc/passwd"),
        ("сору a b", "<441><43E><440><443> a b"),
        ("Αdmin", "<391>dmin"),
        ("https://ɡithub.com", "https://<261>ithub.com"),
        ("rm\u0336 x", "rm<336> x"),
        ("a/\u0338b", "a/<338>b"),
        ("a" + "\u0301" * 9, "a" + "<301>" * 9),
        ("\u0301a", "<301>a"),
        ("ｒｍ x", "<FF52><FF4D> x"),
    ],
)
def test_a_letter_that_stands_for_another_is_shown_where_it_does(text: str, shown: str) -> None:
    assert marked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Съешь ещё этих мягких французских булок, да выпей же чаю с сахаром",
        "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία και Δt, αβ-test, μs",
        "src/файл_test.txt",
        "“Quotes” – and dashes — it’s prose…",
        "中文，全角标点。（日本語）ＡＢＣも！",
        "한국어 텍스트, עברית, العربيّة, हिन्दी में कों, ภาษาไทยน้ำ, Tiếng Việt, kapı, żółć",
        "e\u0301 déjà vu",
        "😀 🇩🇪 ✓ → × ÷ ≤",
    ],
)
def test_writing_of_every_kind_stays_as_it_is(text: str) -> None:
    assert marked(text) == text


@pytest.mark.parametrize("char", list("‐‑–—−⁃‘’“”′″‹›«»∕⁄∶∣ǃ꞉ˋ´ˈ‚‛･٪⁎∗˗❘⹀؛"))
def test_in_what_a_program_reads_marks_that_look_like_its_syntax_are_shown_too(char: str) -> None:
    assert suspects(f"a{char}b", strict=True) == {char}


@given(st.text(), st.booleans())
def test_no_text_breaks_it_and_all_that_is_unseen_is_shown(text: str, strict: bool) -> None:
    shown = marked(text, strict=strict)

    assert not any(unseen(char) for char in shown.replace("\n", "").replace("\t", ""))
    assert (shown == text) == (not suspects(text, strict=strict))


# -- and rules ---------------------------------------------------------------------------------------------------------

ODD = st.characters(categories=("Cf", "Cn", "Co", "Zl", "Zp"), exclude_characters="\x7f") | st.sampled_from(
    "\x00\x1b\r\x7f\u00a0\u3000\u1160\u2800\ufe0f\U0001d159\U00016fe4\ufffc\uff1b\u037e\u212a𝐫ⅿ"
)
WHERE = st.integers(0, 40)


def everything(tool: str, args: Args, *patterns: str) -> tuple[PermissionRule, ...]:
    """Every allow rule that could mean this call."""
    rules = [PermissionRule.allow(tool, pattern) for pattern in patterns]
    return (PermissionRule.exactly(tool, args), *rules)


@given(ODD, WHERE, st.sampled_from(["npm run test a", "git log --oneline", "ls -la src", "cat README.md"]))
def test_no_allow_rule_matches_a_command_that_is_disguised(odd: str, where: int, command: str) -> None:
    text = command[: where % (len(command) + 1)] + odd + command[where % (len(command) + 1) :]
    rules = (
        *everything("bash", {"command": text}, text, "npm run *", "git *", "ls *", "cat *"),
        PermissionRule.allow("bash"),
        PermissionRule.allow("*"),
    )

    assert classify(text, World("/ws")).effect == "ask"
    assert check_rules(rules, "bash", {"command": text}, World("/ws", paths=())).effect == "ask"


@given(ODD, WHERE)
def test_no_allow_rule_matches_a_path_an_address_or_a_name_that_is_disguised(odd: str, where: int) -> None:
    path = "src/main.py"
    path = path[: where % (len(path) + 1)] + odd + path[where % (len(path) + 1) :]
    args = {"path": path, "content": "x"}
    world = World("/ws", paths=(f"/ws/{path}",), addresses=("93.184.216.34",))
    assert check_rules(everything("write", args, path, "**", "src/**"), "write", args, world).effect == "ask"

    args = {"url": f"https://example.com/{path}"}
    rules = everything("webfetch", args, args["url"], "https://example.com/*", "example.com")
    assert check_rules(rules, "webfetch", args, world).effect == "ask"

    named = f"deploy{odd}"
    assert check_rules((PermissionRule.allow("deploy*"), PermissionRule.allow("*")), named, {}, world).effect == "ask"


@given(ODD, WHERE)
def test_no_rule_for_certain_arguments_matches_ones_that_are_disguised(odd: str, where: int) -> None:
    args = {"team": "core"[: where % 5] + odd + "core"[where % 5 :]}
    rules = (*everything("page", args, canonical(args)), PermissionRule.allow("page", canonical({"team": "core"})))

    assert check_rules(rules, "page", args, World("/ws")).effect == "ask"


@pytest.mark.parametrize("text", ["git commit -m 'Привет'", "cat 日本語.txt", "echo déjà"])
def test_other_writing_is_no_disguise(text: str) -> None:
    assert invisible(text) == ""


@pytest.mark.parametrize("text", ["cat pаsswd", "ls ѕrc", "echo ɡo"])
def test_a_word_with_letters_of_two_alphabets_that_look_alike_is(text: str) -> None:
    assert "looks like another" in invisible(text)
    assert classify(text, World("/ws")).effect == "ask"
