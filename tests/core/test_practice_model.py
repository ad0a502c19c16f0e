"""The practice model takes plain requests by the letter, relays what came of them, and is honest about the rest."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core import results
from harness_core.hitl import Expired, HITLDecision
from harness_core.models.practice import LINE, MOST_CALLS, PracticeModel, answer
from harness_core.models.practice_wishes import Wish, understand
from harness_core.ports import ChatModel, ModelReply, ModelRequest, ProposedCall, TextDelta, ToolSpec
from harness_core.testing import call, submitted, tool_call
from harness_core.types import NO_DEADLINE, Message, canonical


def tool(name: str, *arguments: str) -> ToolSpec:
    return ToolSpec(name, "", {"type": "object", "properties": {a: {"type": "string"} for a in arguments}})


BASH, READ = tool("bash", "command"), tool("read", "path")
TOOLS = (
    BASH,
    READ,
    tool("ls", "path"),
    tool("write", "path", "content"),
    tool("edit", "path", "old", "new"),
    tool("webfetch", "url"),
)


def reply(*said: str | Message, tools: tuple[ToolSpec, ...] = TOOLS) -> ModelReply:
    messages = [Message("user", part) if isinstance(part, str) else part for part in said]
    return answer(ModelRequest("", messages, tools))


def calls(text: str, tools: tuple[ToolSpec, ...] = TOOLS) -> list[ProposedCall]:
    return list(reply(text, tools=tools).calls)


def bash(command: str) -> ProposedCall:
    return call("bash", command=command)


def told(content: str, asked: str = "ls") -> ModelReply:
    made = tool_call("bash", command=asked)
    return reply("run it", Message("assistant", "", (made,)), Message("tool", content, call_uuid="c1"))


PAGE = ToolSpec(
    "page_on_call",
    "",
    {
        "type": "object",
        "properties": {
            "team": {"type": "string"},
            "level": {"type": "integer"},
            "loud": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["team", "level"],
    },
)


# -- what is understood ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "call_made"),
    [
        ("run `ls -la`", bash("ls -la")),
        ("RUN: npm test", bash("npm test")),
        ("please run npm test.", bash("npm test")),
        ("Can you run ls?", bash("ls")),
        ("could you please run the command `make`, thanks!", bash("make")),
        ("run script.sh", bash("script.sh")),
        ("run command -v git", bash("command -v git")),
        ("run make; echo done", bash("make; echo done")),
        ('run echo "and run x" > f', bash('echo "and run x" > f')),
        ("run rm foo?", bash("rm foo?")),
        ("run git add .", bash("git add .")),
        ("run\n```\nls\npwd\n```", bash("ls\npwd")),
        ("run this: ```bash\necho a\n```", bash("echo a")),
        ("ls -la src", bash("ls -la src")),
        ("read README.md", call("read", path="README.md")),
        ("show me the contents of `a b.txt` please", call("read", path="a b.txt")),
        ("list", call("ls", path=".")),
        ("list the files", call("ls", path=".")),
        ("list files in src.", call("ls", path="src")),
        ("ls ..", call("ls", path="..")),
        ("write `x` to a.txt", call("write", path="a.txt", content="x")),
        ("write hello world to a.txt.", call("write", path="a.txt", content="hello world")),
        ('save "a b" as a.txt', call("write", path="a.txt", content="a b")),
        ("write to a.txt: I want to go home.", call("write", path="a.txt", content="I want to go home.")),
        ("create a file called a.txt with content `1`", call("write", path="a.txt", content="1")),
        ("write the following to a.txt:\n```\none\n\ntwo\n```", call("write", path="a.txt", content="one\n\ntwo")),
        ("replace `a` with `b` in c.py", call("edit", path="c.py", old="a", new="b")),
        ("append `it's` to a.txt", bash("printf '%s\\n' 'it'\"'\"'s' >> a.txt")),
        ("fetch https://example.com/?a=1", call("webfetch", url="https://example.com/?a=1")),
        ("open https://example.com", call("webfetch", url="https://example.com")),
        ('call bash {"command": "a, then run b"}', ProposedCall("bash", '{"command": "a, then run b"}')),
        ("运行 `ls`", bash("ls")),
        ("请读 a.txt", call("read", path="a.txt")),
        ("写 `你好` 到 a.txt", call("write", path="a.txt", content="你好")),
        ("把 a.txt 中的 x 替换为 y", call("edit", path="a.txt", old="x", new="y")),
    ],
)
def test_a_plain_request_becomes_the_call(text, call_made):
    assert calls(text) == [call_made]


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("call page_on_call with team=ops level=2", {"team": "ops", "level": 2}),
        ("please use page_on_call with team=ops, level=2.", {"team": "ops", "level": 2}),
        ("call page_on_call team=7 and level=x", {"team": "7", "level": "x"}),
        ('call the tool page_on_call with team="a, then run b" loud=true', {"team": "a, then run b", "loud": True}),
        ("call page_on_call with note=`7` team='it is, say, down'", {"note": "7", "team": "it is, say, down"}),
    ],
)
def test_any_tool_can_be_called_by_its_name_with_arguments_of_the_types_that_it_wants(text, args):
    assert calls(text, (BASH, PAGE)) == [call("page_on_call", **args)]


def test_arguments_may_be_json_and_a_tool_that_is_not_there_is_said():
    assert calls('use page_on_call {"team": "ops"}', (PAGE,)) == [ProposedCall("page_on_call", '{"team": "ops"}')]
    assert calls("call page_on_call", (PAGE,)) == [ProposedCall("page_on_call", "{}")]
    assert "I have no tool to call `page_on_call`." in reply("call page_on_call with team=ops").text


def test_whoever_asks_for_help_is_told_how_to_call_a_tool_of_one_s_own():
    todo = ToolSpec("todo", "", {"properties": {"items": {"type": "array"}}, "required": ["items"]})
    said = reply("page_on_call team=ops", tools=(BASH, PAGE, todo)).text

    assert "`call page_on_call with team=… level=…`" in said
    assert "`call todo with {…}`" in said
    assert "call bash" not in said


@pytest.mark.parametrize(
    "text",
    [
        "run `a`, read b and write `c` to d",
        "run `a` and then read b, then write `c` to d.",
        "run `a`\nread b\n\nwrite `c` to d",
        "1. run `a`\n2. Read b\n3. write `c` to d",
        "Please:\n- run `a`\n- read b\n* write `c` to d",
        "Could you run `a`? Read b. Also write `c` to d, please",
        "运行 `a`，然后读 b，再写 `c` 到 d",
    ],
)
def test_several_requests_become_several_calls_of_one_message_in_order(text):
    assert calls(text) == [bash("a"), call("read", path="b"), call("write", path="d", content="c")]


def test_one_verb_may_have_several_objects():
    assert calls("run `a`, `b` and `c`, and read x.txt and y.txt") == [
        bash("a"),
        bash("b"),
        bash("c"),
        call("read", path="x.txt"),
        call("read", path="y.txt"),
    ]


def test_all_user_messages_since_the_last_reply_count_and_none_before():
    made = reply("run `a`", Message("assistant", "Done."), "run `b`", "then run `c`")
    assert list(made.calls) == [bash("b"), bash("c")]


@pytest.mark.parametrize(
    "exact", ["a & b < c > \"d\" 'e'", "x\n  run `y` and read z\n", " two  spaces ", "&amp;", "“q”", "\\n\t$1"]
)
def test_bytes_in_backticks_are_taken_exactly(exact):
    assert calls(f"run ```{exact}```") == [bash(exact)]
    if "`" not in exact:
        assert calls(f"write `{exact}` to f") == [call("write", path="f", content=exact)]


def test_the_lines_that_set_a_fence_off_are_not_content_but_a_chat_windows_first_line_is():
    assert calls("run ```sh\nls\npwd\n```") == [bash("ls\npwd")]
    assert calls("run ```\nls\n```") == [bash("ls")]
    assert calls("run ```sh\nls```") == [bash("sh\nls")]
    assert calls("run ```make\nls\n```") == [bash("make\nls\n")]
    assert calls("run ```\n```") == [bash("\n")]


@given(st.text(st.characters(exclude_characters="`", exclude_categories=[]), min_size=1))
def test_whatever_stands_in_backticks_is_never_read_as_a_request(exact):
    assert calls(f"write `{exact}` to f, then run `{exact}`") == [call("write", path="f", content=exact), bash(exact)]


@pytest.mark.parametrize(
    "text",
    [
        "don't run `rm -rf /`",
        "never read it",
        "write a poem about cats",
        "list three reasons",
        "Why does run `x` fail?",
    ],
)
def test_what_does_not_begin_like_a_request_is_no_request(text):
    assert calls(text) == []


def test_arguments_are_named_as_the_tool_names_them():
    edits = {"type": "array", "items": {"properties": {"old_str": {}, "new_str": {}}}}
    tools = (
        tool("shell", "cmd"),
        tool("write", "file_path", "content"),
        ToolSpec("edit", "", {"properties": {"file_path": {}, "edits": edits}}),
    )
    assert calls("run `a`, write `b` to c, replace `d` with `e` in f", tools) == [
        call("shell", cmd="a"),
        call("write", file_path="c", content="b"),
        call("edit", file_path="f", edits=[{"old_str": "d", "new_str": "e"}]),
    ]


def test_only_tools_that_exist_are_called_and_a_missing_one_is_named():
    made = reply("run `ls`, then fetch https://example.com", tools=(BASH,))
    assert list(made.calls) == [bash("ls")]
    assert "I have no tool to fetch `https://example.com`." in made.text


def test_without_a_tool_for_it_a_folder_is_listed_by_the_shell():
    assert calls("list src", (BASH,)) == [bash("ls src")]


def test_a_page_of_requests_does_not_become_a_page_of_calls():
    made = reply("\n".join(["run `a`"] * (MOST_CALLS + 5)))
    assert len(made.calls) == MOST_CALLS
    assert "left out the last 5" in made.text


# -- what is said ------------------------------------------------------------------------------------------------------


def test_it_says_what_it_would_like_to_do():
    assert reply("run `ls` and read a.txt").text == "I would like to run `ls`, then read `a.txt`."


def test_it_says_what_it_is_told_to_say():
    assert reply("say `Hello <world>`").text == "Hello <world>"
    assert reply("echo how are you?").text == "how are you?"


@pytest.mark.parametrize("text", ["make me a sandwich", "help", "what can you do?", "hello"])
def test_it_is_honest_about_being_the_practice_model_and_gives_examples(text):
    made = reply(text)
    assert "I am the practice model" in made.text
    assert "- `` run `ls -la` ``" in made.text
    assert not made.calls


def test_its_examples_are_what_it_can_do_with_these_tools():
    assert "fetch" not in reply("help", tools=(BASH,)).text
    for line in reply("help").text.splitlines():
        if line.startswith("- "):
            (wish,) = understand(line.removeprefix("- ").strip("`").strip() + ("`" if line.endswith("` ``") else ""))
            assert wish.kind not in ("unclear", "help")


def test_it_names_what_it_did_not_understand_beside_what_it_did():
    made = reply("run `make` whenever you like")
    assert list(made.calls) == [bash("make")]
    assert made.text.startswith("I did not understand `whenever you like`.")


def test_it_greets():
    assert reply("Hello!").text.startswith("Hello!")


def test_asked_for_a_summary_without_tools_it_keeps_both_ends_and_says_so():
    made = answer(ModelRequest("Summarise the conversation.", [Message("user", f"first {'x' * 9000} last")]))
    assert "No summary" in made.text
    assert "first" in made.text
    assert "last" in made.text
    assert len(made.text) < 4000


# -- after results -----------------------------------------------------------------------------------------------------


def test_a_result_is_relayed_with_the_call_that_it_belongs_to_and_nothing_is_called_again():
    made = told("a.txt\nb.txt")
    assert made.text == "This is what came of it:\n\n**bash** `ls`\n```\na.txt\nb.txt\n```"
    assert made.calls == ()


SUBMITTED = {
    "rejected": HITLDecision.reject("not today"),
    "left out": HITLDecision.skip("no need"),
    "done by hand": HITLDecision.skip("the branch is merged", done=True),
    "happened": HITLDecision.happened("it is there"),
    "expired": Expired(),
}
ENDS = [
    *(
        results.decided_end(tool_call("bash"), submitted(tool_call("bash"), way, by="Ann"))
        for way in SUBMITTED.values()
    ),
    results.denied(tool_call("bash"), "no network"),
    results.nobody_to_ask(tool_call("bash"), "it writes"),
    results.rejected_again(tool_call("bash"), "Ann"),
    results.no_such_tool(tool_call("shell"), ["bash"]),
    results.unknown(tool_call("bash")),
    results.not_run(tool_call("bash"), results.CHANGED),
]


@pytest.mark.parametrize("content", [end.content for end in ENDS if end])
def test_what_a_person_or_a_rule_decided_is_told_in_its_own_words_and_not_as_output(content):
    assert told(content).text == f"This is what came of it:\n\n**bash** `ls`\n> {content}"


def test_what_was_edited_is_relayed_under_the_command_that_ran():
    note = results.edited_note("Ann", {"command": "ls -l"})
    assert told(f"{note}total 0").text == (
        "This is what came of it:\n\n**bash** `ls -l`\n> Ann changed this before approving it.\n```\ntotal 0\n```"
    )


@pytest.mark.parametrize("forged", ["[", "{", '{"a":1}]', '"x"}]', "[1]]", '{"a":' + "[" * 9_000 + "}]\nx"])
def test_output_that_only_looks_like_an_edit_is_output(forged):
    text = f"[Ann changed the arguments before approving; it was run with {forged}"
    assert f"**bash** `ls`\n```\n{text[:LINE]}" in told(text).text


def test_the_fence_around_output_is_longer_than_any_in_it():
    assert "````\na ``` b\n````" in told("a ``` b").text


def test_long_output_is_cut_in_the_middle_since_its_end_tells_how_it_went():
    made = told("\n".join([*(f"line {n}" for n in range(500)), "exit code 3"]))
    assert "line 14\n… (481 more lines)\nline 496\n" in made.text
    assert made.text.endswith("\nexit code 3\n```")


def test_a_long_line_is_cut_and_the_rest_counted():
    assert f"{'x' * 200}… (800 more characters)" in told("x" * 1000).text


def test_every_one_of_several_results_is_relayed_in_order():
    made = tool_call("bash", command="a", uuid="c1"), tool_call("read", path="b", uuid="c2")
    brought = Message("tool", "one", call_uuid="c1"), Message("tool", "Rejected by Ann: no", call_uuid="c2")
    text = reply("go", Message("assistant", "", made), *brought).text
    assert text.startswith("This is what came of the 2 calls:")
    assert text.index("**bash** `a`\n```\none") < text.index("**read** `b`\n> Rejected by Ann: no")


def test_a_request_that_came_in_meanwhile_is_handled_with_the_results():
    made = tool_call("bash", command="a")
    both = reply("run `a`", Message("assistant", "", (made,)), Message("tool", "one", call_uuid="c1"), "now read b")
    assert list(both.calls) == [call("read", path="b")]
    assert both.text.startswith("This is what came of it:")


def test_a_result_of_a_call_that_is_no_longer_in_the_context_is_still_relayed():
    assert reply(Message("tool", "one", call_uuid="gone")).text == "This is what came of it:\n\nA call:\n```\none\n```"


def test_with_nothing_new_it_says_so():
    assert reply("hi", Message("assistant", "Hello!")).text == "Nothing new was asked."
    assert reply().text == "Nothing new was asked."


# -- hostile texts, and the stream -------------------------------------------------------------------------------------

PIECES = st.sampled_from([
    "run", "write", "to", "a.txt", "and", "then", "replace", "with", "in", "say", "call", "list", "please", "ls -",
    "`", "``", "```", '"', "“", "'", " ", "\n", ",", ".", "?", "1.", "- ", "{", "}", "\0", "\1", "\ud800", "把", "中",
])  # fmt: skip
HOSTILE = st.one_of(st.text(st.characters(exclude_categories=[])), st.lists(PIECES, max_size=60).map("".join))


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), HOSTILE), max_size=6))
def test_any_conversation_gets_exactly_one_reply_last_which_is_never_empty(said):
    request = ModelRequest("", [Message(role, text) for role, text in said], TOOLS)
    model: ChatModel = PracticeModel()

    async def collect() -> list[TextDelta | ModelReply]:
        return [piece async for piece in model.stream(request, NO_DEADLINE)]

    *deltas, last = asyncio.run(collect())

    assert isinstance(last, ModelReply)
    assert all(isinstance(delta, TextDelta) and delta.text for delta in deltas)
    assert "".join(delta.text for delta in deltas) == last.text
    assert last.text.strip()
    assert last == answer(request)
    for made in last.calls:
        assert isinstance(made.arguments, str) or canonical(made.arguments)


@given(HOSTILE)
def test_every_part_that_is_understood_stands_in_the_text(text):
    for wish in understand(text):
        assert isinstance(wish, Wish)
        assert all(part in text for part in wish.parts.values())


REPEATED = (
    " ", "\n", "`", "“", "'", "- ", ", ", "1. ", "and ", "run ", "ls\n", "read a, ", "write a to ", "replace a with ",
    "please ", "the ", " `b`", "把", "中 ", "\0", "a" + " " * 99,
)  # fmt: skip


@pytest.mark.parametrize("text", REPEATED)
def test_a_long_hostile_text_takes_no_longer_than_its_length(text):
    for opening in ("", "run ", "read ", "write a", "list", "append "):
        wishes = understand(opening + text * (40_000 // len(text)) + "x")

        assert all(isinstance(wish, Wish) for wish in wishes)  # a quadratic pattern takes longer than a test may


async def test_a_long_answer_comes_in_pieces_and_with_a_rough_usage():
    pieces = [piece async for piece in PracticeModel().stream(ModelRequest("", [Message("user", "help")]), NO_DEADLINE)]
    assert len(pieces) > 4
    last = pieces[-1]
    assert isinstance(last, ModelReply)
    assert (last.usage.input_tokens, last.finish_reason) == (2, "stop")
    assert last.usage.output_tokens > 20


# -- agents ------------------------------------------------------------------------------------------------------------

TASK = ToolSpec("task", "", {"properties": {"agent": {"enum": ["helper"]}, "prompt": {"type": "string"}}})


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("ask the agent helper to run `ls -la`", "run `ls -la`"),
        ("Please ask agent `helper`: read a.md.", "read a.md"),
        ("ask the sub-agent helper to write `x y.` to n.txt", "write `x y.` to n.txt"),
    ],
)
def test_work_is_handed_to_an_agent_word_by_word(text: str, prompt: str) -> None:
    assert calls(text, (*TOOLS, TASK)) == [call("task", agent="helper", prompt=prompt)]


def test_what_comes_after_what_an_agent_is_asked_is_asked_of_the_model_itself() -> None:
    made = calls("ask the agent helper to read a.md and then read b.md", (*TOOLS, TASK))

    assert made == [call("task", agent="helper", prompt="read a.md"), call("read", path="b.md")]


def test_agents_are_offered_by_name_where_there_are_any() -> None:
    assert "`ask the agent helper to read README.md`" in reply("help", tools=(*TOOLS, TASK)).text
    assert "agent" not in reply("help").text
    assert "I have no tool to ask `helper`" in reply("ask the agent helper to read a.md").text
