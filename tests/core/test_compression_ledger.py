"""A session that is read from its last compression on is the session that is read from its beginning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.codec import Codec
from harness_core.compression.limits import Limits
from harness_core.compression.plan import compressed, plan
from harness_core.compression.room import Context
from harness_core.compression.shape import sized, whole
from harness_core.events import (
    RECENT,
    ContextCompressed,
    Event,
    HITLDecided,
    HookRuled,
    ModelFailed,
    PolicyInForce,
    PromptAmended,
    Prompted,
    PromptHeard,
    ReasonEnd,
    RuleChanged,
    RunEnd,
    RunStart,
    StopRequested,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import Approve, Reject
from harness_core.permissions.rule import PermissionRule
from harness_core.session import Folder, Trace, fold
from harness_core.testing import ended, history, pending, reasoned, submitted, task, tool_call
from harness_core.types import Usage

MOVES = [
    "prompt",
    "amend",
    "withdraw",
    "reason",
    "reason",
    "act",
    "act",
    "act",
    "ask",
    "fail",
    "rule",
    "unrule",
    "hear",
    "nudge",
    "nudge",
    "limit",
    "refuse",
    "block",
    "hire",
    "lose",
    "pause",
    "end",
    "stop",
    "take over",
]


@st.composite
def histories(draw: st.DrawFn) -> tuple[Event, ...]:
    """Sessions as an engine may write them: prompts and rules at any time, the rest in the order of runs."""
    facts: list[Event] = [Prompted("first", "U1", ref="p0")]
    running, batch, runs = False, 0, 0
    for n in range(draw(st.integers(0, 40))):
        move = draw(st.sampled_from(MOVES))
        if move in ("prompt", "amend", "withdraw", "rule", "unrule"):
            facts.append(_anytime(move, n))
        elif move == "block":
            runs += not running
            facts += _blocked(n, len(facts), "" if running else f"r{runs}")
            running = False
        elif not running:
            runs += 1
            facts.append(RunStart(f"r{runs}", requested_by="U1"))
            running = True
        elif move == "take over":
            facts.append(RunStart(f"r{runs}", attempt=2, resumed=True))
        elif move == "reason":
            batch += 1
            facts.append(_message(n, 0))
        elif move == "act":
            facts += _settled(n, draw(st.integers(1, 3)))
        elif move == "ask":
            facts += _decided(n, draw(st.booleans()))
        elif move == "hear":
            facts += [Prompted(f"said {n}", "U2", ref=f"h{n}"), PromptHeard(len(facts) + 1, f"heard {n}")]
        elif move == "nudge":
            facts.append(HookRuled("before_model", "h", "drift", "Inject", "why", n, "", {"text": f"note {n}"}))
        elif move == "limit":
            facts.append(HookRuled("after_model", "h", "budget", "Stop", "", n, "", {"answer": "so", "limit": "x"}))
        elif move == "refuse":
            facts += _refused(n)
        elif move == "hire":
            facts += _hired(n, draw(st.booleans()))
        elif move == "lose":
            facts += _lost(n, f"r{runs}")
        elif move == "pause":
            facts += [PolicyInForce(f"p{n}"), RunStart(f"r{runs}", resumed=True, policy_digest=f"q{n}")]
        elif move == "fail":
            facts.append(ModelFailed("server", 1, 1, "busy"))
        elif move == "stop":
            facts += [StopRequested(f"r{runs}", "U2"), RunEnd("stopped")]
            running = False
        else:
            facts.append(RunEnd("completed", f"answer {n}"))
            running = False
    if running and draw(st.booleans()):
        facts += [open_batch := _message(99, 2), ToolCallStart(open_batch.calls[0]), pending(open_batch.calls[1])]
    return history(*facts)


def _anytime(move: str, n: int) -> Event:
    rule = PermissionRule.allow("change", str(n % 3))
    made: dict[str, Event] = {
        "prompt": Prompted(f"prompt {n}", "U2", sent_at=float(n % 5), ref=f"p{n}"),
        "amend": PromptAmended(f"p{n - 1}", f"amended {n}"),
        "withdraw": PromptAmended(f"p{n - 2}"),
        "rule": RuleChanged("added", rule),
        "unrule": RuleChanged("removed", rule),
    }
    return made[move]


def _message(n: int, calls: int) -> ReasonEnd:
    made = tuple(tool_call("change", uuid=f"c{n}-{i}", n=n % 4) for i in range(calls))
    return replace(reasoned(f"said {n}", *made), usage=Usage(10, 1, cost=0.5 if n % 2 else None))


def _refused(n: int) -> list[Event]:
    message = _message(n, 1)
    (made,) = message.calls
    ruling = HookRuled("before_tool", "h", "drift", "Deny", "no", n, made.call_uuid, escape_key=f"k{n % 2}")
    return [message, ruling, ended(made, "Denied: no", "denied")]


def _blocked(n: int, before: int, begins: str) -> list[Event]:
    """A prompt that a hook blocks, with one after it. before: how many facts there are. begins: a run, or none."""
    told = {"answer": "no", "limit": "", "prompt": before + 1}
    ruling = HookRuled("user_prompt", "h", "drift", "Stop", "no", n, "", told)
    prompts: list[Event] = [Prompted(f"bad {n}", "U2", ref=f"b{n}"), Prompted(f"good {n}", "U3", ref=f"g{n}")]
    return [*prompts, *([RunStart(begins)] if begins else []), ruling, RunEnd("stopped", "no")]


def _hired(n: int, rejected: bool) -> list[Event]:
    """A call that a sub-agent works on, and a question of its."""
    message = _message(n, 1)
    (made,) = message.calls
    inner = tool_call("change", uuid=f"k{n}", n=n % 4)
    asks = task(inner, run_id="", session=f"s/{made.call_uuid}", agent="worker")
    decision: Any = Reject("no", end=False) if rejected else Approve()
    end = ended(inner, "Rejected", "rejected") if rejected else ended(inner)
    return [
        message,
        ToolCallStart(made, child=f"s/{made.call_uuid}"),
        pending(asks),
        submitted(asks, decision),
        RunStart("r", resumed=True),
        HITLDecided(inner.call_uuid, "change", decision),
        end,
        replace(ended(made, f"the agent says {n}"), usage=Usage(100, 10, cost=1.0)),
    ]


def _lost(n: int, run: str) -> list[Event]:
    """A batch in which a process died: nobody knows of one call, and the other was never started."""
    message = _message(n, 2)
    one, other = message.calls
    return [
        message,
        ToolCallStart(one),
        RunStart(run, attempt=2, resumed=True),
        ended(one, "Unknown", "unknown"),
        ended(other, "Not run", "not_run"),
    ]


def _settled(n: int, calls: int) -> list[Event]:
    message = _message(n, calls)
    ends = [e for made in message.calls for e in (ToolCallStart(made), ended(made, f"result {n % 3}"))]
    return [message, *ends]


def _decided(n: int, rejected: bool) -> list[Event]:
    message = _message(n, 1)
    (made,) = message.calls
    decision: Any = Reject("no", end=False) if rejected else Approve()
    asked = [message, pending(made, run_id=""), submitted(made, decision, run_id="")]
    if rejected:
        return [
            *asked,
            RunStart("r", resumed=True),
            HITLDecided(made.call_uuid, "change", decision),
            ended(made, "Rejected", "rejected"),
        ]
    return [*asked, RunStart("r", resumed=True), ToolCallStart(made), ended(made)]


def compression_at(facts: tuple[Event, ...], limits: Limits | None = None) -> ContextCompressed | None:
    """What an engine would write after these facts; None while a batch is open."""
    folder = Folder()
    for fact in facts:
        folder.add(fact)
    trace = folder.trace()
    if trace.batch:
        return None
    messages, goal, cut = trace.messages, trace.goal, 0
    context = Context(messages, lambda m: sized(m, len), len, goal)
    if limits and (made := plan(context, limits)):
        (messages, goal), cut = compressed(context, made, "in short"), made.cut
    fact = ContextCompressed(cut, messages, folder.ledger(), "test", goal)
    kind, body = Codec().encode(fact)
    at = facts[-1].at if facts else 1.0
    read = Codec().decode(kind, body, session_id="s", seq=len(facts) + 1, at=at, run_id="", key=None)
    assert isinstance(read, ContextCompressed)
    return read


def _about(fact: Event, place: Callable[[int], int]) -> Any:
    """A ruling on a prompt, which lies elsewhere now."""
    if not isinstance(fact, HookRuled) or "prompt" not in fact.payload:
        return fact
    return replace(fact, payload={**fact.payload, "prompt": place(fact.payload["prompt"])})


def moved(facts: tuple[Event, ...]) -> list[Event]:
    """The facts after a compression, each one place further on, as they would lie in that journal."""
    later: list[Event] = []
    first = (facts[0].seq or 0) if facts else 0
    for fact in facts:
        # What they point at has not moved, but for what lies behind the compression; both count the same prompts.
        upto = {"upto": fact.upto + 1} if isinstance(fact, ReasonEnd | ModelFailed) else {}
        behind = isinstance(fact, PromptHeard) and fact.prompt >= (facts[0].seq or 0)
        prompt = {"prompt": getattr(fact, "prompt", 0) + 1} if behind else {}
        later.append(replace(_about(fact, lambda seq: seq + (seq >= first)), seq=(fact.seq or 0) + 1, **upto, **prompt))
    return later


def apart_from_messages(trace: Trace) -> Trace:
    """Everything but the messages and what is settled, and without the places, which one fact more has shifted."""
    run = trace.run and replace(
        trace.run,
        takeovers=0,
        compressed=0,
        futile=0,
        began=0,
        upto=0,
        last=trace.run.last and replace(trace.run.last, seq=None, upto=0),
        failures=tuple(replace(f, seq=None, upto=0) for f in trace.run.failures),
        stop=trace.run.stop and replace(trace.run.stop, seq=None),
    )
    batch = tuple(
        replace(
            c,
            submitted=c.submitted and replace(c.submitted, seq=None),
            started=c.started and replace(c.started, seq=None),
        )
        for c in trace.batch
    )
    inbox = tuple(replace(p, seq=None) for p in trace.inbox)
    heard = tuple(0 for _ in trace.heard)
    return replace(trace, messages=(), goal=None, seq=0, run=run, inbox=inbox, batch=batch, settled=(), heard=heard)


@settings(max_examples=150, deadline=None)
@given(histories(), st.data())
def test_read_from_any_cut_it_is_the_same_but_for_the_messages(facts: tuple[Event, ...], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(facts)))
    made = compression_at(facts[:cut], Limits(max_messages=10))
    if made is None:
        return
    tail = moved(facts[cut:])

    opened = fold([made, *tail])

    assert apart_from_messages(opened) == apart_from_messages(fold(facts))
    assert opened == fold([*facts[:cut], made, *tail]), "whether or not the facts before were read"


@settings(max_examples=150, deadline=None)
@given(histories(), st.data())
def test_a_compression_that_keeps_every_message_changes_none(facts: tuple[Event, ...], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(facts)))
    made = compression_at(facts[:cut])
    if made is None:
        return

    opened = fold([made, *moved(facts[cut:])])

    assert opened.messages == fold(facts).messages
    assert opened.goal == fold(facts).goal
    assert opened.context == fold(facts).context


def test_what_was_edited_before_a_compression_is_a_new_question_after_it() -> None:
    """Its run ends before the model was asked for the edit; whether or not the context was shortened in between."""
    facts = history(Prompted("first", "U1", ref="p0"), RunStart("r"), PromptAmended("p0", "amended"), RunEnd("failed"))
    made = compression_at(facts[:3])
    assert made is not None

    opened = fold([made, *moved(facts[3:])])

    assert [prompt.text for prompt in opened.inbox] == ["amended"]
    assert opened.messages == fold(facts).messages == ()


@settings(max_examples=100, deadline=None)
@given(histories(), st.data())
def test_compressed_again_and_again_it_stays_valid_and_loses_nothing_else(
    facts: tuple[Event, ...], data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(facts)), max_size=4).map(sorted))
    journal: list[Event] = []
    placed: dict[int, int] = {}
    for at in range(len(facts) + 1):
        for _ in range(cuts.count(at)):
            if made := compression_at(tuple(journal), Limits(max_messages=10)):
                journal.append(made)
        if at < len(facts):
            shift = len(journal) - at
            fact = _about(facts[at], placed.__getitem__)
            upto = {"upto": fact.upto + shift} if isinstance(fact, ReasonEnd | ModelFailed) else {}
            prompt = {"prompt": placed[fact.prompt]} if isinstance(fact, PromptHeard) else {}
            placed[at + 1] = len(journal) + 1
            journal.append(replace(fact, seq=len(journal) + 1, **upto, **prompt))
    last = max((i for i, f in enumerate(journal) if isinstance(f, ContextCompressed)), default=0)

    opened = fold(journal[last:])

    assert opened == fold(journal)
    assert apart_from_messages(opened) == apart_from_messages(fold(facts))
    assert whole(opened.messages) == opened.messages


def test_the_goal_is_the_prompt_that_the_run_began_with() -> None:
    facts = history(
        Prompted("old", "U1"), RunStart("r1"), reasoned("done"), RunEnd("completed", "done"),
        Prompted("new", "U1"), Prompted("and this", "U1"), RunStart("r2"), reasoned(tool_call("look")),
    )  # fmt: skip

    assert fold(facts[:7]).goal is None, "nobody has read it yet"
    now = fold(facts)
    assert now.goal is not None
    assert now.messages[now.goal].content == "new"


def test_the_newest_results_are_remembered_and_no_more() -> None:
    calls = [tool_call("look", uuid=f"c{n}", n=n) for n in range(RECENT + 5)]
    facts = [Prompted("go"), RunStart("r"), *(f for c in calls for f in (reasoned(c), ended(c, "same")))]

    run = fold(history(*facts)).run

    assert run is not None
    assert len(run.recent) == RECENT
    assert len({done.effect for done in run.recent}) == RECENT
    assert len({done.result for done in run.recent}) == 1
    assert (run.recent[-1].tool, run.recent[-1].step) == ("look", RECENT + 5)


def test_a_compression_that_was_in_vain_is_counted_until_one_is_not() -> None:
    facts = list(history(Prompted("go"), RunStart("r"), reasoned(tool_call("look")), ToolCallEnd("c1", "x")))
    seen = []
    for fits in (False, False, True, False):
        made = compression_at(tuple(facts))
        assert made is not None
        facts.append(replace(made, fits=fits))
        run = fold(facts).run
        assert run is not None
        seen.append((run.futile, run.compressed == len(facts)))

    assert seen == [(1, True), (2, True), (0, True), (1, True)]


@pytest.mark.parametrize("cost", [None, 0.25])
def test_what_a_summary_costs_is_counted_once(cost: float | None) -> None:
    facts = history(Prompted("go"), RunStart("r"), replace(reasoned("x"), usage=Usage(10, 1, 0, 0.5)))
    made = compression_at(facts)
    assert made is not None

    costly = replace(made, usage=Usage(100, 20, 0, cost))

    expected = Usage(110, 21, 0, 0.5 + (cost or 0))
    assert fold([costly]).usage == fold([*facts, costly]).usage == expected
