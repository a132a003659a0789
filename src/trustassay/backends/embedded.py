"""``embedded``: entailment and embeddings from weights in the package.

The entailer reads a premise in overlapping windows of whole sentences with a small cross-encoder
and uses the window with the strongest entailment. A logistic combination, whose inputs and
weights are in ``entailer.json``, adds the words that the statement shares with the whole premise.
``docs/embedded-models.md`` reports the agreement with people; ``training/`` builds the weights.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from trustassay.backends import lexical
from trustassay.backends.checking import check_labels
from trustassay.backends.encoder import Encoder, Tokens, card, encoder, softmax
from trustassay.capabilities import BatchLimits, Probabilities, Vectors
from trustassay.errors import BackendError

__all__ = ["EmbeddedEmbedder", "EmbeddedEntailer", "encoder_features", "inputs", "windows"]

LONGEST = 512
"""Tokens that the encoder has positions for."""
EMBEDDED_AT_ONCE = 256
"""Tokens of one window of a text to embed, as the original encoder reads them."""
UNMATCHED = 2
"""Kind of a hypothesis token that is not in the premise."""

_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)]*\s+|\n+")


class EmbeddedEntailer:
    """The built-in entailer; ``threads=None`` uses all cores.

    Raises:
        BackendError: the weights or the packages that run them are missing or damaged.
    """

    limits = BatchLimits(items=128, tokens=16_384)
    stored = True
    languages = ("en",)

    def __init__(self, threads: int | None = None) -> None:
        self._card = card()
        self.name = f"embedded:{self._card['version']}"
        self._encoder = encoder("entailer", threads)
        check_labels(self)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis).

        Raises:
            BackendError: a hypothesis is too long to be read with a window of its premise.
        """
        if not pairs:
            return np.zeros((0, 3))
        size, step = self._card["windows"]["words"], self._card["windows"]["step"]
        cut = [windows(premise, size, step) for premise, _ in pairs]
        flat = [(w, h) for ws, (_, h) in zip(cut, pairs, strict=True) for w in ws]
        logits = self._encoder.run(_pair_tokens(self._encoder, flat)).astype(float)
        ends = np.cumsum([len(ws) for ws in cut])[:-1]
        rows = [
            self._combined(part, *pair)
            for part, pair in zip(np.split(logits, ends), pairs, strict=True)
        ]
        return np.array(rows, dtype=float)

    def _combined(
        self, logits: Probabilities, premise: str, hypothesis: str
    ) -> tuple[float, float, float]:
        """Return calibrated probabilities; what is not entailed is split as the encoder does."""
        combination = self._card["combination"]
        features = inputs(logits, premise, hypothesis)
        z = combination["bias"] + sum(w * features[n] for n, w in combination["weights"].items())
        entailment = float(1 / (1 + np.exp(-z)))
        contradiction = (1 - entailment) * features["contradiction_share"]
        return entailment, 1 - entailment - contradiction, contradiction


class EmbeddedEmbedder:
    """all-MiniLM-L6-v2 as int8: unit vectors of 384 numbers; ``threads=None`` uses all cores.

    A text beyond 256 tokens is read in consecutive pieces of that length, and the mean of their
    vectors, weighted by length, is its direction: nothing is cut off.

    Raises:
        BackendError: the weights or the packages that run them are missing or damaged.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.name = f"embedded:{card()['version']}"
        self._encoder = encoder("embedder", threads)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, 384), for n texts; an empty text has one as well."""
        encoded = self._encoder.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        pieces = [[tuple(p) for p in _pieces(one.ids, EMBEDDED_AT_ONCE - 2)] for one in encoded]
        first, last = self._encoder.tokenizer.encode("").ids
        # Texts that the tokenizer takes for the same are computed once.
        place: dict[tuple[int, ...], int] = {}
        places = [place.setdefault(ids, len(place)) for group in pieces for ids in group]
        tokens = [Tokens([first, *ids, last], [0] * (len(ids) + 2)) for ids in place]
        made = self._encoder.run(tokens)[places]
        weights = np.array([len(one.ids) for one in tokens], dtype=np.float32)[places]
        starts = np.cumsum([0, *(len(group) for group in pieces)])[:-1]
        sums = np.add.reduceat(made * weights[:, None], starts) if len(made) else made
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        return np.asarray(sums / np.maximum(norms, 1e-12), dtype=np.float32)


def _pieces(ids: list[int], length: int) -> list[list[int]]:
    return [ids[i : i + length] for i in range(0, len(ids), length)] or [[]]


def _pair_tokens(reader: Encoder, pairs: Sequence[tuple[str, str]]) -> list[Tokens]:
    tokens = []
    for encoded, (_, hypothesis) in zip(
        reader.tokenizer.encode_batch(list(pairs)), pairs, strict=True
    ):
        if len(encoded.ids) > LONGEST:
            raise BackendError(
                f"a statement of {len(hypothesis.split())} words and a window of its premise have "
                f"{len(encoded.ids)} tokens; the embedded entailer reads at most {LONGEST}"
            )
        premise = {i for i, part in zip(encoded.ids, encoded.type_ids, strict=True) if part == 0}
        kinds = [
            UNMATCHED if part and i not in premise else part
            for i, part in zip(encoded.ids, encoded.type_ids, strict=True)
        ]
        tokens.append(Tokens(encoded.ids, kinds))
    return tokens


def windows(premise: str, size: int, step: int) -> list[str]:
    """Cut a premise into overlapping runs of whole sentences, of about ``size`` words each.

    A window takes sentences until it has ``size`` words; the next begins at the first sentence
    that starts ``step`` words later or more. A sentence of more than ``size`` + ``step`` words is
    cut between words. A first line "Title: ..." is repeated in each window. A premise of up to
    ``size`` + ``step`` / 2 words is one window.
    """
    head, body = "", premise.strip()
    if body.startswith("Title: ") and "\n" in body:
        head, body = body.split("\n", 1)
        head += "\n"
    if len(body.split()) <= size + step // 2:
        return [head + body]
    parts = _parts(body, size, step)
    made, start = [], 0
    while True:
        end, length = start, 0
        while end < len(parts) and length < size:
            length += len(parts[end])
            end += 1
        made.append(head + " ".join(" ".join(part) for part in parts[start:end]))
        if end == len(parts):
            return made
        moved = 0
        while moved < step and start < end:
            moved += len(parts[start])
            start += 1


def _parts(body: str, size: int, step: int) -> list[list[str]]:
    parts = []
    for sentence in _SENTENCE.split(body):
        words = sentence.split()
        if len(words) > size + step:
            parts += [words[i : i + step] for i in range(0, len(words), step)]
        elif words:
            parts.append(words)
    return parts


def encoder_features(logits: Probabilities) -> dict[str, float]:
    """Return the encoder's result for a pair, from the logits of its windows, shape (windows, 3).

    entailment: log-odds in the window where they are largest, within -8..8.
    contradiction: its probability in that window.
    contradiction_share: its share of what is not entailed there.
    """
    odds = logits[:, 0] - np.logaddexp(logits[:, 1], logits[:, 2])
    best = int(odds.argmax())
    chances = softmax(logits[best])
    return {
        "entailment": float(np.clip(odds[best], -8, 8)),
        "contradiction": float(chances[2]),
        "contradiction_share": float(chances[2] / max(chances[1:].sum(), 1e-9)),
    }


def inputs(logits: Probabilities, premise: str, hypothesis: str) -> dict[str, float]:
    """Return all possible inputs of a combination, from the logits of a pair's windows.

    containment: share of the hypothesis's content words that are in the whole premise.
    several_windows: 1 when the premise was read in several windows, else 0.
    containment_across: containment when it was, else 0: no window contains the whole premise.
    containment_unless_contradicted: containment times the probability of no contradiction.
    negation_differs: 1 when hypothesis and nearest sentence differ in negation.
    """
    seen = encoder_features(logits)
    found = lexical.overlap(premise, hypothesis)
    several = float(len(logits) > 1)
    return seen | {
        "containment": found.containment,
        "several_windows": several,
        "containment_across": found.containment * several,
        "containment_unless_contradicted": found.containment * (1 - seen["contradiction"]),
        "negation_differs": float(found.negation_differs),
    }
