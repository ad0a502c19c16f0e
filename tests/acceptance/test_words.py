"""The words that a thread understands, and the slash command."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.local import people
from harness_core.errors import ModelError
from harness_core.events import HITLSubmitted, RunEnd, StopRequested
from harness_core.hitl import Approve, Reject, fingerprint
from harness_core.ports import ProposedCall
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, buttons, reading, value_of


async def waiting(desk: Desk, user: str = people.ADA) -> tuple[str, str]:
    """A thread in which a card waits, and the card's six digits."""
    ts = await desk.ask("change it", user)
    card = await desk.card(ts)
    short = value_of(card, "approve").rpartition("|")[2][:6]
    assert f"#{short}" in reading(card)
    return ts, short


def desk_of(tmp_path: Path, **more: object) -> Desk:
    return Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [RecordingTool("change")], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("word", ["!approve {}", "!APPROVE #{}", "  !approve {}  ", "@harness !approve {}"])
async def test_a_typed_approval_counts_like_a_click(tmp_path: Path, word: str) -> None:
    async with desk_of(tmp_path) as desk:
        ts, short = await waiting(desk)

        await desk.say(word.format(short), thread=ts)

        await desk.answer(ts, "done")
        [fact] = await desk.facts(ts, HITLSubmitted)
        assert (fact.decision, fact.via) == (Approve(), "word")
        await desk.slack.wait_for(lambda s: not s.world.hub.pending)
        assert desk.notices(people.ADA) == []


async def test_a_typed_rejection_takes_its_reason_as_it_stands(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        ts, short = await waiting(desk)

        await desk.say(f"!reject {short} not && now,  <please>", thread=ts)

        await desk.answer(ts, "rejected it, so I stopped here")
        [fact] = await desk.facts(ts, HITLSubmitted)
        assert fact.decision == Reject("not && now,  <please>")


@pytest.mark.parametrize("said", ["yes", "approve", "ok, go", "y", "+1", "lgtm", "do it", "/approve", "approved"])
async def test_a_plain_yes_approves_nothing(tmp_path: Path, said: str) -> None:
    async with desk_of(tmp_path) as desk:
        ts, _ = await waiting(desk)

        await desk.say(said, thread=ts)

        await desk.told(people.ADA, "read after the decision")
        await desk.settled()
        assert await desk.facts(ts, HITLSubmitted) == []


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("!approve", "Which one?"),
        ("!approve all", "Which one?"),
        ("!approve 000000", "no such task"),
        ("!approve {} but only once", "takes the id and nothing else"),
        ("!reject", "Which one?"),
    ],
)
async def test_a_word_that_decides_nothing_says_why(tmp_path: Path, word: str, told: str) -> None:
    async with desk_of(tmp_path) as desk:
        ts, short = await waiting(desk)

        await desk.say(word.format(short), thread=ts)

        await desk.told(people.ADA, told)
        assert await desk.facts(ts, HITLSubmitted) == []


async def test_a_word_for_another_threads_task_decides_nothing(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        ts, short = await waiting(desk)
        other, _ = await waiting(desk)

        await desk.say(f"!approve {short}", thread=other)

        await desk.told(people.ADA, "no such task in this thread")
        assert await desk.facts(ts, HITLSubmitted) == []


def alike(run_id: str, step: int) -> list[ProposedCall]:
    """Two calls of one message whose fingerprints begin with the same six digits."""
    first = {fingerprint(run_id, f"{run_id}-{step}-1", 0, "change", {"n": n})[:6]: n for n in range(20_000)}
    for m in range(20_000):
        short = fingerprint(run_id, f"{run_id}-{step}-2", 0, "change", {"n": m})[:6]
        if short in first:
            return [call("change", n=first[short]), call("change", n=m)]
    raise AssertionError("four hundred million pairs, and none of them alike")


async def test_an_id_that_fits_two_tasks_is_refused_and_more_digits_decide(tmp_path: Path) -> None:
    look, change = RecordingTool("look", read_only=True), RecordingTool("change")
    model = ScriptedModel(call("look"), lambda _: alike(look.contexts[0].call_uuid.partition("-")[0], 2), "done")
    async with Desk(tmp_path, model, [look, change]) as desk:
        ts = await desk.ask("change both")
        second = value_of(await desk.card(ts, 2), "approve").rpartition("|")[2]
        first = value_of(desk.cards(ts)[0], "approve").rpartition("|")[2]
        assert first[:6] == second[:6]
        enough = next(n for n in range(7, 64) if first[:n] != second[:n])

        await desk.say(f"!approve {first[:6]}", thread=ts)
        told = await desk.told(people.ADA, "More than one task begins with these digits")
        assert f"`{first[:enough]}`, `{second[:enough]}`" in told
        assert await desk.facts(ts, HITLSubmitted) == []
        await desk.say(f"!approve {second[:enough]}", thread=ts)

        await desk.card(ts, 2, showing="Approved by")
        assert buttons(desk.cards(ts)[0]) != []


async def test_stop_kills_what_runs_and_says_so_and_puts_aside_what_waited(tmp_path: Path) -> None:
    change = RecordingTool("change", hold=asyncio.Event())
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change]) as desk:
        ts = await desk.ask("change it")
        await desk.click(await desk.card(ts), "approve")
        await change.started.reach(1)
        await desk.ask("then this", people.BEN, thread=ts)
        await desk.told(people.BEN, "read as soon as the step at hand is done")

        await desk.say("!stop", thread=ts)

        await desk.answer(ts, f"<@{people.ADA}> stopped this run")
        await desk.told(people.BEN, "put aside")
        await desk.card(ts, showing="outcome unknown")
        await desk.settled()
        assert change.killed == 1
        assert [end.status for end in await desk.facts(ts, RunEnd)] == ["stopped"]
        assert len(desk.texts(ts)) == 1


async def test_that_a_message_was_put_aside_is_told_once_though_the_thread_cannot_be_shown_yet(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        ts, _ = await waiting(desk)
        await desk.ask("then this", people.BEN, thread=ts)
        await desk.told(people.BEN, "read after the decision")
        desk.slack.fail("chat.update", error="restricted_action", times=99)

        await desk.say("!stop", thread=ts)
        await desk.told(people.BEN, "put aside")
        before = desk.calls("chat.update")
        await desk.say("!status", thread=ts)  # looks at the thread once more
        await desk.slack.wait_for(lambda _: desk.calls("chat.update") > before)
        await desk.settled()

        assert sum("put aside" in notice for notice in desk.notices(people.BEN)) == 1


async def test_stop_closes_the_card_that_waits(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        ts, _ = await waiting(desk)

        await desk.ask("!stop", thread=ts)  # a mention: it comes twice

        closed = await desk.card(ts, showing="Closed")
        assert buttons(closed) == []
        await desk.slack.wait_for(lambda s: not s.world.hub.pending)
        assert len(await desk.facts(ts, StopRequested)) == 1
        assert desk.notices(people.ADA) == []


async def test_slacks_own_stop_button_stops_the_run_too(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        ts, _ = await waiting(desk)
        pressed = {"type": "agent_session_stopped", "channel": people.GENERAL, "thread_ts": ts, "user": people.ADA}

        desk.slack.world.emit({**pressed, "event_ts": ts}, people.GENERAL)

        await desk.answer(ts, f"<@{people.ADA}> stopped this run")
        await desk.card(ts, showing="Closed")


async def test_a_stop_that_comes_again_stops_no_later_run(tmp_path: Path) -> None:
    model = ScriptedModel(call("change", a=1), call("change", a=2), "done")
    async with Desk(tmp_path, model, [RecordingTool("change")]) as desk:
        ts = await desk.ask("change it")
        await desk.card(ts)
        stop = await desk.say("!stop", thread=ts)
        await desk.card(ts, showing="Closed")
        await desk.say("then the other one", thread=ts)
        card = await desk.card(ts, 2)

        await desk.reborn()  # nothing remembers the message
        desk.slack.replay(stop)

        await desk.slack.wait_for(lambda s: not s.world.hub.pending)
        await desk.settled()
        assert len(await desk.facts(ts, StopRequested)) == 1
        assert reading(desk.cards(ts)[1]) == reading(card)


async def test_stop_where_nothing_runs_says_so(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("done"), []) as desk:
        ts = await desk.ask("hello")
        await desk.answer(ts, "done")
        await desk.settled()

        await desk.say("!stop", thread=ts)

        await desk.told(people.ADA, "Nothing is running in this thread")


async def test_status_lists_what_waits_with_its_ids(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        ts, short = await waiting(desk)
        await desk.say("and then?", thread=ts)
        await desk.told(people.ADA, "read after the decision")

        await desk.ask("!status", thread=ts)

        told = await desk.told(people.ADA, "Waiting for a decision on")
        assert f"`#{short}`" in told
        assert "1 more message will be read" in told
        await desk.slack.wait_for(lambda s: not s.world.hub.pending)
        assert len([t for t in desk.notices(people.ADA) if "Waiting for" in t]) == 1


async def test_a_bare_mention_gets_help(tmp_path: Path) -> None:
    async with desk_of(tmp_path) as desk:
        await desk.say("@harness", people.BEN)

        await desk.told(people.BEN, "Mention me with what you want done")


async def test_an_approval_by_word_is_refused_for_an_unknown_outcome(tmp_path: Path) -> None:
    change = RecordingTool("change", hold=asyncio.Event())
    async with Desk(tmp_path, ScriptedModel(call("change", a=1), "done"), [change]) as desk:
        ts, _ = await waiting(desk)
        await desk.click(desk.cards(ts)[0], "approve")
        await change.started.reach(1)
        await desk.reborn()
        card = await desk.card(ts, 2)
        short = value_of(card, "rerun").rpartition("|")[2][:6]

        await desk.say(f"!approve {short}", thread=ts)

        await desk.slack.wait_for(lambda _: desk.notices(people.ADA))
        assert len(change.runs) == 1
        assert len(await desk.facts(ts, HITLSubmitted)) == 1


async def test_a_run_that_failed_before_its_model_said_anything_is_over(tmp_path: Path) -> None:
    model = ScriptedModel(ModelError("auth", "the key is wrong"))
    async with Desk(tmp_path, model, []) as desk:
        ts = await desk.ask("change it")
        await desk.answer(ts, "the key is wrong")

        await desk.say("!status", thread=ts)

        assert await desk.told(people.ADA, "running") == "Nothing is running in this thread."
