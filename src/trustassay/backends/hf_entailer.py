"""Entailment by a model of the Hugging Face hub, or of a folder in its layout, run on this machine.

Two kinds are known, distinguished by the model's config:

* Sequence classification (``...ForSequenceClassification``), the usual NLI models. A pair longer
  than the model reads is never cut: the premise is read in overlapping windows, each with the
  whole hypothesis, and the window with the highest P(entailment) decides. So a fact is found
  anywhere, and support in one window outweighs a contradiction in another.
* Encoder-decoder models of the TRUE kind (Honovich et al. 2022, google/t5_xxl_true_nli_mixture):
  asked ``premise: P hypothesis: H`` they write "1" or "0". P(entailment) is P("1") against P("0"),
  the rest is neutral. Their positions are relative: a pair of any length is read in one piece.

Only safetensors weights are read and no code of a model is run. torch and transformers are
imported when the first model is loaded.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from trustassay.backends import hf_loading
from trustassay.backends.functions import check_labels
from trustassay.backends.hf_loading import Features
from trustassay.capabilities import Probabilities
from trustassay.errors import BackendError

_COLUMNS = {"entail": 0, "neutral": 1, "notentail": 1, "nonentail": 1, "contradict": 2}

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
        """Load a model; raises :class:`BackendError`, in one line, where that is not possible.

        ``labels`` names the outputs in their order where the config does not. ``check=False``
        loads a model whose answers to :data:`CHECK_PAIRS` go against its labels or whose files
        lack weights. Other options as of :class:`HubModel`.
        """
        super().__init__(batch_tokens=batch_tokens, **place)
        labels = labels.split(",") if isinstance(labels, str) else labels
        joined = ",".join(labels) if labels else None
        self.name = hf_loading.uri(model, labels=joined, dtype=self._dtype)
        with hf_loading.one_line(self.name, Exception):
            self._kind = _open(model, self._device, self._dtype, labels, check)
        if check:
            advice = "; give the model's own order with ?labels=..., or load it with ?check=no"
            check_labels(self, labels=len(self._kind.columns), advice=advice)

    def scores(self, pairs: Pairs) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis).

        Rows sum to 1 and are in the order of the pairs; no pairs give shape (0, 3). Raises
        :class:`BackendError` for a hypothesis that leaves too little room for its premise, and
        when the model fails. May be called from several threads.
        """
        if not pairs:
            return np.zeros((0, 3))
        with self._lock, hf_loading.one_line(self.name, RuntimeError):
            inputs, owners = self._kind.encode(pairs)
            rows = probabilities(self._logits(inputs), self._kind.columns)
            return best_windows(rows, owners)

    def _logits(self, inputs: Sequence[Features]) -> Probabilities:
        """Return the logits, shape (n, k), of n inputs, run in batches of like length."""
        torch, _ = hf_loading.libraries()
        device = self._kind.model.device
        rows = np.empty((len(inputs), len(self._kind.columns)))
        with torch.inference_mode():
            for batch in hf_loading.batches(
                [len(one["input_ids"]) for one in inputs], self._batch_tokens
            ):
                tensors = hf_loading.padded(
                    [inputs[i] for i in batch], self._kind.tokenizer, device
                )
                rows[batch] = self._kind.logits(tensors).float().cpu().numpy()
        if not np.isfinite(rows).all():
            raise BackendError("the model's outputs are not finite numbers; try ?dtype=float32")
        return rows


class _Classifier:
    """One kind of model; its output j goes to the result's ``columns[j]``."""

    def __init__(self, model: Any, tokenizer: Any, labels: Sequence[str] | None) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.columns = label_columns(labels or _config_labels(model.config))
        if len(self.columns) != model.config.num_labels:
            outputs = model.config.num_labels
            raise BackendError(f"{len(self.columns)} labels for a model of {outputs} outputs")
        self.limit = hf_loading.longest_input(model, tokenizer)
        # Asked for, as transformers 5 leaves them out for some models that were trained with them.
        types = getattr(model.config, "type_vocab_size", 0)
        self.segments = types > 1 or model.config.model_type == "xlnet"

    def encode(self, pairs: Pairs) -> tuple[list[Features], list[int]]:
        """Return the model's inputs and, for each, the index of the pair that it belongs to."""
        encoded = self._tokens([p for p, _ in pairs], [h for _, h in pairs])
        inputs: list[Features] = []
        owners: list[int] = []
        for owner, pair in enumerate(pairs):
            whole = {key: encoded[key][owner] for key in encoded}
            fits = self.limit is None or len(whole["input_ids"]) <= self.limit
            parts = [whole] if fits else self._windows(whole, *pair)
            inputs += parts
            owners += [owner] * len(parts)
        return inputs, owners

    def _windows(self, whole: Features, premise: str, hypothesis: str) -> list[Features]:
        """Put windows of the premise in its place in an encoded pair, one at a time.

        Done on tokens, so that it is the same for fast and slow tokenizers of any version.
        """
        assert self.limit is not None
        ids = whole["input_ids"]
        own = self._tokens([premise], add_special_tokens=False)["input_ids"][0]
        other = self._tokens([hypothesis], add_special_tokens=False)["input_ids"][0]
        available = self.limit - (len(ids) - len(own) - len(other))
        room = available - len(other)
        if 4 * room < available:
            raise BackendError(
                f"a hypothesis of {len(other)} tokens leaves room for {max(room, 0)} tokens of its "
                f"premise, which has {len(own)}; this model reads {self.limit} in total, and a "
                "quarter is reserved for the premise"
            )
        begin = next((i for i in range(8) if ids[i : i + len(own)] == own), None)
        if begin is None:
            raise BackendError("its tokenizer encodes a long premise differently in a pair")
        end = begin + len(own)
        return [
            {k: row[:begin] + row[begin + a : begin + b] + row[end:] for k, row in whole.items()}
            for a, b in windows(len(own), room)
        ]

    def logits(self, batch: Any) -> Any:
        """Return a tensor (b, k) for a padded batch of b inputs."""
        return self.model(**batch).logits

    def _tokens(self, *texts: list[str], add_special_tokens: bool = True) -> Any:
        return self.tokenizer(
            *texts,
            add_special_tokens=add_special_tokens,
            return_token_type_ids=self.segments,
            verbose=False,
        )


class _OneOrZero:
    """The other kind, with the same methods."""

    columns = (0, 1)

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        # With the end token, so that the labels differ even where one begins like the other.
        one, zero = (tokenizer(label)["input_ids"] for label in ("1", "0"))
        differ = [i for i, (a, b) in enumerate(zip(one, zero, strict=False)) if a != b]
        start = model.config.decoder_start_token_id
        if not differ or start is None:
            raise BackendError('this encoder-decoder model cannot be asked for a "1" or a "0"')
        self.prefix = [start, *one[: differ[0]]]
        self.choices = [one[differ[0]], zero[differ[0]]]

    def encode(self, pairs: Pairs) -> tuple[list[Features], list[int]]:
        texts = [f"premise: {premise} hypothesis: {hypothesis}" for premise, hypothesis in pairs]
        encoded = self.tokenizer(texts, return_token_type_ids=False, verbose=False)
        inputs = [{key: encoded[key][i] for key in encoded} for i in range(len(texts))]
        return inputs, list(range(len(texts)))

    def logits(self, batch: Any) -> Any:
        prefix = batch["input_ids"].new_tensor([self.prefix] * len(batch["input_ids"]))
        return self.model(**batch, decoder_input_ids=prefix).logits[:, -1, self.choices]


def _open(
    name: str, device: str | None, dtype: str | None, labels: Sequence[str] | None, check: bool
) -> _Classifier | _OneOrZero:
    """Load an entailment model and choose its kind."""
    _, transformers = hf_loading.libraries()
    folder, config = hf_loading.config_of(name)
    classifies = any("ForSequenceClassification" in known for known in config.architectures or ())
    if classifies or not config.is_encoder_decoder:
        auto = transformers.AutoModelForSequenceClassification
        return _Classifier(*hf_loading.load(folder, auto, device, dtype, check), labels)
    if labels:
        raise BackendError("labels= is for classifiers; this model generates its verdict as text")
    return _OneOrZero(
        *hf_loading.load(folder, transformers.AutoModelForSeq2SeqLM, device, dtype, check)
    )


def _config_labels(config: Any) -> list[str]:
    """Return the names of the outputs, from id2label or, where it has none, from label2id."""
    names = [str(config.id2label[i]) for i in sorted(config.id2label)]
    if all(name.startswith("LABEL_") for name in names) and config.label2id:
        return sorted(config.label2id, key=config.label2id.__getitem__)
    return names


def label_columns(labels: Sequence[str]) -> tuple[int, ...]:
    """Return the column of each label: 0 entailment, 1 neutral or not entailed, 2 contradiction.

    Case and punctuation do not matter. Raises :class:`BackendError` unless the labels are two or
    three, all known, all different, one of them entailment.
    """
    plain = [re.sub(r"[^a-z]", "", label.lower()) for label in labels]
    columns = [c for name in plain for start, c in _COLUMNS.items() if name.startswith(start)]
    distinct = len(columns) == len(set(columns)) == len(labels)
    if not distinct or len(labels) < 2 or 0 not in columns:
        raise BackendError(
            f"its labels are called {', '.join(labels)}; give their meaning, in the model's own "
            "order, with ?labels=entailment,neutral,contradiction or "
            "?labels=entailment,not_entailment"
        )
    return tuple(columns)


def probabilities(logits: Probabilities, columns: Sequence[int]) -> Probabilities:
    """Return the softmax of logits (n, k) as (n, 3), output j in column ``columns[j]``, else 0."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    result = np.zeros((len(logits), 3))
    result[:, list(columns)] = powers / powers.sum(axis=1, keepdims=True)
    return result


def best_windows(rows: Probabilities, owners: Sequence[int]) -> Probabilities:
    """Return for each owner, in order, its row with the highest P(entailment), first of equals."""
    order = np.lexsort((-rows[:, 0], np.asarray(owners)))
    _, first = np.unique(np.asarray(owners)[order], return_index=True)
    best: Probabilities = rows[order][first]
    return best


def windows(length: int, room: int) -> list[tuple[int, int]]:
    """Return the (start, end) of windows of ``room`` tokens over ``length`` > ``room`` tokens.

    They overlap by a quarter, the last one by what it takes to be full.
    """
    last = length - room
    return [(start, start + room) for start in (*range(0, last, room - room // 4), last)]
