"""A reply in the chat-completions protocol, added up from its chunks.  Pure."""

from __future__ import annotations

import codecs
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness_core.errors import ModelError
from harness_core.models.chat_calls import UNREADABLE, CallBuilder, mended
from harness_core.ports import ModelReply
from harness_core.types import Usage

CUT: Final = "The model's reply broke off in the middle. Nothing of it was carried out."
NO_REPLY: Final = "The server answered something that is no reply of a model."

# Names that servers have for an end that cuts a message off, as OpenAI calls them.
_SAME_FINISH: Final = {
    "max_tokens": "length",  # Anthropic, Gemini
    "model_length": "length",  # Mistral
    "safety": "content_filter",  # Gemini
    "recitation": "content_filter",  # Gemini
    "sensitive": "content_filter",  # Zhipu
}
_NO_FINISH: Final = frozenset({"error", "abort", "cancelled", "network_error"})  # OpenRouter, vLLM, Zhipu: it failed

Part = Literal["delta", "message"]
_Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. cached: of input that the provider had read before; None: as any input."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        """What these tokens cost, in US dollars."""
        cached = self.input if self.cached is None else self.cached
        fresh = max(usage.input_tokens - usage.cached_tokens, 0)
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1_000_000


class ReplyBuilder:
    """Adds chunks up. part: "delta" for the chunks of a stream, "message" for a reply that came in one piece."""

    def __init__(self, tools: Collection[str] = (), part: Part = "delta") -> None:
        self._part = part
        self._calls = CallBuilder(tools)
        self._texts: list[str] = []
        # Some servers cut an emoji in two, one half of a surrogate pair in each chunk: a half waits for the other.
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("replace")
        self._usage: _Json = {}
        self._finish = ""

    def add(self, chunk: object) -> str:
        """Take in one chunk; the text that it brought. Raises ModelError (bad_reply) for what is no chunk."""
        if not isinstance(chunk, Mapping):
            raise ModelError("bad_reply", NO_REPLY)
        self._note_usage(chunk)
        return self._heard("".join(self._texts_of(choice) for choice in _choices(chunk)))

    def rest(self) -> str:
        """Text that waited for more which never came."""
        return self._heard("", final=True)

    def whole(self, price: Price | None = None) -> ModelReply:
        """The message. Raises ModelError (bad_reply) if its end never came, so that half of it is never acted upon."""
        if not self._finish or self._finish in _NO_FINISH:
            raise ModelError("bad_reply", CUT)
        return ModelReply("".join(self._texts), self._calls.calls(), usage_of(self._usage, price), self._finish)

    def _heard(self, text: str, final: bool = False) -> str:
        text = self._decoder.decode(text.encode("utf-16-le", "surrogatepass"), final)
        self._texts.append(text)
        return text

    def _note_usage(self, holder: _Json) -> None:
        # Where every chunk has it, it grows: the last one counts.
        if isinstance(usage := holder.get("usage"), Mapping):
            self._usage = usage

    def _texts_of(self, choice: _Json) -> str:
        self._note_usage(choice)  # Moonshot has it here
        if isinstance(finish := choice.get("finish_reason"), str) and finish:
            name = mended(finish).lower()
            self._finish = _SAME_FINISH.get(name, name)
        said = choice.get(self._part)
        if said is None:
            return ""
        if not isinstance(said, Mapping):
            raise ModelError("bad_reply", NO_REPLY)
        for call in _list(said.get("tool_calls")):
            self._calls.add(call)
        return _text(said.get("content")) or _text(said.get("refusal"))


def usage_of(raw: _Json, price: Price | None = None) -> Usage:
    """The usage as the server counted it. Its own cost goes before the one by price; None if neither is known."""
    details = raw.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else raw.get("prompt_cache_hit_tokens")
    usage = Usage(_count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens")), _count(cached))
    cost = _number(raw.get("cost"))
    if cost is None and price and (usage.input_tokens or usage.output_tokens):
        cost = price.of(usage)
    return Usage(usage.input_tokens, usage.output_tokens, usage.cached_tokens, cost)


def _choices(chunk: _Json) -> Iterator[_Json]:
    """Only the first of several answers: more are never asked for."""
    for choice in _list(chunk.get("choices")):
        if not isinstance(choice, Mapping):
            raise ModelError("bad_reply", NO_REPLY)
        if choice.get("index") in (0, None):
            yield choice


def _list(value: object) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ModelError("bad_reply", UNREADABLE)
    return value


def _text(content: object) -> str:
    """Text as it is, or as a list of parts, of which only text is for the reader."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(p["text"] for p in parts if isinstance(p, Mapping) and isinstance(p.get("text"), str))


def _count(value: object) -> int:
    number = _number(value)
    return 0 if number is None else int(number)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
