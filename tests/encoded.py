"""What the embedded encoders returned, kept for all tests of a session and their commands.

An encoder reads each item by itself, so that the same tokens give the same numbers to the bit, and
many tests have it read the same. The tests of the encoders themselves go without
(``tests/backends/test_embedded.py``).
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.backends import embedded

FOLDER = "TRUSTASSAY_TESTS_ENCODED"
"""The variable of the environment that names the folder of what is kept."""
KEY = 16


class Kept:
    """A file of keys and rows of ``width`` numbers that several processes append to."""

    def __init__(self, path: Path, width: int) -> None:
        self._file = path.open("a+b", buffering=0)
        self._size = KEY + 4 * width
        self._rows: dict[bytes, bytes] = {}
        self._read = 0
        self._lock = threading.Lock()

    def find(self, key: bytes) -> bytes | None:
        if key not in self._rows:
            self._catch_up()
        return self._rows.get(key)

    def add(self, key: bytes, row: bytes) -> None:
        self._rows[key] = row
        self._file.write(key + row)  # appended as a whole, whoever else writes

    def _catch_up(self) -> None:
        with self._lock:
            whole = os.fstat(self._file.fileno()).st_size // self._size * self._size
            found = os.pread(self._file.fileno(), whole - self._read, self._read)
            for start in range(0, len(found), self._size):
                one = found[start : start + self._size]
                self._rows[one[:KEY]] = one[KEY:]
            self._read = whole


@functools.cache
def _kept(folder: str, width: int) -> Kept:
    return Kept(Path(folder, str(width)), width)


def install() -> None:
    """Have the encoders of the shipped weights look for what is kept, in this process."""
    shipped = embedded.weights_folder()
    start, read = embedded.Encoder.__init__, embedded.Encoder._run_item

    @functools.wraps(start)
    def started(self: Any, name: str, folder: Path, threads: int, output: str = "") -> None:
        start(self, name, folder, threads, output)
        self.shipped = folder == shipped and not output

    @functools.wraps(read)
    def once(self: Any, tokens: embedded.EncodedText) -> embedded.Floats:
        folder = os.environ.get(FOLDER)
        if not (folder and self.shipped):
            return read(self, tokens)
        kept = _kept(folder, self.width)
        told = array("q", [*tokens.ids, -1, *tokens.kinds]).tobytes()
        key = hashlib.blake2b(told, digest_size=KEY).digest()
        row = kept.find(key)
        if row is None:
            made = read(self, tokens)
            kept.add(key, made.tobytes())
            return made
        return np.frombuffer(row, dtype=np.float32)[None].copy()

    change: Any = setattr
    change(embedded.Encoder, "__init__", started)
    change(embedded.Encoder, "_run_item", once)
