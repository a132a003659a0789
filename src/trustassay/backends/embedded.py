"""``embedded``: entailment and vectors of texts and of tokens, from weights in the package.

The entailer reads a premise in overlapping windows of whole sentences with a small cross-encoder
and uses the window with the strongest entailment. A window that still has more tokens than fit
(data, lists of links, scripts without spaces) is cut between tokens, so that every text can be
read. Data in a premise, such as JSON and tables, are read as sentences
(:mod:`trustassay.text.tables`). A logistic combination, whose inputs and weights are in
``entailer.json``, adds the words that the statement shares with the whole premise. Then
``verifier`` changes the odds by what it finds about numbers, units and dates.
``docs/models/embedded.md`` reports the agreement with people; ``training/`` builds the weights, and
cuts with the same functions.

The encoders are int8 ONNX graphs. Both begin after the word embeddings, so that the table of
embeddings, a third of all weights, is shipped once: int8 rows, each with a scale. Needs onnxruntime
and tokenizers, and nothing from a network.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.backends import lexical, telemetry, verifier
from trustassay.backends.functions import check_labels
from trustassay.core.capabilities import BatchLimits, Probabilities, TokenVectors, Vectors
from trustassay.errors import BackendError
from trustassay.text.tables import spell_data

if TYPE_CHECKING:
    from tokenizers import Tokenizer


Floats = NDArray[np.float32]


class EncodedText(NamedTuple):
    """A text, or a pair of texts, as the encoder reads it."""

    ids: list[int]
    """Tokens."""
    kinds: list[int]
    """For each token: 0 first text, 1 second text, 2 see :data:`UNMATCHED_KIND`."""


class Encoder:
    """One of the two graphs (``entailer`` or ``embedder``) with its tokenizer and the table.

    Args:
        name: ``entailer`` or ``embedder``.
        folder: folder of the weights.
        threads: number of texts that are computed at the same time.
        output: value inside the graph that is returned in place of the graph's own output.

    Raises:
        BackendError: onnxruntime or tokenizers is missing, or the files are damaged.
    """

    def __init__(self, name: str, folder: Path, threads: int, output: str = "") -> None:
        try:
            import tokenizers

            onnxruntime = telemetry.import_onnxruntime()
        except ImportError as error:
            raise BackendError(
                f"the embedded models need a package that cannot be imported ({error}); "
                "install trustassay again"
            ) from error
        options = onnxruntime.SessionOptions()
        # Items run in parallel, so each needs only one thread.
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            # Its fused layer norm takes longer than the addition and the norm it replaces.
            # Appended bytes change the output without a second file of weights.
            graph = folder / f"{name}.onnx"
            self.session = onnxruntime.InferenceSession(
                graph.read_bytes() + _build_output_message(output) if output else graph,
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=["SkipLayerNormFusion"],
            )
            self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            self.rows, self.scales = _load_table(folder)
        except Exception as error:
            raise BackendError(f"the embedded {name} cannot be loaded: {error}") from error
        # Texts are cut here, never by the tokenizer.
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        # onnxruntime releases the GIL while it computes.
        self._workers = ThreadPoolExecutor(threads, thread_name_prefix=f"trustassay-{name}")
        self._inputs = {node.name for node in self.session.get_inputs()}
        self.width: int = self.session.get_outputs()[0].shape[1]
        self._output = [output] if output else None

    def run(self, tokens: Sequence[EncodedText]) -> Floats:
        """Return the graph's output, shape (n, width), in the order of ``tokens``."""
        rows = self.each(tokens)
        return np.concatenate(rows) if rows else np.zeros((0, self.width), dtype=np.float32)

    def each(self, tokens: Sequence[EncodedText]) -> list[Floats]:
        """Return the output for each item, shape (1, ...).

        Every item is computed separately, several at a time. In a batch a result would depend on
        the other items, since int8 activations are scaled over the whole batch.
        """
        return list(self._workers.map(self._run_item, tokens))

    def _run_item(self, tokens: EncodedText) -> Floats:
        """Return the output for one item."""
        ids = np.array([tokens.ids], dtype=np.int64)
        inputs = {
            "words": self.rows[ids].astype(np.float32) * self.scales[ids][..., None],
            "kinds": np.array([tokens.kinds], dtype=np.int64),
            "mask": np.ones_like(ids),
        }
        # The graph of the embedder has no input for the kinds.
        feed = {name: value for name, value in inputs.items() if name in self._inputs}
        output: Floats = self.session.run(self._output, feed)[0]
        return output


def _build_output_message(name: str) -> bytes:
    """Return bytes that, appended to an ONNX graph, make a value inside the graph an output.

    ONNX files are messages of Protocol Buffers. The fields of two messages in a row are merged, and
    lists are concatenated. This message has one output (field 12 of the graph, field 7) with the
    name (1) and the type (2) of a tensor (1) of single precision (1).
    """

    def field(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    single_precision = bytes([1 << 3, 1])
    kind = field(2, field(1, single_precision))
    return field(7, field(12, field(1, name.encode()) + kind))


@cache
def _load_table(folder: Path) -> tuple[NDArray[np.int8], Floats]:
    """Return the table of word embeddings: int8 rows and their scales. Both encoders share it."""
    with np.load(folder / "embeddings.npz", allow_pickle=False) as table:
        return table["rows"], table["scales"]


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Return exp(x) / sum exp(x) along the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True), dtype=np.float64)
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


@cache
def weights_folder() -> Path:
    """Return the folder of the shipped files."""
    with as_file(files("trustassay.backends") / "weights") as folder:
        return folder


@cache
def read_card(folder: Path | None = None) -> dict[str, Any]:
    """Return the content of ``entailer.json``: labels, windows, combination, checksums etc."""
    path = (folder or weights_folder()) / "entailer.json"
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BackendError(
            f"the files of the embedded models are damaged ({error}); install trustassay again"
        ) from error
    return content


@cache
def load_encoder(
    name: str, threads: int | None = None, folder: Path | None = None, output: str = ""
) -> Encoder:
    """Return the encoder of that name, loaded once for each number of threads (``None``: all)."""
    return Encoder(name, folder or weights_folder(), threads or os.cpu_count() or 1, output)


MAX_TOKENS = 512
"""Tokens that the encoder has positions for."""
MAX_STATEMENT_TOKENS = 256
"""Tokens of a statement that are read at once."""
PIECE_TOKENS, PIECE_STEP = 128, 80
"""Tokens of one piece of a window that is too long, and the distance between pieces."""
UNMATCHED_KIND = 2
"""Kind of a hypothesis token that is not in the premise."""

_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)]*\s+|\n+")
_STRIPPED_CHARACTERS = " \t.,;:!\"'“”‘’()*-•"
"""Removed from both ends of a sentence before comparing; a question mark is kept."""
MIN_COPIED_WORDS = 3
"""Words of the shortest statement that counts as copied."""


def cut_pairs(
    tokenizer: "Tokenizer", pairs: Sequence[tuple[str, str]], size: int, step: int
) -> list[list[list[EncodedText]]]:
    """Return for each pair, and each part of its hypothesis, every window as the encoder reads it.

    No text is too long. A hypothesis of more than 256 tokens is split into parts. A window that
    does not fit into 512 tokens with the longest part is read in pieces of 128 tokens, one every
    80.
    """
    windows_by_premise = {premise: cut_windows(premise, size, step) for premise, _ in pairs}
    # Windows are shared by many pairs; each different text is tokenised once.
    texts = {
        text for windows_of_premise in windows_by_premise.values() for text in windows_of_premise
    } | {h for _, h in pairs}
    order = sorted(texts)
    encoded = tokenizer.encode_batch(order, add_special_tokens=False)
    ids = {text: encoding.ids for text, encoding in zip(order, encoded, strict=True)}
    first, last = tokenizer.encode("").ids
    tokens_by_pair = []
    for premise, hypothesis in pairs:
        parts = split_overlapping(ids[hypothesis], MAX_STATEMENT_TOKENS, MAX_STATEMENT_TOKENS)
        # Three special tokens: one at the beginning, one after each text.
        room = MAX_TOKENS - 3 - max(map(len, parts))
        pieces = [
            piece
            for window in windows_by_premise[premise]
            for piece in (
                [ids[window]]
                if len(ids[window]) <= room
                else split_overlapping(ids[window], PIECE_TOKENS, PIECE_STEP)
            )
        ]
        tokens_by_pair.append(
            [[_join_pair(first, w, last, part) for w in pieces] for part in parts]
        )
    return tokens_by_pair


def split_overlapping(ids: list[int], size: int, step: int) -> list[list[int]]:
    """Return runs of up to ``size`` ids, a new one every ``step``; the last reaches the end."""
    # An empty text has one empty run.
    starts = range(0, max(1, len(ids) - size + step), step)
    return [ids[start : start + size] for start in starts]


def _join_pair(first: int, premise: list[int], last: int, hypothesis: list[int]) -> EncodedText:
    """Return premise and hypothesis with the special tokens around them."""
    head, tail = [first, *premise, last], [*hypothesis, last]
    return pair_tokens(head + tail, [0] * len(head) + [1] * len(tail))


def pair_tokens(ids: list[int], segments: list[int]) -> EncodedText:
    """Return a pair's tokens with their kinds: premise, hypothesis, only in the hypothesis."""
    # Two texts in one input: the kind also tells the model which words are new.
    premise_ids = {i for i, segment in zip(ids, segments, strict=True) if not segment}
    kinds = [
        UNMATCHED_KIND if segment and i not in premise_ids else segment
        for i, segment in zip(ids, segments, strict=True)
    ]
    return EncodedText(ids, kinds)


def cut_windows(premise: str, size: int, step: int) -> list[str]:
    """Cut a premise into overlapping runs of whole sentences, of about ``size`` words each.

    A window takes sentences until it has ``size`` words. The next begins at the first sentence that
    starts ``step`` words later or more. A sentence of more than ``size`` + ``step`` words is cut
    between words. A first line "Title: ..." is repeated in each window. A premise of up to ``size``
    + ``step`` words is one window.
    """
    head, body = "", premise.strip()
    # The title goes into every window, and its words do not count towards a window's length.
    if body.startswith("Title: ") and "\n" in body:
        head, body = body.split("\n", 1)
        head += "\n"
    if len(body.split()) <= size + step:
        return [head + body]
    parts = _split_into_parts(body, size, step)
    texts, start = [], 0
    while True:
        end, length = start, 0
        while end < len(parts) and length < size:
            length += len(parts[end])
            end += 1
        texts.append(head + " ".join(" ".join(part) for part in parts[start:end]))
        if end == len(parts):
            return texts
        words_passed = 0
        # The next window begins inside this one, so that no fact is torn apart between two.
        while words_passed < step and start < end:
            words_passed += len(parts[start])
            start += 1


def is_copied(premise: str, hypothesis: str) -> bool:
    """Whether every sentence of a hypothesis is, word for word, a sentence or line of the premise.

    Words inside a longer sentence do not count: there they may be reported, denied or supposed.
    Case, spaces and punctuation at both ends are ignored. A hypothesis of fewer than three words is
    never copied.
    """
    claimed = _split_and_normalise(hypothesis)
    return len(hypothesis.split()) >= MIN_COPIED_WORDS and claimed <= _split_and_normalise(premise)


@lru_cache(maxsize=4096)
def _split_and_normalise(text: str) -> frozenset[str]:
    """Return the sentences of a text in lower case, without punctuation around them."""
    result = (
        " ".join(sentence.casefold().split()).strip(_STRIPPED_CHARACTERS)
        for sentence in _SENTENCE.split(text)
    )
    return frozenset(filter(None, result))


def _split_into_parts(body: str, size: int, step: int) -> list[list[str]]:
    """Return the words of each sentence; very long sentences are cut into parts."""
    parts = []
    for sentence in _SENTENCE.split(body):
        words = sentence.split()
        # Lists and data have no sentence ends.
        if len(words) > size + step:
            parts += [words[i : i + step] for i in range(0, len(words), step)]
        elif words:
            parts.append(words)
    return parts


MIN_COPIED_ENTAILMENT = 0.98
"""Least probability that a premise entails its own sentence, as the model gives for most."""
EMBEDDED_AT_ONCE = 256
"""Tokens of one piece of a text to embed; the original encoder reads as many."""


class EmbeddedEntailer:
    """The built-in entailer.

    ``threads=None`` uses all cores. ``folder`` names other weights of the same form, as
    ``training/`` makes them. ``quantities`` are the weights of :func:`apply_quantities`, empty for
    none.

    Raises:
        BackendError: the weights or the packages that run them are missing or damaged.
    """

    limits = BatchLimits(items=32, tokens=16_384)
    stored = True
    languages = ("en",)

    def __init__(self, threads: int | None = None, folder: Path | None = None) -> None:
        self._card = read_card(folder)
        self.name = f"embedded:{self._card['version']}"
        self.quantities: Mapping[str, float] = read_card()["quantities"]["weights"]
        self._encoder = load_encoder("entailer", threads, folder)
        check_labels(self)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis)."""
        pairs = [(spell_data(premise, hypothesis), hypothesis) for premise, hypothesis in pairs]
        rows = [
            apply_quantities(self._combine(read, *pair), *pair, self.quantities)
            for read, pair in zip(self.logits(pairs), pairs, strict=True)
        ]
        return np.array(rows, dtype=float).reshape(len(pairs), 3)

    def logits(self, pairs: Sequence[tuple[str, str]]) -> list[Probabilities]:
        """Return the encoder's logits of each pair's windows, shape (windows, 3)."""
        cut = self._card["windows"]
        return compute_window_logits(self._encoder, pairs, cut["words"], cut["step"])

    def _combine(
        self, logits: Probabilities, premise: str, hypothesis: str
    ) -> tuple[float, float, float]:
        """Return calibrated probabilities of entailment, neutral and contradiction.

        Entailment is nearly certain if the hypothesis is in the premise word for word.
        Contradiction is computed as a share of what is not entailed.
        """
        features = compute_features(logits, premise, hypothesis)
        entailment = _logistic_probability(self._card["combination"], features)
        # A copied sentence is entailed, even if the model is not sure.
        if is_copied(premise, hypothesis):
            entailment = max(entailment, MIN_COPIED_ENTAILMENT)
        contradiction = (1 - entailment) * _logistic_probability(
            self._card["contradiction"], features
        )
        return entailment, 1 - entailment - contradiction, contradiction


class EmbeddedEmbedder:
    """all-MiniLM-L6-v2 in int8: unit vectors of 384 numbers; ``threads=None`` uses all cores.

    A text beyond 256 tokens is read in consecutive pieces of that length. Its vector has the
    direction of their mean, weighted by length: nothing is cut off.

    Raises:
        BackendError: the weights or the packages that run them are missing or damaged.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.name = f"embedded:{read_card()['version']}"
        self._encoder = load_encoder("embedder", threads)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, 384), for n texts; an empty text has one as well."""
        encoded = self._encoder.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        size = EMBEDDED_AT_ONCE - 2
        pieces = [
            [tuple(p) for p in split_overlapping(encoding.ids, size, size)] for encoding in encoded
        ]
        first, last = self._encoder.tokenizer.encode("").ids
        # Texts that the tokenizer takes for the same are computed once.
        index_of_ids: dict[tuple[int, ...], int] = {}
        indices = [
            index_of_ids.setdefault(ids, len(index_of_ids)) for group in pieces for ids in group
        ]
        # A dict keeps the order of insertion, which is the order of the indices.
        tokens = [EncodedText([first, *ids, last], [0] * (len(ids) + 2)) for ids in index_of_ids]
        vectors_of_pieces = self._encoder.run(tokens)[indices]
        # Each piece counts by its tokens, special ones included, so that an empty text has a
        # weight.
        weights = np.array([len(encoding.ids) for encoding in tokens], dtype=np.float32)[indices]
        starts = np.cumsum([0, *(len(group) for group in pieces)])[:-1]
        sums = (
            np.add.reduceat(vectors_of_pieces * weights[:, None], starts)
            if len(vectors_of_pieces)
            else vectors_of_pieces
        )
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        return np.asarray(sums / np.maximum(norms, 1e-12), dtype=np.float32)


LAST_LAYER_OUTPUT = "/LayerNorm_12/LayerNormalization_output_0"
"""Output of the graph's last layer, shape (1, tokens, 384)."""


class EmbeddedTokenEmbedder:
    """The last layer of all-MiniLM-L6-v2 in int8: 384 numbers for each token.

    A text beyond 256 tokens is read in consecutive pieces of that length: nothing is cut off.
    ``threads=None`` uses all cores.

    Raises:
        BackendError: the weights or the packages that run them are missing or damaged.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.name = f"embedded:{read_card()['version']}"
        self._encoder = load_encoder("embedder", threads, output=LAST_LAYER_OUTPUT)

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the tokens and vectors of each text, with the special tokens at both ends."""
        tokenizer = self._encoder.tokenizer
        first, last = tokenizer.encode("").ids
        encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        # Two places are for the special tokens.
        size = EMBEDDED_AT_ONCE - 2
        pieces = [split_overlapping(encoding.ids, size, size) for encoding in encoded]
        read = [[first, *ids, last] for group in pieces for ids in group]
        # Pieces of all texts are computed together, and read back in the same order.
        states = iter(self._encoder.each([EncodedText(ids, [0] * len(ids)) for ids in read]))
        result = []
        for encoding, group in zip(encoded, pieces, strict=True):
            rows = [next(states)[0] for _ in group]
            inner_rows = [row[1:-1] for row in rows]
            # Of the special tokens around each piece, only the first and the last are kept.
            vectors = np.concatenate([rows[0][:1], *inner_rows, rows[-1][-1:]])
            tokens = ("[CLS]", *encoding.tokens, "[SEP]")
            result.append(TokenVectors(tokens, vectors, (0, len(tokens) - 1)))
        return result


def compute_window_logits(
    reader: Encoder, pairs: Sequence[tuple[str, str]], size: int, step: int
) -> list[Probabilities]:
    """Return a graph's logits of each pair's windows, shape (windows, 3).

    For a statement that is read in parts, they are those of the part with the weakest support.
    """
    cut = cut_pairs(reader.tokenizer, pairs, size, step)
    flat = [tokens for parts in cut for part in parts for tokens in part]
    logits = reader.run(flat).astype(float)
    # All windows are computed in one call, and then divided among the parts again.
    ends = np.cumsum([len(part) for parts in cut for part in parts])
    logits_of_parts = iter(np.split(logits, ends[:-1]))
    return [
        min(
            (next(logits_of_parts) for _ in parts),
            key=lambda part: float(compute_log_odds(part).max()),
        )
        for parts in cut
    ]


def _logistic_probability(combination: Mapping[str, Any], features: Mapping[str, float]) -> float:
    """Return the probability of a logistic combination of features."""
    weights = combination["weights"]
    z = combination["bias"] + sum(weight * features[name] for name, weight in weights.items())
    return float(1 / (1 + np.exp(-z)))


def apply_quantities(
    row: tuple[float, float, float], premise: str, hypothesis: str, weights: Mapping[str, float]
) -> tuple[float, float, float]:
    """Return the probabilities of a pair, with the evidence of its quantities added.

    Args:
        row: probabilities of entailment, neutral and contradiction.
        premise: the premise.
        hypothesis: the hypothesis.
        weights: factors of :func:`verifier.compute_verdict` in the log-odds; empty: ``row`` is
            unchanged.
    """
    # What is copied is supported whatever the quantities seem to say.
    if not weights or is_copied(premise, hypothesis):
        return row
    if not (verdict := verifier.compute_verdict(premise, hypothesis)):
        return row
    # The share of contradiction in what is not entailed is moved separately.
    against = row[2] / max(row[1] + row[2], 1e-12)
    # The verdict is from -1 to 1, and its sign says in which direction the odds move.
    if verdict < 0:
        entailment = _shift_log_odds(row[0], weights["contradicted"] * verdict)
        against = _shift_log_odds(against, -weights["contradiction"] * verdict)
    else:
        entailment = _shift_log_odds(row[0], weights["supported"] * verdict)
    contradiction = (1 - entailment) * against
    return entailment, 1 - entailment - contradiction, contradiction


def _shift_log_odds(chance: float, by: float) -> float:
    """Return a probability whose log-odds are shifted."""
    odds = chance / max(1 - chance, 1e-12) * float(np.exp(by))
    return odds / (1 + odds)


def compute_log_odds(logits: Probabilities) -> Probabilities:
    """Return the log-odds of entailment, shape (n,), of logits of shape (n, 3)."""
    return np.asarray(logits[:, 0] - np.logaddexp(logits[:, 1], logits[:, 2]))


def compute_encoder_features(logits: Probabilities) -> dict[str, float]:
    """Return the encoder's result for a pair, from the logits of its windows, shape (windows, 3).

    entailment: log-odds in the window where they are largest, within -8..8.
    contradiction: its probability in that window.
    contradiction_odds: its log-odds among what is not entailed there, within -8..8.
    """
    odds = compute_log_odds(logits)
    # The window with the strongest support decides, even if another one contradicts.
    best = int(odds.argmax())
    chances = softmax(logits[best])
    return {
        "entailment": float(np.clip(odds[best], -8, 8)),
        "contradiction": float(chances[2]),
        "contradiction_odds": float(np.clip(logits[best, 2] - logits[best, 1], -8, 8)),
    }


def compute_features(logits: Probabilities, premise: str, hypothesis: str) -> dict[str, float]:
    """Return all possible inputs of a combination, from the logits of a pair's windows.

    containment: share of the hypothesis's content words that are in the whole premise.
    several_windows: 1 if the premise was read in several windows, else 0.
    containment_across: containment if it was, else 0: no window contains the whole premise.
    containment_unless_contradicted: containment times the probability of no contradiction.
    negation_differs: 1 if the hypothesis and the nearest sentence differ in negation.
    """
    features = compute_encoder_features(logits)
    result = lexical.compute_overlap(premise, hypothesis)
    several = float(len(logits) > 1)
    return features | {
        "containment": result.containment,
        "several_windows": several,
        "containment_across": result.containment * several,
        "containment_unless_contradicted": result.containment * (1 - features["contradiction"]),
        "negation_differs": float(result.negation_differs),
    }


def load_embedded_model(kind: str, version: str = "", threads: int | None = None) -> Any:
    """Return the model of a kind.

    Raises:
        BackendError: a version is requested that is not the installed one.
    """
    if version not in ("", carried := str(read_card()["version"])):
        raise BackendError(
            f"embedded:{version} is not installed; this trustassay has embedded:{carried}"
        )
    if kind == "entailer":
        return EmbeddedEntailer(threads)
    return EmbeddedEmbedder(threads) if kind == "embedder" else EmbeddedTokenEmbedder(threads)
