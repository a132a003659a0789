"""An input in shards, each of which is scored by itself: on another machine, or at another time.

Metrics that look beyond a sample also need the whole input.

A sample's shard follows from its id alone. Each line holds, in the field ``trustassay_shard``, to
which shard of what it belongs, and its place in the input, so a run of a shard says this itself.
"""

import dataclasses
import heapq
import json
import re
import shlex
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

from trustassay.calls.backends import Backends
from trustassay.calls.client import CallOptions
from trustassay.calls.prices import Prices
from trustassay.calls.store import CallStore
from trustassay.data.places import name_of
from trustassay.errors import RunFolderError, UsageError
from trustassay.files import named, whole
from trustassay.metric import Inventory, Metric
from trustassay.progress import SILENT, Steps
from trustassay.runs.fill import Outcome, stages_of
from trustassay.runs.finished import RunOutcome
from trustassay.runs.folder import (
    ABOUT,
    ENDED,
    STARTED,
    RunFolder,
    metrics_of,
    setting_changes,
)
from trustassay.runs.intake import SHARD, WHY, Intake, RunOptions, ShardMark, Source, admit
from trustassay.runs.lines import Step, checked_identity, hash64, sample_id
from trustassay.runs.prepare import POOL, PREPARATION, Preparation
from trustassay.runs.results import write_outputs
from trustassay.sample import Problem, Sample, clean

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
        stages = stages_of(metrics, backends, options.filling)
        intake = await admit(source, whole, metrics, backends, stages, options, _unmarked)
        number = into(intake.inventory.samples)
        if not 1 <= number <= MOST_SHARDS:
            raise UsageError(f"shards: expected 1 to {MOST_SHARDS}, got {number}")
        name = name_of(clean(str(source))) if isinstance(source, str | Path) else "samples"
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


def _name(whole: str, number: int, into: int) -> str:
    """Return the name of a shard's file; ``whole`` is that of the input."""
    return f"{whole}.shard-{number:0{len(str(into - 1))}d}-of-{into}.jsonl"


def _unmarked(sample: Sample) -> list[Problem]:
    if SHARD not in sample.metadata:
        return []
    return [Problem(SHARD, "is there already: the input is a shard; split the whole input")]


def _distribute(whole: Path, name: str, intake: Intake, into: int) -> Iterator[Shard]:
    """Write each line of ``whole`` into the file of its shard, next to it."""
    counts: Counter[int] = Counter()
    files: dict[int, IO[bytes]] = {}
    mark = {"of": intake.sha256, "samples": intake.inventory.samples, "skipped": intake.faulty}
    paths = {number: whole.with_name(_name(name, number, into)) for number in range(into)}
    with ExitStack() as stack, whole.open("rb") as lines, named(whole.parent):
        for order, line in enumerate(lines):
            number = hash64(sample_id(line)) % into
            if number not in files:
                files[number] = stack.enter_context(paths[number].open("wb"))
            own = json.dumps({**mark, "into": into, "number": number, "order": order})
            files[number].write(line.rstrip()[:-1] + f', "{SHARD}": {own}}}\n'.encode())
            counts[number] += 1
    return (Shard(paths[number], number, counts[number]) for number in sorted(counts))


MARK = ".merging"
"""The file that says that a folder is the unfinished result of a merge."""
OWN = {"input", "command", WHY, "samples", "skipped", POOL, ABOUT, STARTED, ENDED}
"""What each shard has of its own in ``run.json``."""
IN_SOME = {"answering", "filling"}
"""Settings that a shard lacks in which no sample had to be filled."""


class UnfinishedShardsError(RunFolderError):
    """Shards are missing, or their runs are not finished."""


@dataclass(frozen=True, slots=True)
class _ShardRun:
    """The run of a shard: its folder, ``run.json``, and the mark of its first sample."""

    folder: RunFolder
    run: Mapping[str, Any]
    mark: ShardMark


class Merged(NamedTuple):
    """What was merged: the folder, as :func:`~trustassay.runs.execute.execute` tells of a run.

    repeated: calls of chat models that more than one shard made and paid for.
    """

    folder: RunFolder
    outcome: RunOutcome
    repeated: int


def merge_runs(  # noqa: PLR0913 - two callers name them all
    runs: Sequence[Path],
    out: Path,
    *,
    pool: Path | None = None,
    prices: Prices | None = None,
    metrics: Sequence[Metric] = (),
    source: str | None = None,
    command: str | None = None,
    steps: Steps = SILENT,
) -> Merged:
    """Write the run of the whole input into ``out``; a killed merge begins again.

    ``pool`` is the file of all samples, where metrics looked beyond theirs and it is not where the
    runs found it. ``metrics`` are those of the runs, where they are not all installed. ``source``
    names the input, where its name should not be taken from those of the shards; ``command`` is
    kept in ``run.json``.

    Raises:
        UnfinishedShardsError: shards are missing or unfinished; the message names the commands.
        RunFolderError: the runs are not of the shards of one input, or of other settings; ``out``
            holds something else.
        UnknownNameError: a metric is not installed.
        StoppedError: ``steps`` were asked to stop.
    """
    shards = [_opened(path) for path in runs]
    _check_settings(shards)
    _check_complete(shards)
    preparation = _preparation(shards[0], pool)
    content = _run_of_whole(shards, source, command)
    metrics = metrics or list(metrics_of(content).values())
    if absent := content["metrics"].keys() - {metric.name for metric in metrics}:
        raise RunFolderError(f"metric {min(absent)} of these runs is not installed here")
    folder = RunFolder(out)
    with ExitStack() as stack:
        for one in (folder, *(shard.folder for shard in shards)):
            stack.enter_context(one.claimed())
        seconds = sum((shard.folder.read_summary() or {})["seconds"] for shard in shards)
        inventory = Inventory(**{k: v for k, v in content["samples"].items() if k != "sha256"})
        intake = Intake(content["samples"]["sha256"], inventory, [], content["skipped"])
        outcome = RunOutcome(metrics, intake, 0, {}, Outcome(), {}, seconds)
        if not _begun(folder, content):
            return Merged(folder, outcome, 0)
        folder.drop_outputs()
        total = content["samples"]["samples"]
        with steps.begin("merging", total) as step:
            _merge_lines(shards, folder, list(content["metrics"]), step)
        files = [shard.folder.calls_path for shard in shards]
        if preparation:
            files.append(preparation.calls_path)
        with steps.begin("merging calls", len(files)) as step:
            repeated = _merge_calls(files, folder.calls_path, step)
        if made := preparation and preparation.read():
            folder.write_json("prepared", made)
        folder.write_json("run", content)
        calls = CallOptions(prices=prices or Prices())
        options = RunOptions(seed=content["seed"], calls=calls)
        write_outputs(folder, metrics, seconds, options, steps)
        (out / MARK).unlink()
    return Merged(folder, outcome, repeated)


def _begun(folder: RunFolder, content: Mapping[str, Any]) -> bool:
    """Mark the folder as one that a merge writes; ``False`` if this merge is finished there."""
    mark = folder.path / MARK
    if mark.exists():
        return True
    if any(path for path in folder.path.iterdir() if not path.name.startswith(".")):
        if folder.read_run() == content and folder.finished(report=True):
            return False
        raise RunFolderError(f"{folder.path}: is not empty; choose another --out")
    mark.touch()
    return True


def _opened(path: Path) -> _ShardRun:
    folder = RunFolder(path)
    run = folder.read_run()
    if run is None or not folder.samples_path.exists():
        raise RunFolderError(f"{path}: holds no run")
    record = next(folder.sample_records(), {})
    mark = ShardMark.take(record)
    if mark is None:
        raise RunFolderError(f"{path}: is not the run of a shard (see trustassay shard)")
    return _ShardRun(folder, run, mark)


# checks


def _check_settings(shards: Sequence[_ShardRun]) -> None:
    """Refuse runs of different inputs or settings, and two of one shard."""
    first = shards[0]
    by_number: dict[int, Path] = {}
    for shard in shards:
        result = [
            f"{name} is {getattr(shard.mark, name)!r}, in {first.folder.path} it is {wanted!r}"
            for name in ("of", "into")
            if getattr(shard.mark, name) != (wanted := getattr(first.mark, name))
        ]
        if result:
            message = "; ".join(result)
            raise RunFolderError(f"{shard.folder.path}: of another input or division: {message}")
        if other := by_number.get(shard.mark.number):
            raise RunFolderError(
                f"{shard.folder.path} and {other}: both of shard {shard.mark.number}, so their "
                "samples have the same ids; give one of them"
            )
        by_number[shard.mark.number] = shard.folder.path
        changes = list(
            setting_changes(_settings(first.run, shard.run), _settings(shard.run, first.run))
        )
        if changes:
            raise RunFolderError(
                f"{shard.folder.path}: has other settings than {first.folder.path}. Different: "
                + "; ".join(changes)
            )


def _settings(run: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in which two runs have to agree."""
    lacking = IN_SOME - (run.keys() & other.keys())
    return {name: value for name, value in run.items() if name not in OWN | lacking}


def _check_complete(shards: Sequence[_ShardRun]) -> None:
    """Refuse what is not all of the input, and say what is to be done."""
    lines = [
        f"{shard.folder.path}: unfinished; run again: {_command(shard)}"
        for shard in shards
        if shard.folder.read_summary() is None
    ]
    mark = shards[0].mark
    result = sum(shard.run["samples"]["samples"] + shard.run["skipped"] for shard in shards)
    if result != mark.samples:
        given = {shard.mark.number for shard in shards}
        for number in sorted(set(range(mark.into)) - given):
            message = f"shard {number} of {mark.into}: not given; score it: "
            lines.append(message + _command(shards[0], number))
        if len(given) == mark.into:
            lines.append(
                f"the runs hold {result:,} of the {mark.samples:,} samples: a shard was not scored "
                "in full (--limit?)"
            )
    if lines:
        raise UnfinishedShardsError("not all shards are finished:\n" + "\n".join(lines))


def _command(shard: _ShardRun, number: int | None = None) -> str:
    """Return the command that scores a shard; for another one made from this one's."""
    source = Path(shard.run["input"])
    if number is not None:
        own = name_of_whole(source.name)
        source = source.with_name(_name(own, number, shard.mark.into))
    out = shard.folder.path if number is None else shard.folder.path.parent / source.name
    words = shlex.split(shard.run.get("command") or "")
    if number is None and words:
        return shlex.join(words)
    if not words:
        words = ["trustassay", "score", shard.run["input"], "--out", str(out)]
        return shlex.join([*words[:2], str(source), *words[3:]]) + " (and the run's options)"
    named = {shard.run["input"]: str(source)}
    words = [named.get(word, word) for word in words]
    for place, word in enumerate(words[:-1]):
        if word == "--out":
            words[place + 1] = str(out)
    return shlex.join(words)


def _preparation(shard: _ShardRun, pool: Path | None) -> Preparation | None:
    """Return what was prepared for all shards, if anything was; raises if it is not there."""
    if (key := shard.run.get(PREPARATION)) is None:
        return None
    result = Preparation(pool or Path(shard.run[POOL]), key)
    if not result.path.is_dir():
        raise RunFolderError(
            f"{result.path}: is missing, and the runs compared samples with all others; give "
            "--pool the file of all samples (NAME.whole.jsonl) beside it"
        )
    return result


# what is written


def _run_of_whole(
    shards: Sequence[_ShardRun], source: str | None, command: str | None
) -> dict[str, Any]:
    """Return ``run.json`` as one run of the whole input would have it."""
    mark = shards[0].mark
    content: dict[str, Any] = {}
    for shard in shards:
        for name in IN_SOME & shard.run.keys():
            content.setdefault(name, shard.run[name])
    counts = {
        one.name: sum(shard.run["samples"].get(one.name, 0) for shard in shards)
        for one in fields(Inventory)
    }
    left = {"command", WHY, POOL, PREPARATION, STARTED, ENDED}
    first = {name: value for name, value in shards[0].run.items() if name not in left}
    own = name_of_whole(first.pop("input"))
    return {
        "input": own if source is None else clean(source),
        **({"command": clean(command)} if command else {}),
        **_times(shards),
        **first,
        **content,
        "skipped": mark.skipped + sum(shard.run["skipped"] for shard in shards),
        "samples": {"sha256": mark.of, **counts},
    }


def _times(shards: Sequence[_ShardRun]) -> dict[str, str]:
    """Return the start of the first shard and the end of the last one.

    A time that a shard lacks, whose run an earlier version made, is left out: nobody knows it.
    """
    result = {}
    for name, choose in ((STARTED, min), (ENDED, max)):
        times = [shard.run.get(name) for shard in shards]
        known = [str(one) for one in times if one]
        if len(known) == len(times):
            result[name] = choose(known)
    return result


def _merge_lines(
    shards: Sequence[_ShardRun], folder: RunFolder, metrics: Sequence[str], step: Step
) -> None:
    """Write samples and assessments of all shards in the order of the whole input."""
    rows = heapq.merge(*(_rows(shard, metrics) for shard in shards), key=lambda row: row[0])
    last = -1
    with whole(folder.samples_path) as samples, whole(folder.assessments_path) as assessments:
        for order, sample, own in rows:
            if order == last:
                raise RunFolderError(f"two runs hold the sample {sample[:80]!r}")
            last = order
            samples.write(sample)
            assessments.writelines(own)
            step()


def _rows(shard: _ShardRun, metrics: Sequence[str]) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """Yield each sample's place in the whole input, its line, and those of its assessments."""
    folder, number = shard.folder, 0
    with folder.assessments_path.open("rb") as lines:
        for place, record in enumerate(folder.sample_records(), 1):
            mark = ShardMark.take(record)
            if mark is None or replace(mark, order=shard.mark.order) != shard.mark:
                raise folder.bad_sample(place, "belongs to no shard, or to another one")
            own = []
            for metric in metrics:
                number += 1
                own.append(line := lines.readline())
                if checked_identity(folder.assessments_path, line, number) != (
                    record["id"],
                    metric,
                ):
                    raise RunFolderError(
                        f"{folder.assessments_path}:{number}: expected {metric} of "
                        f"{record['id']!r}; delete summary.json and run: {_command(shard)}"
                    )
            yield mark.order, json.dumps(record).encode() + b"\n", own
        if lines.readline():
            raise RunFolderError(f"{folder.assessments_path}:{number + 1}: belongs to no sample")


def _merge_calls(files: Sequence[Path], target: Path, step: Callable[[], object]) -> int:
    """Write all calls into one file; return how many chat calls were made more than once.

    Of a call that one shard paid for and another took from the shared file, the paid one counts.
    """
    paths = [path for path in files if path.exists()]
    part = target.with_name(f".{target.name}.part")
    for left in part.parent.glob(f"{part.name}*"):  # of a killed process, with its journal
        left.unlink()
    if not paths:
        return 0
    CallStore(part).close()
    repeated = 0
    with closing(sqlite3.connect(part)) as store:
        store.execute("PRAGMA journal_mode = OFF")
        for path in paths:
            CallStore(path).close()  # what a killed process left in the journal, and the schema
            store.execute("ATTACH ? AS shard", [str(path)])
            result = store.execute(
                "SELECT COUNT(*) FROM shard.calls AS theirs JOIN calls ON calls.key = theirs.key "
                "WHERE NOT calls.cached AND NOT theirs.cached AND calls.capability = 'chat'"
            )
            repeated += result.fetchone()[0]
            store.execute(
                "INSERT INTO calls SELECT * FROM shard.calls WHERE TRUE ON CONFLICT (key) "
                "DO UPDATE SET cached = 0, prompt_tokens = excluded.prompt_tokens, "
                "reply_tokens = excluded.reply_tokens, seconds = excluded.seconds "
                "WHERE calls.cached AND NOT excluded.cached"
            )
            store.commit()
            store.execute("DETACH shard")
            step()
    part.replace(target)
    return repeated
