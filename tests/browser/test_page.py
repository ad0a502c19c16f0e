"""The page in a real browser, with a small app behind it."""

import re
from pathlib import Path
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.local import LocalWorkspace
from bot.local import people as ids
from tests.browser.app import Cards, connected
from tests.browser.conftest import People, Server, expect
from tests.local.conftest import Clock

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def action(page: Any, action_id: str, pane: str = "thread") -> Any:
    return page.locator(f"#{pane} [data-action-id={action_id}]")


async def ask(page: Any, text: str = "@harness go") -> None:
    """Write to the bot from the channel's box; its thread then opens with the card."""
    await page.get_by_test_id("composer").fill(text)
    await page.get_by_test_id("composer").press("Enter")
    await expect(action(page, "approve")).to_be_visible()


async def test_it_opens_at_three_prompts_and_one_click_brings_a_card(people: People, cards: Cards) -> None:
    page = await people.open()

    await expect(page.locator("[data-testid^=prompt-]")).to_have_count(3)
    await expect(page.get_by_test_id("thread-composer")).to_have_value("@harness ")
    await page.get_by_test_id("prompt-1").click()

    await expect(action(page, "approve")).to_be_visible()
    await expect(page.get_by_test_id("kill-hint")).to_contain_text("press Ctrl-C now, start again, click.")


async def test_on_a_phone_a_card_stays_where_it_is_while_its_buttons_are_tapped(people: People, cards: Cards) -> None:
    page = await people.open(**PHONE)
    await page.get_by_test_id("prompt-1").tap()
    await expect(action(page, "approve")).to_be_visible()
    await page.evaluate("Promise.allSettled(document.getAnimations().map((each) => each.finished))")  # cards rise
    before = await action(page, "approve").bounding_box()

    await action(page, "approve").focus()  # as a finger that comes down does

    assert await action(page, "approve").bounding_box() == before


async def test_the_printed_address_opens_it_and_keeps_no_key(people: People, workspace: LocalWorkspace) -> None:
    page = await people.open()
    await page.context.clear_cookies()

    await page.goto(workspace.page_url)
    await page.wait_for_url(workspace.url + "/#/**")

    await expect(page.get_by_test_id("prompt-1")).to_be_visible()
    assert await page.evaluate("document.cookie") == ""


async def test_hostile_text_is_shown_and_never_run(people: People, workspace: LocalWorkspace, cards: Cards) -> None:
    client = AsyncWebClient(token=workspace.bot_token, base_url=workspace.api_url)
    mrkdwn = f"{HOSTILE} <javascript:alert(1)|trap> <https://x.example/|*{HOSTILE}*>"
    text = {"type": "mrkdwn", "text": mrkdwn}
    rich = [{"type": "link", "url": "javascript:alert(1)", "text": "trap"}, {"type": "text", "text": HOSTILE}]
    blocks: list[Any] = [
        {"type": "section", "text": text, "fields": [text]},
        {"type": "header", "text": {"type": "plain_text", "text": HOSTILE}},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": f"`{HOSTILE}`"}]},
        {"type": "markdown", "text": f"# {HOSTILE}\n[trap](javascript:alert(1)) ![i](data:text/html,x)\n\n{HOSTILE}"},
        {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": rich}]},
        {"type": "image", "image_url": "https://x.example/i.png", "alt_text": HOSTILE},
    ]
    page = await people.open()
    await workspace.say(ids.BEN, ids.GENERAL, HOSTILE, raw=True)
    await client.chat_postMessage(channel=ids.GENERAL, text="x", blocks=blocks)

    await expect(page.locator("#channel [data-testid=message]")).to_have_count(2)
    await expect(page.locator("#channel [data-testid=message]").first).to_contain_text(HOSTILE)
    assert await page.evaluate("window.hacked === undefined")
    assert await page.locator("#channel script, #channel img, #channel [onerror]").count() == 0
    assert await page.locator("a:not([href^='https://'])").filter(has_not_text="Skip").count() == 0
    assert {await each.get_attribute("rel") for each in await page.locator("#channel a").all()} == {
        "noopener noreferrer"
    }
    assert [url for url in people.asked if not url.startswith(workspace.url)] == []


async def test_a_card_shows_all_that_it_holds_and_nothing_in_it_is_an_emoji(
    people: People, workspace: LocalWorkspace
) -> None:
    client = AsyncWebClient(token=workspace.bot_token, base_url=workspace.api_url)
    lines = "\n".join(f":smile: {number}" for number in range(60))
    agent = {"type": "plain_text", "text": "Agent says: :smile:", "emoji": False}
    button = {"type": "button", "action_id": "approve", "text": {"type": "plain_text", "text": "Approve"}}
    blocks: list[Any] = [
        {"type": "rich_text", "elements": [
            {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": lines}]}
        ]},
        {"type": "context", "elements": [agent]},
        {"type": "actions", "elements": [button]},
    ]  # fmt: skip
    page = await people.open()
    await client.chat_postMessage(channel=ids.GENERAL, text="x", blocks=blocks)

    message = page.locator("#channel [data-testid=message]")
    await expect(message.locator("pre")).to_have_text(lines)
    await expect(message).to_contain_text("Agent says: :smile:")
    assert await message.locator("pre").evaluate("box => box.scrollHeight - box.clientHeight") == 0


async def test_the_policy_allows_nothing_from_elsewhere(people: People, workspace: LocalWorkspace) -> None:
    page = await people.open()
    reply = await page.request.get(workspace.url + "/")

    assert reply.headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


async def test_a_modals_errors_stand_at_their_field_and_what_was_typed_stays(people: People, cards: Cards) -> None:
    page = await people.open()
    await ask(page)
    await action(page, "edit").click()
    modal = page.get_by_test_id("modal")
    command = modal.get_by_label("Command")
    await expect(command).to_be_focused()

    await command.fill("")
    await modal.get_by_label("Why").fill("far too long a reason")
    await modal.get_by_label("Times").fill("ten")
    await page.get_by_test_id("modal-submit").click()
    await expect(page.get_by_test_id("error-command")).to_have_text("Please fill this in.")
    await expect(page.get_by_test_id("error-why")).to_have_text("That is 11 characters too long.")
    await expect(page.get_by_test_id("error-times")).to_have_text("A whole number, please.")
    assert cards.submitted == []

    await command.fill("rm -rf build")
    await expect(page.get_by_test_id("error-command")).to_have_count(0)
    await modal.get_by_label("Why").fill("I want to")
    await modal.get_by_label("Times").fill("2")
    await modal.get_by_label("Until").fill("2030-01-31")
    await modal.get_by_label("Always").check()
    await page.get_by_test_id("modal-submit").click()
    await expect(page.get_by_test_id("error-command")).to_have_text("rm is denied here.")
    await expect(command).to_be_focused()
    await expect(command).to_have_accessible_description(re.compile("rm is denied here"))
    await expect(modal.get_by_label("Why")).to_have_value("I want to")

    await command.fill("ls")
    await page.get_by_test_id("modal-submit").click()
    await expect(modal).to_have_count(0)
    await expect(action(page, "edit")).to_be_focused()
    state = cards.submitted[-1]
    assert (state["command"]["it"]["value"], state["times"]["it"]["value"]) == ("ls", "2")
    assert state["until"]["it"]["selected_date"] == "2030-01-31"
    assert state["how"]["it"]["selected_option"]["value"] == "always"


async def test_modals_are_stacked_updated_and_closed_with_escape(people: People, cards: Cards) -> None:
    page = await people.open()
    await ask(page)
    await action(page, "edit").click()
    modal = page.get_by_test_id("modal")
    await modal.get_by_label("Why").fill("kept")

    await modal.locator("[data-action-id=deeper]").click()
    await expect(modal.get_by_role("heading", name="Deeper")).to_be_visible()
    await page.get_by_test_id("modal-back").click()
    await expect(modal.get_by_role("heading", name="Edit")).to_be_visible()
    await expect(modal.get_by_label("Why")).to_have_value("kept")

    await modal.get_by_label("Command").fill("update it")
    await page.get_by_test_id("modal-submit").click()
    await expect(modal.get_by_role("heading", name="Updated")).to_be_visible()
    await expect(modal.get_by_label("Why")).to_have_value("kept")

    for _ in range(30):  # the focus never leaves the dialog for the page below
        await page.keyboard.press("Tab")
        assert await page.evaluate(
            "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
        )
    await page.keyboard.press("Escape")
    await expect(modal).to_have_count(0)
    await expect(page.get_by_test_id("thread")).to_be_visible()


async def test_after_a_restart_the_page_comes_back_by_itself_and_has_lost_nothing(
    people: People, server: Server
) -> None:
    page = await people.open()
    async with connected(server.now):
        await ask(page)
    before = await page.evaluate("location.hash")
    await expect(page.get_by_test_id("bot-presence")).to_have_text("harness is off")

    people.goes_away = True
    await server.now.stop()
    await expect(page.get_by_test_id("connection")).to_contain_text("Reconnecting")
    await expect(page.get_by_test_id("bot-presence")).to_have_count(0)  # nobody knows just now
    await page.get_by_test_id("thread-composer").fill("typed while it was down")
    await page.get_by_test_id("thread-composer").press("Enter")
    await expect(page.get_by_test_id("pending")).to_contain_text("Will be sent when the workspace is back.")
    await action(page, "approve").click()
    await expect(page.get_by_test_id("action-error")).to_contain_text("cannot be reached")

    workspace = await server.start()
    async with connected(workspace) as cards:
        await workspace.say(ids.BEN, ids.GENERAL, "said before the page was back")
        await expect(page.get_by_test_id("connection")).to_be_hidden()
        await expect(page.get_by_test_id("pending")).to_have_count(0)
        await expect(page.locator("#channel")).to_contain_text("said before the page was back")
        assert await page.evaluate("location.hash") == before
        assert [m["text"] for m in workspace.messages(ids.GENERAL)].count("typed while it was down") == 1

        await action(page, "approve").click()
        await expect(page.locator("#thread")).to_contain_text("Approved by @ada")
        assert len(cards.clicks) == 1


async def test_a_message_whose_answer_was_lost_is_not_sent_twice(people: People, workspace: LocalWorkspace) -> None:
    page = await people.open()
    key = "0b0b0b0b-0000-4000-8000-000000000001"
    await workspace.say(ids.ADA, ids.GENERAL, "once only")
    record = workspace.messages(ids.GENERAL)[0] | {"client_msg_id": key}
    found = workspace.world.board.find(ids.GENERAL, record["ts"])
    assert found is not None
    workspace.world.board.change(found, record)
    item = {"key": key, "channel": ids.GENERAL, "thread_ts": None, "text": "once only", "again": True, "error": ""}

    await page.evaluate(
        "([name, item]) => sessionStorage.setItem(name, JSON.stringify([item]))", [f"outbox {ids.ADA}", item]
    )
    await page.reload()

    await page.wait_for_function("name => sessionStorage.getItem(name) === '[]'", arg=f"outbox {ids.ADA}")
    assert [m["text"] for m in workspace.messages(ids.GENERAL)] == ["once only"]


async def test_a_second_window_is_another_person_who_decides(people: People, cards: Cards) -> None:
    ada, ben = await people.open("ada"), await people.open("ben")
    await ask(ada)
    await ben.locator("#channel").get_by_test_id("open-thread").click()

    await action(ben, "approve").click()

    await expect(ada.locator("#thread")).to_contain_text("Approved by @ben")
    await expect(action(ada, "approve")).to_have_count(0)
    assert [click["user"]["id"] for click in cards.clicks] == [ids.BEN]


async def test_a_notice_is_for_its_one_person_only(people: People, cards: Cards) -> None:
    ada, ben = await people.open("ada"), await people.open("ben")
    await ask(ada)
    await ben.locator("#channel").get_by_test_id("open-thread").click()

    await action(ben, "reject").click()
    await ben.get_by_test_id("confirm-no").click()
    assert cards.clicks == []
    await action(ben, "reject").click()
    await ben.get_by_test_id("confirm-yes").click()

    await expect(ben.get_by_test_id("notice")).to_contain_text("Only visible to you")
    await expect(ben.get_by_test_id("live")).to_contain_text("Only visible to you: You may not decide this one.")
    await expect(ada.locator("#thread").get_by_test_id("message")).to_have_count(2)
    assert "You may not decide" not in await ada.content()


async def test_a_person_is_switched_and_stays_after_a_reload(people: People, workspace: LocalWorkspace) -> None:
    page = await people.open("ada")
    await page.get_by_test_id("person-switcher").click()
    await page.get_by_role("menuitemradio", name="Gil Guest").click()
    await expect(page.get_by_test_id("person-switcher")).to_contain_text("guest")
    await expect(page.get_by_test_id("channel-secret")).to_have_count(0)

    await page.reload()
    await page.get_by_test_id("composer").fill("from gil")
    await page.get_by_test_id("send").click()

    await expect(page.locator("#channel")).to_contain_text("from gil")
    assert [m["user"] for m in workspace.messages(ids.GENERAL)] == [ids.GIL]


async def test_everything_works_with_the_keyboard_alone(people: People, cards: Cards) -> None:
    page = await people.open()
    await expect(page.get_by_test_id("thread-composer")).to_be_focused()
    await page.keyboard.type("go")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("on")
    await page.keyboard.press("Enter")
    await expect(action(page, "approve")).to_be_visible()
    await expect(page.locator("#thread [data-testid=message]").first).to_contain_text("go\non")

    for _ in range(12):
        await page.keyboard.press("Shift+Tab")
        if await page.evaluate("document.activeElement.dataset.actionId") == "approve":
            break
    approve = action(page, "approve")
    await expect(approve).to_be_focused()
    assert await approve.evaluate("it => getComputedStyle(it).outlineStyle") == "solid"
    await page.keyboard.press("Enter")
    await expect(page.locator("#thread")).to_contain_text("Approved by @ada")
    assert await page.evaluate("document.activeElement.closest('#thread') !== null"), "the focus stays with the card"

    await page.keyboard.press("Escape")
    await expect(page.get_by_test_id("thread")).to_be_hidden()
    await expect(page.get_by_test_id("open-thread")).to_be_focused()


async def test_a_screen_reader_hears_what_a_button_is_about_and_what_is_new(people: People, cards: Cards) -> None:
    page = await people.open()
    await ask(page)

    await expect(action(page, "approve")).to_have_accessible_name("Approve")
    await expect(action(page, "approve")).to_have_accessible_description("Run a command? echo hi")
    await expect(page.get_by_test_id("live")).to_contain_text("harness waits for an answer: Run a command? echo hi")
    await expect(page.get_by_role("button", name="You act as Ada Admin")).to_be_visible()
    await expect(page.get_by_role("navigation", name="Channels and direct messages")).to_be_visible()


async def test_choices_menus_and_selects_reach_the_app(people: People, cards: Cards) -> None:
    page = await people.open()
    await ask(page)

    await action(page, "scope").select_option(label="This channel")
    await expect(action(page, "scope")).not_to_have_attribute("aria-busy", "true")
    await action(page, "more").click()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(action(page, "more")).not_to_have_attribute("aria-busy", "true")

    assert [click["actions"][0]["selected_option"]["value"] for click in cards.clicks] == ["channel", "done"]


async def test_a_click_that_nobody_answers_says_so_at_the_button(
    people: People, workspace: LocalWorkspace, cards: Cards, clock: Clock
) -> None:
    page = await people.open()
    await ask(page)
    [_, card] = workspace.messages(ids.GENERAL)
    record = workspace.world.board.find(ids.GENERAL, card["ts"])
    assert record is not None
    unheard = {"type": "button", "action_id": "unheard", "text": {"type": "plain_text", "text": "Unheard"}}
    blocks = [card["blocks"][0], card["blocks"][1] | {"elements": [unheard]}]
    workspace.world.board.change(record, record["message"] | {"blocks": blocks})
    workspace.world.log.changed()

    await action(page, "unheard").click()
    await workspace.wait_for(lambda w: w.world.hub.pending)
    clock.now += 4
    workspace.tick()

    await expect(page.get_by_test_id("action-error")).to_have_attribute("data-error", "operation_timeout")
    await expect(action(page, "unheard")).to_have_accessible_description(re.compile("did not answer in time"))


async def test_without_an_app_a_click_and_a_command_say_that_it_is_not_running(
    people: People, workspace: LocalWorkspace
) -> None:
    page = await people.open()
    async with connected(workspace):
        await ask(page)
    await expect(page.get_by_test_id("bot-presence")).to_have_text("harness is off")

    edit = await action(page, "edit").bounding_box()
    assert edit
    await action(page, "approve").click()
    await expect(page.get_by_test_id("action-error")).to_have_attribute("data-error", "dispatch_failed")
    beside = await action(page, "edit").bounding_box()
    assert beside
    assert beside["x"] == edit["x"]  # so that a second click on the one does not hit the other
    await page.get_by_test_id("composer").fill("/harness help")
    await page.get_by_test_id("send").click()
    await expect(page.get_by_test_id("composer-trouble")).to_contain_text("dispatch_failed")
    await expect(page.get_by_test_id("composer")).to_have_value("/harness help")


async def test_names_and_commands_are_completed_and_a_command_answers_its_person(people: People, cards: Cards) -> None:
    page = await people.open()
    box = page.get_by_test_id("composer")
    await box.fill("")
    await box.press_sequentially("hey @be")
    await expect(page.get_by_role("option", name="@ben")).to_have_attribute("aria-selected", "true")
    await box.press("Enter")
    await expect(box).to_have_value("hey @ben ")

    await box.fill("")
    await box.press_sequentially("/ha")
    await box.press("Tab")
    await box.press_sequentially("help")
    await expect(page.get_by_test_id("composer-hint")).to_have_text("Try /harness help")
    await box.press("Enter")
    await expect(page.get_by_test_id("notice")).to_contain_text("You asked for help.")
    await page.get_by_test_id("notice").hover()
    await page.get_by_test_id("dismiss").click()
    await expect(page.get_by_test_id("notice")).to_have_count(0)

    await page.get_by_test_id("thread-composer").fill("/harness help")
    await expect(page.get_by_test_id("thread-composer-hint")).to_be_visible()


async def test_people_edit_delete_and_react(people: People, workspace: LocalWorkspace) -> None:
    page = await people.open()
    said = await workspace.say(ids.ADA, ids.GENERAL, "teh text for @ben")
    message = page.locator(f"#channel [data-ts='{said['ts']}']")

    await message.hover()
    await message.get_by_test_id("edit").click()
    await expect(page.get_by_test_id("editor")).to_have_value("teh text for @ben")
    await page.get_by_test_id("editor").fill("the text for @ben")
    await page.get_by_test_id("editor").press("Enter")
    await expect(message).to_contain_text("the text for @ben")
    await expect(message).to_contain_text("(edited)")

    await message.get_by_test_id("react").click()
    await page.get_by_role("menuitem", name="rocket").click()
    await expect(message.get_by_test_id("reaction-rocket")).to_have_attribute("aria-pressed", "true")
    await message.get_by_test_id("reaction-rocket").click()
    await expect(message.get_by_test_id("reaction-rocket")).to_have_count(0)

    await message.get_by_test_id("delete").click()
    await page.get_by_test_id("confirm-yes").click()
    await expect(message).to_have_count(0)


async def test_unread_marks_come_and_go(people: People, workspace: LocalWorkspace) -> None:
    page = await people.open()
    await workspace.say(ids.BEN, ids.OPS, "news")

    await expect(page.get_by_test_id("channel-ops").get_by_test_id("unread")).to_have_text("1")
    await page.get_by_test_id("channel-ops").click()
    await expect(page.get_by_test_id("unread")).to_have_count(0)


async def test_dates_are_in_the_readers_own_time(people: People, workspace: LocalWorkspace) -> None:
    page = await people.open(timezone_id="Asia/Tokyo", locale="en-GB")
    await workspace.say(ids.BEN, ids.GENERAL, "at <!date^1800000000^{date_short} {time}|then>", raw=True)

    await expect(page.locator("#channel [data-testid=message]")).to_contain_text("at 15 Jan 2027 17:00")


async def test_on_a_narrow_screen_one_pane_is_shown_at_a_time_with_big_buttons(people: People, cards: Cards) -> None:
    page = await people.open(**PHONE)
    await page.get_by_test_id("prompt-1").click()
    await expect(action(page, "approve")).to_be_visible()

    await expect(page.locator("#channel")).to_be_hidden()
    await expect(page.locator("#sidebar")).to_be_hidden()
    boxes = [await each.bounding_box() for each in await page.locator("#thread [data-testid=action]").all()]
    heights = [box["height"] for box in boxes if box]
    lefts = {round(box["x"]) for box in boxes if box}
    assert min(heights) >= 44
    assert len(lefts) == 1, "stacked"
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390

    await page.get_by_test_id("back-to-channel").click()
    await expect(page.locator("#channel")).to_be_visible()
    await expect(page.locator("#thread")).to_be_hidden()
    await page.get_by_test_id("back-to-list").click()
    await expect(page.locator("#sidebar")).to_be_visible()
    await page.go_back()
    await expect(page.locator("#channel")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_has_enough_contrast(people: People, workspace: LocalWorkspace, cards: Cards, scheme: Any) -> None:
    page = await people.open(color_scheme=scheme, reduced_motion="reduce")
    assert await page.evaluate(CONTRAST) == []
    await ask(page)
    await workspace.say(ids.BEN, ids.GENERAL, "hi @ada `code` https://x.example\n> quote")
    await workspace.say(ids.BEN, ids.OPS, "unread")
    await action(page, "reject").click()
    await page.get_by_test_id("confirm-yes").click()
    await expect(page.get_by_test_id("notice")).to_be_visible()
    assert await page.evaluate(CONTRAST) == []

    await action(page, "edit").click()
    await page.get_by_test_id("modal").get_by_label("Command").fill("")
    await page.get_by_test_id("modal-submit").click()
    await expect(page.get_by_test_id("error-command")).to_be_visible()
    assert await page.evaluate(CONTRAST) == []


async def test_on_a_phone_the_bot_has_its_name_and_what_a_tap_shows_hides_no_text(
    people: People, workspace: LocalWorkspace
) -> None:
    page = await people.open(**PHONE)
    said = await workspace.say(ids.BEN, ids.GENERAL, "a text of some length, by <@U0ADA00001>. And more of it")
    message = page.locator(f'#channel [data-ts="{said["ts"]}"]')
    async with connected(workspace):
        await expect(page.get_by_test_id("bot-presence")).to_have_text("harness is running")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await expect(page.get_by_test_id("bot-presence")).to_have_text("harness is off")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390

    await page.get_by_test_id("back-to-channel").click()
    await message.locator(".text").tap()

    button = message.get_by_test_id("react")
    await expect(button).to_be_visible()
    text, tool = await message.locator(".text").bounding_box(), await button.bounding_box()
    assert text
    assert tool
    assert tool["y"] >= text["y"] + text["height"] or tool["y"] + tool["height"] <= text["y"]
    above = await message.evaluate("(node) => node.previousElementSibling?.getBoundingClientRect().bottom ?? 0")
    assert tool["y"] >= above
