"""``embedded``: entailment and embeddings from weights in the package.

The entailer reads a premise in overlapping windows of whole sentences with a small cross-encoder
and uses the window with the strongest entailment. What still has more tokens than fit (data, lists
of links, scripts without spaces) is cut between tokens, so that every text can be read. Data in a
premise, such as JSON and tables, are read as sentences (:mod:`trustassay.text.tables`). A logistic
combination, whose inputs and weights are in ``entailer.json``, adds the words that the statement
shares with the whole premise; then the odds move with what ``verifier`` says of numbers, units and
dates. ``docs/models/embedded.md`` reports the agreement with people; ``training/`` builds the
weights, and cuts with the same functions.

The encoders are int8 ONNX graphs over one shared table of word embeddings. Both begin behind the
word embeddings, so that the table, a third of all weights, is shipped once: int8 rows with a scale
each. Needs onnxruntime and tokenizers, and nothing from a network.
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
from trustassay.capabilities import BatchLimits, Probabilities, Vectors
from trustassay.errors import BackendError
from trustassay.text.tables import as_prose

if TYPE_CHECKING:
    from tokenizers import Tokenizer


Floats = NDArray[np.float32]


class Tokens(NamedTuple):
    """A text, or a pair, as the encoder reads it; ``kinds`` has a kind for each id."""

    ids: list[int]
    kinds: list[int]


class Encoder:
    """One of the two graphs (``entailer`` or ``embedder``) with its tokenizer and the table.

    ``output`` names a value inside of the graph that is its output in place of its own.

    Raises:
        BackendError: onnxruntime or tokenizers is missing, or the files are damaged.
    """

    def __init__(self, name: str, folder: Path, threads: int, output: str = "") -> None:
        try:
            import tokenizers

            onnxruntime = telemetry.import_onnxruntime()
        except ImportError as error:
            raise BackendError(
                f"a package that the embedded models need cannot be imported ({error}); "
                "install trustassay again"
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            # Its fused layer norm takes longer than the addition and the norm it replaces.
            graph = folder / f"{name}.onnx"
            self.session = onnxruntime.InferenceSession(
                graph.read_bytes() + _as_output(output) if output else graph,
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=["SkipLayerNormFusion"],
            )
            self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            self.rows, self.scales = _table(folder)
        except Exception as error:
            raise BackendError(f"the embedded {name} cannot be loaded: {error}") from error
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self._workers = ThreadPoolExecutor(threads, thread_name_prefix=f"trustassay-{name}")
        self._inputs = {node.name for node in self.session.get_inputs()}
        self.width: int = self.session.get_outputs()[0].shape[1]
        self._output = [output] if output else None

    def run(self, tokens: Sequence[Tokens]) -> Floats:
        """Return the graph's output, shape (n, width), in the order of ``tokens``."""
        rows = self.each(tokens)
        return np.concatenate(rows) if rows else np.zeros((0, self.width), dtype=np.float32)

    def each(self, tokens: Sequence[Tokens]) -> list[Floats]:
        """Return the output for each item, shape (1, ...).

        Every item runs by itself, several at a time: int8 activations are scaled over a batch, so
        that in a batch a result would depend on the other items.
        """
        return list(self._workers.map(self._one, tokens))

    def _one(self, tokens: Tokens) -> Floats:
        ids = np.array([tokens.ids], dtype=np.int64)
        inputs = {
            "words": self.rows[ids].astype(np.float32) * self.scales[ids][..., None],
            "kinds": np.array([tokens.kinds], dtype=np.int64),
            "mask": np.ones_like(ids),
        }
        feed = {name: value for name, value in inputs.items() if name in self._inputs}
        output: Floats = self.session.run(self._output, feed)[0]
        return output


def _as_output(name: str) -> bytes:
    """Return what, behind the bytes of an ONNX graph, makes a value of the graph an output.

    ONNX files are messages of Protocol Buffers. Of two in a row the fields are merged, lists one
    after another: this one has an output (field 12 of the graph, field 7) with the name (1) and the
    type (2) of a tensor (1) of single precision (1).
    """

    def field(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    single_precision = bytes([1 << 3, 1])
    kind = field(2, field(1, single_precision))
    return field(7, field(12, field(1, name.encode()) + kind))


@cache
def _table(folder: Path) -> tuple[NDArray[np.int8], Floats]:
    """Return the table of word embeddings, int8 rows and their scales; both encoders share it."""
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
def card(folder: Path | None = None) -> dict[str, Any]:
    """Return the content of ``entailer.json``: labels, windows, combination, checksums etc."""
    path = (folder or weights_folder()) / "entailer.json"
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BackendError(f"the embedded models are damaged: {error}") from error
    return content


@cache
def encoder(
    name: str, threads: int | None = None, folder: Path | None = None, output: str = ""
) -> Encoder:
    """Return the encoder of that name, loaded once for each number of threads (``None``: all)."""
    return Encoder(name, folder or weights_folder(), threads or os.cpu_count() or 1, output)


LONGEST = 512
"""Tokens that the encoder has positions for."""
STATEMENT = 256
"""Tokens of a statement that are read at once."""
PIECE, PIECE_STEP = 128, 80
"""Tokens of one piece of a window that is too long, and how many later the next begins."""
UNMATCHED = 2
"""Kind of a hypothesis token that is not in the premise."""

_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)]*\s+|\n+")
_ENDS = " \t.,;:!\"'“”‘’()*-•"
"""What is taken off both ends of a sentence that is compared; a question mark stays."""
FEWEST_WORDS = 3
"""Words of the shortest statement that counts as copied."""


def cut_pairs(
    tokenizer: "Tokenizer", pairs: Sequence[tuple[str, str]], size: int, step: int
) -> list[list[list[Tokens]]]:
    """Return by pair, and by part of its hypothesis, every window as the encoder reads it.

    No text is too long: a hypothesis of more than 256 tokens is several parts, and a window that
    does not fit into 512 tokens with the longest part is read in pieces of 128 tokens, a new one
    every 80.
    """
    cut = {premise: windows(premise, size, step) for premise, _ in pairs}
    texts = {text for found in cut.values() for text in found} | {h for _, h in pairs}
    order = sorted(texts)
    encoded = tokenizer.encode_batch(order, add_special_tokens=False)
    ids = {text: one.ids for text, one in zip(order, encoded, strict=True)}
    first, last = tokenizer.encode("").ids
    made = []
    for premise, hypothesis in pairs:
        parts = overlapping(ids[hypothesis], STATEMENT, STATEMENT)
        room = LONGEST - 3 - max(map(len, parts))
        pieces = [
            piece
            for window in cut[premise]
            for piece in (
                [ids[window]]
                if len(ids[window]) <= room
                else overlapping(ids[window], PIECE, PIECE_STEP)
            )
        ]
        made.append([[_pair(first, w, last, part) for w in pieces] for part in parts])
    return made


def overlapping(ids: list[int], size: int, step: int) -> list[list[int]]:
    """Return runs of up to ``size`` ids, a new one every ``step``; the last reaches the end."""
    starts = range(0, max(1, len(ids) - size + step), step)
    return [ids[start : start + size] for start in starts]


def _pair(first: int, premise: list[int], last: int, hypothesis: list[int]) -> Tokens:
    head, tail = [first, *premise, last], [*hypothesis, last]
    return pair_tokens(head + tail, [0] * len(head) + [1] * len(tail))


def pair_tokens(ids: list[int], segments: list[int]) -> Tokens:
    """Return a pair's tokens with their kinds: premise, hypothesis, hypothesis alone."""
    known = {i for i, segment in zip(ids, segments, strict=True) if not segment}
    kinds = [
        UNMATCHED if segment and i not in known else segment
        for i, segment in zip(ids, segments, strict=True)
    ]
    return Tokens(ids, kinds)


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


def is_copied(premise: str, hypothesis: str) -> bool:
    """Return whether every sentence of a hypothesis stands, word for word, in the premise.

    A whole sentence or line: what stands inside a longer one may be reported, denied or supposed.
    Case, spaces and punctuation at both ends do not count; hypotheses of fewer than three words
    are not looked at.
    """
    claimed = _sentences(hypothesis)
    return len(hypothesis.split()) >= FEWEST_WORDS and claimed <= _sentences(premise)


@lru_cache(maxsize=4096)
def _sentences(text: str) -> frozenset[str]:
    """Return the sentences of a text in lower case, without what is around them."""
    result = (" ".join(one.casefold().split()).strip(_ENDS) for one in _SENTENCE.split(text))
    return frozenset(filter(None, result))


def _parts(body: str, size: int, step: int) -> list[list[str]]:
    parts = []
    for sentence in _SENTENCE.split(body):
        words = sentence.split()
        if len(words) > size + step:
            parts += [words[i : i + step] for i in range(0, len(words), step)]
        elif words:
            parts.append(words)
    return parts


COPIED = 0.98
"""Least probability that a premise entails its own sentence, as it is for most of them."""
EMBEDDED_AT_ONCE = 256
"""Tokens of one window of a text to embed, as the original encoder reads them."""


class EmbeddedEntailer:
    """The built-in entailer; ``threads=None`` uses all cores.

    ``folder`` names other weights of the same form, as ``training/`` makes them. ``quantities``:
    the weights of :func:`with_quantities`, empty for none.

    Raises:
        BackendError: the weights or the packages that run them are missing or damaged.
    """

    limits = BatchLimits(items=32, tokens=16_384)
    stored = True
    languages = ("en",)

    def __init__(self, threads: int | None = None, folder: Path | None = None) -> None:
        self._card = card(folder)
        self.name = f"embedded:{self._card['version']}"
        self.quantities: Mapping[str, float] = card()["quantities"]["weights"]
        self._encoder = encoder("entailer", threads, folder)
        check_labels(self)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis)."""
        pairs = [(as_prose(premise, hypothesis), hypothesis) for premise, hypothesis in pairs]
        rows = [
            with_quantities(self._combined(read, *pair), *pair, self.quantities)
            for read, pair in zip(self.logits(pairs), pairs, strict=True)
        ]
        return np.array(rows, dtype=float).reshape(len(pairs), 3)

    def logits(self, pairs: Sequence[tuple[str, str]]) -> list[Probabilities]:
        """Return the encoder's logits of each pair's windows, shape (windows, 3)."""
        cut = self._card["windows"]
        return window_logits(self._encoder, pairs, cut["words"], cut["step"])

    def _combined(
        self, logits: Probabilities, premise: str, hypothesis: str
    ) -> tuple[float, float, float]:
        """Return calibrated probabilities: of entailment, which is nearly sure for what stands in
        the premise word for word, and of contradiction among what is not entailed."""
        features = inputs(logits, premise, hypothesis)
        entailment = _chance(self._card["combination"], features)
        if is_copied(premise, hypothesis):
            entailment = max(entailment, COPIED)
        contradiction = (1 - entailment) * _chance(self._card["contradiction"], features)
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
        size = EMBEDDED_AT_ONCE - 2
        pieces = [[tuple(p) for p in overlapping(one.ids, size, size)] for one in encoded]
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


def window_logits(
    reader: Encoder, pairs: Sequence[tuple[str, str]], size: int, step: int
) -> list[Probabilities]:
    """Return a graph's logits of each pair's windows, shape (windows, 3).

    Of a statement that is read in parts, those of the part with the weakest support.
    """
    cut = cut_pairs(reader.tokenizer, pairs, size, step)
    flat = [tokens for parts in cut for part in parts for tokens in part]
    made = reader.run(flat).astype(float)
    ends = np.cumsum([len(part) for parts in cut for part in parts])
    read = iter(np.split(made, ends[:-1]))
    return [
        min((next(read) for _ in parts), key=lambda part: float(log_odds(part).max()))
        for parts in cut
    ]


def _chance(combination: Mapping[str, Any], features: Mapping[str, float]) -> float:
    """Return the probability of a logistic combination of features."""
    weights = combination["weights"]
    z = combination["bias"] + sum(weight * features[name] for name, weight in weights.items())
    return float(1 / (1 + np.exp(-z)))


def with_quantities(
    row: tuple[float, float, float], premise: str, hypothesis: str, weights: Mapping[str, float]
) -> tuple[float, float, float]:
    """Return probabilities of entailment, neutral and contradiction whose log-odds are moved by
    the weights (none: not at all) times what :func:`verifier.verdict` says of a pair."""
    if not weights or is_copied(premise, hypothesis):
        return row
    if not (verdict := verifier.verdict(premise, hypothesis)):
        return row
    against = row[2] / max(row[1] + row[2], 1e-12)
    if verdict < 0:
        entailment = _moved(row[0], weights["contradicted"] * verdict)
        against = _moved(against, -weights["contradiction"] * verdict)
    else:
        entailment = _moved(row[0], weights["supported"] * verdict)
    contradiction = (1 - entailment) * against
    return entailment, 1 - entailment - contradiction, contradiction


def _moved(chance: float, by: float) -> float:
    """Return a probability whose log-odds are moved."""
    odds = chance / max(1 - chance, 1e-12) * float(np.exp(by))
    return odds / (1 + odds)


def log_odds(logits: Probabilities) -> Probabilities:
    """Return the log-odds of entailment, shape (n,), of logits of shape (n, 3)."""
    return np.asarray(logits[:, 0] - np.logaddexp(logits[:, 1], logits[:, 2]))


def encoder_features(logits: Probabilities) -> dict[str, float]:
    """Return the encoder's result for a pair, from the logits of its windows, shape (windows, 3).

    entailment: log-odds in the window where they are largest, within -8..8.
    contradiction: its probability in that window.
    contradiction_odds: its log-odds among what is not entailed there, within -8..8.
    """
    odds = log_odds(logits)
    best = int(odds.argmax())
    chances = softmax(logits[best])
    return {
        "entailment": float(np.clip(odds[best], -8, 8)),
        "contradiction": float(chances[2]),
        "contradiction_odds": float(np.clip(logits[best, 2] - logits[best, 1], -8, 8)),
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
    result = lexical.overlap(premise, hypothesis)
    several = float(len(logits) > 1)
    return seen | {
        "containment": result.containment,
        "several_windows": several,
        "containment_across": result.containment * several,
        "containment_unless_contradicted": result.containment * (1 - seen["contradiction"]),
        "negation_differs": float(result.negation_differs),
    }


def embedded_model(kind: str, version: str = "", threads: int | None = None) -> Any:
    """Return the model of a kind; raises as :func:`check_version`."""
    check_version(version)
    return EmbeddedEntailer(threads) if kind == "entailer" else EmbeddedEmbedder(threads)


def check_version(version: str) -> None:
    """Raise :class:`BackendError` if a version is asked for, and is another one."""
    if version not in ("", carried := str(card()["version"])):
        raise BackendError(f"embedded:{version} is not installed; this installation has {carried}")
