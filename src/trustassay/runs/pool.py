"""The samples of a pool, with random access in a file."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from trustassay.calls.models import SampleModels
from trustassay.capabilities import Models
from trustassay.runs.hashing import hash64
from trustassay.runs.stages import Stage, StageModels
from trustassay.sample import Sample

__all__ = ["StoredPool", "WholePool"]


class StoredPool:
    """Samples in canonical JSON Lines; only their places and ids' hashes are held in memory.

    Where the pool is a file of its own, ``stages`` fill what a sample lacks when it is wanted, and
    ``run`` holds the samples of the run.
    """

    def __init__(
        self, path: Path, stages: Sequence[Stage] = (), run: StoredPool | None = None
    ) -> None:
        self._path, self._stages, self._run = path, stages, run
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

    @property
    def own(self) -> StoredPool:
        """The samples of the run itself."""
        return self if self._run is None else self._run

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

    async def filled(self, index: int, models: Models, /) -> Sample:
        """Return a sample with the references it lacked; asked once, since calls are stored."""
        sample = self[index]
        for stage in self._stages:
            if stage.field == "references" and stage.lacks(sample):
                sample = (await stage.fill(sample, cast(StageModels, models))).sample
        return sample

    def index(self, sample_id: str) -> int | None:
        """Return the position of the sample with this id; ``None`` if there is none."""
        wanted = np.uint64(hash64(sample_id))
        place = int(np.searchsorted(self._hashes, wanted, sorter=self._by_hash))
        if place == len(self._by_hash):
            return None
        found = int(self._by_hash[place])
        return found if self._hashes[found] == wanted else None


class WholePool(StoredPool):
    """All samples of an input of which the run scores a shard: to the run they are its own.

    They are as they were before the stages; those that are wanted are filled, each once.
    """

    def __init__(self, path: Path, stages: Sequence[Stage] = ()) -> None:
        super().__init__(path, stages)
        self.failures = 0
        """How often a stage could not fill a sample."""

    async def filled(self, index: int, models: Models, /) -> Sample:
        """Return a sample as its own shard's run fills it; the calls count for no sample."""
        sample = self[index]
        own = cast(SampleModels, models).uncounted()
        for stage in self._stages:
            if stage.lacks(sample) and not stage.problems(sample):
                found = await stage.fill(sample, cast(StageModels, own))
                self.failures += len(found.failures)
                sample = found.sample
        return sample
