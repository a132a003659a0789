"""Chats as providers and frameworks write them: results of tools are passages, calls no answers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.input.test_tools import A, Q, sample_of
from tests.input.test_traces import Json, chat, faults, otlp, samples, span, tool, whole
from trustassay.input import InputFault, LocatedSample, read_samples
from trustassay.input.messages import describe_ending, find_failure

SHOWN = ["The Tagus reaches the sea at Lisbon.", "Lisbon has seven hills."]
RESULT = json.dumps(SHOWN)
ASKED = {"role": "user", "content": Q}
SAID = {"role": "assistant", "content": A}


def openai(result: Any = RESULT, call: str = "c1") -> list[Any]:
    function = {"name": "search", "arguments": "{}"}
    calls = [{"id": call, "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": call, "content": result},
    ]


def anthropic(result: Any = RESULT) -> list[Any]:
    use = {"type": "tool_use", "id": "t1", "name": "search", "input": {}}
    return [
        {"role": "assistant", "content": [{"type": "text", "text": "I will look."}, use]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": result}],
        },
    ]


RESPONSES = [
    {"type": "reasoning", "id": "r", "summary": []},
    {"type": "function_call", "id": "f", "call_id": "c", "name": "search", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": RESULT},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": A}]},
]
BEDROCK = [
    {"role": "user", "content": [{"text": Q}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "s", "input": {}}}]},
    {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": RESULT}]}}],
    },
    {"role": "assistant", "content": [{"text": A}]},
]
OTEL = [
    {"role": "user", "parts": [{"type": "text", "content": Q}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "s"}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": SHOWN}]},
    {"role": "assistant", "parts": [{"type": "text", "content": A}]},
]
PYDANTIC_AI = [
    {"kind": "request", "parts": [{"part_kind": "system-prompt", "content": "Be brief."}]},
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": Q}]},
    {
        "kind": "response",
        "parts": [{"part_kind": "tool-call", "tool_name": "s", "tool_call_id": "c"}],
    },
    {
        "kind": "request",
        "parts": [{"part_kind": "tool-return", "tool_call_id": "c", "content": SHOWN}],
    },
    {"kind": "response", "parts": [{"part_kind": "text", "content": A}]},
]
LANGGRAPH = [
    ["user", Q],
    {"type": "ai", "data": {"type": "ai", "content": "", "tool_calls": [{"id": "c", "name": "s"}]}},
    {"type": "tool", "content": RESULT, "id": "own", "tool_call_id": "c"},
    {"lc": 1, "id": ["langchain", "AIMessage"], "kwargs": {"content": A, "type": "ai"}},
]


@pytest.mark.parametrize(
    "messages",
    [
        [ASKED, *openai(), SAID],
        [ASKED, *openai([{"type": "text", "text": RESULT}]), SAID],
        [ASKED, *openai(json.dumps({"results": SHOWN})), SAID],
        [ASKED, *anthropic(), SAID],
        [ASKED, *anthropic([{"type": "text", "text": RESULT}]), SAID],
        [ASKED, *RESPONSES],
        BEDROCK,
        OTEL,
        PYDANTIC_AI,
        LANGGRAPH,
    ],
)
def test_results_of_tools_are_passages_whoever_writes_them(messages: list[Any]) -> None:
    sample = sample_of({"messages": messages})
    assert (sample.question, sample.response) == (Q, A)
    assert [one.text for one in sample.documents or ()] == SHOWN


def test_results_of_earlier_turns_are_shown_too_in_their_order() -> None:
    earlier = [{"role": "user", "content": "Hello"}, *openai("one"), {**SAID, "content": "Yes."}]
    sample = sample_of({"messages": [*earlier, ASKED, *openai("two", "c2"), SAID]})
    assert [one.text for one in sample.documents or ()] == ["one", "two"]


def test_what_comes_after_the_question_is_the_user_s_and_no_result() -> None:
    blocks = [anthropic()[1]["content"][0], {"type": "text", "text": "And now: " + Q}]
    sample = sample_of({"messages": [ASKED, anthropic()[0], {"role": "user", "content": blocks}]})
    assert (sample.question, sample.response) == ("And now: " + Q, None)
    assert [one.text for one in sample.documents or ()] == SHOWN


def test_data_that_a_tool_returns_is_one_passage_and_images_are_none() -> None:
    sample = sample_of({"messages": [ASKED, *openai({"degrees": 20}), SAID]})
    assert [one.text for one in sample.documents or ()] == ['{"degrees": 20}']
    parts = [{"type": "image", "data": "x"}, {"type": "text", "text": "A map."}]
    sample = sample_of({"messages": [ASKED, *anthropic(parts), SAID]})
    assert [one.text for one in sample.documents or ()] == ["A map."]


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([ASKED, openai()[1], SAID], 1),
        ([ASKED, *openai(call="c1"), {**openai()[1], "tool_call_id": "c2"}, SAID], 3),
        ([ASKED, openai()[1], openai()[0], SAID], 1),
        ([ASKED, anthropic()[1], SAID], 1),
        ([ASKED, RESPONSES[2], RESPONSES[3]], 1),
    ],
)
def test_a_result_without_its_call_is_named(messages: list[Any], place: int) -> None:
    [fault] = read_samples([{"conversation": messages}])
    message = f"conversation[{place}]: expected an earlier message with the tool call '"
    assert str(fault).startswith(f"sample 1: {message}")


@pytest.mark.parametrize(("calls", "kind"), [("x", '"x"'), ({"a": 1}, "an object"), (7, "7")])
def test_calls_that_are_no_list_are_a_fault(calls: Any, kind: str) -> None:
    [fault] = read_samples([{"messages": [ASKED, {**SAID, "tool_calls": calls}]}])
    message = "messages[1].tool_calls: expected a list of tool calls, got "
    assert str(fault) == f"sample 1: {message}{kind}"
    # An empty field has no calls.
    empty: Any
    for empty in (None, "", [], float("nan")):
        assert sample_of({"messages": [ASKED, {**SAID, "tool_calls": empty}]}).response


@pytest.mark.parametrize(
    ("messages", "end"),
    [
        ([ASKED, openai()[0]], "tool call"),
        ([ASKED, anthropic()[0]], "tool call"),
        ([ASKED, {**SAID, "content": "I will look."}, *openai()], "tool result"),
        ([ASKED], "question"),
        ([ASKED, {**SAID, "content": " "}], "blank answer"),
    ],
)
def test_a_chat_that_is_cut_has_no_answer(messages: list[Mapping[str, Any]], end: str) -> None:
    assert sample_of({"messages": messages}).response in {None, " "}
    assert describe_ending(messages) == end


@pytest.mark.parametrize(
    "messages",
    [
        [ASKED, {"role": "assistant", "content": [3, None, {"type": 4, "text": 5}]}],
        [ASKED, {"role": "assistant", "parts": {"type": "tool_call"}}],
        [ASKED, {"role": "tool", "content": None}, {"type": "function_call_output"}],
        [ASKED, {"role": ["user"]}, {"type": {}}, ["user"], ["a", "b", "c"], 7, None],
        [ASKED, {"role": "assistant", "tool_calls": [None, 3, {"function": 4}]}],
        [ASKED, {"role": "assistant", "content": None, "tool_calls": 3}],
        [ASKED, {"message": {"message": {}}}, {"type": "x", "data": {"role": "user"}}],
    ],
)
def test_messages_of_any_content_are_read_or_a_fault(messages: list[Any]) -> None:
    [found] = read_samples([{"messages": messages}])
    assert isinstance(found, InputFault) or found.sample.question == Q


def test_one_chat_alone_in_a_file_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"messages": [ASKED, *anthropic(), SAID]}, indent=1))
    [found] = read_samples(path)
    assert isinstance(found, LocatedSample)
    assert (found.where, found.sample.question) == (f"{path}: item 1", Q)
    path.write_text(json.dumps({"messages": [[ASKED, SAID], [{**ASKED, "content": "B?"}, SAID]]}))
    both = [one for one in read_samples(path) if isinstance(one, LocatedSample)]
    assert [one.sample.question for one in both] == [Q, "B?"]


# Passages in messages of the user

CONTEXT = "\n\n".join(SHOWN)
PROMPT = f"Use the following context.\n\n{CONTEXT}\n\nQuestion: {Q}\nAnswer:"


def texts(sample: Any) -> list[str]:
    return [document.text for document in sample.documents or ()]


@pytest.mark.parametrize(
    "content",
    [PROMPT, [{"type": "text", "text": PROMPT}], [{"type": "input_text", "text": PROMPT}]],
)
def test_passages_in_a_message_of_the_user_are_no_part_of_the_question(content: Any) -> None:
    sample = sample_of({"messages": [{"role": "user", "content": content}, SAID]})
    assert (sample.question, sample.response, texts(sample)) == (Q, A, SHOWN)


def test_later_questions_of_a_chat_see_the_passages_of_earlier_ones() -> None:
    asked = {"role": "user", "content": PROMPT}
    more = {"role": "user", "content": f"<context>Lisbon is old.</context>\n{Q}"}
    record = {"messages": [asked, SAID, *openai("Seven.", "c"), more, SAID]}
    first, second = read_samples([record], turns="all")
    assert isinstance(first, LocatedSample)
    assert isinstance(second, LocatedSample)
    assert texts(second.sample) == [*SHOWN, "Lisbon is old.", "Seven."]
    assert second.sample.question == Q
    assert second.sample.metadata["steps"][0] == {"user": Q}
    assert second.sample.metadata["steps"][2] == called(passages=[4])


def test_a_message_with_passages_alone_asks_nothing() -> None:
    documents = {"role": "user", "content": f"<documents>{CONTEXT}</documents>"}
    for messages in ([documents, ASKED, SAID], [ASKED, documents, SAID]):
        sample = sample_of({"messages": messages})
        assert (sample.question, sample.response, texts(sample)) == (Q, A, SHOWN)


DOCUMENT = {"type": "document", "title": "Guide"}
BLOCK = {"type": "text", "text": SHOWN[0]}


@pytest.mark.parametrize(
    "block",
    [
        {**DOCUMENT, "source": {"type": "text", "media_type": "text/plain", "data": SHOWN[0]}},
        {**DOCUMENT, "source": {"type": "content", "content": [BLOCK]}},
        {**DOCUMENT, "type": "search_result", "source": "https://a.org", "content": [BLOCK]},
        {"document": {"name": "Guide", "format": "txt", "source": {"text": SHOWN[0]}}},
    ],
)
def test_documents_attached_to_a_message_are_passages(block: Json) -> None:
    picture = {"type": "document", "source": {"type": "base64", "data": "AAAA"}}
    together = {"role": "user", "content": [block, picture, {"type": "text", "text": Q}]}
    apart = [{"role": "user", "content": [block]}, ASKED]
    for messages in ([together, SAID], [*apart, SAID]):
        sample = sample_of({"messages": messages})
        assert (sample.question, sample.response) == (Q, A)
        assert [(one.title, one.text) for one in sample.documents or ()] == [("Guide", SHOWN[0])]


def test_documents_of_the_record_win_over_those_in_messages() -> None:
    record = {"messages": [{"role": "user", "content": PROMPT}, SAID], "documents": ["Own."]}
    sample = sample_of(record)
    assert (sample.question, texts(sample)) == (Q, ["Own."])


# What came before an answer: texts, calls with their arguments, and which of them failed


def steps(*messages: Any, **fields: Any) -> Any:
    return sample_of({"messages": list(messages), **fields}).metadata.get("steps")


def called(**more: Any) -> Json:
    return {"tool": "search", "arguments": {}, "passages": [1, 2], **more}


@pytest.mark.parametrize(
    ("messages", "call"),
    [
        ([ASKED, *openai(), SAID], called()),
        ([ASKED, *anthropic(), SAID], called()),
        ([ASKED, *RESPONSES], called()),
        (PYDANTIC_AI, called(tool="s", arguments=None)),
    ],
)
def test_a_call_has_its_arguments_and_the_numbers_of_its_results(
    messages: list[Any], call: Json
) -> None:
    assert [one for one in steps(*messages) if "tool" in one] == [call]


def test_texts_and_calls_stand_in_their_order_and_passages_of_the_system_come_first() -> None:
    system = {"role": "system", "content": "<context>The harbour.</context>"}
    first = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"}]
    told = steps(*first, ASKED, *openai(), system, SAID)
    assert told == [
        {"user": "Hello"},
        {"assistant": "Yes?"},
        {"user": Q},
        called(passages=[2, 3]),
        {"system": system["content"]},
    ]
    assert steps(ASKED, SAID) is None
    assert steps(*first, ASKED, SAID, documents=["own"]) is None


def test_each_turn_has_the_steps_before_its_answer() -> None:
    messages = [ASKED, *openai(), SAID, ASKED, *openai("Seven.", "c2"), SAID]
    record = {"id": "c", "messages": messages}
    found = [one for one in read_samples([record], turns="all") if isinstance(one, LocatedSample)]
    first, second = [one.sample.metadata["steps"] for one in found]
    assert first == [{"user": Q}, called()]
    assert second == [*first, {"assistant": A}, {"user": Q}, called(passages=[3])]


def test_a_result_that_names_no_call_is_that_of_the_last_one() -> None:
    bare: Json = {"role": "function", "name": "search", "content": "Seven."}
    assert steps(ASKED, openai()[0], bare, SAID)[1:] == [called(passages=[1])]
    assert steps(ASKED, bare, SAID)[1:] == [{"tool": "", "passages": [1]}]


LANGGRAPH_RESULT = {"type": "tool", "content": "x", "tool_call_id": "c1", "status": "error"}
RETRY = {"part_kind": "retry-prompt", "tool_name": "s", "content": "x", "tool_call_id": "c"}


@pytest.mark.parametrize(
    "messages",
    [
        [ASKED, openai()[0], LANGGRAPH_RESULT, SAID],
        [ASKED, *openai('{"error": "x"}'), SAID],
        [*PYDANTIC_AI[:3], {"kind": "request", "parts": [RETRY]}, PYDANTIC_AI[4]],
    ],
)
def test_a_call_that_failed_says_why(messages: list[Any]) -> None:
    assert [one["error"] for one in steps(*messages) if "tool" in one] == ["x"]


def test_anthropic_marks_the_part_and_may_give_no_reason() -> None:
    use, result = anthropic([])
    result["content"][0]["is_error"] = True
    [_, call] = steps(ASKED, use, result, SAID)
    assert (call["error"], call["passages"]) == ("without a reason", [])


def test_a_prompt_to_retry_that_is_of_no_tool_is_no_result() -> None:
    retry = {"part_kind": "retry-prompt", "tool_name": None, "content": "x", "tool_call_id": "z"}
    shown = [*PYDANTIC_AI[:2], {"kind": "request", "parts": [retry]}, PYDANTIC_AI[4]]
    assert steps(*shown) is None


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"errors": [{"code": 1}]}, "[{'code': 1}]"),
        ({"error": True, "message": "gone"}, "gone"),
        ({"error": {"message": {"detail": "gone"}}}, "gone"),
        ({"ok": False, "x": 1}, '{"ok": false, "x": 1}'),
        ('{"status_code": 503, "reason": "busy"}', "busy"),
        ("An unexpected error occurred", "An unexpected error occurred"),
        ("Failed to connect", "Failed to connect"),
        ({"status": 200, "error": ""}, ""),
        ({"status": "open", "message": "The error was found."}, ""),
        ("Failures are rare.", ""),
        ("404 people live there.", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_what_says_that_a_call_failed(value: Any, error: str) -> None:
    assert find_failure({}, value) == error


def test_spans_of_tools_are_steps_with_their_status() -> None:
    failed = tool(2, 1, "", gen_ai__tool__call__arguments='{"of": "Tagus"}')
    failed["status"] = {"code": "STATUS_CODE_ERROR", "message": "timeout"}
    [sample] = samples([otlp(span(1), failed, tool(3, 1, SHOWN[0]), chat(4, 1))])
    assert sample.metadata["steps"] == [
        {"user": Q},
        {"tool": "search", "arguments": {"of": "Tagus"}, "passages": [], "error": "timeout"},
        {"tool": "search", "arguments": None, "passages": [1]},
    ]


def test_a_run_of_langsmith_that_failed_has_its_error() -> None:
    run: Json = {"id": "b", "run_type": "tool", "name": "find", "inputs": {"of": "Tagus"}}
    run |= {"trace_id": "t", "parent_run_id": "a", "outputs": None, "error": "ValueError('x')"}
    root: Json = {"id": "a", "run_type": "chain", "trace_id": "t", "inputs": {"question": Q}}
    [sample] = samples([{**root, "outputs": {"answer": A}}, run])
    [call] = [one for one in sample.metadata["steps"] if "tool" in one]
    assert (call["error"], call["arguments"]) == ("ValueError('x')", {"of": "Tagus"})


def test_earlier_turns_of_a_trace_are_steps_too() -> None:
    import json

    def part(role: str, **told: Any) -> Json:
        return {"role": role, "parts": [told]}

    messages = [
        part("user", type="text", content="Hello"),
        part("assistant", type="tool_call", id="c", name="find", arguments={"x": 1}),
        part("tool", type="tool_call_response", id="c", response="Rain."),
        part("assistant", type="text", content="It rains."),
        part("user", type="text", content=Q),
    ]
    asked = chat(4, 1, **{"gen_ai.input.messages": json.dumps(messages)})
    [sample] = samples([otlp(span(1), tool(2, 1, SHOWN[0]), asked)])
    assert sample.metadata["steps"] == [
        {"user": "Hello"},
        {"tool": "find", "arguments": {"x": 1}, "passages": [2]},
        {"assistant": "It rains."},
        {"user": Q},
        {"tool": "search", "arguments": None, "passages": [1]},
    ]
    messages[2]["parts"][0]["id"] = "gone"
    asked = chat(4, 1, **{"gen_ai.input.messages": json.dumps(messages)})
    [message] = faults([otlp(span(1), asked)])
    expected = "expected a tool call for each tool result, got none for 'gone'"
    assert message.endswith(f"span 'step 4' (s4): gen_ai.input.messages: {expected}")
    assert samples([otlp(span(1), tool(2, 1, SHOWN[0]), asked)])  # a span does not name its call


def test_a_trace_without_calls_has_no_steps() -> None:
    assert "steps" not in samples([otlp(chat(1, 0))])[0].metadata
    assert samples([otlp(*whole())])[0].metadata["steps"][1]["passages"] == [1]
