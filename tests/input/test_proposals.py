"""Names that messages propose for fields: what is guessed, what is tried, and what is shown."""

from typing import Any

import pytest

from trustassay.core.sample import Problem
from trustassay.input import InputFault, LocatedSample, read_samples
from trustassay.input.proposals import shorten
from trustassay.input.recognising import ABSENT, list_names, reach
from trustassay.input.records import UnknownFields

ASK = "How many doors does the hall have?"
REPLY = "The hall has 15 doors."
PASSAGE = "The hall was built in 1902. It has 14 doors."


def unknown_fields_of(record: dict[str, Any], *missing: str) -> UnknownFields:
    """Return what a message says of a record that lacks fields, besides a question."""
    [found] = read_samples([record])
    if isinstance(found, InputFault):
        result = found.unknown_fields
    else:
        assert isinstance(found, LocatedSample)
        problems = [Problem(name, "is missing (expected it)") for name in missing]
        result = found.find_unknown_fields(problems)
    assert result is not None
    return result


def test_names_with_dots_inside_an_object_are_shown_with_their_values() -> None:
    """As names of models among references; their value was shown as a Python object."""
    references = {"gpt-4.1": "15", "a.b": {"c.d": "16"}}
    record = {"question": ASK, "references": references}
    assert list_names(record) == ("question", "references.gpt-4.1", "references.a.b")
    values = [reach(record, name) for name in list_names(record)]
    assert values == [ASK, "15", {"c.d": "16"}]
    assert reach(record, "references.gpt-4.2") is reach(record, "references.gpt-4.1.x") is ABSENT
    record = {"question": ASK, "outputs": {"gpt-4.1": {"v1.0": REPLY}}}
    [found] = read_samples([record], fields={"response": "outputs.gpt-4.1.v1.0"})
    assert isinstance(found, LocatedSample)
    assert found.sample.response == REPLY


NO_RESPONSES = (
    *("response_error", "output_exception"),
    *("target", "label_text", "answer_key", "gold", "expected_reply", "ideal_response"),
    *("judge_output", "explanation_of_answer", "reply_reason", "answer_id", "human_answer"),
    *("best_answer", "rejected_response", "evaluator_result", "true_answer", "Musterantwort"),
)


@pytest.mark.parametrize("name", NO_RESPONSES)
@pytest.mark.parametrize("other", [{}, {"bot_reply_text": REPLY}, {"model_text": REPLY}])
def test_what_is_right_or_judged_is_never_proposed_as_the_response(
    name: str, other: dict[str, Any]
) -> None:
    record = {name: "Fourteen doors.", "ask": ASK, "chunk": PASSAGE, **other}
    unknown_fields = unknown_fields_of(record)
    assert unknown_fields.fields["question"] == "ask"
    assert unknown_fields.fields.get("response", "") == "".join(other)
    assert unknown_fields.preview.get("response", "") == "".join(other.values())


@pytest.mark.parametrize("place", ["doc", "item", "inputs", "vars", "test_case"])
def test_an_answer_beside_the_question_of_a_data_set_is_not_proposed(place: str) -> None:
    record: dict[str, Any] = {place: {"ask": ASK, "answer": "14", "note": "n"}, "resps": [[REPLY]]}
    assert "response" not in unknown_fields_of(record).nameable
    record = {place: {"ask": ASK, "bot_reply": REPLY, "note": "n"}, "size": 1}
    assert unknown_fields_of(record).fields["response"] == f"{place}.bot_reply"


def test_a_response_inside_an_object_of_a_known_name_is_proposed_with_the_rest() -> None:
    record = {"doc": {"ask": ASK, "gold": "14", "n": 1}, "generation": {"text": REPLY, "tokens": 7}}
    unknown_fields = unknown_fields_of(record)
    assert dict(unknown_fields.nameable) == {"question": "doc.ask", "response": "generation.text"}
    assert unknown_fields.preview["response"] == REPLY


def test_the_names_are_tried_and_what_they_read_is_shown() -> None:
    record = {"ask": f"  {ASK}\n{ASK} ", "reply": REPLY, "chunks_used": [PASSAGE]}
    unknown_fields = unknown_fields_of(record)
    assert unknown_fields.complete
    assert dict(unknown_fields.preview) == {
        "question": f"{ASK} {ASK}"[:59] + "…",
        "response": REPLY,
    }


@pytest.mark.parametrize(
    ("record", "proposed"),
    [
        ({"ask": ASK, "reply": "  ", "chunk": PASSAGE}, {"question": "ask", "documents": "chunk"}),
        ({"ask": " ", "reply": REPLY}, {"question": "", "response": "reply"}),
        ({"ask": ASK, "reply": REPLY, "chunk": '["cut'}, {"question": "ask", "response": "reply"}),
        (
            {"ask": ASK, "reply": {"text": REPLY, "n": 1}},
            {"question": "ask", "response": "reply.text"},
        ),
        ({"task": "reading", "both": "yes", "size": 3}, {"question": ""}),
    ],
)
def test_a_name_whose_value_cannot_be_read_is_not_proposed(
    record: dict[str, Any], proposed: dict[str, str]
) -> None:
    assert dict(unknown_fields_of(record).nameable) == proposed


def test_what_a_tool_never_writes_is_not_asked_for_unless_there_is_a_guess() -> None:
    results: dict[str, Any] = {"response": REPLY, "sampled_responses": [REPLY], "score": 0.4}
    [fault] = read_samples([results])
    assert isinstance(fault, InputFault)
    assert fault.unknown_fields is None
    assert unknown_fields_of({**results, "ask": ASK}).fields == {"question": "ask"}


def test_without_a_guess_the_values_that_have_no_meaning_yet_are_shown() -> None:
    record = {"question": ASK, "a": "x" * 50, "b": [1, 2], "c": {"d": None}, "e": [REPLY]}
    assert dict(unknown_fields_of(record, "response").values) == {
        "a": "x" * 39 + "…",
        "b": "a list of 2",
        "c.d": "null",
        "e": f"a list of 1: {REPLY}",
    }


MESSAGES = [{"role": "user", "content": ASK}, {"role": "assistant", "content": REPLY}]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            {"thread": MESSAGES, "size": 2},
            "thread holds the messages of a chat: rename it to messages",
        ),
        (
            MESSAGES[1],
            'each record is one message; expected one record per chat, with all its messages: {"',
        ),
        ({"spanName": "llm", "text": "x", "more": "y"}, "it looks like a trace; expected spans as"),
        ({"thread": [ASK, REPLY], "size": 2}, ""),
        ({"trace": "7", "ask": ASK, "reply": REPLY}, ""),
    ],
)
def test_a_chat_and_a_trace_of_another_form_are_known(record: dict[str, Any], message: str) -> None:
    shape = unknown_fields_of(record).shape
    assert shape.startswith(message) if message else not shape


@pytest.mark.parametrize(
    ("text", "length", "beginning"),
    [("a\n b", 5, "a b"), ("abcdef", 5, "abcd…"), ("", 5, ""), (" " * 100 + "a", 5, "")],
)
def test_the_beginning_of_a_text_is_one_line(text: str, length: int, beginning: str) -> None:
    assert shorten(text, length) == beginning


@pytest.mark.parametrize("name", ["Antwort des Chatbots", "Réponse du robot", "Respuesta final"])
def test_single_words_of_a_name_are_translated_for_a_guess(name: str) -> None:
    record = {"question": ASK, "documents": [PASSAGE], name: REPLY, "Antwort_id": "7"}
    assert unknown_fields_of(record, "response").fields == {"response": name}


@pytest.mark.parametrize(
    "name", ["gpt4_answer", "rag_response", "hypothesis", "bot", "answer (v2)", "pred"]
)
def test_beside_a_model_s_answer_of_unknown_name_a_gold_one_is_not_the_response(name: str) -> None:
    record = {"question": ASK, "answer": "The hall has 14 doors.", "context": PASSAGE}
    assert unknown_fields_of({**record, name: REPLY}, "response").fields == {"response": name}
    for other in ({"bot": "v2"}, {"user_reply": "Thanks for that."}, {"judge_answer": REPLY}):
        [located] = read_samples([{**record, **other}])
        assert isinstance(located, LocatedSample)
        assert located.sample.response == record["answer"]
    [located] = read_samples([{**record, "raw_output": f"Well. {record['answer']}"}])
    assert isinstance(located, LocatedSample)
    assert located.sample.response == record["answer"]


def test_a_chat_of_a_known_name_needs_no_other_name() -> None:
    record = {"question": ASK, "conversation": [{"role": "assistant", "content": REPLY}]}
    assert "rename" not in str(unknown_fields_of(record, "response"))
    renamed = {"question": ASK, "talk": record["conversation"]}
    assert "rename it to messages" in str(unknown_fields_of(renamed, "response"))
