"""Settings come from the environment, and one error names everything that has to be corrected."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.config import ModelSettings, Settings, SlackSettings
from harness_core.errors import ConfigError

BOT, APP = "xoxb-1-very-secret", "xapp-1-very-secret"
TOKENS = {"SLACK_BOT_TOKEN": BOT, "SLACK_APP_TOKEN": APP}


def test_without_anything_the_local_workspace_and_the_practice_model_are_used():
    settings = Settings.from_env({"HOME": "/root", "SLACK_BOT_TOKEN": "  "})

    assert settings == Settings()
    assert (settings.slack, settings.model.name, settings.data) == (None, "", Path("data"))


def test_all_settings_are_read():
    settings = Settings.from_env(
        {
            "SLACK_BOT_TOKEN": f" {BOT}\n",
            "SLACK_APP_TOKEN": APP,
            "SLACK_API_URL": "http://127.0.0.1:9000/api",
            "HARNESS_ADMINS": "U012AB3CD, W045EF6GH",
            "HARNESS_APPROVERS": "requester U078IJ9KL",
            "HARNESS_DATA": "/var/lib/harness",
            "HARNESS_WORKSPACE": "/srv/work",
            "HARNESS_MODEL": "some-model",
            "OPENAI_BASE_URL": "http://localhost:8000/v1",
            "OPENAI_API_KEY": "sk-very-secret",
            "HARNESS_LOCAL_PORT": "0",
            "HARNESS_GRACE": "90",
            "HARNESS_AGENTS": "/srv/agents",
        }
    )

    assert settings == Settings(
        SlackSettings(BOT, APP, "http://127.0.0.1:9000/api/"),
        ModelSettings("some-model", "http://localhost:8000/v1", "sk-very-secret"),
        frozenset({"U012AB3CD", "W045EF6GH"}),
        frozenset({"requester", "U078IJ9KL"}),
        Path("/var/lib/harness"),
        Path("/srv/work"),
        0,
        grace=90,
        agents=Path("/srv/agents"),
    )


def test_secrets_are_in_no_repr():
    settings = Settings.from_env({**TOKENS, "OPENAI_API_KEY": "sk-very-secret"})

    assert "very-secret" not in repr(settings)


def test_one_error_names_all_that_is_wrong_and_where_to_get_it():
    with pytest.raises(ConfigError) as caught:
        Settings.from_env(
            {
                "SLACK_BOT_TOKEN": BOT,
                "SLACK_API_URL": "slack.com",
                "HARNESS_ADMINS": "@ann, U012AB3CD",
                "HARNESS_APPROVERS": "ann@example.com",
                "OPENAI_BASE_URL": "ftp://x.io",
                "HARNESS_LOCAL_PORT": "99999",
                "HARNESS_GRACE": "-1",
            }
        )

    message = str(caught.value)
    for name in (
        "SLACK_APP_TOKEN",
        "SLACK_API_URL",
        "HARNESS_ADMINS",
        "HARNESS_APPROVERS",
        "OPENAI_BASE_URL",
        "HARNESS_LOCAL_PORT",
        "HARNESS_GRACE",
        "App-Level Tokens",
        "Copy member ID",
    ):
        assert name in message
    assert "very-secret" not in message


def test_swapped_tokens_are_recognised_and_not_repeated():
    with pytest.raises(ConfigError) as caught:
        Settings.from_env({"SLACK_BOT_TOKEN": APP, "SLACK_APP_TOKEN": BOT})

    assert str(caught.value).count("are the two swapped?") == 2
    assert "very-secret" not in str(caught.value)


def test_an_api_address_without_tokens_is_a_mistake():
    with pytest.raises(ConfigError, match="SLACK_BOT_TOKEN is missing"):
        Settings.from_env({"SLACK_API_URL": "http://127.0.0.1:9000/api/"})


@pytest.mark.parametrize("port", ["-1", "8.5", "٣", "http"])
def test_a_port_is_a_number(port: str):
    with pytest.raises(ConfigError, match="HARNESS_LOCAL_PORT"):
        Settings.from_env({"HARNESS_LOCAL_PORT": port})


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("HARNESS_ADMIN", "HARNESS_ADMIN is no setting. Is HARNESS_ADMINS meant?"),
        ("HARNESS_LOG_LVL", "HARNESS_LOG_LVL is no setting. Is HARNESS_LOG_LEVEL meant?"),
        ("HARNESS_SANDBOXED", "HARNESS_SANDBOXED is no setting. Is HARNESS_SANDBOX meant?"),
        ("HARNESS_XYZZY", "HARNESS_XYZZY is no setting. The README lists them all."),
    ],
)
def test_a_setting_that_nobody_would_read_is_a_mistake(name: str, told: str):
    with pytest.raises(ConfigError) as caught:
        Settings.from_env({name: "secret-1"})

    assert str(caught.value).splitlines()[1:] == [f"- {told}"]


def test_variables_of_other_programs_and_of_the_tests_are_no_mistake():
    env = {"OPENAI_ORGANIZATION": "o", "SLACK_TEAM": "t", "HARNESS_TEST_CONTROL": "http://x/", "HARNESS_ADMIN": " "}

    assert Settings.from_env(env) == Settings()
