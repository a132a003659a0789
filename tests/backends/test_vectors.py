"""Vectors of any length are scaled; what has none is an error that names the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import trustassay
from trustassay.backends.similarity import CosineSimilarity
from trustassay.backends.vectors import UNIT_TOLERANCE, scale_to_unit
from trustassay.errors import BackendError
from trustassay.metrics.fewl import Fewl


def test_vectors_of_length_1_stay_to_the_last_bit() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.array_equal(scale_to_unit("m", ["t"] * 50, rows), rows)
    assert np.array_equal(scale_to_unit("m", ["t"] * 50, rows.round(6)), rows.round(6))


@pytest.mark.parametrize("length", [1 + 2 * UNIT_TOLERANCE, 0.5, 1e-30, 3e30])
def test_other_lengths_are_scaled(length: float) -> None:
    (one, other) = scale_to_unit("m", ["a", "b"], [[0.6 * length, 0.8 * length], [1, 0]])
    assert one == pytest.approx([0.6, 0.8], rel=1e-6)
    assert other.tolist() == [1, 0]


def test_a_vector_of_length_0_is_an_error_that_names_its_text() -> None:
    with pytest.raises(
        BackendError, match="length 0 for text 2 of 3, 'second', so it has no cosine"
    ):
        scale_to_unit("m", ["first", "second", "third"], [[1, 0], [0, 0], [0, 1]])


class Letters:
    """Counts letters: the longer the text, the longer its vector."""

    name = "counts"

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def vectors(self, texts: Sequence[str]) -> Any:
        rows = [[text.count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuv"] for text in texts]
        return self.factor * np.array(rows)


@pytest.mark.parametrize("factor", [1, 50])
def test_cosines_do_not_depend_on_lengths(factor: float) -> None:
    scores = CosineSimilarity(Letters(factor)).scores([("abc", "abc"), ("aaa", "bbb")])
    assert scores == pytest.approx([1, (22 * 0.01 + 2 * 0.3) / (22 * 0.01 + 9.6)], abs=1e-6)


def test_a_penalty_does_not_depend_on_lengths() -> None:
    """By bare dot products no question was near enough, and nothing was subtracted."""
    samples = [
        {"id": str(n), "question": f"who made {name}", "response": name, "references": {"r": name}}
        for n, name in enumerate(["a bell", "a lamp", "a cart"])
    ]
    penalties = [
        [
            assessment.parts["penalty"]
            for assessment in trustassay.score(
                samples,
                metrics=Fewl(weights="uniform", max_similarity=0.99),
                embedder=Letters(factor),
                similarity=CosineSimilarity(Letters(1)),
            ).assessments
        ]
        for factor in (1, 50)
    ]
    assert penalties[0] == pytest.approx(penalties[1], abs=1e-5)
    assert min(penalties[0]) > 0
