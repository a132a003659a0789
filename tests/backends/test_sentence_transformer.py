"""Tests of the sentence-transformers embedder on a tiny real model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.lazily import needed
from trustassay.backends.hf_embedders import SentenceTransformerEmbedder
from trustassay.core.capabilities import Embedder
from trustassay.errors import BackendError

torch, transformers = needed("torch"), needed("transformers")
library = needed("sentence_transformers", "pip install '.[sentence-transformers]'")

from tests.tiny_models import FILLER, pickled, train_nli  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]

LIMIT = 16  # tokens that the tiny model reads, two of them special
TEXTS = ["word1", " ".join(FILLER[:6]), "", " ".join(FILLER[3:14]), "Anna owns a red car."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("embedder")
    train_nli(path / "bert", steps=0, max_length=LIMIT)
    bert = transformers.AutoModel.from_pretrained(path / "bert")
    bert.save_pretrained(path / "plain")
    transformers.AutoTokenizer.from_pretrained(path / "bert").save_pretrained(path / "plain")
    made = library.SentenceTransformer(str(path / "plain"), device="cpu")
    made.max_seq_length = LIMIT
    made.save(str(path / "model"))
    return path / "model"


@pytest.fixture(scope="module")
def embedder(folder: Path) -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(str(folder), device="cpu")


def test_unit_vectors_that_are_the_librarys(
    embedder: SentenceTransformerEmbedder, folder: Path
) -> None:
    vectors = embedder.vectors(TEXTS)
    plain = library.SentenceTransformer(str(folder), device="cpu")
    expected = plain.encode(TEXTS, normalize_embeddings=True)
    assert vectors.dtype == np.float32 and vectors.shape == (5, 64)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert isinstance(embedder, Embedder)
    assert embedder.name == f"hf:{folder}"


def test_order_and_batches_change_nothing(
    embedder: SentenceTransformerEmbedder, folder: Path
) -> None:
    small = SentenceTransformerEmbedder(str(folder), device="cpu", batch_tokens=20)
    expected = embedder.vectors(TEXTS)
    np.testing.assert_allclose(small.vectors(TEXTS[::-1])[::-1], expected, atol=1e-5)
    assert small.limits.tokens == 20
    assert embedder.vectors([]).shape == (0, 64)


def test_nothing_of_a_long_text_is_lost(embedder: SentenceTransformerEmbedder) -> None:
    long = " ".join(FILLER)
    halves = [" ".join(FILLER[:10]), " ".join(FILLER[10:20])]
    made = embedder.vectors([" ".join(halves), *halves, long, f"{long} Anna"])
    mean = made[1] + made[2]  # both of ten tokens and two special ones
    np.testing.assert_allclose(made[0], mean / np.linalg.norm(mean), atol=1e-5)
    assert not np.allclose(made[3], made[4], atol=1e-4)
    assert embedder.vectors(["lone \ud800 half"]).shape == (1, 64)
    assert embedder.vectors(["x" * 500 + " y" * 500]).shape == (1, 64)


def test_what_is_not_loaded(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendError, match="there is no such folder"):
        SentenceTransformerEmbedder(str(tmp_path / "none"))
    with pytest.raises(BackendError, match="no safetensors weights"):
        SentenceTransformerEmbedder(str(pickled(folder, tmp_path / "pickled")), device="cpu")
    with pytest.raises(BackendError, match="dtype=int3 is unknown"):
        SentenceTransformerEmbedder(str(folder), dtype="int3")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(BackendError, match=r"pip install '\.\[sentence-transformers\]'"):
        SentenceTransformerEmbedder(str(folder))


def test_import_is_light() -> None:
    code = (
        "import sys, trustassay.backends.hf_embedders; "
        "print([m for m in ('torch', 'sentence_transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
