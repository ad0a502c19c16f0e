"""What people and logs see of a secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core import masking
from harness_core.masking import MASK, hides_more, mask, mask_args, masked, register_secret
from harness_core.secret_shapes import LONGEST_TOKEN

HIDDEN = [
    ("xoxb-123456-abcdef", "xoxb-•••"),
    ("xoxe.xoxp-1-abcdefgh", "xoxe.xoxp-•••"),
    ("the token xapp-1-A01-99-ffff is old", "the token xapp-••• is old"),
    ("token%3Dxoxb-123456789", "token%3Dxoxb-•••"),
    ('{"text":"\\nxoxp-123456789"}', '{"text":"\\nxoxp-•••"}'),
    ("wss://wss.example.com/link/?ticket=abc-123&app_id=1", "wss://wss.example.com/link/?ticket=•••&app_id=1"),
    ("https://hooks.slack.com/services/T0/B0/abc", "https://hooks.slack.com/services/•••"),
    ("sk-proj-abcdefghij0123456789", "sk-proj-•••"),
    ("sk-ant-api03-abcdefghij", "sk-ant-•••"),
    ("ghp_" + "a1" * 18, "ghp_•••"),
    ("github_pat_" + "a1" * 20, "github_pat_•••"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIA•••"),
    ("AIza" + "a1" * 18, "AIza•••"),
    ("sk_live_abcdefghij0123", "sk_live_•••"),
    ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "eyJ•••"),
    ("eyJ" + "4dWMi" * 900 + ".eyJzdWIiOiIx.c2lnbmF0dXJl", "eyJ•••"),  # with certificates in its header
    ("a-eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "a-eyJ•••"),
    ("Authorization: Bearer abc.def", "Authorization: Bearer •••"),
    ('curl -H "Authorization: Basic dXNlcjpw" x', 'curl -H "Authorization: Basic •••" x'),
    ('curl -H "X-Api-Key: abc" x', 'curl -H "X-Api-Key: •••" x'),
    ('{"headers": {"Authorization": "Bearer abc"}}', '{"headers": {"Authorization": "Bearer •••"}}'),
    ('{"password": "hunter2", "n": 1}', '{"password": "•••", "n": 1}'),
    ('{\\"password\\": \\"hunter2\\"}', '{\\"password\\": \\"•••\\"}'),
    ("password: hunter2\nuser: me", "password: •••\nuser: me"),
    ("password: swordfish", "password: •••"),
    ("token = swordfish\n", "token = •••\n"),
    ("export API_KEY=abc; ls", "export API_KEY=•••; ls"),
    ("AWS_SECRET_ACCESS_KEY=abc/def+1", "AWS_SECRET_ACCESS_KEY=•••"),
    ("SLACK_BOT_TOKEN=xoxb-123456-abc", "SLACK_BOT_TOKEN=xoxb-•••"),
    ("deploy --password hunter2 -x", "deploy --password ••• -x"),
    ("deploy --auth-token='a b' -x", "deploy --auth-token='•••' -x"),
    ("Server=db;Password=abc;User=b", "Server=db;Password=•••;User=b"),
    ('d["password"] = "abc"', 'd["password"] = "•••"'),
    ('password: str = "abc"', 'password: str = "•••"'),
    ("postgres://me:p@ss@db:5432/x", "postgres://me:•••@db:5432/x"),
    ("redis://:abc@db/0", "redis://:•••@db/0"),
    ("https://token:abc123@host", "https://token:•••@host"),
    ("redis://:longer-than-all-that-stands-before-it@db/0", "redis://:•••@db/0"),
]

SHOWN = [
    "the password is required",
    "**Password:** and then\n",
    "| token: | --- |",
    "Your token: the word itself means a sign.",
    "deploy --password is required",
    "token",
    "commit 3f2a9c0d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a6b",
    "0b7e1d8e-8f7c-4d5a-9e1b-2f6a7c8d9e0f",
    "/usr/lib/python3/dist-packages/token_store/secret_name.py",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "PWD=/home/dev/project",
    "max_tokens=4096 tokens: 12",
    "TOKEN=$CI_TOKEN make release",
    'export TOKEN="${CI_TOKEN}"',
    "token = fetch_token(user)",
    "token=fetch_token(user) secret=vault[name]",
    "client(token=self.token, password=None)",
    "def login(user: str, password: str) -> bool: ...",
    "password: ${{ secrets.DEPLOY }}",
    "if token == expected(user):",
    "task-list-of-many-things disk-usage-overview",
    "https://example.com:8080/a@b?c=d",
    "git@github.com:me/repo.git",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUabcdefgh\n-----END CERTIFICATE-----",
]

# Pieces that meet in the masker's rules, so that a random text runs into them.
PIECES = (
    "token", "password", "api_key", "Authorization", "ticket=", "pwd", "=", ":", ":=", "=>", " ", "  ", "\n", "\\n",
    "\\", "--",
    '"', "'", "$", "$(", "(", ")", "[", "]", "{", "<", "&", ";", ",", "?", "#", "|", "`", "/", "://", "@", "u:", ".",
    "-", "_", "xoxb-", "xoxe.", "sk-", "sk-ant-", "ghp_", "eyJ", "AKIA", "Bearer ", "basic ",
    "hooks.slack.com/services/",
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "1234567890", "abcdefgh", "ABCDEFGH12345678", "A" * 20,
    "a" * 24, "a", "1", "self.", "None", "str ", "%3D", "•", MASK, "é",
)  # fmt: skip
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@pytest.fixture
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_registered", set())
    monkeypatch.setattr(masking, "_known", None)


@pytest.mark.parametrize(("text", "shown"), HIDDEN, ids=[text[:40] for text, _ in HIDDEN])
def test_a_secret_is_hidden_and_what_stands_around_it_is_not(text: str, shown: str):
    assert mask(text) == shown
    assert masked(text)


@pytest.mark.parametrize("text", SHOWN, ids=[text[:40] for text in SHOWN])
def test_ordinary_text_is_left_alone(text: str):
    assert mask(text) == text
    assert not masked(text)


def test_a_command_inside_a_secret_stays_visible():
    assert mask('PASSWORD="abc$(rm -rf x)" true') == 'PASSWORD="•••$(rm -rf x)" true'
    assert mask("PASSWORD=abc;rm -rf x") == "PASSWORD=•••;rm -rf x"
    assert mask("TOKEN=$(steal)") == "TOKEN=$(steal)"


def test_a_private_key_is_hidden_but_not_its_frame():
    key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n" + "MIIEabcdefghijklmnopqrst\n" * 3 + "abc=\n"
    end = "-----END RSA PRIVATE KEY-----\nafter"

    assert mask(key + end) == f"-----BEGIN RSA PRIVATE KEY-----{MASK}\n{end}"
    assert "MIIE" not in mask((key + end).replace("\n", "\\n"))
    assert "MIIE" not in mask("\n".join("+" + line for line in (key + end).split("\n")))


@given(HOSTILE)
def test_masking_twice_is_masking_once(text: str):
    assert mask(mask(text)) == mask(text)


@given(HOSTILE)
def test_masking_grows_a_text_by_little(text: str):
    assert len(mask(text)) <= 3 * len(text)


@given(st.text())
def test_any_text_can_be_masked(text: str):
    mask(text + "token=" + text)


HEAVY = (
    "a", "token:", "token: ", "token ", "token=a ", "sk-", "eyJ", "-eyJ", "eyJabcdefgh.", "://", "://a:", "@a", "-",
    "--a ", "\\", "xoxb-.", "bearer ", "api_key_", 'password="', "-----BEGIN PRIVATE KEY-----", " +-", "•token=ü ",
    "\n", "1",
)  # fmt: skip


@pytest.mark.parametrize("piece", HEAVY)
def test_half_a_megabyte_of_hostile_text_is_masked_in_the_time_a_test_has(piece: str):
    text = "://a:-----BEGIN PRIVATE KEY-----" + piece * (500_000 // len(piece)) + " x"

    assert mask(text).startswith("://a:")  # what takes the square of the length takes minutes for this


@pytest.mark.usefixtures("clean_registry")
def test_a_registered_secret_is_hidden_wherever_it_stands():
    register_secret("p/w 1+2\u00e9")
    register_secret("p/w 1+2\u00e9 longer")

    assert mask("xp/w 1+2éx") == f"x{MASK}x"
    assert mask("p/w 1+2é longer") == MASK
    assert mask("q=p%2Fw%201%2B2%C3%A9") == f"q={MASK}"
    assert mask('"p/w 1+2\\u00e9"') == f'"{MASK}"'


@pytest.mark.usefixtures("clean_registry")
def test_a_short_value_is_not_taken_for_a_secret():
    register_secret("")
    register_secret("abc")

    assert mask("abcdef") == "abcdef"


def test_arguments_are_masked_by_name_and_by_value_at_any_depth():
    args = {
        "command": "curl -H 'Authorization: Bearer abc'",
        "env": {"API_KEY": "abc", "n": 3},
        "list": [{"db-password": ["a", {"x": "b"}]}, "ghp_" + "a1" * 18],
        "token": 12345,
        "token_count": 5,
        "secret": None,
    }

    assert mask_args(args) == {
        "command": f"curl -H 'Authorization: Bearer {MASK}'",
        "env": {"API_KEY": MASK, "n": 3},
        "list": [{"db-password": [MASK, {"x": MASK}]}, f"ghp_{MASK}"],
        "token": MASK,
        "token_count": 5,
        "secret": None,
    }


def test_no_two_names_become_one():
    args = {"token=abc123456": 1, "token=abd123456": 2, f"token={MASK}": 3, f"token={MASK} (2)": 4}

    assert list(mask_args(args).values()) == [1, 2, 3, 4]
    assert list(mask_args({"a": args})["a"].values()) == [1, 2, 3, 4]


@given(st.dictionaries(HOSTILE, st.integers(), max_size=5))
def test_every_value_of_hostile_arguments_has_its_place(args: dict[str, int]):
    assert len(mask_args(args, tight=True)) == len(args)


@given(HOSTILE)
def test_what_is_hidden_where_somebody_approves_is_short_or_told(text: str):
    safe = mask(text, tight=True)

    assert hides_more(text) or len(text) - len(safe) <= LONGEST_TOKEN * safe.count(MASK)


def test_arguments_nested_beyond_reason_are_hidden_whole():
    deep: object = "x"
    for _ in range(5_000):
        deep = [deep]

    assert MASK in str(mask_args({"a": deep}))
