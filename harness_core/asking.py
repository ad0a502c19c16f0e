"""Asks the model: one request under a deadline, the wait before another attempt, the questions of a summary."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Final

from harness_core.background import ends_us, in_time
from harness_core.calls import normalise, valid_text
from harness_core.codec import Codec
from harness_core.compression.strategies import Answer, Summarising
from harness_core.errors import ModelError, in_words
from harness_core.events import Event, ModelFailed, ReasonDelta, ReasonEnd
from harness_core.parts import Surroundings
from harness_core.ports import ModelReply, ModelRequest, TextDelta
from harness_core.session import Trace, added
from harness_core.steps import Reason
from harness_core.types import Deadline, Message, Usage

log = logging.getLogger(__name__)

_CODEC: Final = Codec()  # to try what comes from outside, before it is recorded

FIRST_BACKOFF: Final = 1.0  # seconds before the second attempt of a model request; doubled for each further one
LONGEST_BACKOFF: Final = 30.0


async def ask(
    around: Surroundings, request: ModelRequest, until: Deadline, show: Callable[[Event], None] | None = None
) -> ModelReply:
    """The model's reply. until: when the run's time is over. show: gets the deltas. Raises ModelError."""
    seconds = until.left(around.clock.monotonic(), around.model_timeout)
    try:
        return await in_time(_answer(around, request, seconds, show), seconds)
    except TimeoutError as error:
        raise ModelError("timeout", f"no answer within {seconds:.0f} s") from error


async def _answer(
    around: Surroundings, request: ModelRequest, seconds: float, show: Callable[[Event], None] | None
) -> ModelReply:
    deadline = Deadline(around.clock.monotonic() + seconds)
    reply: ModelReply | None = None
    try:
        async with asyncio.timeout(seconds):
            stream: AsyncIterator[TextDelta | ModelReply] = around.model.stream(request, deadline)
            async for piece in stream:
                if not isinstance(piece, TextDelta):
                    reply = piece
                elif show:
                    show(ReasonDelta(piece.text))
    except ModelError as error:
        if _can_be_stored(error):
            raise
        raise ModelError("server", f"{error.kind}: {in_words(error)}") from error
    except TimeoutError:
        raise
    except BaseException as error:  # an adapter's fault is the model's failure, and is put on record as one
        if ends_us(error):
            raise
        log.warning("the model failed", exc_info=error)
        raise ModelError("server", in_words(error)) from error
    if reply is None:
        raise ModelError("bad_reply", "the stream ended without a message")
    return reply


def _can_be_stored(error: ModelError) -> bool:
    """Whether this can be put on record; with a kind that an adapter made up the model would be asked for ever."""
    try:
        _CODEC.encode(ModelFailed(error.kind, 1, 1, valid_text(str(error)), retry_after=error.retry_after))
    except Exception:
        return False
    return True


def said(reply: ModelReply, trace: Trace, step: Reason) -> ReasonEnd:
    """The message as a fact. Raises ModelError: what cannot be stored would otherwise be asked for for ever."""
    run_id = trace.run.run_id if trace.run else ""
    try:
        proposed = ((c.name, c.arguments, c.id) for c in reply.calls)
        calls = normalise(proposed, run_id, step.step, reply.finish_reason)
        text, finish = valid_text(reply.text), valid_text(reply.finish_reason)
        made = ReasonEnd(text, calls, reply.usage, finish, trace.seq, step.step, step.attempt, step.limit)
        _CODEC.encode(made)
    except Exception as error:
        raise ModelError("bad_reply", f"the model's message is unusable: {in_words(error)}") from error
    return made


def wait_before(trace: Trace, now: float) -> float:
    """Seconds to wait before the next attempt of a model request, 0 or less for none."""
    failures = trace.run.failures if trace.run else ()
    if not failures or failures[-1].kind == "overflow":  # which no waiting cures, and a shorter context has
        return 0.0
    backoff = failures[-1].retry_after or FIRST_BACKOFF * 2 ** (len(failures) - 1)
    return failures[-1].at + min(backoff, LONGEST_BACKOFF) - now


async def summarised(around: Surroundings, asking: Summarising, until: Deadline) -> tuple[str | None, Usage]:
    """Answer a strategy's questions, until it has its summary or none; and what that used."""
    usage = Usage()
    try:
        question = next(asking)
        while True:
            answer: Answer
            try:
                request = ModelRequest(question.system, (Message("user", question.text),))
                reply = await ask(around, request, until)
                answer, usage = valid_text(reply.text), added(usage, reply.usage)
            except ModelError as error:
                answer = error
            question = asking.send(answer)
    except StopIteration as over:
        return over.value, usage
