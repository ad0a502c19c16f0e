"""Why a server gave no reply, in words for the person who must act.  Pure: no message ever holds the key."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from harness_core.calls import valid_text
from harness_core.errors import ModelError, ModelErrorKind
from harness_core.masking import MASK, mask

QUOTED: Final = 300  # characters of what a server said, as quoted in a message
READ: Final = 4000  # characters of it that are looked at: some servers send the whole request back
SHORTEST_KEY: Final = 8  # characters; below, it is a word like "ollama" that a local server does not look at

# How servers say that the context is too long. They have no common code for it.
_OVERFLOW: Final = re.compile(
    "|".join(
        (
            r"context[_ ]length[_ ]exceeded|contextwindowexceeded",  # OpenAI, Azure, Groq, DeepSeek; LiteLLM
            r"(?:maximum|max\.?) (?:model |context |prompt |input )+(?:length|size|window)",  # OpenAI, Mistral, xAI
            r"exceeds? (?:the |its )?(?:model's )?(?:available |maximum |max )?context",  # OpenAI, llama.cpp, Ollama
            r"exceed_context_size|exceed context limit",  # llama.cpp; Anthropic, max_tokens included
            r"(?:greater|longer) than the (?:model's )?(?:maximum model|context) length",  # LM Studio, vLLM, SGLang
            r"(?:prompt|input) is too long|prompt exceeds max",  # Anthropic, Bedrock; Zhipu
            r"(?:input|prompt) token count.{0,40}exceeds the (?:maximum|limit)",  # Gemini, Copilot
            r"input tokens exceed|exceeds the maximum allowed input length",  # OpenAI; GLM
            r"reduce the length of the (?:messages|input|prompt)",  # Groq, OpenAI, vLLM
            r"context window exceeds limit|exceeded model token limit",  # MiniMax; Moonshot
            r"range of input length should be",  # Qwen
            r"`?inputs`? tokens \+ `?max_new_tokens",  # Text Generation Inference, Together
            r"too many (?:total text bytes|input tokens)|request_too_large",  # Bedrock; Anthropic
            r"string_above_max_length",  # OpenAI
        )
    ),
    re.IGNORECASE,
)
_NEVER_FITS: Final = re.compile(r"request too large", re.IGNORECASE)  # OpenAI, Groq: larger than a minute's tokens
_NO_CREDIT: Final = re.compile(
    r"insufficient[_ ](?:quota|balance|credits|funds)|billing_(?:hard_limit|not_active)"
    r"|credit balance is too low|requires more credits|payment required",
    re.IGNORECASE,
)
_WRONG_KEY: Final = re.compile(
    r"(?:correct|valid) api[ _]key|invalid_api_key|api[ _]key(?: is)?(?: not valid|_invalid)", re.IGNORECASE
)
_UNKNOWN_MODEL: Final = re.compile(
    r"model_not_found|not a valid model|invalid model name|unknown model|no such model"
    r"|\bmodel\b.{0,120}\b(?:not found|does(?: not|n't) exist|not exist)",
    re.IGNORECASE | re.DOTALL,
)
_NO_TOOLS: Final = re.compile(
    r"does not support (?:tools|tool use|function)|no endpoints found that support tool", re.IGNORECASE
)
_WEB_PAGE: Final = re.compile(r"\s*(?:<!doctype html|<html)", re.IGNORECASE)
_TRY_AGAIN: Final = re.compile(r"(?:try again|retry) in (\d{1,6}(?:\.\d{1,9})?) ?(ms|s)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a server said of a request that it refused. code: its own names for it; retry_after: seconds."""

    status: int = 0
    code: str = ""
    text: str = ""
    retry_after: float | None = None

    @property
    def all(self) -> str:
        return f"{self.code} {self.text}"


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked for which model. Makes the error for whatever came instead of a reply."""

    model: str
    base_url: str
    api_key: str = field(default="", repr=False)

    @property
    def host(self) -> str:
        """The server's name, without anything secret that the address may hold."""
        parts = urlsplit(self.base_url)
        return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or self.base_url

    def refused(self, said: Complaint) -> ModelError:
        """The server answered, and not with a reply."""
        kind, text = self._reason(said)
        return ModelError(kind, text, retry_after=said.retry_after)

    def unreachable(self, why: str) -> ModelError:
        """No connection. why: what failed, and what to look at, as the end of a sentence."""
        return ModelError("unreachable", f"The model's server {self.host} cannot be reached: {self._clean(why)}")

    def timed_out(self) -> ModelError:
        """The server did not answer, or not to the end, in the time that there was."""
        return ModelError("timeout", f"The model {self.model} at {self.host} did not answer in time.")

    def no_reply(self, text: str = "") -> ModelError:
        """The server answered something that is no reply of a model."""
        what = "a web page" if _WEB_PAGE.match(text) else "something"
        hint = "Check OPENAI_BASE_URL: it must lead to an OpenAI-compatible API, and usually ends in /v1."
        return ModelError("bad_reply", f"{self.host} sent {what} that is no reply of a model. {hint}")

    def _reason(self, said: Complaint) -> tuple[ModelErrorKind, str]:
        status, quoted = said.status, self._quoted(said)
        if status == 402 or _NO_CREDIT.search(said.all):
            return "auth", (
                f"{self.host} says that this API key has no credit or quota left. Waiting does not help: add credit or "
                "raise the limit in the provider's billing settings, or set another key in OPENAI_API_KEY."
            )
        if status == 401 or _WRONG_KEY.search(said.all):
            # What the server says is not quoted: it may hold part of the key.
            return "auth", (
                f"{self.host} did not accept the API key. Check that OPENAI_API_KEY is a valid key of the server in "
                "OPENAI_BASE_URL."
            )
        if status == 429 and not _NEVER_FITS.search(said.all):
            return "rate_limited", f"{self.host} is asked too often at the moment (HTTP 429).{quoted}"
        if status < 500 and _NO_TOOLS.search(said.all):
            text = f"The model {self.model} at {self.host} cannot call tools. Choose one that can in HARNESS_MODEL."
            return "unknown_model", text
        if status in (404, 405) or (status < 500 and _UNKNOWN_MODEL.search(said.all)):
            return "unknown_model", self._not_found(said) + quoted
        if status == 403:
            return "auth", f"{self.host} does not let this API key use the model {self.model} (HTTP 403).{quoted}"
        if status in (413, 429) or _OVERFLOW.search(said.all):
            return "overflow", f"The conversation is too long for the model {self.model}.{quoted}"
        if status == 408:
            return "timeout", self.timed_out().args[0]
        if 0 < status < 500:
            return "refused", f"{self.host} refused the request (HTTP {status}).{quoted}"
        return "server", f"The model's server {self.host} failed{f' (HTTP {status})' if status else ''}.{quoted}"

    def _not_found(self, said: Complaint) -> str:
        if _UNKNOWN_MODEL.search(said.all):
            return f"{self.host} does not know the model {self.model}, or this key may not use it. Check HARNESS_MODEL."
        return (
            f"{self.host} has nothing at this address (HTTP {said.status}). Check OPENAI_BASE_URL, which usually ends "
            f"in /v1, and HARNESS_MODEL, which is {self.model}."
        )

    def _quoted(self, said: Complaint) -> str:
        text = self._clean(said.text)
        return "" if not text or _WEB_PAGE.match(text) else f" It says: {text}"

    def _clean(self, text: str) -> str:
        if len(self.api_key) >= SHORTEST_KEY:
            text = text.replace(self.api_key, MASK)
        text = mask(" ".join(valid_text(text).split()))
        return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"


def complaint(status: int, body: object, headers: Mapping[str, str] | None = None) -> Complaint:
    """Read an error, whatever its shape. status: of HTTP, or 0 where the error came in a stream that had begun."""
    if isinstance(body, Mapping):
        inner = body.get("error")
        fields = inner if isinstance(inner, Mapping) else body
        text = _words(fields.get("message")) or _words(inner) or _words(body.get("detail"))
        codes = [_words(fields.get(name)) for name in ("code", "type", "status")]
        text += _relayed(fields.get("metadata"))
    else:
        text, codes = _words(body), []
    text, code = text[:READ], " ".join(c for c in codes if c)[:READ]
    return Complaint(status or _status_in(codes), code, text, _wait(headers or {}, text))


def _words(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _relayed(metadata: object) -> str:
    """What OpenRouter relays of the provider behind it."""
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return f" ({raw})" if isinstance(raw, str) else ""


def _status_in(codes: list[str]) -> int:
    for code in codes:
        if code.isascii() and code.isdigit() and 400 <= int(code[:9]) < 600:
            return int(code)
        if "rate_limit" in code:
            return 429
        if "authentication" in code:
            return 401
    return 0


def _wait(headers: Mapping[str, str], text: str) -> float | None:
    """Seconds to wait: by retry-after, in seconds or as a date, or in words (Gemini, OpenAI). None if not said."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    after = headers.get("retry-after")
    if after is not None and (seconds := _seconds(after)) is not None:
        return seconds
    if after is not None and (seconds := _until(after, headers.get("date"))) is not None:
        return seconds
    if found := _TRY_AGAIN.search(text):
        return float(found[1]) / (1000 if found[2].lower() == "ms" else 1)
    return None


def _seconds(value: str | None) -> float | None:
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _until(date: str, now: str | None) -> float | None:
    """Seconds between the server's own time and a date that it names: our clock may differ from its."""
    try:
        left = parsedate_to_datetime(date) - parsedate_to_datetime(now or "")
    except (ValueError, TypeError, IndexError):
        return None
    return max(left.total_seconds(), 0.0)
