"""What an engine can be told, with its defaults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from harness_core.errors import ConfigError
from harness_core.given import one_of, positive, whole
from harness_core.steps import Expiry, Policy

DEFAULT_TOOLS: Final = ("read", "write", "edit", "ls", "glob", "grep", "bash", "webfetch", "todo", "hitl")

SYSTEM_PROMPT: Final = """\
You are an agent that works with tools in one workspace folder. Paths are relative to it.
Some calls are put to a person before they run; the result of a call says what was decided, by whom, and whether
anything ran. Believe the result, not your intention. A rejected call must not be tried again in other words.
Answer in Markdown, briefly."""


@dataclass(frozen=True, slots=True)
class HarnessOptions:
    """Options of an engine.

    hitl_enabled: whether calls can be put to a person at all (off by default; then asking calls are refused).
    max_steps: model messages per run. max_seconds: that a run may be worked on; waiting for people is not charged.
    model_retries: attempts of one model request. model_timeout: seconds.
    compression_max_messages, compression_max_context_ratio: when the context is compressed, see
    ContextCompressionInterceptor.
    context_length: of the model's window in tokens, where the model itself does not tell.
    parallel: how many repeatable neighbours run at the same time. expiries: how long tasks wait, per tool.
    workspace_for: the folder of a session, if not the one shared by all. adjust: lets the host change the policy of a
    session; awaited afresh at each step.
    """

    hitl_enabled: bool = False
    system_prompt: str = SYSTEM_PROMPT
    max_steps: int = 20
    max_seconds: float = 3600.0
    model_retries: int = 3
    model_timeout: float = 300.0
    compression_max_messages: int = 100
    compression_max_context_ratio: float = 0.75
    context_length: int | None = None
    parallel: int = 4
    agent: str = ""
    expiries: Mapping[str, Expiry] = field(default_factory=dict)
    workspace_for: Callable[[str], str | Path] | None = None
    adjust: Callable[[str, Policy], Awaitable[Policy]] | None = None


def changed(options: HarnessOptions, changes: Mapping[str, Any]) -> HarnessOptions:
    """The options with these changes, by name. Raises ConfigError for one that there is not, or that cannot work."""
    known = [field.name for field in fields(options)]
    if unknown := [name for name in changes if name not in known]:
        raise ConfigError(f"There is no option {', '.join(unknown)}; there are {', '.join(known)}.")
    options = replace(options, **changes)
    for name in ("max_steps", "model_retries", "parallel"):
        whole(name, getattr(options, name))
    if options.context_length is not None:
        whole("context_length", options.context_length)
    for name in ("max_seconds", "model_timeout"):
        positive(name, getattr(options, name))
    for name in ("system_prompt", "agent"):
        one_of(name, str, "a text", getattr(options, name))
    one_of("hitl_enabled", bool, "True or False", options.hitl_enabled)
    for tool, expiry in options.expiries.items():
        one_of(f"expiries of {tool}", Expiry, "an Expiry", expiry)
    return options
