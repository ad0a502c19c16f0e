"""A model that goes round in circles, in a whole run: it is told, refused, and ended with what was found so far."""

from __future__ import annotations

from collections.abc import Sequence

from harness_core.compression.strategies import CompositeCompressionStrategy, HierarchicalCompressionStrategy
from harness_core.errors import ModelError
from harness_core.events import ContextCompressed, HookRuled, ModelFailed, RunEnd, ToolCallEnd
from harness_core.interceptors.compression import ContextCompressionInterceptor
from harness_core.interceptors.stop_loop import StopLoopInterceptor
from harness_core.ports import ModelRequest, ProposedCall
from harness_core.session import Trace
from harness_core.testing import Attempts, RecordingTool, ScriptedModel, call
from tests.engine.harness import Bench, only, request


def look() -> RecordingTool:
    return RecordingTool("look", read_only=True, result="the same")


async def rulings(bench: Bench) -> Sequence[tuple[str, str]]:
    return [(e.point, e.verdict) for e in await bench.store.read("s") if isinstance(e, HookRuled)]


async def test_it_is_told_after_the_result_then_refused_then_ended_with_a_last_message(bench: Bench) -> None:
    tool, model = look(), ScriptedModel(*[[call("look")]] * 5, "It never changes.")
    engine = bench.engine(model, [tool])

    end = only(await request(engine, "hi"), RunEnd)

    assert len(tool.runs) == 3
    told = model.requests[3].messages
    assert [m.role for m in told[-2:]] == ["tool", "user"]
    assert "Loop detected" in told[-1].content
    assert "not run again" in model.requests[4].messages[-1].content
    assert (end.status, end.limit) == ("limited", "loop")
    assert end.answer.endswith("So far: It never changes.")
    ends = [e.outcome for e in await bench.store.read("s") if isinstance(e, ToolCallEnd)]
    assert ends == ["ok"] * 3 + ["denied", "not_run"]
    assert await rulings(bench) == [("before_model", "Inject"), ("before_tool", "Deny"), ("after_model", "Stop")]


async def test_another_interceptor_takes_its_place(bench: Bench) -> None:
    tool, model = look(), ScriptedModel(*[[call("look")]] * 6, "done")
    only_tells = StopLoopInterceptor(escalate=False)
    engine = bench.engine(model, [tool], stop_loop_interceptor=only_tells)

    assert only(await request(engine, "hi"), RunEnd).status == "completed"
    assert len(tool.runs) == 6
    assert set(await rulings(bench)) == {("before_model", "Inject")}


async def test_one_tool_four_times_of_six_is_told_once_and_never_refused(bench: Bench) -> None:
    tool = RecordingTool("look", read_only=True, result=lambda args: f"page {args['n']}")
    model = ScriptedModel(*[[call("look", n=n)] for n in range(6)], "done")
    engine = bench.engine(model, [tool])

    assert only(await request(engine, "hi"), RunEnd).status == "completed"
    assert await rulings(bench) == [("before_model", "Inject")]
    assert "look was called 4 times" in model.requests[4].messages[-1].content


async def test_a_summary_whose_model_only_ever_calls_tools_is_given_up_soon(bench: Bench) -> None:
    def replies(asked: ModelRequest) -> list[ProposedCall]:
        return [call("look", n=len(model.requests))]

    tool = RecordingTool("look", read_only=True, result=lambda args: f"page {args['n']}")
    model = ScriptedModel(then=replies)
    strategy = CompositeCompressionStrategy().add_strategy(HierarchicalCompressionStrategy())
    compression = ContextCompressionInterceptor(10, strategy=strategy)
    engine = bench.engine(model, [tool], compression_interceptor=compression, max_steps=12)

    assert only(await request(engine, "hi"), RunEnd).limit == "steps"

    summaries = [asked for asked in model.requests if not asked.tools]
    compressions = [e for e in await bench.store.read("s") if isinstance(e, ContextCompressed)]
    assert compressions
    assert len(summaries) <= 3 * len(compressions)
    assert len(model.requests) - len(summaries) == 13, "twelve steps and the last message"


async def test_a_hook_that_fails_about_a_failure_does_not_keep_the_model_from_being_asked_again(
    bench: Bench,
) -> None:
    class Broken:
        def model_error(self, trace: Trace, failed: ModelFailed) -> None:
            raise RuntimeError("boom")

    bench.clock.auto = True
    model = ScriptedModel(Attempts(ModelError("server", "busy"), "done"))
    engine = bench.engine(model, interceptors=[Broken()])

    assert only(await request(engine, "hi"), RunEnd).answer == "done"
    assert await rulings(bench) == [("model_error", "Failed")]
