"""How large a context may become before it is compressed.  Pure numbers, with the limits that they have themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from harness_core.errors import ConfigError
from harness_core.given import one_of, whole

FEWEST_MESSAGES: Final = 10  # a smaller window would be compressed every few steps
FEWEST_RESERVED: Final = 3
MOST_RESERVED: Final = 20
LEAST_CAP: Final = 2_000  # tokens; a smaller one would cut results that tools have clipped already
ROOM_TO_GROW: Final = 0.75  # a context is compressed to less than triggers it, or the next step would do it again


@dataclass(frozen=True, slots=True)
class Limits:
    """When to compress, and to what.

    max_messages: messages that stay, at least 10. max_context_ratio: of the model's window, above 0, at most 1.
    max_retries: of a summary's model request, at least 1. message_trigger_factor: 1.0 or more; compression waits until
    there are so many times max_messages. min_reserved_messages: newest messages that stay, at least 3; 0 derives it
    from the room there is. per_message_cap: tokens of one message, 0 derives it. default_context_length: the window of
    a model that does not tell, in tokens. Raises ConfigError for what has no meaning.
    """

    max_messages: int = 15
    max_context_ratio: float = 0.75
    max_retries: int = 3
    message_trigger_factor: float = 1.0
    min_reserved_messages: int = 0
    per_message_cap: int = 0
    default_context_length: int = 128_000

    def __post_init__(self) -> None:
        for name in ("max_messages", "max_retries", "min_reserved_messages", "per_message_cap"):
            one_of(name, int, "a whole number", getattr(self, name))
        whole("default_context_length", self.default_context_length)
        for name in ("max_context_ratio", "message_trigger_factor"):
            one_of(name, (int, float), "a number", getattr(self, name))
        if not (math.isfinite(self.max_context_ratio) and 0 < self.max_context_ratio <= 1):
            raise ConfigError(f"max_context_ratio must be above 0 and at most 1, not {self.max_context_ratio}.")
        if not (math.isfinite(self.message_trigger_factor) and self.message_trigger_factor >= 1):
            raise ConfigError(f"message_trigger_factor must be 1.0 or more, not {self.message_trigger_factor}.")
        reserved = self.min_reserved_messages
        object.__setattr__(self, "max_messages", max(FEWEST_MESSAGES, self.max_messages))
        object.__setattr__(self, "max_retries", max(1, self.max_retries))
        object.__setattr__(self, "min_reserved_messages", max(FEWEST_RESERVED, reserved) if reserved > 0 else 0)
        object.__setattr__(self, "per_message_cap", max(0, self.per_message_cap))

    def window(self, context_length: int | None) -> int:
        """Tokens that the model takes; the default where it does not tell, or tells nonsense."""
        return context_length if context_length and context_length > 0 else self.default_context_length

    def threshold(self, context_length: int | None) -> int:
        """Tokens above which a request is compressed."""
        return math.floor(self.window(context_length) * self.max_context_ratio)

    @property
    def trigger(self) -> int:
        """Messages above which a context is compressed."""
        return math.ceil(self.max_messages * self.message_trigger_factor)

    @property
    def target(self) -> int:
        """Messages that a context is compressed to."""
        return min(self.max_messages, math.floor(self.trigger * ROOM_TO_GROW))

    def cap(self, threshold: int) -> int:
        """Tokens that one message may have."""
        reserved = self.min_reserved_messages or FEWEST_RESERVED
        return self.per_message_cap or max(LEAST_CAP, min(threshold // 2, 2 * threshold // reserved))


def reserve(threshold: int) -> int:
    """Tokens kept free for what is added to a request later on."""
    return min(max(math.ceil(0.05 * threshold), 256), 2_000)
