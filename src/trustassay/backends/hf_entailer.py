"""Entailment by a model of the Hugging Face hub, or of a folder in its layout, run on this machine.

There are two kinds, distinguished by the model's config:

* Sequence classification (``...ForSequenceClassification``), the usual NLI models. A pair longer
  than the model reads is never cut: the premise is read in overlapping windows, each with the
  whole hypothesis, and the window with the highest P(entailment) decides. So a fact is found
  anywhere, and support in one window outweighs a contradiction in another.
* Encoder-decoder models of the TRUE kind (Honovich et al. 2022, google/t5_xxl_true_nli_mixture):
  asked ``premise: P hypothesis: H`` they write "1" or "0". P(entailment) is P("1") against P("0"),
  the rest is neutral. Their positions are relative, so a pair of any length is read in one piece.

Only safetensors weights are read, and a model's own code is never run. torch and transformers are
imported when the first model is loaded.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from trustassay.backends import hf_loading
from trustassay.backends.functions import check_labels
from trustassay.backends.hf_loading import Features
from trustassay.core.capabilities import Probabilities
from trustassay.errors import BackendError

_COLUMN_OF_LABEL = {"entail": 0, "neutral": 1, "notentail": 1, "nonentail": 1, "contradict": 2}

Pairs = Sequence[tuple[str, str]]


class HuggingFaceEntailer(hf_loading.HubModel):
    """Judges pairs with a local model; built for ``hf:ID-or-path[?option=value&...]``."""

    stored = True

    def __init__(
        self,
        model: str,
        *,
        check: bool = True,
        labels: Sequence[str] | None = None,
        batch_tokens: int = 8192,
        **place: Any,
    ) -> None:
        """Load a model; raises :class:`BackendError`, with a message of one line, if that fails.

        Args:
            model: ID on the hub, or folder.
            check: refuse a model whose answers to :data:`CHECK_PAIRS` contradict its labels, or
                whose files lack weights.
            labels: names of the outputs in their order, if the config does not name them.
            batch_tokens: as of :class:`HubModel`.
            place: the other options of :class:`HubModel`.
        """
        super().__init__(batch_tokens=batch_tokens, **place)
        labels = labels.split(",") if isinstance(labels, str) else labels
        joined = ",".join(labels) if labels else None
        self.name = hf_loading.build_uri(model, labels=joined, dtype=self._dtype)
        with hf_loading.errors_in_one_line(self.name, Exception):
            self._kind = _load_kind(model, self._device, self._dtype, labels, check)
        if check:
            advice = "; name its labels in order with ?labels=..., or skip this test with ?check=no"
            check_labels(self, labels=len(self._kind.columns), advice=advice)

    def scores(self, pairs: Pairs) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis).

        Rows sum to 1 and are in the order of the pairs; no pairs give shape (0, 3). May be called
        from several threads.

        Raises:
            BackendError: a hypothesis leaves too little room for its premise, or the model fails.
        """
        if not pairs:
            return np.zeros((0, 3))
        with self._lock, hf_loading.errors_in_one_line(self.name, RuntimeError):
            inputs, owners = self._kind.encode(pairs)
            rows = compute_probabilities(self._compute_logits(inputs), self._kind.columns)
            return select_best_windows(rows, owners)

    def _compute_logits(self, inputs: Sequence[Features]) -> Probabilities:
        """Return the logits, shape (n, k), of n inputs, run in batches of similar length."""
        torch, _ = hf_loading.import_libraries()
        device = self._kind.model.device
        rows = np.empty((len(inputs), len(self._kind.columns)))
        with torch.inference_mode():
            for batch in hf_loading.split_in_batches(
                [len(features["input_ids"]) for features in inputs], self._batch_tokens
            ):
                tensors = hf_loading.pad_inputs(
                    [inputs[i] for i in batch], self._kind.tokenizer, device
                )
                rows[batch] = self._kind.logits(tensors).float().cpu().numpy()
        if not np.isfinite(rows).all():
            raise BackendError("the model's outputs are not finite numbers; try ?dtype=float32")
        return rows


class _Classifier:
    """A model for sequence classification; output j is column ``columns[j]`` of the result."""

    def __init__(self, model: Any, tokenizer: Any, labels: Sequence[str] | None) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.columns = find_label_columns(labels or _config_labels(model.config))
        # ?labels= may have named more or fewer than the model has.
        if len(self.columns) != model.config.num_labels:
            outputs = model.config.num_labels
            raise BackendError(
                f"expected {outputs} labels, one for each output, got {len(self.columns)}"
            )
        self.limit = hf_loading.find_max_input_tokens(model, tokenizer)
        # Asked for, as transformers 5 leaves them out for some models that were trained with them.
        types = getattr(model.config, "type_vocab_size", 0)
        self.segments = types > 1 or model.config.model_type == "xlnet"

    def encode(self, pairs: Pairs) -> tuple[list[Features], list[int]]:
        """Return the model's inputs and, for each, the index of the pair that it belongs to."""
        encoded = self._tokenise([p for p, _ in pairs], [h for _, h in pairs])
        inputs: list[Features] = []
        owners: list[int] = []
        for owner, pair in enumerate(pairs):
            encoded_pair = {key: encoded[key][owner] for key in encoded}
            fits = self.limit is None or len(encoded_pair["input_ids"]) <= self.limit
            parts = [encoded_pair] if fits else self._build_windows(encoded_pair, *pair)
            inputs += parts
            owners += [owner] * len(parts)
        return inputs, owners

    def _build_windows(
        self, encoded_pair: Features, premise: str, hypothesis: str
    ) -> list[Features]:
        """Return an encoded pair once for each window of its premise, with only that window.

        This is done on tokens, so that it is the same for fast and slow tokenizers of any version.
        """
        assert self.limit is not None
        ids = encoded_pair["input_ids"]
        premise_ids = self._tokenise([premise], add_special_tokens=False)["input_ids"][0]
        hypothesis_ids = self._tokenise([hypothesis], add_special_tokens=False)["input_ids"][0]
        # What special tokens leave for premise and hypothesis.
        available = self.limit - (len(ids) - len(premise_ids) - len(hypothesis_ids))
        room = available - len(hypothesis_ids)
        # With less than a quarter, windows would be too small to hold a fact.
        if 4 * room < available:
            raise BackendError(
                f"a hypothesis of {len(hypothesis_ids)} tokens is too long: it leaves "
                f"{max(room, 0)} of the model's {self.limit} tokens for the premise "
                f"({len(premise_ids)} tokens), which needs at least a quarter"
            )
        # The premise follows a few special tokens.
        begin = next((i for i in range(8) if ids[i : i + len(premise_ids)] == premise_ids), None)
        if begin is None:
            raise BackendError(
                "its tokenizer encodes a premise in a pair differently, so long premises cannot "
                "be split"
            )
        end = begin + len(premise_ids)
        return [
            {
                k: row[:begin] + row[begin + a : begin + b] + row[end:]
                for k, row in encoded_pair.items()
            }
            for a, b in compute_windows(len(premise_ids), room)
        ]

    def logits(self, batch: Any) -> Any:
        """Return a tensor (b, k) for a padded batch of b inputs."""
        return self.model(**batch).logits

    def _tokenise(self, *texts: list[str], add_special_tokens: bool = True) -> Any:
        """Return the encoding of texts, or of pairs of texts."""
        return self.tokenizer(
            *texts,
            add_special_tokens=add_special_tokens,
            return_token_type_ids=self.segments,
            verbose=False,
        )


class _OneOrZero:
    """An encoder-decoder model that writes "1" or "0", with the same methods."""

    columns = (0, 1)

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        # With the end token, so that the labels differ even where one begins like the other.
        one_ids, zero_ids = (tokenizer(label)["input_ids"] for label in ("1", "0"))
        # Some tokenizers put the same token, such as a space, before both.
        differ = [i for i, (a, b) in enumerate(zip(one_ids, zero_ids, strict=False)) if a != b]
        start = model.config.decoder_start_token_id
        if not differ or start is None:
            raise BackendError('this encoder-decoder model cannot answer with "1" or "0"')
        self.prefix = [start, *one_ids[: differ[0]]]
        self.choices = [one_ids[differ[0]], zero_ids[differ[0]]]

    def encode(self, pairs: Pairs) -> tuple[list[Features], list[int]]:
        """Return the model's inputs, one for each pair, and the indices of the pairs."""
        texts = [f"premise: {premise} hypothesis: {hypothesis}" for premise, hypothesis in pairs]
        encoded = self.tokenizer(texts, return_token_type_ids=False, verbose=False)
        inputs = [{key: encoded[key][i] for key in encoded} for i in range(len(texts))]
        return inputs, list(range(len(texts)))

    def logits(self, batch: Any) -> Any:
        """Return the logits of "1" and "0", a tensor (b, 2)."""
        prefix = batch["input_ids"].new_tensor([self.prefix] * len(batch["input_ids"]))
        return self.model(**batch, decoder_input_ids=prefix).logits[:, -1, self.choices]


def _load_kind(
    name: str, device: str | None, dtype: str | None, labels: Sequence[str] | None, check: bool
) -> _Classifier | _OneOrZero:
    """Load an entailment model and choose its kind."""
    _, transformers = hf_loading.import_libraries()
    folder, config = hf_loading.load_config(name)
    classifies = any(
        "ForSequenceClassification" in architecture for architecture in config.architectures or ()
    )
    # An encoder-decoder model can also have a classification head, which then counts.
    if classifies or not config.is_encoder_decoder:
        auto = transformers.AutoModelForSequenceClassification
        return _Classifier(*hf_loading.load(folder, auto, device, dtype, check), labels)
    if labels:
        raise BackendError("labels= is for classifiers; this model generates its verdict as text")
    return _OneOrZero(
        *hf_loading.load(folder, transformers.AutoModelForSeq2SeqLM, device, dtype, check)
    )


def _config_labels(config: Any) -> list[str]:
    """Return the names of the outputs, from id2label or, if that has none, from label2id."""
    names = [str(config.id2label[i]) for i in sorted(config.id2label)]
    if all(name.startswith("LABEL_") for name in names) and config.label2id:
        return sorted(config.label2id, key=config.label2id.__getitem__)
    return names


def find_label_columns(labels: Sequence[str]) -> tuple[int, ...]:
    """Return the column of each label: 0 entailment, 1 neutral or not entailed, 2 contradiction.

    Case and punctuation do not matter.

    Raises:
        BackendError: unless the labels are two or three, all known, all different, and one of them
            is entailment.
    """
    plain = [re.sub(r"[^a-z]", "", label.lower()) for label in labels]
    # By their beginnings: "not_entailment" does not start with "entail".
    columns = [
        c for name in plain for start, c in _COLUMN_OF_LABEL.items() if name.startswith(start)
    ]
    distinct = len(columns) == len(set(columns)) == len(labels)
    if not distinct or len(labels) < 2 or 0 not in columns:
        raise BackendError(
            f"its labels {', '.join(labels)} are unclear; name their meanings in the same order "
            "with ?labels=entailment,neutral,contradiction or ?labels=entailment,not_entailment"
        )
    return tuple(columns)


def compute_probabilities(logits: Probabilities, columns: Sequence[int]) -> Probabilities:
    """Return the softmax of logits (n, k) as (n, 3), output j in column ``columns[j]``, else 0."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    result = np.zeros((len(logits), 3))
    result[:, list(columns)] = powers / powers.sum(axis=1, keepdims=True)
    return result


def select_best_windows(rows: Probabilities, owners: Sequence[int]) -> Probabilities:
    """Return for each owner, in order, its row with the highest P(entailment); ties: the first."""
    # Sorted by owner, then by falling P(entailment): the first row of each owner is its best.
    order = np.lexsort((-rows[:, 0], np.asarray(owners)))
    _, first = np.unique(np.asarray(owners)[order], return_index=True)
    best: Probabilities = rows[order][first]
    return best


def compute_windows(length: int, room: int) -> list[tuple[int, int]]:
    """Return the (start, end) of windows of ``room`` tokens over ``length`` > ``room`` tokens.

    They overlap by a quarter; the last one overlaps as much as it takes to have the full length.
    """
    last = length - room
    return [(start, start + room) for start in (*range(0, last, room - room // 4), last)]
