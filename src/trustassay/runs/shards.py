"""An input in shards, each of which is scored by itself: on another machine, or at another time.

Metrics that look beyond a sample need the whole beside its shards.

A sample's shard follows from its id alone. Each line holds, in the field ``trustassay_shard``, to
which shard of what it belongs, and its place in the input, so a run of a shard says this itself.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from trustassay.calls.backends import Backends
from trustassay.errors import RunFolderError, UsageError
from trustassay.files import named
from trustassay.metric import Metric
from trustassay.runs.hashing import hash64
from trustassay.runs.intake import SHARD, Intake, Source, admit
from trustassay.runs.lines import sample_id
from trustassay.runs.options import RunOptions
from trustassay.sample import Problem, Sample, clean

__all__ = ["MOST_SHARDS", "WHOLE", "Shard", "Shards", "name_of_whole", "split"]

MOST_SHARDS = 400
"""A merge holds two files of each open, and a process may usually have 1,024."""
WHOLE = ".whole.jsonl"
"""What the name of the file of all samples ends with."""
NO_BACKENDS = Backends()
_SUFFIX = re.compile(r"\.shard-\d+-of-\d+\.jsonl$")


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of :func:`split`: its number, and how many samples it holds."""

    path: Path
    number: int
    samples: int


@dataclass(frozen=True, slots=True)
class Shards:
    """What :func:`split` wrote; a shard that would be empty has no file.

    whole: all samples in one file, where that was asked for.
    """

    shards: tuple[Shard, ...]
    intake: Intake
    into: int
    whole: Path | None = None


async def split(
    source: Source,
    target: Path,
    into: Callable[[int], int],
    options: RunOptions,
    *,
    metrics: Sequence[Metric] = (),
    backends: Backends = NO_BACKENDS,
    keep_whole: bool = False,
) -> Shards:
    """Write the samples of ``source`` into the new folder ``target``, in full or not at all.

    ``into`` returns the number of shards for a number of samples. With ``metrics`` the samples are
    checked as those of their run. ``keep_whole`` also writes all samples into one file, as the pool
    of metrics that look beyond a sample.

    Raises:
        BadInputError, InputError: the input has faults; nothing was written.
        RunFolderError: ``target`` exists already.
        ValueError: the number of shards is not between 1 and 400; as
            :func:`~trustassay.runs.intake.admit`.
    """
    if target.exists():
        raise RunFolderError(f"{target}: exists already; choose another folder, or remove it")
    part = target.with_name(f".{target.name}.part")
    if part.exists():  # of a killed process
        shutil.rmtree(part)
    part.mkdir(parents=True)
    try:
        whole = part / "samples.jsonl"
        intake = await admit(source, whole, metrics, backends, options, _unmarked)
        number = into(intake.inventory.samples)
        if not 1 <= number <= MOST_SHARDS:
            raise UsageError(f"shards: expected 1 to {MOST_SHARDS}, got {number}")
        name = Path(clean(str(source))).name if isinstance(source, str | Path) else "samples"
        shards = _distribute(whole, name, intake, number)
        if keep_whole:
            whole = whole.replace(part / f"{name}{WHOLE}")
        else:
            whole.unlink()
        part.replace(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    placed = (dataclasses.replace(one, path=target / one.path.name) for one in shards)
    kept = target / whole.name if keep_whole else None
    return Shards(tuple(placed), intake, number, kept)


def name_of_whole(path: str) -> str:
    """Return the name of the input of which a path names a shard."""
    return _SUFFIX.sub("", Path(path).name)


def _unmarked(sample: Sample) -> list[Problem]:
    if SHARD not in sample.metadata:
        return []
    return [Problem(SHARD, "is there already: the input is a shard; split the whole input")]


def _distribute(whole: Path, name: str, intake: Intake, into: int) -> Iterator[Shard]:
    """Write each line of ``whole`` into the file of its shard, next to it."""
    counts: dict[int, int] = {}
    files: dict[int, IO[bytes]] = {}
    mark = {"of": intake.sha256, "samples": intake.inventory.samples, "skipped": intake.faulty}
    width = len(str(into - 1))
    paths = {n: whole.with_name(f"{name}.shard-{n:0{width}d}-of-{into}.jsonl") for n in range(into)}
    with ExitStack() as stack, whole.open("rb") as lines, named(whole.parent):
        for order, line in enumerate(lines):
            number = hash64(sample_id(line)) % into
            if number not in files:
                files[number] = stack.enter_context(paths[number].open("wb"))
            own = json.dumps({**mark, "into": into, "number": number, "order": order})
            files[number].write(line.rstrip()[:-1] + f', "{SHARD}": {own}}}\n'.encode())
            counts[number] = counts.get(number, 0) + 1
    return (Shard(paths[number], number, counts[number]) for number in sorted(counts))
