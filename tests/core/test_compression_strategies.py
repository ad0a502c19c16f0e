"""How summaries are asked for: what is put to the model, what is made of its answers, and when it is given up."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest

from harness_core.compression.notes import note
from harness_core.compression.strategies import (
    MOST_QUESTIONS,
    Answer,
    CompositeCompressionStrategy,
    HierarchicalCompressionStrategy,
    KeyInfoExtractionStrategy,
    Question,
    Segment,
    Summarising,
    complains,
    default_strategy,
    says_nothing,
    summarise,
    transcript,
)
from harness_core.errors import ConfigError, ModelError
from harness_core.types import Message, ToolCall

TOO_LONG = ModelError("overflow", "context_length_exceeded")
BUSY = ModelError("server", "busy")


def count(text: str) -> int:
    return len(text.split())


def acts(uuid: str, result: str = "done") -> list[Message]:
    return [
        Message("assistant", f"doing {uuid}", (ToolCall(uuid, "tool", {"for": uuid}),)),
        Message("tool", result, call_uuid=uuid),
    ]


def said(*texts: str) -> list[Message]:
    return [Message("user", text) for text in texts]


def segment(messages: Sequence[Message], budget: int = 500, **more: Any) -> Segment:
    return Segment(tuple(messages), budget, count, **more)


def ask(
    strategy: Any, given: Segment, *answers: Answer | Callable[[Question], Answer]
) -> tuple[str | None, list[Question]]:
    """What a strategy comes to with these answers, and all that it asked. The last answer stays."""
    asked: list[Question] = []
    going = summarise(strategy, given)
    try:
        question = next(going)
        while True:
            asked.append(question)
            answer = answers[min(len(asked), len(answers)) - 1]
            question = going.send(answer(question) if callable(answer) else answer)
    except StopIteration as over:
        return over.value, asked


class Fixed:
    """Says the same without asking."""

    def __init__(self, text: Any) -> None:
        self.text = text

    def compress(self, given: Segment) -> Summarising:
        yield from ()
        return self.text  # type: ignore[no-any-return]


class Broken:
    def compress(self, given: Segment) -> Summarising:
        yield Question("", "", 1)
        raise ValueError("boom")


# -- key facts ---------------------------------------------------------------------------------------------------------


def test_key_facts_are_asked_for_once_and_titled() -> None:
    text, asked = ask(KeyInfoExtractionStrategy(), segment(said("the port is 8080"), goal="deploy"), "- port 8080")

    assert text == "## What is known\n- port 8080"
    assert len(asked) == 1
    assert "the port is 8080" in asked[0].text
    assert "<goal>\ndeploy" in asked[0].text
    assert asked[0].max_tokens == 500


def test_a_failure_that_passes_is_tried_again_and_another_is_not() -> None:
    strategy = KeyInfoExtractionStrategy()

    assert ask(strategy, segment(said("x"), retries=3), BUSY, "", "- x")[0] == "## What is known\n- x"
    assert len(ask(strategy, segment(said("x"), retries=3), BUSY)[1]) == 3
    text, asked = ask(strategy, segment(said("x"), retries=3), ModelError("auth"), "- x")
    assert (text, len(asked)) == (None, 1)


def test_too_long_for_the_model_the_oldest_half_is_left_out_between_groups() -> None:
    messages = [Message("user", note("old facts", [], 100, count).content, summary=True)]  # type: ignore[union-attr]
    messages += [*acts("a"), *acts("b"), *acts("c"), *acts("d")]

    text, asked = ask(KeyInfoExtractionStrategy(), segment(messages, retries=1), TOO_LONG, "- found")

    assert text == "## What is known\n- found"
    assert len(asked) == 2
    assert "doing a" in asked[0].text
    assert [f"doing {uuid}" in asked[1].text for uuid in "abcd"] == [False, False, True, True]
    assert "old facts" in asked[1].text, "what older summaries say stays"
    assert asked[1].text.count("[Call]") == asked[1].text.count("[Result]") == 2


def test_it_is_halved_three_times_at_most() -> None:
    many = segment([m for n in range(64) for m in acts(f"c{n}")])

    text, asked = ask(KeyInfoExtractionStrategy(), many, TOO_LONG)

    assert text is None
    assert len(asked) == 4


def test_what_cannot_be_halved_is_given_up() -> None:
    assert len(ask(KeyInfoExtractionStrategy(), segment(acts("a")), TOO_LONG)[1]) == 1


# -- the rolling summary -----------------------------------------------------------------------------------------------


def test_the_summary_so_far_and_what_came_since_make_the_next() -> None:
    older = note("they wanted a house", acts("z"), 200, count)
    assert older is not None

    text, asked = ask(HierarchicalCompressionStrategy(), segment([older, *acts("a")]), "a house was built")

    assert text == "## What happened\na house was built"
    assert len(asked) == 1
    assert "<summary-so-far>\nthey wanted a house\n</summary-so-far>" in asked[0].text
    assert "made already" not in asked[0].text, "the list of calls is kept by us, not by a model"


def test_too_long_it_is_made_in_two_halves_the_older_first() -> None:
    older = note("S0", [], 100, count)
    assert older is not None

    text, asked = ask(HierarchicalCompressionStrategy(), segment([older, *acts("a"), *acts("b")]), TOO_LONG, "S1", "S2")

    assert text == "## What happened\nS2"
    assert len(asked) == 3
    assert "S0" in asked[1].text
    assert "doing a" in asked[1].text
    assert "doing b" not in asked[1].text
    assert "S1" in asked[2].text
    assert "S0" not in asked[2].text
    assert "doing b" in asked[2].text


@pytest.mark.parametrize(
    ("answers", "questions"),
    [
        ((TOO_LONG, BUSY), 2),
        ((TOO_LONG, "S1", BUSY), 3),
        ((TOO_LONG, "S1", TOO_LONG), 3),
        ((BUSY,), 1),
        (("prompt is too long: 200000 tokens",), 2),
        (("",), 1),
    ],
)
def test_it_asks_three_times_at_most_and_tries_nothing_again(answers: tuple[Answer, ...], questions: int) -> None:
    text, asked = ask(HierarchicalCompressionStrategy(), segment([*acts("a"), *acts("b")], retries=100), *answers)

    assert text is None
    assert len(asked) == questions


def test_a_summary_has_a_length_of_its_own() -> None:
    text, _ = ask(HierarchicalCompressionStrategy(12), segment(said("x")), "word " * 100)

    assert text is not None
    assert count(text.removeprefix("## What happened\n")) <= 12
    with pytest.raises(ConfigError):
        HierarchicalCompressionStrategy(0)


# -- several -----------------------------------------------------------------------------------------------------------


def test_what_several_strategies_make_is_joined_in_order() -> None:
    both = CompositeCompressionStrategy().add_strategy(Fixed("one")).add_strategy(Fixed("two"))

    assert ask(both, segment(said("x")))[0] == "one\n\n---\n\ntwo"


def test_one_that_fails_does_not_stop_the_others() -> None:
    mixed = CompositeCompressionStrategy(Broken(), Fixed(None), Fixed(5), Fixed("two"))

    assert ask(mixed, segment(said("x")), "answer")[0] == "two"
    assert ask(CompositeCompressionStrategy(Broken()), segment(said("x")), "answer")[0] is None
    assert ask(CompositeCompressionStrategy(), segment(said("x")))[0] is None


def test_the_default_is_key_facts_then_the_rolling_summary() -> None:
    text, asked = ask(default_strategy(), segment(said("x")), "- fact", "it went well")

    assert text == "## What is known\n- fact\n\n---\n\n## What happened\nit went well"
    assert len(asked) == 2


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_a_summary_is_never_longer_than_its_budget() -> None:
    huge = "word " * 120_000
    for strategy in (Fixed(huge), KeyInfoExtractionStrategy(), default_strategy()):
        text, _ = ask(strategy, segment(said("x"), budget=200), huge)
        assert text is not None
        assert count(text) <= 200


def test_with_next_to_no_budget_nobody_is_asked() -> None:
    assert ask(KeyInfoExtractionStrategy(), segment(said("x"), budget=31), "- x") == (None, [])
    assert ask(KeyInfoExtractionStrategy(), segment([]), "- x") == (None, [])
    assert ask(None, segment(said("x")), "- x") == (None, [])


def test_a_strategy_that_never_stops_asking_is_stopped() -> None:
    class Endless:
        def compress(self, given: Segment) -> Generator[Question, Answer, str | None]:
            while True:
                yield Question("", "more?", 1)

    text, asked = ask(Endless(), segment(said("x")), "yes")

    assert text is None
    assert len(asked) == MOST_QUESTIONS


def test_a_megabyte_of_result_is_not_put_to_the_model_again() -> None:
    _, asked = ask(KeyInfoExtractionStrategy(), segment(acts("a", result="x" * 1_000_000)), "- x")

    assert len(asked[0].text) < 12_000
    assert "990,000 more characters" in asked[0].text


def test_a_record_names_calls_arguments_and_results() -> None:
    assert transcript(acts("a")[0]) == ("[Agent]: doing a", '[Call]: tool {"for":"a"}')
    assert transcript(acts("a")[1]) == ("[Result]: done",)
    assert transcript(said("hi")[0]) == ("[Person]: hi",)


@pytest.mark.parametrize("text", ["", " ", "(nothing)", "Nothing.", "(无显著进度)", "(无关键增量)"])
def test_an_answer_that_says_nothing_is_no_summary(text: str) -> None:
    assert says_nothing(text)
    assert ask(KeyInfoExtractionStrategy(), segment(said("x"), retries=1), text)[0] is None


def test_an_error_written_as_an_answer_is_known_and_a_text_about_errors_is_not_one() -> None:
    assert complains("Prompt is TOO LONG: 210000 tokens > 200000 maximum")
    assert not complains("all is well")
    assert not complains("")
    assert not complains("We looked at why the context window matters. " * 20)
