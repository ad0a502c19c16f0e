"""Sessions that grow too long are made shorter, go on where they were, and do nothing twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from harness_core.compression.notes import HEAD
from harness_core.compression.strategies import Question, Segment, default_strategy
from harness_core.errors import ConfigError, ModelError
from harness_core.events import ContextCompressed, ContextSize, Event, HITLPending, ReasonDelta, RunEnd, RunStart
from harness_core.handle import HITL
from harness_core.interceptors.compression import MOST_FORCED, ContextCompressionInterceptor
from harness_core.permissions.rule import PermissionRule
from harness_core.ports import ModelReply, ModelRequest
from harness_core.session import fold
from harness_core.testing import RecordingTool, ScriptedModel, call
from harness_core.types import Usage
from tests.engine.harness import Bench, names, only, request, stored, until
from tests.engine.test_resume import paired

TEN = ContextCompressionInterceptor(10, strategy=default_strategy())
CUT_ONLY = ContextCompressionInterceptor(10)


def summarising(sent: ModelRequest) -> bool:
    return sent.system.startswith("You shorten")


class Worker(ScriptedModel):
    """A model that calls a tool so many times, whatever it remembers, and summarises when it is asked to."""

    def __init__(self, calls: int, summary: Any = "it went well", tool: str = "look", answer: str = "done") -> None:
        self.summary, self.steps = summary, count(1)
        super().__init__(then=self._say)
        self._calls, self._tool, self._answer = calls, tool, answer

    def _say(self, sent: ModelRequest) -> Any:
        if summarising(sent):
            return self.summary
        step = next(self.steps)
        return call(self._tool, n=step) if step <= self._calls else self._answer

    @property
    def asked_to_work(self) -> list[ModelRequest]:
        return [sent for sent in self.requests if not summarising(sent)]


def look(result: Callable[[Any], str] = lambda args: f"saw {args['n']}") -> RecordingTool:
    return RecordingTool("look", read_only=True, repeatable=True, result=result)


async def compressions(bench: Bench, session_id: str = "s") -> list[ContextCompressed]:
    return [fact for fact in await bench.store.read(session_id) if isinstance(fact, ContextCompressed)]


async def test_a_long_run_is_compressed_and_goes_on(bench: Bench) -> None:
    model, tool = Worker(12), look()
    engine = bench.engine(model, [tool], compression_interceptor=TEN)

    events = await request(engine, "the goal")

    assert only(events, RunEnd).answer == "done"
    assert tool.runs == [{"n": n} for n in range(1, 13)]
    made = await compressions(bench)
    assert made
    assert all(len(sent.messages) <= 12 for sent in model.asked_to_work)
    assert all(paired(sent) for sent in model.requests)
    assert all(sent.messages[0].content == "the goal" for sent in model.asked_to_work)
    last = model.asked_to_work[-1].messages
    assert last[1].content.startswith(HEAD)
    assert "it went well" in last[1].content
    assert "ContextCompressed" not in names(events), "it is for the record"


async def test_what_was_done_is_told_and_not_done_again_after_a_restart(bench: Bench) -> None:
    deploy = RecordingTool("deploy", read_only=True, result="deployed")

    def say(sent: ModelRequest) -> Any:
        if summarising(sent):
            return "nothing to report"
        if not any("deployed" in message.content for message in sent.messages):
            return call("deploy")
        results = sum(message.role == "tool" for message in sent.messages)
        return call("look", n=results) if len(model.requests) < 25 else "done"

    model = ScriptedModel(then=say)
    await request(bench.engine(model, [deploy, look()], compression_interceptor=TEN), "deploy it, then look around")
    await bench.drop()

    await request(bench.engine(model, [deploy, look()], compression_interceptor=TEN), "go on")

    assert len(await compressions(bench)) >= 1
    assert deploy.runs == [{}]


async def test_without_a_strategy_nobody_is_asked_for_a_summary(bench: Bench) -> None:
    model = Worker(12)

    await request(bench.engine(model, [look()], compression_interceptor=CUT_ONLY), "goal")

    assert await compressions(bench)
    assert [sent for sent in model.requests if summarising(sent)] == []


async def test_the_sizes_before_and_after_are_shown_with_the_counter(bench: Bench) -> None:
    events = await request(bench.engine(Worker(12), [look()], compression_interceptor=TEN), "goal")

    sizes = [e for e in events if isinstance(e, ContextSize)]
    (first, *_), shorter = sizes, [s for s in sizes if s.messages_before is not None]
    assert first.messages == 1
    assert first.tokens is not None
    assert first.tokens > 0
    assert first.counter == "tiktoken o200k_base"
    assert len(shorter) == len(await compressions(bench))
    assert all((s.messages_before or 0) > s.messages for s in shorter)
    assert all(s.tokens_before for s in shorter)
    kinds = names(events)
    assert all(kinds[at + 1] == "ReasonStart" for at, kind in enumerate(kinds) if kind == "ContextSize")


async def test_the_tools_that_a_model_is_told_of_count_as_well(bench: Bench) -> None:
    many = [RecordingTool(f"tool{n}", description="It does a thing. " * 20) for n in range(10)]

    few, all_of_them = [
        only(await request(bench.engine(ScriptedModel("done"), tools), "hi", session), ContextSize).tokens
        for tools, session in (([], "s"), (many, "t"))
    ]

    assert all_of_them > few + 500


async def test_a_restarted_engine_reads_from_the_last_compression_on(bench: Bench) -> None:
    model, rule = Worker(12), PermissionRule.deny("look", "x")
    engine = bench.engine(model, [look()], compression_interceptor=TEN)
    await engine.change_rule("s", rule)
    await request(engine, "goal")
    whole = fold(await bench.store.read("s"))
    await bench.drop()

    opened = await bench.store.open("s")
    trace = await bench.engine(model, [look()]).trace("s")

    assert isinstance(opened[0], ContextCompressed)
    assert len(opened) < len(await bench.store.read("s"))
    assert trace == whole
    assert trace.rules == (rule,)
    assert trace.usage == whole.usage


async def test_summaries_are_paid_for(bench: Bench) -> None:
    summary = ModelReply("in short", usage=Usage(1_000, 7))
    engine = bench.engine(Worker(12, summary), [look()], compression_interceptor=TEN)

    await request(engine, "goal")

    made = await compressions(bench)
    asked = 2 * len(made)  # key facts, and the rolling summary
    assert [fact.usage for fact in made] == [Usage(2_000, 14)] * len(made)
    assert (await engine.trace("s")).usage == Usage(100 * 13 + 1_000 * asked, 10 * 13 + 7 * asked)


async def test_deltas_of_a_summary_are_not_shown(bench: Bench) -> None:
    events = await request(bench.engine(Worker(12), [look()], compression_interceptor=TEN), "goal")

    assert "".join(e.text for e in events if isinstance(e, ReasonDelta)) == "done"


# -- summaries that fail -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "summary", [ModelError("server", "busy"), ModelError("auth"), ModelError("overflow"), "", [call("look", n=0)]]
)
async def test_a_summary_that_fails_costs_the_summary_and_not_the_run(bench: Bench, summary: Any) -> None:
    bench.clock.auto = True
    model, tool = Worker(12, summary), look()

    end = only(await request(bench.engine(model, [tool], compression_interceptor=TEN), "goal"), RunEnd)

    assert end.answer == "done"
    assert tool.runs == [{"n": n} for n in range(1, 13)]
    assert len(model.requests) < 60
    assert "saw" in model.asked_to_work[-1].messages[1].content, "the calls that were made are listed all the same"


def _raises(segment: Segment) -> Any:
    raise RuntimeError("boom")


def _exits(segment: Segment) -> Any:
    raise SystemExit(1)


def _exits_later(segment: Segment) -> Any:
    yield Question("Shorten this.", "a record", 50)
    raise SystemExit(1)


def _asks_nothing(segment: Segment) -> Any:
    yield "what is this about?"


def _asks_numbers(segment: Segment) -> Any:
    yield Question("Shorten this.", 7, 50)  # type: ignore[arg-type]


@pytest.mark.parametrize("compress", [_raises, _exits, _exits_later, _asks_nothing, _asks_numbers, lambda _: 7])
async def test_a_strategy_that_fails_costs_the_summary_and_not_the_run(
    bench: Bench, compress: Callable[[Segment], Any]
) -> None:
    broken: Any = SimpleNamespace(compress=compress)
    engine = bench.engine(
        Worker(12), [look()], compression_interceptor=ContextCompressionInterceptor(10, strategy=broken)
    )

    assert only(await request(engine, "goal"), RunEnd).answer == "done"


async def test_a_strategy_that_asks_no_model_just_returns_its_text(bench: Bench) -> None:
    plain: Any = SimpleNamespace(compress=lambda segment: f"{len(segment.messages)} messages were here")
    model = Worker(12)
    compression = ContextCompressionInterceptor(10, strategy=plain)

    await request(bench.engine(model, [look()], compression_interceptor=compression), "goal")

    assert any("messages were here" in m.content for m in model.requests[-1].messages if m.summary)


async def test_what_earlier_summaries_said_stays_when_a_later_one_fails(bench: Bench) -> None:
    summaries = iter(["found the key", "found the key"])
    model = Worker(20, lambda sent: next(summaries, ModelError("auth")))

    await request(bench.engine(model, [look()], compression_interceptor=TEN, max_steps=30), "goal")

    assert len(await compressions(bench)) >= 2
    assert "found the key" in model.asked_to_work[-1].messages[1].content


async def test_a_summary_is_made_under_the_deadline(bench: Bench) -> None:
    class Slow(Worker):
        async def stream(self, sent: Any, deadline: Any) -> Any:
            if summarising(sent):
                await asyncio.Event().wait()
            async for piece in super().stream(sent, deadline):
                yield piece

    engine = bench.engine(
        Slow(6),
        [look()],
        compression_interceptor=ContextCompressionInterceptor(10, 0.75, 1, default_strategy()),
        model_timeout=0.05,
    )

    assert only(await request(engine, "goal"), RunEnd).answer == "done"
    assert await compressions(bench)


# -- while others act --------------------------------------------------------------------------------------------------


class Held(Worker):
    """Summarises only once it is let go."""

    def __init__(self, calls: int) -> None:
        super().__init__(calls)
        self.go, self.summarising = asyncio.Event(), asyncio.Event()

    async def stream(self, sent: Any, deadline: Any) -> Any:
        if summarising(sent):
            self.summarising.set()
            await self.go.wait()
        async for piece in super().stream(sent, deadline):
            yield piece


async def test_what_people_say_and_rule_meanwhile_is_not_lost(bench: Bench) -> None:
    model = Held(12)
    engine = bench.engine(model, [look()], compression_interceptor=TEN)
    work = asyncio.create_task(request(engine, "goal"))
    await model.summarising.wait()

    await engine.prompt("s", "one more thing", by="U2", key="k")
    await engine.change_rule("s", PermissionRule.deny("change"))
    model.go.set()
    await work

    trace = await engine.trace("s")
    assert trace.rules == (PermissionRule.deny("change"),)
    assert [m.content for sent in model.asked_to_work for m in sent.messages].count("one more thing") >= 1
    assert trace == fold(await bench.store.read("s"))


async def test_a_stop_ends_the_run_while_a_summary_is_made(bench: Bench) -> None:
    model = Held(12)
    engine = bench.engine(model, [look()], compression_interceptor=TEN)
    work = asyncio.create_task(request(engine, "goal"))
    await model.summarising.wait()

    await engine.stop("s", by="U2")
    events = await work

    assert only(events, RunEnd).status == "stopped"
    assert await compressions(bench) == []


async def test_killed_while_a_summary_is_made_it_is_made_again(bench: Bench) -> None:
    model, tool = Held(12), look()
    engine = bench.engine(model, [tool], compression_interceptor=TEN)
    work = asyncio.create_task(request(engine, "goal"))
    await model.summarising.wait()
    await bench.drop()
    await asyncio.gather(work, return_exceptions=True)
    model.go.set()

    events = await request(bench.engine(model, [tool], compression_interceptor=TEN))

    assert only(events, RunEnd).answer == "done"
    assert tool.runs == [{"n": n} for n in range(1, 13)]
    assert await compressions(bench)


async def test_nothing_is_compressed_while_a_person_is_asked(bench: Bench) -> None:
    change, model = RecordingTool("change"), Worker(12)
    engine = bench.engine(model, [look(), change])
    await request(engine, "goal")
    model._tool, model._calls, model.steps = "change", 1, count(1)
    events = await request(engine, "change it")
    before = await engine.trace("s")

    engine.set_compression_threshold(10, 0.001)
    await request(engine)
    await request(engine, "and?")

    assert only(events, HITLPending).tasks
    assert (await engine.trace("s")).messages == before.messages
    assert await compressions(bench) == []
    session = await engine.session("s")
    await HITL.approve(session, (await HITL.get_pending_tasks(session))[0], by="U2")
    await request(engine)
    assert await compressions(bench)
    assert change.runs == [{"n": 1}]


# -- thresholds --------------------------------------------------------------------------------------------------------


async def test_the_engines_own_compression_has_the_defaults_of_the_harness(bench: Bench) -> None:
    engine = bench.engine(ScriptedModel(), model_retries=4)
    limits = engine.compression_interceptor.limits

    assert (limits.max_messages, limits.max_context_ratio, limits.max_retries) == (100, 0.75, 4)
    assert engine.compression_interceptor.strategy is not None
    alone = ContextCompressionInterceptor()
    assert (alone.limits.max_messages, alone.limits.max_context_ratio, alone.strategy) == (15, 0.75, None)
    assert bench.engine(ScriptedModel(), compression_interceptor=alone).compression_interceptor is alone


async def test_thresholds_can_be_changed_while_sessions_live(bench: Bench) -> None:
    engine = bench.engine(Worker(12), [look()])

    engine.set_compression_threshold(10)
    await request(engine, "goal")

    assert await compressions(bench)
    assert engine.compression_interceptor.limits.max_context_ratio == 0.75
    engine.set_compression_threshold(max_context_ratio=0.5)
    assert engine.compression_interceptor.limits.max_messages == 10
    with pytest.raises(ConfigError):
        engine.set_compression_threshold(max_context_ratio=0)
    assert engine.compression_interceptor.limits.max_context_ratio == 0.5


async def test_a_small_window_keeps_requests_below_the_threshold(bench: Bench) -> None:
    model = Worker(12)
    tool = look(lambda args: f"{args['n']} " + "word " * 400)

    events = await request(bench.engine(model, [tool], context_length=4_000), "goal")

    assert only(events, RunEnd).answer == "done"
    assert await compressions(bench)
    assert all((e.tokens or 0) <= 3_000 for e in events if isinstance(e, ContextSize))


async def test_the_window_that_a_model_tells_is_used(bench: Bench) -> None:
    model = Worker(12)
    model.context_length = 4_000  # type: ignore[attr-defined]
    tool = look(lambda args: f"{args['n']} " + "word " * 400)

    await request(bench.engine(model, [tool]), "goal")

    assert await compressions(bench)


async def test_a_huge_result_keeps_its_head_and_tail_in_requests_and_stays_whole_in_the_journal(bench: Bench) -> None:
    model = Worker(1)
    tool = look(lambda args: "first " + "word " * 20_000 + "last")
    compression = ContextCompressionInterceptor(10, per_message_cap=500)

    await request(bench.engine(model, [tool], compression_interceptor=compression), "goal")

    sent = model.requests[-1].messages[-1].content
    assert sent.startswith("first")
    assert sent.endswith("last")
    assert len(sent) < 3_000
    assert any(len(m.content) > 90_000 for m in fold(await bench.store.read("s")).messages)


async def test_what_is_always_sent_being_too_large_is_said_after_two_passes(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    model = Worker(12)
    engine = bench.engine(
        model,
        [look(lambda args: "word " * 300)],
        system_prompt="word " * 5_000,
        context_length=4_000,
        compression_interceptor=ContextCompressionInterceptor(100),
    )

    with caplog.at_level(logging.WARNING):
        events = await request(engine, "goal")

    assert only(events, RunEnd).answer == "done"
    made = await compressions(bench)
    assert len(made) == 2
    assert all("alone" in fact.why and not fact.fits for fact in made)
    assert len([r.message for r in caplog.records if "in vain" in r.message]) == 1


# -- the model refuses -------------------------------------------------------------------------------------------------


class Narrow(Worker):
    """Refuses what has more characters than its window, as a provider does whose window nobody knows."""

    def __init__(self, calls: int, window: int) -> None:
        super().__init__(calls)
        self.window = window
        self.refused: list[int] = []

    def _say(self, sent: ModelRequest) -> Any:
        if not summarising(sent) and (size := sum(len(m.content) for m in sent.messages)) > self.window:
            self.refused.append(size)
            return ModelError("overflow", "context_length_exceeded")
        return super()._say(sent)


async def test_refused_as_too_long_the_context_is_made_shorter_at_once_and_asked_again(bench: Bench) -> None:
    model, tool = Narrow(12, 6_000), look(lambda args: f"{args['n']} " + "word " * 200)

    events = await request(bench.engine(model, [tool]), "goal")

    assert only(events, RunEnd).answer == "done"
    assert tool.runs == [{"n": n} for n in range(1, 13)]
    made = await compressions(bench)
    assert {fact.forced for fact in made} >= {1}
    assert all("refused" in fact.why for fact in made)
    assert all(paired(sent) for sent in model.requests)


async def test_refused_again_and_again_it_says_so_clearly(bench: Bench) -> None:
    tool = look(lambda args: f"{args['n']} " + "word " * 200)
    model = Narrow(12, 10**9)
    engine = bench.engine(model, [tool])
    await request(engine, "goal")
    model.window, asked = 10, len(model.asked_to_work)

    end = only(await request(engine, "and now?"), RunEnd)

    assert end.status == "failed"
    assert "too long for the model" in end.answer
    assert "context_length_exceeded" in end.answer
    assert len(model.asked_to_work) - asked <= MOST_FORCED + 1
    sizes = model.refused
    assert all(one > other for one, other in pairwise(sizes))


async def test_a_first_message_that_is_too_long_is_said_at_once(bench: Bench) -> None:
    model = Narrow(0, 100)

    end = only(await request(bench.engine(model), "word " * 100), RunEnd)

    assert end.status == "failed"
    assert "nothing left to leave out" in end.answer
    assert len(model.requests) == 1


async def test_after_that_the_session_can_be_used_again(bench: Bench) -> None:
    model = Narrow(0, 10_000)
    engine = bench.engine(model)
    assert only(await request(engine, "word " * 4_000), RunEnd).status == "failed"

    events = await request(engine, "short")

    # What was too long is not the goal any more, so it loses its middle, and the answer comes.
    assert only(events, RunEnd).status == "completed"


async def test_a_run_that_was_compressed_is_taken_over_like_any_other(bench: Bench) -> None:
    class Dies(RecordingTool):
        async def run(self, args: Any, context: Any) -> Any:
            if args["n"] == 8 and len(self.runs) == 7:
                self.runs.append(args)
                raise asyncio.CancelledError
            return await super().run(args, context)

    tool = Dies("look", read_only=True, repeatable=True, result=lambda args: f"saw {args['n']}")
    model = Worker(12)
    engine = bench.engine(model, [tool], compression_interceptor=TEN)
    work = asyncio.create_task(request(engine, "goal"))
    await until(lambda: _ran(tool, 8))
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await bench.drop()

    events: list[Event] = await request(bench.engine(model, [tool], compression_interceptor=TEN))

    assert only(events, RunStart).resumed
    assert only(events, RunEnd).answer == "done"
    assert "ContextCompressed" in await stored(bench.store)
    assert (await bench.engine(model).trace("s")) == fold(await bench.store.read("s"))


async def _ran(tool: RecordingTool, times: int) -> bool:
    return len(tool.runs) >= times
