"""What went wrong elsewhere when conversations were shortened, as it goes here."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from harness_core.events import ContextCompressed, ReasonEnd, RunEnd
from harness_core.handle import HITL
from harness_core.hitl import HITLDecision
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ModelRequest
from harness_core.session import fold
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.types import ToolResult
from tests.engine.harness import Bench, only, request, until
from tests.engine.test_resume import paired

TEN = ContextCompressionInterceptor(10)


class Dies(RecordingTool):
    """Is killed with its process the first time."""

    async def run(self, args: Any, context: Any) -> ToolResult:
        if not self.runs:
            self.runs.append(args)
            raise asyncio.CancelledError
        return await super().run(args, context)


async def test_a_call_that_a_crash_left_behind_is_answered_and_keeps_no_context_from_being_shortened(
    bench: Bench,
) -> None:
    steps = count(1)

    def say(sent: ModelRequest) -> Any:
        step = next(steps)
        return call("change") if step == 1 else call("look", n=step) if step < 14 else "done"

    tools = [Dies("change"), RecordingTool("look", read_only=True, result="seen")]
    options: dict[str, Any] = {
        "compression_interceptor": TEN,
        "rules": [PermissionRule.allow("change")],
        "stop_loop_interceptor": None,
    }
    model = ScriptedModel(then=say)
    work = asyncio.create_task(request(bench.engine(model, tools, **options), "go"))
    await until(lambda: _begun(tools[0]))
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await bench.drop()

    engine = bench.engine(model, tools, **options)
    assert only(await request(engine), RunEnd).status == "pending"
    session = await engine.session("s")
    (task,) = await HITL.get_pending_tasks(session)
    assert task.kind == "unknown"
    assert not await _compressions(bench), "not while anybody is asked"
    await HITL.submit(session, task, HITLDecision.skip(), by="U2")
    end = only(await request(engine), RunEnd)

    assert end.answer == "done"
    assert await _compressions(bench)
    assert all(paired(sent) for sent in model.requests)
    assert len(tools[0].runs) == 1


@pytest.mark.parametrize("given", ["x", ""], ids=["the same id again and again", "no id"])
async def test_ids_that_a_model_uses_again_or_leaves_out_part_no_call_from_its_result(bench: Bench, given: str) -> None:
    steps = count(1)

    def say(sent: ModelRequest) -> Any:
        step = next(steps)
        return [call("look", id=given, n=step, part=part) for part in (1, 2)] if step <= 9 else "done"

    look = RecordingTool("look", read_only=True, result=lambda args: f"{args['n']}-{args['part']}")
    model = ScriptedModel(then=say)
    engine = bench.engine(model, [look], compression_interceptor=TEN, stop_loop_interceptor=None)

    assert only(await request(engine, "go"), RunEnd).answer == "done"

    facts = await bench.store.read("s")
    ids = [c.call_uuid for fact in facts if isinstance(fact, ReasonEnd) for c in fact.calls]
    assert await _compressions(bench)
    assert len(ids) == len(set(ids)) == 18
    assert len(look.runs) == 18
    for sent in model.requests:
        results = {m.call_uuid: m.content for m in sent.messages if m.role == "tool"}
        calls = [c for m in sent.messages for c in m.calls]
        assert [results[c.call_uuid] for c in calls] == [f"{c.args['n']}-{c.args['part']}" for c in calls]
        assert paired(sent)


async def test_one_giant_message_and_nothing_else_is_sent_as_far_as_it_fits(bench: Bench) -> None:
    model = ScriptedModel(then="done")
    engine = bench.engine(model, context_length=8_000)
    await request(engine, "word " * 50_000)

    assert only(await request(engine, "and now?"), RunEnd).answer == "done"

    assert model.requests[0].messages[0].content == "word " * 50_000, "the goal is never shortened"
    assert sum(len(m.content) for m in model.requests[1].messages) < 6_000 * 5
    assert model.requests[1].messages[-1].content == "and now?"


async def test_what_was_done_before_the_context_was_shortened_is_not_done_by_opening_the_session_anew(
    bench: Bench,
) -> None:
    steps = count(1)

    def say(sent: ModelRequest) -> Any:
        step = next(steps)
        return call("look", n=step) if step <= 9 else "done"

    look = RecordingTool("look", read_only=True, repeatable=True, result="seen")
    options: dict[str, Any] = {"compression_interceptor": TEN, "stop_loop_interceptor": None}
    model = ScriptedModel(then=say)
    await request(bench.engine(model, [look], **options), "go")
    await bench.drop()

    engine = bench.engine(model, [look], **options)
    await engine.start()
    await engine.idle()
    await request(engine, "thanks")

    assert await _compressions(bench)
    assert len(look.runs) == 9
    assert await engine.trace("s") == fold(await bench.store.read("s"))


async def _begun(tool: RecordingTool) -> bool:
    return bool(tool.runs)


async def _compressions(bench: Bench) -> list[ContextCompressed]:
    return [fact for fact in await bench.store.read("s") if isinstance(fact, ContextCompressed)]
