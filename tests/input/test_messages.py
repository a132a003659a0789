"""Chats as providers and frameworks write them: results of tools are passages, calls no answers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.input.test_tools import A, Q, sample_of
from trustassay.input import InputFault, LocatedSample, read_samples
from trustassay.input.messages import describe_ending

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
    message = f"conversation[{place}]: expected an earlier message with the call of a tool, '"
    assert str(fault).startswith(f"sample 1: {message}")


@pytest.mark.parametrize(
    ("messages", "end"),
    [
        ([ASKED, openai()[0]], "call of a tool"),
        ([ASKED, anthropic()[0]], "call of a tool"),
        ([ASKED, {**SAID, "content": "I will look."}, *openai()], "result of a tool"),
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
