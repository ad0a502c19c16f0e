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


# Rows of Unicode's confusables.txt, and what common fonts draw alike, for the marks that mean something to a shell.
SYNTAX_ALIKE = {
    "'": "\ua78c\ua78b\u05d9\u144a\u16cc\u07f4\u02bc\u02b9\u0384\u1fbf\u2018\u2032\u00b4",
    '"': "\u05f2\u02ba\u02ee\u201c\u2033\u05f4",
    "|": "\u05d5\u05df\u0627\u0661\u06f1\u07ca\u16c1\u2d4f\ua4f2\u01c0\u2223\u2502\u23d0\u23b8"
    "\u3163\u1175\U00010309\U0001028a",
    "/": "\u2cc6\u2044\u2215\u2571\u27cb\u29f8\u1735\u30ce\u4e3f\u31d3\u2f03\u3033",
    "\\": "\u2216\u27cd\u29f5\u2572\u4e36\u31d4\u2f02",
    "-": "\u2010\u2013\u2212\u02d7\u2cba\u30fc\u4e00\u3161\u1173\u2500\u0640",
    ";:": "\u037e\u061b\u0589\u05c3\ua4fd\u02d0\ua789\u0903",
    "<>": "\u02c2\u02c3\u1438\u1433\u16b2\u276e\u2039\u3111",
    "&*=.,~": "\ua778\u066d\u204e\u2217\u1400\u2e40\ua4ff\u0660\u06f0\ua4f8\ua4f9\u060d\u02dc\u223c\u30cb",
    "!": "\u01c3\u2d51",
}


@pytest.mark.parametrize("char", [char for chars in SYNTAX_ALIKE.values() for char in chars])
def test_what_is_drawn_as_the_syntax_of_a_shell_is_shown_whatever_it_is(char: str) -> None:
    assert char in suspects(f"git commit -m {char}fix; touch x {char}", strict=True)
    assert char in suspects(f"git commit -m {char}{char}fix; touch x {char}{char}", strict=True)
    assert char in suspects(f"echo {char} | cat", strict=True)


@pytest.mark.parametrize(
    "text",
    [
        "git commit -m 'Привет и спасибо, в 5 μs'",
        "git commit -m 'שלום ילד, יום טוב ותודה'",
        "git commit -m 'السلام عليكم ٢٠١٦'",
        "git commit -m 'नमस्ते दुनिया, दुःख'",
        "git commit -m '日本語の一覧ノート、ノニ한국어 이것'",
        "git commit -m 'Grüße aus Łódź, ça va, naïve façade, Việt Nam, İstanbul, ß'",
        "git commit -m 'Ελληνικά, հայերեն, ქართული, ไทย, አማርኛ, தமிழ்'",
        "git add src/файл_test.txt 日本語abc.md",
    ],
)
def test_in_a_command_words_of_living_writing_stay_as_they_are(text: str) -> None:
    assert marked(text, strict=True).replace("<3001>", "、") == text


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


def test_of_several_faults_the_same_one_is_named_in_every_process() -> None:
    """A set of characters has another order in each; what is not seen at all comes first."""
    hidden = "\u200b\u200c\u200d\u2066\u2069"

    assert invisible(f"c\u0430t {hidden[::-1]}") == "the text holds an invisible or control character (U+200B)"
