"""Numbers as people read them."""

import pytest

from trustassay.text.numbers import (
    amount,
    gigabytes_text,
    measure,
    number,
    p_equation,
    percent_text,
    score_text,
    verb,
)


def test_a_count_agrees_with_its_noun() -> None:
    assert amount(1, "answer") == "1 answer"
    assert amount(0, "answer") == "0 answers"
    assert amount(1000, "answer") == "1,000 answers"
    assert amount(2, "reply", "replies") == "2 replies"


def test_a_verb_agrees_with_its_count() -> None:
    assert [verb(count, "is", "are") for count in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0, "0 %"), (0.004, "<1 %"), (0.005, "<1 %"), (0.617, "62 %"), (0.995, ">99 %"), (1, "100 %")],
)
def test_only_exact_shares_read_as_nothing_or_all(share: float, expected: str) -> None:
    assert percent_text(share) == expected


@pytest.mark.parametrize(
    ("p", "expected"),
    [(0.0, "p < 0.0001"), (0.00009, "p < 0.0001"), (0.0312, "p = 0.031"), (0.5, "p = 0.50")],
)
def test_p_values(p: float, expected: str) -> None:
    assert p_equation(p) == expected


def test_sizes() -> None:
    assert gigabytes_text(1_117_000_000) == "1.1 GB"


@pytest.mark.parametrize(
    ("value", "unit", "digits", "expected"),
    [
        (61.128, "%", 1, "61.1\u202f%"),
        (61.128, "%", 2, "61.13\u202f%"),
        (1234567, "", 2, "1,234,567"),
        (-0.001, "%", 1, "0.0\u202f%"),
        (-0.26, "%", 1, "-0.3\u202f%"),
        (float("nan"), "%", 1, "–\u202f%"),
        (100.0, "", 1, "100.0"),
    ],
)
def test_measure(value: float, unit: str, digits: int, expected: str) -> None:
    assert measure(value, unit, digits) == expected


def test_scores() -> None:
    assert [score_text(s) for s in (1.0, 0.834, 0.0, 0.0001, None)] == [
        "1.00",
        "0.83",
        "0.00",
        "1.0e-04",
        "–",
    ]
    assert number(5) == "5"
