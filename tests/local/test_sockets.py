"""Socket Mode: who gets an envelope, and what happens when nobody acknowledges it."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp

from bot.local import LocalWorkspace, people
from tests.local.conftest import Clock, RawApp

BUTTON = {"type": "button", "action_id": "go", "text": {"type": "plain_text", "text": "Go"}, "value": "1"}
CARD = [{"type": "actions", "block_id": "b", "elements": [BUTTON]}]


async def ack(socket: aiohttp.ClientWebSocketResponse, frame: dict[str, Any], payload: Any = None) -> None:
    await socket.send_json({"envelope_id": frame["envelope_id"]} | ({"payload": payload} if payload else {}))


async def test_hello_says_how_many_connections_there_are(raw: RawApp) -> None:
    await raw.connect()
    await raw.connect()

    assert raw.hello["type"] == "hello"
    assert raw.hello["num_connections"] == 2
    assert raw.hello["connection_info"] == {"app_id": people.APP_ID}
    assert "approximate_connection_time" in raw.hello["debug_info"]


async def test_a_ticket_opens_one_connection_only(workspace: LocalWorkspace, raw: RawApp) -> None:
    url = f"{workspace.url}/_socket?ticket={workspace.world.hub.ticket()}"
    await raw.session.ws_connect(url)

    async with raw.session.get(url) as reply:
        assert reply.status == 403


async def test_an_eleventh_connection_is_turned_away(workspace: LocalWorkspace, raw: RawApp) -> None:
    for _ in range(10):
        await raw.connect()

    await raw.connect()

    assert raw.hello["reason"] == "too_many_websockets"
    assert workspace.connections == 10


async def test_each_envelope_goes_to_exactly_one_connection(workspace: LocalWorkspace, raw: RawApp) -> None:
    one, two = await raw.connect(), await raw.connect()

    for text in ("a", "b"):
        await workspace.say(people.BEN, people.GENERAL, text)

    texts = {(await socket.receive_json())["payload"]["event"]["text"] for socket in (one, two)}
    assert texts == {"a", "b"}


async def test_an_event_comes_again_at_once_then_after_a_minute_then_after_five(
    workspace: LocalWorkspace, raw: RawApp, clock: Clock
) -> None:
    socket = await raw.connect()
    await workspace.say(people.BEN, people.GENERAL, "hi")
    frames = [await socket.receive_json()]

    def wait(seconds: float) -> int:
        """Let time pass.  Out: how often the event was sent until then."""
        clock.now += seconds
        workspace.tick()
        return [entry["kind"] for entry in workspace.log].count("sent")

    assert (wait(2.9), wait(0.2)) == (1, 2)  # timed out, sent again at once
    assert (wait(3.1), wait(59.8), wait(0.3)) == (2, 2, 3)
    assert (wait(3.1), wait(299.8), wait(0.3)) == (3, 3, 4)
    assert wait(3.1) == 4
    frames += [await socket.receive_json() for _ in range(3)]

    assert [(frame["retry_attempt"], frame["retry_reason"]) for frame in frames] == [
        (0, ""), (1, "timeout"), (2, "timeout"), (3, "timeout"),
    ]  # fmt: skip
    assert len({frame["payload"]["event_id"] for frame in frames}) == 1
    assert workspace.log[-1]["kind"] == "gave_up"
    assert workspace.world.hub.pending == {}


async def test_an_acknowledged_event_never_comes_again(workspace: LocalWorkspace, raw: RawApp) -> None:
    socket = await raw.connect()
    await workspace.say(people.BEN, people.GENERAL, "hi")
    await ack(socket, await socket.receive_json())
    await workspace.wait_for(lambda w: not w.world.hub.pending)

    workspace.redeliver_now()

    assert [entry["kind"] for entry in workspace.log].count("sent") == 1


async def test_redeliver_now_skips_the_pauses(workspace: LocalWorkspace, raw: RawApp) -> None:
    socket = await raw.connect()
    await workspace.say(people.BEN, people.GENERAL, "hi")

    for _ in range(3):
        workspace.redeliver_now()

    assert [(await socket.receive_json())["retry_attempt"] for _ in range(4)] == [0, 1, 2, 3]


async def test_an_acknowledged_event_can_be_sent_once_more(workspace: LocalWorkspace, raw: RawApp) -> None:
    socket = await raw.connect()
    said = await workspace.say(people.BEN, people.GENERAL, "@harness hi")
    frames = [await socket.receive_json() for _ in range(2)]
    for frame in frames:
        await ack(socket, frame)
    await workspace.wait_for(lambda w: not w.world.hub.pending)

    assert workspace.replay(said["ts"]) == 2

    again = [await socket.receive_json() for _ in range(2)]
    assert [frame["payload"] for frame in again] == [frame["payload"] for frame in frames]


async def test_a_lost_connection_hands_its_events_to_the_next(workspace: LocalWorkspace, raw: RawApp) -> None:
    one = await raw.connect()
    await workspace.say(people.BEN, people.GENERAL, "hi")
    first = await one.receive_json()
    await one.close()
    await workspace.wait_for(lambda w: w.connections == 0)

    again = await (await raw.connect()).receive_json()

    assert again["payload"] == first["payload"]
    assert (again["retry_attempt"], again["retry_reason"]) == (1, "connection_failed")


async def test_events_wait_while_nobody_is_connected(workspace: LocalWorkspace, raw: RawApp) -> None:
    await workspace.say(people.BEN, people.GENERAL, "hi")

    frame = await (await raw.connect()).receive_json()

    assert (frame["payload"]["event"]["text"], frame["retry_attempt"]) == ("hi", 0)


async def test_a_click_that_is_not_acknowledged_fails_for_the_person_and_is_not_repeated(
    workspace: LocalWorkspace, raw: RawApp, clock: Clock, client: Any
) -> None:
    posted = await client.chat_postMessage(channel=people.GENERAL, text="?", blocks=CARD)
    workspace.world.hub.clear()
    socket = await raw.connect()
    clicking = asyncio.create_task(workspace.click(people.BEN, people.GENERAL, posted["ts"], "go"))
    frame = await socket.receive_json()
    clock.now += 3.1
    workspace.tick()
    answer = await clicking

    assert "retry_attempt" not in frame
    assert frame["accepts_response_payload"] is True
    assert (answer.ok, answer.error) == (False, "operation_timeout")
    assert workspace.log[-1]["user"] == people.BEN
    assert workspace.world.hub.pending == {}


async def test_a_click_with_no_app_connected_fails_at_once(workspace: LocalWorkspace, client: Any) -> None:
    posted = await client.chat_postMessage(channel=people.GENERAL, text="?", blocks=CARD)

    answer = await workspace.click(people.BEN, people.GENERAL, posted["ts"], "go")

    assert answer.error == "dispatch_failed"


async def test_disconnect_frames_carry_their_reason(workspace: LocalWorkspace, raw: RawApp) -> None:
    socket = await raw.connect()

    for reason in ("warning", "link_disabled"):
        workspace.disconnect(reason)

    assert [(await socket.receive_json())["reason"] for _ in range(2)] == ["warning", "link_disabled"]
    assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING)


async def test_pings_are_answered(raw: RawApp) -> None:
    socket = await raw.connect()
    socket._autoping = False

    await socket.ping(b"sdk-ping-pong:1.0")

    message = await socket.receive()
    assert (message.type, message.data) == (aiohttp.WSMsgType.PONG, b"sdk-ping-pong:1.0")


async def test_a_click_may_be_acknowledged_by_another_connection(
    workspace: LocalWorkspace, raw: RawApp, client: Any
) -> None:
    posted = await client.chat_postMessage(channel=people.GENERAL, text="?", blocks=CARD)
    workspace.world.hub.clear()
    one = await raw.connect()
    clicking = asyncio.create_task(workspace.click(people.BEN, people.GENERAL, posted["ts"], "go"))
    frame = await one.receive_json()
    two = await raw.connect()
    await one.close()

    await ack(two, frame)

    assert (await clicking).ok


async def stopped_before_it_was_acknowledged(workspace: LocalWorkspace) -> str | None:
    """Start, send a command that the app receives and does not acknowledge, and stop: what its sender is told."""
    await workspace.start()
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(f"{workspace.url}/_socket?ticket={workspace.world.hub.ticket()}")
        await socket.receive_json()
        waiting = asyncio.create_task(workspace.command(people.BEN, people.GENERAL, "/harness"))
        await socket.receive_json()
        closed = asyncio.create_task(socket.receive())
        await workspace.stop()
        await closed
    return (await waiting).error


async def test_whoever_waits_learns_that_the_workspace_stopped(clock: Clock) -> None:
    assert await stopped_before_it_was_acknowledged(LocalWorkspace(clock=clock)) == "dispatch_failed"


async def test_a_command_that_nobody_took_before_a_restart_is_not_sent_again(tmp_path: Path, clock: Clock) -> None:
    await stopped_before_it_was_acknowledged(LocalWorkspace(tmp_path / "w.db", clock=clock))

    async with LocalWorkspace(tmp_path / "w.db", clock=clock) as again:
        assert again.world.hub.pending == {}
        assert [(entry["user"], entry["what"]) for entry in again.log] == [(people.BEN, "operation_timeout")]
