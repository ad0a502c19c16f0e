"""The settings of the bot, from the environment.  Pure: one error names all that is missing or malformed.

Read once, at the start. Secrets are in no repr.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Literal, TypeVar
from urllib.parse import urlsplit

from bot.approvers import REQUESTER
from bot.ids import PERSON
from harness_core.errors import ConfigError
from harness_core.policy_file import NAME

SLACK_API: Final = "https://slack.com/api/"
LOCAL_PORT: Final = 8765
GRACE: Final = 8  # seconds; Docker kills what it asked to stop after ten

Word = TypeVar("Word", bound=str)

_WHERE: Final = {
    "SLACK_BOT_TOKEN": "api.slack.com/apps, your app, OAuth & Permissions, Bot User OAuth Token (xoxb-…)",
    "SLACK_APP_TOKEN": "api.slack.com/apps, your app, Basic Information, App-Level Tokens, connections:write (xapp-…)",
}
_PREFIX: Final = {"SLACK_BOT_TOKEN": "xoxb-", "SLACK_APP_TOKEN": "xapp-"}


# Every variable: what it is for, what holds without it, and whether its value is a secret.
VARIABLES: Final[tuple[tuple[str, str, str, bool], ...]] = (
    ("SLACK_BOT_TOKEN", "the bot's token", "none: a local workspace", True),
    ("SLACK_APP_TOKEN", "the socket's token", "none: a local workspace", True),
    ("SLACK_API_URL", "another Slack-compatible server", SLACK_API, False),
    ("HARNESS_ADMINS", "who administers", "nobody; in a local workspace Ada", False),
    ("HARNESS_APPROVERS", "who decides beside them", "nobody", False),
    ("HARNESS_DATA", "the data folder", "data", False),
    ("HARNESS_WORKSPACE", "one folder for all sessions", "a folder per session in the data folder", False),
    ("HARNESS_POLICY", "the policy file", f"{NAME} in the current folder, if it is there", False),
    ("HARNESS_SANDBOX", "whether bash is boxed: auto, off or required", "auto", False),
    ("HARNESS_TOOLS", "a module with tools of your own", "none", False),
    ("HARNESS_HOOKS", "a module with hooks of your own", "none", False),
    ("HARNESS_AGENTS", "a folder of agent files", "none", False),
    ("HARNESS_LOCAL_PORT", "the local workspace's port", str(LOCAL_PORT), False),
    ("HARNESS_GRACE", "seconds that running tools have when the bot stops", str(GRACE), False),
    ("HARNESS_LOG", "how logs are written: text or json", "text", False),
    ("HARNESS_LOG_LEVEL", "what is logged: debug, info, warning or error", "warning", False),
    ("HARNESS_MODEL", "the model", "the practice model", False),
    ("OPENAI_BASE_URL", "where the model is", "OpenAI", False),
    ("OPENAI_API_KEY", "the model's key", "none", True),
)
OURS: Final = "HARNESS_"  # begins the variables that are ours alone, so that any other of that kind is a mistake
OF_TESTS: Final = frozenset({"HARNESS_TEST_CONTROL"})  # stands in the same file as the tokens, where tests drive a bot


def in_force(env: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(variable, value, where it comes from) of every setting. Of a secret only that it is set."""
    rows = []
    for name, _, default, secret in VARIABLES:
        value = env.get(name, "").strip()
        shown = "(set, not shown)" if value and secret else value or default
        rows.append((name, shown, "environment" if value else "default"))
    return rows


def _unknown(env: Mapping[str, str]) -> Iterator[str]:
    """A line for each variable that somebody meant for the bot, and that it would not read."""
    known = [name for name, *_ in VARIABLES]
    for name in sorted(env):
        if name.startswith(OURS) and name not in known and name not in OF_TESTS and env[name].strip():
            near = get_close_matches(name, known, 1, cutoff=0.8)
            shown = "".join(char for char in name[:60] if char.isprintable())
            yield f"{shown} is no setting. " + (f"Is {near[0]} meant?" if near else "The README lists them all.")


@dataclass(frozen=True, slots=True)
class SlackSettings:
    """How to reach a Slack workspace. api_url ends with a slash. agent: the app may be declared an agent there."""

    bot_token: str = field(repr=False)
    app_token: str = field(repr=False)
    api_url: str = SLACK_API
    agent: bool = True


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model to ask, and where. Without a name the practice model answers, which needs no network."""

    name: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. slack: None means the local workspace. workspace: one folder that every session works in, or None
    for a folder per session under `data`. policy: the policy file; None for the one of the current folder. tools,
    hooks: modules or .py files with tools and hooks of one's own. agents: a folder of agent files. admins, approvers:
    ids of people; `requester` among the approvers lets requesters decide their own calls.
    """

    slack: SlackSettings | None = None
    model: ModelSettings = ModelSettings()
    admins: frozenset[str] = frozenset()
    approvers: frozenset[str] = frozenset()
    data: Path = Path("data")
    workspace: Path | None = None
    local_port: int = LOCAL_PORT
    grace: float = GRACE
    tools: str = ""
    hooks: str = ""
    agents: Path | None = None
    policy: Path | None = None
    sandbox: Literal["auto", "off", "required"] = "auto"
    log: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "warning"

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Settings:
        """The settings that these variables hold. Raises ConfigError, naming everything that has to be corrected."""
        read = _Reader(env)
        slack, people = _slack(read), (read.people("HARNESS_ADMINS"), read.people("HARNESS_APPROVERS", REQUESTER))
        settings = cls(
            slack=slack,
            model=ModelSettings(
                read.text("HARNESS_MODEL"), read.address("OPENAI_BASE_URL"), read.text("OPENAI_API_KEY")
            ),
            admins=people[0],
            approvers=people[1],
            data=Path(read.text("HARNESS_DATA") or "data"),
            workspace=read.path("HARNESS_WORKSPACE"),
            tools=read.text("HARNESS_TOOLS"),
            hooks=read.text("HARNESS_HOOKS"),
            agents=read.path("HARNESS_AGENTS"),
            policy=read.path("HARNESS_POLICY"),
            sandbox=read.one_of("HARNESS_SANDBOX", "auto", "off", "required"),
            local_port=read.port("HARNESS_LOCAL_PORT", LOCAL_PORT),
            grace=read.seconds("HARNESS_GRACE", GRACE),
            log=read.one_of("HARNESS_LOG", "text", "json"),
            log_level=read.one_of("HARNESS_LOG_LEVEL", "warning", "debug", "info", "error"),
        )
        read.wrong += _unknown(env)
        if read.wrong:
            raise ConfigError("The settings need correcting:\n" + "\n".join(f"- {line}" for line in read.wrong))
        return settings


def _slack(read: _Reader) -> SlackSettings | None:
    tokens = {name: read.text(name) for name in _PREFIX}
    api_url = read.address("SLACK_API_URL")
    if not any(tokens.values()):
        if api_url:
            read.wrong += [f"SLACK_API_URL is set, but {name} is missing: {_WHERE[name]}." for name in _PREFIX]
        return None
    for name, token in tokens.items():
        if not token:
            read.wrong.append(f"{name} is missing, and neither token works alone: {_WHERE[name]}.")
        elif not token.startswith(_PREFIX[name]):
            # The token itself is not repeated: it may be a good one in the wrong place.
            other = next((o for o, prefix in _PREFIX.items() if token.startswith(prefix)), "")
            swapped = f" It looks like the {other}: are the two swapped?" if other else ""
            read.wrong.append(f"{name} must begin with {_PREFIX[name]}.{swapped} It stands at {_WHERE[name]}.")
    base = api_url or SLACK_API
    return SlackSettings(
        tokens["SLACK_BOT_TOKEN"], tokens["SLACK_APP_TOKEN"], base if base.endswith("/") else f"{base}/"
    )


class _Reader:
    """Reads variables one by one, and notes what is wrong instead of stopping at the first."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.wrong: list[str] = []

    def text(self, name: str) -> str:
        """The value without blanks around it; "" if it is not set. An empty one counts as not set."""
        return self._env.get(name, "").strip()

    def path(self, name: str) -> Path | None:
        """A folder or a file, or None."""
        return Path(self.text(name)).expanduser() if self.text(name) else None

    def address(self, name: str) -> str:
        """An http or https address, or ""."""
        return self._checked(name, _is_address, "must be an address such as https://example.com/v1")

    def port(self, name: str, default: int) -> int:
        """A port number; 0 for any that is free."""
        return int(self._checked(name, _is_port, "must be a port number, 0 to 65535") or str(default))

    def seconds(self, name: str, default: int) -> int:
        """A number of seconds, an hour at most."""
        return int(self._checked(name, _is_seconds, "must be a number of seconds, 0 to 3600") or str(default))

    def one_of(self, name: str, default: Word, *others: Word) -> Word:
        """One of these words, in whatever case it is written."""
        given = self.text(name).lower()
        found = next((word for word in (default, *others) if word == given), None)
        if given and found is None:
            self.wrong.append(f"{name} must be one of {', '.join((default, *others))}.")
        return found or default

    def people(self, name: str, *words: str) -> frozenset[str]:
        """Ids of people, parted by commas or blanks; `words` are allowed among them."""
        found = [one for one in re.split(r"[\s,]+", self.text(name)) if one]
        wrong = [one for one in found if one not in words and not re.fullmatch(PERSON, one)]
        if wrong:
            shown = ", ".join(repr(one[:30]) for one in wrong[:5])
            self.wrong.append(
                f"{name} must hold member ids such as U012AB3CD, not {shown}. In Slack: a person's profile, ⋮, "
                "Copy member ID."
            )
        return frozenset(found) - frozenset(wrong)

    def _checked(self, name: str, good: Callable[[str], bool], must: str) -> str:
        value = self.text(name)
        if value and not good(value):
            self.wrong.append(f"{name} {must}.")
            return ""
        return value


def _is_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or True)
    except ValueError:
        return False


def _is_port(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 5 and int(value) <= 65_535


def _is_seconds(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 4 and int(value) <= 3600
