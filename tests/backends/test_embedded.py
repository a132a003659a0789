"""The embedded models: what they answer, how they read long texts, and when they refuse."""

from __future__ import annotations

import inspect
import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay import embedder, entailer
from trustassay.backends import embedded as encoding
from trustassay.backends.embedded import (
    MAX_TOKENS,
    EmbeddedEmbedder,
    EmbeddedEntailer,
    EmbeddedTokenEmbedder,
    compute_encoder_features,
    compute_features,
    cut_pairs,
    cut_windows,
    is_copied,
)
from trustassay.backends.registry import load
from trustassay.core.capabilities import Embedder, Entailer
from trustassay.errors import BackendError, UnknownNameError

FACT = "The harbour bridge was opened by the queen in 1932."
FILLER = (
    "The market square is known for its painted houses. Farmers sell apples and cheese there. "
    "A brass band plays on Sundays. Children feed the ducks in the park behind the church. "
)


@pytest.fixture(scope="module", autouse=True)
def nothing_kept() -> Iterator[None]:
    """Have the encoders read everything; elsewhere they do once (``tests/encoded.py``)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding.Encoder, "_run_item", inspect.unwrap(encoding.Encoder._run_item))
        yield


@pytest.fixture(scope="module")
def model() -> EmbeddedEntailer:
    return EmbeddedEntailer(threads=1)


@pytest.fixture(scope="module")
def vectors() -> EmbeddedEmbedder:
    return EmbeddedEmbedder(threads=1)


def test_tells_support_from_a_changed_number_and_from_another_subject(
    model: EmbeddedEntailer,
) -> None:
    rows = model.scores(
        [
            (FACT, "The queen opened the harbour bridge in 1932."),
            (FACT, "The queen opened the harbour bridge in 1957."),
            (FACT, "The river floods every spring."),
        ]
    )
    assert rows[0, 0] > 0.5 > max(rows[1, 0], rows[2, 0])
    assert rows.shape == (3, 3)
    assert np.allclose(rows.sum(axis=1), 1)


def test_finds_a_fact_at_the_end_of_a_long_premise(model: EmbeddedEntailer) -> None:
    statement = "The queen opened the harbour bridge in 1932."
    with_fact, without = model.scores([(FILLER * 12 + FACT, statement), (FILLER * 12, statement)])
    assert with_fact[0] > 0.5 > without[0]


def test_order_and_company_do_not_change_a_result(model: EmbeddedEntailer) -> None:
    pairs = [
        (FILLER * n + FACT, f"The bridge was opened {'very ' * (n % 3)}long ago.")
        for n in (0, 7, 2, 11, 1)
    ]
    together = model.scores(pairs)
    alone = np.concatenate([model.scores([pair]) for pair in pairs])
    backwards = model.scores(pairs[::-1])[::-1]
    assert np.array_equal(together, alone)
    assert np.array_equal(together, backwards)


def test_nothing_in_nothing_out(model: EmbeddedEntailer, vectors: EmbeddedEmbedder) -> None:
    assert model.scores([]).shape == (0, 3)
    assert vectors.vectors([]).shape == (0, 384)
    assert np.isfinite(model.scores([("", ""), ("", FACT), (FACT, "")])).all()


LONG_TEXTS = {
    "json": json.dumps([{"id": n, "url": f"https://a.example/{n:x}?q={n}"} for n in range(24)]),
    "links": " ".join(f"https://a.example/a-{n}/b_{n}.html#c{n}" for n in range(30)),
    "unspaced": "春の朝に港の橋が開かれた。" * 50,
    "one word": "bridge" * 600,
}


@pytest.mark.parametrize("kind", LONG_TEXTS)
def test_no_text_is_too_long(model: EmbeddedEntailer, kind: str) -> None:
    text = LONG_TEXTS[kind]
    rows = model.scores([(text, FACT), (FACT, text), (FACT, FACT)])
    assert np.allclose(rows.sum(axis=1), 1)
    assert rows[2, 0] > 0.5
    for parts in cut_pairs(model._encoder.tokenizer, [(text, FACT), (text, text)], 80, 50):
        assert max(len(tokens.ids) for part in parts for tokens in part) <= MAX_TOKENS


def test_pieces_of_a_window_hold_all_its_tokens(model: EmbeddedEntailer) -> None:
    tokenizer = model._encoder.tokenizer
    text = LONG_TEXTS["unspaced"]
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    ((windows_read,),) = cut_pairs(tokenizer, [(text, FACT)], 80, 50)
    seen: list[int] = []
    for place, tokens in enumerate(windows_read):
        piece = tokens.ids[1 : tokens.ids.index(102)]
        assert piece == ids[place * 80 : place * 80 + 128]
        seen = seen[: place * 80] + piece
    assert seen == ids


def test_pairs_are_encoded_as_the_tokenizer_encodes_them(model: EmbeddedEntailer) -> None:
    tokenizer = model._encoder.tokenizer
    (((tokens,),),) = cut_pairs(tokenizer, [(FACT, "It was opened in 1932, they say.")], 80, 50)
    whole = tokenizer.encode(FACT, "It was opened in 1932, they say.")
    assert tokens.ids == whole.ids
    assert [min(kind, 1) for kind in tokens.kinds] == whole.type_ids


def test_the_weakest_part_of_a_long_statement_counts(model: EmbeddedEntailer) -> None:
    good = "The queen opened the harbour bridge in 1932. " * 40
    assert model.scores([(FACT, good)])[0, 0] > 0.5
    assert (
        model.scores([(FACT, good + "The river floods the valley every spring. " * 30)])[0, 0] < 0.5
    )


def test_are_of_their_protocols(model: EmbeddedEntailer, vectors: EmbeddedEmbedder) -> None:
    assert isinstance(model, Entailer)
    assert isinstance(vectors, Embedder)
    assert model.name == vectors.name == f"embedded:{encoding.read_card()['version']}"


def test_vectors_are_unit_and_know_subjects(vectors: EmbeddedEmbedder) -> None:
    found = vectors.vectors(["A dog runs.", "A puppy is running.", "Interest rates rose."])
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert found[0] @ found[1] > 0.5 > found[0] @ found[2]


def test_texts_that_the_tokenizer_takes_for_the_same_are_computed_once(
    vectors: EmbeddedEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["Who built it?", "Who\x05 built it?\x1f", "Where is it?", "who built it? \n"]
    alone = [vectors.vectors([text])[0] for text in texts]
    ran: list[int] = []
    run = vectors._encoder.run

    def counted(tokens: Sequence[encoding.EncodedText]) -> Any:
        ran.append(len(tokens))
        return run(tokens)

    monkeypatch.setattr(vectors._encoder, "run", counted)
    assert (vectors.vectors(texts) == np.stack(alone)).all()
    assert ran == [2]


def test_a_long_text_is_read_to_its_end(vectors: EmbeddedEmbedder) -> None:
    """Beyond 256 tokens the original cuts; here the end still moves the vector."""
    start = "The committee discussed the budget of the library. " * 40
    plain, other = vectors.vectors([start, start + "Sharks hunt seals near the coast. " * 40])
    assert plain @ other < 0.95


def test_a_text_of_one_piece_is_its_piece(vectors: EmbeddedEmbedder) -> None:
    words = "word " * 254
    one, two = vectors.vectors([words, words + "tail"])
    assert np.array_equal(one, vectors.vectors([words])[0])
    assert one @ two < 1 - 1e-5


def test_uris() -> None:
    assert isinstance(entailer("embedded"), EmbeddedEntailer)
    version = encoding.read_card()["version"]
    assert isinstance(entailer(f"embedded:{version}?threads=1"), EmbeddedEntailer)
    assert isinstance(embedder("embedded?threads=1"), EmbeddedEmbedder)
    with pytest.raises(
        BackendError, match=r"embedded:99 is not installed; this trustassay has embedded:\d"
    ):
        entailer("embedded:99")
    with pytest.raises(UnknownNameError, match="threads"):
        entailer("embedded?thread=1")
    with pytest.raises(UnknownNameError, match="cannot be 'many'"):
        entailer("embedded?threads=many")
    with pytest.raises(UnknownNameError, match="embedded"):
        embedder("embeded")


def test_damaged_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "weights"
    shutil.copytree(encoding.weights_folder(), folder)
    graph = (folder / "entailer.onnx").read_bytes()
    (folder / "entailer.onnx").write_bytes(graph[: len(graph) // 2])
    with pytest.raises(BackendError, match="cannot be loaded"):
        encoding.Encoder("entailer", folder, 1)


def test_wrong_label_order_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph whose first output means contradiction must not pass for an entailer."""
    run = encoding.Encoder.run
    monkeypatch.setattr(encoding.Encoder, "run", lambda self, tokens: run(self, tokens)[:, ::-1])
    with pytest.raises(BackendError, match="labels look wrong"):
        EmbeddedEntailer(threads=1)


def test_checksums_are_those_of_the_files() -> None:
    import hashlib

    for name, digest in encoding.read_card()["sha256"].items():
        content = (encoding.weights_folder() / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest, name


def test_files_stay_below_40_megabytes() -> None:
    sizes = [path.stat().st_size for path in encoding.weights_folder().iterdir()]
    assert sum(sizes) < 40_000_000


def test_nothing_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, trustassay, trustassay.api\n"
        "trustassay.entailer('lexical')\n"
        "print([m for m in ('onnxruntime', 'tokenizers', 'torch') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(out.stdout.replace("'", '"')) == []


@settings(max_examples=200, deadline=None)
@given(st.text(), st.integers(1, 60), st.integers(1, 40))
def test_windows_hold_every_word_in_order(premise: str, size: int, step: int) -> None:
    found = cut_windows(premise, size, step)
    assert found
    held = [word for window in found for word in window.split()]
    position = 0
    for word in premise.split():
        assert word in held[position:] or word in held
    for window in found:
        assert len(window.split()) <= 3 * (size + step) + 20 or len(found) == 1


def test_windows_of_whole_sentences_overlap() -> None:
    text = " ".join(f"Sentence {i} has six words." for i in range(12))  # 60 words
    found = cut_windows(text, size=15, step=10)
    assert all(window.startswith("Sentence") and window.endswith("words.") for window in found)
    assert found[0].split()[1] == "0"
    assert "Sentence 11" in found[-1]
    for before, after in itertools.pairwise(found):
        assert before.split()[-5:] == after.split()[:5]


def test_title_stands_in_each_window() -> None:
    found = cut_windows("Title: Bridges\n" + FILLER * 6, size=45, step=30)
    assert len(found) > 2
    assert all(window.startswith("Title: Bridges\n") for window in found)


@pytest.mark.parametrize(
    ("premise", "statement", "copied"),
    [
        ("Town 1 lies on the river Arve. It has 2000 people.", "Town 1 lies on the river Arve", 1),
        ("* The shop  opens at nine\nIt closes at six.", "the shop opens at nine.", 1),
        ("It rained. The match was off. We went home.", "It rained. We went home.", 1),
        ("Anna said the shop opens at nine.", "The shop opens at nine.", 0),
        ("Does the shop open at nine?", "Does the shop open at nine", 0),
        ("The shop opens at nine.", "The shop opens at nine. It is large.", 0),
        ("Yes\nNo", "Yes", 0),
        ("The shop opens at nine.", "", 0),
    ],
)
def test_whole_sentences_are_copied(premise: str, statement: str, copied: int) -> None:
    assert is_copied(premise, statement) == bool(copied)


def test_a_copied_sentence_is_entailed(model: EmbeddedEntailer) -> None:
    premise = "Town 1 lies on the river Arve. It has 2000 people."
    rows = model.scores([(premise, "Town 1 lies on the river Arve."), (premise, premise)])
    assert rows[:, 0].min() >= 0.98
    assert np.allclose(rows.sum(axis=1), 1)


def test_encoder_features_by_hand() -> None:
    """Two windows; the second speaks more for entailment: 2 - ln(e^0 + e^0) = 2 - ln 2."""
    found = compute_encoder_features(np.array([[0.0, 0.0, 3.0], [2.0, 0.0, 0.0]]))
    assert found["entailment"] == pytest.approx(2 - np.log(2))
    total = np.e**2 + 2
    assert found["contradiction"] == pytest.approx(1 / total)
    assert found["contradiction_odds"] == 0


def test_inputs_by_hand() -> None:
    """Of the hypothesis's three content words the premise holds two; even logits: a third each."""
    premise, hypothesis = "The opera was written in Vienna.", "The opera was written by Weiss."
    one = compute_features(np.zeros((1, 3)), premise, hypothesis)
    assert one["containment"] == pytest.approx(2 / 3)
    assert one["containment_unless_contradicted"] == pytest.approx(2 / 3 * 2 / 3)
    assert one["several_windows"] == one["containment_across"] == 0
    several = compute_features(np.zeros((2, 3)), premise, hypothesis)
    assert several["several_windows"] == 1
    assert several["containment_across"] == pytest.approx(2 / 3)
    assert (
        compute_features(np.zeros((1, 3)), premise, "It was not written.")["negation_differs"] == 1
    )


# ---- vectors of tokens ----

TOKEN_TEXTS = ["The lamp is red.", "Nobody bought it, unsurprisingly.", ""]
LONG_TEXT = " ".join(f"lamp {number}" for number in range(300))


def test_their_mean_is_the_direction_of_the_texts_vector() -> None:
    tokens, vectors = EmbeddedTokenEmbedder().token_vectors(TOKEN_TEXTS), EmbeddedEmbedder()
    for one, whole in zip(tokens, vectors.vectors(TOKEN_TEXTS), strict=True):
        assert one.vectors.shape == (len(one.tokens), 384)
        mean = one.vectors.mean(axis=0)
        np.testing.assert_allclose(mean / np.linalg.norm(mean), whole, atol=1e-6)


def test_tokens_are_the_texts_own_between_two_special_ones() -> None:
    [one, _, empty] = load("token embedder", "embedded").token_vectors(TOKEN_TEXTS)
    assert one.tokens == ("[CLS]", "the", "lamp", "is", "red", ".", "[SEP]")
    assert one.special == (0, 6)
    assert (empty.tokens, empty.special) == (("[CLS]", "[SEP]"), (0, 1))


def test_neighbours_change_nothing() -> None:
    embedder = EmbeddedTokenEmbedder(threads=2)
    for text, one in zip(
        TOKEN_TEXTS, embedder.token_vectors([*TOKEN_TEXTS, LONG_TEXT]), strict=False
    ):
        assert (embedder.token_vectors([text])[0].vectors == one.vectors).all()


def test_a_long_text_is_read_in_pieces_and_whole() -> None:
    [long] = EmbeddedTokenEmbedder().token_vectors([LONG_TEXT])
    assert len(long.tokens) == len(long.vectors) > 600
    assert long.special == (0, len(long.tokens) - 1)
    [start] = EmbeddedTokenEmbedder().token_vectors([" ".join(long.tokens[1:255])])
    assert start.tokens[1:-1] == long.tokens[1:255]
    np.testing.assert_array_equal(start.vectors[:255], long.vectors[:255])
