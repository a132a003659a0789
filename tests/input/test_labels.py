"""Labels as people write them."""

from __future__ import annotations

import math

import pytest

from trustassay.input.labels import read_labels
from trustassay.input.records import InputError


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ([1, 0, True, False], "binary", [1, 0, 1, 0]),
        (["1", "0", " 1 "], "binary", [1, 0, 1]),
        (["yes", "No", "TRUE"], "binary", [1, 0, 1]),
        (["supported", "not-supported", "Not supported"], "binary", [1, 0, 0]),
        (["supported", "contradicted", 0], "binary", [1, 0, 0]),
        (["1.0", "no", 1], "binary", [1, 0, 1]),
        (["passes", "fails", "Y", "n"], "binary", [1, 0, 1, 0]),
        ([1, 5, 5], "ordinal", [1, 5, 5]),
        ([1, 2, 2], "ordinal", [1, 2, 2]),
        ([1, 2, 3], "ordinal", [1, 2, 3]),
        ([0.5, 1.5, 2.5], "real", [0.5, 1.5, 2.5]),
        (list(range(12)), "real", list(range(12))),
        ([1, 1], "binary", [1, 1]),
    ],
)
def test_kinds(given: list[object], kind: str, expected: list[float]) -> None:
    found = read_labels("mark", given)
    assert (found.kind, list(found.values)) == (kind, expected)


def test_missing_labels_are_missing() -> None:
    found = read_labels("mark", ["yes", None, "", "  ", math.nan, "no"])
    assert found.missing_count == 4
    assert [value for value in found.values if not math.isnan(value)] == [1, 0]
    with pytest.raises(InputError, match="label mark: all 2 labels are missing"):
        read_labels("mark", [None, ""])


def test_words_that_do_not_say_what_is_right_are_refused_by_name() -> None:
    given = ["Fully attributable", "Generic", "Generic", "yes"]
    with pytest.raises(InputError) as caught:
        read_labels("mark", given)
    assert "'Generic' (2), 'Fully attributable' (1); expected numbers" in str(caught.value)
    assert "--positive" in str(caught.value)
    found = read_labels("mark", [*given, None], positive=["fully  attributable"])
    assert list(found.values)[:4] == [1, 0, 0, 0]
    assert found.missing_count == 1


def test_a_positive_word_turns_a_label_round() -> None:
    assert list(read_labels("hallucinated", ["yes", "no"], positive=["no"]).values) == [0, 1]


def test_a_positive_number_is_compared_as_a_number() -> None:
    assert list(read_labels("mark", [2.0, "1", "2"], positive=["2"]).values) == [1, 0, 1]


def test_numbers_are_right_from_a_number_on() -> None:
    labels = read_labels("mark", [1, "4", 5.0, None], at_least=4)
    assert (labels.kind, list(labels.values)[:3], labels.missing_count) == ("binary", [0, 1, 1], 1)
    assert list(read_labels("mark", ["yes", "no"], at_least=4).values) == [1, 0], "words"


def test_of_two_levels_the_higher_one_is_right() -> None:
    labels = read_labels("mark", ["good", "poor", "good"], levels=["poor", "good"])
    assert (labels.kind, list(labels.values)) == ("binary", [1, 0, 1])


def test_levels_give_words_an_order() -> None:
    found = read_labels("mark", ["good", "Poor", None], levels=["poor", "fair", "good"])
    assert found.kind == "ordinal"
    assert list(found.values)[:2] == [2, 0]
    with pytest.raises(InputError, match="'great' is not among the levels poor, good"):
        read_labels("mark", ["good", "great"], levels=["poor", "good"])


@pytest.mark.parametrize("given", [[{"a": 1}], [[1]], ["inf", "1", "2", "3"], [1e300, 1, 2]])
def test_what_is_no_label_is_refused(given: list[object]) -> None:
    with pytest.raises(InputError, match="label mark: expected"):
        read_labels("mark", given)
