"""``embedding:FILE``: the words nearest to others in a file of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.word2vec import WordVectors, read_word2vec
from trustassay.capabilities import BatchLimits, SubstitutesRequest
from trustassay.errors import UnknownNameError, did_you_mean

__all__ = ["NearWordsOfFile", "near_words_of_file"]

NEAREST = 1000
"""Neighbours that are looked at."""
CAP = 0.9
"""Cosine from which on two words count as saying the same."""
WORDS = 200_000
"""Words that are read of a file, the most frequent of which stand first."""

Floats = NDArray[np.float32]


def near_words_of_file(rest: str) -> NearWordsOfFile:
    """Return the source that stands behind ``embedding:``: ``FILE[?words=N]``.

    Raises:
        UnknownNameError: another option.
        BackendError: the file cannot be read.
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
    vectors = read_word2vec(path, int(most))
    return NearWordsOfFile(vectors)


class NearWordsOfFile:
    """Nearest words by cosine; two above the cap say the same. Words are taken as they are written,
    else in small letters; several are joined by ``_``, else the mean of their vectors is taken."""

    limits = BatchLimits(items=256, tokens=None)

    def __init__(self, vectors: WordVectors) -> None:
        self.name = f"embedding:word2vec-{vectors.digest}"
        self._vectors = vectors
        self._rows = {word: i for i, word in enumerate(vectors.words)}

    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:
        """Return up to k of the nearest words of each request, whatever their part of speech."""
        return [self._nearest(one) for one in requests]

    def _nearest(self, request: SubstitutesRequest) -> list[str]:
        vector = self._vector(request.words)
        if vector is None or not request.k:
            return []
        likeness = self._vectors.rows @ vector
        many = min(NEAREST, len(likeness))
        nearest = np.argpartition(-likeness, many - 1)[:many]
        ordered = nearest[np.lexsort((nearest, -likeness[nearest]))]
        words = (self._vectors.words[i] for i in ordered if likeness[i] < CAP)
        return list(dict.fromkeys(word.replace("_", " ") for word in words))[: request.k]

    def _vector(self, words: str) -> Floats | None:
        rows, joined = self._rows, words.replace(" ", "_")
        for form in (joined, joined.lower()):
            if form in rows:
                return np.asarray(self._vectors.rows[rows[form]])
        known = [rows.get(one, rows.get(one.lower())) for one in words.split()]
        if None in known or not known:
            return None
        mean = self._vectors.rows[[one for one in known if one is not None]].mean(axis=0)
        norm = float(np.linalg.norm(mean))
        return np.asarray(mean / norm, dtype=np.float32) if norm > 0 else None
