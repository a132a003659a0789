"""Samples: checked completely, never changed, and the same after a trip through JSON."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.sample import (
    CANONICAL_FIELDS,
    Document,
    Problem,
    Sample,
    SampleError,
    clean,
    compute_content_id,
    write_number,
)


def problems(**raw: Any) -> list[str]:
    with pytest.raises(SampleError) as error:
        Sample.parse({"question": "q", **raw})
    return [str(p) for p in error.value.problems]


def parsed(**raw: Any) -> Sample:
    return Sample.parse({"question": "q", **raw})


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(alphabet=st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
DOCUMENTS = st.lists(
    st.text(max_size=8)
    | st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("id", "text", "title", "excerpt", "supports"), JSON)
    ),
    max_size=3,
)
RECORDS = st.fixed_dictionaries(
    {"question": st.just("q") | JSON},
    optional={name: JSON for name in CANONICAL_FIELDS if name != "question"}
    | {
        "documents": DOCUMENTS | JSON,
        "other": JSON,
        "answers": st.lists(st.text(max_size=4)) | JSON,
    },
)


@given(RECORDS)
def test_every_record_is_a_sample_or_a_list_of_problems(raw: dict[str, Any]) -> None:
    try:
        sample = Sample.parse(raw)
    except SampleError as error:
        assert error.problems
        assert all(p.field and p.message for p in error.problems)
        return
    assert sample.question.strip()
    assert sample.id.strip()
    again = Sample.parse(json.loads(json.dumps(sample.to_dict())))
    left, right = (dataclasses.replace(s, metadata={}) for s in (sample, again))
    assert left == right
    assert next(iter(sample.to_dict())) == "id"
    if sample.supports_known:
        assert all(d.supports is not None for d in sample.documents or ())


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ({"id": True}, ["id: expected text or a whole number, got true"]),
        ({"id": 1.5}, ["id: expected text or a whole number, got 1.5"]),
        ({"id": " "}, ["id: is blank"]),
        ({"question": " "}, ["question: is blank (expected text)"]),
        ({"question": None}, ["question: is missing (expected text)"]),
        ({"response": [3]}, ["response: expected text, got a list"]),
        ({"answers": [""]}, ["answers[0]: is blank"]),
        ({"answers": [["a", " "]]}, ["answers[0][1]: is blank"]),
        ({"answers": [[]]}, ["answers[0]: has no alias (expected one or more)"]),
        ({"answers": [{"a": 1}]}, ["answers[0]: expected text, got an object"]),
        ({"answers": [[["a"]]]}, ["answers[0][0]: expected text, got a list"]),
        ({"claims": ["a", None]}, ["claims[1]: expected text, got null"]),
        ({"documents": 3}, ["documents: expected a list of documents, got 3"]),
        ({"documents": ["a", 3]}, ["documents[1]: expected a document or its text, got 3"]),
        ({"documents": [{}]}, ["documents[0].text: is missing (expected text)"]),
        ({"references": ["a"]}, ["references: expected answers by model name, got a list"]),
        (
            {"documents": [{"text": "a", "supports": [1]}, {"text": "b"}]},
            ["documents[1].supports: is missing, but other documents have it"],
        ),
        (
            {"answers": ["x", "y"], "documents": [{"text": "a", "supports": [1]}]},
            ["documents[0].supports: has 1 flags for 2 answers"],
        ),
        (
            {"answers": ["x"], "claims": ["c", "d"], "documents": [{"text": "a", "supports": []}]},
            ["documents[0].supports: has 0 flags for 1 answers or 2 claims"],
        ),
    ],
)
def test_faults_are_told_with_their_field(raw: dict[str, Any], found: list[str]) -> None:
    assert problems(**raw) == found


def test_all_faults_of_a_record_are_told_at_once() -> None:
    assert len(problems(id=[], response=[1], claims=[{}, []], documents=[{}])) == 5


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (True, 1.0),
        ("False", 0.0),
        (3, 3.0),
        (" 0,5 ", 0.5),
        (" Yes ", "Yes"),
        ("85 %", "85 %"),
        ("1,000", "1,000"),
        (float("nan"), None),
        ("N/A", None),
        ("", None),
        (float("inf"), "inf"),
        (10**400, str(10**400)),
        ({"human": "yes"}, None),
        (["yes"], None),
    ],
)
def test_no_label_is_a_fault_and_each_survives_a_trip_through_json(
    value: Any, label: float | str | None
) -> None:
    sample = parsed(label=value)
    assert sample.label == label
    assert Sample.parse(json.loads(json.dumps(sample.to_dict()))) == sample
    # An object is kept for those who name one of its fields.
    is_nested = isinstance(value, dict | list)
    assert sample.to_dict().get("label") == (value if is_nested else label)


def test_texts_and_numbers_as_gold_answers() -> None:
    assert parsed(answers="Nile").answers == (("Nile",),)
    assert parsed(answers=["Nile", ["Amazon", 7, 1.5]]).answers == (
        ("Nile",),
        ("Amazon", "7", "1.5"),
    )
    assert parsed(answers=7).answers == (("7",),)
    assert parsed(claims="The Nile is long.").claims == ("The Nile is long.",)


def test_documents_as_texts_and_as_columns() -> None:
    by_rows = parsed(documents=[{"text": "a", "title": "A"}, {"text": "b", "title": "B"}])
    by_columns = parsed(documents={"text": ["a", "b"], "title": ["A", "B"]})
    assert by_rows.documents == by_columns.documents
    assert parsed(documents=["a"]).documents == (Document("1", "a"),)
    assert parsed(documents=[]).documents == ()
    assert parsed().documents is None


def test_what_has_no_canonical_name_is_kept() -> None:
    assert parsed(colour="red", deep={"a": [1]}).metadata == {"colour": "red", "deep": {"a": [1]}}


def test_ids_are_made_from_content() -> None:
    one, two = parsed(response="a"), parsed(response="b")
    assert one.id == parsed(response="a").id != two.id
    assert len(one.id) == 12
    assert compute_content_id({"a": 1, "b": 2}) == compute_content_id({"b": 2, "a": 1})
    # As in a file of CSV.
    assert compute_content_id({"a": "1", "b": "2", "c": "", "d": None}) == compute_content_id(
        {"a": 1, "b": 2.0}
    )
    assert parsed(id=7).id == "7"


def test_whole_numbers_are_written_as_in_a_table() -> None:
    # The last one is not exact, so its digits would pretend something.
    numbers = (3.0, -0.0, 2.5, 7, True, 1e16)
    assert [write_number(number) for number in numbers] == ["3", "0", "2.5", "7", "True", "1e+16"]


def test_lone_surrogates_are_replaced_and_all_else_stays() -> None:
    assert clean("a\ud800b") == "a\ufffdb"
    assert clean("\ud83d\ude00") == "😀"
    assert parsed(response="\udfff", id="\ud800").response == "\ufffd"
    for text in ("plain", "ü", "😀", "\x00\x1b\u202e"):
        assert clean(text) is text


def test_a_sample_does_not_change() -> None:
    sample = parsed()
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample.question = "other"  # type: ignore[misc]


def test_a_sample_built_by_hand_writes_texts_as_texts() -> None:
    sample = Sample("a", "q", answers=("Nile", ("Amazon",)), claims="one claim")  # type: ignore[arg-type]
    assert sample.to_dict()["answers"] == ["Nile", ["Amazon"]]
    assert sample.to_dict()["claims"] == "one claim"
    assert Sample.parse(sample.to_dict()).answers == (("Nile",), ("Amazon",))


def test_problems_read_as_one_line() -> None:
    assert str(Problem("a", "b")) == "a: b"
    assert str(SampleError([Problem("a", "b"), Problem("c", "d")])) == "a: b; c: d"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (3, {"": "3"}),
        ("mostly truthful ", {"": "mostly truthful"}),
        (
            {"truthfulness": 3, "informativeness": "2", "code": ""},
            {"truthfulness": "3", "informativeness": "2"},
        ),
        ("", {}),
        (None, {}),
    ],
)
def test_the_expected_level_is_one_or_several_by_rubric(given: Any, read: dict[str, str]) -> None:
    sample = Sample.parse({"id": "a", "question": "q", "expected": given})
    assert sample.expected == read
    assert Sample.parse(sample.to_dict()) == sample


def test_what_is_no_level_is_named() -> None:
    with pytest.raises(SampleError, match=r"expected\.a: expected the level of a rubric, got true"):
        Sample.parse({"question": "q", "expected": {"a": True}})
    with pytest.raises(SampleError, match="expected: expected the level of a rubric, got a list"):
        Sample.parse({"question": "q", "expected": [3]})
