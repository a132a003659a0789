"""Characters that look the same, or stand for the same, are folded into the same ones."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.text.mapped import MappedText
from trustassay.text.unicode import fold, fold_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so\u00adft zero\u200bwidth", "soft zerowidth"),  # a soft hyphen, a zero-width space
        ("\u202eright\u202c to left\u200f", "right to left"),
        ("\ufeffmark of order", "mark of order"),
        ("Brand™ and Name®", "Brand and Name"),
        ("non\u00a0breaking", "non breaking"),
        ("“A” ‘b’ „c“ don’t", '"A" \'b\' "c" don\'t'),
        ("ﬁne", "fine"),
        ("Ａ１", "A1"),
        ("① Ⅳ ㎏", "1 IV kg"),
        ("H₂O", "H2O"),
        ("cafe\u0301", "café"),
        ("\u1100\u1161", "가"),
    ],
)
def test_what_looks_the_same_is_the_same(text: str, expected: str) -> None:
    assert fold_text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("−5 °C", "-5 °C"),
        ("–5 °C", "-5 °C"),
        ("It fell to −$5.", "It fell to -$5."),
        ("It is minus 5 degrees.", "It is -5 degrees."),
        ("Minus 5", "-5"),
        ("(3.2)%", "-3.2%"),
        ("(1,300) %", "-1,300 %"),
        ("5−3", "5-3"),
        ("10–12 and 1914 — 1918", "10-12 and 1914-1918"),
    ],
)
def test_a_minus_and_a_range_have_a_hyphen(text: str, expected: str) -> None:
    assert fold_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "7 minus 5 is 2.",  # a subtraction, in words
        "It is open – always.",
        "The year (2020) was dry.",
        "A well-known town",
    ],
)
def test_other_dashes_and_brackets_stay(text: str) -> None:
    assert fold_text(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("½ cup", "1/2 cup"),
        ("3½ cups", "3 1/2 cups"),
        ("3 ½ cups", "3 1/2 cups"),
        ("⅓", "1/3"),
        ("5 m²", "5 m^2"),
        ("10⁶", "10^6"),
        ("(a + b)²", "(a + b)^2"),
        ("10⁻³", "10^-3"),
    ],
)
def test_fractions_and_powers_are_spelled(text: str, expected: str) -> None:
    """10⁶ is not 106, and 3½ is not 31/2."""
    assert fold_text(text) == expected


def test_offsets_point_to_what_was_written() -> None:
    source = "a\u200b 3½ “b”"
    text = fold(MappedText.of(source))
    assert text.text == 'a 3 1/2 "b"'
    assert [source[offset] for offset in text.offsets] == list("a 3½½½½ “b”")


ALPHABET = (
    "ab1 25.,%()$-−–—‒﹣⁻₋½⅓⅞²³⁰⁹₂ﬁＡ①Ⅳ\u00ad\u200b\u202e\u0301\u0308é’“™…\u1100\u1161ℓ㎏\u2044"
)
TEXTS = (
    st.text() | st.text(ALPHABET) | st.lists(st.sampled_from([*ALPHABET, "minus 5"])).map("".join)
)


@given(TEXTS)
def test_folding_twice_changes_nothing_more(text: str) -> None:
    once = fold_text(text)
    assert fold_text(once) == once


LETTERS = "aeo 1\u0301\u0308\u0327éöçﬁＡßñ\u1100\u1161"


@given(st.text(LETTERS))
def test_composed_and_decomposed_letters_are_folded_alike(text: str) -> None:
    assert fold_text(unicodedata.normalize("NFD", text)) == fold_text(
        unicodedata.normalize("NFC", text)
    )


@given(TEXTS)
def test_offsets_of_a_folded_text_stand_in_order_within_the_text(text: str) -> None:
    result = fold(MappedText.of(text))
    offsets = list(result.offsets)
    assert len(offsets) == len(result.text)
    assert offsets == sorted(offsets)
    assert all(0 <= offset < len(text) for offset in offsets)


@given(st.text(st.characters(codec="ascii", exclude_characters="()")))
def test_ascii_without_a_spelled_minus_is_the_same(text: str) -> None:
    if "minus" not in text.lower():
        assert fold_text(text) == text
