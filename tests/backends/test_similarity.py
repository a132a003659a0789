"""Similarities of two texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from trustassay import similarity
from trustassay.backends.similarity import (
    ConsistencySimilarity,
    CosineSimilarity,
    LexicalSimilarity,
)
from trustassay.capabilities import Probabilities, Similarity, Vectors
from trustassay.errors import UnknownNameError


class Letters:
    """Embeds a text by whether it holds an a and a b."""

    name = "letters"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def vectors(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        rows = np.array([["a" in t, "b" in t] for t in texts], dtype=np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


class Longer:
    """Entails where the premise is longer."""

    name = "longer"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        return np.array([[0.9, 0.1, 0.0] if len(p) > len(h) else [0.2, 0.8, 0.0] for p, h in pairs])


def test_cosine_by_hand_and_each_text_embedded_once() -> None:
    letters = Letters()
    found = CosineSimilarity(letters).scores([("a", "b"), ("a", "ab"), ("a", "a")])
    assert found == pytest.approx([0, 2**-0.5, 1])
    assert letters.asked == ["a", "b", "ab"]
    assert CosineSimilarity(letters).scores([]).shape == (0,)


def test_consistency_takes_the_reference_as_premise() -> None:
    found = ConsistencySimilarity(Longer()).scores([("short", "a longer reference"), ("aaaa", "b")])
    assert found == pytest.approx([0.9, 0.2])


def test_lexical_is_the_f1_of_shared_words() -> None:
    """text holds 1 of 2 reference words, reference 1 of 1 text words: 2 (1)(.5) / 1.5."""
    found = LexicalSimilarity().scores([("Rome", "Rome Paris"), ("Rome", "Oslo"), ("x", "x")])
    assert found == pytest.approx([2 / 3, 0, 1])


def test_by_name() -> None:
    assert isinstance(similarity("lexical"), LexicalSimilarity)
    assert similarity("consistency:lexical").name == "consistency:lexical"
    assert similarity().name.startswith("cosine:embedded:")
    assert isinstance(similarity("cosine"), Similarity)
    with pytest.raises(UnknownNameError, match="did you mean cosine"):
        similarity("cosin")


def test_the_embedded_cosine_knows_likeness() -> None:
    near, far = similarity("cosine").scores(
        [("A dog runs.", "A puppy is running."), ("A dog runs.", "Interest rates rose.")]
    )
    assert near > 0.5 > far
