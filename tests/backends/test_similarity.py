"""Similarities of two texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from trustassay import similarity
from trustassay.backends import similarity as similarities
from trustassay.backends.similarity import (
    BertScoreSimilarity,
    ConsistencySimilarity,
    CosineSimilarity,
    LexicalSimilarity,
)
from trustassay.core.capabilities import Probabilities, Similarity, TokenVectors, Vectors
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


class Digits:
    """Token vectors: each digit of a text is a token at that many times 30 degrees."""

    name = "digits"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        self.asked += texts
        return [self._of(text) for text in texts]

    def _of(self, text: str) -> TokenVectors:
        angles = np.radians([30.0 * int(character) for character in f"9{text.strip()}"])
        rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
        return TokenVectors(tuple(f"9{text.strip()}"), rows, (0,))


def test_bertscore_by_hand_and_each_text_read_once() -> None:
    """Tokens at 0 and 30 degrees against one at 0: precision (1 + .866) / 2, recall 1."""
    digits = Digits()
    found = BertScoreSimilarity(digits).scores([("01", "0"), ("0", " 01 "), ("0", ""), ("0", "0")])
    precision = (1 + 3**0.5 / 2) / 2
    expected = 2 * precision / (precision + 1)
    assert found == pytest.approx([expected, expected, 0, 1])
    assert digits.asked == [" 01", " 0"]
    assert BertScoreSimilarity(digits).scores([]).shape == (0,)


def test_bertscore_forgets_texts_that_were_not_read_lately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarities, "MAX_REMEMBERED_TOKEN_TEXTS", 2)
    digits = Digits()
    compared = BertScoreSimilarity(digits)
    for pair in (("0", "1"), ("0", "2"), ("0", "2"), ("0", "1")):
        assert compared.scores([pair])[0] == pytest.approx(np.cos(np.radians(30 * int(pair[1]))))
    assert digits.asked == [" 0", " 1", " 2", " 1"]


def test_by_name() -> None:
    assert isinstance(similarity("lexical"), LexicalSimilarity)
    assert similarity("consistency:lexical").name == "consistency:lexical"
    assert similarity().name.startswith("cosine:embedded:")
    assert isinstance(similarity("cosine"), Similarity)
    with pytest.raises(UnknownNameError, match="did you mean cosine"):
        similarity("cosin")
    assert similarity("bertscore").name.startswith("bertscore:embedded:")
    with pytest.raises(UnknownNameError, match="token embedder"):
        similarity("bertscore:openai:x")


def test_the_embedded_cosine_knows_likeness() -> None:
    near, far = similarity("cosine").scores(
        [("A dog runs.", "A puppy is running."), ("A dog runs.", "Interest rates rose.")]
    )
    assert near > 0.5 > far
