"""``word2vec:FILE``: the words nearest to others in a file of vectors in word2vec's two formats.

Both formats begin with a line ``WORDS DIMENSIONS``. Text: a word and its numbers on each line.
Binary: the word, a space, and its numbers as little-endian float32, with or without a line's end
after them. Either may be compressed by gzip. Nothing is executed: there is no pickle in them.
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
from trustassay.capabilities import BatchLimits, SubstitutesRequest
from trustassay.errors import BackendError

LONGEST_WORD = 1000
"""Bytes of a word; a longer one means that the file is of another kind."""
SAMPLE = 1 << 16


@dataclass(frozen=True, slots=True)
class WordVectors:
    """Words and their unit vectors, shape (n, d); ``digest`` is a mark of the content."""

    words: tuple[str, ...]
    rows: NDArray[np.float32]
    digest: str


def read_word2vec(path: str | Path, most: int) -> WordVectors:
    """Read the first ``most`` words of a file.

    Raises:
        BackendError: it cannot be read, or holds something else.
    """
    path = Path(path)
    try:
        with _opened(path) as file:
            header = file.readline(100)
            try:
                total, width = (int(part) for part in header.split())
                if total < 1 or width < 1:
                    raise ValueError
            except ValueError:
                raise BackendError(
                    f"{path}: is not in word2vec's format; its first line should be two numbers "
                    f"(words and dimensions), and is {header[:40]!r}"
                ) from None
            count = min(total, most)
            rows = np.zeros((count, width), dtype=np.float32)
            words = []
            read = _binary if _is_binary(path, width) else _text
            for place, (word, row) in enumerate(read(file, count, width, path)):
                words.append(word)
                rows[place] = row
    except MemoryError:
        raise BackendError(
            f"{path}: there is not enough memory for the words and dimensions of its first line"
        ) from None
    except (OSError, EOFError, ValueError, OverflowError, zlib.error) as error:
        words_of = getattr(error, "strerror", None) or error
        raise BackendError(f"{path}: cannot be read ({words_of})") from None
    if not np.isfinite(rows).all():
        raise BackendError(f"{path}: holds numbers that are not finite")
    digest = hashlib.blake2b(rows.tobytes(), digest_size=8)
    digest.update("\n".join(words).encode())
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return WordVectors(tuple(words), rows, digest.hexdigest())


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def _is_binary(path: Path, width: int) -> bool:
    """Whether what follows the first word is not the text of ``width`` numbers."""
    with _opened(path) as file:
        file.readline(100)
        line = file.readline(SAMPLE)
    parts = line.split()
    if len(parts) != width + 1:
        return True
    try:
        [float(part) for part in parts[1:]]
    except ValueError:
        return True
    return False


def _text(
    file: BinaryIO, count: int, width: int, path: Path
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    for number in range(count):
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


def _binary(
    file: BinaryIO, count: int, width: int, path: Path
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    for number in range(count):
        word = bytearray()
        while (byte := file.read(1)) != b" ":
            if not byte or len(word) > LONGEST_WORD:
                raise BackendError(f"{path}: word {number + 1} of {count:,} does not end")
            if byte != b"\n" or word:
                word += byte
        data = file.read(4 * width)
        if len(data) != 4 * width:
            raise BackendError(f"{path}: breaks off at word {number + 1} of {count:,}")
        yield word.decode("utf-8", "replace"), np.frombuffer(data, dtype="<f4")


NEAREST = 1000
"""Neighbours that are looked at."""
CAP = 0.9
"""Cosine from which on two words count as saying the same."""
WORDS = 200_000
"""Words that are read of a file, the most frequent of which stand first."""

Floats = NDArray[np.float32]


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


@scheme(
    "word2vec",
    kind="distractors",
    form="word2vec:FILE",
    options={"words": _count},
    target="a file, as in word2vec:FILE",
    path="file",
    slow=True,
)
class NearWordsOfFile:
    """Nearest words by cosine; two above the cap say the same. Words are taken as they are written,
    else in small letters; several are joined by ``_``, else the mean of their vectors is taken."""

    limits = BatchLimits(items=256, tokens=None)

    def __init__(self, path: str, words: int = WORDS) -> None:
        """Read the first ``words`` of a file; raises as :func:`read_word2vec`."""
        vectors = read_word2vec(path, words)
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
