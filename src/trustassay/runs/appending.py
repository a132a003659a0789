"""A run whose input grows: of the same command tomorrow the new samples alone are scored."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.errors import RunFolderError, UsageError
from trustassay.files import whole
from trustassay.metric import Metric
from trustassay.runs.counts import DRAWN, GROWN
from trustassay.runs.fill import Stage
from trustassay.runs.folder import RunFolder, check_settings
from trustassay.runs.lines import encoded_sample, hash64, located_lines, sample_id
from trustassay.sample import Problem, Sample

ANOTHER = "choose another --out to score all"


def check_append(metrics: Sequence[Metric], *, second: bool) -> None:
    """Raise :class:`UsageError` if new samples would change what is found of earlier ones."""
    whys = [f"{metric.name} compares answers with others" for metric in metrics if metric.pool]
    if whys := whys + ["a second reader's part is drawn from all answers"] * second:
        raise UsageError(f"append: earlier scores would change, as {whys[0]}")


class StoredSamples:
    """The samples that a run has, 24 bytes of each, as a check of those that its input has today.

    Fields that the run filled (``stages``), as a response, may be absent today.
    """

    def __init__(self, folder: RunFolder, stages: Sequence[Stage]) -> None:
        self._folder, self._stages = folder, stages
        lines = located_lines(folder.samples_path)
        rows = ((hash64(sample_id(line)), hash64(line.decode()), at) for at, line in lines)
        stored = np.sort(np.fromiter(rows, dtype="u8,u8,i8"))
        self._ids, self._contents, self._at = (stored[name] for name in ("f0", "f1", "f2"))

    def _place(self, own_id: str) -> int | None:
        key = np.uint64(hash64(own_id))
        place = int(np.searchsorted(self._ids, key))
        return place if place < len(self._ids) and self._ids[place] == key else None

    def _line(self, place: int) -> bytes:
        with self._folder.samples_path.open("rb") as file:
            file.seek(int(self._at[place]))
            return file.readline()

    def __call__(self, sample: Sample) -> list[Problem]:
        """Return the fields of a sample that differ from what the run has of its id."""
        place, line = self._place(sample.id), encoded_sample(sample)
        if place is None or self._contents[place] == np.uint64(hash64(line.decode())):
            return []
        stored, today = json.loads(self._line(place)), json.loads(line)
        keys = today if any(stage.lacks(sample) for stage in self._stages) else today | stored
        message = f"was changed since {sample.id!r} was scored; {ANOTHER} again"
        return [Problem(key, message) for key in keys if stored.get(key) != today.get(key)]

    def _join(self, part: Path) -> bool:
        """Put what the run has into the file of today's samples; return whether any are new."""
        gone, new = np.ones(len(self._ids), dtype=bool), False
        with part.open("rb") as today, whole(part) as file:
            for line in today:
                if (place := self._place(sample_id(line))) is None:
                    new = bool(file.write(line))
                else:
                    gone[place] = not file.write(self._line(place))
            if gone.any():
                first = sample_id(self._line(int(np.flatnonzero(gone)[0])))
                count = f"{gone.sum():,} of {len(gone):,} scored samples, as {first!r},"
                why = f"{count} were changed or are not in the input any more; {ANOTHER}"
                raise RunFolderError(f"{self._folder.path}: {why}")
        return new

    def grow(self, before: Mapping[str, Any], now: dict[str, Any], part: Path) -> None:
        """Add today's samples, the file ``part``, to the run, and keep its figures beside today's.

        Raises:
            RunFolderError: one is gone, or a setting ``now`` is not that of ``before`` (run.json).
        """
        new, of_input = self._join(part), {name: now[name] for name in ("skipped", "samples")}
        if DRAWN in before and DRAWN in now:
            counts = {name: now[DRAWN][name] for name in ("answers", "of", "units")}
            of_input[DRAWN] = {**before[DRAWN], **counts}
        check_settings(self._folder.path, {**before, **of_input}, now)
        if new and (summary := self._folder.read_summary()):
            now[GROWN] = {"samples": before["samples"]["samples"], "metrics": summary["metrics"]}
        self._folder.write_json("run", {**before, **now})
        part.replace(self._folder.samples_path)
        if any(before[name] != value for name, value in of_input.items()):
            self._folder.drop_outputs()
