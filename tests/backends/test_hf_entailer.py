"""Tests of the Hugging Face backend on tiny real models, trained when the tests begin."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lazily import Lazily, needed
from trustassay.backends import hf_entailer, hf_loading
from trustassay.backends.functions import CHECK_PAIRS
from trustassay.backends.hf_entailer import HuggingFaceEntailer
from trustassay.core.capabilities import Entailer
from trustassay.errors import BackendError

_HF = "needs torch and transformers: pip install '.[hf]'"
torch, transformers = needed("torch", _HF), needed("transformers", _HF)
safetensors = Lazily("safetensors.torch")

from tests.tiny_models import (  # noqa: E402
    HYPOTHESIS,
    NLI,
    NONE,
    RED,
    copy_with,
    filler,
    names,
    pickled,
    train_nli,
    train_true,
    with_slow_tokenizer,
)

pytestmark = [pytest.mark.torch, pytest.mark.slow]

LIMIT = 48  # tokens that the tiny classifiers read


@pytest.fixture(scope="session")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_nli(tmp_path_factory.mktemp("models") / "nli", max_length=LIMIT)


@pytest.fixture(scope="session")
def entailer(nli: Path) -> HuggingFaceEntailer:
    return HuggingFaceEntailer(str(nli))


@pytest.fixture(scope="session")
def true_nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_true(tmp_path_factory.mktemp("models") / "true")


@pytest.fixture(scope="session")
def true_nli_pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_true(tmp_path_factory.mktemp("models") / "pieces", shared_prefix=True, longest=8)


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    """Pairs of mixed lengths, from no word to several windows."""
    rng = random.Random(3)
    lengths = (0, 90, 5, 33, 200, 1, 60, 12)
    facts = (RED, NONE, "", RED, NONE, RED, "", NONE)
    mixed = [
        (f"{filler(n, rng)} {fact}".strip(), HYPOTHESIS)
        for n, fact in zip(lengths, facts, strict=True)
    ]
    return [*mixed, *CHECK_PAIRS, ("", ""), ("", HYPOTHESIS), (RED, "")]


def changed(
    path: Path, source: Path, change: Callable[[dict[str, Any]], Any], **config: Any
) -> Path:
    """Save a copy of a model with other weights."""
    copy_with(source, path, **config)
    weights = safetensors.load_file(path / "model.safetensors")
    change(weights)
    safetensors.save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    return path


# ---------------------------------------------------------------------------------------- loading


def test_import_is_light() -> None:
    code = (
        "import sys, trustassay.backends.hf_entailer; "
        "print([m for m in ('torch', 'transformers', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("library", ["torch", "transformers"])
def test_missing_library(library: str, nli: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BackendError, match=rf"{library} is missing: pip install '\.\[hf\]'"):
        HuggingFaceEntailer(str(nli))


def test_is_an_entailer(entailer: HuggingFaceEntailer, nli: Path) -> None:
    assert isinstance(entailer, Entailer)
    assert entailer.name == f"hf:{nli}"
    assert entailer.stored
    assert entailer.limits.tokens == 8192


def test_missing_folder_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(BackendError, match=rf"^hf:{gone}: there is no such folder$"):
        HuggingFaceEntailer(str(gone))


def test_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=rf"^hf:{tmp_path}: .+") as raised:
        HuggingFaceEntailer(str(tmp_path))
    assert "\n" not in str(raised.value)


def test_damaged_weights(nli: Path, tmp_path: Path) -> None:
    path = copy_with(nli, tmp_path / "model")
    (path / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(BackendError, match=rf"^hf:{path}: .+"):
        HuggingFaceEntailer(str(path))


@pytest.mark.parametrize("check", [True, False])
def test_pickled_weights_are_refused(nli: Path, tmp_path: Path, check: bool) -> None:
    path = pickled(nli, tmp_path / "model")
    with pytest.raises(BackendError, match=r"no safetensors weights, and pickled ones"):
        HuggingFaceEntailer(str(path), check=check)


def test_remote_code_is_refused(nli: Path, tmp_path: Path) -> None:
    code = "raise SystemExit('ran the code of a model')"
    own = {"AutoConfig": "own.OwnConfig", "AutoModelForSequenceClassification": "own.OwnModel"}
    path = copy_with(nli, tmp_path / "model", model_type="own", auto_map=own)
    (path / "own.py").write_text(code)
    with pytest.raises(
        BackendError, match="needs code from its repository, which trustassay does not run"
    ):
        HuggingFaceEntailer(str(path))


def test_untrained_head_is_refused(nli: Path, tmp_path: Path) -> None:
    path = changed(tmp_path / "model", nli, lambda weights: weights.pop("classifier.weight"))
    with pytest.raises(BackendError, match=r"lack weights .* \['classifier\.weight'\]"):
        HuggingFaceEntailer(str(path))
    assert HuggingFaceEntailer(str(path), check=False).scores(CHECK_PAIRS).shape == (3, 3)


@pytest.mark.parametrize("options", [{"dtype": "int8"}, {"device": "abacus"}])
def test_unknown_options(nli: Path, options: dict[str, Any]) -> None:
    with pytest.raises(BackendError, match=r"int8 is unknown|abacus"):
        HuggingFaceEntailer(str(nli), **options)


def test_dtype_and_device(nli: Path, entailer: HuggingFaceEntailer) -> None:
    half = HuggingFaceEntailer(str(nli), dtype="bfloat16", device="cpu")
    assert half.name == f"hf:{nli}?dtype=bfloat16"
    np.testing.assert_allclose(
        half.scores(CHECK_PAIRS), entailer.scores(CHECK_PAIRS), rtol=0, atol=0.03
    )


def test_dropout_is_off(nli: Path, entailer: HuggingFaceEntailer, tmp_path: Path) -> None:
    path = copy_with(nli, tmp_path / "model", hidden_dropout_prob=0.5)
    got = HuggingFaceEntailer(str(path)).scores(CHECK_PAIRS)
    np.testing.assert_array_equal(got, entailer.scores(CHECK_PAIRS))


def test_errors_are_one_line_without_tokens() -> None:
    with (
        pytest.raises(BackendError, match=r"^hf:x: denied for hf_\*\*\*$"),
        hf_loading.errors_in_one_line("hf:x", Exception),
    ):
        raise OSError("\ndenied for hf_AbCdEfGhIjKl\nmore lines")


# ----------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("order", [(2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_label_order_is_read(
    nli: Path, entailer: HuggingFaceEntailer, order: Sequence[int], tmp_path: Path
) -> None:
    spelled = ("ENTAILMENT", "Neutral", "contradict")
    path = copy_with(nli, tmp_path / "model", order, **names([spelled[i] for i in order]))
    got = HuggingFaceEntailer(str(path)).scores(CHECK_PAIRS)
    np.testing.assert_allclose(got, entailer.scores(CHECK_PAIRS), rtol=0, atol=1e-6)


def test_label_order_from_label2id(
    nli: Path, entailer: HuggingFaceEntailer, tmp_path: Path
) -> None:
    half_named = names(NLI) | {"id2label": {str(i): f"LABEL_{i}" for i in range(3)}}
    got = HuggingFaceEntailer(str(copy_with(nli, tmp_path / "model", **half_named)))
    np.testing.assert_array_equal(got.scores(CHECK_PAIRS), entailer.scores(CHECK_PAIRS))


@pytest.mark.parametrize(
    ("wrong", "label"), [((2, 1, 0), "entailment"), ((0, 2, 1), "contradiction")]
)
def test_wrong_labels_are_noticed(
    nli: Path,
    entailer: HuggingFaceEntailer,
    wrong: Sequence[int],
    label: str,
    tmp_path: Path,
) -> None:
    path = copy_with(nli, tmp_path / "model", **names([NLI[i] for i in wrong]))
    with pytest.raises(BackendError, match=rf"P\({label}\) of an entailed.*0\.\d.*\?check=no"):
        HuggingFaceEntailer(str(path))
    anyway = HuggingFaceEntailer(str(path), check=False)
    np.testing.assert_allclose(
        anyway.scores(CHECK_PAIRS)[:, wrong], entailer.scores(CHECK_PAIRS), rtol=0, atol=1e-6
    )
    assert HuggingFaceEntailer(str(path), labels=NLI).name.endswith("?labels=" + ",".join(NLI))


def test_constant_model_fails_the_check(nli: Path, tmp_path: Path) -> None:
    path = changed(tmp_path / "model", nli, lambda weights: weights["classifier.weight"].zero_())
    with pytest.raises(BackendError, match="labels look wrong"):
        HuggingFaceEntailer(str(path))


def test_unnamed_labels(nli: Path, entailer: HuggingFaceEntailer, tmp_path: Path) -> None:
    unnamed = names(["LABEL_0", "LABEL_1", "LABEL_2"])
    path = str(copy_with(nli, tmp_path / "model", **unnamed))
    with pytest.raises(BackendError, match=r"LABEL_0.*\?labels=entailment,neutral,contradiction"):
        HuggingFaceEntailer(path, check=False)
    with pytest.raises(BackendError, match="expected 3 labels, one for each output, got 2"):
        HuggingFaceEntailer(path, labels=("entailment", "not_entailment"))
    for labels in (NLI, ",".join(NLI)):
        named = HuggingFaceEntailer(path, labels=labels)
        np.testing.assert_array_equal(named.scores(CHECK_PAIRS), entailer.scores(CHECK_PAIRS))


def test_two_labels(tmp_path: Path) -> None:
    labels = ("not_entailment", "entailment")
    path = train_nli(tmp_path / "model", labels=labels, max_length=LIMIT)
    rows = HuggingFaceEntailer(str(path)).scores([*CHECK_PAIRS, (RED, HYPOTHESIS)])
    assert (rows[:, 0] > 0.9).tolist() == [True, False, False, True]
    assert not rows[:, 2].any()
    np.testing.assert_allclose(rows.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("labels", "columns"),
    [
        (("Entailment", "NEUTRAL", "contradict"), (0, 1, 2)),
        (("not entailment", "entails"), (1, 0)),
        (("Non-Entailment", "ENTAILMENT"), (1, 0)),
        (("contradiction", "entailment"), (2, 0)),
    ],
)
def test_label_columns(labels: Sequence[str], columns: tuple[int, ...]) -> None:
    assert hf_entailer.find_label_columns(labels) == columns


@pytest.mark.parametrize(
    "labels",
    [
        ("entailment",),
        ("neutral", "contradiction"),
        ("entailment", "entailment", "neutral"),
        ("entailment", "neutral", "not_entailment"),
        ("entailment", "positive", "negative"),
        ("LABEL_0", "LABEL_1"),
    ],
)
def test_label_columns_refused(labels: Sequence[str]) -> None:
    with pytest.raises(BackendError, match=r"are unclear; name their meanings"):
        hf_entailer.find_label_columns(labels)


# ----------------------------------------------------------------------------------------- scores


def test_no_pairs(entailer: HuggingFaceEntailer) -> None:
    rows = entailer.scores([])
    assert rows.shape == (0, 3)
    assert rows.dtype == np.float64


@pytest.mark.parametrize("kind", ["nli", "true_nli"])
@pytest.mark.parametrize("batch_tokens", [1, 200, 100_000])
def test_batches_equal_single_pairs_in_order(
    kind: str, batch_tokens: int, pairs: list[tuple[str, str]], request: pytest.FixtureRequest
) -> None:
    model = HuggingFaceEntailer(str(request.getfixturevalue(kind)), batch_tokens=batch_tokens)
    together = model.scores(pairs)
    alone = np.concatenate([model.scores([pair]) for pair in pairs])
    assert together.dtype == np.float64
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)
    np.testing.assert_allclose(together.sum(axis=1), 1, rtol=0, atol=1e-12)
    backwards = model.scores(pairs[::-1])
    np.testing.assert_allclose(backwards[::-1], together, rtol=0, atol=1e-5)
    assert len(np.unique(together.round(6), axis=0)) > 5  # the rows can be told apart


def test_several_threads(entailer: HuggingFaceEntailer, pairs: list[tuple[str, str]]) -> None:
    expected = entailer.scores(pairs)
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(entailer.scores, [pairs] * 8):
            np.testing.assert_array_equal(got, expected)


def test_outputs_that_are_not_finite(nli: Path, tmp_path: Path) -> None:
    path = changed(tmp_path / "model", nli, lambda weights: weights["classifier.bias"].fill_(1e999))
    with pytest.raises(BackendError, match=rf"hf:{path}: .* not finite.*\?dtype=float32"):
        HuggingFaceEntailer(str(path))


def test_failure_of_the_model_is_told(
    entailer: HuggingFaceEntailer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(batch: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nDetails")

    monkeypatch.setattr(entailer._kind, "logits", fail)
    with pytest.raises(BackendError, match=r"out of memory.*try a smaller \?batch_tokens=$"):
        entailer.scores(CHECK_PAIRS)


# ------------------------------------------------------------------------------------ long pairs


@pytest.mark.parametrize("before", [0, 31, 60, 97, 149, 150])
def test_fact_is_found_wherever_it_stands(entailer: HuggingFaceEntailer, before: int) -> None:
    rng = random.Random(before)
    long = f"{filler(before, rng)} {RED} {filler(150 - before, rng)}"
    empty = filler(157, rng)
    found, short, without = entailer.scores(
        [(long, HYPOTHESIS), (RED, HYPOTHESIS), (empty, HYPOTHESIS)]
    )[:, 0]
    assert short > 0.9
    assert found == pytest.approx(short, abs=0.05)
    assert without < 0.1


def test_window_of_highest_entailment_speaks(entailer: HuggingFaceEntailer) -> None:
    rng = random.Random(0)
    both = f"{NONE} {filler(100, rng)} {RED}"
    no_support = f"{filler(100, rng)} {NONE} {filler(30, rng)}"
    rows = entailer.scores([(both, HYPOTHESIS), (no_support, HYPOTHESIS)])
    assert rows[0, 0] > 0.9
    assert rows[1, 0] < 0.1


def test_windows_hold_the_whole_pair(entailer: HuggingFaceEntailer, nli: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(nli)
    premise = filler(170, random.Random(1))
    inputs, owners = entailer._kind.encode([(RED, HYPOTHESIS), (premise, HYPOTHESIS)])
    own, other = (
        tokenizer(text, add_special_tokens=False)["input_ids"] for text in (premise, HYPOTHESIS)
    )
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    room = LIMIT - 3 - len(other)
    assert owners == [0] + [1] * (len(inputs) - 1)
    for one, (start, end) in zip(inputs[1:], hf_entailer.compute_windows(170, room), strict=True):
        assert one["input_ids"] == [cls, *own[start:end], sep, *other, sep]
        assert one["token_type_ids"] == [0] * (room + 2) + [1] * (len(other) + 1)
        assert one["attention_mask"] == [1] * LIMIT


@pytest.mark.parametrize("spare", [0, 1])
def test_longest_pair_without_a_window(entailer: HuggingFaceEntailer, spare: int) -> None:
    rng = random.Random(2)
    exact = filler(LIMIT - 3 - 6 - spare, rng)
    inputs, _ = entailer._kind.encode([(exact, HYPOTHESIS), (exact + " word1 word2", HYPOTHESIS)])
    assert [len(one["input_ids"]) for one in inputs] == [LIMIT - spare, LIMIT, LIMIT]


def test_hypothesis_too_long(entailer: HuggingFaceEntailer) -> None:
    rng = random.Random(4)
    premise = filler(100, rng)
    # 48 tokens less 3 special ones are 45; a quarter of them for the premise leaves 33.
    assert entailer.scores([(premise, filler(33, rng))]).shape == (1, 3)
    with pytest.raises(
        BackendError, match=r"of 34 tokens .* leaves 11 of the model's 48 .* \(100 tokens\)"
    ):
        entailer.scores([(premise, filler(34, rng))])
    with pytest.raises(BackendError, match=r"of 300 tokens .* leaves 0 of the model's 48"):
        entailer.scores([(premise, filler(300, rng))])
    # Where nothing has to be cut there is nothing to refuse.
    assert entailer.scores([(RED, filler(36, rng))]).shape == (1, 3)


def test_slow_tokenizer(
    nli: Path, entailer: HuggingFaceEntailer, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    pytest.importorskip("transformers.models.bert.tokenization_bert_legacy")
    slow = HuggingFaceEntailer(str(with_slow_tokenizer(nli, tmp_path / "model")))
    assert not slow._kind.tokenizer.is_fast
    np.testing.assert_allclose(slow.scores(pairs), entailer.scores(pairs), rtol=0, atol=1e-5)


@pytest.mark.parametrize("architecture", ["roberta", "bart"])
def test_limit_of_other_architectures(architecture: str, tmp_path: Path) -> None:
    path = train_nli(tmp_path / "model", architecture=architecture, steps=0, max_length=LIMIT)
    model = HuggingFaceEntailer(str(path), check=False)
    inputs, _ = model._kind.encode([(filler(200, random.Random(5)), HYPOTHESIS)])
    assert {len(one["input_ids"]) for one in inputs} == {LIMIT}
    rows = model.scores([(filler(n, random.Random(n)), HYPOTHESIS) for n in (39, 40, 200)])
    np.testing.assert_allclose(rows.sum(axis=1), 1)


@given(st.integers(1, 60), st.integers(1, 300))
def test_windows_cover_everything(room: int, more: int) -> None:
    length = room + more
    found = hf_entailer.compute_windows(length, room)
    assert found[0][0] == 0
    assert found[-1][1] == length
    assert all(end - start == room for start, end in found)
    for (start, end), (after, _) in pairwise(found):
        assert start < after
        assert end - after >= room // 4


@given(st.lists(st.integers(1, 50), min_size=1), st.integers(1, 200))
def test_batches_are_within_the_budget(lengths: list[int], tokens: int) -> None:
    found = [batch.tolist() for batch in hf_loading.split_in_batches(lengths, tokens)]
    assert sorted(i for batch in found for i in batch) == list(range(len(lengths)))
    assert all(len(b) == 1 or len(b) * max(lengths[i] for i in b) <= tokens for b in found)


def test_best_windows_by_hand() -> None:
    rows = np.array([[0.1, 0.9, 0], [0.5, 0.5, 0], [0.7, 0.3, 0], [0.7, 0.1, 0.2], [0.2, 0, 0.8]])
    np.testing.assert_array_equal(
        hf_entailer.select_best_windows(rows, [0, 0, 1, 1, 2]),
        [[0.5, 0.5, 0], [0.7, 0.3, 0], [0.2, 0, 0.8]],
    )


def test_probabilities_by_hand() -> None:
    # Powers 1 and 3 of 4; 1000 would overflow if the largest were not taken away.
    logits = np.array([[0.0, np.log(3)], [1000.0, 1000.0]])
    np.testing.assert_allclose(
        hf_entailer.compute_probabilities(logits, (1, 0)), [[0.75, 0.25, 0], [0.5, 0.5, 0]]
    )


# --------------------------------------------------------------------------------- the TRUE kind


@pytest.mark.parametrize("fixture", ["true_nli", "true_nli_pieces"])
def test_true_kind_against_the_raw_model(
    fixture: str, pairs: list[tuple[str, str]], request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(fixture)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    raw = transformers.T5ForConditionalGeneration.from_pretrained(path).eval()
    one, zero = (tokenizer(label)["input_ids"][:-1] for label in "10")
    shared = len(one) - 1
    assert shared == (1 if fixture == "true_nli_pieces" else 0)
    assert one[:shared] == zero[:shared]

    rows = HuggingFaceEntailer(str(path)).scores(pairs)
    for (premise, hypothesis), row in zip(pairs, rows, strict=True):
        text = f"premise: {premise} hypothesis: {hypothesis}"
        inputs = tokenizer(text, return_tensors="pt")
        begin = torch.tensor([[raw.config.decoder_start_token_id, *one[:shared]]])
        with torch.no_grad():
            logits = raw(**inputs, decoder_input_ids=begin).logits[0, -1].double().numpy()
            written = raw.generate(**inputs, do_sample=False, max_new_tokens=len(one))[0, 1:]
        odds = np.exp(logits[one[-1]] - logits[zero[-1]])
        assert row == pytest.approx([odds / (1 + odds), 1 / (1 + odds), 0], abs=1e-5)
        assert written.tolist() == (one if row[0] > 0.5 else zero)
    assert (rows[:, 0] > 0.5).any()
    assert (rows[:, 0] < 0.5).any()


def test_true_kind_reads_long_premises_whole(true_nli: Path) -> None:
    model = HuggingFaceEntailer(str(true_nli))
    rng = random.Random(6)
    inputs, _ = model._kind.encode([(filler(900, rng), filler(700, rng))])
    assert len(inputs) == 1
    assert len(inputs[0]["input_ids"]) > 1600
    far = model.scores([(f"{filler(60, rng)} {RED}", HYPOTHESIS), (filler(67, rng), HYPOTHESIS)])
    assert far[0, 0] > 0.5 > far[1, 0]


def test_true_kind_is_checked(tmp_path: Path) -> None:
    path = str(train_true(tmp_path / "model", steps=0))
    with pytest.raises(BackendError, match=r"P\(entailment\).*\?check=no"):
        HuggingFaceEntailer(path)
    assert HuggingFaceEntailer(path, check=False).scores(CHECK_PAIRS).shape == (3, 3)
    with pytest.raises(BackendError, match="labels= is for classifiers"):
        HuggingFaceEntailer(path, labels=NLI)


def test_true_kind_without_label_tokens(true_nli: Path, tmp_path: Path) -> None:
    path = copy_with(true_nli, tmp_path / "model")
    tokenizer = path / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace('"0":', '"x":').replace('"1":', '"y":'))
    with pytest.raises(BackendError, match='cannot answer with "1" or "0"'):
        HuggingFaceEntailer(str(path))
