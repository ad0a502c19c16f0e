"""Runs tools and lets them look: under their deadlines, with faults as results, and killed when a stop comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Final, get_args

from harness_core import results
from harness_core.background import Interrupted, ended, ends_us, in_time, interruptibly, put_down
from harness_core.calls import valid_text
from harness_core.codec import Codec
from harness_core.errors import ToolFailed, in_words
from harness_core.events import Inspected, ToolCallEnd
from harness_core.journal_ids import root_of
from harness_core.masking import mask
from harness_core.parts import Surroundings
from harness_core.ports import Lease, ToolContext
from harness_core.steps import Cleared
from harness_core.types import Args, Deadline, Inspection, Outcome, ToolCall, ToolResult, readable

log = logging.getLogger(__name__)

_CODEC: Final = Codec()  # to try what comes from outside, before it is recorded

INSPECT_TIMEOUT: Final = 15.0  # seconds that looking may take
STOPPED: Final = "it was stopped while it ran"
STUBBORN: Final = "it took too long, would not be stopped, and may still be running"


def context(around: Surroundings, session_id: str, call_uuid: str, seconds: float) -> ToolContext:
    """Where and until when a tool works; for a sub-agent, where the session does that it works in."""
    session_id = root_of(session_id)
    deadline = Deadline(around.clock.monotonic() + seconds)
    return ToolContext(session_id, call_uuid, around.workspace(session_id), deadline, around.clock)


async def inspected(around: Surroundings, session_id: str, call: ToolCall, args: Args, until: Deadline) -> Inspection:
    """What the call's tool sees for these arguments; its fault is a problem of the call. until: see run_all."""
    seconds = until.left(around.clock.monotonic(), INSPECT_TIMEOUT)
    try:
        return await in_time(_seen(around, session_id, call, args, seconds), seconds)
    except TimeoutError:
        return _unseen("it took too long")


async def _seen(around: Surroundings, session_id: str, call: ToolCall, args: Args, seconds: float) -> Inspection:
    tool = around.tools[call.name]
    try:
        async with asyncio.timeout(seconds):
            where = context(around, session_id, call.call_uuid, seconds)
            return _storable(await tool.inspect(deepcopy(args), where))
    except BaseException as error:  # what cannot be looked at cannot be judged, so the model is told instead
        if ends_us(error):
            raise
        return _unseen("it took too long" if isinstance(error, TimeoutError) else in_words(error))


def _unseen(why: str) -> Inspection:
    return Inspection(problem=valid_text(f"The call could not be inspected: {mask(why)}"))


async def run_all(
    around: Surroundings,
    session_id: str,
    cleared: Sequence[Cleared],
    until: Deadline,
    stopping: asyncio.Future[None],
    lease: Lease,
) -> Sequence[ToolCallEnd]:
    """Run these calls at the same time. One that a stop cuts short is of unknown outcome. until: when the run's time is
    over. Raises LeaseLost.
    """
    given = [until.left(around.clock.monotonic(), around.tools[c.call.name].timeout) for c in cleared]
    tasks = [
        asyncio.ensure_future(_run(around, session_id, c, seconds)) for c, seconds in zip(cleared, given, strict=True)
    ]
    why = STUBBORN
    try:
        await interruptibly(ended(tasks, max(given)), stopping, lease)
    except Interrupted:
        why = STOPPED  # each call says below what became of it
    finally:
        await put_down(tasks)
    return [
        task.result() if task.done() and not task.cancelled() else results.unknown(c.call, why)
        for c, task in zip(cleared, tasks, strict=True)
    ]


async def _run(around: Surroundings, session_id: str, cleared: Cleared, seconds: float) -> ToolCallEnd:
    call, tool = cleared.call, around.tools[cleared.call.name]
    try:
        async with asyncio.timeout(seconds):
            where = context(around, session_id, call.call_uuid, seconds)
            result = _result(await tool.run(deepcopy(cleared.args), where))
    except TimeoutError:
        whose = "its" if seconds == tool.timeout else "this run's last"
        result = ToolResult(f"The tool took longer than {whose} {seconds:.0f} s and was stopped.", "error")
    except ToolFailed as error:
        result = ToolResult(str(error), "error")
    except BaseException as error:  # a tool's fault is a result that the model can act on; it ends nobody else
        if ends_us(error):
            raise
        log.warning("the tool %s failed", call.name, exc_info=error)
        result = ToolResult(in_words(error), "error")
    content = cleared.note + readable(valid_text(result.content))
    direct = getattr(tool, "return_direct", False) is True
    return ToolCallEnd(call.call_uuid, content, result.outcome, direct=direct)


def _storable(found: Inspection) -> Inspection:
    """What a tool saw, as it can be stored: file names need not be valid text. Raises StoreError for anything else."""
    paths = tuple(valid_text(path) for path in found.paths)
    clean = replace(found, preview=valid_text(found.preview), problem=valid_text(found.problem), paths=paths)
    _CODEC.encode(Inspected("", "", clean))
    return clean


def _result(brought: object) -> ToolResult:
    """What a tool brought, if it is a result. Raises ToolFailed: the tool ran, and its answer cannot be read."""
    if not isinstance(brought, ToolResult) or not isinstance(brought.content, str):
        raise ToolFailed(f"The tool ran, but brought {type(brought).__name__} instead of a result.")
    if brought.outcome not in get_args(Outcome):
        raise ToolFailed(f"The tool ran, but its outcome {brought.outcome!r} is none.")
    return brought
