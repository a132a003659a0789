"""Divide an input into shards that are scored separately, and merge their runs.

Metrics that look beyond a sample also need the whole input.

A sample's shard follows from its id alone. The field ``trustassay_shard`` of each line names the
input, the shard and the sample's position in the input, so that the run of a shard can be merged
without any other record.
"""

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
from trustassay.core.files import make_private_folder, name_in_errors, open_atomic, open_new
from trustassay.core.metric import Inventory, Metric
from trustassay.core.progress import SILENT, StepProgress
from trustassay.core.sample import Problem, Sample, clean
from trustassay.errors import RunFolderError, UsageError
from trustassay.input.places import name_of
from trustassay.runs.fill import FillOutcome, choose_stages
from trustassay.runs.finished import RunOutcome
from trustassay.runs.folder import (
    ABOUT,
    ENDED,
    STARTED,
    RunFolder,
    list_setting_changes,
    load_metrics,
)
from trustassay.runs.intake import SHARD, WHY, Intake, RunOptions, ShardMark, Source, admit_samples
from trustassay.runs.lines import StepCallback, hash64, parse_sample_id, read_identity
from trustassay.runs.prepare import POOL, PREPARATION, Preparation
from trustassay.runs.results import write_outputs

MAX_SHARDS = 400
"""A merge opens two files of each shard, and a process may usually open 1,024."""
POOL_SUFFIX = ".whole.jsonl"
"""Ending of the name of the file of all samples."""
NO_BACKENDS = Backends()
MERGE_MARKER = ".merging"
"""Name of the file that marks a folder as an unfinished merge."""
SETTINGS_PER_SHARD = {"input", "command", WHY, "samples", "skipped", POOL, ABOUT, STARTED, ENDED}
"""Keys of ``run.json`` that differ between the shards of one input."""
OPTIONAL_SETTINGS = {"answering", "filling"}
"""Settings that ``run.json`` lacks if no sample of the shard needed to be filled."""
# The end of a shard's name: `.shard-3-of-8.jsonl`.
_SUFFIX = re.compile(r"\.shard-\d+-of-\d+\.jsonl$")


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of :func:`split`."""

    path: Path
    number: int
    """From 0."""
    samples: int
    """How many samples it holds."""


@dataclass(frozen=True, slots=True)
class Shards:
    """What :func:`split` wrote; a shard that would be empty has no file."""

    shards: tuple[Shard, ...]
    intake: Intake
    """What was read: counts and faults."""
    into: int
    """The number of shards, empty ones included."""
    pool_path: Path | None = None
    """The file of all samples, if it was requested."""


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
            :func:`~trustassay.runs.intake.admit_samples`.
    """
    if target.exists():
        raise RunFolderError(f"{target}: already exists; choose another --out, or remove it")
    part = target.with_name(f".{target.name}.part")
    # Written under another name first: a folder of the final name is always complete.
    if part.exists():  # left by a killed process
        shutil.rmtree(part)
    make_private_folder(part)
    try:
        samples_path = part / "samples.jsonl"
        stages = choose_stages(metrics, backends, options.filling)
        intake = await admit_samples(
            source, samples_path, metrics, backends, stages, options, _check_unmarked
        )
        number = into(intake.inventory.samples)
        if not 1 <= number <= MAX_SHARDS:
            raise UsageError(f"shards: expected 1 to {MAX_SHARDS}, got {number}")
        # Data frames and lists have no name.
        name = name_of(clean(str(source))) if isinstance(source, str | Path) else "samples"
        # Only here is the number of samples known, and with it the number of shards.
        shards = _distribute(samples_path, name, intake, number)
        if keep_whole:
            samples_path = samples_path.replace(part / f"{name}{POOL_SUFFIX}")
        else:
            samples_path.unlink()
        part.replace(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    moved = (replace(shard, path=target / shard.path.name) for shard in shards)
    pool_path = target / samples_path.name if keep_whole else None
    return Shards(tuple(moved), intake, number, pool_path)


def name_of_input(path: str) -> str:
    """Return the name of the input from the path of one of its shards."""
    return _SUFFIX.sub("", Path(path).name)


def _build_shard_name(name: str, number: int, into: int) -> str:
    """Return the name of a shard's file; ``name`` is that of the input."""
    return f"{name}.shard-{number:0{len(str(into - 1))}d}-of-{into}.jsonl"


def _check_unmarked(sample: Sample) -> list[Problem]:
    if SHARD not in sample.metadata:
        return []
    # Marks of a division of a division could not be merged.
    return [Problem(SHARD, "is present, so the input is a shard; divide the whole input instead")]


def _distribute(samples_path: Path, name: str, intake: Intake, into: int) -> Iterator[Shard]:
    """Write each line of ``samples_path`` into the file of its shard, in the same folder."""
    counts: Counter[int] = Counter()
    files: dict[int, IO[bytes]] = {}
    mark = {"of": intake.sha256, "samples": intake.inventory.samples, "skipped": intake.faulty}
    paths = {
        number: samples_path.with_name(_build_shard_name(name, number, into))
        for number in range(into)
    }
    with (
        ExitStack() as stack,
        samples_path.open("rb") as lines,
        name_in_errors(samples_path.parent),
    ):
        for order, line in enumerate(lines):
            number = hash64(parse_sample_id(line)) % into
            if number not in files:
                files[number] = stack.enter_context(open_new(paths[number]))
            shard_mark = json.dumps({**mark, "into": into, "number": number, "order": order})
            # The line is a JSON object: the mark is added before the closing brace, without
            # parsing it.
            files[number].write(line.rstrip()[:-1] + f', "{SHARD}": {shard_mark}}}\n'.encode())
            counts[number] += 1
    return (Shard(paths[number], number, counts[number]) for number in sorted(counts))


class UnfinishedShardsError(RunFolderError):
    """Shards are missing, or their runs are not finished."""


@dataclass(frozen=True, slots=True)
class _ShardRun:
    """The run of a shard."""

    folder: RunFolder
    run: Mapping[str, Any]
    """The content of its ``run.json``."""
    mark: ShardMark
    """The mark of its first sample."""


class MergeResult(NamedTuple):
    """The merged run."""

    folder: RunFolder
    outcome: RunOutcome
    """As :func:`~trustassay.runs.execute.execute` returns it."""
    repeated: int
    """The number of chat calls that more than one shard made and paid for."""


def merge_runs(  # noqa: PLR0913 - two callers name them all
    runs: Sequence[Path],
    out: Path,
    *,
    pool: Path | None = None,
    prices: Prices | None = None,
    metrics: Sequence[Metric] = (),
    source: str | None = None,
    command: str | None = None,
    steps: StepProgress = SILENT,
) -> MergeResult:
    """Write the run of the whole input into ``out``; a merge that was killed starts again.

    Args:
        pool: the file of all samples, if metrics needed it and it was moved since.
        metrics: those of the runs, if they are not all installed.
        source: the name of the input; by default it follows from the names of the shards.
        command: stored in ``run.json``.

    Raises:
        UnfinishedShardsError: shards are missing or unfinished; the message names the commands.
        RunFolderError: the runs are not of the shards of one input, or of other settings; ``out``
            holds something else.
        UnknownNameError: a metric is not installed.
        StoppedError: ``steps`` were asked to stop.
    """
    shards = [_open_shard_run(path) for path in runs]
    _check_settings(shards)
    _check_complete(shards)
    preparation = _open_preparation(shards[0], pool)
    content = _build_merged_run(shards, source, command)
    # Everything is checked before the first byte is written.
    metrics = metrics or list(load_metrics(content).values())
    if missing_metrics := content["metrics"].keys() - {metric.name for metric in metrics}:
        raise RunFolderError(
            f"the runs were scored with {min(missing_metrics)}, which is not installed here"
        )
    folder = RunFolder(out)
    with ExitStack() as stack:
        # Nobody may continue a shard, or merge into the same folder, in the meantime.
        for run_folder in (folder, *(shard.folder for shard in shards)):
            stack.enter_context(run_folder.claim())
        seconds = sum((shard.folder.read_summary() or {})["seconds"] for shard in shards)
        inventory = Inventory(**{k: v for k, v in content["samples"].items() if k != "sha256"})
        intake = Intake(content["samples"]["sha256"], inventory, [], content["skipped"])
        outcome = RunOutcome(metrics, intake, 0, {}, FillOutcome(), {}, seconds)
        if not _begin_merge(folder, content):
            return MergeResult(folder, outcome, 0)
        # Summary and report first: without them the folder counts as unfinished.
        folder.drop_outputs()
        total = content["samples"]["samples"]
        with steps.begin("merging", total) as step:
            _merge_lines(shards, folder, list(content["metrics"]), step)
        # One database of all calls, so that the merged run can be re-scored without a model.
        files = [shard.folder.calls_path for shard in shards]
        if preparation:
            files.append(preparation.calls_path)
        with steps.begin("merging calls", len(files)) as step:
            repeated = _merge_calls(files, folder.calls_path, step)
        if prepared := preparation and preparation.read():
            folder.write_json("prepared", prepared)
        # After samples and assessments: the folder is a run from here on.
        folder.write_json("run", content)
        calls = CallOptions(prices=prices or Prices())
        options = RunOptions(seed=content["seed"], calls=calls)
        write_outputs(folder, metrics, seconds, options, steps)
        # Last: a merge that is killed before starts again from the shards.
        (out / MERGE_MARKER).unlink()
    return MergeResult(folder, outcome, repeated)


def _begin_merge(folder: RunFolder, content: Mapping[str, Any]) -> bool:
    """Mark the folder as being merged into; return ``False`` if this merge is already finished."""
    mark = folder.path / MERGE_MARKER
    if mark.exists():
        return True
    # Hidden files are locks of ours, or of the file system.
    if any(path for path in folder.path.iterdir() if not path.name.startswith(".")):
        if folder.read_run() == content and folder.is_finished(report=True):
            return False
        raise RunFolderError(f"{folder.path}: is not empty; choose another --out")
    mark.touch()
    return True


def _open_shard_run(path: Path) -> _ShardRun:
    folder = RunFolder(path)
    run = folder.read_run()
    if run is None or not folder.samples_path.exists():
        raise RunFolderError(f"{path}: is not the folder of a run")
    record = next(folder.sample_records(), {})
    mark = ShardMark.take(record)
    if mark is None:
        raise RunFolderError(f"{path}: is not the run of a shard (see trustassay shard)")
    return _ShardRun(folder, run, mark)


# checks


def _check_settings(shards: Sequence[_ShardRun]) -> None:
    """Refuse runs of different inputs or settings, and two runs of one shard."""
    first = shards[0]
    by_number: dict[int, Path] = {}
    for shard in shards:
        result = [
            f"{name} is {getattr(shard.mark, name)!r}, in {first.folder.path} it is {expected!r}"
            for name in ("of", "into")
            if getattr(shard.mark, name) != (expected := getattr(first.mark, name))
        ]
        if result:
            message = "; ".join(result)
            raise RunFolderError(
                f"{shard.folder.path}: belongs to another input or division: {message}"
            )
        if other := by_number.get(shard.mark.number):
            raise RunFolderError(
                f"{shard.folder.path} and {other}: both are runs of shard {shard.mark.number}; "
                "leave one of them out"
            )
        by_number[shard.mark.number] = shard.folder.path
        # Compared pairwise: a shard without filled samples lacks settings that others have.
        changes = list_setting_changes(
            _select_comparable(first.run, shard.run), _select_comparable(shard.run, first.run)
        )
        if message := "; ".join(changes):
            raise RunFolderError(
                f"{shard.folder.path}: settings differ from those of {first.folder.path}: {message}"
            )


def _select_comparable(run: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in which two runs have to agree."""
    unset = OPTIONAL_SETTINGS - (run.keys() & other.keys())
    return {name: value for name, value in run.items() if name not in SETTINGS_PER_SHARD | unset}


def _check_complete(shards: Sequence[_ShardRun]) -> None:
    """Raise if shards are unfinished or missing, and name the commands that finish them."""
    lines = [
        f"{shard.folder.path}: unfinished; to finish it, run: {_build_command(shard)}"
        for shard in shards
        if shard.folder.read_summary() is None
    ]
    mark = shards[0].mark
    total = sum(shard.run["samples"]["samples"] + shard.run["skipped"] for shard in shards)
    # Compared by samples, not by shards: an empty shard has no file and no run.
    if total != mark.samples:
        numbers = {shard.mark.number for shard in shards}
        for number in sorted(set(range(mark.into)) - numbers):
            message = f"shard {number} of {mark.into}: its run is missing; to score it, run: "
            lines.append(message + _build_command(shards[0], number))
        if len(numbers) == mark.into:
            lines.append(
                f"the runs have only {total:,} of the {mark.samples:,} samples; a shard "
                "was probably scored with --limit"
            )
    if lines:
        raise UnfinishedShardsError("not all shards are finished:\n" + "\n".join(lines))


def _build_command(shard: _ShardRun, number: int | None = None) -> str:
    """Return the command that scores ``shard``, or shard ``number`` of the same input."""
    source = Path(shard.run["input"])
    if number is not None:
        name = name_of_input(source.name)
        source = source.with_name(_build_shard_name(name, number, shard.mark.into))
    out = shard.folder.path if number is None else shard.folder.path.parent / source.name
    arguments = shlex.split(shard.run.get("command") or "")
    # The command as it was typed.
    if number is None and arguments:
        return shlex.join(arguments)
    if not arguments:
        arguments = ["trustassay", "score", shard.run["input"], "--out", str(out)]
        return (
            shlex.join([*arguments[:2], str(source), *arguments[3:]])
            + " (with the run's other options)"
        )
    # The command of a missing shard is this one with other paths.
    replacements = {shard.run["input"]: str(source)}
    arguments = [replacements.get(argument, argument) for argument in arguments]
    for index, argument in enumerate(arguments[:-1]):
        if argument == "--out":
            arguments[index + 1] = str(out)
    return shlex.join(arguments)


def _open_preparation(shard: _ShardRun, pool: Path | None) -> Preparation | None:
    """Return what was prepared for all shards, or ``None``; raise if its folder is missing."""
    if (key := shard.run.get(PREPARATION)) is None:
        return None
    result = Preparation(pool or Path(shard.run[POOL]), key)
    if not result.path.is_dir():
        raise RunFolderError(
            f"{result.path}: is missing, but these runs compared samples with all others; set "
            "--pool to the file of all samples (NAME.whole.jsonl) that is next to it"
        )
    return result


# what is written


def _build_merged_run(
    shards: Sequence[_ShardRun], source: str | None, command: str | None
) -> dict[str, Any]:
    """Return ``run.json`` of a single run over the whole input."""
    mark = shards[0].mark
    content: dict[str, Any] = {}
    for shard in shards:
        # All shards that have these settings agree, as was checked.
        for name in OPTIONAL_SETTINGS & shard.run.keys():
            content.setdefault(name, shard.run[name])
    counts = {
        field.name: sum(shard.run["samples"].get(field.name, 0) for shard in shards)
        for field in fields(Inventory)
    }
    dropped = {"command", WHY, POOL, PREPARATION, STARTED, ENDED}
    first = {name: value for name, value in shards[0].run.items() if name not in dropped}
    input_name = name_of_input(first.pop("input"))
    return {
        "input": input_name if source is None else clean(source),
        **({"command": clean(command)} if command else {}),
        **_read_times(shards),
        **first,
        **content,
        "skipped": mark.skipped + sum(shard.run["skipped"] for shard in shards),
        "samples": {"sha256": mark.of, **counts},
    }


def _read_times(shards: Sequence[_ShardRun]) -> dict[str, str]:
    """Return the start of the first shard and the end of the last one.

    Runs of earlier versions have no times. If a shard lacks one, the merged run lacks it too.
    """
    result = {}
    for name, choose in ((STARTED, min), (ENDED, max)):
        times = [shard.run.get(name) for shard in shards]
        recorded = [str(time) for time in times if time]
        if len(recorded) == len(times):
            result[name] = choose(recorded)
    return result


def _merge_lines(
    shards: Sequence[_ShardRun], folder: RunFolder, metrics: Sequence[str], step: StepCallback
) -> None:
    """Write samples and assessments of all shards in the order of the whole input."""
    # Each shard keeps the order of the input, so merging needs one line of each in memory.
    rows = heapq.merge(*(_read_rows(shard, metrics) for shard in shards), key=lambda row: row[0])
    last = -1
    with (
        open_atomic(folder.samples_path) as samples,
        open_atomic(folder.assessments_path) as assessments,
    ):
        for order, sample, assessment_lines in rows:
            # Two samples at one position: one of the runs was copied or edited.
            if order == last:
                raise RunFolderError(f"two runs have the same sample: {sample[:80]!r}")
            last = order
            samples.write(sample)
            assessments.writelines(assessment_lines)
            step()


def _read_rows(
    shard: _ShardRun, metrics: Sequence[str]
) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """Yield each sample's position in the whole input, its line, and its assessments' lines.

    Raises:
        RunFolderError: samples and assessments of the run do not belong together.
    """
    folder, number = shard.folder, 0
    with folder.assessments_path.open("rb") as lines:
        for sample_number, record in enumerate(folder.sample_records(), 1):
            mark = ShardMark.take(record)
            if mark is None or replace(mark, order=shard.mark.order) != shard.mark:
                raise folder.build_sample_error(
                    sample_number, "belongs to another shard, or to none"
                )
            assessment_lines = []
            for metric in metrics:
                number += 1
                # A finished run has one assessment for each sample and metric, in this order.
                assessment_lines.append(line := lines.readline())
                identity = read_identity(folder.assessments_path, line, number)
                if identity != (record["id"], metric):
                    raise RunFolderError(
                        f"{folder.assessments_path}:{number}: expected the assessment of "
                        f"{record['id']!r} by {metric}; delete summary.json, then run: "
                        f"{_build_command(shard)}"
                    )
            yield mark.order, json.dumps(record).encode() + b"\n", assessment_lines
        if lines.readline():
            raise RunFolderError(
                f"{folder.assessments_path}:{number + 1}: this line belongs to no sample"
            )


def _merge_calls(files: Sequence[Path], target: Path, step: Callable[[], object]) -> int:
    """Write all calls into one file; return how many chat calls were made more than once.

    If one shard paid for a call and another took it from the shared file, the paid one counts.
    """
    paths = [path for path in files if path.exists()]
    part = target.with_name(f".{target.name}.part")
    for leftover in part.parent.glob(f"{part.name}*"):  # left by a killed process, with its journal
        leftover.unlink()
    if not paths:
        return 0
    CallStore(part).close()
    repeated = 0
    with closing(sqlite3.connect(part)) as store:
        # A merge that fails starts from nothing, so no journal is needed.
        store.execute("PRAGMA journal_mode = OFF")
        for path in paths:
            CallStore(path).close()  # applies a leftover journal, and upgrades the schema
            store.execute("ATTACH ? AS shard", [str(path)])
            result = store.execute(
                # Counted before they are inserted: calls that both sides paid for.
                "SELECT COUNT(*) FROM shard.calls AS theirs JOIN calls ON calls.key = theirs.key "
                "WHERE NOT calls.cached AND NOT theirs.cached AND calls.capability = 'chat'"
            )
            repeated += result.fetchone()[0]
            store.execute(
                # `WHERE TRUE` keeps SQLite from reading `ON CONFLICT` as a condition of a join.
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
