"""The samples of a pool, with random access in a file."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from trustassay.runs.hashing import hash64
from trustassay.sample import Sample

__all__ = ["StoredPool"]


class StoredPool:
    """Samples in canonical JSON Lines; only their places and ids' hashes are held in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        places, hashes = array("q"), array("Q")
        offset = 0
        with path.open("rb") as file:
            for line in file:
                places.append(offset)
                hashes.append(hash64(json.loads(line)["id"]))
                offset += len(line)
        self._places = np.array(places, dtype=np.int64)
        self._hashes = np.array(hashes, dtype=np.uint64)
        self._by_hash = np.argsort(self._hashes, kind="stable")

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int, /) -> Sample:
        with self._path.open("rb") as file:
            file.seek(int(self._places[index]))
            return Sample.parse(json.loads(file.readline()))

    def __iter__(self) -> Iterator[Sample]:
        with self._path.open("rb") as file:
            for line in file:
                yield Sample.parse(json.loads(line))

    def index(self, sample_id: str) -> int | None:
        """Return the position of the sample with this id; ``None`` if there is none."""
        wanted = np.uint64(hash64(sample_id))
        place = int(np.searchsorted(self._hashes, wanted, sorter=self._by_hash))
        if place == len(self._by_hash):
            return None
        found = int(self._by_hash[place])
        return found if self._hashes[found] == wanted else None
