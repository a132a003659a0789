"""``embedding``: the words nearest to others, of the word list or of a file of vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.encoder import card, encoder
from trustassay.backends.word2vec import WordVectors, read_word2vec
from trustassay.backends.word_list import word_list
from trustassay.capabilities import BatchLimits, SubstitutesRequest
from trustassay.errors import BackendError, UnknownNameError, did_you_mean

__all__ = ["NearWords", "near_words"]

NEAREST = 1000
"""Neighbours that are looked at."""
CAP = 0.9
"""Cosine from which on two words count as saying the same."""
WORDS = 200_000
"""Words that are read of a file, the most frequent of which stand first."""

Floats = NDArray[np.float32]


def near_words(rest: str) -> NearWords:
    """Return the source that stands behind ``embedding:``: ``FILE[?words=N]``, or nothing.

    Raises:
        UnknownNameError: another option.
        BackendError: the file cannot be read, or TextBlob is not installed.
    """
    path, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    most = options.pop("words", str(WORDS))
    if options or (not path and query):
        known = ["words"] if path else []
        name = next(iter(options), "words")
        raise UnknownNameError(did_you_mean("option of embedding", name, known))
    if not most.isdecimal() or not int(most):
        raise UnknownNameError(f"option words of embedding cannot be {most!r}")
    if not path:
        return _embedded()
    vectors = read_word2vec(path, int(most))
    rows = {word: i for i, word in enumerate(vectors.words)}

    def vector(words: str) -> Floats | None:
        return _of_file(vectors, rows, words)

    texts = [word.replace("_", " ") for word in vectors.words]
    return NearWords(f"word2vec:{vectors.digest}", texts, [""] * len(texts), vectors.rows, vector)


def _embedded() -> NearWords:
    words = word_list()
    reader = encoder("embedder")
    table = reader.rows.astype(np.float32) * reader.scales[:, None]
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)

    def vector(text: str) -> Floats | None:
        if " " in text.strip():  # the list holds single words: none stands for a whole name
            return None
        ids = reader.tokenizer.encode(text, add_special_tokens=False).ids
        return _unit(table[ids].mean(axis=0)) if ids else None

    return NearWords(
        f"embedding:{card()['version']}",
        [one.text for one in words],
        [one.tag for one in words],
        table[[one.row for one in words]],
        vector,
    )


class NearWords:
    """Nearest words by cosine; above the cap two words say the same, and neither replaces the
    other.

    texts, tags: the words and their parts of speech, empty where unknown. rows: unit vectors,
    shape (n, d). vector: of any words; ``None`` where they have none.
    """

    limits = BatchLimits(items=256, tokens=None)

    def __init__(
        self,
        name: str,
        texts: Sequence[str],
        tags: Sequence[str],
        rows: Floats,
        vector: Callable[[str], Floats | None],
    ) -> None:
        self.name = name
        self._texts, self._rows, self._vector = texts, rows, vector
        self._tags = np.array(tags)

    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:
        """Return up to k of the nearest words of each request, of its tag where that is known."""
        return [self._nearest(one) for one in requests]

    def _nearest(self, request: SubstitutesRequest) -> list[str]:
        vector = self._vector(request.words)
        if vector is None or not request.k:
            return []
        likeness = self._rows @ vector
        if request.tag:
            likeness[(self._tags != "") & (self._tags != request.tag)] = -np.inf
        likeness[likeness >= CAP] = -np.inf
        many = min(NEAREST, len(likeness))
        nearest = np.argpartition(-likeness, many - 1)[:many]
        ordered = nearest[np.lexsort((nearest, -likeness[nearest].astype(np.float64)))]
        found = dict.fromkeys(self._texts[i] for i in ordered if np.isfinite(likeness[i]))
        return list(found)[: request.k]


def _of_file(vectors: WordVectors, rows: dict[str, int], words: str) -> Floats | None:
    """Return the vector of words: of the whole joined by ``_``, lower-cased, or their mean."""
    joined = words.replace(" ", "_")
    for form in (joined, joined.lower()):
        if form in rows:
            return np.asarray(vectors.rows[rows[form]])
    known = [rows.get(one, rows.get(one.lower())) for one in words.split()]
    if any(one is None for one in known) or not known:
        return None
    return _unit(vectors.rows[[one for one in known if one is not None]].mean(axis=0))


def _unit(vector: Floats) -> Floats | None:
    norm = float(np.linalg.norm(vector))
    if not np.isfinite(norm):
        raise BackendError("a word's vector is not finite")
    return np.asarray(vector / norm, dtype=np.float32) if norm > 0 else None
