"""Vectors of tokens by the embedded model."""

import numpy as np

from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.backends.embedded_tokens import EmbeddedTokenEmbedder
from trustassay.backends.registry import load

TEXTS = ["The lamp is red.", "Nobody bought it, unsurprisingly.", ""]
LONG = " ".join(f"lamp {number}" for number in range(300))


def test_their_mean_is_the_direction_of_the_texts_vector() -> None:
    tokens, vectors = EmbeddedTokenEmbedder().token_vectors(TEXTS), EmbeddedEmbedder()
    for one, whole in zip(tokens, vectors.vectors(TEXTS), strict=True):
        assert one.vectors.shape == (len(one.tokens), 384)
        mean = one.vectors.mean(axis=0)
        np.testing.assert_allclose(mean / np.linalg.norm(mean), whole, atol=1e-6)


def test_tokens_are_the_texts_own_between_two_special_ones() -> None:
    [one, _, empty] = load("token embedder", "embedded").token_vectors(TEXTS)
    assert one.tokens == ("[CLS]", "the", "lamp", "is", "red", ".", "[SEP]")
    assert one.special == (0, 6)
    assert (empty.tokens, empty.special) == (("[CLS]", "[SEP]"), (0, 1))


def test_neighbours_change_nothing() -> None:
    embedder = EmbeddedTokenEmbedder(threads=2)
    for text, one in zip(TEXTS, embedder.token_vectors([*TEXTS, LONG]), strict=False):
        assert (embedder.token_vectors([text])[0].vectors == one.vectors).all()


def test_a_long_text_is_read_in_pieces_and_whole() -> None:
    [long] = EmbeddedTokenEmbedder().token_vectors([LONG])
    assert len(long.tokens) == len(long.vectors) > 600
    assert long.special == (0, len(long.tokens) - 1)
    [start] = EmbeddedTokenEmbedder().token_vectors([" ".join(long.tokens[1:255])])
    assert start.tokens[1:-1] == long.tokens[1:255]
    np.testing.assert_array_equal(start.vectors[:255], long.vectors[:255])
