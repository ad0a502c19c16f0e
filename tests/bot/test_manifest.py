"""The app's manifest against Slack's published schema, and against what the bot does with it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from bot import inbound
from bot.check import SCOPES
from bot.local import rules

ROOT: Final = Path(__file__).resolve().parents[2]
MANIFEST: Final = ROOT / "manifest.yml"
SLACK_API: Final = ROOT / "bot" / "slack_api.py"  # all calls of the Web API are there


def text(most: int, least: int = 1, pattern: str = "") -> dict[str, Any]:
    return {"text": (least, most), "pattern": pattern}


def table(required: str = "", **keys: Any) -> dict[str, Any]:
    return {"keys": keys, "required": required.split()}


def some(most: int, each: Any) -> dict[str, Any]:
    return {"each": each, "most": most}


FLAG: Final = {"flag": True}
# Schema 2.0.0 of github.com/slackapi/manifest-schema, as far as an app like this one needs it. No table takes a key
# that is not named.
SCHEMA: Final = table(
    "display_information",
    _metadata=table(major_version={"number": True}),
    display_information=table(
        "name",
        name=text(35),
        description=text(140),
        long_description=text(4000, least=175),
        background_color=text(7, least=4, pattern=r"#[0-9a-fA-F]{3}([0-9a-fA-F]{3})?"),
    ),
    features=table(
        app_home=table(home_tab_enabled=FLAG, messages_tab_enabled=FLAG, messages_tab_read_only_enabled=FLAG),
        agent_view=table(
            "agent_description",  # the page on manifests requires it; the schema does not
            agent_description=text(300),
            suggested_prompts=some(4, table("title message", title=text(75), message=text(4000))),
        ),
        bot_user=table("display_name", display_name=text(80), always_online=FLAG),
        slash_commands=some(
            50,
            table(
                "command description",
                command=text(32, least=2, pattern=r"/\S+"),
                description=text(2000),
                usage_hint=text(1000),
                should_escape=FLAG,
            ),
        ),
    ),
    oauth_config=table(scopes=table(bot=some(255, text(50)))),
    settings=table(
        event_subscriptions=table(bot_events=some(100, text(50))),
        interactivity=table("is_enabled", is_enabled=FLAG),
        org_deploy_enabled=FLAG,
        socket_mode_enabled=FLAG,
        token_rotation_enabled=FLAG,
    ),
)


def faults(value: Any, rule: dict[str, Any], at: str = "manifest") -> list[str]:
    """What Slack would refuse, each with its place."""
    match rule:
        case {"keys": keys, "required": required}:
            if not isinstance(value, dict):
                return [f"{at}: not a table"]
            missing = [f"{at}: {key} is missing" for key in required if key not in value]
            unknown = [f"{at}: {key} is unknown" for key in value if key not in keys]
            return [
                *missing,
                *unknown,
                *(fault for key in value if key in keys for fault in faults(value[key], keys[key], f"{at}.{key}")),
            ]
        case {"each": each, "most": most}:
            if not isinstance(value, list) or not 1 <= len(value) <= most:
                return [f"{at}: not a list of 1 to {most}"]
            return [fault for place, one in enumerate(value) for fault in faults(one, each, f"{at}[{place}]")]
        case {"text": (least, most), "pattern": pattern}:
            fits = isinstance(value, str) and least <= len(value) <= most
            if not fits or (pattern and not re.fullmatch(pattern, value)):
                return [f"{at}: not a text of {least} to {most} characters {pattern}".rstrip()]
        case {"number": True}:
            return [] if type(value) is int else [f"{at}: not a number"]
        case {"flag": True}:
            return [] if type(value) is bool else [f"{at}: not true or false"]
    return []


@pytest.fixture(scope="module")
def manifest() -> Any:
    return yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))


def scopes(manifest: Any) -> list[str]:
    return [*manifest["oauth_config"]["scopes"]["bot"]]


def events(manifest: Any) -> list[str]:
    return [*manifest["settings"]["event_subscriptions"]["bot_events"]]


def test_slack_takes_the_manifest_as_it_is(manifest: Any) -> None:
    assert faults(manifest, SCHEMA) == []


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({}, "manifest: display_information is missing"),
        ({"display_information": {"name": "x" * 36}}, "display_information.name: not a text of 1 to 35"),
        ({"display_information": {"name": "x", "long_description": "short"}}, "not a text of 175 to 4000"),
        ({"display_information": {"name": "x"}, "setings": {}}, "manifest: setings is unknown"),
        ({"display_information": {"name": "x"}, "settings": {"socket_mode_enabled": "yes"}}, "not true or false"),
        ({"display_information": {"name": "x"}, "features": {"slash_commands": []}}, "not a list of 1 to 50"),
    ],
)
def test_a_wrong_manifest_is_seen(wrong: Any, complaint: str) -> None:
    assert any(complaint in fault for fault in faults(wrong, SCHEMA))


def test_nothing_is_named_twice(manifest: Any) -> None:
    assert len(set(scopes(manifest))) == len(scopes(manifest))
    assert len(set(events(manifest))) == len(events(manifest))


def test_every_scope_says_what_it_is_for() -> None:
    lines = MANIFEST.read_text(encoding="utf-8").split("    bot:\n")[1].split("\n\n")[0].splitlines()

    assert [line for line in lines if not re.fullmatch(r" +- [a-z_.:]+ # \S.{5,}", line)] == []


# What Slack's reference of each method says, for a bot's token. Of a conversation it is the scope of its kind.
KINDS: Final = ("channels", "groups", "im")
HISTORY: Final = frozenset(f"{kind}:history" for kind in KINDS)
METHODS: Final[dict[str, frozenset[str]]] = {
    "agents.sessions.setStatus": frozenset({"chat:write"}),
    "auth.test": frozenset(),
    "apps.connections.open": frozenset(),  # the app-level token's connections:write, which no manifest names
    "bots.info": frozenset({"users:read"}),
    "chat.getPermalink": frozenset(),
    "chat.postEphemeral": frozenset({"chat:write"}),
    "chat.postMessage": frozenset({"chat:write"}),
    "chat.update": frozenset({"chat:write"}),
    "conversations.info": frozenset({"channels:read", "groups:read"}),  # of a direct message nothing is asked
    "conversations.replies": HISTORY,
    "reactions.add": frozenset({"reactions:write"}),
    "reactions.remove": frozenset({"reactions:write"}),
    "users.info": frozenset({"users:read"}),
    "views.open": frozenset(),
    "views.update": frozenset(),
}
EVENTS: Final = {
    "app_mention": "app_mentions:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "agent_session_stopped": "assistant:write",  # comes only to an app that is declared an agent
}
FEATURES: Final = {"slash_commands": "commands", "agent_view": "assistant:write"}


def test_every_scope_is_used_by_a_call_an_event_or_a_feature_and_none_is_missing(manifest: Any) -> None:
    called = set(re.findall(r'"([a-z]+\.[a-zA-Z.]+)"', SLACK_API.read_text(encoding="utf-8")))
    by_calls = frozenset[str]().union(*(METHODS[method] for method in called))
    by_events = {EVENTS[event] for event in events(manifest)}
    by_features = {scope for feature, scope in FEATURES.items() if feature in manifest["features"]}

    assert len(called) > 8
    assert set(scopes(manifest)) == by_calls | by_events | by_features
    assert set(manifest["oauth_config"]["scopes"]) == {"bot"}  # no scope of a user: the bot acts as nobody else


def test_every_event_that_is_subscribed_is_taken_and_the_other_way_round(manifest: Any) -> None:
    taken = set(re.findall(r'"type": ((?:"[a-z_]+"(?: \| )?)+)', inspect.getsource(inbound._event)))
    names = {name for one in taken for name in re.findall(r'"([a-z_]+)"', one)}

    assert {event.partition(".")[0] for event in events(manifest)} == names
    assert {f"message.{kind}" for kind in KINDS} <= set(events(manifest))


def test_the_check_looks_for_every_scope_that_the_bot_cannot_do_without(manifest: Any) -> None:
    assert set(scopes(manifest)) - SCOPES == {"assistant:write"}  # where the plan has no agents, nothing else is lost
    assert set(scopes(manifest)) >= SCOPES


def test_the_local_workspace_grants_what_the_manifest_asks_for(manifest: Any) -> None:
    # Otherwise a call could work there and be refused by Slack with missing_scope, or the other way round.
    assert set(scopes(manifest)) == rules.BOT_SCOPES
    assert set(events(manifest)) <= rules.BOT_EVENTS
    assert {command["command"] for command in manifest["features"]["slash_commands"]} == rules.COMMANDS
    spelled = {"history": HISTORY, "read": METHODS["conversations.info"], "connections:write": frozenset[str]()}
    for method, needed in METHODS.items():
        granted = rules.METHOD_SCOPES[method]
        assert spelled.get(granted, frozenset({granted} - {""})) == needed


def test_the_bot_can_be_written_to_directly(manifest: Any) -> None:
    home = manifest["features"]["app_home"]

    assert (home["messages_tab_enabled"], home["messages_tab_read_only_enabled"]) == (True, False)


def test_it_needs_no_public_address_and_names_arrive_as_ids(manifest: Any) -> None:
    settings = manifest["settings"]

    assert settings["socket_mode_enabled"]
    assert settings["interactivity"] == {"is_enabled": True}
    assert all(command["should_escape"] for command in manifest["features"]["slash_commands"])
