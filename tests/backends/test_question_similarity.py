"""Similarities of two answers to a question."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.backends import resolve
from trustassay.backends.functions import FunctionEmbedder, FunctionSimilarity
from trustassay.backends.similarity import (
    AgreementSimilarity,
    NovelWordsSimilarity,
    compute_novel_agreement,
    compute_word_likeness,
)
from trustassay.core.capabilities import Probabilities, QuestionSimilarity
from trustassay.errors import BackendError, UnknownNameError

QUESTION = "Who wrote the opera Natalka Poltavka?"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # The words of the question are shared by all answers and say nothing.
        ("Anna wrote Natalka Poltavka", "Boris wrote Natalka Poltavka", 0.0),
        ("Anna wrote it", "The opera was by Anna", 1.0),
        # Who says more agrees as well: of {anna, keller} all are in {anna, keller, rome}.
        ("Anna Keller", "Anna Keller, in Rome", 1.0),
        # {anna, keller} and {anna, moore}: half of either.
        ("Anna Keller", "Anna Moore", 0.5),
        # A year is itself alone; a numeral is its number.
        ("in 1994", "in 1995", 0.0),
        ("two women", "2 women", 1.0),
        # Neither adds a word: what they name is held against each other, {natalka} of 3 words.
        ("Natalka", "the opera Natalka Poltavka", 1 / 3),
        # One alone adds nothing.
        ("Natalka Poltavka", "Anna", 0.0),
        ("", "Anna", 0.0),
        ("", "", 0.0),
        ("?", "Anna", 0.0),
        # Without content words: equal answers agree, and plain words are held against each other.
        ("No", "No", 1.0),
        ("No.", "no", 1.0),
        ("No", "No, Anna did not", 1.0),
        ("It is not", "Anna", 0.0),
    ],
)
def test_novel_words_by_hand(first: str, second: str, expected: float) -> None:
    assert compute_novel_agreement(first, second, QUESTION) == pytest.approx(expected)
    assert compute_novel_agreement(second, first, QUESTION) == pytest.approx(expected)
    found = NovelWordsSimilarity().scores([(first, second, QUESTION)])
    assert found == pytest.approx([expected])


def test_spellings_of_a_word_are_alike() -> None:
    """abcd and abce: pairs ^a ab bc cd d$ and ^a ab bc ce e$ share three: 2 x 3 / 10."""
    assert compute_word_likeness("abcd", "abce") == pytest.approx(0.6)
    assert compute_word_likeness("kotliarevskyi", "kotlyarevsky") > 0.5
    assert compute_word_likeness("abcd", "wxyz") == 0
    assert compute_word_likeness("1994", "1995") == 0
    assert compute_word_likeness("a1", "a1") == 1


@pytest.mark.parametrize("shared", ["", "abcdefghij"])
def test_long_answers_take_little_time(shared: str) -> None:
    """1,000 words each; in the second case every word shares pairs of letters with every other."""
    letters = np.random.default_rng(0).choice(list("abcdefghijklmnopqrstuvwxyz"), (2, 1000, 8))
    first, second = (" ".join(shared + "".join(word) for word in one) for one in letters)
    start = time.process_time()
    compute_novel_agreement(first, second)
    assert time.process_time() - start < 0.5


class Entails:
    """Entails by a table of (premise, hypothesis)."""

    name = "entails"

    def __init__(self, table: dict[tuple[str, str], tuple[float, float, float]]) -> None:
        self.table = table
        self.asked: list[tuple[str, str]] = []

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        self.asked += pairs
        return np.array([self.table[pair] for pair in pairs])


def test_agreement_is_the_mean_of_words_and_entailment() -> None:
    """Entailment (.8 + 1 - .1) / 2 = .85, words 0: .425."""
    entails = Entails(
        {("Who? Anna", "Who? Boris"): (0.2, 0.5, 0.3), ("Who? Boris", "Who? Anna"): (0.8, 0.1, 0.1)}
    )
    similar = AgreementSimilarity(entails)
    triples = [("Anna", "Boris", "Who?"), ("Boris", "Anna", "Who?"), ("Anna", "Anna", "Who?")]
    assert similar.scores(triples) == pytest.approx([0.425, 0.425, 1])
    assert len(entails.asked) == 2  # each direction once, and the same text not at all
    assert similar.scores([]).shape == (0,)
    assert isinstance(similar, QuestionSimilarity)
    assert similar.name == "agreement:entails"


@given(first=st.text(), second=st.text(), question=st.text())
def test_novel_agreement_is_bounded_and_symmetric(first: str, second: str, question: str) -> None:
    found = compute_novel_agreement(first, second, question)
    assert 0 <= found <= 1 + 1e-9
    assert found == pytest.approx(compute_novel_agreement(second, first, question))


def test_they_are_had_by_name() -> None:
    assert resolve.similarity("novel").name == "novel"
    assert resolve.similarity("agreement:lexical").name == "agreement:lexical"
    with pytest.raises(UnknownNameError, match="did you mean"):
        resolve.similarity("agreemnt")
    with pytest.raises(UnknownNameError):
        resolve.similarity("novel:x")


def test_a_function_is_a_similarity() -> None:
    found = resolve.similarity(lambda text, reference: len(text) - len(reference))
    assert found.scores([("abc", "a"), ("", "a")]).tolist() == [2, -1]
    assert found.name.startswith("function:tests.backends.test_question_similarity.")
    by_name = resolve.similarity("python:tests.backends.test_question_similarity:shorter")
    assert (by_name.name, by_name.scores([("a", "bc")])[0]) == (
        "python:tests.backends.test_question_similarity:shorter",
        1.0,
    )
    with pytest.raises(BackendError, match="expected a number"):
        FunctionSimilarity(lambda *_: "alike", "f").scores([("a", "b")])
    with pytest.raises(BackendError, match="is a class"):
        resolve.similarity(Entails)  # type: ignore[arg-type]
    with pytest.raises(BackendError, match="an object or a function"):
        resolve.similarity(7)  # type: ignore[arg-type]

    async def later(text: str, reference: str) -> float:
        return 0.0

    with pytest.raises(BackendError, match="plain function"):
        resolve.similarity(later)


def shorter(text: str, reference: str) -> bool:
    return len(text) < len(reference)


def test_a_function_is_an_embedder() -> None:
    found = resolve.make_blocking(
        resolve.embedder(lambda texts: [[len(text), 0.0, 1.0] for text in texts])
    )
    vectors = found.vectors(["a", "bcd"])
    assert vectors.shape == (2, 3)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert vectors[1, 0] == pytest.approx(3 / 10**0.5)

    def answer(given: object, _: list[str]) -> object:
        return given

    for wrong in ([[1.0]], [1.0, 2.0], [[float("nan")], [1.0]], "no", [[0.0], [1.0]]):
        message = "expected 2 vectors of finite numbers|length 0 for text 1 of 2"
        with pytest.raises(BackendError, match=message):
            resolve.make_blocking(resolve.embedder(partial(answer, wrong))).vectors(["a", "b"])
    with pytest.raises(BackendError, match="is a class"):
        resolve.embedder(FunctionEmbedder)  # type: ignore[arg-type]
