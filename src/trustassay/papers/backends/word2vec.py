"""``word2vec:FILE``: nearest words by a file of vectors in one of word2vec's two formats.

Both formats begin with a line ``WORDS DIMENSIONS``. Text: a word and its numbers on each line.
Binary: the word, a space, and its numbers as little-endian float32, with or without a line's end
after them. Either may be compressed by gzip. Reading a file executes nothing: it has no pickles.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.registry import scheme
from trustassay.core.capabilities import BatchLimits, SubstitutesRequest
from trustassay.errors import BackendError

MAX_WORD_BYTES = 1000
"""Maximum bytes of a word; a longer one means that the file has another format."""
MAX_LINE_BYTES = 1 << 16
"""Bytes of the first line of vectors that are read to tell text from binary."""


@dataclass(frozen=True, slots=True)
class WordVectors:
    """Words and their vectors."""

    words: tuple[str, ...]
    rows: NDArray[np.float32]
    """Unit vectors, shape (n, d)."""
    digest: str
    """A hash of the content, which names the backend."""


def read_word2vec(path: str | Path, max_words: int) -> WordVectors:
    """Read the first ``max_words`` words of a file.

    Raises:
        BackendError: the file cannot be read, or has another format.
    """
    path = Path(path)
    try:
        with _open(path) as file:
            # A longer first line means another format; do not read a huge line.
            header = file.readline(100)
            try:
                total, width = (int(part) for part in header.split())
                if total < 1 or width < 1:
                    raise ValueError
            except ValueError:
                raise BackendError(
                    f"{path}: is not in word2vec's format; expected two numbers (words and "
                    f"dimensions) in its first line, got {header[:40]!r}"
                ) from None
            # Memory is allocated for the words that are read, not for all.
            count = min(total, max_words)
            rows = np.zeros((count, width), dtype=np.float32)
            words = []
            read_rows = _read_binary if _has_binary_rows(path, width) else _read_text
            for index, (word, row) in enumerate(read_rows(file, count, width, path)):
                words.append(word)
                rows[index] = row
    except MemoryError:
        raise BackendError(
            f"{path}: not enough memory for the numbers of words and dimensions in its first line"
        ) from None
    except (OSError, EOFError, ValueError, OverflowError, zlib.error) as error:
        cause = getattr(error, "strerror", None) or error
        raise BackendError(f"{path}: cannot be read ({cause})") from None
    # One NaN would make every cosine NaN.
    if not np.isfinite(rows).all():
        raise BackendError(f"{path}: holds numbers that are not finite")
    # By content: the name of the backend is part of cache keys.
    digest = hashlib.blake2b(rows.tobytes(), digest_size=8)
    digest.update("\n".join(words).encode())
    # Some files have a row of zeros for unknown words.
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return WordVectors(tuple(words), rows, digest.hexdigest())


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        # The magic number of gzip; names are no evidence.
        packed = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def _has_binary_rows(path: Path, width: int) -> bool:
    """Whether the line after the header is anything but a word and ``width`` numbers as text."""
    with _open(path) as file:
        file.readline(100)
        line = file.readline(MAX_LINE_BYTES)
    parts = line.split()
    if len(parts) != width + 1:
        return True
    try:
        [float(part) for part in parts[1:]]
    except ValueError:
        return True
    return False


def _read_text(
    file: BinaryIO, count: int, width: int, path: Path
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    for number in range(count):
        # A word may contain spaces, so the numbers are counted from the end.
        parts = file.readline().rstrip(b"\r\n").rstrip(b" ").split(b" ")
        try:
            row = np.array([float(part) for part in parts[-width:]], dtype=np.float32)
            if len(parts) <= width:
                raise ValueError
        except ValueError:
            raise BackendError(
                f"{path}: line {number + 2}: expected a word and {width} numbers"
            ) from None
        yield b" ".join(parts[:-width]).decode("utf-8", "replace"), row


def _read_binary(
    file: BinaryIO, count: int, width: int, path: Path
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    for number in range(count):
        word = bytearray()
        while (byte := file.read(1)) != b" ":
            if not byte or len(word) > MAX_WORD_BYTES:
                raise BackendError(f"{path}: word {number + 1} of {count:,} has no end")
            # Some writers end each vector with a line end, which then stands before the next word.
            if byte != b"\n" or word:
                word += byte
        data = file.read(4 * width)
        # A download that broke off.
        if len(data) != 4 * width:
            raise BackendError(f"{path}: ends within word {number + 1} of {count:,}")
        yield word.decode("utf-8", "replace"), np.frombuffer(data, dtype="<f4")


MAX_NEIGHBOURS = 1000
"""Neighbours that are considered for a request."""
MAX_COSINE = 0.9
"""Words with at least this cosine count as synonyms, and are no substitutes."""
DEFAULT_WORDS = 200_000
"""Words that are read from a file, which lists the most frequent ones first."""

Floats = NDArray[np.float32]


def _parse_count(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


@scheme(
    "word2vec",
    kind="distractors",
    form="word2vec:FILE",
    options={"words": _parse_count},
    target="a file, as in word2vec:FILE",
    path="file",
    slow=True,
)
class NearWordsOfFile:
    """Finds the nearest words by cosine, without synonyms above the cap.

    A word is looked up as written, then in lower case; several words joined by ``_``, then by the
    mean of their vectors.
    """

    limits = BatchLimits(items=256, tokens=None)

    def __init__(self, path: str, words: int = DEFAULT_WORDS) -> None:
        """Read the first ``words`` of a file; raises as :func:`read_word2vec`."""
        vectors = read_word2vec(path, words)
        self.name = f"embedding:word2vec-{vectors.digest}"
        self._vectors = vectors
        self._rows = {word: i for i, word in enumerate(vectors.words)}

    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:
        """Return up to k of the nearest words of each request, whatever their part of speech."""
        return [self._find_nearest(request) for request in requests]

    def _find_nearest(self, request: SubstitutesRequest) -> list[str]:
        vector = self._find_vector(request.words)
        if vector is None or not request.k:
            return []
        cosines = self._vectors.rows @ vector
        # `argpartition` finds the nearest without sorting all words.
        count = min(MAX_NEIGHBOURS, len(cosines))
        nearest = np.argpartition(-cosines, count - 1)[:count]
        # By cosine, then by frequency: the order of equal cosines must not depend on the platform.
        ordered = nearest[np.lexsort((nearest, -cosines[nearest]))]
        words = (self._vectors.words[i] for i in ordered if cosines[i] < MAX_COSINE)
        return list(dict.fromkeys(word.replace("_", " ") for word in words))[: request.k]

    def _find_vector(self, words: str) -> Floats | None:
        rows, joined = self._rows, words.replace(" ", "_")
        # Google's vectors join phrases by "_" and keep capitals.
        for form in (joined, joined.lower()):
            if form in rows:
                return np.asarray(self._vectors.rows[rows[form]])
        word_rows = [rows.get(word, rows.get(word.lower())) for word in words.split()]
        # A mean over only some of the words would be another meaning.
        if None in word_rows or not word_rows:
            return None
        mean = self._vectors.rows[[row for row in word_rows if row is not None]].mean(axis=0)
        norm = float(np.linalg.norm(mean))
        return np.asarray(mean / norm, dtype=np.float32) if norm > 0 else None
