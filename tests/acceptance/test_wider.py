"""*Always allow here…* for administrators: this channel, or a prefix, with what it would have let run so far."""

from __future__ import annotations

from pathlib import Path

from bot.facts import StandingRuleAdded
from bot.local import people
from harness_core.events import HITLSubmitted, RuleChanged
from harness_core.ports import ModelRequest
from harness_core.testing import RecordingTool, ScriptedModel, call
from tests.acceptance.desk import Desk, Message, buttons, reading, shown
from tests.acceptance.test_settings import command


def bash() -> RecordingTool:
    return RecordingTool("bash")


def run(text: str) -> list[object]:
    return [call("bash", command=text)]


def option(form: Message, block: str, text: str) -> str:
    """The value of the choice that begins with this text."""
    element = next(b["element"] for b in form["blocks"] if b.get("block_id") == block)
    return next(str(o["value"]) for o in element["options"] if o["text"]["text"].startswith(text))


def asked(request: ModelRequest) -> list[object]:
    """A model that runs what it is told."""
    return run(request.messages[-1].content)


async def opened(desk: Desk, ts: str, number: int = 1) -> Message:
    assert (await desk.click(await desk.card(ts, number), "always")).ok
    return await desk.form()


async def test_an_administrator_may_allow_the_call_in_the_whole_channel(tmp_path: Path) -> None:
    tool, model = bash(), ScriptedModel(run("npm test"), "done")
    async with Desk(tmp_path, model, [tool]) as desk:
        form = await opened(desk, await desk.ask("go"))

        assert (await desk.slack.submit(people.ADA, {"where": option(form, "where", "In this channel")})).ok

        await desk.answer(await desk.ask("go"), "done")
        assert [args["command"] for args in tool.runs] == ["npm test"] * 2
        listed = await command(desk, "rules")
        assert '*allow* bash `{"command":"npm test"}` · in this channel, by' in listed
        assert buttons(await desk.card(await desk.ask("go", channel=people.OPS), channel=people.OPS))


async def test_a_prefix_is_offered_with_what_it_would_have_let_run(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel(asked, "done"), ["bash"]) as desk:
        for text in ("just lint -- --fix", "just lint -- src"):
            ts = await desk.ask(text)
            await desk.click(await desk.card(ts), "approve")
            await desk.answer(ts, "done")
        ts = await desk.ask("just lint")
        form = await opened(desk, ts)

        assert "just lint *" in shown(form)
        assert (
            "newest 3 calls recorded in this channel, 1 is exactly this. What begins so would have let 3 run:"
            in reading(form)
        )
        assert "1 × just lint -- --fix" in shown(form)
        values = {"where": "channel", "what": option(form, "what", "Whatever begins")}
        assert (await desk.slack.submit(people.ADA, values)).ok
        await desk.answer(ts, "done")

        await desk.answer(await desk.ask("just lint -- x"), "done")
        assert "it redirects to “out”" in reading(await desk.card(await desk.ask("just lint > out")))
        facts = await desk.bot.store.read("config:workspace")
        (rule,) = [fact for fact in facts if isinstance(fact, StandingRuleAdded)]
        (decision,) = await desk.facts(ts, HITLSubmitted)
        assert (str(rule.rule), rule.by, rule.channel) == ("allow bash just lint *", people.ADA, people.GENERAL)
        assert rule.card == decision.fingerprint


async def test_a_prefix_may_hold_in_this_thread_alone(tmp_path: Path) -> None:
    model = ScriptedModel(run("just test"), "one", run("just test -- -x"), "two", run("just test -- -x"))
    async with Desk(tmp_path, model, ["bash"]) as desk:
        ts = await desk.ask("go")
        form = await opened(desk, ts)
        assert (await desk.slack.submit(people.ADA, {"what": option(form, "what", "Whatever begins")})).ok
        await desk.answer(ts, "one")

        await desk.ask("more", thread=ts)

        await desk.answer(ts, "two")
        rules = [str(fact.rule) for fact in await desk.facts(ts, RuleChanged)]
        assert rules == ['allow bash {"command":"just test"}', "allow bash just test *"]
        assert buttons(await desk.card(await desk.ask("elsewhere")))


async def test_no_prefix_is_offered_for_what_runs_or_sends_or_deletes_anything(tmp_path: Path) -> None:
    never = ["python3 x.py", "git push origin", "rm -rf build", "sudo npm test", "npm test > out"]
    async with Desk(tmp_path, ScriptedModel(asked), [bash()]) as desk:
        for text in never:
            assert (await desk.click(await desk.card(await desk.ask(text)), "always")).ok
            form = (await desk.slack.wait_for(lambda s, t=text: [v for v in s.views(people.ADA) if shown(v) == t]))[0]

            assert [b["block_id"] for b in form["blocks"] if b["type"] == "input"] == ["where"]


async def test_who_decides_without_administering_is_offered_nothing_wider_and_cannot_send_it(tmp_path: Path) -> None:
    tool, model = bash(), ScriptedModel(run("npm test"), "done")
    async with Desk(tmp_path, model, [tool], approvers=frozenset({people.CLEO})) as desk:
        ts = await desk.ask("go")
        card = await desk.card(ts)
        form = await opened(desk, ts)  # an administrator's, to learn what would have to be sent
        await desk.click(card, "always", people.CLEO)
        own = await desk.form(people.CLEO)
        assert [b for b in own["blocks"] if b["type"] == "input"] == []

        state = {
            "where": {"where": {"type": "radio_buttons", "selected_option": {"value": "channel"}}},
            "what": {"what": {"selected_option": {"value": option(form, "what", "Whatever begins")}}},
        }
        told = await forged(desk, own, people.CLEO, state)

        assert "Only administrators" in told
        assert tool.runs == []
        assert await desk.facts(ts, HITLSubmitted) == []


async def test_what_the_form_did_not_offer_decides_nothing(tmp_path: Path) -> None:
    tool, model = bash(), ScriptedModel(run("npm test"), "done")
    async with Desk(tmp_path, model, [tool]) as desk:
        ts = await desk.ask("go")
        for value, told in (("prefixes:" + "0" * 16, "offered no more"), ("everything", "could not read")):
            form = await opened(desk, ts)

            answer = await forged(desk, form, people.ADA, {"what": {"what": {"selected_option": {"value": value}}}})

            assert told in answer
        assert tool.runs == []
        assert await desk.facts(ts, HITLSubmitted) == []


async def forged(desk: Desk, form: Message, user: str, values: dict[str, object]) -> str:
    """What a submission that no form could make comes to: what is told instead, "" if it counts."""
    from bot.inbound import parse
    from bot.listeners import _submitted

    view = {**form, "state": {"values": values}}
    payload = {"type": "view_submission", "api_app_id": desk.bot.us.app_id, "user": {"id": user}, "view": view}
    heard = parse(payload, desk.bot.us)
    return str(await _submitted(heard, desk.bot.inbox))
