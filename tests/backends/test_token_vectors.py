"""Vectors of tokens by a tiny model of this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.lazily import needed
from trustassay.backends.registry import load
from trustassay.calls.capability import TOKEN_VECTORS
from trustassay.errors import BackendError

_HF = "needs torch and transformers: pip install '.[hf]'"
torch, _ = needed("torch", _HF), needed("transformers", _HF)

from tests.tiny_chat import save_roberta  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_roberta(tmp_path_factory.mktemp("model") / "roberta")


def test_special_tokens_are_told_and_neighbours_change_nothing(folder: Path) -> None:
    embedder = load("token embedder", f"hf:{folder}")
    texts = ["the cat", "the cat sat on the mat and the dog sat on the cat", ""]
    found = embedder.token_vectors(texts)
    assert found[0].tokens[0] == "<s>" and found[0].tokens[-1] == "</s>"
    assert [one.special for one in found] == [(0, len(one.tokens) - 1) for one in found]
    assert found[2].tokens == ("<s>", "</s>")
    for text, one in zip(texts, found, strict=True):
        [alone] = embedder.token_vectors([text])
        assert alone.tokens == one.tokens
        assert one.vectors.shape == (len(one.tokens), 32)
        np.testing.assert_allclose(alone.vectors, one.vectors, atol=1e-5)
        again = TOKEN_VECTORS.codec.reply_from_json(TOKEN_VECTORS.codec.reply_to_json(one))
        assert again.special == one.special
        np.testing.assert_array_equal(again.vectors, one.vectors)


def test_layers_are_counted_from_the_embeddings(folder: Path) -> None:
    last, third, none = (
        load("token embedder", f"hf:{folder}{layer}").token_vectors(["the cat"])[0].vectors
        for layer in ("", "?layer=3", "?layer=0")
    )
    np.testing.assert_array_equal(last, third)
    assert not np.allclose(last, none)
    with pytest.raises(BackendError, match="expected a layer from 0 to 3, got 4"):
        load("token embedder", f"hf:{folder}?layer=4")


def test_a_text_longer_than_the_model_reads_is_refused(folder: Path) -> None:
    embedder = load("token embedder", f"hf:{folder}")
    with pytest.raises(BackendError, match="tokens exceeds the model's limit of 1"):
        embedder.token_vectors(["x " * 300])


def test_places_of_special_tokens_that_are_not_there_are_a_fault(folder: Path) -> None:
    [sound] = load("token embedder", f"hf:{folder}").token_vectors(["the cat"])

    class Wrong:
        name = "wrong"

        def token_vectors(self, texts: object) -> list[object]:
            return [sound._replace(special=(99,))]

    with pytest.raises(BackendError, match="wrong did not return"):
        TOKEN_VECTORS.compute(Wrong(), ["the cat"])
