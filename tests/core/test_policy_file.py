"""What a policy file may say, and that nothing in it is silently lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.errors import ConfigError
from harness_core.permissions.paths import World
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.rules import check_rules
from harness_core.permissions.sound import fault_of
from harness_core.permissions.url_rules import denies
from harness_core.policy_file import PolicyFile, StandingRule, parse_policy

CASES = Path(__file__).resolve().parents[1] / "cases"

WHOLE = """
# Reviewed like code.
[[rule]]
effect = "deny"
tool = "bash"
pattern = "git push *"
why = "releases are cut by hand"

[[rule]]
effect = "allow"
tool = "write"
pattern = "docs/**"
channel = "C024BE91L"
by = "ada"
until = 2026-03-01T18:00:00+01:00

[guards]
steps = 30
"""


def wrong_in(text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_policy(text)
    return str(raised.value)


def rule(effect: str, tool: str, pattern: str | None = None) -> str:
    quoted = "" if pattern is None else f"\npattern = {json.dumps(pattern)}"
    return f"[[rule]]\neffect = {json.dumps(effect)}\ntool = {json.dumps(tool)}{quoted}\n"


def test_a_file_says_its_rules_with_where_and_until_when_they_hold() -> None:
    policy = parse_policy(WHOLE)

    assert policy.rules == (
        StandingRule(PermissionRule.deny("bash", "git push *"), why="releases are cut by hand"),
        StandingRule(PermissionRule.allow("write", "docs/**"), "C024BE91L", "ada", until=1_772_384_400.0),
    )
    assert policy.guards == {"steps": 30}


def test_a_rule_that_asks_may_want_several_people() -> None:
    policy = parse_policy('[[rule]]\neffect = "ask"\ntool = "bash"\npattern = "git push *"\npeople = 2\n')

    assert [one.rule for one in policy.rules] == [PermissionRule.ask("bash", "git push *", people=2)]


@pytest.mark.parametrize(
    ("effect", "people"), [("ask", "0"), ("ask", "11"), ("ask", '"2"'), ("ask", "true"), ("deny", "2")]
)
def test_a_number_of_people_that_no_rule_can_want_is_an_error(effect: str, people: str) -> None:
    assert "`people`: " in wrong_in(f'[[rule]]\neffect = "{effect}"\ntool = "bash"\npeople = {people}\n')


def test_an_empty_file_is_a_policy_without_rules() -> None:
    assert parse_policy("") == PolicyFile()


def test_rules_hold_in_their_channel_and_until_they_expire() -> None:
    policy = parse_policy(WHOLE)
    deny, allow = (one.rule for one in policy.rules)

    assert policy.rules_in("C024BE91L", now=1_772_384_399.0) == (deny, allow)
    assert policy.rules_in("C024BE91L", now=1_772_384_400.0) == (deny,)
    assert policy.rules_in("COTHER", now=0) == policy.rules_in("", now=0) == (deny,)


def test_one_error_names_everything_that_is_wrong_with_rule_and_line() -> None:
    said = wrong_in(
        'title = "x"\n'
        '[[rule]]\nefect = "deny"\ntool = "bash"\n'
        '[[rule]]\neffect = "forbid"\ntool = 3\n'
        '[[rule]]\neffect = "deny"\ntool = "bash"\nuntil = 2026-03-01\nchannel = ""\n'
    )

    assert said.startswith("harness.toml needs correcting:")
    assert "- `title` is not known here" in said
    assert "- rule 1, line 2: `efect` is not known" in said
    assert "- rule 1, line 2: `effect` is missing" in said
    assert "- rule 2, line 5: `tool` must be a text in quotes" in said
    assert "- rule 2, line 5: `effect` must be `allow`, `ask` or `deny`, not `forbid`" in said
    assert "- rule 3, line 8: `until` must be a date, a time and an offset" in said
    assert "- rule 3, line 8: `channel` is empty" in said


@pytest.mark.parametrize(
    "text",
    [
        "[[rules]]\n" + 'effect = "deny"\ntool = "bash"\n',
        "[rule]\n" + 'effect = "deny"\ntool = "bash"\n',
        'rule = "deny bash"',
        "rule = [3]",
        "guards = 3",
        "[[rule]\n",
        "a = " + "[" * 5000,
        "a = " + "9" * 5000,
        rule("deny", "bash") + 'pattern = "x"\npattern = "y"\n',
        rule("deny", "bash") + "until = 2026-03-01T18:00:00\n",
        rule("deny", "bash") + "until = 9999-12-31T23:00:00-02:00\n",
        rule("deny", "bash") + "until = 0001-01-01T00:00:00+02:00\n",
        rule("deny", "bash") + 'until = "2026-03-01T18:00:00Z"\n',
    ],
)
def test_what_is_not_understood_is_an_error(text: str) -> None:
    assert "harness.toml" in wrong_in(text)


def test_a_heading_in_a_text_does_not_mislead_the_line_numbers() -> None:
    said = wrong_in('[[rule]]\neffect = "no"\ntool = "bash"\nwhy = """\n[[rule]]\n"""\n')

    assert "- rule 1: `effect`" in said


@pytest.mark.parametrize(
    ("effect", "tool", "pattern", "why"),
    [
        ("allow", "bash", "*", "names its program"),
        ("allow", "bash", "*sh -c x", "names its program"),
        ("allow", "bash", "CI=1 npm *", "set in front"),
        ("allow", "bash", "npm test && npm *", "several commands"),
        ("allow", "bash", "npm test > *", "redirect"),
        ("allow", "bash", "echo 'a", "no command that can be read"),
        ("allow", "bash", "echo 'a *", "quote is not closed"),
        ("allow", "bash", "ls\u200b", "invisible"),
        ("allow", "Bash", None, "called bash"),
        ("allow", "write", "src/", "/\\*\\*"),
        ("allow", "write", "a/../b*", r"\.\. beside"),
        ("allow", "write", ".git/**", "without wildcards"),
        ("allow", "write", "~ada/x", "user's name"),
        ("allow", "webfetch", "*.com", "two labels"),
        ("allow", "webfetch", "docs.*.com", "write a host"),
        ("allow", "webfetch", "localhost", "needs its scheme"),
        ("allow", "webfetch", "https://example.com*", "write a host"),
        ("allow", "webfetch", "https://example.com/a*", "at the end alone"),
        ("allow", "refund", "A1*", "JSON"),
        ("allow", "refund", '["A1"]', "JSON"),
        ("deny", "bash", "", "empty"),
        ("deny", "bash", "git push; rm *", "several commands"),
        ("deny", "bash", "rm 'a", "quote is not closed"),
        ("deny", "bash", '"rm *"', "no name of a program"),
        ("ask", "bash", "$ rm *", "no name of a program"),
        ("deny", "bash", "rm:*", "no name of a program"),
        ("deny", "bash", "^rm .*", "no name of a program"),
        ("deny", "bash", "rm(*)", "no name of a program"),
        ("deny", "bash", "! rm *", "no name of a program"),
        ("ask", "bash", "{ rm *", "no name of a program"),
        ("deny", "bash", "FOO=1 rm *", "set in front"),
        ("deny", "write", "'secrets/**'", "quotes"),
        ("allow", "write", '"src/**"', "quotes"),
        ("deny", "write", "{a,b}/**", "make a rule for each"),
        ("deny", "write", "$HOME/x", "no variable"),
        ("ask", "write", "~ada/x", "user's name"),
        ("deny", "webfetch", "*", "write a host"),
        ("deny", "webfetch", "ev*il.example", "write a host"),
        ("deny", "webfetch", "https//evil.example/é\u200b", "invisible"),
        ("deny", "webfetch", "evil.*", "write a host"),
        ("deny", "webfetch", "evil.example/a/*", "whole URL"),
        ("deny", "webfetch", "https://evil.example/*/a", "at the end alone"),
        ("deny", "webfetch", "ftp://evil.example/", "only http and https"),
        ("deny", "webfetch", "https://evil.example/#a", "never sent"),
        ("deny", "webfetch", "2606:4700::x", "IPv6"),
        ("deny", "refund", '{"account": }', "JSON"),
        ("deny", "refund", '{"a":1,"a":2}', "twice"),
        ("allow", "refund", '{"a":{"b":1,"b":1}}', "twice"),
        ("deny", "refund", "/etc/*", "no wildcards"),
        ("deny", "re fund", None, "name of a tool"),
    ],
)
def test_a_rule_that_can_never_match_is_an_error(effect: Any, tool: str, pattern: str | None, why: str) -> None:
    assert why.replace("\\", "") in wrong_in(rule(effect, tool, pattern))


@pytest.mark.parametrize("pattern", ["/opt/a=b/run *", "'/opt/my tools/run' *", "[[ *", ": *", ". *", "npm run a:b"])
def test_a_deny_of_a_program_with_a_strange_name_is_taken_and_holds(pattern: str) -> None:
    deny, command = PermissionRule.deny("bash", pattern), pattern.replace("*", "x ]]")

    assert fault_of(deny) == ""
    assert check_rules([deny], "bash", {"command": command}, World("/ws", "/home/dev")).effect == "deny"


def test_every_rule_of_the_truth_table_that_decides_a_row_is_sound() -> None:
    rows = [json.loads(line) for line in (CASES / "rule_cases.jsonl").read_text("utf-8").splitlines()]
    deciding = [
        PermissionRule(one["effect"], one["tool"], one.get("pattern"))
        for row in rows
        for one in row["rules"]
        if row["expect"] == one["effect"] and len(row["rules"]) == 1 and one.get("pattern") != ""
    ]

    assert len(deciding) > 50
    assert {(str(one), fault_of(one)) for one in deciding if fault_of(one)} == set()


_HOSTS = st.text("ab.:-0123456789*[]@/?é%", max_size=12) | st.from_regex(
    r"(https?://)?(\*\.)?[a-z]{1,3}(\.[a-z]{1,3}){1,2}(:[0-9]{1,3})?(/[a-z./%0-9]{0,6})?\*?", fullmatch=True
)


@given(_HOSTS)
def test_a_deny_rule_for_urls_that_is_taken_does_match_what_it_names(pattern: str) -> None:
    if not pattern or fault_of(PermissionRule.deny("webfetch", pattern)):
        return
    scheme, mark, rest = pattern.rstrip("*").rpartition("://")
    host = rest.removeprefix("*.")
    named = f"[{host}]" if mark + host == host and host.count(":") > 1 and "[" not in host else host

    assert denies(pattern, f"{scheme or 'https'}://{named}")


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("https://*@example.com/", "https://example.com/"),
        ("https://localhost:*", "http://localhost:8080/x"),
        ("https://example.com:*/admin", "https://example.com/admin"),
        ("http://[::1]:*", "http://[::1]/"),
        ("*.example.com*", "https://example.com/"),
        ("*evil*", "https://much-evil.example/"),
    ],
)
def test_a_star_where_none_should_stand_denies_what_it_must_mean(pattern: str, url: str) -> None:
    assert denies(pattern, url)
    assert not denies(pattern, "https://other.test/")


@given(st.sampled_from(["http", "https", "HTTPS"]), st.sampled_from(["", "me@", "a:b@"]),
       st.sampled_from(["evil.example", "EVIL.example.", "evil.example:8443", "%65vil.example"]),
       st.lists(st.sampled_from(["/", "//", "/./", "/x/../", "/%2e/", "\\"]), min_size=2, max_size=2),
       st.sampled_from(["ab", "%61b", "A%62", "%2561b"]), st.sampled_from(["", "?q=1", "#f", "/c"]))  # fmt: skip
def test_a_denied_url_is_denied_in_every_spelling(
    scheme: str, user: str, host: str, slashes: list[str], name: str, end: str
) -> None:
    assert denies("https://evil.example/ab/*", f"{scheme}://{user}{host}{slashes[0]}{name}{slashes[1]}c{end}")


@given(
    st.sampled_from(["allow", "ask", "deny"]), st.sampled_from(["bash", "write", "webfetch", "refund", "*"]), st.text()
)
def test_any_pattern_is_either_taken_as_it_stands_or_refused_in_words(effect: Any, tool: str, pattern: str) -> None:
    made = PermissionRule(effect, tool, pattern)
    if fault_of(made):
        assert wrong_in(rule(effect, tool, pattern))
        return

    try:
        rules = parse_policy(rule(effect, tool, pattern)).rules
    except ConfigError as error:  # JSON can spell what TOML cannot, half of a surrogate pair among it
        rules = ()
        said = str(error)

    assert [one.rule for one in rules] == [made] or "no TOML" in said
