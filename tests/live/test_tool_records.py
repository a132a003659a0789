"""Records of other tools, as ``score`` reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from trustassay.core.sample import Sample
from trustassay.input.reading import read_samples
from trustassay.input.records import InputFault
from trustassay.live.integrations.resident import build_record, to_plain


def sample_of(record: dict[str, Any]) -> Sample:
    (found,) = read_samples([to_plain(record)])
    assert not isinstance(found, InputFault), str(found)
    return found.sample


MESSAGES = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "In 1911."}]


class Message:
    """What models of pydantic offer, as LangChain's messages do."""

    def model_dump(self) -> dict[str, Any]:
        return {"content": "In 1911.", "type": "ai", "id": None}


@dataclass
class Passage:
    page_content: str


@pytest.mark.parametrize(
    "outputs",
    ["In 1911.", {"answer": "In 1911."}, MESSAGES, {"messages": MESSAGES}, [Message()], Message()],
)
@pytest.mark.parametrize(
    "inputs",
    ["When?", {"question": "When?"}, [{"role": "user", "content": "When?"}]],
)
def test_questions_and_answers_are_found_in_every_form(inputs: Any, outputs: Any) -> None:
    context = [Passage("It was opened in 1911."), "It has seven arches."]
    found = sample_of(build_record(inputs, outputs, {"answer": "1911"}, context=context))
    assert (found.question, found.response, found.claims) == ("When?", "In 1911.", ("1911",))
    assert [one.text for one in found.documents or ()] == [
        "It was opened in 1911.",
        "It has seven arches.",
    ]


def test_a_right_answer_may_be_a_text() -> None:
    assert sample_of(build_record("When?", "In 1911.", "1911")).claims == ("1911",)


def test_what_is_absent_is_left_out() -> None:
    assert build_record(None, None) == {}
    assert build_record("When?", None, metadata=None) == {"inputs": {"question": "When?"}}


def test_classes_and_other_objects_stay_as_they_are() -> None:
    other = object()
    assert to_plain({"a": Passage, "b": other, "c": (1, 2)}) == {
        "a": Passage,
        "b": other,
        "c": [1, 2],
    }


@pytest.mark.parametrize("outputs", [MESSAGES, {"messages": MESSAGES}])
def test_a_conversation_brings_its_question_along(outputs: Any) -> None:
    found = sample_of(build_record(None, outputs, context=["It was opened in 1911."]))
    assert (found.question, found.response) == ("Hi.", "In 1911.")


@pytest.mark.parametrize("outputs", ["In 1911.", {"answer": "In 1911."}, ["In 1911."]])
def test_an_answer_alone_is_not_taken_for_a_question(outputs: Any) -> None:
    assert "inputs" not in build_record(None, outputs)
