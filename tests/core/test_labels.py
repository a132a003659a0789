"""What single labels say: words in nine languages, signs, numbers, and what is no label."""

from __future__ import annotations

import pytest

from trustassay.core.labels import (
    RIGHT,
    WRONG,
    fold_label,
    is_about_wrong,
    is_missing,
    normalise_label,
    parse_number,
    parse_percent,
    read_single_label,
    read_word,
)

WORDS_RIGHT = """
yes|Y|TRUE|t|pass|PASSED|Correct.|"right"|**Supported**|grounded|factual|faithful|good|OK|thumbs_up|
thumbsUp|:thumbsup:|Thumbs up|up|like|👍|👍🏽|✅|✓|✔️|+1|1.0|not hallucinated|No hallucination|
richtig|Ja|WAHR|Daumen hoch|keine Halluzination|vrai|Oui|sí|SÌ|Réussi|pouce levé|correcto|verdadero|
sim|certo|vero|giusto|juist|waar|正しい|はい|正解|正确|是|对|（正确）
"""
WORDS_WRONG = """
no|n|False|F|fail|FAILED|incorrect|wrong!|[wrong]|hallucinated|ungrounded|not grounded|non-factual|
Unfaithful|bad|thumbs-down|thumbsDown|down|dislike|👎|👎🏿|❌|✗|✘|0|0,0|NotSupported|not-supported|
NOT ENOUGH INFO|falsch|Nein|nicht richtig|ungültig|Daumen runter|halluziniert|faux|non|pas correct|
échec|incorrecto|falso|não|nao|errado|sbagliato|nee|onjuist|fout|誤り|いいえ|不正解|不合格|错误|否|不正确|不对
"""


def split(words: str) -> list[str]:
    return words.replace("\n", "").split("|")


@pytest.mark.parametrize("word", split(WORDS_RIGHT))
def test_words_for_right(word: str) -> None:
    assert read_word(word) == 1
    assert not is_missing(word)


@pytest.mark.parametrize("word", split(WORDS_WRONG))
def test_words_for_wrong(word: str) -> None:
    assert read_word(word) == 0
    assert not is_missing(word)


@pytest.mark.parametrize(
    "word",
    [
        # Right in one place and wrong in another.
        *("x", "X", "w", "s", "v", "○", "positive", "negative"),
        # In between, or a negation that is no support.
        *("partially supported", "yes and no", "not contradicted", "not bad"),
        *("unclear", "?", "a yes", "A*", "A-", "2", "-1", "50"),
    ],
)
def test_what_is_ambiguous_or_unknown_means_nothing(word: str) -> None:
    assert read_word(word) is None


def test_no_word_means_right_and_wrong_or_stands_for_no_label() -> None:
    assert not RIGHT & WRONG
    assert not [word for word in RIGHT | WRONG if is_missing(word)]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.0", 1),
        (" -2 ", -2),
        ("−2", -2),
        ("+1", 1),
        ("0,85", 0.85),
        ("12,5", 12.5),
        ("0,850", 0.85),
        (".5", 0.5),
        ("1e-3", 0.001),
        ("１", 1),
        ("1,000", None),
        ("12,345", None),
        ("1_000", None),
        ("inf", None),
        ("nan", None),
        ("1e999", None),
        ("4/5", None),
        ("", None),
    ],
)
def test_numbers_have_a_point_or_a_comma(text: str, number: float | None) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("85 %", 85), ("85%", 85), ("0,5％", 0.5), ("85 per cent", 85), ("85 Prozent", 85)),
        *(("85", None), ("% 85", None), ("about 85 %", None), ("1,000 %", None)),
    ],
)
def test_per_cent(text: str, number: float | None) -> None:
    assert parse_percent(text) == number


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "\u200b", "nan", "NaN", "None", "N/A", "n.a.", "#N/A", "<NA>", "null"),
        *("-", "—", "…", "k.A.", "not rated"),
    ],
)
def test_texts_that_are_no_label(text: str) -> None:
    assert is_missing(text)


@pytest.mark.parametrize("text", ["a" + " " * 10**6 + "b", "1" * 10**6, "no_" * 10**6])
def test_a_long_text_is_no_label_and_takes_no_time(text: str) -> None:
    assert fold_label(text) == text
    assert normalise_label(text) == text
    assert read_single_label(text) is None


def test_different_grades_stay_different() -> None:
    grades = ["A", "A*", "A+", "A-", "B", "b c", "C++", "C"]
    assert len({fold_label(grade) for grade in grades}) == len(grades)


def test_a_single_label_is_a_number_where_it_can_be_read() -> None:
    labels = (None, 0.3, "yes", "falsch", "85 %", "0,5", "unclear")
    assert [read_single_label(label) for label in labels] == [None, 0.3, 1, 0, 85, 0.5, None]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("hallucination", True),
        ("metadata.is_hallucinated", True),
        ("hasHallucination", True),
        ("Halluzination", True),
        ("ist_falsch", True),
        ("incorrect", True),
        ("no_hallucination", False),
        ("hallucination_free", False),
        ("correct", False),
        ("label", False),
        ("grounded", False),
    ],
)
def test_names_that_say_what_is_wrong(name: str, answer: bool) -> None:
    assert is_about_wrong(name) is answer
