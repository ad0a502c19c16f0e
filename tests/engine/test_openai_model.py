"""The OpenAI-compatible model, asked over real HTTP: what it sends, what it makes of a reply, and of a fault."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI

from harness_core.calls import normalise
from harness_core.errors import ConfigError, ModelError
from harness_core.events import HITLPending, ModelFailed, ReasonEnd, RunEnd, ToolCallEnd
from harness_core.handle import HITL
from harness_core.models.chat_errors import Asked, complaint
from harness_core.models.chat_reply import ReplyBuilder
from harness_core.models.chat_request import body
from harness_core.models.openai import OpenAIModel, Price, openai_model
from harness_core.ports import ModelReply, ModelRequest, TextDelta, ToolSpec
from harness_core.testing import FakeClock, RecordingTool
from harness_core.types import NO_DEADLINE, Deadline, Message, ToolCall, Usage
from tests.engine import fake_openai
from tests.engine.fake_openai import (
    KEY,
    MODEL,
    FakeOpenAI,
    Silence,
    Stream,
    Whole,
    chunk,
    cut,
    deltas,
    piece,
    refusal,
    text,
    tool,
    usage,
)
from tests.engine.harness import Bench, names, only, request

LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"path": {"type": "string"}}})
LOOKUP = ToolSpec("lookup", "Looks up.", {"type": "object", "properties": {}})
WRITE = ToolSpec("write", "Writes.", {"type": "object", "properties": {}})
HI = ModelRequest("Be brief.", [Message("user", "hi")], (LOOK, LOOKUP, WRITE))
SOON = Deadline(0.05)  # on a clock that stands at 0


@asynccontextmanager
async def model_at(base_url: str, **options: Any) -> AsyncIterator[OpenAIModel]:
    options.setdefault("api_key", KEY)
    model = OpenAIModel(MODEL, base_url=base_url, **options)
    try:
        yield model
    finally:
        await model.aclose()


async def pieces_of(model: OpenAIModel, asked: ModelRequest = HI, deadline: Deadline = NO_DEADLINE) -> list[Any]:
    return [part async for part in model.stream(asked, deadline)]


async def reply_to(reply: fake_openai.Reply, asked: ModelRequest = HI, **options: Any) -> ModelReply:
    async with FakeOpenAI(reply) as server, model_at(server.base_url, **options) as model:
        *shown, last = await pieces_of(model, asked)
    assert isinstance(last, ModelReply)
    assert "".join(p.text for p in shown) == last.text
    return last


async def error_of(reply: fake_openai.Reply, **options: Any) -> ModelError:
    async with FakeOpenAI(reply) as server, model_at(server.base_url, **options) as model:
        with pytest.raises(ModelError) as caught:
            await pieces_of(model)
    assert KEY not in str(caught.value)
    return caught.value


def calls_of(reply: ModelReply) -> list[tuple[str, object]]:
    return [(c.name, c.arguments) for c in reply.calls]


# -- what it sends -----------------------------------------------------------------------------------------------------


async def test_a_conversation_is_sent_as_the_protocol_has_it() -> None:
    asked = ToolCall("r1-1-1", "look", {"b": 1, "a": "ü"}, provider_id="theirs", raw='{"b": 1}')
    talk = [
        Message("user", "look"),
        Message("assistant", "I look.", (asked,)),
        Message("tool", "seen", call_uuid="r1-1-1"),
        Message("assistant", "Done."),
        Message("user", "thanks"),
    ]
    async with FakeOpenAI(text("ok")) as server, model_at(server.base_url) as model:
        await pieces_of(model, ModelRequest("Be brief.", talk, (LOOK,)))

    assert server.bodies() == [
        {
            "model": MODEL,
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "look", "description": "Looks.", "parameters": dict(LOOK.schema)},
                }
            ],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "look"},
                {
                    "role": "assistant",
                    "content": "I look.",
                    "tool_calls": [
                        {
                            "id": "r1-1-1",
                            "type": "function",
                            "function": {"name": "look", "arguments": '{"a":"ü","b":1}'},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "r1-1-1", "content": "seen"},
                {"role": "assistant", "content": "Done."},
                {"role": "user", "content": "thanks"},
            ],
        }
    ]
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"


def test_without_tools_no_table_of_tools_is_sent() -> None:
    assert "tools" not in body(MODEL, ModelRequest("s", [Message("user", "hi")]))


anything = st.text(max_size=6) | st.sampled_from(["", " ", "\ud83d", "look", "héllo wörld"])
a_call = st.builds(
    ToolCall,
    call_uuid=st.integers(0, 10**9).map(lambda n: f"r{n}"),
    name=anything,
    args=st.dictionaries(st.text(max_size=3), st.none() | st.integers() | anything, max_size=2),
)
a_message = (
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), anything)
    | st.builds(Message, st.just("assistant"), anything, st.lists(a_call, max_size=3).map(tuple))
    | st.builds(Message, st.just("tool"), anything, call_uuid=st.sampled_from(["r0", "r1", ""]))
)


@given(st.lists(a_message, max_size=6))
def test_whatever_the_history_a_strict_provider_accepts_it(talk: list[Message]) -> None:
    uuids = [c.call_uuid for m in talk for c in m.calls]
    if len(set(uuids)) < len(uuids):  # call ids are unique in a session
        return

    sent = body(MODEL, ModelRequest("Be brief.", [*talk, Message("user", "hi")], (LOOK,)))

    assert fake_openai.complaint(json.loads(json.dumps(sent).encode())) == ""


def test_results_are_sent_in_the_order_of_their_calls_and_strays_are_left_out() -> None:
    one, two = ToolCall("u1", "look", {}), ToolCall("u2", "look", {})
    talk = [
        Message("tool", "stray", call_uuid="u0"),
        Message("assistant", "", (one, two)),
        Message("tool", "2", call_uuid="u2"),
        Message("tool", " ", call_uuid="u1"),
        Message("tool", "again", call_uuid="u2"),
    ]

    sent = body(MODEL, ModelRequest("", talk))["messages"]

    assert [(m["role"], m.get("tool_call_id"), m["content"]) for m in sent] == [
        ("assistant", None, None),
        ("tool", "u1", "(no output)"),
        ("tool", "u2", "2"),
    ]


async def test_settings_of_the_environment_are_not_read_behind_our_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-of-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    async with FakeOpenAI(text("ok"), key="none") as server, model_at(server.base_url, api_key=None) as model:
        await pieces_of(model)

    assert "of-the-environment" not in str(server.requests[0].headers)


# -- replies -----------------------------------------------------------------------------------------------------------


async def test_text_arrives_piece_by_piece_and_the_whole_message_last() -> None:
    async with FakeOpenAI(text("Hel", "lo")) as server, model_at(server.base_url) as model:
        got = await pieces_of(model)

    assert got == [TextDelta("Hel"), TextDelta("lo"), ModelReply("Hello", (), Usage(120, 7, 100), "stop")]


async def test_a_cost_that_the_provider_tells_is_kept() -> None:
    told = Stream([*text("hi").pieces[:-1], usage(cost=0.0042)])

    assert (await reply_to(told, prices={MODEL: Price(1, 1)})).usage.cost == 0.0042


async def test_else_the_cost_is_by_the_prices_given() -> None:
    prices = {MODEL: Price(input=2.0, output=10.0, cached=0.5), "other": Price(99, 99)}

    cost = (await reply_to(text("hi"), prices=prices)).usage.cost

    assert cost == pytest.approx((20 * 2.0 + 100 * 0.5 + 7 * 10.0) / 1e6)
    assert (await reply_to(text("hi"), prices={"other": Price(9, 9)})).usage.cost is None


async def test_where_every_chunk_tells_the_usage_the_last_one_counts() -> None:
    growing = Stream(
        [
            chunk({"content": "a"}, usage={"prompt_tokens": 5, "completion_tokens": 1}),
            chunk({"content": "b"}, usage=None),
            chunk({}, "stop", usage={"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 3}),
        ]
    )

    assert (await reply_to(growing)).usage == Usage(5, 2, 3)


@pytest.mark.parametrize("junk", [None, [], {}, {"prompt_tokens": "many", "completion_tokens": -4, "cost": "free"}])
async def test_a_usage_that_cannot_be_read_counts_as_none(junk: object) -> None:
    assert (await reply_to(Stream([chunk({"content": "a"}, "stop", usage=junk)]))).usage == Usage()


async def test_an_emoji_cut_in_two_by_the_stream_is_whole_again_and_half_a_one_is_replaced() -> None:
    split = Stream([chunk({"content": "a\ud83d"}), chunk({"content": "\ude00b\ud83d"}), chunk({}, "stop")])

    assert (await reply_to(split)).text == "a😀b\ufffd"


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "hi"},
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}]},
        {"content": None, "refusal": "hi"},
        {"content": "hi", "reasoning_content": "hm", "tool_calls": None},
    ],
)
async def test_text_is_found_in_every_place_where_providers_put_it(delta: dict[str, Any]) -> None:
    assert (await reply_to(Stream([chunk(delta), chunk({}, "stop")]))).text == "hi"


async def test_comments_and_empty_chunks_between_are_passed_over() -> None:
    stream = Stream([": PROCESSING\n\n", {"choices": []}, chunk({"content": "hi"}), ": ping\n\n", chunk({}, "stop")])

    assert (await reply_to(stream)).text == "hi"


async def test_a_server_that_does_not_stream_is_understood_too() -> None:
    message = {"role": "assistant", "content": "hi", "tool_calls": [piece(None, "c1", "look", '{"path":"a"}')]}
    whole = Whole(body={"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": {}})

    reply = await reply_to(whole)

    assert (reply.text, calls_of(reply)) == ("hi", [("look", '{"path":"a"}')])


# -- tool calls --------------------------------------------------------------------------------------------------------

A, B, C = '{"path":"a"}', '{"path":"b"}', '{"path":"c"}'

ASSEMBLED: dict[str, tuple[Stream, list[tuple[str, str]]]] = {
    "one call in pieces": (tool("look", A), [("look", A)]),
    "two calls one after the other": (
        deltas(piece(0, "1", "look", ""), piece(0, arguments=A), piece(1, "2", "write", ""), piece(1, arguments=B)),
        [("look", A), ("write", B)],
    ),
    "two calls interleaved": (
        deltas(
            [piece(0, "1", "look", A[:5]), piece(1, "2", "write", B[:3])],
            piece(1, arguments=B[3:]),
            piece(0, arguments=A[5:]),
        ),
        [("look", A), ("write", B)],
    ),
    "three whole calls that share an index, each with an id": (
        deltas(piece(0, "1", "look", A), piece(0, "2", "look", B), piece(0, "3", "write", C)),
        [("look", A), ("look", B), ("write", C)],
    ),
    "three whole calls that share an index, without ids": (
        deltas(piece(0, name="look", arguments=A), piece(0, name="look", arguments=B), piece(0, "", "write", C)),
        [("look", A), ("look", B), ("write", C)],
    ),
    "calls in pieces that share an index": (
        deltas(
            piece(0, "1", "look", ""),
            piece(0, arguments=A[:4]),
            piece(0, arguments=A[4:]),
            piece(0, "2", "write", ""),
            piece(0, arguments=B[:4]),
            piece(0, arguments=B[4:]),
        ),
        [("look", A), ("write", B)],
    ),
    "no index at all, found by id": (
        deltas(
            piece(None, "1", "look", A[:4]),
            piece(None, "2", "write", B[:4]),
            piece(None, "1", arguments=A[4:]),
            piece(None, "2", arguments=B[4:]),
        ),
        [("look", A), ("write", B)],
    ),
    "neither index nor id": (
        deltas(
            piece(name="look", arguments=A), piece(name="write", arguments=B[:4]), piece(name=None, arguments=B[4:])
        ),
        [("look", A), ("write", B)],
    ),
    "one id for all": (
        deltas(piece(0, "x", "look", A), piece(0, "x", "write", B), piece(1, "x", "look", C)),
        [("look", A), ("write", B), ("look", C)],
    ),
    "a late id": (
        deltas(piece(0, name="look", arguments=A[:4]), piece(0, "1", arguments=A[4:]), piece(1, "2", "write", B)),
        [("look", A), ("write", B)],
    ),
    "an id after the end": (deltas(piece(0, name="look", arguments=A), piece(0, "1")), [("look", A)]),
    "id and name in every piece": (
        deltas(piece(0, "1", "look", A[:4]), piece(0, "1", "look", A[4:]), piece(0, "1", "look", "")),
        [("look", A)],
    ),
    "another id in every piece": (
        deltas(
            piece(0, "1", "look", ""), piece(0, "2", arguments=A[:4]), piece(0, "3", arguments=A[4:]), piece(0, "4")
        ),
        [("look", A)],
    ),
    "another id in every piece, and a late name": (
        deltas(piece(0, "1", arguments=A[:4]), piece(0, "2", "look", A[4:])),
        [("look", A)],
    ),
    "a second call at the same index, and its late name": (
        deltas(piece(0, "1", "look", A), piece(0, "2", arguments=B), piece(0, "2", "write")),
        [("look", A), ("write", B)],
    ),
    "a name in two halves": (
        deltas(piece(0, "1", "lo"), piece(0, name="ok"), piece(0, arguments=A)),
        [("look", A)],
    ),
    "a name in two halves, the first of which is a tool too": (
        deltas(piece(0, "1", "look"), piece(0, name="up"), piece(0, arguments=A)),
        [("lookup", A)],
    ),
    "a name that grows": (deltas(piece(0, "1", "loo"), piece(0, "1", "lookup", A)), [("lookup", A)]),
    "a late name": (deltas(piece(0, "1", None, A), piece(0, name="look")), [("look", A)]),
    "a name said again at the end": (
        deltas(piece(0, "1", "look", A), piece(0, name="look", arguments="")),
        [("look", A)],
    ),
    "another tool, without arguments so far": (
        deltas(piece(0, name="look", arguments=""), piece(0, name="write", arguments=""), piece(0, arguments=B)),
        [("look", ""), ("write", B)],
    ),
    "the same call said twice": (deltas(piece(0, "1", "look", A), piece(0, "1", "look", A)), [("look", A)]),
    "arguments as an object": (deltas(piece(0, "1", "look", {"path": "a"})), [("look", '{"path": "a"}')]),
    "braces and quotes inside": (
        deltas(piece(0, "1", "look", '{"path":"}'), piece(0, "1", arguments='\\"}{"}')),
        [("look", '{"path":"}\\"}{"}')],
    ),
    "blanks after the end": (
        deltas(piece(0, name="look", arguments=A), piece(0, arguments="\n"), piece(0, name="write", arguments=B)),
        [("look", A + "\n"), ("write", B)],
    ),
    "an emoji cut in two": (
        deltas(piece(0, "1", "look", '{"path":"\ud83d'), piece(0, arguments='\ude00"}')),
        [("look", '{"path":"😀"}')],
    ),
}


@pytest.mark.parametrize("case", ASSEMBLED)
async def test_calls_are_put_together(case: str) -> None:
    stream, expected = ASSEMBLED[case]

    assert calls_of(await reply_to(stream)) == expected


@given(st.data())
def test_numbered_calls_come_out_as_they_went_in_however_they_were_cut_and_mixed(data: st.DataObject) -> None:
    inner: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
        st.text(max_size=4), st.text(max_size=8) | st.integers() | st.just({"a": [{}]}), max_size=3
    )
    wanted = data.draw(st.lists(st.tuples(st.sampled_from(["look", "lookup", "write"]), inner), min_size=1, max_size=4))
    queues = []
    for index, (name, args) in enumerate(wanted):
        raw = json.dumps(args)
        places = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=4)))
        parts = [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]
        queues.append([piece(index, f"id{index}", name, ""), *(piece(index, arguments=p) for p in parts)])
    reply = ReplyBuilder({"look", "lookup", "write"})
    for queue in queues:  # they begin in order
        reply.add(chunk({"tool_calls": [queue.pop(0)]}))
    while any(queues):
        queue = data.draw(st.sampled_from([q for q in queues if q]))
        reply.add(chunk({"tool_calls": [queue.pop(0)]}))
    reply.add(chunk({}, "tool_calls"))

    got = [(c.name, json.loads(str(c.arguments)), c.id) for c in reply.whole().calls]

    assert got == [(name, args, f"id{n}") for n, (name, args) in enumerate(wanted)]


FIELDS = ["index", "id", "function", "name", "arguments", "tool_calls", "content", "delta", "choices", "usage"]
hostile = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["look", A, "{", "}", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)
a_piece = st.builds(
    piece,
    st.none() | st.integers(-1, 2) | hostile,
    st.none() | st.sampled_from(["", "1", "2"]) | hostile,
    st.none() | st.sampled_from(["", "look", "up", "write"]) | hostile,
    st.none() | st.sampled_from(["", "{", "}", A, '"', "NaN", "[]"]) | hostile,
)


def outcome(chunks: list[Any]) -> ModelReply | ModelError:
    reply = ReplyBuilder({"look", "lookup", "write"})
    try:
        for one in chunks:
            reply.add(one)
        return reply.whole()
    except ModelError as error:
        return error


@given(
    st.lists(
        a_piece.map(lambda p: chunk({"tool_calls": [p]})) | hostile.map(lambda d: chunk(cast(Any, d))) | hostile,
        max_size=8,
    )
)
def test_no_stream_however_broken_gives_anything_but_a_message_or_a_bad_reply(chunks: list[Any]) -> None:
    whole = outcome([*chunks, chunk({}, "stop")])
    if isinstance(whole, ModelError):
        assert whole.kind == "bad_reply"
        return

    calls = normalise(((c.name, c.arguments, c.id) for c in whole.calls), "r", 1, whole.finish_reason)

    assert body(MODEL, ModelRequest("s", [Message("assistant", whole.text, calls), Message("user", "hi")]))
    json.dumps(whole.text + whole.finish_reason, ensure_ascii=False).encode()


BROKEN = {
    "truncated": '{"path":"a',
    "a list": "[]",
    "null": "null",
    "NaN": "NaN",
    "NaN inside": '{"path":NaN}',
    "a text": '"a"',
    "a number": "12",
    "doubled": A + A,
    "two objects": A + B,
    "prose": "I would look at a",
    "too deep": '{"a":' * 100_000,
}


@pytest.mark.parametrize("case", BROKEN)
async def test_arguments_that_are_no_object_are_kept_raw_and_never_used(case: str) -> None:
    reply = await reply_to(deltas(piece(0, "1", "look", ""), piece(0, arguments=BROKEN[case])))

    assert calls_of(reply) == [("look", BROKEN[case])]
    (call,) = normalise(((c.name, c.arguments, c.id) for c in reply.calls), "r", 1, reply.finish_reason)
    assert (call.args, call.raw, call.provider_id) == ({}, BROKEN[case], "1")
    assert "JSON object" in call.problem


@pytest.mark.parametrize("empty", ["", "  ", "{}", None])
async def test_no_arguments_at_all_are_an_empty_object(empty: str | None) -> None:
    reply = await reply_to(deltas(piece(0, "1", "look", empty)))

    (call,) = normalise(((c.name, c.arguments, c.id) for c in reply.calls), "r", 1, reply.finish_reason)

    assert (call.args, call.problem) == ({}, "")


@pytest.mark.parametrize("finish", ["length", "content_filter", "max_tokens", "MAX_TOKENS", "SAFETY", "model_length"])
async def test_calls_of_a_reply_that_was_cut_off_are_not_carried_out(finish: str) -> None:
    reply = await reply_to(deltas(piece(0, "1", "look", A), finish=finish))

    (call,) = normalise(((c.name, c.arguments, c.id) for c in reply.calls), "r", 1, reply.finish_reason)

    assert "cut off" in call.problem


@pytest.mark.parametrize("finish", ["stop", "end_turn", "tool_calls", "function_call", "STOP"])
async def test_calls_count_whatever_else_the_finish_reason_says(finish: str) -> None:
    reply = await reply_to(deltas(piece(0, "1", "look", A), finish=finish, said="Let me look."))

    (call,) = normalise(((c.name, c.arguments, c.id) for c in reply.calls), "r", 1, reply.finish_reason)

    assert (reply.text, call.args, call.problem) == ("Let me look.", {"path": "a"}, "")


# -- streams that fail -------------------------------------------------------------------------------------------------

WHOLE = deltas(piece(0, "1", "look", A[:6]), piece(0, arguments=A[6:]), said="I look.")


@pytest.mark.parametrize("after", range(len(WHOLE.pieces)))
async def test_a_stream_cut_anywhere_is_a_bad_reply_and_no_call(after: int) -> None:
    assert (await error_of(cut(WHOLE, after))).kind == "bad_reply"


@pytest.mark.parametrize("finish", [None, "", "error", "abort"])
@pytest.mark.parametrize("done", [True, False])
async def test_a_stream_that_ends_without_saying_so_is_a_bad_reply(finish: str | None, done: bool) -> None:
    ended = Stream(deltas(piece(0, "1", "look", A), finish=finish).pieces, done=done)

    error = await error_of(ended)

    assert (error.kind, str(error)) == (
        "bad_reply",
        "The model's reply broke off in the middle. Nothing of it was carried out.",
    )


@pytest.mark.parametrize(
    "reply",
    [
        Whole(body="<!DOCTYPE html><html><body>Sign in</body></html>", content_type="text/html"),
        Whole(body="all is well", content_type="text/plain"),
        Whole(body="", content_type="application/json"),
        Whole(body="[" * 100_000, content_type="application/json"),
        Whole(body={"ok": True}),
        Whole(body=["a"]),
        Whole(body={"choices": ["x"]}),
        Stream(),
        Stream(["data: {not json}\n\n"]),
        Stream(["data: [1, 2]\n\n", chunk({}, "stop")]),
        Stream(["data: 7\n\n", chunk({}, "stop")]),
        Stream([{"choices": "x"}, chunk({}, "stop")]),
        Stream([{"choices": [{"delta": "x"}]}, chunk({}, "stop")]),
        Stream([chunk({"tool_calls": "x"}), chunk({}, "stop")]),
        Stream([chunk({"tool_calls": ["x"]}), chunk({}, "stop")]),
        Stream(["data: " + "[" * 100_000 + "\n\n"]),
    ],
)
async def test_what_is_no_reply_of_a_model_is_a_bad_reply(reply: fake_openai.Reply) -> None:
    assert (await error_of(reply)).kind == "bad_reply"


async def test_a_web_page_is_named_and_where_to_look() -> None:
    page = Whole(body="<html>Sign in</html>", content_type="text/html")

    assert "sent a web page that is no reply of a model. Check OPENAI_BASE_URL" in str(await error_of(page))


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"message": "Overloaded", "type": "overloaded_error"}, "server"),
        ({"message": "slow down", "code": "rate_limit_exceeded"}, "rate_limited"),
        ({"message": "slow down", "code": 429}, "rate_limited"),
        ({"message": "bad", "code": 502}, "server"),
        ({"message": "This model's maximum context length is 8192 tokens", "code": "400"}, "overflow"),
        ("out of memory", "server"),
    ],
)
async def test_an_error_in_the_middle_of_a_stream_is_told_like_one_at_its_beginning(said: object, kind: str) -> None:
    assert (await error_of(Stream([chunk({"content": "I"}), {"error": said}]))).kind == kind
    assert (await error_of(Whole(body={"error": said}))).kind == kind


# -- servers that refuse -----------------------------------------------------------------------------------------------


async def test_a_wrong_key_is_said_in_words_and_never_shown() -> None:
    async with FakeOpenAI(text("hi")) as server, model_at(server.base_url, api_key="sk-wrong-0123456789abcd") as model:
        with pytest.raises(ModelError) as caught:
            await pieces_of(model)

    assert caught.value.kind == "auth"
    assert "did not accept the API key. Check that OPENAI_API_KEY" in str(caught.value)
    assert "sk-wrong" not in str(caught.value)


async def test_an_unknown_model_is_named() -> None:
    async with FakeOpenAI(text("hi"), models=["other"]) as server, model_at(server.base_url) as model:
        with pytest.raises(ModelError, match=f"does not know the model {MODEL}.* Check HARNESS_MODEL") as caught:
            await pieces_of(model)

    assert caught.value.kind == "unknown_model"


async def test_a_wrong_path_says_to_look_at_the_address() -> None:
    async with FakeOpenAI(text("hi")) as server, model_at(server.origin) as model:
        with pytest.raises(ModelError, match=r"nothing at this address \(HTTP 404\)\. Check OPENAI_BASE_URL") as caught:
            await pieces_of(model)

    assert caught.value.kind == "unknown_model"


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (refusal(400, "API key not valid. Please pass a valid API key."), "auth", "did not accept the API key"),
        (refusal(403, "Country not supported"), "auth", "Country not supported"),
        (refusal(403, "No access to model `x`", "model_not_found"), "unknown_model", "Check HARNESS_MODEL"),
        (refusal(429, "You exceeded your quota", "insufficient_quota"), "auth", "add credit"),
        (refusal(402, "Payment Required"), "auth", "add credit"),
        (refusal(400, "Your credit balance is too low to access the API"), "auth", "add credit"),
        (refusal(400, "fake/1 is not a valid model ID"), "unknown_model", "Check HARNESS_MODEL"),
        (Whole(404, {"error": "model 'x' not found, try pulling it first"}), "unknown_model", "try pulling it first"),
        (Whole(404, {"detail": "Not Found"}), "unknown_model", "OPENAI_BASE_URL"),
        (refusal(404, "No endpoints found that support tool use."), "unknown_model", "cannot call tools"),
        (refusal(400, "llama does not support tools"), "unknown_model", "cannot call tools"),
        (refusal(408, "slow"), "timeout", "in time"),
        (refusal(429, "slow down"), "rate_limited", "too often"),
        (refusal(429, "Request too large for x on tokens per minute: Limit 9, Requested 10"), "overflow", "too long"),
        (refusal(413, ""), "overflow", "too long"),
        (Whole(413, "<html><h1>413 Request Entity Too Large</h1></html>"), "overflow", "too long"),
        (refusal(400, "tools[0].function.parameters: bad schema"), "refused", r"\(HTTP 400\)\. It says: tools"),
        (refusal(500, "boom"), "server", r"failed \(HTTP 500\)\. It says: boom"),
        (Whole(502, "<html>Bad gateway</html>", content_type="text/html"), "server", r"failed \(HTTP 502\)\.$"),
        (Whole(503, ""), "server", r"failed \(HTTP 503\)\.$"),
        (Whole(529, ["what"]), "server", r"\(HTTP 529\)"),
    ],
)
async def test_a_refusal_says_who_must_act_and_how(reply: Whole, kind: str, words: str) -> None:
    error = await error_of(reply)

    assert error.kind == kind
    with pytest.raises(ModelError, match=words):
        raise error


OVERFLOWS = {
    "OpenAI, by code": ("Too long.", "context_length_exceeded"),
    "OpenAI": ("Your input exceeds the context window of this model.", None),
    "vLLM": ("This model's maximum context length is 262144 tokens. However, you requested 0 output tokens", None),
    "vLLM, longer prompt": ("The decoder prompt (length 9) is longer than the maximum model length of 8.", None),
    "llama.cpp": ("the request exceeds the available context size, try increasing it", None),
    "Ollama": ("the input length exceeds the context length", None),
    "LM Studio": ("The number of tokens to keep from the initial prompt is greater than the context length.", None),
    "LiteLLM": ("litellm.ContextWindowExceededError: no", None),
    "Anthropic": ("prompt is too long: 213462 tokens > 200000 maximum", None),
    "Anthropic, with its answer": ("input length and `max_tokens` exceed context limit: 9 + 9 > 8", None),
    "Gemini": ("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", None),
    "Mistral": ("Prompt contains 9 tokens, too large for model with 8 maximum context length", None),
    "Groq": ("Please reduce the length of the messages or completion.", None),
    "OpenRouter": ("This endpoint's maximum context length is 8 tokens. However, you requested about 9", None),
    "Bedrock": ("Input is too long for requested model.", None),
    "xAI": ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", None),
    "Moonshot": ("Invalid request: Your request exceeded model token limit: 8192", None),
    "MiniMax": ("invalid params, context window exceeds limit", None),
    "Qwen": ("Range of input length should be [1, 30720]", None),
    "SGLang": ("The input (9 tokens) is longer than the model's context length (8 tokens).", None),
    "TGI": ("`inputs` tokens + `max_new_tokens` must be <= 4096", None),
    "GLM": ("Input length 877338 exceeds the maximum allowed input length of 639968 tokens", None),
}


@pytest.mark.parametrize("provider", OVERFLOWS)
async def test_a_context_overflow_is_known_by_the_words_of_each_provider(provider: str) -> None:
    message, code = OVERFLOWS[provider]

    assert (await error_of(refusal(400, message, code))).kind == "overflow"


async def test_what_a_relay_hides_in_its_metadata_is_read() -> None:
    inner = {"raw": '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}'}
    relayed = Whole(400, {"error": {"message": "Provider returned error", "code": 400, "metadata": inner}})

    assert (await error_of(relayed)).kind == "overflow"


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry_after": "7"}, "", 7.0),
        ({"retry_after": "7", "retry_after_ms": "1500"}, "", 1.5),
        ({"retry_after": "Mon, 05 Jan 2026 12:00:30 GMT", "date": "Mon, 05 Jan 2026 12:00:00 GMT"}, "", 30.0),
        ({"retry_after": "Mon, 05 Jan 2026 11:00:00 GMT", "date": "Mon, 05 Jan 2026 12:00:00 GMT"}, "", 0.0),
        ({"retry_after": "-3"}, "", 0.0),
        ({"retry_after": "nan"}, "", None),
        ({"retry_after": "soon"}, "", None),
        ({}, "Please retry in 34.5s.", 34.5),
        ({}, "Please try again in 250ms.", 0.25),
        ({}, "", None),
    ],
)
async def test_a_wait_that_the_server_asks_for_is_passed_on(
    headers: dict[str, str], message: str, seconds: float | None
) -> None:
    error = await error_of(refusal(429, message, **headers))

    assert (error.kind, error.retry_after) == ("rate_limited", seconds)


async def test_a_request_that_failed_is_not_sent_again_from_here() -> None:
    async with FakeOpenAI(refusal(503, "later"), text("hi")) as server, model_at(server.base_url) as model:
        with pytest.raises(ModelError):
            await pieces_of(model)

    assert len(server.requests) == 1


async def test_the_key_is_in_no_message_and_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    error = await error_of(refusal(500, f"bad header: Bearer {KEY}"))

    assert "bad header: Bearer •••" in str(error)
    assert KEY not in caplog.text
    assert error.__cause__ is None


@given(st.integers(0, 600), hostile, st.dictionaries(st.sampled_from(["retry-after", "date"]), st.text(max_size=8)))
def test_any_error_body_becomes_a_short_message(status: int, said: object, headers: dict[str, str]) -> None:
    for shape in (said, {"error": said}, {"error": {"message": said, "code": said, "metadata": {"raw": said}}}):
        error = Asked(MODEL, "http://x/v1", KEY).refused(complaint(status, shape, headers))

        assert 0 < len(str(error)) < 700


# -- servers that are not there ----------------------------------------------------------------------------------------


async def unreachable(base_url: str) -> ModelError:
    async with model_at(base_url) as model:
        with pytest.raises(ModelError) as caught:
            await pieces_of(model)
    return caught.value


async def test_a_dead_server_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        port = taken.getsockname()[1]

        error = await unreachable(f"http://127.0.0.1:{port}/v1")

    assert error.kind == "unreachable"
    assert f"127.0.0.1:{port} cannot be reached: nothing listens there." in str(error)


async def test_a_server_that_hangs_up_at_once_is_unreachable() -> None:
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        error = await unreachable(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")

    assert error.kind == "unreachable"


async def test_https_to_a_server_without_is_unreachable_and_says_so() -> None:
    async with FakeOpenAI(text("hi")) as server:
        error = await unreachable(server.base_url.replace("http:", "https:"))

    assert error.kind == "unreachable"
    assert "the TLS connection failed" in str(error)


def not_trusted() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("raised", "cause", "words"),
    [
        (httpx2.ConnectError, socket.gaierror(-2, "Name or service not known"), "no server of that name"),
        (httpx2.ConnectError, not_trusted(), "certificate is not trusted (self-signed certificate)"),
        (httpx2.ConnectTimeout, None, "it does not answer"),
        (httpx2.PoolTimeout, None, "it does not answer"),
    ],
)
async def test_what_keeps_a_connection_from_being_made_is_said(
    raised: type[httpx2.TransportError], cause: Exception | None, words: str
) -> None:
    def fail(_: httpx2.Request) -> httpx2.Response:
        raise raised("no") from cause

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(fail)) as http:
        model = OpenAIModel(MODEL, client=AsyncOpenAI(api_key=KEY, base_url="http://llm.test/v1", http_client=http))
        with pytest.raises(ModelError) as caught:
            await pieces_of(model)
        await model.aclose()

        assert caught.value.kind == "unreachable"
        assert str(caught.value).startswith("The model's server llm.test cannot be reached: ")
        assert words in str(caught.value)
        assert not http.is_closed  # a client that was given is its owner's to close


STALLED: dict[str, Callable[[asyncio.Event], fake_openai.Reply]] = {
    "before its first word": lambda never: Silence(never),
    "before its first chunk": lambda never: Stream(until=never),
    "in the middle": lambda never: Stream([chunk({"content": "I"})], until=never),
    "after a comment": lambda never: Stream([": still here\n\n"], until=never),
    "in the middle of a whole message": lambda never: Stream(['{"choi'], until=never, content_type="application/json"),
}


@pytest.mark.parametrize("where", STALLED)
async def test_a_server_that_stalls_is_left_at_the_deadline(where: str) -> None:
    reply = STALLED[where](asyncio.Event())
    async with (
        FakeOpenAI(reply) as server,
        model_at(server.base_url, monotonic=FakeClock().monotonic) as model,
    ):
        with pytest.raises(ModelError, match="did not answer in time") as caught:
            await pieces_of(model, deadline=SOON)

    assert caught.value.kind == "timeout"


async def test_a_server_that_only_says_that_it_is_still_there_is_left_at_the_deadline() -> None:
    async def comments() -> AsyncIterator[bytes]:
        while True:
            yield b": still here\n\n"
            await asyncio.sleep(0)

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=comments())

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        client = AsyncOpenAI(api_key=KEY, base_url="http://llm.test/v1", http_client=http)
        with pytest.raises(ModelError, match="did not answer in time"):
            await pieces_of(OpenAIModel(MODEL, client=client, monotonic=FakeClock().monotonic), deadline=SOON)


# -- requests that are given up ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", STALLED)
async def test_cancelling_closes_the_connection(where: str) -> None:
    async with FakeOpenAI(STALLED[where](asyncio.Event())) as server, model_at(server.base_url) as model:
        asking = asyncio.create_task(pieces_of(model))
        await server.came.reach(1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await server.left.reach(1)


async def test_leaving_a_stream_closes_the_connection_and_the_model_goes_on_working() -> None:
    held = Stream([chunk({"content": "I"})], until=asyncio.Event())
    async with FakeOpenAI(held, text("ok")) as server, model_at(server.base_url) as model:
        stream: Any = model.stream(HI, NO_DEADLINE)
        assert await anext(stream) == TextDelta("I")
        await stream.aclose()
        await server.left.reach(1)

        assert (await pieces_of(model))[-1].text == "ok"


async def test_nothing_is_left_open_by_a_model_that_was_closed() -> None:
    await error_of(cut(WHOLE, 2))
    await reply_to(text("hi"))

    gc.collect()  # a connection left open warns here, and a warning is an error


async def test_two_models_at_once_share_nothing() -> None:
    held = asyncio.Event()
    slow = Stream([chunk({"content": "slow"}), chunk({}, "stop"), usage()], until=held)
    async with (
        FakeOpenAI(slow, key="key-of-one") as one,
        FakeOpenAI(text("fast"), key="key-of-two") as two,
        model_at(one.base_url, api_key="key-of-one", prices={MODEL: Price(1, 1)}) as first,
        model_at(two.base_url, api_key="key-of-two") as second,
    ):
        asking = asyncio.create_task(pieces_of(first))
        await one.came.reach(1)
        other = (await pieces_of(second))[-1]
        await second.aclose()
        held.set()
        mine = (await asking)[-1]

    assert (other.text, other.usage.cost) == ("fast", None)
    assert (mine.text, mine.usage.cost is None) == ("slow", False)


async def test_many_requests_at_once_of_one_model_do_not_mix() -> None:
    async with (
        FakeOpenAI(lambda asked: text(*asked["messages"][-1]["content"])) as server,
        model_at(server.base_url) as model,
    ):
        asked = [ModelRequest("s", [Message("user", f"question {n}")]) for n in range(20)]
        got = await asyncio.gather(*(pieces_of(model, one) for one in asked))

    assert [parts[-1].text for parts in got] == [f"question {n}" for n in range(20)]


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("", "", KEY), "HARNESS_MODEL is missing"),
        (("a\nb", "", KEY), "HARNESS_MODEL holds characters"),
        (("m", "", ""), "OPENAI_API_KEY is missing"),
        (("m", "https://api.openai.com/v1", ""), "OPENAI_API_KEY is missing"),
        (("m", "localhost:11434/v1", ""), "must be an address"),
        (("m", "ftp://host/v1", ""), "must be an address"),
        (("m", "http://host:99999/v1", ""), "must be an address"),
        (("m", "http://[::1/v1", ""), "must be an address"),
        (("m", "http://ho st/v1", ""), "must be an address"),
        (("m", "https://me:secret@host/v1", ""), "no name, password"),
        (("m", "https://host/v1?key=secret", ""), "no name, password"),
        (("m", "https://host/v1/chat/completions", ""), "the part before /chat/completions"),
        (("m", "", "sk-a b"), "OPENAI_API_KEY holds blanks"),
        (("m", "", "sk-a\nsk-b"), "OPENAI_API_KEY holds blanks"),
        (("m", "", "sk-schlüssel"), "OPENAI_API_KEY holds blanks"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_words(settings: tuple[str, str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        openai_model(*settings)

    assert "secret" not in str(caught.value)
    assert "sk-" not in str(caught.value)


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        openai_model("", "nowhere", "sk-a b")

    assert str(caught.value).count("\n- ") == 3


async def test_good_settings_make_a_model_and_blanks_around_them_do_not_matter() -> None:
    async with FakeOpenAI(text("hi")) as server:
        model = openai_model(f" {MODEL}\n", f" {server.base_url}/ ", f"{KEY}\n")
        assert model.name == MODEL
        assert (await pieces_of(model))[-1].text == "hi"
        await model.aclose()


async def test_a_local_server_needs_no_key() -> None:
    async with FakeOpenAI(text("hi"), key="none") as server:
        model = openai_model(MODEL, server.base_url)
        assert (await pieces_of(model))[-1].text == "hi"
        await model.aclose()


# -- with the engine ---------------------------------------------------------------------------------------------------


async def test_a_sensitive_call_is_approved_run_and_answered(bench: Bench) -> None:
    change, look = RecordingTool("change"), RecordingTool("look", read_only=True, repeatable=True)
    replies = tool("look", '{"path": "x"}', "call_0"), tool("change", '{"a": 1}', "call_0"), text("All", " done.")
    async with (
        FakeOpenAI(*replies) as server,
        model_at(server.base_url, monotonic=bench.clock.monotonic) as model,
    ):
        before = await request(bench.engine(model, [look, change]), "please change it")
        assert only(before, RunEnd).status == "pending"
        assert change.runs == []
        await bench.drop()

        engine = bench.engine(model, [look, change])
        await HITL.approve(await engine.session("s"), only(before, HITLPending).tasks[0], by="U2")
        after = await request(engine)

        assert only(after, RunEnd).answer == "All done."
        assert "ReasonDelta" in names(after)
        assert change.runs == [{"a": 1}]
        assert only(after, ReasonEnd).usage == Usage(120, 7, 100)

    first, second, third = (r.raw for r in server.requests)
    assert second.startswith(first.removesuffix(b"]}"))  # tools, system prompt and all that was said before
    assert third.startswith(second.removesuffix(b"]}"))
    ids = [c["id"] for m in server.bodies()[-1]["messages"] for c in m.get("tool_calls", [])]
    assert len(set(ids)) == 2  # ours, though the server named both calls alike


async def test_calls_that_cannot_be_used_leave_a_conversation_that_goes_on(bench: Bench) -> None:
    change = RecordingTool("change")
    broken = deltas(piece(0, "1", "change", A + B), piece(1, "2", "no such tool!", "{}"), piece(2, "3", "", "null"))
    async with (
        FakeOpenAI(broken, text("Sorry.")) as server,
        model_at(server.base_url, monotonic=bench.clock.monotonic) as model,
    ):
        events = await request(bench.engine(model, [change]), "change it")

    assert only(events, RunEnd).answer == "Sorry."
    assert [e.outcome for e in events if isinstance(e, ToolCallEnd)] == ["error", "error", "error"]
    assert change.runs == []
    sent = server.bodies()[1]["messages"]
    assert [c["function"] for c in sent[2]["tool_calls"]] == [
        {"name": "change", "arguments": "{}"},
        {"name": "no_such_tool_", "arguments": "{}"},
        {"name": "unnamed", "arguments": "{}"},
    ]


async def test_the_engine_asks_again_after_the_time_that_the_server_named(bench: Bench) -> None:
    async with (
        FakeOpenAI(refusal(429, "slow down", retry_after="7"), text("hi")) as server,
        model_at(server.base_url, monotonic=bench.clock.monotonic) as model,
    ):
        asking = asyncio.create_task(request(bench.engine(model), "hi"))
        await bench.clock.naps.reach(1)
        bench.clock.advance(7)
        events = await asking

    assert only(events, RunEnd).answer == "hi"
    (failed,) = [e for e in await bench.store.read("s") if isinstance(e, ModelFailed)]
    assert (failed.kind, failed.retry_after, len(server.requests)) == ("rate_limited", 7.0, 2)


async def test_a_wrong_key_ends_the_run_at_once_with_words_for_people(bench: Bench) -> None:
    async with (
        FakeOpenAI(text("hi")) as server,
        model_at(server.base_url, api_key="sk-wrong-0123456789abcd", monotonic=bench.clock.monotonic) as model,
    ):
        end = only(await request(bench.engine(model), "hi"), RunEnd)

    assert end.status == "failed"
    assert "Check that OPENAI_API_KEY is a valid key" in end.answer
    assert len(server.requests) == 1


async def test_a_stop_while_the_model_speaks_closes_the_connection(bench: Bench) -> None:
    held = Stream([chunk({"content": "I"})], until=asyncio.Event())
    async with (
        FakeOpenAI(held) as server,
        model_at(server.base_url, monotonic=bench.clock.monotonic) as model,
    ):
        engine = bench.engine(model)
        asking = asyncio.create_task(request(engine, "hi"))
        await server.came.reach(1)
        await engine.stop(await engine.session("s"), by="U1")
        await server.left.reach(1)

        assert only(await asking, RunEnd).status == "stopped"
