"""Rules from Slack and from the policy file: who makes them, where they hold, and what becomes of cards that wait."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bot.local import people
from harness_core.events import HITLSubmitted, ToolCallEnd
from harness_core.hitl import Approve
from harness_core.testing import FakeClock, RecordingTool, ScriptedModel, call
from tests.acceptance.desk import CHANNEL, Desk, buttons, clock_of_today, reading
from tests.acceptance.test_settings import command
from tests.alike import alike

EXACT = 'change {"n":1}'


def change() -> RecordingTool:
    return RecordingTool("change")


async def rule_id(desk: Desk, text: str) -> str:
    """The id of the one rule that the list of rules shows with this text."""
    (line,) = [one for one in (await command(desk, "rules")).splitlines() if text in one]
    return line.split("#")[1].split("`")[0]


async def test_an_allow_rule_lets_calls_run_in_its_channel_until_it_is_taken_back(tmp_path: Path) -> None:
    tool, model = change(), ScriptedModel([call("change", n=1)], "done", [call("change", n=1)], [call("change", n=1)])
    async with Desk(tmp_path, model, [tool]) as desk:
        told = await command(desk, f"allow {EXACT} -- it is safe & sound")
        assert "Allowed in this channel: change" in told

        await desk.answer(await desk.ask("go"), "done")
        assert tool.runs == [{"n": 1}]
        elsewhere = await desk.ask("go", channel=people.OPS)
        assert buttons(await desk.card(elsewhere, channel=people.OPS))

        listed = await command(desk, "rules", people.BEN)
        assert f"*allow* change `{EXACT[7:]}` · in this channel, by <@{people.ADA}>" in listed
        assert "it is safe &amp; sound" in listed
        assert "No rules hold here" in await command(desk, "rules", channel=people.OPS)
        assert "Taken back in this channel" in await command(desk, f"revoke {await rule_id(desk, 'change')}")
        assert buttons(await desk.card(await desk.ask("go")))


async def test_an_allow_rule_releases_what_waits_on_the_record_and_not_what_was_rejected(tmp_path: Path) -> None:
    tool, model = change(), ScriptedModel([call("change", n=1), call("change", n=2)], "done")
    async with Desk(tmp_path, model, [tool]) as desk:
        ts = await desk.ask("go")
        assert (await desk.fill(await desk.card(ts), "reject", choice="go_on", comment="no")).ok
        await desk.card(ts, showing="Rejected")

        await command(desk, "allow change --workspace")

        await desk.answer(ts, "done")
        assert tool.runs == [{"n": 2}]
        _, released = await desk.facts(ts, HITLSubmitted)
        assert isinstance(released.decision, Approve)
        assert released.by == f"rule {await rule_id(desk, 'change')}"
        assert "by a rule" in (await desk.card(ts, 2, showing="rule"))["text"]
        assert [end.outcome for end in await desk.facts(ts, ToolCallEnd)] == ["rejected", "ok"]


async def test_a_deny_closes_the_card_that_waits_and_no_click_approves_it(tmp_path: Path) -> None:
    tool, model = change(), ScriptedModel([call("change", n=1)], "done")
    async with Desk(tmp_path, model, [tool]) as desk:
        ts = await desk.ask("go")
        card = await desk.card(ts)

        await command(desk, "deny change -- frozen until Monday")

        await desk.answer(ts, "done")
        assert "denies this call (frozen until Monday)." in model.requests[-1].messages[-1].content
        await desk.click(card, "approve", force=True)
        await desk.told(people.ADA, "decided this already")
        assert tool.runs == []
        assert [end.outcome for end in await desk.facts(ts, ToolCallEnd)] == ["denied"]
        assert "It has no effect while" in await command(desk, "allow change")


async def test_an_ask_rule_goes_before_what_only_reads_and_before_always_allow(tmp_path: Path) -> None:
    tool = RecordingTool("look", read_only=True)
    async with Desk(tmp_path, ScriptedModel([call("look")], "done"), [tool]) as desk:
        await command(desk, "ask look -- it shows what customers wrote.")

        card = await desk.card(await desk.ask("look"))

        assert "the rule “ask look” asks (it shows what customers wrote)" in reading(card)
        assert "always" not in buttons(card)


async def test_a_rule_expires_by_itself_and_what_it_held_back_goes_on(tmp_path: Path) -> None:
    tool, clock = RecordingTool("look", read_only=True), clock_of_today()
    async with Desk(tmp_path, ScriptedModel([call("look")], "done"), [tool], clock=clock) as desk:
        assert "until <!date^" in await command(desk, "ask look --for 8h")
        ts = await desk.ask("look")
        await desk.card(ts)

        clock.advance(8 * 3600)

        await desk.passing(lambda _: [text for text in desk.texts(ts) if "done" in text])
        assert tool.runs == [{}]
        assert "No rules hold here" in await command(desk, "rules")


async def test_a_deny_for_a_while_shortens_none_that_holds_longer(tmp_path: Path) -> None:
    tool, clock = change(), FakeClock()
    async with Desk(tmp_path, ScriptedModel([call("change", n=1)], "done"), [tool], clock=clock) as desk:
        await command(desk, "deny change --for 8h")
        assert "until <!date^" in await command(desk, "deny change --for 30m")
        await command(desk, "deny change")
        assert "until" not in await command(desk, "deny change --for 30m")

        clock.advance(9 * 3600)
        await desk.answer(await desk.ask("go"), "done")

        assert tool.runs == []


async def test_an_allow_rule_that_expired_asks_again(tmp_path: Path) -> None:
    tool, clock = change(), FakeClock()
    model = ScriptedModel([call("change", n=1)], "first", [call("change", n=1)])
    async with Desk(tmp_path, model, [tool], clock=clock) as desk:
        await command(desk, "allow change --for 30m")
        ts = await desk.ask("go")
        await desk.answer(ts, "first")

        clock.advance(30 * 60)
        await desk.ask("again", thread=ts)

        assert buttons(await desk.card(ts))
        assert tool.runs == [{"n": 1}]


async def test_only_administrators_make_rules_and_take_them_back(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("hi"), [change()], approvers=frozenset({people.CLEO})) as desk:
        for user in (people.BEN, people.CLEO):
            for text in ("allow change", "ask change", "deny change"):
                assert "Only administrators" in await command(desk, text, user)
        for text in ("allow change", "deny change", "rules", "revoke abc123", "why change {}"):
            assert "guests" in await command(desk, text, people.GIL)
        await command(desk, "allow change --workspace")
        found = await rule_id(desk, "change")

        for user in (people.BEN, people.CLEO):
            assert "Only administrators" in await command(desk, f"revoke {found}", user)

        assert found == await rule_id(desk, "change")
        assert (await desk.bot.store.read("config:workspace"))[0].by == people.ADA  # type: ignore[attr-defined]


async def test_a_rule_that_makes_no_sense_is_refused_in_words(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("hi"), [change(), "bash"]) as desk:
        assert "There is no tool `chnge`" in await command(desk, "deny chnge")
        assert "would never match" in await command(desk, "allow change {")
        assert "as good as no approvals at all" in await command(desk, "allow bash")
        assert "Mind that it covers every verb of git" in await command(desk, "allow bash git *")
        assert "Type `/harness revoke ID`" in await command(desk, "revoke")
        assert "No rule `#abc123` holds here" in await command(desk, "revoke #abc123")


async def test_a_pattern_is_stored_byte_for_byte_as_it_was_typed(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("hi"), ["bash"]) as desk:
        typed = "echo  'a & b' <c> x.io"

        await command(desk, f"ask bash `{typed}`")

        ((_, rule),) = (await desk.bot.book.in_force()).rules.items()
        assert rule.rule.pattern == typed


async def test_dashes_in_a_pattern_make_a_reason_and_the_answer_says_what_was_taken_for_which(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("hi"), ["bash"]) as desk:
        told = await command(desk, "deny bash rm -- <x>")

        assert "Denied in this channel: bash `rm` (`#" in told
        assert "Taken as the reason, not as part of the pattern: &lt;x&gt;." in told
        assert f"`/harness revoke {await rule_id(desk, '*deny*')}`, and put the whole pattern between" in told
        told = await command(desk, "deny bash `rm -- x`")
        assert "Denied in this channel: bash `rm -- x` (`#" in told
        assert "reason" not in told


async def test_a_rule_in_two_places_is_taken_back_in_the_one_that_is_named(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("hi"), [change()]) as desk:
        await command(desk, "deny change")
        await command(desk, "deny change --workspace")
        found = (await command(desk, "rules")).split("#")[1][:6]

        assert "add `--workspace` or `--channel`" in await command(desk, f"revoke {found}")
        told = await command(desk, f"revoke #{found.upper()} --workspace")
        assert "Taken back everywhere, and only there" in told
        assert "stands in this channel and goes on counting" in told

        assert "in this channel" in (await command(desk, "rules"))
        assert "Taken back in this channel" in await command(desk, f"revoke {found}")
        assert "No rules hold here" in await command(desk, "rules")


async def test_a_rule_with_the_id_of_another_stands_beside_it_and_is_taken_back_by_more_digits(tmp_path: Path) -> None:
    deny, allow = alike()
    async with Desk(tmp_path, ScriptedModel("hi"), ["bash", change()]) as desk:
        await command(desk, f"deny change {deny.pattern}")
        await command(desk, f"allow bash {allow.pattern}")
        assert "*is denied*" in await command(desk, f"why change {deny.pattern}")

        told = await command(desk, f"revoke {deny.id}")
        assert "Several rules have this id" in told
        longer = next(line.split("`")[1] for line in told.splitlines() if "npm run" in line)
        assert "Taken back in this channel" in await command(desk, f"revoke {longer}")

        assert "*is denied*" in await command(desk, f"why change {deny.pattern}")
        assert "npm run" not in await command(desk, "rules")
        assert "No rule" in await command(desk, "revoke #")


async def test_always_allow_is_listed_with_its_thread_and_taken_back_by_whoever_decides(tmp_path: Path) -> None:
    model = ScriptedModel([call("change", n=1)], "done", [call("change", n=1)])
    async with Desk(tmp_path, model, [change()], approvers=frozenset({people.CLEO})) as desk:
        ts = await desk.ask("go")
        assert (await desk.fill(await desk.card(ts), "always")).ok
        await desk.answer(ts, "done")
        assert "the thread of <!date^" in await command(desk, "rules")
        found = await rule_id(desk, "change")

        assert "Only administrators" in await command(desk, f"revoke {found}", people.BEN)
        assert "Taken back in 1 thread" in await command(desk, f"revoke {found}", people.CLEO)

        await desk.ask("again", thread=ts)
        assert buttons(await desk.card(ts, 2))


async def test_an_address_in_a_pattern_is_no_link_in_the_answer(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("hi"), ["webfetch"]) as desk:
        for typed in ("deny webfetch https://evil.io/*", "rules", "why webfetch https://evil.io/a"):
            await command(desk, typed)
            (section,) = desk.slack.ephemerals(people.ADA, CHANNEL)[-1]["blocks"]

            assert "`https://evil.io/*`" in section["text"]["text"]


WHY = [
    ("bash ls -la", ["*runs without asking*", "the default holds", "only reads"]),
    ("bash git push origin", ["*is denied*", "a deny rule", "`deny` bash `git push *`"]),
    ('bash {"command":"npm test && rm -rf x"}', ["*asks*", "the part `rm -rf x` is not covered by a rule"]),
    ("bash npm test", ["*runs without asking*", "an allow rule", "`allow` bash `npm test`"]),
    ("bash cat ../x", ["*asks*", "the path ../x lies outside the workspace"]),
    ("write docs/a.md", ["*asks*", "it changes docs/a.md"]),
    ("write .git/config", ["*asks*", "can change what programs do later"]),
    ("write /etc/passwd", ["outside the workspace"]),
    ("change {}", ["*asks*", "marked sensitive"]),
    ('bash {"command":1}', ["would not take these arguments"]),
    ("bash {", ["no arguments of bash", 'Type `/harness why bash {"command": …}`']),
    ("bash", ["Type `/harness why"]),
    ("bsh ls", ["There is no tool"]),
]


async def test_why_tells_the_verdict_the_level_and_what_caused_it(tmp_path: Path) -> None:
    async with Desk(tmp_path, ScriptedModel("hi"), [change(), "bash", "write"]) as desk:
        await command(desk, "deny bash git push *")
        await command(desk, "allow bash npm test")
        await command(desk, "sensitive add change")

        answers = [await command(desk, f"why {asked}", people.BEN) for asked, _ in WHY]

        missing = [
            (asked, text, answer)
            for (asked, told), answer in zip(WHY, answers, strict=True)
            for text in told
            if text not in answer
        ]
        assert missing == []


def policy(tmp_path: Path, *rules: dict[str, Any]) -> Path:
    lines = ["[[rule]]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in one.items()) for one in rules]
    path = tmp_path / "harness.toml"
    path.write_text("\n".join(lines), "utf-8")
    return path


async def test_rules_of_the_file_hold_where_they_say_and_are_taken_back_there(tmp_path: Path) -> None:
    deny = {"effect": "deny", "tool": "change", "channel": people.OPS, "why": "frozen", "by": "ops"}
    path = policy(tmp_path, {"effect": "allow", "tool": "change"}, deny)
    tool, model = change(), ScriptedModel([call("change", n=1)], "done", [call("change", n=1)], "done")
    async with Desk(tmp_path / "data", model, [tool], policy=path) as desk:
        await desk.answer(await desk.ask("go"), "done")
        assert tool.runs == [{"n": 1}]
        await desk.answer(await desk.ask("go", channel=people.OPS), "done", people.OPS)
        assert tool.runs == [{"n": 1}]

        listed = await command(desk, "rules", channel=people.OPS)
        assert "*deny* change (any arguments) · the policy file, ops: frozen" in listed
        assert "stands in the policy file" in await command(desk, f"revoke {await rule_id(desk, '*allow*')}")


async def test_a_rule_that_stands_in_the_file_too_is_taken_back_beside_it_and_the_answer_says_that_it_counts_on(
    tmp_path: Path,
) -> None:
    path = policy(tmp_path, {"effect": "deny", "tool": "change"})
    async with Desk(tmp_path / "data", ScriptedModel("hi"), [change()], policy=path) as desk:
        await command(desk, "deny change --workspace")
        lines = [one for one in (await command(desk, "rules")).splitlines() if "*deny* change" in one]
        assert [one.rpartition(" · ")[2].partition(",")[0] for one in lines] == ["everywhere", "the policy file"]
        found = lines[0].split("#")[1][:6]

        told = await command(desk, f"revoke {found}")

        assert "Taken back everywhere, and only there" in told
        assert "stands in the policy file and goes on counting" in told
        assert "counts no more" not in told
        assert "Take it out there" in await command(desk, f"revoke {found}")


async def test_a_changed_file_releases_what_waits_and_a_broken_one_is_told(tmp_path: Path) -> None:
    path, clock = policy(tmp_path, {"effect": "ask", "tool": "change"}), clock_of_today()
    tool, model = change(), ScriptedModel([call("change", n=1)], "done")
    async with Desk(tmp_path / "data", model, [tool], policy=path, clock=clock) as desk:
        ts = await desk.ask("go")
        await desk.card(ts)

        policy(tmp_path, {"effect": "allow", "tool": "change"}, {"effect": "deny", "tool": "change", "pattern": "x"})
        await desk.passing(lambda _: [text for text in desk.texts(ts) if "done" in text])

        assert tool.runs == [{"n": 1}]
        path.write_text("[[rule]]\neffect = 'perhaps'", "utf-8")
        await desk.passing(lambda _: bool(desk.bot.policy.fault))
        listed = await command(desk, "rules")
        assert "cannot be used, so what it said before holds" in listed
        assert "*allow* change" in listed
