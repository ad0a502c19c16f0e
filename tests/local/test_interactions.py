"""What people do with buttons and modals, and what the app's acknowledgement makes of it."""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.local import Answer, LocalWorkspace, PersonCannot, people
from tests.local.conftest import Clock, RawApp
from tests.local.test_block_rules import actions, button, field, modal, option, plain, section, select

Json = dict[str, Any]
Act = Callable[[LocalWorkspace], Any]


class Acker:
    """Acknowledges interactions and remembers their payloads."""

    def __init__(self, raw: RawApp) -> None:
        self.raw = raw
        self.socket: aiohttp.ClientWebSocketResponse | None = None

    async def __call__(self, act: Any, reply: Json | None = None) -> tuple[Json, Answer]:
        """Let a person act; acknowledge with this reply.  Out: the payload, and what came of it."""
        socket = self.socket = self.socket or await self.raw.connect()
        acting = asyncio.ensure_future(act)
        while True:
            frame = await socket.receive_json()
            answer = {"envelope_id": frame["envelope_id"]}
            if frame["type"] != "events_api":
                await socket.send_json(answer | ({"payload": reply} if reply else {}))
                return frame["payload"], await acting
            await socket.send_json(answer)


@pytest.fixture
def acker(raw: RawApp) -> Acker:
    return Acker(raw)


async def post(client: AsyncWebClient, *blocks: Json, **facts: Any) -> str:
    posted = await client.chat_postMessage(channel=people.GENERAL, text="?", blocks=list(blocks), **facts)
    return str(posted["ts"])


async def test_a_click_tells_who_where_and_what(
    workspace: LocalWorkspace, client: AsyncWebClient, acker: Acker
) -> None:
    root = await workspace.say(people.BEN, people.GENERAL, "root")
    ts = await post(client, actions(button(value="t1", style="primary"), block_id="b"), thread_ts=root["ts"])

    payload, answer = await acker(workspace.click(people.BEN, people.GENERAL, ts, "go"))

    assert answer.ok
    assert payload["container"] == {
        "type": "message", "message_ts": ts, "channel_id": people.GENERAL, "is_ephemeral": False,
        "thread_ts": root["ts"],
    }  # fmt: skip
    [action] = payload["actions"]
    assert (action["value"], action["block_id"], action["type"]) == ("t1", "b", "button")
    assert payload["message"]["ts"] == ts
    assert payload["user"]["id"] == people.BEN


async def test_a_button_that_is_gone_can_be_clicked_by_a_stale_client_only(
    workspace: LocalWorkspace, client: AsyncWebClient, acker: Acker
) -> None:
    ts = await post(client, actions(button(value="t1"), block_id="b"))
    await client.chat_update(channel=people.GENERAL, ts=ts, text="done", blocks=[section()])

    with pytest.raises(PersonCannot, match="no go"):
        await workspace.click(people.BEN, people.GENERAL, ts, "go")
    payload, _ = await acker(workspace.click(people.BEN, people.GENERAL, ts, "go", force=True))
    assert payload["actions"][0]["value"] == "t1"

    await client.chat_delete(channel=people.GENERAL, ts=ts)
    with pytest.raises(PersonCannot, match="no such message"):
        await workspace.click(people.BEN, people.GENERAL, ts, "go")
    payload, _ = await acker(workspace.click(people.BEN, people.GENERAL, ts, "go", force=True, team_id="T0ELSE"))
    assert (payload["actions"][0]["block_id"], payload["team"]["id"]) == ("b", "T0ELSE")


async def test_only_people_in_the_channel_act_there(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    ts = await post(client, actions(button(visible_to_user_ids=[people.ADA])))

    for user, why in ((people.SAM, "not in"), (people.DEE, "deactivated"), (people.BEN, "does not see")):
        with pytest.raises(PersonCannot, match=why):
            await workspace.click(user, people.GENERAL, ts, "go")


async def test_a_click_on_an_ephemeral_message_carries_no_message(
    workspace: LocalWorkspace, client: AsyncWebClient, acker: Acker
) -> None:
    sent = await client.chat_postEphemeral(
        channel=people.GENERAL, user=people.BEN, text="?", blocks=[actions(button())]
    )

    payload, _ = await acker(workspace.click(people.BEN, people.GENERAL, sent["message_ts"], "go"))

    assert payload["container"]["is_ephemeral"] is True
    assert "message" not in payload
    with pytest.raises(PersonCannot, match="does not see"):
        await workspace.click(people.ADA, people.GENERAL, sent["message_ts"], "go")


async def test_a_choice_is_sent_with_its_option(
    workspace: LocalWorkspace, client: AsyncWebClient, acker: Acker
) -> None:
    ts = await post(client, actions(select(2), block_id="b"))

    payload, _ = await acker(workspace.click(people.BEN, people.GENERAL, ts, "s", value="1"))

    assert payload["actions"][0]["selected_option"]["value"] == "1"
    assert payload["state"]["values"]["b"]["s"]["selected_option"]["value"] == "1"


async def trigger(workspace: LocalWorkspace, user: str = people.BEN) -> str:
    return workspace.world.trigger(user)


async def test_a_trigger_id_lives_three_seconds_and_opens_one_modal(
    workspace: LocalWorkspace, client: AsyncWebClient, clock: Clock
) -> None:
    used, late = await trigger(workspace), await trigger(workspace)
    await client.views_open(trigger_id=used, view=modal())

    with pytest.raises(SlackApiError, match="exchanged_trigger_id"):
        await client.views_open(trigger_id=used, view=modal())
    clock.now += 3.1
    with pytest.raises(SlackApiError, match="expired_trigger_id"):
        await client.views_open(trigger_id=late, view=modal())
    with pytest.raises(SlackApiError, match="invalid_trigger_id"):
        await client.views_open(trigger_id="1.2.3", view=modal())


EVERY_INPUT = [
    field(block_id="b", element={"type": "plain_text_input", "action_id": "text", "max_length": 5}, optional=True),
    field(block_id="sel", element=select(2)),
    field(block_id="rad", element=select(2, "radio_buttons", action_id="r", initial_option=option("1"))),
    field(block_id="chk", element=select(3, "checkboxes", action_id="c"), optional=True),
    field(block_id="who", element={"type": "users_select", "action_id": "u"}, optional=True),
    field(block_id="day", element={"type": "datepicker", "action_id": "d"}, optional=True),
]


async def test_a_submission_holds_the_state_of_every_input(
    workspace: LocalWorkspace, client: AsyncWebClient, acker: Acker
) -> None:
    await client.views_open(trigger_id=await trigger(workspace), view=modal(blocks=EVERY_INPUT, private_metadata="m"))
    entered = {"text": "hi", "sel": "0", "chk": ["0", "2"], "who": people.ADA}

    payload, answer = await acker(workspace.submit(people.BEN, entered))

    values = payload["view"]["state"]["values"]
    assert answer.ok
    assert payload["view"]["private_metadata"] == "m"
    assert values["b"]["text"] == {"type": "plain_text_input", "value": "hi"}
    assert values["sel"]["s"]["selected_option"]["value"] == "0"
    assert values["rad"]["r"]["selected_option"]["value"] == "1"
    assert [chosen["value"] for chosen in values["chk"]["c"]["selected_options"]] == ["0", "2"]
    assert values["who"]["u"] == {"type": "users_select", "selected_user": people.ADA}
    assert values["day"]["d"] == {"type": "datepicker", "selected_date": None}
    assert workspace.views(people.BEN) == []


async def test_the_client_refuses_what_is_missing_too_long_or_no_option(
    workspace: LocalWorkspace, client: AsyncWebClient
) -> None:
    await client.views_open(trigger_id=await trigger(workspace), view=modal(blocks=EVERY_INPUT))

    assert (await workspace.submit(people.BEN, {})).errors == {"sel": "required"}
    assert (await workspace.submit(people.BEN, {"sel": "0", "text": "x" * 6})).errors == {"b": "too_long"}
    with pytest.raises(PersonCannot, match="no such option"):
        await workspace.submit(people.BEN, {"sel": "7"})
    with pytest.raises(PersonCannot, match="no such field"):
        await workspace.submit(people.BEN, {"colour": "red"})


async def test_an_acknowledgement_shows_errors_updates_pushes_and_clears(
    workspace: LocalWorkspace, client: AsyncWebClient, acker: Acker
) -> None:
    await client.views_open(trigger_id=await trigger(workspace), view=modal())

    def submit() -> Any:
        return workspace.submit(people.BEN, {"b": "x"})

    _, answer = await acker(submit(), {"response_action": "errors", "errors": {"b": "no"}})
    assert answer.errors == {"b": "no"}
    _, answer = await acker(submit(), {"response_action": "errors", "errors": {"zzz": "no"}})
    assert answer.error == "invalid_errors"
    _, answer = await acker(submit(), {"response_action": "update", "view": modal(title=plain("Second"))})
    assert answer.ok
    assert [view["title"]["text"] for view in workspace.views(people.BEN)] == ["Second"]
    await acker(submit(), {"response_action": "push", "view": modal(title=plain("Third"))})
    assert [view["title"]["text"] for view in workspace.views(people.BEN)] == ["Second", "Third"]
    _, answer = await acker(submit(), {"response_action": "update", "view": {"type": "modal"}})
    assert answer.error == "invalid_arguments"
    await acker(submit(), {"response_action": "clear"})
    assert workspace.views(people.BEN) == []


async def test_at_most_three_modals_lie_on_each_other(workspace: LocalWorkspace, client: AsyncWebClient) -> None:
    await client.views_open(trigger_id=await trigger(workspace), view=modal())
    for _ in range(2):
        top = workspace.views(people.BEN)[-1]["id"]
        await client.views_push(trigger_id=workspace.world.trigger(people.BEN, top), view=modal())

    top = workspace.views(people.BEN)[-1]["id"]
    with pytest.raises(SlackApiError, match="push_limit_reached"):
        await client.views_push(trigger_id=workspace.world.trigger(people.BEN, top), view=modal())


async def test_an_update_keeps_what_was_typed_and_minds_the_hash(
    workspace: LocalWorkspace, client: AsyncWebClient, acker: Acker
) -> None:
    chooser = section(block_id="pick", accessory=select(2))
    opened = await client.views_open(trigger_id=await trigger(workspace), view=modal(blocks=[chooser]))
    view = opened["view"]
    payload, _ = await acker(workspace.click_view(people.BEN, "s", value="1"))

    updated = await client.views_update(view_id=view["id"], hash=view["hash"], view=modal(blocks=[chooser, section()]))

    assert payload["container"] == {"type": "view", "view_id": view["id"]}
    assert "response_url" not in payload
    assert updated["view"]["state"]["values"]["pick"]["s"]["selected_option"]["value"] == "1"
    with pytest.raises(SlackApiError, match="hash_conflict"):
        await client.views_update(view_id=view["id"], hash=view["hash"], view=modal())
    with pytest.raises(SlackApiError, match="not_found"):
        await client.views_update(view_id="V0GONE", view=modal())


async def test_closing_is_reported_where_it_was_asked_for(
    workspace: LocalWorkspace, client: AsyncWebClient, acker: Acker
) -> None:
    await client.views_open(trigger_id=await trigger(workspace), view=modal(notify_on_close=True))
    payload, _ = await acker(workspace.close_view(people.BEN))
    assert (payload["type"], payload["is_cleared"]) == ("view_closed", False)

    await client.views_open(trigger_id=await trigger(workspace), view=modal())
    assert (await workspace.close_view(people.BEN)).ok
    assert workspace.views(people.BEN) == []


async def test_the_home_tab_is_published_opened_and_clicked(
    workspace: LocalWorkspace, client: AsyncWebClient, raw: RawApp
) -> None:
    await client.views_publish(user_id=people.BEN, view={"type": "home", "blocks": [actions(button())]})
    socket = await raw.connect()

    await workspace.open_home(people.BEN)
    opened = (await socket.receive_json())["payload"]["event"]
    clicking = asyncio.ensure_future(workspace.click_view(people.BEN, "go", view_id=opened["view"]["id"]))
    clicked = (await socket.receive_json())["payload"]
    clicking.cancel()

    assert (opened["type"], opened["tab"], opened["channel"]) == ("app_home_opened", "home", "D0BEN00001")
    assert clicked["view"]["type"] == "home"
    assert "message" not in clicked


async def test_commands_do_not_work_in_threads_nor_under_other_names(workspace: LocalWorkspace) -> None:
    root = await workspace.say(people.BEN, people.GENERAL, "root")

    in_thread = await workspace.command(people.BEN, people.GENERAL, "/harness", "x", root["ts"])
    other = await workspace.command(people.BEN, people.GENERAL, "/other")

    assert (in_thread.error, other.error) == ("not_supported_in_threads", "invalid_command")
    assert workspace.world.hub.sockets == []
