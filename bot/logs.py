"""The log: one line per record, with the ids of what it is about, and no secret in it.

2026-03-01T09:30:00.120Z info card posted session=slack:T1:C1:1700.1 run=r3f task=3f9a1c logger=bot.chronicle
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Literal, TextIO

from harness_core.masking import mask

Format = Literal["text", "json"]

OURS: Final = ("bot", "harness_core", "harness")
REMEMBERED: Final = 10_000  # sessions whose run is known
IDS: Final = ("session", "run", "task")  # first on the line, in this order

_PLAIN: Final = re.compile(r"[\w:./@#+•…-]+")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # a line stays one line, whoever wrote what is in it
# Tasks of the engine, the presenter and the reactions are named after their session.
_TASK: Final = re.compile(r"(?:session|show|mood) (\S+)")
# Bolt says so whenever SLACK_BOT_TOKEN is set, though all is as it should be: the token is in its client.
_NOISE: Final = ("As you gave `client` as well", "As `installation_store` or `authorize` has been used")

_about: ContextVar[Mapping[str, str]] = ContextVar("about", default=MappingProxyType({}))
_runs: dict[str, str] = {}


def note(log: logging.Logger, event: str, **fields: object) -> None:
    """Log at INFO what happened, with ids and numbers beside it; fields that are None or "" are left out."""
    log.info(event, extra={"fields": fields})


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Whatever is logged within is about these."""
    reset = _about.set({**_about.get(), **{name: value for name, value in ids.items() if value}})
    try:
        yield
    finally:
        _about.reset(reset)


def run_of(session_id: str, run_id: str) -> None:
    """From now on records about this session are about this run; "" for none."""
    _runs.pop(session_id, None)
    if run_id:
        _runs[session_id] = run_id
        if len(_runs) > REMEMBERED:
            del _runs[next(iter(_runs))]


def configure(how: Format, level: str, stream: TextIO | None = None) -> None:
    """Log to a stream (stderr). What is not ours is never below INFO: there libraries log whole payloads, keys too."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if how == "json" else TextFormatter())
    handler.addFilter(lambda record: not str(record.msg).startswith(_NOISE))
    wanted = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=max(wanted, logging.INFO), handlers=[handler], force=True)
    for name in OURS:
        logging.getLogger(name).setLevel(wanted)
    for name in ("slack_bolt", "slack_sdk"):  # these set levels of their own otherwise
        logging.getLogger(name).setLevel(max(wanted, logging.INFO))


class JsonFormatter(logging.Formatter):
    """A JSON object per record: time, level, event, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, masked."""
        told = json.dumps({**_head(record), **fields_of(record)}, ensure_ascii=False, default=str)
        return _CONTROL.sub(_escaped, told)


class TextFormatter(logging.Formatter):
    """time level event key=value …"""

    def format(self, record: logging.LogRecord) -> str:
        """The line, masked."""
        head = " ".join(_CONTROL.sub(_escaped, text) for text in _head(record).values())
        return " ".join((head, *(f"{name}={_shown(value)}" for name, value in fields_of(record).items())))


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """What is beside the event, masked: the ids as far as they are known first, then the rest."""
    given: Mapping[str, object] = getattr(record, "fields", {})
    known: dict[str, object] = {**_about.get(), **_of_the_task(), **given}
    if not known.get("run") and (run := _runs.get(str(known.get("session", "")))):
        known["run"] = run
    ordered = {name: known[name] for name in (*IDS, *known) if known.get(name) not in (None, "")}
    ordered["logger"] = record.name
    if record.exc_info:
        ordered["exception"] = logging.Formatter().formatException(record.exc_info)
    return {name: mask(value) if isinstance(value, str) else value for name, value in ordered.items()}


def _head(record: logging.LogRecord) -> dict[str, str]:
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": time, "level": record.levelname.lower(), "event": mask(record.getMessage())}


def _of_the_task() -> Mapping[str, str]:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return {}
    found = _TASK.fullmatch(task.get_name()) if task else None
    return {"session": found[1]} if found else {}


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if _PLAIN.fullmatch(text):
        return text
    return _CONTROL.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f"
