"""When the context is compressed, to what, and who writes the summary."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Final, Self

from harness_core.compression.limits import Limits, reserve
from harness_core.compression.notes import told
from harness_core.compression.plan import Plan, compressed, fits, plan, replaced, shown
from harness_core.compression.room import FORCED, Context
from harness_core.compression.shape import Count, Sizes, sized
from harness_core.compression.strategies import CompressionStrategy, Segment, Summarising, check, summarise
from harness_core.session import Trace
from harness_core.types import Message

MOST_FORCED: Final = len(FORCED)  # compressions in a row because the model refused the request as too long
MOST_FUTILE: Final = 2  # compressions of a run that left the context as much above its limits as before


@dataclass(frozen=True, slots=True)
class Measure:
    """How large requests are. fixed: tokens of the system prompt and the tools. length: of the model's window in
    tokens, None if it does not tell. counter: what counts, for people. known: what was counted before.
    """

    count: Count
    fixed: int = 0
    length: int | None = None
    counter: str = ""
    known: Sizes = field(default_factory=Sizes, compare=False, repr=False)

    def size(self, message: Message) -> int:
        """Tokens of a message."""
        return sized(message, self.count)

    def sizes(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Tokens of each message."""
        return self.known.of(messages, self.size)


class ContextCompressionInterceptor:
    """Decides about compression. With no strategy older messages are left out, and no model is asked for a summary.

    max_messages: messages that stay, at least 10. max_context_ratio: of the model's window, above 0, at most 1.
    max_retries: of a summary's model request. strategy: what makes summaries, see CompressionStrategy.
    message_trigger_factor: 1.0 or more; compression waits until there are so many times max_messages.
    min_reserved_messages: newest messages that stay, at least 3; 0 derives it from the room there is. per_message_cap:
    tokens of one message; 0 derives it. default_context_length: the window of a model that does not tell, in tokens.
    Raises ConfigError for what has no meaning. It never changes; `with_limits` makes another.
    """

    def __init__(
        self,
        max_messages: int = 15,
        max_context_ratio: float = 0.75,
        max_retries: int = 3,
        strategy: CompressionStrategy | None = None,
        *,
        message_trigger_factor: float = 1.0,
        min_reserved_messages: int = 0,
        per_message_cap: int = 0,
        default_context_length: int = 128_000,
    ) -> None:
        if strategy is not None:
            check(strategy)
        self.strategy = strategy
        self.limits = Limits(
            max_messages,
            max_context_ratio,
            max_retries,
            message_trigger_factor,
            min_reserved_messages,
            per_message_cap,
            default_context_length,
        )

    def with_limits(self, max_messages: int | None = None, max_context_ratio: float | None = None) -> Self:
        """The same with other thresholds; None leaves one as it is."""
        made = copy(self)  # of whatever class it is
        made.limits = replace(
            self.limits,
            max_messages=self.limits.max_messages if max_messages is None else max_messages,
            max_context_ratio=self.limits.max_context_ratio if max_context_ratio is None else max_context_ratio,
        )
        return made

    def context(self, trace: Trace, measure: Measure) -> Context:
        """What the next request holds: a message that is larger than one may be has lost its middle."""
        context = Context(
            trace.messages,
            measure.size,
            measure.count,
            trace.goal,
            trace.coming,
            measure.fixed,
            reserve(self.limits.threshold(measure.length)),
            measure.length,
            measure.sizes,
        )
        return replace(context, messages=shown(context, self.limits))

    def plan(self, context: Context, forced: int = 0) -> Plan | None:
        """Where to cut, None if nothing is to be done or nothing can be. forced: see plan.plan."""
        return plan(context, self.limits, forced)

    def summarise(self, context: Context, plan: Plan) -> Summarising:
        """Ask for a summary of what is cut; see strategies.summarise."""
        goal = "" if context.goal is None else context.messages[context.goal].content
        segment = Segment(replaced(context, plan), plan.note, context.count, goal, self.limits.max_retries)
        return summarise(self.strategy, segment)

    def compressed(self, context: Context, plan: Plan, text: str | None) -> Context:
        """The context after compression. text: the summary; without one, what older summaries said stays."""
        messages, goal = compressed(context, plan, told(replaced(context, plan)) if text is None else text)
        return replace(context, messages=messages, goal=goal)

    def fits(self, context: Context, plan: Plan) -> bool:
        """Whether a compressed context is within its limits."""
        return fits(context, self.limits, plan)
